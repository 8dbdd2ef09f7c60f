"""MinHash: the numbers of a plain twin, an unbiased estimate with the variance of the theory, bands, exact Jaccard."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.minhash import agreement, band_keys, jaccard, sign_texts
from roots_pipeline.text.ngrams import WORDS, ngram_hashes, ngrams_of
from tests.text.twins import buffers

WORD = st.sampled_from(["ab", "cd", "é", "日本", "ef.", "--", "gh"])
TEXTS = st.lists(st.lists(WORD, max_size=20).map(" ".join), max_size=6)


@given(TEXTS, st.integers(1, 4), st.integers(1, 40), st.integers(0, 3), st.booleans())
@settings(max_examples=200, deadline=None)
def test_minima_over_all_ngrams(texts: list[str], size: int, hashes: int, seed: int, short: bool) -> None:
    ngrams = ngrams_of(WORDS, size)
    signatures, signed = sign_texts(*buffers(texts), ngrams, hashes, seed, short)
    values, bounds = ngram_hashes(*buffers(texts), ngrams, short)
    dice = np.random.Generator(np.random.Philox(seed))
    factors = [int(a) | 1 for a in dice.integers(0, 1 << 32, hashes, np.uint32)]
    terms = [int(b) for b in dice.integers(0, 1 << 32, hashes, np.uint32)]
    for number in range(len(texts)):
        own = [int(value) >> 32 for value in values[bounds[number] : bounds[number + 1]]]
        assert signed[number] == bool(own)
        expected = [min(((x * a + b) & 0xFFFFFFFF for x in own), default=0xFFFFFFFF)
                    for a, b in zip(factors, terms, strict=True)]
        assert signatures[number].tolist() == expected


def test_estimate_is_unbiased_and_as_sharp_as_it_can_be() -> None:
    dice = np.random.default_rng(7)
    for common, own in ((1, 1), (4, 1), (40, 5), (800, 100), (100, 400)):
        true = common / (common + 2 * own)
        pairs = []
        for pair in range(300):
            words = [f"{pair}x{dice.integers(1 << 40)}" for _ in range(common + 2 * own)]
            pairs += [" ".join(words[: common + own]), " ".join(words[:common] + words[common + own :])]
        signatures, _ = sign_texts(*buffers(pairs), ngrams_of(WORDS, 1), 128, 5, True)
        shares = np.array([agreement(a, b) / 128 for a, b in zip(signatures[::2], signatures[1::2], strict=True)])
        deviation = np.sqrt(true * (1 - true) / 128)
        assert abs(shares.mean() - true) < 4 * deviation / np.sqrt(300)
        assert shares.std() < 1.25 * deviation


def test_equal_bands_and_no_others_have_equal_keys() -> None:
    dice = np.random.default_rng(3)
    signatures = dice.integers(0, 3, (60, 12), np.uint32)
    keys = band_keys(signatures, 4, 3)
    parts = [(band, *signatures[text, 3 * band : 3 * band + 3]) for text in range(60) for band in range(4)]
    assert len(set(zip(parts, keys.ravel().tolist(), strict=True))) == len(set(parts)) == len(set(keys.ravel()))


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
@settings(max_examples=200, deadline=None)
def test_jaccard(first: set[int], second: set[int]) -> None:
    if first | second:
        a, b = (np.array(sorted(one), np.uint64) for one in (first, second))
        assert jaccard(a, b) == len(first & second) / len(first | second)
