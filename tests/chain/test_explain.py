"""A hundred random documents of the sample run, followed from the corpus into `.bin` and into the steps of training."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.parquet as pq
import pytest

from mixtures.indexed import IndexedReader
from mixtures.lineage import Horizon, Place, find_documents, samples_of
from mixtures.lock import read_lock
from roots_pipeline.explain import explain_document
from tests.chain.conftest import Chain
from tokenizer.encode import Encoder
from train.data import micro_batches
from train.job import plan
from train.lineage import step_starts, steps_of_document, steps_of_samples

DOCUMENTS = 100


@pytest.fixture(scope="module")
def drawn(chain: Chain) -> dict[str, str]:
    """Text of random kept documents by id."""
    rows = [row for path in sorted((chain.run / "corpus" / "documents").glob("*.parquet"))
            for row in pq.read_table(path, columns=["id", "text"]).to_pylist()]
    return {row["id"]: row["text"] for row in random.Random(1).sample(rows, DOCUMENTS)}


@pytest.fixture(scope="module")
def places(chain: Chain, drawn: dict[str, str]) -> list[Place]:
    mixture = chain.run / "mixture"
    return find_documents(read_lock(str(mixture / "mixture.lock.yaml")), str(mixture), drawn)


def test_the_corpus_tells_where_each_is(chain: Chain, drawn: dict[str, str]) -> None:
    for id, text in drawn.items():
        [told] = explain_document(str(chain.run / "corpus"), id)
        stored = pq.read_table(chain.run / "corpus" / told.file).slice(told.row, 1).to_pylist()[0]
        assert told.verdict is None and stored["id"] == id and stored["text"] == text


def test_decoded_spans_are_the_texts(chain: Chain, drawn: dict[str, str], places: list[Place]) -> None:
    encoder = Encoder.from_file(str(chain.run / "tokenizer" / "tokenizer.json"))
    assert sorted(place.id for place in places) == sorted(drawn)
    for place in places:
        tokens = IndexedReader(str(chain.run / "mixture" / place.file)).tokens
        assert encoder.decode(tokens[place.offset : place.offset + place.tokens]) == drawn[place.id]


def holds(row: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64]) -> bool:
    """Whether a sample holds a part of a document: one of its dozens, or its end at first or its beginning at last."""
    content = row.tobytes()
    if any(tokens[at : at + 12].tobytes() in content for at in range(0, len(tokens) - 11, 12)):
        return True
    sizes = range(1, min(24, len(tokens)) + 1)
    return any(np.array_equal(row[:size], tokens[-size:]) or np.array_equal(row[-size:], tokens[:size])
               for size in sizes)


def test_the_steps_named_hold_the_documents_and_no_others_do(chain: Chain, places: list[Place]) -> None:
    """Every step is read through the loader of training: what it holds of a document is looked for token by token."""
    job = plan("sample", chain.run, None)
    starts, source, batch = step_starts(job), job.sources()[0], job.config.batch_size()
    read: dict[int, list[npt.NDArray[np.int64]]] = {}
    for step in range(1, len(starts)):
        position = int(starts[step - 1])
        batches = micro_batches(source, job.skips.numbers(position, batch(position)), job.config.micro_batch, 0, 1)
        read[step] = [row for parts in batches for row in np.concatenate([parts[0], parts[1][:, -1:]], axis=1)]
    folder = str(chain.run / "mixture")
    found = samples_of(places, folder, Horizon(job.config.train_samples, job.config.sequence_length, "the run"))
    named_in_all = 0
    for number, (place, samples) in enumerate(zip(places, found, strict=True)):
        tokens = np.asarray(IndexedReader(str(chain.run / "mixture" / place.file)).tokens[
            place.offset : place.offset + place.tokens], np.int64)
        named = set(steps_of_samples(job, samples))
        if number % 20 == 0:
            rows = steps_of_document(job, place.id)
            assert named == {step for row in rows if row["group"] == place.group for step in row["steps"]}
        assert named if place.side == "train" else not named
        for step in named:
            assert any(holds(row, tokens) for row in read[step]), (place.id, step)
        whole = tokens[:-1].tobytes()
        for step in read.keys() - named:
            assert not any(whole in row.tobytes() for row in read[step]), (place.id, step)
        named_in_all += len(named)
    assert named_in_all > DOCUMENTS


def test_the_commands_say_the_same(chain: Chain, drawn: dict[str, str], places: list[Place], project: Path) -> None:
    place = next(place for place in places if place.side == "train")

    def ask(*arguments: str) -> bytes:
        command = [sys.executable, "-m", *arguments, "--run", str(chain.run)]
        return subprocess.run(command, cwd=project, capture_output=True, check=True).stdout

    assert ask("mixtures", "explain", place.id, "--text").decode() == drawn[place.id]
    steps = {step for line in ask("train", "explain", place.id).splitlines() for step in orjson.loads(line)["steps"]}
    by_step = {step: {orjson.loads(line)["id"] for line in ask("train", "explain", "--step", str(step)).splitlines()}
               for step in sorted(steps)[:2]}
    assert steps and all(place.id in ids for ids in by_step.values())
