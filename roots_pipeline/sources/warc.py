"""Web archives: WARC files of pages as they were fetched, and WET files of their text.

In: a WARC file (ISO 28500), plain or compressed with gzip, zstd or lz4. Out of `warc`: a document for each response
or resource that is a web page, its main text extracted; out of `wet`: a document for each conversion record.
The id is the WARC-Record-ID, or address and date. Quarantined: records that are cut off or too large, pages that
cannot be decoded or extracted, bytes that belong to no record. A record whose length was wrong becomes a document
and a quarantined record, which says what may be lost. Records of other types, statuses and content types are
outside of what was asked for and are not counted as bad.
"""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pyarrow as pa
from fastwarc.warc import HeaderMap

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Origin, Quarantined, excerpt
from roots_pipeline.sources.charset import NO_CHARSET, decode
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.pages import Pages
from roots_pipeline.sources.warc_framing import MAX_HEADER, Loss, RawRecord, read_records
from roots_pipeline.sources.warc_http import Head, http_body, http_head, warc_headers

_PACKINGS = ("", ".gz", ".zst", ".lz4")
# What is kept of a record's headers, and under which name.
_KEPT = {
    "WARC-Date": "date", "WARC-Payload-Digest": "digest", "WARC-Truncated": "truncated",
    "WARC-Identified-Content-Language": "identified_languages",
}
_Found = dict[str, Any] | Quarantined


class _Archive(Origin, ABC):
    """What both readers do: records of the file to rows, rows to batches."""

    __slots__ = ()

    @abstractmethod
    def _largest(self) -> int:
        """Bytes of the largest record that is read."""

    @abstractmethod
    def _rows(self, path: str, raw: RawRecord, headers: HeaderMap) -> Iterator[_Found]:
        """The documents of one record, or why it is none."""

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        rows: list[dict[str, Any]] = []
        size = 0
        with open_input(path) as handle:
            for item in self._found(path, read_records(handle, self._largest() + MAX_HEADER)):
                if isinstance(item, Quarantined):
                    yield item
                    continue
                rows.append(item)
                size += len(item["text"])
                if size >= batch_bytes or len(rows) == BATCH_ROWS:
                    yield make_batch(rows)
                    rows, size = [], 0
        if rows:
            yield make_batch(rows)

    def _found(self, path: str, records: Iterator[RawRecord | Loss]) -> Iterator[_Found]:
        for raw in records:
            if isinstance(raw, Loss):
                yield Quarantined(path, raw.number, raw.reason, excerpt(raw.head))
                continue
            if raw.wrong_length:
                yield Quarantined(path, raw.number, raw.wrong_length, excerpt(raw.header))
            yield from self._rows(path, raw, warc_headers(raw.header))

    def _row(self, path: str, raw: RawRecord, headers: HeaderMap, text: str, facts: dict[str, Any]) -> dict[str, Any]:
        url = headers.get("WARC-Target-URI")
        url = url.strip("<> ") if url else None
        date = headers.get("WARC-Date")
        name = (headers.get("WARC-Record-ID") or "").strip("<> ")
        if not name:
            name = f"{url} {date}" if url and date else f"{relative_name(path, self.root)}:{raw.number}"
        kept = {name: headers.get(header) for header, name in _KEPT.items()}
        facts = {**{name: value for name, value in kept.items() if value}, **facts}
        if _digest_differs(raw, headers):
            facts["block_digest"] = "differs"
        return {"id": _text(name), "text": text, "source": self.source, "url": _text(url) if url else None,
                "language": self.language, "license": self.license, "metadata": orjson.dumps(facts).decode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Warc(_Archive, Pages):
    """Reader of web archives. Pages are records of these content types, responses those of these statuses too."""

    name: ClassVar[str] = "warc"
    version: ClassVar[int] = 1

    statuses: tuple[int, ...] = (200,)
    content_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(".warc" + packing for packing in _PACKINGS)

    def _largest(self) -> int:
        return self.max_page_bytes

    def _rows(self, path: str, raw: RawRecord, headers: HeaderMap) -> Iterator[_Found]:
        head, problem = self._wanted(raw, headers)
        if problem is not None:
            yield Quarantined(path, raw.number, problem, excerpt(raw.header))
        if head is None:
            return
        is_message = head.status is not None
        body, loss = http_body(raw.block, self.max_page_bytes) if is_message else (raw.block, None)
        if body is None:
            yield Quarantined(path, raw.number, loss or "", excerpt(raw.block))
            return
        page = self.extract(body, head.charset)
        if "error" in page:
            yield Quarantined(path, raw.number, page["error"], excerpt(body))
            return
        facts = self.facts(page) | {"damage": loss, "missing_bytes": head.missing}
        row = self._row(path, raw, headers, page["text"], {name: value for name, value in facts.items() if value})
        yield row | {"url": row["url"] or page["url"], "language": self.language_of_page(page)}

    def _wanted(self, raw: RawRecord, headers: HeaderMap) -> tuple[Head | None, str | None]:
        """The head of a page, None if the record is none that was asked for; and why such a one is lost."""
        kind = (headers.get("WARC-Type") or "").strip().lower()
        said, _, rest = (headers.get("Content-Type") or "").strip().lower().partition(";")
        said = said.strip()
        if kind == "resource" and said in self.content_types:
            _, _, charset = rest.partition("charset=")
            head: Head | None = Head(None, said, charset.strip("\"' ") or None, 0)
        elif kind == "response" and said in ("application/http", ""):
            head = http_head(raw.block)
            if head is None:
                return None, "the record holds no HTTP response that can be read"
            if head.status not in self.statuses or head.content_type not in self.content_types:
                return None, None
        else:
            return None, None
        if raw.size > len(raw.block):
            return None, f"the page is larger than {self.max_page_bytes:,} bytes"
        return head, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wet(_Archive):
    """Reader of WET files, which hold the text of pages as Common Crawl extracts it: all of it, menus included."""

    name: ClassVar[str] = "wet"
    version: ClassVar[int] = 1

    max_document_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        Origin.__post_init__(self)
        if self.max_document_bytes < 1:
            raise RecipeError(f"`max_document_bytes` is {self.max_document_bytes}; it must be at least 1.",
                              where=f"source '{self.source}'")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(".wet" + packing for packing in _PACKINGS)

    def _largest(self) -> int:
        return self.max_document_bytes

    def _rows(self, path: str, raw: RawRecord, headers: HeaderMap) -> Iterator[_Found]:
        kind = (headers.get("Content-Type") or "").strip().lower()
        if headers.get("WARC-Type") != "conversion" or not kind.startswith("text/plain"):
            return
        if raw.size > len(raw.block) or raw.size > self.max_document_bytes:
            problem = f"the text is longer than {self.max_document_bytes:,} bytes"
            yield Quarantined(path, raw.number, problem, excerpt(raw.block))
        elif (decoded := decode(raw.block)) is None:
            yield Quarantined(path, raw.number, NO_CHARSET, excerpt(raw.block))
        else:
            facts = {"charset": decoded.charset, "replaced": decoded.replaced}
            yield self._row(path, raw, headers, decoded.text, {} if facts == _PLAIN else facts)


_PLAIN = {"charset": "utf-8", "replaced": 0}


def _digest_differs(raw: RawRecord, headers: HeaderMap) -> bool:
    """Whether a SHA-1 digest of the block is given and does not fit it."""
    algorithm, _, digest = (headers.get("WARC-Block-Digest") or "").partition(":")
    if algorithm.lower() != "sha1" or len(digest) not in (32, 40) or raw.size != len(raw.block):
        return False
    found = hashlib.sha1(raw.block, usedforsecurity=False).digest()
    return digest.lower() not in (base64.b32encode(found).decode().lower(), found.hex())


def _text(value: str) -> str:
    """A header's value without what UTF-8 cannot hold."""
    return value.encode("utf-8", "replace").decode()
