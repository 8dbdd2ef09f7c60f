"""From a path to files: folders, patterns, URLs, the package's own sample, and helpful errors."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fsspec
import pytest

from roots_pipeline.core.errors import SourceError
from roots_pipeline.sources import Jsonl, discover
from roots_pipeline.sources.files import open_input, relative_name
from tests.sources.helpers import run


def make(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text('{"text": "t"}\n')
    return root


def names(path: object, suffixes: tuple[str, ...] = (".jsonl",)) -> list[str]:
    return [relative_name(file.path, str(path)) for file in discover(str(path), suffixes)]


def test_folders_are_searched_deeply_and_sorted_bytewise(tmp_path: Path) -> None:
    make(tmp_path, "b.jsonl", "B.jsonl", "a/z.jsonl", "a/b/c/d.jsonl", "a.jsonl", "é.jsonl", "readme.txt",
         ".hidden/x.jsonl", "a/.x.jsonl")
    assert names(tmp_path) == ["B.jsonl", "a.jsonl", "a/b/c/d.jsonl", "a/z.jsonl", "b.jsonl", "é.jsonl"]
    assert [file.size for file in discover(str(tmp_path), (".txt",))] == [14]
    assert len(discover(str(tmp_path))) == 7


def test_a_hidden_folder_above_does_not_hide_its_files(tmp_path: Path) -> None:
    assert names(make(tmp_path / ".cache" / "data", "x.jsonl")) == ["x.jsonl"]


def test_one_file_whatever_its_suffix(tmp_path: Path) -> None:
    make(tmp_path, "x.dump")
    assert names(tmp_path / "x.dump") == ["x.dump"]


def test_patterns(tmp_path: Path) -> None:
    make(tmp_path, "web/a.jsonl", "web/b.jsonl", "web/c.txt", "web/deep/d.jsonl", "news/a.jsonl", "odd[1].jsonl")
    assert names(tmp_path / "web/*") == ["a.jsonl", "b.jsonl", "deep/d.jsonl"]
    assert names(tmp_path / "web/*.txt") == ["c.txt"]
    assert names(tmp_path / "*/a.jsonl") == ["news/a.jsonl", "web/a.jsonl"]
    assert names(tmp_path / "w*") == ["web/a.jsonl", "web/b.jsonl", "web/deep/d.jsonl"]
    assert names(tmp_path / "**/*.jsonl") == names(tmp_path)
    assert len(discover(str(tmp_path / "odd[1].jsonl"))) == 1


def test_links_are_followed_once(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", "x.jsonl")
    make(tmp_path / "data", "y.jsonl")
    (tmp_path / "data" / "part").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "z.jsonl").symlink_to(tmp_path / "elsewhere" / "x.jsonl")
    assert names(tmp_path / "data") == ["part/x.jsonl", "y.jsonl", "z.jsonl"]
    (tmp_path / "data" / "broken.jsonl").symlink_to(tmp_path / "nothing")
    with pytest.raises(SourceError, match=r"broken.jsonl: neither a file nor a folder"):
        discover(str(tmp_path / "data"), (".jsonl",))


def test_missing_paths_name_the_nearest_neighbour(tmp_path: Path) -> None:
    make(tmp_path, "corpus/x.jsonl", "other/x.jsonl")
    with pytest.raises(SourceError, match=r"does not exist\. Did you mean '.*/corpus'\?"):
        discover(str(tmp_path / "korpus"))
    with pytest.raises(SourceError, match=r"'.*' holds corpus, other\."):
        discover(str(tmp_path / "zzzzzzzz" / "x"))
    with pytest.raises(SourceError, match="Did you mean 'package://sample/web'"):
        discover("package://sample/wep")


def test_nothing_to_read(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.txt", "c")
    found = r"none of 3 files ends in .jsonl\. Found instead: .txt \(2\), no suffix \(1\)"
    with pytest.raises(SourceError, match=found):
        discover(str(tmp_path), (".jsonl",))
    with pytest.raises(SourceError, match="The pattern matches nothing"):
        discover(str(tmp_path / "*.jsonl"), (".jsonl",))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="The folder is empty"):
        discover(str(tmp_path / "empty"))


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    with open(bytes(tmp_path) + b"/\xff.jsonl", "wb"):
        pass
    with pytest.raises(SourceError, match=r"not UTF-8.*Rename"):
        discover(str(tmp_path), (".jsonl",))


@pytest.mark.parametrize("path", ["nosuch://bucket/x", "gdrive-of-nobody://x"])
def test_unknown_protocols(path: str) -> None:
    with pytest.raises(SourceError, match="cannot use this address"):
        discover(path)


def test_the_sample_inside_the_package(sample: Path) -> None:
    files = discover("package://sample/web", (".jsonl",))
    on_disk = sorted(path.name for path in (sample / "web").iterdir())
    assert [file.path for file in files] == [f"package://sample/web/{name}" for name in on_disk]
    assert files[0].size == (sample / "web" / "ar.jsonl").stat().st_size
    reader = Jsonl(source="web", root="package://sample/web", language_from="filename")
    documents, bad = run(reader, "package://sample/web/zht.jsonl")
    assert documents and not bad and documents[0]["language"] == "zht"
    with fsspec.open("package://sample/web/ar.jsonl", "rb") as handle:  # any part of the program may open it
        assert handle.read(1) == b"{"
    assert [file.path for file in discover("package://sample/web/e[nu].jsonl")] == [
        "package://sample/web/en.jsonl", "package://sample/web/eu.jsonl"]


def test_other_filesystems(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for name, content in (("a/x.jsonl", b'{"text": "m"}\n'), ("y.jsonl", b"{}"), ("n.txt", b"")):
        memory.pipe(f"/sources-test/{name}", content)
    files = discover("memory://sources-test", (".jsonl",))
    assert [(file.path, file.size) for file in files] == [
        ("memory:///sources-test/a/x.jsonl", 14), ("memory:///sources-test/y.jsonl", 2)]
    documents, _ = run(Jsonl(source="s", root="memory://sources-test"), files[0].path)
    assert documents[0]["id"] == "a/x.jsonl:1"
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("d/x.jsonl", '{"text": "z"}')
        archive.writestr("d/e/y.jsonl", '{"text": "zz"}')
    root = f"zip://d::{tmp_path}/z.zip"
    files = discover(root, (".jsonl",))
    assert [file.path for file in files] == [f"zip://d/{name}::{tmp_path}/z.zip" for name in ("e/y.jsonl", "x.jsonl")]
    assert run(Jsonl(source="s", root=root), files[0].path)[0][0]["id"] == "e/y.jsonl:1"
    (cached,) = discover("simplecache::memory://sources-test/a", (".jsonl",))
    with open_input(cached.path) as handle:
        assert handle.read() == b'{"text": "m"}\n'


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "d/x.jsonl")
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in discover("d", (".jsonl",))] == [str(tmp_path / "d" / "x.jsonl")]
    assert relative_name(str(tmp_path / "d" / "x.jsonl"), "d") == "x.jsonl"
    assert relative_name(str(tmp_path / "d" / "x.jsonl"), "d/x.jsonl") == "x.jsonl"
    assert relative_name(str(tmp_path / "d" / "x.jsonl"), f"file://{tmp_path}") == "d/x.jsonl"
    assert relative_name(str(tmp_path / "d" / "x.jsonl"), "other") == "x.jsonl"
