"""The files of an evaluation set become items: an id and the text of the chosen fields, and the key of the record.

Unlike a corpus, an evaluation set has to be read in full: what cannot be read would be missed in silence, so a bad
record is an error (SourceError) that names the file, the record and the fields there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.evaluation_records import record_key
from roots_pipeline.core.recipe import nearest
from roots_pipeline.decontamination.datasets_library import find_layout, rows_of
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.sources.base import MAX_DOCUMENT_BYTES, kind_of
from roots_pipeline.sources.decompress import Damage, decompressed
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.lines import split_lines

_BOM = b"\xef\xbb\xbf"
_ROWS, _BATCH_BYTES = 1000, 16 << 20


class Item(NamedTuple):
    """One item of an evaluation set."""

    id: str
    text: str


class _Record(NamedTuple):
    """A record as it stands in a file, what it is called without an id, and where it is."""

    values: Mapping[str, Any]
    place: str
    where: str


def read_items(evaluation: Evaluation) -> list[Item]:
    """All items of a set, in order of files and records. Raises SourceError; a set without items is an error, too.

    No two have one id: of several records with the same id the first has it, the others are called by their place.
    """
    return [item for item, _ in _read(evaluation, whole=False)]


def read_keyed_items(evaluation: Evaluation) -> list[tuple[Item, bytes]]:
    """The same, each with the key of its record (`core.evaluation_records`), for which records are read whole."""
    return _read(evaluation, whole=True)


def _read(evaluation: Evaluation, *, whole: bool) -> list[tuple[Item, bytes]]:
    read: list[tuple[Item, bytes]] = []
    taken: set[str] = set()
    for record in _records(evaluation, whole=whole):
        item = _item(evaluation, record)
        if item.id in taken:
            item = item._replace(id=record.place)
        while item.id in taken:  # an id that looks like a place
            item = item._replace(id=f"{item.id}+")
        taken.add(item.id)
        read.append((item, record_key(record.values) if whole else b""))
    if not any(item.text.strip() for item, _ in read):
        found = f"none of its {len(read)} records has text in {_quoted(evaluation.fields)}" if read else "no record"
        raise SourceError(f"evaluation set '{evaluation.name}' is empty: {found}.", where=evaluation.path,
                          hint="Check `path` and `fields`, or remove the set from the recipe.")
    return read


def _records(evaluation: Evaluation, *, whole: bool) -> Iterator[_Record]:
    """All records of a set. `whole`: with all columns of Parquet files, not only those that make an item."""
    if evaluation.is_of_the_library:
        yield from _read_layout(evaluation)
    elif evaluation.is_saved:
        yield from _read_dataset(evaluation)
    else:
        if evaluation.splits or evaluation.config:
            raise SourceError(f"evaluation set '{evaluation.name}' has no splits and no configurations, because it is "
                              "no Hugging Face dataset.", where=evaluation.path,
                              hint="Remove `splits` and `config`, or name its files in `path`.")
        for file in evaluation.files():
            yield from _read_file(evaluation, file.path, whole)


def _read_file(evaluation: Evaluation, path: str, whole: bool) -> Iterator[_Record]:
    is_parquet = path.endswith((".parquet", ".pq"))
    name = relative_name(path, evaluation.path)
    for number, record in _parquet(evaluation, path, whole) if is_parquet else _json_lines(path):
        yield _Record(record, f"{name}:{number}", f"{path}:{number}")


def _json_lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_input(path) as handle:
        for number, line in split_lines(decompressed(handle), MAX_DOCUMENT_BYTES):
            if isinstance(line, Damage):
                raise _unreadable(f"{path}:{number}", line.reason)
            line = line.removeprefix(_BOM)
            if not line or line.isspace():
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise _unreadable(f"{path}:{number}", f"this line is not valid JSON ({error})") from error
            if not isinstance(record, dict):
                raise _unreadable(f"{path}:{number}", f"this line is {kind_of(record)}, not an object")
            yield number, record


def _parquet(evaluation: Evaluation, path: str, whole: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_input(path) as handle:
        try:
            file = pq.ParquetFile(handle)
            names = file.schema_arrow.names
            wanted = {field.split(".")[0] for field in evaluation.fields} | {evaluation.id_field, *evaluation.fields}
            columns = [name for name in names if whole or name in wanted]
            number = 0
            for batch in file.iter_batches(_rows_at_once(file.metadata), columns=columns, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield number, {**dict.fromkeys(names), **record}  # messages name all columns
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, f"not a whole Parquet file ({str(error)[:200]})") from error


def _rows_at_once(file: pq.FileMetaData) -> int:
    """Few where rows are large: a set with pictures has megabytes in each."""
    size: int = sum(file.row_group(number).total_byte_size for number in range(file.num_row_groups))
    fitting: int = _BATCH_BYTES * file.num_rows // max(1, size)
    return max(1, min(_ROWS, fitting))


def _read_dataset(evaluation: Evaluation) -> Iterator[_Record]:
    import datasets  # takes seconds, and only this kind of path needs it

    try:
        loaded = datasets.load_from_disk(evaluation.path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(evaluation.path, f"not a whole dataset ({str(error)[:200]})") from error
    splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"": loaded}
    for name in _chosen(evaluation, list(splits)):
        for number, record in enumerate(splits[name].with_format(None), 1):
            place = f"{name}:{number}" if name else str(number)
            yield _Record(record, f"{name or 'rows'}:{number}", f"{evaluation.path}:{place}")


def _read_layout(evaluation: Evaluation) -> Iterator[_Record]:
    layout = find_layout(evaluation.path, evaluation.config, evaluation.revision)
    for split in _chosen(evaluation, list(layout.splits)):
        number = 0
        for file in layout.splits[split]:
            try:
                for record in rows_of(layout, file):
                    number += 1
                    yield _Record(record, f"{split}:{number}", f"{file}:{number}")
            except SourceError:
                raise
            except Exception as error:  # the library lets through what any of its parsers raises
                raise _unreadable(file, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error


def _chosen(evaluation: Evaluation, splits: Sequence[str]) -> Sequence[str]:
    """The splits to read. Raises SourceError for one that there is not."""
    for name in evaluation.splits:
        if name not in splits:
            raise SourceError(f"evaluation set '{evaluation.name}' has no split '{name}'.", where=evaluation.path,
                              hint=nearest(name, [known for known in splits if known]) or "It has no splits.")
    return evaluation.splits or splits


def _item(evaluation: Evaluation, record: _Record) -> Item:
    values, where = record.values, record.where
    texts = [text for field in evaluation.fields for text in _strings(_value(values, field, where), field, where)]
    name = values.get(evaluation.id_field)
    usable = isinstance(name, str | int) and not isinstance(name, bool) and name != ""
    return Item(str(name) if usable else record.place, "\n".join(texts))


def _value(record: Mapping[str, Any], field: str, where: str) -> Any:
    """The value of a field by its whole name, or step by step at the dots; lists are looked into."""
    if field in record:
        return record[field]
    head, dot, rest = field.partition(".")
    inner = record.get(head)
    if dot and isinstance(inner, Mapping):
        return _value(inner, rest, where)
    if dot and isinstance(inner, list) and all(isinstance(entry, Mapping) for entry in inner):
        return [_value(entry, rest, where) for entry in inner]
    names = list(record)
    raise SourceError(f"this record has no field '{field}'; its fields are {_quoted(names)}.", where=where,
                      hint=f"{nearest(field, names)} Name the fields that hold text in `fields`.".strip())


def _strings(value: Any, field: str, where: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, list):
        return [text for entry in value for text in _strings(entry, field, where)]
    raise SourceError(f"field '{field}' is {kind_of(value)}, not text.", where=where,
                      hint=f"Name a field inside it, such as '{field}.text'." if isinstance(value, Mapping) else None)


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:12])
    return (shown + (" and more" if len(names) > 12 else "")) or "none"


def _unreadable(where: str, reason: str) -> SourceError:
    return SourceError(f"an evaluation set cannot be read: {reason}.", where=where,
                       hint="Every record is needed, or leaks would be missed: mend the file.")
