"""The blended dataset: every token once an epoch, golden samples, caches that are never stale."""

from __future__ import annotations

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.blend import blend, sample_targets
from mixtures.dataset import BlendedDataset, validation_sets
from mixtures.group import GroupSamples
from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.lock import read_lock, write_lock
from mixtures.order import Variant, build_order, epochs_needed
from mixtures.samplers import ConsecutiveSampler
from mixtures.splits import range_boundaries
from roots_pipeline.core.errors import MixtureError, StaleDataError, StorageError
from roots_pipeline.core.storage import commit_file
from tests.mixtures.build import build_mixture, numbered_groups
from tests.mixtures.golden import load

SIZES = {"web.en": [30, 1, 0, 200, 7, 16], "web.fr": [50, 40], "code.c": [9, 9, 9, 9, 9]}
ALL_TRAIN = {"method": "hash", "share": 0.0}


def read(dataset: BlendedDataset) -> list[list[int]]:
    return [dataset[number].tolist() for number in range(len(dataset))]


def test_samples_are_what_the_order_says(tmp_path: Path) -> None:
    groups = numbered_groups(SIZES)
    weights = {"web.en": 0.5, "web.fr": 0.3, "code.c": 0.2}
    dataset = BlendedDataset(build_mixture(tmp_path, groups, weights, ALL_TRAIN), "train", 60)
    drawn = blend(list(weights.values()), 60)
    orders = {}
    for name, target in zip(groups, sample_targets(list(weights.values()), 60, "bigscience"), strict=True):
        lengths = np.array([len(document) for document in groups[name]], np.int32)
        orders[name] = build_order(lengths, np.arange(len(lengths)), 8, target, 42, "bigscience")
    for index in range(60):
        name = list(groups)[drawn.groups[index]]
        number = int(drawn.numbers[index])
        assert dataset.location(index) == (name, number)
        order = orders[name]
        stream = [token for place in order.document_index for token in groups[name][place]]
        first = 8 * int(order.shuffle_index[number])
        assert dataset[index].tolist() == stream[first : first + 9]
        spans = dataset.spans(index)
        told = [token for s in spans for token in groups[name][s.sequence][s.start : s.start + s.tokens]]
        assert told == dataset[index].tolist() and all(span.tokens > 0 for span in spans)
    assert dataset[0].dtype == np.int64
    with pytest.raises(IndexError, match="sample 60 of 60"):
        dataset[60]
    with pytest.raises(IndexError):
        dataset[-1]


lengths_of_documents = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 30), st.just(400)), min_size=1, max_size=9)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(lengths_of_documents, min_size=1, max_size=4), st.integers(1, 20), st.integers(0, 9), st.integers(1, 80)
)
def test_every_token_once_an_epoch(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]], length: int, seed: int, samples: int
) -> None:
    named = {f"web.{number}": lengths for number, lengths in enumerate(sizes)}
    path = build_mixture(
        tmp_path_factory.mktemp("any"), numbered_groups(named), split=ALL_TRAIN, sequence_length=length, seed=seed
    )
    if not all(map(sum, sizes)):
        with pytest.raises(MixtureError, match="no token for train"):
            BlendedDataset(path, "train", samples)
        return
    dataset = BlendedDataset(path, "train", samples)
    assert max(abs(count - samples / len(sizes)) for count in dataset.drawn.values()) < 1 + 1e-9
    for group, target in zip(dataset.groups, sample_targets([1.0] * len(sizes), samples, "bigscience"), strict=True):
        seen: Counter[int] = Counter()
        for number in range(len(group)):
            seen.update(group.sample(number)[:-1].tolist())
        total = len(group.reader.tokens)
        # Inputs cover the stream of all epochs once, but for its end, which does not fill another sample.
        epochs = epochs_needed(total, length, target)
        missing = epochs * total - len(group) * length
        assert sum(seen.values()) == len(group) * length and 1 <= missing <= length
        assert max(seen.values(), default=0) <= epochs
        assert sum(epochs - seen[token] for token in group.reader.tokens.tolist()) == missing
    read(dataset)


@pytest.mark.parametrize("variant", ["bigscience", "megatron_core"])
def test_golden_samples(shared: Path, tmp_path: Path, variant: Variant) -> None:
    files = {case["name"]: case["documents_as_sequences"] for case in load(shared, "06_indexed")["datasets"]}
    types = {case["name"]: case["dtype"] for case in load(shared, "06_indexed")["datasets"]}
    for case in load(shared, "06b_samples_end_to_end")["cases"]:
        documents = files[case["dataset"]]
        sequences = [sequence for document in documents for sequence in document]
        prefix = str(tmp_path / case["dataset"])
        with indexed_writer(prefix, types[case["dataset"]], commit_file) as writer:
            lengths = np.array([len(sequence) for sequence in sequences])
            writer.append(np.concatenate(sequences).astype(np.int64), lengths, np.array([len(d) for d in documents]))
        start, end = range_boundaries(case["range"], len(sequences))
        assert [start, end] == case.get("documents", [start, end])
        reader = IndexedReader(prefix)
        order = build_order(
            reader.lengths, np.arange(start, end), case["seq_length"], case["num_samples"], case["seed"], variant
        )
        group = GroupSamples(reader, case["seq_length"], order.document_index, order.sample_index, order.shuffle_index)
        found = [group.sample(number).tolist() for number in range(len(group))]
        wanted = case.get("bigscience_samples") or case["core_samples"]  # the original crashes on some
        if variant == "megatron_core" and case["core_samples"] != "identical":
            wanted = case["core_samples"]
        assert found == wanted, case


def test_the_order_does_not_depend_on_ranks(tmp_path: Path) -> None:
    dataset = BlendedDataset(build_mixture(tmp_path, numbered_groups(SIZES)), "train", 48)
    once = read(dataset)
    for micro_batch, ranks in ((1, 1), (4, 3), (2, 4)):
        batches = [list(ConsecutiveSampler(48, 0, micro_batch, rank, ranks)) for rank in range(ranks)]
        steps = [n for step in range(len(batches[0])) for rank in range(ranks) for n in batches[rank][step]]
        assert [dataset[number].tolist() for number in steps] == once
    resumed = [number for batch in ConsecutiveSampler(48, 20, 2, 0, 1) for number in batch]
    assert [dataset[number].tolist() for number in resumed] == once[20:]


def test_the_cache_is_used_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES))
    first = read(BlendedDataset(path, "train", 50))
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").iterdir()}

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("built again")

    with monkeypatch.context() as patched:
        patched.setattr("mixtures.group.build_order", refuse)
        patched.setattr("mixtures.dataset.blend", refuse)
        again = BlendedDataset(path, "train", 50)
        packed = pickle.dumps(again)
        assert len(packed) < 1000 and read(again) == read(pickle.loads(packed)) == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").iterdir()} == files


def test_many_readers_at_once_build_one_cache(tmp_path: Path) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: read(BlendedDataset(path, "train", 50)), range(4)))
    assert found == [found[0]] * 4
    assert not [file.name for file in (tmp_path / "cache").iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("change", ["seed", "sequence_length", "variant", "samples", "side"])
def test_other_questions_find_other_arrays(tmp_path: Path, change: str) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES))
    first = read(BlendedDataset(path, "train", 50))
    arguments: dict[str, Any] = {"seed": {"seed": 43}, "sequence_length": {"sequence_length": 7}}.get(change, {})
    if change == "variant":
        path = build_mixture(tmp_path, numbered_groups(SIZES), variant="megatron_core")
    side, samples = ("validation" if change == "side" else "train"), (51 if change == "samples" else 50)
    found = BlendedDataset(path, side, samples, **arguments)
    fresh = BlendedDataset(path, side, samples, cache=str(tmp_path / "fresh"), **arguments)
    assert read(found) == read(fresh)
    assert change in ("variant", "samples") or read(found)[:50] != first


def test_the_same_sizes_with_other_content(tmp_path: Path) -> None:
    """Megatron names its caches by sizes and seeds, so new data of the same size silently use old arrays."""
    groups = numbered_groups(SIZES)
    path = build_mixture(tmp_path, groups)
    before = read(BlendedDataset(path, "train", 50))
    lock = read_lock(path)
    # The same documents in another order: equal .bin and .idx sizes, other lengths inside.
    changed = {name: documents[::-1] for name, documents in groups.items()}
    build_mixture(tmp_path, changed)
    now = read_lock(path)
    assert lock.groups["web.en"].files[".bin"].size == now.groups["web.en"].files[".bin"].size
    found = read(BlendedDataset(path, "train", 50))
    fresh = read(BlendedDataset(path, "train", 50, cache=str(tmp_path / "fresh")))
    assert found == fresh != before
    # The new files under the old lock are refused.
    write_lock(path, lock)
    with pytest.raises(StaleDataError, match="content is not what the lock describes"):
        BlendedDataset(path, "train", 50)


def test_a_damaged_cache(tmp_path: Path) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES))
    BlendedDataset(path, "train", 50)
    for file in (tmp_path / "cache").glob("*-sample.npy"):
        file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(StorageError, match=r"cached index cannot be read.*Delete this cache folder"):
        BlendedDataset(path, "train", 50)
    BlendedDataset(path, "train", 50, cache=str(tmp_path / "other"))
    for file in (tmp_path / "other").glob("order-*-sample.npy"):
        starts = np.load(file)
        starts[1:] = starts[-1]
        np.save(file, starts)
    damaged = BlendedDataset(path, "train", 50, cache=str(tmp_path / "other"))
    with pytest.raises(StorageError, match="its cached order is damaged"):
        read(damaged)


def test_validation_sets(tmp_path: Path) -> None:
    """One of the blend and one for each group, as BLOOM had 29 for 28 groups."""
    groups = numbered_groups({**SIZES, "web.one": [12]})  # a group of one document has nothing to hold out
    path = build_mixture(tmp_path, groups)
    sets = validation_sets(path, 10)
    assert list(sets) == ["blend", "web.en", "web.fr", "code.c"]
    train = {token for sample in read(BlendedDataset(path, "train", 200)) for token in sample}
    for name, dataset in sets.items():
        tokens = {token for sample in read(dataset) for token in sample}
        assert len(dataset) == 10 and not tokens & train
        assert name == "blend" or tokens <= {token for document in groups[name] for token in document}
    assert {sets["blend"].location(number)[0] for number in range(10)} == {"web.en", "web.fr", "code.c"}


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    path = build_mixture(tmp_path, numbered_groups(SIZES), {"web.en": 1.0, "web.fr": 0.0, "code.c": 0.0})
    dataset = BlendedDataset(path, "train", 20)
    assert dataset.names == ("web.en",)  # a weight of 0 is never drawn
    with pytest.raises(MixtureError, match=r"no group 'web\.de'.*Did you mean"):
        BlendedDataset(path, "train", 20, groups=["web.de"])
    with pytest.raises(MixtureError, match="0 samples"):
        BlendedDataset(path, "train", 0)
    with pytest.raises(MixtureError, match="no side 'dev'"):
        BlendedDataset(path, "dev", 5)
    with pytest.raises(MixtureError, match="has both a weight and tokens"):
        BlendedDataset(path, "train", 5, groups=["web.fr"])
    with pytest.raises(StaleDataError, match="there is no mixture here"):
        BlendedDataset(str(tmp_path / "nowhere" / "mixture.lock.yaml"), "train", 5)


def test_three_hundred_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # 2,000 small files
    groups = numbered_groups({f"web.{number:03d}": [20, 30] for number in range(300)})
    dataset = BlendedDataset(build_mixture(tmp_path, groups, split=ALL_TRAIN), "train", 900)
    assert Counter(dataset.location(number)[0] for number in range(900)) == dict.fromkeys(groups, 3)


def test_a_test_side_is_never_trained_on(tmp_path: Path) -> None:
    split = {"method": "hash", "share": 0.2, "test": 0.2}
    path = build_mixture(tmp_path, numbered_groups({"a.en": [9] * 30, "b.en": [5]}), split=split, sequence_length=4)
    seen = {}
    for side in ("train", "validation", "test"):
        dataset = BlendedDataset(path, side, 200)
        seen[side] = {int(token) for number in range(200) for token in dataset[number]}
    assert not seen["test"] & seen["train"] and not seen["test"] & seen["validation"] and seen["test"]
    assert BlendedDataset(path, "test", 3).names == ("a.en",)  # b has only one document, and trains on it
    with pytest.raises(MixtureError, match="tokens for test"):
        BlendedDataset(path, "test", 3, groups=["b.en"])


def test_held_out_data_of_a_group_without_weight(tmp_path: Path) -> None:
    path = build_mixture(tmp_path, numbered_groups({"a.en": [9] * 30, "b.en": [5] * 9}), {"a.en": 1.0, "b.en": 0.0})
    assert BlendedDataset(path, "validation", 3).names == ("a.en",)
    assert BlendedDataset(path, "validation", 3, groups=["b.en"]).names == ("b.en",)
    with pytest.raises(MixtureError, match="no group has both"):
        BlendedDataset(path, "train", 3, groups=["b.en"])


def test_boundaries_of_documents_in_a_sample(tmp_path: Path) -> None:
    documents = [[3, 4, 2], [5, 6, 7, 8, 9, 2], [2], [10, 2]]  # 2 ends a document
    path = build_mixture(tmp_path, {"a.en": documents}, split={"method": "range", "train": "0:1", "validation": "1:1"})
    dataset = BlendedDataset(path, "train", 30, sequence_length=4)
    for number in range(30):
        tokens, found = dataset[number], dataset.boundaries(number)
        ends = [place + 1 for place in range(4) if tokens[place] == 2]
        assert found.tolist() == [0, *ends, 5]
