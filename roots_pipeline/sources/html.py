"""Folders of web pages: one page a file, its main text as the document.

In: an HTML file in any charset. Out: one batch with one document, whose id is the file's name below the
root, with the canonical URL if the page names one, and title, charset and extractor as metadata; or a
quarantined record for a page that is too large, has no readable charset, or takes too long or crashes the
parser. A page without main text is a document with the empty text, for the rules to judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import orjson
import pyarrow as pa

from roots_pipeline.core.documents import make_batch
from roots_pipeline.sources.base import BATCH_BYTES, Quarantined, excerpt
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.pages import Pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Html(Pages):
    """Reader of web pages. `language_from="page"` takes the language from the page's `lang` attribute."""

    name: ClassVar[str] = "html"
    version: ClassVar[int] = 2

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".html", ".htm", ".xhtml", ".HTML", ".HTM")

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        with open_input(path) as handle:
            data = handle.read(self.max_page_bytes + 1)
        page = self.extract(data)
        if "error" in page:
            yield Quarantined(path, None, page["error"], excerpt(data))
            return
        yield make_batch([{
            "id": relative_name(path, self.root), "text": page["text"], "source": self.source, "url": page["url"],
            "language": self.language_of_page(page), "license": self.license,
            "metadata": orjson.dumps(self.facts(page)).decode(),
        }])
