"""Folders of web pages: one page a file, its main text as the document.

In: an HTML file in any charset. Out: one batch with one document, whose id is the file's name below the
root, with the canonical URL if the page names one, and title, charset and extractor as metadata; or a
quarantined record for a page that is too large, has no readable charset, or takes too long or crashes the
parser. A page without main text is a document with the empty text, for the rules to judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import orjson
import pyarrow as pa

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import BATCH_BYTES, Origin, Quarantined, excerpt
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.isolation import Isolated, Killed

_EXTRACTION = Isolated("roots_pipeline.sources.extraction:extract_page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Html(Origin):
    """Reader of web pages.

    `fast=False` lets trafilatura ask its own fallbacks too (slower, a little better); `tables` keeps
    tables; `fallback` asks resiliparse where trafilatura finds nothing. `seconds` (CPU time) and
    `memory_bytes` limit the work on one page. `language_from="page"` takes the language from the page's
    `lang` attribute.
    """

    name: ClassVar[str] = "html"
    version: ClassVar[int] = 1

    extractor: Literal["trafilatura", "resiliparse"] = "trafilatura"
    fallback: bool = True
    fast: bool = True
    tables: bool = False
    language_from: Literal["page"] | None = None
    max_page_bytes: int = 10 << 20
    seconds: float = 30.0
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        self.require_at_most_one(language=self.language, language_from=self.language_from)
        for name, value in (("max_page_bytes", self.max_page_bytes), ("seconds", self.seconds)):
            if not value > 0:
                raise RecipeError(f"`{name}` is {value}; it must be positive.", where=f"source '{self.source}'")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".html", ".htm", ".xhtml", ".HTML", ".HTM")

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        with open_input(path) as handle:
            data = handle.read(self.max_page_bytes + 1)
        if len(data) > self.max_page_bytes:
            yield Quarantined(path, None, f"the page is larger than {self.max_page_bytes:,} bytes", excerpt(data))
            return
        options = {
            "extractor": self.extractor, "fallback": self.fallback, "fast": self.fast, "tables": self.tables}
        try:
            page = _EXTRACTION.call(data, options, seconds=self.seconds, memory_bytes=self.memory_bytes)
        except Killed as death:
            page = {"error": f"extracting its text {death}"}
        if "error" in page:
            yield Quarantined(path, None, page["error"], excerpt(data))
            return
        facts = {name: page[name] for name in ("title", "charset", "replaced", "extractor") if page[name]}
        yield make_batch([{
            "id": relative_name(path, self.root), "text": page["text"], "source": self.source, "url": page["url"],
            "language": page["language"] if self.language_from == "page" else self.language,
            "license": self.license, "metadata": orjson.dumps(facts).decode(),
        }])
