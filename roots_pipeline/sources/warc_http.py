"""What a WARC record holds: its headers, and the HTTP message in its block, decoded.

FastWARC parses both and undoes `Transfer-Encoding` and `Content-Encoding`. Archives are often wrong about them
(crawlers store a body decoded and keep the header that says otherwise), so a body that cannot be decoded as
declared is decoded with less trust, or taken as it stands, and what is lost is said.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from fastwarc.warc import HeaderMap, WarcRecord

from roots_pipeline.sources.base import excerpt

_PIECE = 64 << 10
_STEP = 512  # small, because a piece that holds an error gives nothing
_OUR_HEADER = (
    b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n"
    b"Content-Length: %d\r\n\r\n"
)
# A size with its line; the first chunk has no line end before it.
_CHUNK = re.compile(rb"(?:\r?\n|\A)([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]{0,200})?\r?\n")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")


@dataclass(frozen=True, slots=True)
class Head:
    """What an HTTP response says of itself. `missing` counts the bytes its body lacks by its Content-Length."""

    status: int | None
    content_type: str
    charset: str | None
    missing: int


def warc_headers(header: bytes) -> HeaderMap:
    """The headers of a record; names are found in any case."""
    lines = _LINE_END.sub(b"\r\n", header)
    return WarcRecord.from_bytes(lines).headers


def http_head(block: bytes) -> Head | None:
    """The head of the HTTP response in a block; None if there is none."""
    record, _, _ = _decoded(block, "none", 0)
    if record is None:
        return None
    headers = record.http_headers
    kind, _, _ = (headers.get("Content-Type") or "").partition(";")
    charset = (record.http_charset or "").strip("\"' ") or None
    said, missing = headers.get("Content-Length") or "", 0
    if said.isascii() and said.isdigit() and len(said) < 19 and not headers.get("Transfer-Encoding"):
        end = _END_OF_HEAD.search(block)
        missing = max(0, int(said) - (len(block) - end.end())) if end else 0
    return Head(record.http_headers.status_code, kind.strip().lower(), charset, missing)


def http_body(block: bytes, limit: int) -> tuple[bytes | None, str | None]:
    """The decoded body, at most one byte longer than `limit`, and a sentence if it was not encoded as declared.

    None if it cannot be decoded.
    """
    _, body, problem = _decoded(block, "all", limit)
    if problem is None or body:
        return body, problem
    record, encoded, _ = _decoded(block, "none", len(block))
    found = None if record is None else _undone(encoded, record.http_headers, limit)
    return found, f"the HTTP encoding is not as declared ({excerpt(problem)[:100]})"


def _decoded(block: bytes, decoding: str, limit: int) -> tuple[WarcRecord | None, bytes, str | None]:
    """The parsed record, its body as far as it could be decoded, and why no further."""
    record = WarcRecord.from_bytes(_OUR_HEADER % len(block) + block)
    parts: list[bytes] = []
    size = 0
    try:
        record.parse_http(auto_decode=decoding, quirks_mode=True)  # type: ignore[arg-type]
        if record.http_headers.status_code is None:
            return None, b"", "no HTTP response"
        while size <= limit and (part := record.reader.read(min(_PIECE, limit + 1 - size))):
            parts.append(part)
            size += len(part)
    except OSError as error:
        return (record if record.is_http_parsed else None), b"".join(parts), str(error)
    return record, b"".join(parts), None


def _undone(body: bytes, headers: HeaderMap, limit: int) -> bytes | None:
    """A body decoded without trust in its chunk sizes and encodings; None if it stays compressed."""
    if "chunked" in (headers.get("Transfer-Encoding") or "").lower():
        body = b"".join(_chunks(body))
    if body.startswith(b"\x1f\x8b"):
        return _inflated(body, 31, limit) or None
    if "deflate" in (headers.get("Content-Encoding") or "").lower():
        # Many servers leave out the zlib header (RFC 9110, 8.4.1.2).
        return _inflated(body, -15, limit) or _inflated(body, 15, limit) or body
    return body if body.lstrip().startswith(b"<") else None


def _chunks(body: bytes) -> Iterator[bytes]:
    """The chunks of a body (RFC 9112, 7.1); one of a wrong size reaches to the next line that looks like a size."""
    at = 0
    while head := _CHUNK.match(body, at):
        size = int(head[1], 16)
        if size == 0:
            return
        end = head.end() + size
        if not _CHUNK.match(body, end):
            following = _CHUNK.search(body, head.end())
            end = following.start() if following else len(body)
        yield body[head.end() : end]
        at = end
    yield body[at:]


def _inflated(body: bytes, wbits: int, limit: int) -> bytes:
    """As much of a body as can be decompressed."""
    decoder = zlib.decompressobj(wbits=wbits)
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(body), _STEP):
        try:
            parts.append(decoder.decompress(body[start : start + _STEP], limit + 1 - size))
        except zlib.error:
            break
        size += len(parts[-1])
        if size > limit or decoder.eof:
            break
    return b"".join(parts)
