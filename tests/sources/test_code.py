"""Program source: suffixes, languages, charsets, binary files, the size limit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources import Code, Quarantined, discover, read_files
from roots_pipeline.sources.suffixes import COMMON, ROOTS
from tests.sources.helpers import run

ROOT = "package://sample/code"


def test_the_sample_tree(sample: Path) -> None:
    reader = Code(source="code", root=ROOT, license="CC0-1.0")
    (batch,) = read_files(reader, discover(ROOT, reader.suffixes))
    assert not isinstance(batch, Quarantined)
    documents = batch.to_pylist()
    files = {path.relative_to(sample / "code").as_posix(): path for path in (sample / "code").rglob("*.*")}
    assert [document["id"] for document in documents] == sorted(files)
    for document in documents:
        assert document["text"].encode() == files[document["id"]].read_bytes()
        assert document["language"] == document["id"].split("/")[0] and document["source"] == "code"
        assert document["url"] is None and document["metadata"] is None
    assert len(Counter(document["language"] for document in documents)) == 13


def test_the_suffixes_of_roots() -> None:
    assert len(ROOTS) == 24 + 1 and ".c" not in ROOTS and ".h" not in ROOTS and ROOTS[".C"] == "cpp"
    assert set(ROOTS) < set(COMMON) and len(set(COMMON.values())) == 13
    assert Code(source="s", table="roots").suffixes == tuple(ROOTS)


def test_case_matters(tmp_path: Path) -> None:
    for name in ("a.c", "b.C", "c.py", "d.PY"):
        (tmp_path / name).write_text("x\n")
    wanted = {Code(source="s"): ["a.c", "b.C", "c.py"], Code(source="s", table="roots"): ["b.C", "c.py"]}
    for reader, expected in wanted.items():
        assert [Path(file.path).name for file in discover(str(tmp_path), reader.suffixes)] == expected
    documents, bad = run(Code(source="s"), tmp_path / "d.PY")
    assert documents == [] and "'.PY' names no programming language" in bad[0].reason
    assert run(Code(source="s", language="python"), tmp_path / "d.PY")[0][0]["language"] == "python"


def test_text_is_kept_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    for text in ("", "\n", "a\r\n\tb  \r\n\f\n", "x = '\u2028'\x1b"):
        path.write_bytes(text.encode())
        assert run(Code(source="s"), path)[0][0]["text"] == text


@pytest.mark.parametrize(("data", "charset", "text"), [
    (b"\xef\xbb\xbfint x;", None, "int x;"),
    ("\ufeff// naïve\r\n".encode("utf-16-le"), "utf-16-le", "// naïve\r\n"),
    ("# -*- coding: latin-1 -*-\ns = 'élève, naïve'\n".encode("latin-1"), "cp1252",
     "# -*- coding: latin-1 -*-\ns = 'élève, naïve'\n"),
    ("#!/x\n# vim: set fileencoding=koi8-r :\n# привет, мир\n".encode("koi8-r"), "koi8-r",
     "#!/x\n# vim: set fileencoding=koi8-r :\n# привет, мир\n"),
    ("// 计算多边形的面积，返回浮点数\nint x;\n".encode("gb18030"), "gb18030",
     "// 计算多边形的面积，返回浮点数\nint x;\n"),
])
def test_charsets(tmp_path: Path, data: bytes, charset: str | None, text: str) -> None:
    (tmp_path / "x.cpp").write_bytes(data)
    (document,), bad = run(Code(source="s"), tmp_path / "x.cpp")
    assert document["text"] == text and not bad
    assert (json.loads(document["metadata"])["charset"] if document["metadata"] else None) == charset


def test_binary_and_large_files(tmp_path: Path) -> None:
    path = tmp_path / "x.ts"
    path.write_bytes(b"G\x40\x11\x10\x00\x42" * 100)  # an MPEG transport stream is called .ts too
    assert "binary" in run(Code(source="s"), path)[1][0].reason
    path.write_bytes(bytes(range(1, 256)) * 40)
    assert "no charset fits" in run(Code(source="s"), path)[1][0].reason
    path.write_bytes(b"x" * 1_048_576)
    assert len(run(Code(source="s"), path)[0][0]["text"]) == 1_048_576
    path.write_bytes(b"x" * 1_048_577)
    assert "larger than 1,048,576 bytes" in run(Code(source="s"), path)[1][0].reason
    with pytest.raises(RecipeError, match="max_file_bytes"):
        Code(source="s", max_file_bytes=0)
