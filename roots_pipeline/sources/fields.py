"""The recipe keys of readers whose files hold records with named fields: JSON lines and Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import MAX_DOCUMENT_BYTES, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields(Origin):
    """Which fields of a record hold what. A field that a record lacks, or that is null, gives null.

    A record whose id is missing or empty is called `<file>:<number>`. `language_from="filename"` takes the
    language from the name up to its first dot: `web/en.jsonl.gz` is `en`. `metadata_fields` are kept
    together as a JSON object.
    """

    text_field: str = "text"
    id_field: str = "id"
    url_field: str = "url"
    license_field: str | None = None
    language_field: str | None = None
    language_from: Literal["filename"] | None = None
    metadata_fields: tuple[str, ...] = ()
    max_document_bytes: int = MAX_DOCUMENT_BYTES

    def __post_init__(self) -> None:
        Origin.__post_init__(self)
        self.require_at_most_one(
            language=self.language, language_field=self.language_field, language_from=self.language_from)
        self.require_at_most_one(license=self.license, license_field=self.license_field)
        if self.max_document_bytes < 1:
            raise RecipeError(f"`max_document_bytes` is {self.max_document_bytes}; it must be at least 1.",
                              where=f"source '{self.source}'")

    def language_of(self, file: str) -> str | None:
        """The language of a file's documents, unless each has its own."""
        return file.rsplit("/", 1)[-1].split(".", 1)[0] if self.language_from == "filename" else self.language
