"""Documents of the same page: of all documents with equal URLs, the one of best rank stays.

What of a URL counts is a choice of `key`; three are as ROOTS had them (its catalogue cleaning, 01a):
`whole`          the URL without white space around it
`page`           without scheme, `www.`, default port, fragment, last slash and tracking parameters; host in lower case
`without_query`  ROOTS `dedup_document_on_url`: up to the first `?` behind the first character; a fragment, the scheme
                 and `www.` count
`without_amp`    ROOTS on cointelegraph: as before, and up to the first `/amp` wherever it stands
`page_id`        ROOTS on qut.edu.au: of the query nothing but `id` and `news-id`, which are the same
Documents without a URL take no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import parse_qsl, urlencode, urlparse, urlsplit, urlunparse

import numpy as np
import pyarrow as pa
import xxhash

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import CauseIs, Exchange, Map
from roots_pipeline.dedup.equal_keys import EqualKeys, all_but_the_best
from roots_pipeline.dedup.ranks import LENGTH_COLUMN, Ranking

UrlKey = Literal["whole", "page", "without_query", "without_amp", "page_id"]
# Say where a visitor came from, not what the page shows.
_TRACKING = frozenset(["fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "yclid", "_ga"])
_DEFAULT_PORTS = {"http": 80, "https": 443}


def _page(url: str) -> str:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    query = "&".join(item for item in parts.query.split("&") if item and not _is_tracking(item.partition("=")[0]))
    return f"{host}{port}{parts.path.rstrip('/')}{'?' * bool(query)}{query}"


def _is_tracking(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING


def _without_query(url: str) -> str:
    end = url.find("?", 1)
    return url if end < 0 else url[:end]


def _without_amp(url: str) -> str:
    url = _without_query(url)
    end = url.find("/amp", 1)
    return url if end < 0 else url[:end]


def _page_id(url: str) -> str:
    parts = urlparse(url)
    wanted = [("id", value) for name, value in parse_qsl(parts.query) if name in ("id", "news-id")]
    return urlunparse(parts._replace(query=urlencode(wanted)))


_KEYS: dict[str, Callable[[str], str]] = {
    "whole": str, "page": _page, "without_query": _without_query, "without_amp": _without_amp, "page_id": _page_id,
}


def url_key(url: str | None, kind: UrlKey) -> str | None:
    """What of a URL counts; None if there is no URL. An address that is none (such as `http://[`) counts whole."""
    url = (url or "").strip()
    if not url:
        return None
    try:
        return _KEYS[kind](url) or url
    except ValueError:
        return url


@dataclass(frozen=True, slots=True)
class UrlHash(Map):
    """Adds the 128-bit hash of what counts of each URL (two uint64 halves, null without a URL) and the text's bytes."""

    name: ClassVar[str] = "url_hash"
    key: UrlKey = "page"

    @property
    def needs(self) -> tuple[str, ...]:
        return ("url", "text")

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"_url_high_{self.key}", f"_url_low_{self.key}", LENGTH_COLUMN)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = [url_key(url, self.key) for url in batch.column("url").to_pylist()]
        digests = b"".join(bytes(16) if key is None else xxhash.xxh3_128_digest(key.encode()) for key in keys)
        halves = np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
        without = np.array([key is None for key in keys], bool)
        _, offsets = text_buffers(batch.column("text"))
        high, low, length = self.gives
        return with_columns(batch, {
            high: pa.array(halves[:, 0], mask=without), low: pa.array(halves[:, 1], mask=without),
            length: pa.array(np.diff(offsets).astype(float)),
        })


@dataclass(frozen=True, slots=True)
class UrlDuplicates(Exchange):
    """Keeps the best-ranked of all documents with equal URLs; the others name it as their cause.

    `key`      what of a URL counts: `page`, `whole`, `without_query`, `without_amp` or `page_id`
    `prefer`   names of sources, best first; sources not named rank behind them, all alike
    `measure`  what decides next: `length` or the name of a measure, most first; with a `-` before it, least first;
               then the smallest id
    """

    name: ClassVar[str] = "url_duplicates"
    cause_is: ClassVar[CauseIs] = "twin"
    key: UrlKey = "page"
    prefer: tuple[str, ...] = ()
    measure: str = ""

    @property
    def _keys(self) -> EqualKeys:
        high, low, _ = UrlHash(self.key).gives
        return EqualKeys(high, low, Ranking(self.prefer, self.measure))

    @property
    def needs(self) -> tuple[str, ...]:
        return self._keys.needs

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def prepare(self) -> Map:
        return UrlHash(self.key)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        return self._keys.emit(batch, shard, first_row)

    def resolve(self, entries: pa.Table) -> pa.Table:
        return all_but_the_best(entries)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return self._keys.apply(batch, findings, first_row, self.name)
