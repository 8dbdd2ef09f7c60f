"""Small web archives made for the tests."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence

SENTENCES = " ".join(f"This is sentence number {n} of a page about weirs; it says something new." for n in range(12))
LINE = b"\r\n"


def page(title: str, text: str = SENTENCES) -> bytes:
    return f"<html lang=en><head><title>{title}</title></head><body><p>{title}. {text}</p></body></html>".encode()


def http(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *headers]
    return LINE.join(line.encode() for line in head) + 2 * LINE + body


def record(
    block: bytes, kind: str = "response", name: str = "", length: int | str | None = "right",
    content_type: str = "application/http; msgtype=response", **headers: str,
) -> bytes:
    """A record; `length` is its Content-Length, None for none."""
    digest = base64.b32encode(hashlib.sha1(block).digest()).decode()
    lines = ["WARC/1.0", f"WARC-Type: {kind}", f"Content-Type: {content_type}", f"WARC-Block-Digest: sha1:{digest}"]
    if name:
        lines += [f"WARC-Record-ID: <urn:{name}>", f"WARC-Target-URI: https://e.example/{name}"]
        lines.append("WARC-Date: 2026-01-02T03:04:05Z")
    lines += [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
    if length is not None:
        lines.append(f"Content-Length: {len(block) if length == 'right' else length}")
    return LINE.join(line.encode() for line in lines) + 2 * LINE + block + 2 * LINE


def pages(count: int) -> list[bytes]:
    """Records of pages called p0, p1, …, each after a request."""
    found = []
    for n in range(count):
        found.append(record(b"GET / HTTP/1.1\r\n\r\n", "request", f"r{n}", content_type="application/http"))
        found.append(record(http(page(f"Page {n}")), name=f"p{n}"))
    return found


def members(records: Sequence[bytes]) -> bytes:
    """Each record a gzip member, as the standard recommends."""
    return b"".join(gzip.compress(found, mtime=0) for found in records)
