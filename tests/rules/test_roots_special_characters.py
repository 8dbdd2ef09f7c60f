"""The special characters of ROOTS: groups that follow from Unicode are made anew; the others hold what they say."""

from __future__ import annotations

import string
import unicodedata

import pytest
import regex

from roots_pipeline.rules.presets import load_data
from roots_pipeline.rules.roots_data import _codes, special_characters

REGIONAL_INDICATORS = range(0x1F1E6, 0x1F200)


def group(name: str) -> set[int]:
    return set(_codes(load_data("roots_special_characters")[name].split()))


def test_ascii() -> None:
    assert group("ascii") == set(map(ord, string.whitespace + string.punctuation + string.digits))


@pytest.mark.skipif(unicodedata.unidata_version < "14", reason="knows no Unicode 14.0")
def test_emoji() -> None:
    emoji = {ord(match[0]) for match in regex.finditer(r"\p{Emoji}", "".join(map(chr, range(0x80, 0x20000))))}
    known = {code for code in emoji if unicodedata.category(chr(code)) != "Cn"} - set(REGIONAL_INDICATORS)
    ours = group("emoji")
    assert ours <= known
    # A Python with a later Unicode knows later emoji; none of them is in a block that was full in 14.0.
    assert known == ours or (unicodedata.unidata_version > "14.0.0" and all(code >= 0x1F6DC for code in known - ours))


def test_groups_are_apart_and_of_their_kind() -> None:
    groups = {name: group(name) for name in load_data("roots_special_characters")}
    assert sum(map(len, groups.values())) == len(set().union(*groups.values())) == len(special_characters(True)) == 1599
    assert special_characters(True) - special_characters(False) == groups["letters"]
    kinds = {name: {unicodedata.category(chr(code))[0] for code in codes} for name, codes in groups.items()}
    assert kinds["letters"] <= {"L", "M"} and min(groups["beyond_ascii"]) >= 0x80
    letters = {code for code in groups["beyond_ascii"] if unicodedata.category(chr(code)).startswith("L")}
    assert {unicodedata.category(chr(code)) for code in letters} == {"Lm"}
