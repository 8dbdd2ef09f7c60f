"""The malformed files of the sample corpus: its README states how many good and bad records each one holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roots_pipeline.sources import Jsonl, Parquet
from tests.sources.helpers import run, texts

REASONS = {
    "bad_utf8.jsonl": {3: "not valid UTF-8"},
    "not_json.jsonl": dict.fromkeys(range(1, 8), "not valid JSON"),
    "missing_text.jsonl": {2: "no field `text`", 4: "fields: id, url, content", 5: "fields: none"},
    "text_is_number.jsonl": {
        2: "`text` is a number", 3: "`text` is null", 4: "`text` is a number", 5: "`text` is a list",
        6: "`text` is an object", 7: "`text` is a boolean",
    },
    "nul_bytes.jsonl": {2: "control character", 4: "not valid JSON"},
    "deep_nesting.jsonl": {2: "depth limit", 3: "depth limit"},
    "lone_surrogate.jsonl": {2: "surrogate", 3: "surrogate"},
    "truncated.jsonl.gz": {225: "cut off inside a gzip stream"},
}


def table(sample: Path) -> dict[str, tuple[int, int]]:
    """File -> (good, bad), the first number in each cell of the README's table."""
    rows: dict[str, tuple[int, int]] = {}
    for line in (sample / "bad" / "README.md").read_text("utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            good, bad = (re.match(r"\d+", cells[column]) for column in (-2, -1))
            rows[cells[0].strip("`")] = (int(good[0]) if good else 0, int(bad[0]) if bad else 0)
    return rows


def test_the_readme_speaks_of_every_file(sample: Path) -> None:
    files = {path.name for path in (sample / "bad").iterdir() if path.suffix != ".md"}
    assert files | {"one_long_line.jsonl"} == set(table(sample))  # that one is made in the test below


@pytest.mark.parametrize("name", [
    "truncated.jsonl.gz", "bad_utf8.jsonl", "not_json.jsonl", "missing_text.jsonl", "text_is_number.jsonl",
    "nul_bytes.jsonl", "empty.jsonl", "one_long_line.jsonl", "deep_nesting.jsonl", "bom.jsonl", "crlf.jsonl",
    "lone_surrogate.jsonl", "not_gzip.jsonl.gz",
])
@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_good_and_bad_records(sample: Path, tmp_path: Path, name: str, batch_bytes: int) -> None:
    path = sample / "bad" / name
    if name == "one_long_line.jsonl":
        path = tmp_path / name
        path.write_bytes(b'{"id": "long-001", "text": "' + b"a" * 3_000_000 + b'"}\n')
    documents, bad = run(Jsonl(source="bad", root=str(sample / "bad")), path, batch_bytes)
    assert (len(documents), len(bad)) == table(sample)[name]
    assert {record.record: True for record in bad} == dict.fromkeys(REASONS.get(name, {}), True)
    for record in bad:
        assert REASONS[name][record.record or 0] in record.reason
    assert all(document["id"] and document["source"] == "bad" for document in documents)


def test_what_survives_is_unharmed(sample: Path) -> None:
    reader = Jsonl(source="bad")
    documents, _ = run(reader, sample / "bad" / "lone_surrogate.jsonl")
    assert any("\U0001f333" in text for text in texts(documents))
    documents, _ = run(reader, sample / "bad" / "nul_bytes.jsonl")
    assert sum("\0" in text for text in texts(documents)) == 1
    documents, _ = run(reader, sample / "bad" / "bom.jsonl")
    assert documents[0]["id"] == "bom-001" and not documents[0]["text"].startswith("\ufeff")


def test_a_parquet_file_without_footer_is_one_bad_file(sample: Path) -> None:
    documents, bad = run(Parquet(source="bad"), sample / "bad" / "truncated.parquet")
    assert documents == []
    assert [(record.record, "not a whole Parquet file" in record.reason) for record in bad] == [(None, True)]
