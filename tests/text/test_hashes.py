"""Text hashes against xxhash itself, range hashes against each other."""

from __future__ import annotations

import re
import string

import numpy as np
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.hashes import (
    hash_range,
    hash_texts,
    hash_texts_without,
    white_space,
    white_space_digits_punctuation,
)
from tests.text.twins import buffers


def as_integers(hashes: np.ndarray) -> list[int]:
    return [(int(high) << 64) | int(low) for high, low in hashes]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6))
def test_hashes_of_texts(texts: list[str]) -> None:
    assert as_integers(hash_texts(*buffers(texts))) == [xxhash.xxh3_128_intdigest(text.encode()) for text in texts]
    squeezed = ["".join(text.split()) for text in texts]
    wanted = [xxhash.xxh3_128_intdigest(text.encode()) for text in squeezed]
    assert as_integers(hash_texts_without(*buffers(texts), white_space(), False)) == wanted


def published_key(text: str) -> str:
    return re.sub(r"\s|\d|[" + re.escape(string.punctuation) + "]", "", text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("a1٣ \n\u3000-_.。²Ⅳ１"), max_size=12)))
def test_hashes_without_white_space_digits_and_punctuation(texts: list[str]) -> None:
    wanted = [xxhash.xxh3_128_intdigest(published_key(text).encode()) for text in texts]
    table = white_space_digits_punctuation()
    assert as_integers(hash_texts_without(*buffers(texts), table, False)) == wanted
    wanted = [xxhash.xxh3_128_intdigest((published_key(text) or text).encode()) for text in texts]
    assert as_integers(hash_texts_without(*buffers(texts), table, True)) == wanted


def test_code_that_differs_in_layout_only() -> None:
    one, other = hash_texts_without(
        *buffers(["if (a) {\n\treturn b;\n}\n", "if(a){return b;}"]), white_space(), False
    )
    assert one.tolist() == other.tolist()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_range_hashes_are_equal_for_equal_bytes_only(one: bytes, other: bytes) -> None:
    data = np.frombuffer(one + other + one, np.uint8)
    a, b = len(one), len(other)
    assert hash_range(data, 0, a) == hash_range(data, a + b, len(data))
    assert (hash_range(data, 0, a) == hash_range(data, a, a + b)) == (one == other)
