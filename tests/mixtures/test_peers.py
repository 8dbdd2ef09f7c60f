"""Against megatron-core itself: its writer, its reader, its samples and its blends."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mixtures.blend import blend, blend_everything
from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.order import locate_samples, samples_in
from roots_pipeline.core.storage import commit_file

pytestmark = pytest.mark.peers


def peer(name: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip(f"megatron.core.datasets.{name}")
    return module


def random_documents(seed: int, count: int, top: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.RandomState(seed)
    return [random.randint(0, top, random.choice([0, 1, 7, 300])).astype(np.int64) for _ in range(count)]


@pytest.mark.parametrize(("dtype", "top"), [(np.uint16, 65_499), (np.int32, 250_680)])
def test_bytes_of_its_builder(tmp_path: Path, dtype: Any, top: int) -> None:
    indexed = peer("indexed_dataset")
    torch = pytest.importorskip("torch")
    documents = random_documents(3, 200, top)
    builder = indexed.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=dtype)
    for document in documents:
        builder.add_document(torch.from_numpy(document), [len(document)])
    builder.finalize(str(tmp_path / "theirs.idx"))
    with indexed_writer(str(tmp_path / "ours"), dtype, commit_file) as writer:
        for start in range(0, 200, 77):
            block = documents[start : start + 77]
            writer.append(np.concatenate(block), np.array([len(document) for document in block]))
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"ours{suffix}").read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()


def test_its_reader_reads_ours_and_ours_reads_its(tmp_path: Path) -> None:
    indexed = peer("indexed_dataset")
    documents = random_documents(4, 60, 250_680)
    with indexed_writer(str(tmp_path / "ours"), np.int32, commit_file) as writer:
        writer.append(np.concatenate(documents), np.array([len(document) for document in documents]))
    theirs, ours = indexed.IndexedDataset(str(tmp_path / "ours")), IndexedReader(str(tmp_path / "ours"))
    assert len(theirs) == len(ours) == 60
    for number, document in enumerate(documents):
        assert theirs[number].tolist() == ours[number].tolist() == document.tolist()
    assert theirs.document_indices.tolist() == ours.document_index.tolist()
    assert theirs.get(3, offset=0).tolist() == ours.get(3).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_its_sample_index(seed: int) -> None:
    helpers = peer("helpers_cpp")
    random = np.random.RandomState(seed)
    lengths = random.choice([0, 1, 2, 30, 500], 400).astype(np.int32)
    epochs, length = 3, int(random.choice([1, 7, 64]))
    documents = np.tile(np.arange(400, dtype=np.int32), epochs)
    random.shuffle(documents)
    tokens = int(lengths.sum())
    for extra in (True, False):
        theirs = helpers.build_sample_idx_int32(lengths, documents, length, epochs, tokens, True, int(extra))
        samples = samples_in(epochs, tokens, length, extra)
        ours = locate_samples(lengths, documents, length, samples, epochs * tokens, extra_token=extra)
        assert np.array_equal(theirs, ours)


@pytest.mark.parametrize("count", [1, 2, 28, 400])
def test_its_blends(count: int) -> None:
    helpers = peer("helpers_cpp")
    random = np.random.RandomState(count)
    weights = random.dirichlet(np.full(count, 0.3)) + 1e-9
    weights /= weights.sum()
    size = 20_000
    groups, numbers = np.zeros(size, np.int16), np.zeros(size, np.int64)
    helpers.build_blending_indices(groups, numbers, weights, count, size, False)
    ours = blend(weights.tolist(), size)
    shares = weights / np.sum(weights)
    if np.array_equal(shares, weights):
        assert np.array_equal(groups, ours.groups) and np.array_equal(numbers, ours.numbers)
    else:  # normalising again moved a last bit: compare on the weights that we used
        helpers.build_blending_indices(groups, numbers, shares, count, size, False)
        assert np.array_equal(groups, ours.groups) and np.array_equal(numbers, ours.numbers)
    sizes = random.randint(1, 50, count)
    groups, numbers = np.zeros(sizes.sum(), np.int16), np.zeros(sizes.sum(), np.int64)
    helpers.build_exhaustive_blending_indices(groups, numbers, sizes.astype(np.int64), count)
    every = blend_everything(sizes.tolist())
    assert np.array_equal(groups, every.groups) and np.array_equal(numbers, every.numbers)
