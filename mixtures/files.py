"""The files of a mixture: encode every shard of the corpus, then join the pieces of each group.

Both are tasks for any engine, so a run that was stopped goes on where it was. When all groups are joined
the pieces are deleted, and a summary with the fingerprint of corpus, tokenizer and code stays: while it
holds, nothing is encoded again, whatever weights, seed or split are asked for.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import xxhash

from mixtures.indexed import token_dtype
from mixtures.join import file_name, write_group
from mixtures.lock import SUFFIXES, FileFacts, probe
from mixtures.tokenise import Vocabulary, encode_shard, read_vocabulary
from roots_pipeline.core.errors import EmptyOutputError, StorageError
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.replay import follow
from roots_pipeline.core.storage import (
    fingerprint,
    join,
    list_files,
    read_json,
    remove_file,
    size_of,
    write_json,
)
from roots_pipeline.core.tasks import Engine, Task
from tokenizer.content import REMAKE_DOCUMENTS, REMAKE_TOKENIZER, check_content, whole_result

# The code of ours that decides the bytes of the files; all other modules only decide the lock.
_ENCODING_CODE = ("indexed.py", "join.py", "tokenise.py")
_ROUNDS = 2  # encoding, joining


@dataclass(frozen=True, slots=True)
class Inputs:
    """The two finished steps that a mixture is made from."""

    corpus: Manifest
    tokenizer: Manifest
    corpus_folder: str
    tokenizer_path: str
    vocabulary: Vocabulary


def read_inputs(run: str) -> Inputs:
    """Manifests of corpus and tokenizer, checked against their files. Raises StaleDataError.

    The content of the tokenizer is compared too; that of documents where they are encoded, and in `verify`.
    """
    corpus_folder, tokenizer_folder = join(run, "corpus"), join(run, "tokenizer")
    corpus = read_manifest(corpus_folder, made_by="python -m roots_pipeline run")
    check_files(corpus_folder, corpus)
    tokenizer = read_manifest(tokenizer_folder, made_by="python -m tokenizer train")
    check_files(tokenizer_folder, tokenizer)
    path = join(tokenizer_folder, "tokenizer.json")
    check_content(path, tokenizer.files["tokenizer.json"]["xxh3"], REMAKE_TOKENIZER)
    return Inputs(corpus, tokenizer, corpus_folder, path, read_vocabulary(path))


def check_documents(inputs: Inputs) -> None:
    """Compare the content of every document file with the manifest. Raises StaleDataError naming the first."""
    for name, content in document_files(inputs).items():
        check_content(join(inputs.corpus_folder, name), content, REMAKE_DOCUMENTS)


def document_files(inputs: Inputs) -> dict[str, str]:
    """The document files of the corpus and their hashes, by name."""
    files = sorted(inputs.corpus.files.items())
    return {name: entry["xxh3"] for name, entry in files if name.startswith("documents/")}


def write_files(inputs: Inputs, folder: str, engine: Engine, keep_pieces: bool) -> dict[str, dict[str, Any]]:
    """Encode and join; returns what `write_group` says of every group, by name."""
    shards = document_files(inputs)
    known = _finished(_summary(folder), _mark(inputs), folder)
    if known is None:
        known = follow(partial(_encode_and_join, inputs, shards, folder), engine, _ROUNDS)
        note_files(inputs, folder, known)
    if not keep_pieces:
        shutil.rmtree(join(folder, ".work", "pieces"), ignore_errors=True)
    return known


def note_files(inputs: Inputs, folder: str, groups: Mapping[str, Any]) -> None:
    """Note that the files of these groups are those of the corpus, and delete what belongs to no group."""
    _remove_strangers(groups, document_files(inputs), folder)
    write_json(_summary(folder), {"fingerprint": _mark(inputs), "groups": groups})


def _summary(folder: str) -> str:
    return join(folder, ".work", "groups.json")


def _mark(inputs: Inputs) -> str:
    return fingerprint([code_fingerprint(), document_files(inputs), inputs.tokenizer.fingerprint])


@cache  # what runs in this process is what it was when it started
def code_fingerprint() -> str:
    """Hash of the code that decides the bytes of the files, the encoder with all it imports included."""
    package = Path(__file__).parent
    digest = xxhash.xxh3_128()
    for path in (*(package / name for name in _ENCODING_CODE), *_imported(package.parent, "tokenizer/encode.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _imported(root: Path, first: str) -> list[Path]:
    """A module and everything that it imports, directly or not, from its own package; sorted."""
    package = first.split("/", 1)[0]
    found: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop()
        found.add(name)
        for node in ast.walk(ast.parse((root / name).read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
                imported = node.module.replace(".", "/") + ".py"
                waiting += [imported] if imported not in found else []
    return [root / name for name in sorted(found)]


def _finished(summary: str, mark: str, folder: str) -> dict[str, dict[str, Any]] | None:
    try:
        value = read_json(summary)
    except (FileNotFoundError, StorageError):
        return None
    try:
        groups: dict[str, dict[str, Any]] = value["groups"]
        whole = value["fingerprint"] == mark and all(_whole(name, group, folder) for name, group in groups.items())
    except (KeyError, TypeError, AttributeError):  # JSON, but not what we wrote
        return None
    return groups if whole and groups else None


def _whole(name: str, group: Mapping[str, Any], folder: str) -> bool:
    """Whether the three files of a group have the size and the probe that the summary says."""
    if not all(type(group[key]) is int for key in ("documents", "tokens")):
        return False
    for suffix in SUFFIXES:
        facts, path = FileFacts(**group["files"][suffix]), join(folder, file_name(name) + suffix)
        if size_of(path) != facts.size or probe(path) != facts.probe:
            return False
    return True


def _encode_and_join(
    inputs: Inputs, shards: Mapping[str, str], folder: str, engine: Engine
) -> dict[str, dict[str, Any]]:
    code, tokenizer = code_fingerprint(), inputs.tokenizer.fingerprint
    tasks = []
    for name, content in shards.items():
        piece = Path(name).stem
        arguments = {
            "documents": join(inputs.corpus_folder, name),
            "content": content,
            "tokenizer": inputs.tokenizer_path,
            "output": join(folder, ".work", "pieces", f"{piece}.arrow"),
        }
        record = join(folder, ".work", "pieces", f"{piece}.json")
        tasks.append(Task(piece, record, fingerprint([code, content, tokenizer]), encode_shard, arguments))
    encoded = engine.run(tasks, "encode")
    pieces: dict[str, list[tuple[str, list[int]]]] = {}
    marks: dict[str, list[Any]] = {}
    for task, result in zip(tasks, encoded, strict=True):
        for group, facts in result["groups"].items():
            pieces.setdefault(group, []).append((task.arguments["output"], facts["batches"]))
            marks.setdefault(group, []).append([task.fingerprint, facts["batches"]])
    if not pieces:
        raise EmptyOutputError(
            "the corpus holds no documents.",
            where=inputs.corpus_folder,
            hint="Look at its rejected documents, and loosen its recipe.",
        )
    dtype = token_dtype(inputs.vocabulary.size).name
    joins = []
    for group in sorted(pieces):
        task_arguments = {"pieces": pieces[group], "prefix": join(folder, file_name(group)), "dtype": dtype}
        record = join(folder, ".work", "groups", f"{file_name(group)}.json")
        joins.append(Task(group, record, fingerprint([code, dtype, marks[group]]), write_group, task_arguments))
    for task in joins:
        whole_result(task)  # a damaged group is joined again
    return dict(zip(sorted(pieces), engine.run(joins, "join groups"), strict=True))


def _remove_strangers(groups: Mapping[str, Any], shards: Mapping[str, Any], folder: str) -> None:
    """Files of groups and pieces of shards that the corpus no longer has."""
    names = {Path(name).stem for name in shards}
    for path in list_files(join(folder, ".work", "pieces")):
        if Path(path).stem not in names:
            remove_file(path)
    known = {file_name(group) + suffix for group in groups for suffix in SUFFIXES}
    for suffix in SUFFIXES:
        for path in list_files(folder, suffix):
            if Path(path).name not in known:
                remove_file(path)
