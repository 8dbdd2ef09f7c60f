"""Normalisation of texts, off by default."""

from __future__ import annotations

import json
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources import FileSlice, Jsonl, read_files
from roots_pipeline.sources.normalisation import normalised

DECOMPOSED = "de\u0301ja\u0300 \u1100\u1161 \u212b"


def read(path: Path, **settings: Any) -> list[str]:
    (batch,) = read_files(Jsonl(source="s", **settings), [FileSlice(str(path), 0)])
    found: list[str] = batch.column("text").to_pylist()  # type: ignore[union-attr]
    return found


def test_a_source_may_ask_for_it(tmp_path: Path) -> None:
    lines = [DECOMPOSED, "plain", "ﬁne"]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in lines))
    assert read(tmp_path / "x.jsonl") == lines
    assert read(tmp_path / "x.jsonl", normalise_text="nfc") == ["déjà 가 Å", "plain", "ﬁne"]


def test_ftfy(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "schÃ¶n"}\n')
    if find_spec("ftfy") is None:
        with pytest.raises(RecipeError, match="pip install ftfy"):
            read(tmp_path / "x.jsonl", normalise_text="ftfy")
    else:
        assert read(tmp_path / "x.jsonl", normalise_text="ftfy") == ["schön"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=30) | st.sampled_from(["e\u0301", "plain"]), min_size=1, max_size=8))
def test_normal_form_c(texts: list[str]) -> None:
    batch = make_batch([{"id": str(n), "text": text, "source": "s"} for n, text in enumerate(texts)])
    found = normalised(batch, "nfc")
    assert found.schema == batch.schema
    assert found.column("text").to_pylist() == [unicodedata.normalize("NFC", text) for text in texts]
