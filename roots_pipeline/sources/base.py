"""What readers share: one input file, one bad record, the keys that all recipes set, the reader protocol.

A reader takes one file and yields two kinds of thing: batches in `DOCUMENT_SCHEMA`, and `Quarantined`
records that could not become documents. Nothing is skipped in silence, and bad data never raises. What does
raise (SourceError) is the environment: a file that is not there, permission denied, a store that does not
answer. A run must stop then, because calling such a file bad would leave it out for good although it is
fine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Protocol

import pyarrow as pa

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.errors import RecipeError

BATCH_BYTES = 8 << 20
BATCH_ROWS = 2000
MAX_DOCUMENT_BYTES = 256 << 20
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The lines of a file that begin from byte `begin` up to before `end`; see `parts`.

    `lines` are the line ends before byte `begin - 1`; they are counted when the file is hashed.
    """

    begin: int
    end: int
    lines: int = 0


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a Parquet file, from number `begin` up to before `end`; `bytes` is their compressed size."""

    begin: int
    end: int
    bytes: int


Part = ByteRange | RowGroups


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One input file, or a part of it.

    A path or URL that any worker can open, and its bytes (of a part: those of the part; 0 if the store does not say).
    `state` is what the store said of the whole file when it was hashed (see `files.state_of`).
    """

    path: str
    size: int
    part: Part | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record that could not become a document.

    `record` is the line or row, counted from 1; None speaks of the file as a whole. `excerpt` has at most 200
    characters and none that could move a terminal's cursor or hide text.
    """

    file: str
    record: int | None
    reason: str
    excerpt: str


class Reader(Protocol):
    """One kind of source. Every reader is a frozen dataclass whose fields are what a recipe can set."""

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def normalise_text(self) -> Literal["nfc", "ftfy"] | None:
        """What `read_files` does to the text of every document."""
        ...

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Endings of the files it reads, for `discover`."""
        ...

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """The documents of one file, in order, in batches of about `batch_bytes` of text and <= 2,000 rows.

        Quarantined records come in between, those of a batch before it. Raises SourceError if the file
        cannot be opened or read for a reason other than its content.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What is known of all documents of a source.

    `source` fills the column of that name. `root` is the path the recipe gave (file, folder, pattern or URL):
    names of files, which stand in ids, are relative to it, so that they do not depend on where the data lie.
    `normalise_text` changes the text of every document: `nfc` composes characters (Unicode's normal form C),
    `ftfy` also repairs text that was decoded with the wrong charset.
    """

    source: str
    root: str = ""
    language: str | None = None
    license: str | None = None
    normalise_text: Literal["nfc", "ftfy"] | None = None

    def __post_init__(self) -> None:
        """Check settings; readers with keys of their own call it first."""
        if self.normalise_text == "ftfy" and find_spec("ftfy") is None:
            raise RecipeError("`normalise_text: ftfy` needs the package ftfy, which is not installed.",
                              where=f"source '{self.source}'", hint="Install it: pip install ftfy")

    def require_at_most_one(self, **settings: object) -> None:
        """Raise RecipeError if more than one of these settings has a value: which one wins is a guess."""
        given = [name for name, value in settings.items() if value is not None]
        if len(given) > 1:
            raise RecipeError(
                f"{' and '.join(f'`{name}`' for name in given)} contradict each other.",
                where=f"source '{self.source}'", hint="Keep one of them.",
            )


def excerpt(data: bytes | str) -> str:
    """The beginning of a record as text that is safe to print: other characters are written as escapes."""
    if isinstance(data, bytes):
        data = data[: 4 * _EXCERPT].decode("utf-8", "backslashreplace")
    shown = (char if char.isprintable() else ascii(char)[1:-1] for char in data[:_EXCERPT])
    return "".join(shown)[:_EXCERPT]


def document_batch(source: str, given: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """A batch of DOCUMENT_SCHEMA from the columns given (`id`, `text` and others); the rest becomes null."""
    rows = len(given["id"])
    columns = {"source": pa.repeat(pa.scalar(source, pa.string()), rows), **given}
    arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in DOCUMENT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=DOCUMENT_SCHEMA)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words for a message."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), "an object")
