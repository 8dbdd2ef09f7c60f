# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""From buckets of documents to pairs worth a closer look, without the squares that giant buckets would cost.

In a small bucket all pairs are compared by signature. In a large one each member is compared with at most `leaders`
representatives: the best-ranked members that are not surely similar to a representative before them. That bounds the
pairs by `leaders` times the members. It can only lead to fewer pairs, and a document is dropped for a verified pair
alone, so at worst a duplicate stays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.minhash import Signatures, agreement, jaccard

Numbers = npt.NDArray[np.int64]


def bucket_names(
    keys: npt.NDArray[np.uint64], shards: npt.NDArray[np.int32], rows: Numbers
) -> npt.NDArray[np.uint64]:
    """For entries sorted by key, shard and row: a name of the set of documents that share the key, 0 for one alone.

    Bands that the same documents share get the same name, so they need to meet once only.
    """
    names = np.zeros(len(keys), np.uint64)
    _bucket_names(keys, shards, rows, names)
    return names


@kernel
def _bucket_names(keys, shards, rows, names):
    start = 0
    while start < keys.size:
        stop = start
        members = np.uint64(0)
        while stop < keys.size and keys[stop] == keys[start]:
            members += mix(mix(np.uint64(shards[stop]) + np.uint64(1)) + np.uint64(rows[stop]))
            stop += 1
        if stop - start > 1:
            name = mix(members) | np.uint64(1)
            for k in range(start, stop):
                names[k] = name
        start = stop


def compare_buckets(
    bounds: Numbers, signatures: Signatures, small: int, leaders: int, accept: int, reject: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Pairs (better, worse, equal numbers) of entries that the signature does not rule out.

    `bounds` are where buckets begin in the entries (and the end); the entries of a bucket are sorted by rank.
    """
    pairs = _compare(bounds, signatures, small, leaders, accept, reject)
    return pairs[:, 0], pairs[:, 1], pairs[:, 2]


@allocating
def _compare(bounds, signatures, small, leaders, accept, reject):
    pairs, found = np.empty((64, 3), np.int64), 0
    heads = np.empty(max(small, leaders), np.int64)
    hashes = signatures.shape[1]
    for bucket in range(bounds.size - 1):
        start, stop, known = bounds[bucket], bounds[bucket + 1], 0
        limit = small if stop - start <= small else leaders
        for k in range(start, stop):
            if found + known > len(pairs):
                pairs = np.concatenate((pairs, np.empty((len(pairs) + known, 3), np.int64)))
            sure = False
            for h in range(known):
                equal = agreement(signatures[heads[h]], signatures[k])
                if equal > reject:
                    pairs[found] = heads[h], k, equal
                    found += 1
                sure |= equal >= min(accept, hashes)
            # In a small bucket every member is a representative, so all pairs are compared.
            if known < limit and (not sure or stop - start <= small):
                heads[known] = k
                known += 1
    return pairs[:found]


def comparison_keys(
    shards: npt.NDArray[np.int32], rows: Numbers, parts: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint64]:
    """Where the partners of a document (by shard and row) meet it, one key for each part of them."""
    keys = np.empty(len(shards), np.uint64)
    _comparison_keys(shards, rows, parts, keys)
    return keys


@kernel
def _comparison_keys(shards, rows, parts, keys):
    for k in range(keys.size):
        keys[k] = mix(mix(mix(np.uint64(shards[k] + 1)) + np.uint64(rows[k])) + np.uint64(parts[k]))


@kernel
def jaccard_to_first(values, offsets, other, first, out):
    """Jaccard similarity of sets `other[k]` and `first[k]`; set i is the sorted `values[offsets[i]:offsets[i + 1]]`."""
    for k in range(other.size):
        i, j = first[k], other[k]
        out[k] = jaccard(values[offsets[i] : offsets[i + 1]], values[offsets[j] : offsets[j + 1]])
