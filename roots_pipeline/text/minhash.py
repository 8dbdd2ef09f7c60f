# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""MinHash signatures (Broder 1997): the share of equal numbers in two of them estimates the Jaccard similarity.

Number j of a signature is the minimum over all n-grams of `a_j x + b_j mod 2^32`, x being the upper half of the
n-gram's hash. The numbers a_j (odd) and b_j follow from a seed. In: Arrow text buffers. Out: uint32[texts, hashes].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import MULTIPLIER, extend, mix
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.ngrams import BLOCK, Ngrams, new_state, next_ngrams, whole_text_hash

Signatures = npt.NDArray[np.uint32]

_HALF = np.uint64(32)


def sign_texts(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    ngrams: Ngrams,
    hashes: int,
    seed: int,
    short_whole: bool,
) -> tuple[Signatures, npt.NDArray[np.bool_]]:
    """Signatures of all texts, and which texts have one: those with an n-gram (see `ngrams.ngram_hashes`)."""
    dice = np.random.Generator(np.random.Philox(seed))
    factors = dice.integers(0, 1 << 32, hashes, np.uint32) | np.uint32(1)
    terms = dice.integers(0, 1 << 32, hashes, np.uint32)
    signatures = np.full((len(offsets) - 1, hashes), 0xFFFFFFFF, np.uint32)
    signed = np.zeros(len(signatures), np.bool_)
    _sign(data, offsets, ngrams, short_whole, factors, terms, signatures, signed)
    return signatures, signed


@allocating
def _sign(data, offsets, ngrams, short_whole, factors, terms, signatures, signed):
    units, grams, state = np.empty(BLOCK + ngrams.size, np.uint64), np.empty(BLOCK + 2, np.uint64), new_state()
    for text in range(len(signatures)):
        i, end, held = offsets[text], offsets[text + 1], 0
        state[:] = 0
        more = True
        while more:
            i, held, number = next_ngrams(data, i, end, ngrams, units, held, grams, state)
            more = i < end
            if not more and number == 0 and not signed[text] and short_whole and held > 0:
                grams[0], number = whole_text_hash(ngrams, units, held), 1
            if number:
                signed[text] = True
                _take_minima(grams, number, factors, terms, signatures[text])


@kernel
def _take_minima(grams, number, factors, terms, minima):
    # Four n-grams at a time: their factors, terms and minima are loaded once.
    k = 0
    while k + 4 <= number:
        x0, x1 = np.uint32(grams[k] >> _HALF), np.uint32(grams[k + 1] >> _HALF)
        x2, x3 = np.uint32(grams[k + 2] >> _HALF), np.uint32(grams[k + 3] >> _HALF)
        for j in range(minima.size):
            factor, term = factors[j], terms[j]
            low = min(np.uint32(x0 * factor + term), np.uint32(x1 * factor + term))
            high = min(np.uint32(x2 * factor + term), np.uint32(x3 * factor + term))
            minima[j] = min(minima[j], min(low, high))
        k += 4
    while k < number:
        x = np.uint32(grams[k] >> _HALF)
        for j in range(minima.size):
            minima[j] = min(minima[j], np.uint32(x * factors[j] + terms[j]))
        k += 1


def band_keys(signatures: Signatures, bands: int, rows: int) -> npt.NDArray[np.uint64]:
    """The key of each band: uint64[texts, bands]; band i is numbers `i * rows` to `(i + 1) * rows` of a signature."""
    keys = np.empty((len(signatures), bands), np.uint64)
    _band_keys(signatures, rows, keys)
    return keys


@kernel
def _band_keys(signatures, rows, keys):
    for text in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            value = mix(np.uint64(band + 1) * MULTIPLIER)
            for k in range(band * rows, (band + 1) * rows):
                value = extend(value, np.uint64(signatures[text, k]))
            keys[text, band] = mix(value)


@kernel
def agreement(first, second):
    """How many numbers of two signatures are equal."""
    count = 0
    for k in range(first.size):
        count += first[k] == second[k]
    return count


@kernel
def jaccard(first, second):
    """|A and B| / |A or B| of two sorted arrays without repetitions; at least one is not empty."""
    i = j = common = 0
    while i < first.size and j < second.size:
        a, b = first[i], second[j]
        common += a == b
        i += a <= b
        j += b <= a
    return common / (first.size + second.size - common)
