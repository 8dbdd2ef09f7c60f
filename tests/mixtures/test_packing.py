"""Best-fit packing: a plain twin, every token once an epoch, fewer cuts than a stream, and the packed data set."""

from __future__ import annotations

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from mixtures.__main__ import app
from mixtures.dataset import BlendedDataset, validation_sets
from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.lineage import horizon_of
from mixtures.lock import NAME, differences, read_lock, write_lock
from mixtures.order import build_order
from mixtures.packed import Fill, PackedSamples, shuffled_epochs, training_fills
from mixtures.packing import PackedIndex, labels_that_count, pack
from mixtures.plan import plan_rows
from mixtures.samplers import ConsecutiveSampler
from mixtures.verify import verify_mixture
from roots_pipeline.core.errors import MixtureError, StaleDataError, StorageError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import commit_file
from roots_pipeline.report.mixture import collect_mixture
from tests.mixtures.build import build_mixture, numbered_groups
from tests.mixtures.plain import best_fit
from tests.mixtures.small_run import mixed_shards, write_corpus
from tests.mixtures.test_dataset import ALL_TRAIN, SIZES, lengths_of_documents, read
from tests.mixtures.test_removal import GONE, remove, without
from tests.mixtures.test_write import write

PAD = 2  # the end of text of `build_mixture`


def packed_mixture(folder: Path, sizes: dict[str, list[int]], **more: Any) -> str:
    return build_mixture(folder, numbered_groups(sizes), packing="best_fit", **{"split": ALL_TRAIN, **more})


def pieces_of(index: PackedIndex) -> list[list[tuple[int, int]]]:
    """(document, start) of each piece of each sample."""
    rows = list(zip(index.documents.tolist(), index.starts.tolist(), strict=True))
    return [rows[first:end] for first, end in zip(index.samples[:-1], index.samples[1:], strict=True)]


def shuffled(documents: list[int], seed: int) -> list[int]:
    order = documents.copy()
    np.random.RandomState(seed).shuffle(order)
    return order


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 4), st.integers(0, 30), st.just(300)), max_size=60), st.integers(1, 40),
       st.integers(0, 5), st.data())  # fmt: skip
def test_packs_like_the_plain_twin(lengths: list[int], length: int, seed: int, data: st.DataObject) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, max(0, len(lengths) - 1))))) if lengths else []
    index = pack(np.array(lengths, np.int32), np.array(chosen, np.int64), length, seed)
    order = shuffled(chosen, seed)
    assert pieces_of(index) == best_fit([lengths[document] for document in order], order, length + 1)
    ends = [[start + min(length + 1, lengths[document] - start) for document, start in sample]
            for sample in pieces_of(index)]  # fmt: skip
    for sample, stops, labels in zip(pieces_of(index), ends, index.labels.tolist(), strict=True):
        # Token by token: its document and its place there.
        tokens = [(d, place) for (d, start), end in zip(sample, stops, strict=True) for place in range(start, end)]
        assert 1 <= len(tokens) <= length + 1
        begins = [place == 0 or (i > 0 and tokens[i - 1] == (d, place - 1)) for i, (d, place) in enumerate(tokens)]
        counts = begins[1:] + [False] * (length + 1 - len(tokens))
        starts, sizes = np.array([s for _, s in sample]), np.array(
            [end - start for (_, start), end in zip(sample, stops, strict=True)])  # fmt: skip
        assert labels_that_count(starts, sizes, length).tolist() == counts and labels == sum(counts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=300), st.integers(1, 64))
def test_every_token_once_and_fewer_cuts_than_a_stream(lengths: list[int], length: int) -> None:
    sizes = np.array(lengths, np.int32)
    index = pack(sizes, np.arange(len(sizes)), length, 1)
    seen = Counter((d, t) for d, s in zip(index.documents.tolist(), index.starts.tolist(), strict=True)
                   for t in range(s, min(s + length + 1, lengths[d])))  # fmt: skip
    assert seen == {(d, t): 1 for d, size in enumerate(lengths) for t in range(size)}
    cuts = len(index.documents) - np.count_nonzero(sizes)
    assert cuts == sum(max(0, -(-size // (length + 1)) - 1) for size in lengths)
    if sum(lengths) > 1:
        order = build_order(sizes, np.arange(len(sizes)), length, None, 1, "bigscience")
        cut_by_stream = np.count_nonzero(order.sample_index[1:-1, 1])
        assert cuts <= cut_by_stream + 1  # the stream drops its last tokens, and with them perhaps a cut
    # Of any two samples one is fuller than half, but for one: else they would have been one.
    room = length + 1
    full = [sum(min(room, lengths[d] - s) for d, s in sample) for sample in pieces_of(index)]
    assert sum(2 * one <= room for one in full) <= 1


def test_long_documents_and_many() -> None:
    """A document of a million tokens, and more documents than a sample has room for."""
    lengths = np.array([1_000_000, *[1] * 5000, 0, 2049, 2050, 2048], np.int32)
    index = pack(lengths, np.arange(len(lengths)), 2048, 3)
    assert int(np.diff(index.samples).sum()) == len(index.documents) == 488 + 1 + 5000 + 1 + 2 + 1
    assert len(index.labels) == -(-int(lengths.sum()) // 2049)
    again = pack(lengths, np.arange(len(lengths)), 2048, 3)
    assert np.array_equal(index.documents, again.documents) and np.array_equal(index.samples, again.samples)
    other = pack(lengths, np.arange(len(lengths)), 2048, 4)
    assert len(other.labels) == len(index.labels) and not np.array_equal(index.documents, other.documents)
    assert len(pack(lengths, np.array([5001]), 2048, 0).labels) == 0
    with pytest.raises(MixtureError, match="cannot have 0 tokens"):
        pack(lengths, np.arange(3), 0, 0)


def check_sample(dataset: BlendedDataset, groups: dict[str, list[list[int]]], index: int) -> None:
    """A sample by its spans: tokens, padding, borders, labels that count."""
    name, _ = dataset.location(index)
    spans, tokens = dataset.spans(index), dataset[index]
    told = [groups[name][s.sequence][s.start : s.start + s.tokens] for s in spans]
    real = sum(map(len, told))
    assert tokens.dtype == np.int64 and len(tokens) == dataset.sequence_length + 1
    assert tokens.tolist() == [token for part in told for token in part] + [PAD] * (len(tokens) - real)
    ends = np.cumsum([len(part) for part in told]).tolist()
    assert dataset.boundaries(index).tolist() == [0, *ends] + [len(tokens)] * (real < len(tokens))
    continued = {end for end, span in zip(ends[:-1], spans[1:], strict=True) if span.start}
    expected = [place < real and place not in continued for place in range(1, len(tokens))]
    assert dataset.counted(index).tolist() == expected and dataset.labels([index]) == sum(expected)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(lengths_of_documents, min_size=1, max_size=4), st.integers(1, 20), st.integers(0, 9), st.integers(1, 80)
)
def test_every_epoch_of_a_mixture_holds_every_token_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]], length: int, seed: int, samples: int
) -> None:
    named = {f"web.{number}": lengths for number, lengths in enumerate(sizes)}
    path = packed_mixture(tmp_path_factory.mktemp("any"), named, sequence_length=length, seed=seed)
    if not all(map(sum, sizes)):
        with pytest.raises(MixtureError, match="no token for train"):
            BlendedDataset(path, "train", samples)
        return
    dataset = BlendedDataset(path, "train", samples)
    assert dataset.packed and max(abs(count - samples / len(sizes)) for count in dataset.drawn.values()) < 1 + 1e-9
    fills = training_fills(dataset.lock, str(Path(path).parent), length)
    for name, group in zip(dataset.names, dataset.groups, strict=True):
        assert isinstance(group, PackedSamples)
        fill = fills[name]
        assert len(group) >= dataset.drawn[name] and len(group) % fill.samples == 0
        assert fill.tokens == sum(named[name]) and fill.documents == sum(map(bool, named[name]))
        for first in range(0, len(group), fill.samples):
            seen = [t for k in range(first, first + fill.samples) for t in group.sample(k).tolist() if t != PAD]
            assert sorted(seen) == sorted(group.reader.tokens.tolist())
    groups = numbered_groups(named)
    for index in range(samples):
        check_sample(dataset, groups, index)
    assert dataset.labels(range(samples)) == sum(int(dataset.counted(index).sum()) for index in range(samples))


def test_the_order_is_arithmetic(tmp_path: Path) -> None:
    """Epochs in different orders; ranks and an interruption change nothing; a shorter run is a prefix of a longer."""
    path = packed_mixture(tmp_path, {"web.en": [5, 6, 7, 8, 9, 3, 2, 1, 30]})
    dataset = BlendedDataset(path, "train", 40)
    fill = training_fills(dataset.lock, str(tmp_path), 8)["web.en"]
    epochs = [[dataset[first + k].tolist() for k in range(fill.samples)]
              for first in range(0, 3 * fill.samples, fill.samples)]  # fmt: skip
    assert epochs[0] != epochs[1] and sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    once = read(dataset)
    assert read(BlendedDataset(path, "train", 13)) == once[:13]
    batches = [list(ConsecutiveSampler(40, 8, 2, rank, 4)) for rank in range(4)]
    steps = [n for step in range(len(batches[0])) for rank in range(4) for n in batches[rank][step]]
    assert [dataset[number].tolist() for number in steps] == once[8:]
    assert read(BlendedDataset(path, "train", 40, seed=1)) != once
    with pytest.raises(IndexError):
        dataset.labels([40])
    with pytest.raises(IndexError):
        dataset.labels([-1])
    assert dataset.labels([]) == 0


def test_a_stream_counts_every_label(tmp_path: Path) -> None:
    dataset = BlendedDataset(build_mixture(tmp_path, numbered_groups(SIZES)), "train", 20)
    assert not dataset.packed and dataset.counted(3).all() and dataset.labels([1, 2, 3]) == 3 * 8


def test_the_lock_of_a_stream_does_not_know_of_packing(tmp_path: Path) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES))
    lock = read_lock(path)
    assert "packing" not in Path(path).read_text() and lock.packing == "stream"
    packed = replace(lock, packing="best_fit")
    assert packed.fingerprint != lock.fingerprint
    assert differences(lock, packed) == ["packing was stream, now best_fit"]
    write_lock(path, packed)
    assert read_lock(path) == packed
    Path(path).write_text(Path(path).read_text().replace("best_fit", "worst_fit"))
    with pytest.raises(StaleDataError, match="packing is 'worst_fit'"):
        read_lock(path)


def test_documents_are_found_in_their_samples(tmp_path: Path) -> None:
    dataset = BlendedDataset(packed_mixture(tmp_path, SIZES), "train", 60)
    for name in SIZES:
        for sequence in range(len(SIZES[name])):
            wanted = [k for k in range(60) if dataset.location(k)[0] == name
                      and any(span.sequence == sequence for span in dataset.spans(k))]  # fmt: skip
            assert dataset.containing(name, [sequence]).tolist() == wanted
    assert dataset.containing("web.xx", [0]).tolist() == []


def test_validation_sets(tmp_path: Path) -> None:
    path = packed_mixture(tmp_path, SIZES, split={"method": "range", "train": "0:0.5", "validation": "0.5:1"})
    sets = validation_sets(path, 10)
    groups = numbered_groups(SIZES)
    for name, one in sets.items():
        for index in range(10):
            check_sample(one, groups, index)
            group, _ = one.location(index)
            assert name in ("blend", group)
            assert all(span.sequence >= round(len(SIZES[group]) / 2) for span in one.spans(index))


def test_the_cache_is_used_shared_and_never_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_mixture(tmp_path, SIZES)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: read(BlendedDataset(path, "train", 50)), range(4)))
    assert found == [found[0]] * 4
    with monkeypatch.context() as patched:
        patched.setattr("mixtures.packed.pack", lambda *_: pytest.fail("packed again"))
        again = BlendedDataset(path, "train", 50)
        assert read(again) == read(pickle.loads(pickle.dumps(again))) == found[0]
        read(BlendedDataset(path, "train", 51))  # another number of samples shuffles anew, and packs nothing
    changed = {name: lengths[::-1] for name, lengths in SIZES.items()}
    packed = read(BlendedDataset(packed_mixture(tmp_path, changed), "train", 50))
    fresh = BlendedDataset(packed_mixture(tmp_path, changed), "train", 50, cache=str(tmp_path / "fresh"))
    assert packed == read(fresh) != found[0]
    stream = build_mixture(tmp_path, numbered_groups(changed), split=ALL_TRAIN)
    assert read(BlendedDataset(stream, "train", 50)) != packed


@pytest.mark.parametrize("array", ["document", "start", "sample"])
def test_a_damaged_cache_is_no_sample(tmp_path: Path, array: str) -> None:
    path = packed_mixture(tmp_path, {"web.en": [20, 5, 3]})
    BlendedDataset(path, "train", 3)
    [file] = (tmp_path / "cache").glob(f"packing-*-{array}.npy")
    values = np.load(file)
    values[:] = {"document": 77, "start": 1000, "sample": 0}[array]
    np.save(file, values)
    dataset = BlendedDataset(path, "train", 3)
    with pytest.raises(StorageError, match="cached order is damaged"):
        read(dataset)


def test_plan_and_horizon_know_the_fill(tmp_path: Path) -> None:
    path = packed_mixture(tmp_path / "mixture", {"web.en": [6] * 10, "web.fr": [9] * 4})
    lock = read_lock(path)
    fills = training_fills(lock, str(tmp_path / "mixture"), 8)
    assert fills == {"web.en": Fill(10, 60, 10, 0, 8), "web.fr": Fill(4, 36, 4, 0, 8)}
    assert (fills["web.en"].share, fills["web.fr"].share) == (6 / 9, 1.0)
    rows = {row.name: row for row in plan_rows(lock, 8 * 40, fills)}
    assert (rows["web.en"].read, rows["web.en"].epochs, rows["web.en"].fill) == (120, 2.0, 6 / 9)
    assert (rows["web.fr"].read, rows["web.fr"].epochs, rows["web.fr"].repeated) == (180, 5.0, 144)
    assert horizon_of(lock, str(tmp_path)).samples == 14


def test_a_packed_mixture_through_all_commands(run: str, tmp_path: Path) -> None:
    """Written, planned, verified, explained; a masked document leaves every other sample as it was."""
    lock, _ = write(run, packing="best_fit")
    path = f"{run}/mixture/{NAME}"
    told = CliRunner().invoke(app, ["plan", "--run", run, "--tokens", "5000"], catch_exceptions=False).stdout
    assert "fill" in told and "packed samples," in told and "% padding" in told
    manifests = [read_manifest(f"{run}/{step}").fingerprint for step in ("corpus", "tokenizer")]
    tokenizer = f"{run}/tokenizer/tokenizer.json"
    report = verify_mixture(f"{run}/mixture", tokenizer, corpus=manifests[0], tokenizer=manifests[1])
    assert report.packed == training_fills(lock, f"{run}/mixture", lock.sequence_length)
    assert all("</s></s>" not in text for _, _, text in report.texts)  # no padding is shown
    before = read(BlendedDataset(path, "train", 150))
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE))
    done = remove(run, "mask", samples=150)
    used = {number for numbers in done.samples for number in numbers}
    after = read(BlendedDataset(path, "train", 150))
    assert 0 < len(used) < 150 and {n for n in range(150) if after[n] != before[n]} <= used
    assert read_lock(path).packing == "best_fit"


@pytest.mark.parametrize("packing", ["stream", "best_fit"])
@pytest.mark.parametrize("trained", [4000, None])
def test_the_report_says_what_plan_says(run: str, packing: str, trained: int | None) -> None:
    """Also after a change of the weights alone, and for a group that is left out."""
    some = {"rule": "explicit", "weights": {"web.en": 3, "web.hi": 1}, "unmatched": "leave_out"}
    for weights in ({"rule": "proportional"}, some):
        lock, _ = write(run, packing=packing, weights=weights)
        folder = f"{run}/mixture"
        told = collect_mixture(folder, read_manifest(folder), trained)
        held = sum(group.train_tokens for group in lock.groups.values())
        assert told.budget == (trained or held) and told.packed == (packing == "best_fit")
        arguments = ["plan", "--json", "--run", run, "--tokens", str(told.budget)]
        planned = orjson.loads(CliRunner().invoke(app, arguments, catch_exceptions=False).stdout)["groups"]
        found = {row.group: (row.weight, row.train_tokens, pytest.approx(row.epochs)) for row in told.rows}
        assert {row["name"]: (row["weight"], row["tokens"], row["epochs"]) for row in planned} == found
        assert len(found) == 5 and (packing == "stream") == all(row["fill"] == 1 for row in planned)


def test_a_mixture_that_did_not_note_how_full_samples_are(run: str) -> None:
    write(run, packing="best_fit")
    manifest = read_manifest(f"{run}/mixture")
    older = {name: {"documents": one["documents"], "tokens": one["tokens"]} for name, one in manifest.counts.items()}
    rows = collect_mixture(f"{run}/mixture", replace(manifest, counts=older), 4000).rows
    assert [row.epochs for row in rows] == [None] * 5


def test_the_largest_vocabularies(tmp_path: Path) -> None:
    for name, dtype, top in (("a", np.uint16, 65_499), ("b", np.int32, 2**31 - 1)):
        with indexed_writer(str(tmp_path / name), dtype, commit_file) as writer:
            writer.append(np.array([top, 1, top, top], np.int64), np.array([3, 0, 1]))
        reader = IndexedReader(str(tmp_path / name))
        index = pack(reader.lengths, np.arange(3), 3, 0)
        group = PackedSamples(reader, 3, top, index, shuffled_epochs(1, 1, 0))
        assert group.sample(0).tolist() == [top, 1, top, top] and group.counted(0).all()
