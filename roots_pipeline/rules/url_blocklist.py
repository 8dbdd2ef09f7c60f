"""Drops documents whose URL is on a block list (the content filter of a web corpus; MassiveText used SafeSearch).

    url ──▶ verdict `blocked_url`, cause: the entry that matched

A list is a text file, one entry a line (`#` starts a comment): a domain blocks itself and all its subdomains, an entry
with a slash blocks all URLs that begin with it (scheme, `www.` and case of the host do not count). The folders of the
UT1 lists (`domains`, `urls`) are of this form. Documents without a URL stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.core.storage import hash_file

VERDICT = "blocked_url"


@dataclass(frozen=True, slots=True)
class Blocklist:
    """Domains, and beginnings of addresses (host and path) by host."""

    domains: frozenset[str]
    beginnings: dict[str, tuple[str, ...]]

    def match(self, url: str) -> str | None:
        """The entry that blocks a URL, or None."""
        address = _address(url)
        host, _, _ = address.partition("/")
        parts = host.split(".")
        for start in range(len(parts)):
            domain = ".".join(parts[start:])
            if domain in self.domains:
                return domain
            for beginning in self.beginnings.get(domain, ()) if start == 0 else ():
                if address.startswith(beginning):
                    return beginning
        return None


def _address(url: str) -> str:
    """Host (lower case, without user, port and `www.`) and path of a URL."""
    rest = url.strip().partition("://")[2] or url.strip().removeprefix("//")
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].partition("?")[0].partition("#")[0]
    return host.lower().rstrip(".").removeprefix("www.") + slash + path


@lru_cache(maxsize=8)
def load_blocklist(paths: tuple[str, ...], fingerprints: tuple[str, ...]) -> Blocklist:
    """The entries of some files that have these fingerprints."""
    domains, beginnings = set(), dict[str, list[str]]()
    for path in paths:
        for entry in _entries(path):
            address = _address(entry)
            host, slash, rest = address.partition("/")
            if slash and rest:
                beginnings.setdefault(host, []).append(address)
            else:
                domains.add(host)
    return Blocklist(frozenset(domains), {host: tuple(sorted(entries)) for host, entries in beginnings.items()})


def _entries(path: str) -> Iterator[str]:
    for line in Path(path).read_text("utf-8", errors="replace").split("\n"):
        entry = line.partition("#")[0].strip()
        if entry:
            yield entry


@dataclass(frozen=True, slots=True)
class UrlBlocklist(Map):
    """Drops documents whose URL matches an entry of the files `lists`. `fingerprints` are those of the files."""

    name: ClassVar[str] = "url_blocklist"
    lists: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.lists:
            raise RecipeError("there is no list.", where="stage 'url_blocklist'",
                              hint="Name at least one file in `lists`.")
        object.__setattr__(self, "fingerprints", tuple(map(_fingerprint, self.lists)))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("url", "verdict", "cause")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (VERDICT,)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        known = load_blocklist(self.lists, self.fingerprints)
        verdicts, causes = batch.column("verdict").to_pylist(), batch.column("cause").to_pylist()
        for row, url in enumerate(batch.column("url").to_pylist()):
            if url and verdicts[row] is None and (entry := known.match(url)) is not None:
                verdicts[row], causes[row] = VERDICT, entry
        return with_columns(batch, {"verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string())})


def _fingerprint(path: str) -> str:
    try:
        return hash_file(path)
    except OSError as error:
        raise RecipeError(f"the block list cannot be read ({error.strerror or error}).", where=path,
                          hint="Give the path of a text file with one domain or URL a line.") from error
