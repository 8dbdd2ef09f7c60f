"""Charsets: sample texts in the encodings of their languages, declared rightly, wrongly or not at all."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.sources.charset import MAX_REPLACED_SHARE, codec_of, decode

LEGACY = [
    ("fr", "cp1252"), ("es", "cp1252"), ("ca", "cp1252"), ("ar", "cp1256"), ("zh", "gb18030"), ("zht", "big5"),
    ("zh", "utf-16"),
]


def sample_texts(sample: Path, language: str) -> list[str]:
    lines = (sample / "web" / f"{language}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line)["text"] for line in lines if line and "-p" not in json.loads(line)["id"]]


@pytest.mark.parametrize(("language", "charset"), LEGACY)
@pytest.mark.parametrize("declared", [None, "iso-8859-1", "utf-8", "right", "nonsense"])
def test_sample_texts(sample: Path, language: str, charset: str, declared: str | None) -> None:
    right = total = 0
    for text in sample_texts(sample, language):
        data = text.encode(charset, "ignore")
        found = decode(data, charset if declared == "right" else declared)
        total += 1
        right += found is not None and found.text == data.decode(charset) and not found.replaced
    assert right == total


def test_utf8_wins_over_what_a_file_says(sample: Path) -> None:
    for language in ("es", "hi", "vi", "yo"):
        for text in sample_texts(sample, language):
            for declared in ("iso-8859-1", "windows-1251", "shift_jis", None):
                assert decode(text.encode(), declared) == decode(text.encode())


@pytest.mark.parametrize("declared", [None, "utf-8", "iso-8859-1"])
def test_a_few_bad_bytes_do_not_turn_a_text_into_mojibake(sample: Path, declared: str | None) -> None:
    text = "\n".join(sample_texts(sample, "fr"))
    data = bytearray(text.encode())
    data.insert(len(data) // 2, 0xFF)
    found = decode(bytes(data), declared)
    assert found is not None and found.charset == "utf-8" and found.replaced == 1
    assert found.text.replace("\ufffd", "") == text


def test_too_many_bad_bytes() -> None:
    assert decode(bytes(range(256)) * 100) is None
    assert 1 / MAX_REPLACED_SHARE == 1000


@pytest.mark.parametrize("mark", [
    codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE])
def test_byte_order_marks(mark: bytes) -> None:
    charset = {
        codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
        codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    }[mark]
    found = decode(mark + "naïve 水".encode(charset), "iso-8859-1")
    assert found is not None and (found.text, found.charset) == ("naïve 水", charset)


def test_japanese_in_seven_bits() -> None:
    text = "これは日本語の文章です。" * 5
    for declared in (None, "iso-2022-jp", "iso-8859-1"):
        found = decode(text.encode("iso2022_jp"), declared)
        assert found is not None and found.text == text


@pytest.mark.parametrize(("label", "codec"), [
    ("ISO-8859-1", "cp1252"), (" latin1 ", "cp1252"), ("latin-1", "cp1252"), ("us-ascii", "cp1252"),
    ("gb2312", "gb18030"), ("x-sjis", "cp932"), ("ks_c_5601-1987", "cp949"), ("tis-620", "cp874"), ("utf8", "utf-8"),
    ("koi8-u", "koi8-u"),
    ("UTF-16", None), ("utf-7", None), ("rot13", None), ("zlib", None), ("unicode_escape", None), ("idna", None),
    ("undefined", None), ("", None), ("\0", None), (None, None), ("x-user-defined", None),
])
def test_labels_mean_what_browsers_take_them_for(label: str | None, codec: str | None) -> None:
    assert codec_of(label) == codec


@given(st.binary(max_size=400), st.sampled_from([None, "utf-8", "iso-8859-1", "gbk", "iso-2022-jp", "hz-gb-2312", "x"]))
def test_any_bytes(data: bytes, declared: str | None) -> None:
    found = decode(data, declared)
    if found is not None:
        found.text.encode()  # no lone surrogates
        assert found.text.count("\ufffd") >= found.replaced
    try:
        expected = data.decode()
    except UnicodeDecodeError:
        return
    seven_bit = data.isascii() and (declared or b"\x1b" in data)
    if not data.startswith(codecs.BOM_UTF8) and not seven_bit:
        assert found is not None and found.text == expected
