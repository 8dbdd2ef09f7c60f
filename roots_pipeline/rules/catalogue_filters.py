"""The filters of ROOTS's catalogue cleaning, by their published names (ROOTS paper, appendix B.3).

    text or metadata ──▶ verdict (the name of the filter)

`filter_remove_empty_docs`      drops what is nothing but white space
`filter_small_docs`             drops texts of fewer than 15 words; ROOTS had it and never used it
`filter_small_docs_bytes_300`   drops texts of fewer than 300 bytes
`filter_small_docs_bytes_1024`  drops texts of fewer than 1,024 bytes
`filter_wiki_user_titles`       drops pages of users
`filter_wiki_non_text_type`     drops pages whose type is not `text`

The last two read `title` and `type` of the metadata (recipe key `metadata_fields` of a source), at the top or inside
`meta`, which may also be a string that holds JSON or a Python dictionary, as in the catalogue's data sets. It is never
evaluated. Without a title a page is kept, without a type it is not. Two filters have a fault, with a switch:

`count_empty`  (`filter_small_docs`) what lies between two spaces counts, also if it is empty, and other white space
               separates nothing
`space_only`   (`filter_wiki_user_titles`) titles begin with `User` and a space; `User:Ann` and `User talk:Ann` stay
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.text.characters import character_classes
from roots_pipeline.text.word_counts import count_words


class CatalogueFilter(Map):
    """Gives a verdict, its own name, to documents that do not pass."""

    reads: ClassVar[str] = "text"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.reads, "verdict")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict",)

    @abstractmethod
    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        """Which rows pass."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        drop = kept(batch) & ~self.passes(batch.column(self.reads))
        verdicts = pa.array(np.where(drop, self.name, ""), pa.string(), mask=~drop)
        return with_columns(batch, {"verdict": batch.column("verdict").fill_null(verdicts)})


@dataclass(frozen=True, slots=True)
class FilterRemoveEmptyDocs(CatalogueFilter):
    """Drops empty texts."""

    name: ClassVar[str] = "filter_remove_empty_docs"

    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        return count_words(*text_buffers(column), character_classes(), 1) > 0


@dataclass(frozen=True, slots=True)
class FilterSmallDocs(CatalogueFilter):
    """Drops texts of few words."""

    name: ClassVar[str] = "filter_small_docs"
    minimum_words: int = 15
    count_empty: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        _require_positive(self.name, minimum_words=self.minimum_words)

    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        data, offsets = text_buffers(column)
        if not (self.count_empty or self.as_published):
            return count_words(data, offsets, character_classes(), self.minimum_words) >= self.minimum_words
        spaces = np.append(0, np.cumsum(data[offsets[0] : offsets[-1]] == 0x20))
        places = offsets - offsets[0]
        counts: npt.NDArray[np.int64] = spaces[places[1:]] - spaces[places[:-1]] + 1
        return counts >= self.minimum_words


@dataclass(frozen=True, slots=True)
class FilterSmallDocsBytes300(CatalogueFilter):
    """Drops texts of few bytes (UTF-8)."""

    name: ClassVar[str] = "filter_small_docs_bytes_300"
    minimum_bytes: int = 300

    def __post_init__(self) -> None:
        _require_positive(self.name, minimum_bytes=self.minimum_bytes)

    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        _, offsets = text_buffers(column)
        return np.diff(offsets) >= self.minimum_bytes


@dataclass(frozen=True, slots=True)
class FilterSmallDocsBytes1024(FilterSmallDocsBytes300):
    """Drops texts of few bytes (UTF-8)."""

    name: ClassVar[str] = "filter_small_docs_bytes_1024"
    minimum_bytes: int = 1024


@dataclass(frozen=True, slots=True)
class FilterWikiUserTitles(CatalogueFilter):
    """Drops pages of users."""

    name: ClassVar[str] = "filter_wiki_user_titles"
    reads: ClassVar[str] = "metadata"
    space_only: bool = False
    as_published: bool = False

    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        beginnings = ("User ",) if self.space_only or self.as_published else ("User ", "User:")
        titles = [metadata_of(row).get("title") for row in column.to_pylist()]
        return np.array([not str(title or "").startswith(beginnings) for title in titles], np.bool_)


@dataclass(frozen=True, slots=True)
class FilterWikiNonTextType(CatalogueFilter):
    """Keeps pages of the type `text`."""

    name: ClassVar[str] = "filter_wiki_non_text_type"
    reads: ClassVar[str] = "metadata"

    def passes(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        return np.array([metadata_of(row).get("type") == "text" for row in column.to_pylist()], np.bool_)


def metadata_of(row: str | None) -> dict[str, Any]:
    """The metadata of a document as a dictionary, empty if there are none; those inside `meta` if it has that key."""
    found = _value_of(row or "")
    if isinstance(found, dict) and "meta" in found:
        found = found["meta"]
    if isinstance(found, str):
        found = _value_of(found)
    return found if isinstance(found, dict) else {}


def _value_of(text: str) -> Any:
    """What a string holds: JSON, or a literal of Python."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _require_positive(name: str, **settings: int) -> None:
    for setting, value in settings.items():
        if value < 1:
            raise RecipeError(f"`{setting}` is {value}; it must be at least 1.", where=f"stage '{name}'")
