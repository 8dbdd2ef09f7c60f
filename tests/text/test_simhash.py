"""MD5 against the standard library, SimHash against a plain twin and against hashes of the original ROOTS code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.md5 import LANES, ONE_BLOCK, WORK, hash_lanes, hash_long, load_message
from roots_pipeline.text.simhash import CHARACTERS, WORDS, simhash_texts
from tests.text.twins import buffers

PUNCTUATION = regex.compile(r"\p{P}")


def md5_start(message: bytes) -> int:
    return int.from_bytes(hashlib.md5(message).digest()[:8], "big")


def majority(hashes: list[int]) -> int:
    """The bits that more than half of the hashes have."""
    bits = np.unpackbits(np.array(hashes, ">u8").view(np.uint8).reshape(-1, 8), axis=1)
    return sum(1 << (63 - bit) for bit in np.flatnonzero(2 * bits.sum(axis=0, dtype=np.int64) > len(hashes)).tolist())


def simhash(text: str, unit: int, window: int, keep_punctuation: bool = False, drop_last: bool = False) -> int:
    if not keep_punctuation:
        text = PUNCTUATION.sub("", text)
    units = list(text) if unit == CHARACTERS else text.split(" ")
    glue = "" if unit == CHARACTERS else " "
    count = len(units) - window + (not drop_last)
    if len(units) < window:
        count = 1 if text and not drop_last else 0
    return majority([md5_start(glue.join(units[k : k + window]).encode()) for k in range(count)])


def kernel(texts: list[str], unit: int, window: int, *switches: bool) -> list[int]:
    units = np.full(len(texts), unit, np.uint8)
    hashes: list[int] = simhash_texts(*buffers(texts), units, window, *switches)[0].tolist()
    return hashes


@given(st.lists(st.binary(max_size=ONE_BLOCK), max_size=2 * LANES), st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_md5(messages: list[bytes], long: bytes) -> None:
    work, out = np.zeros(WORK, np.uint32), np.empty(LANES, np.uint64)
    data = np.frombuffer(b"".join(messages) + long + b"x", np.uint8)
    at = 0
    for begin in range(0, len(messages), LANES):
        part = messages[begin : begin + LANES]
        for lane, message in enumerate(part):
            load_message(work, lane, data, at, at + len(message))
            at += len(message)
        hash_lanes(work, len(part), out)
        assert out[: len(part)].tolist() == [md5_start(message) for message in part]
        assert hash_long(work, data, len(data) - 1 - len(long), len(data) - 1) == md5_start(long)


TEXTS = st.lists(
    st.one_of(st.text(alphabet="ab  ,é日!", max_size=40), st.text(max_size=30),
              st.lists(st.sampled_from(["one", "", "twelve-thirteen", "日本語", "a" * 30, "..."]), max_size=40)
              .map(" ".join)),
    max_size=5,
)


@pytest.mark.parametrize("unit", [CHARACTERS, WORDS])
@given(TEXTS, st.integers(1, 7), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_same_as_the_twin(unit: int, texts: list[str], window: int, keep: bool, drop: bool) -> None:
    assert kernel(texts, unit, window, keep, drop) == [simhash(text, unit, window, keep, drop) for text in texts]


def test_long_text() -> None:
    text = "".join(chr(97 + k * k % 23) for k in range(3000))
    assert kernel([text], CHARACTERS, 6) == [simhash(text, CHARACTERS, 6)]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["simhash.jsonl", "simhash_near.jsonl"])
def test_hashes_of_the_original_code(shared: Path, name: str) -> None:
    lines = (shared / "golden" / "roots" / name).read_text("utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    lower = [row["text"].lower() for row in rows]
    columns = {
        "character": kernel(lower, CHARACTERS, 6, False, True),
        "space": kernel(lower, WORDS, 6, False, True),
        "character_w4": kernel(lower, CHARACTERS, 4, False, True),
        "character_keep_punct_case": kernel([row["text"] for row in rows], CHARACTERS, 6, True, True),
    }
    for column, found in columns.items():
        if column in rows[0]:
            assert [str(value) for value in found] == [row[column] for row in rows]


@pytest.mark.shared
def test_primitives_of_the_original_code(shared: Path) -> None:
    lines = (shared / "golden" / "roots" / "simhash_primitives.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        if "token" in row:
            token = row["token"].encode()
            data = np.frombuffer(token + b"x", np.uint8)
            assert str(hash_long(np.zeros(WORK, np.uint32), data, 0, len(token))) == row["unsigned_hash"]
        else:
            assert str(majority([int(value) for value in row["hashes"]])) == row["compute"]
