"""The report against plain arithmetic over encoded texts, and the pages as pages."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from roots_pipeline.core.errors import StaleDataError, TokenizerError
from tests.tokenizer import plain
from tests.tokenizer.corpora import sample_texts
from tests.tokenizer.test_train import RecordingEngine, run, shards_of, train, write_corpus
from tokenizer.__main__ import app
from tokenizer.encode import Encoder
from tokenizer.report.build import build_report, check_losses
from tokenizer.report.compare import compare_tokenizers
from tokenizer.report.measure import renyi_efficiency
from tokenizer.report.page import render
from tokenizer.report.vocabulary import script_of, shown

__all__ = ["run"]  # a fixture


def expected(texts: list[str], encoder: Encoder) -> dict[str, float]:
    words = tokens = split = 0
    for text in texts:
        for piece in plain.split(text):
            if any(unicodedata.category(character)[0] in "LMN" for character in piece):
                length = len(encoder.encode(piece))
                words, tokens, split = words + 1, tokens + length, split + (length > 1)
    return {"words": words, "fertility": tokens / words, "split_words": split / words}


def test_the_report_is_what_encoding_the_texts_gives(run: Path, sample: Path) -> None:
    train(run)
    content = build_report(str(run), RecordingEngine(), monolingual_size=1000)
    assert content == json.loads((run / "tokenizer" / "report.json").read_text("utf-8"))
    encoder = Encoder.from_file(str(run / "tokenizer" / "tokenizer.json"))
    rows = [row for shard in shards_of(sample).values() for row in shard]
    usage = np.zeros(1500, np.int64)
    for language in ("en", "hi", None):
        texts = [text for text, name in rows if name == language]
        row = content["languages"][language or "und"]
        for name, value in expected(texts, encoder).items():
            assert row[name] == pytest.approx(value, abs=1e-4), (language, name)
        own = np.zeros(1500, np.int64)
        for text in texts:
            np.add.at(own, encoder.encode(text), 1)
        shares = own[own > 0] / own.sum()
        renyi = np.log((shares**2.5).sum()) / (1 - 2.5) / np.log(1500)
        assert row["renyi_efficiency"] == pytest.approx(renyi, abs=1e-4)
        assert row["tokens"] == own.sum()
        loss = 100 * (row["fertility"] / row["monolingual"]["fertility"] - 1)
        assert row["loss_percent"] == pytest.approx(loss, abs=0.05)
        assert row["monolingual"]["vocab_size"] <= 1000
        usage += own
    vocabulary = content["vocabulary"]
    assert vocabulary["unused"] == int((usage[4:] == 0).sum()) and vocabulary["rare"] == int((usage[4:] < 5).sum())
    assert vocabulary["unlike_themselves"] == 0
    assert sum(script["tokens"] for script in vocabulary["scripts"]) == 1496
    assert vocabulary["longest"][0]["bytes"] == max(map(len, encoder.tokens[4:]))


def test_prefixes_are_what_training_to_that_size_gives(run: Path) -> None:
    train(run)
    content = build_report(str(run), RecordingEngine(), monolingual_size=0)
    assert [row["vocab_size"] for row in content["sizes"]] == [512, 1024, 1500]
    train(run, vocab_size=1024)
    smaller = build_report(str(run), RecordingEngine(), monolingual_size=0)
    for name in ("fertility", "bytes_per_token", "split_words", "renyi_efficiency"):
        assert content["sizes"][1][name] == pytest.approx(smaller["total"][name], abs=0.02 if "renyi" in name else 1e-9)
    assert "monolingual" not in content["languages"]["en"]


def test_a_report_on_other_text(run: Path, sample: Path, tmp_path: Path) -> None:
    train(run)
    other = tmp_path / "held-out"
    write_corpus(other, {"all": [(text, "hi") for text in sample_texts(sample)[90:120]]})
    train(other)
    content = build_report(str(run), RecordingEngine(), on=str(other), monolingual_size=600)
    assert list(content["languages"]) == ["hi"] and content["measured_on"] == str(other)
    train(other, digits="single")
    with pytest.raises(StaleDataError, match="another pre-tokenizer"):
        build_report(str(run), RecordingEngine(), on=str(other))


def test_the_gate(run: Path) -> None:
    train(run)
    line = ["report", "--run", str(run), "--quiet", "--workers", "1", "--monolingual-size", "0"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0 and "tokens per word" in done.stdout
    rows: dict[str, Any] = {"fr": {"loss_percent": 12.5}, "en": {"loss_percent": 10.0}, "zh": {}}
    check_losses({"languages": rows}, 20)
    with pytest.raises(TokenizerError, match=r"1 languages lose more than 10% .* fr \+12\.5%"):
        check_losses({"languages": rows}, 10)
    with pytest.raises(TokenizerError, match="no text in the language 'e'"):
        build_report(str(run), RecordingEngine(), languages=["e"])


def test_comparing_two(run: Path, sample_file: str) -> None:
    train(run)
    content = compare_tokenizers(str(run), sample_file, str(run), RecordingEngine(), str(run / "out"))
    own, other = Encoder.from_file(str(run / "tokenizer" / "tokenizer.json")), Encoder.from_file(sample_file)
    assert content["vocab_sizes"] == [1500, 7992]
    assert content["shared_tokens"] == len({*own.tokens[4:]} & {*other.tokens[4:]})
    assert content["languages"]["en"]["tokens_percent"] < 0
    page = (run / "out" / "compare.html").read_text("utf-8")
    assert "They cut text differently" not in page and "<script" not in page
    train(run, digits="single")
    content = compare_tokenizers(str(run), sample_file, str(run), RecordingEngine(), str(run / "out"))
    assert not content["same_pre_tokenizer"]


def test_pages_escape_what_they_show(run: Path) -> None:
    train(run)
    content = build_report(str(run), RecordingEngine(), monolingual_size=600)
    content["run"] = "<script>alert(1)</script>"
    content["vocabulary"]["longest"][0]["token"] = shown(b"<b>\xff \n\x1b[0m")
    page = render("report.html.j2", content)
    assert "<script" not in page and "&lt;script&gt;" in page and r"&lt;b&gt;\xff␣\n\x1b[0m" in page
    assert "http" not in page.replace("http-equiv", "")


def test_small_things() -> None:
    assert renyi_efficiency(np.array([5, 5, 5, 5]), 4) == pytest.approx(1.0)
    assert renyi_efficiency(np.zeros(9, np.int64), 9) == 0.0
    names = [script_of(text.encode()) for text in (" the", "да", "12", " .,", "\n ", "世", "ا")]
    assert names == ["Latin", "Cyrillic", "digits", "punctuation and symbols", "white space", "Cjk", "Arabic"]
    assert script_of(b"\xe4\xb8") == "part of a character"
