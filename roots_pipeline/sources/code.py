"""Folders of program source: one file is one document, as it stands.

In: a file whose suffix names a programming language. Out: one batch with one document, whose id is the path
below the root and whose language is the programming language (`python`); or a quarantined record for a file
that is too large, binary, of an unknown suffix, or in no readable charset. White space and line ends are
kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Literal

import orjson
import pyarrow as pa

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import BATCH_BYTES, Origin, Quarantined, excerpt
from roots_pipeline.sources.charset import NO_CHARSET, decode
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.suffixes import TABLES

# The declaration of PEP 263, which editors and other languages use too; only the first two lines count.
_DECLARED = re.compile(rb"^(?:[^\n]*\n)?[^\n]*?coding[:=]\s*([-\w.]+)")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Origin):
    """Reader of program source. `table` names the list of suffixes; 1 MiB is the limit of ROOTS's query."""

    name: ClassVar[str] = "code"
    version: ClassVar[int] = 1

    table: Literal["common", "roots"] = "common"
    max_file_bytes: int = 1_048_576

    def __post_init__(self) -> None:
        Origin.__post_init__(self)
        if self.max_file_bytes < 1:
            raise RecipeError(f"`max_file_bytes` is {self.max_file_bytes}; it must be at least 1.",
                              where=f"source '{self.source}'")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(TABLES[self.table])

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        with open_input(path) as handle:
            data = handle.read(self.max_file_bytes + 1)
        name = relative_name(path, self.root)
        suffix = PurePosixPath(name).suffix
        language = self.language or TABLES[self.table].get(suffix)
        decoded = None
        if language is None:
            problem = f"the suffix '{suffix}' names no programming language of the table `{self.table}`"
        elif len(data) > self.max_file_bytes:
            problem = f"the file is larger than {self.max_file_bytes:,} bytes"
        elif b"\0" in data and not data.startswith(_WIDE_MARKS):
            problem = "the file is binary: it holds a zero byte"
        else:
            found = _DECLARED.match(data)
            decoded = decode(data, found[1].decode("ascii", "replace") if found else None)
            problem = NO_CHARSET
        if decoded is None:
            yield Quarantined(path, None, problem, excerpt(data))
            return
        facts = {"charset": decoded.charset, "replaced": decoded.replaced}
        metadata = None if facts == {"charset": "utf-8", "replaced": 0} else orjson.dumps(facts).decode()
        yield make_batch([{
            "id": name, "text": decoded.text, "source": self.source, "language": language, "license": self.license,
            "metadata": metadata,
        }])
