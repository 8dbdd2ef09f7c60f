"""What readers of web pages share: the recipe keys of extraction, and the call into the process that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import Origin
from roots_pipeline.sources.charset import NO_CHARSET
from roots_pipeline.sources.isolation import Isolated, Killed

_EXTRACTION = Isolated("roots_pipeline.sources.extraction:extract_page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages(Origin):
    """How the main text of a page is found.

    `extractor`: `trafilatura`, `resiliparse` (nine times as fast), or `roots`, the algorithm of ROOTS's
    pseudo-crawl. `fallback` asks resiliparse where trafilatura finds nothing, takes too long or crashes.
    `fast=False` lets trafilatura ask its own fallbacks too (slower, a little better); `tables` keeps tables.
    `seconds` (CPU time) and `memory_bytes` limit each attempt at one page.
    """

    extractor: Literal["trafilatura", "resiliparse", "roots"] = "trafilatura"
    fallback: bool = True
    fast: bool = True
    tables: bool = False
    language_from: Literal["page"] | None = None
    max_page_bytes: int = 10 << 20
    seconds: float = 30.0
    memory_bytes: int = 512 << 20

    def __post_init__(self) -> None:
        Origin.__post_init__(self)
        self.require_at_most_one(language=self.language, language_from=self.language_from)
        for name, value in (
            ("max_page_bytes", self.max_page_bytes), ("seconds", self.seconds), ("memory_bytes", self.memory_bytes),
        ):
            if not value > 0:
                raise RecipeError(f"`{name}` is {value}; it must be positive.", where=f"source '{self.source}'")

    def extract(self, data: bytes, charset: str | None = None) -> dict[str, Any]:
        """The answer of `extract_page`, or `{"error": reason}`. `charset` is the label in the HTTP header."""
        if len(data) > self.max_page_bytes:
            return {"error": f"the page is larger than {self.max_page_bytes:,} bytes"}
        options = {"extractor": self.extractor, "fallback": self.fallback, "fast": self.fast, "tables": self.tables,
                   "charset": charset, "facts": True}
        first = self._attempt(data, options)
        if first.get("error") in (None, NO_CHARSET) or not (self.fallback and self.extractor == "trafilatura"):
            return first
        # Without the page's own title and address: looking for them parses the page as the first attempt did.
        second = self._attempt(data, options | {"extractor": "resiliparse", "facts": False})
        return second if second.get("text") else first

    def _attempt(self, data: bytes, options: dict[str, Any]) -> dict[str, Any]:
        try:
            return _EXTRACTION.call(data, options, seconds=self.seconds, memory_bytes=self.memory_bytes)
        except Killed as death:
            return {"error": f"extracting its text {death}"}

    def facts(self, page: dict[str, Any]) -> dict[str, Any]:
        """What is kept of a page as metadata."""
        return {name: page[name] for name in ("title", "charset", "replaced", "extractor") if page[name]}

    def language_of_page(self, page: dict[str, Any]) -> str | None:
        """The language of a page's document."""
        return page["language"] if self.language_from == "page" else self.language
