"""Records with named fields to documents, column by column: shared by JSON lines, CSV and the readers of datatrove.

In: a reader's `Fields` and dictionaries of plain values. Out: at most one batch, after a quarantined record for each
dictionary without a usable text, id or other field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.sources.base import Quarantined, document_batch, excerpt, kind_of
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import relative_name


class Record(NamedTuple):
    """A record's number in its file (from 1), its fields, and what is shown of it if it is bad."""

    number: int
    fields: Mapping[str, Any]
    shown: bytes | str


def documents(
    reader: Fields, path: str, records: Sequence[Record]
) -> Iterator[pa.RecordBatch | Quarantined]:
    """One batch of the good records, after the bad ones."""
    columns, bad = _columns(reader, records, relative_name(path, reader.root))
    for row in sorted(bad):
        yield Quarantined(path, records[row].number, bad[row], excerpt(records[row].shown))
    if bad:
        good = [row for row in range(len(records)) if row not in bad]
        columns = {name: [values[row] for row in good] for name, values in columns.items()}
    if columns["id"]:
        yield document_batch(reader.source, {
            name: pa.array(values, DOCUMENT_SCHEMA.field(name).type) for name, values in columns.items()})


def _columns(
    reader: Fields, records: Sequence[Record], file: str
) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """The columns of all records, and for each bad one the first reason."""
    bad: dict[int, str] = {}
    found = [record.fields for record in records]
    texts = [fields.get(reader.text_field) for fields in found]
    if set(map(type, texts)) != {str}:
        for row, text in enumerate(texts):
            if type(text) is not str:
                bad[row] = _why_no_text(reader.text_field, found[row])
    ids = [fields.get(reader.id_field) for fields in found]
    if set(map(type, ids)) != {str} or "" in ids:
        for row, value in enumerate(ids):
            if type(value) is not str or not value:
                ids[row], reason = _id(value, f"{file}:{records[row].number}", reader.id_field)
                if reason:
                    bad.setdefault(row, reason)
    columns: dict[str, list[Any]] = {
        "id": ids,
        "text": texts,
        "language": _strings(found, reader.language_field, reader.language_of(file), bad),
        "url": _strings(found, reader.url_field, None, bad),
        "license": _strings(found, reader.license_field, reader.license, bad),
    }
    if reader.metadata_fields:
        columns["metadata"] = [_metadata(fields, reader.metadata_fields, row, bad) for row, fields in enumerate(found)]
    return columns, bad


def _why_no_text(field: str, fields: Mapping[str, Any]) -> str:
    if field in fields:
        return f"`{field}` is {kind_of(fields[field])}, not a string"
    names = ", ".join(excerpt(name) for name in fields)
    return f"no field `{field}`; fields: {names or 'none'}"[:400]


def _id(value: Any, place: str, field: str) -> tuple[str, str | None]:
    """Any other id as a string, or the reason why it cannot be one. A missing or empty id is the place."""
    if value is None or value == "":
        return place, None
    if type(value) is int or (type(value) is float and abs(value) < 2**63):
        return str(value), None
    if type(value) is float:  # the parser reads integers of more than 64 bits as fractions and loses digits
        return place, f"`{field}` is a number too large to be kept exactly; write it as a string"
    return place, f"`{field}` is {kind_of(value)}, neither a string nor a number"


def _strings(
    records: Sequence[Mapping[str, Any]], field: str | None, otherwise: str | None, bad: dict[int, str]
) -> list[str | None]:
    """A field of all records, or the same value for all if no field is named; notes rows of another type."""
    if field is None:
        return [otherwise] * len(records)
    values = [record.get(field) for record in records]
    if not set(map(type, values)) <= {str, type(None)}:
        for row, value in enumerate(values):
            if value is not None and type(value) is not str:
                bad.setdefault(row, f"`{field}` is {kind_of(value)}, not a string")
    return values


def _metadata(record: Mapping[str, Any], fields: tuple[str, ...], row: int, bad: dict[int, str]) -> str | None:
    """The fields that a record has, as a JSON object."""
    found = {name: record[name] for name in fields if name in record}
    try:
        return orjson.dumps(found).decode() if found else None
    except orjson.JSONEncodeError as error:  # the writer nests less deep than the parser
        bad.setdefault(row, f"the metadata cannot be kept: {error}")
        return None
