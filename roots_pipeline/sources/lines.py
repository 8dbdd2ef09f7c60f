"""Lines of a file that may be one enormous line, and may lose bytes on the way.

Only `\\n` ends a line: texts hold U+0085, U+2028 and other characters that `splitlines` would cut at. Memory
stays bounded: a line over the limit is dropped while it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from roots_pipeline.sources.decompress import Damage

_HEAD = 1024


def split_lines(chunks: Iterable[bytes | Damage], limit: int) -> Iterator[tuple[int, bytes | Damage]]:
    """`(number, line)` for every line, counted from 1, without its `\\n`.

    Instead of a line longer than `limit` bytes, and where the input was damaged, comes a `Damage` with the
    beginning of that line. Damage ends a line: what follows counts as the next one.
    """
    number, held, too_long = 1, 0, False
    parts: list[bytes] = []
    for chunk in chunks:
        if isinstance(chunk, Damage):
            yield number, Damage(chunk.reason, _head(parts))
            number, parts, held, too_long = number + 1, [], 0, False
            continue
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if too_long or held + len(end) > limit:
                yield number, _too_long(_head([*parts, end]), limit)
            else:
                yield number, b"".join([*parts, end]) if parts else end
            number, parts, held, too_long = number + 1, [], 0, False
        if rest and not too_long:
            parts.append(rest)
            held += len(rest)
            if held > limit:
                parts, too_long = [_head(parts)], True
    if too_long:
        yield number, _too_long(parts[0], limit)
    elif parts:
        yield number, b"".join(parts)


def _too_long(head: bytes, limit: int) -> Damage:
    return Damage(f"the line is longer than {limit:,} bytes", head)


def _head(parts: list[bytes]) -> bytes:
    """The beginning of a line, without putting the whole of it together."""
    head = b""
    for part in parts:
        head += part[: _HEAD - len(head)]
        if len(head) == _HEAD:
            break
    return head
