"""Passages that were cut out of kept documents, shown in place.

A corpus stores what is left of a document and how much was cut (`cut_bytes`), not what was cut. So the drawn documents
are read again from their sources, if these are local, still have the hash that the run noted, and are not too large;
where the stored text is the original without some stretches, these are what was cut. Then the first part of the corpus
is searched for another document that holds the same passage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import TypeAdapter

from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import is_remote, join, list_files
from roots_pipeline.report.differences import around_cuts, cuts_between
from roots_pipeline.report.drawing_lots import Lots
from roots_pipeline.report.gallery_facts import Cut, Cuts
from roots_pipeline.report.lookup import Found, find_documents
from roots_pipeline.report.reading import batches, parquet_files, strings
from roots_pipeline.sources import SOURCES, FileSlice, Quarantined, read_files
from roots_pipeline.sources.files import open_input

_MEASURE, _PACKAGE = "cut_bytes", "package://"
_EXAMPLES = 6
_LARGEST_FILE, _BLOCK = 256 << 20, 1 << 20
_LARGEST_TEXT = 2_000_000  # characters
_SEARCHED = 256 << 20  # bytes of text
_PASSAGE = 200  # characters by which a passage is looked for

_Drawn = Mapping[str, tuple[str, int]]  # by id: its shard, and the bytes that it lost


def draw_cuts(corpus: str, manifest: Manifest) -> Cuts | None:
    """Some kept documents that lost a part; None if nothing was cut."""
    documents = total = 0
    lots: Lots[tuple[str, int]] = Lots(_EXAMPLES)
    for path, file in zip(list_files(join(corpus, "documents"), ".parquet"),
                          parquet_files(join(corpus, "documents")), strict=True):
        if _MEASURE not in file.schema_arrow.names:
            continue
        shard = path.rpartition("/")[2].removesuffix(".parquet")
        for batch in batches(file, ["id", _MEASURE]):
            cut = batch.filter(pc.fill_null(pc.greater(batch.column(_MEASURE), 0), False))
            documents += cut.num_rows
            for id, size in zip(strings(cut.column("id")), cut.column(_MEASURE).to_pylist(), strict=True):
                total += int(size)
                if id is not None and lots.takes(id):
                    lots.put(id, (shard, int(size)))
    if not documents:
        return None
    return Cuts(documents, total, tuple(_examples(corpus, manifest, lots.drawn)))


def _examples(corpus: str, manifest: Manifest, drawn: _Drawn) -> Iterator[Cut]:
    stored = find_documents(corpus, drawn, _LARGEST_TEXT)
    originals = _originals(manifest, drawn)
    for id, (_, size) in sorted(drawn.items()):
        if (own := stored.get(id)) is not None and own.text is not None:
            yield _show(corpus, own, size, originals.get(id))


def _show(corpus: str, own: Found, size: int, original: str | None) -> Cut:
    text = own.text or ""
    reason, pieces, elsewhere = None, None, None
    cuts = None if original is None or len(original) >= _LARGEST_TEXT else cuts_between(original, text)
    if original is None:
        reason = "Its source is not at hand, or has changed."
    elif cuts is None:
        reason = "Its text was also changed in other ways."
    elif cuts:
        pieces = around_cuts(original, cuts)
        elsewhere = _holder(corpus, original[slice(*cuts[0])].strip()[:_PASSAGE], own.id)
    else:
        reason = "Its source holds the same text now."
    return Cut(own.id, own.source, own.language, size, pieces, reason, elsewhere)


def _originals(manifest: Manifest, drawn: _Drawn) -> dict[str, str]:
    """The texts of documents as their sources have them."""
    readers = {str(entry["name"]): entry for entry in manifest.config["sources"]}
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for id, (shard, _) in drawn.items():
        wanted[shard].add(id)
    found: dict[str, str] = {}
    for shard, ids in wanted.items():
        entry = readers.get(shard.rpartition("-")[0])
        files = [str(path) for path, content in manifest.inputs.get(shard, []) if _unchanged(str(path), content)]
        if entry is not None and files:
            found |= _read(entry, files, ids)
    return found


def _unchanged(path: str, content: str) -> bool:
    """Whether a file is on this machine, small enough to be read again, and still what it was."""
    if is_remote(path) and not path.startswith(_PACKAGE):
        return False
    digest, size = xxhash.xxh3_128(), 0
    try:
        with open_input(path) as handle:
            while (block := handle.read(_BLOCK)) and size <= _LARGEST_FILE:
                digest.update(block)
                size += len(block)
    except SourceError:
        return False  # it has been moved since
    return digest.hexdigest() == content


def _read(entry: Mapping[str, Any], files: list[str], ids: set[str]) -> dict[str, str]:
    known = {"name", "kind", "path", "group", "exclude", "limit"}
    settings = {key: value for key, value in entry.items() if key not in known}
    reader = TypeAdapter(SOURCES[entry["kind"]]).validate_python(
        {**settings, "source": entry["name"], "root": entry["path"]})
    wanted = pa.array(sorted(ids), pa.string())
    found: dict[str | None, str | None] = {}
    for item in read_files(reader, [FileSlice(path, 0) for path in files]):
        if not isinstance(item, Quarantined):
            mine = item.filter(pc.is_in(item.column("id").cast(pa.string()), wanted))
            found |= dict(zip(strings(mine.column("id")), strings(mine.column("text")), strict=True))
    return {id: text for id, text in found.items() if id is not None and text is not None}


def _holder(corpus: str, passage: str, id: str) -> str | None:
    """Another document that holds a passage, looked for in the first part of the corpus."""
    searched = 0
    for file in parquet_files(join(corpus, "documents")):
        for group in range(file.num_row_groups):
            searched += file.metadata.row_group(group).total_byte_size
            table = file.read_row_group(group, columns=["id", "text"], use_threads=False)
            holds = pc.match_substring(table.column("text").cast(pa.large_binary()), passage.encode())
            for other in strings(table.column("id").filter(holds).combine_chunks()):
                if other != id:
                    return other
            if searched > _SEARCHED:
                return None
    return None
