"""Finds personal information that has a shape and puts tags in its place (ROOTS, section 3.3 and appendix D).

    text ──▶ text, pii_key, pii_email, pii_user, pii_ip_address, pii_unread_bytes

`KEY`         mixtures of letters and digits, and long or grouped numbers: keys, accounts, cards, many telephones
`EMAIL`       e-mail addresses
`USER`        names behind an `@`
`IP_ADDRESS`  IPv4 and IPv6
`ID`          six or more digits, and `NUMBER`, seven or more digits as telephones are written: both are off in ROOTS,
              for their false alarms, and so they are here

Patterns are in `pii_patterns`, further checks of addresses in `pii_addresses`. Only lines that pass the gates of
`text.pii_gate` meet a pattern, in pieces of at most `longest_piece` bytes, so time is proportional to the text. What no
piece can be made of (that many bytes without white space, `, ; ? !` or punctuation beyond ASCII) is left as it is, and
counted: `pii_unread_bytes`.

The published procedure has faults, each of which has a switch. As published, all are true:

`replace_everywhere`    each match is replaced wherever its string occurs, also as a part of other words, tag after tag
                        (time: matches times length); without it, matches are replaced where they were found, and of
                        matches that overlap all is replaced by the tag that comes first in `tags`
`narrow_boundaries`     a match must lie between white space, Han characters, line ends or certain ASCII punctuation, of
                        which each tag has its own: `(8.8.8.8)`, `<@name>` and `http://8.8.8.8/x` have none
`used_up_boundaries`    the character behind a KEY or IP_ADDRESS cannot bound the next one: every second one is missed
`cut_addresses`         an IPv6 address may end before its last groups, and four parts of five are an IPv4 address
`addresses_like_dates`  an IPv4 address that begins like a date stays
`names_take_han`        EMAIL and USER go on into the Han characters on both sides
`keep_no_separator`     the space or dash behind the last part of a KEY is replaced with it
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.pii_addresses import address_in, is_published_address, looks_like_date
from roots_pipeline.rules.pii_patterns import TAGS, Manner, Tag, pattern_of, ranges_of
from roots_pipeline.text.pii_gate import ADDRESS, AT, KEY, NUMBER, Kinds, kinds_of, pieces_that_pass
from roots_pipeline.text.replacing import replace_spans

_GATES: dict[Tag, int] = {
    "KEY": KEY, "EMAIL": AT, "USER": AT, "IP_ADDRESS": ADDRESS, "ID": NUMBER, "NUMBER": NUMBER,
}  # fmt: skip
_SWITCHES = (
    "replace_everywhere", "narrow_boundaries", "used_up_boundaries", "cut_addresses", "addresses_like_dates",
    "names_take_han", "keep_no_separator",
)  # fmt: skip
# A line that is too long is cut behind one of these.
_CUTS = r"\s,;?![\p{P}&&[^\x00-\x7f]--[\p{Pd}\p{Pc}]]"
_WHERE = "stage 'pii'"
UNREAD = "pii_unread_bytes"


class Match(NamedTuple):
    """Bytes `start` to `stop` of a piece are a tag, by its place in `tags`."""

    start: int
    stop: int
    tag: int


@dataclass(frozen=True, slots=True)
class PersonalInformation(Map):
    """Replaces the `tags` by `PI:KEY` (`style: PI:TAG`) or `<KEY>` (`style: <TAG>`) and counts them by document.

    `as_published` sets all switches to true.
    """

    name: ClassVar[str] = "pii"
    tags: tuple[Tag, ...] = ("KEY", "EMAIL", "USER", "IP_ADDRESS")
    style: Literal["PI:TAG", "<TAG>"] = "PI:TAG"
    longest_piece: int = 8192
    replace_everywhere: bool = False
    narrow_boundaries: bool = False
    used_up_boundaries: bool = False
    cut_addresses: bool = False
    addresses_like_dates: bool = False
    names_take_han: bool = False
    keep_no_separator: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.as_published:
            for switch in _SWITCHES:
                object.__setattr__(self, switch, True)
        if not self.tags or len(set(self.tags)) != len(self.tags):
            raise RecipeError(
                "`tags` must name one or more tags, each once.", where=_WHERE, hint=f"Known: {', '.join(TAGS)}."
            )
        if not 256 <= self.longest_piece <= 1 << 20:
            raise RecipeError(
                f"`longest_piece` is {self.longest_piece}; it must be from 256 to {1 << 20} bytes.", where=_WHERE
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text", *self.measures)

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns of counts: matches of each tag, and bytes that were not looked at."""
        return (*(f"pii_{tag.lower()}" for tag in self.tags), UNREAD)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        counts = np.zeros((len(self.tags), batch.num_rows), np.float64)
        unread = np.zeros(batch.num_rows, np.int64)
        edit = _EveryOccurrence(batch.column("text")) if self.replace_everywhere else _InPlace(data, offsets)
        for text, start, piece, matches in self.matches(data, offsets, unread):
            for match in matches:
                counts[match.tag, text] += 1
            edit.add(text, start, piece, matches)
        columns = (*counts, unread.astype(np.float64))
        new = dict(zip(self.measures, map(pa.array, columns), strict=True))
        if counts.any():
            new["text"] = edit.finish([f"PI:{tag}" if self.style == "PI:TAG" else f"<{tag}>" for tag in self.tags])
        return with_columns(batch, new)

    def matches(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unread: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int, bytes, list[Match]]]:
        """(number of the text, where in the buffer a piece of it begins, the piece, its matches tag by tag).

        Only pieces with matches, in order. `unread[i]` grows by the bytes of text i that were not looked at.
        """
        wanted = 0
        for tag in self.tags:
            wanted |= _GATES[tag]
        for pieces in pieces_that_pass(data, offsets, _kinds(), wanted, self.longest_piece, unread):
            bounds = zip(pieces.start.tolist(), pieces.stop.tolist(), strict=True)
            texts = [data[start:stop].tobytes() for start, stop in bounds]
            found: dict[int, list[Match]] = {}
            for number, tag in enumerate(self.tags):
                chosen = np.flatnonzero(pieces.gates & _GATES[tag]).tolist()
                for piece, start, stop in self._spans(tag, chosen, texts):
                    found.setdefault(piece, []).append(Match(start, stop, number))
            for piece in sorted(found):
                yield int(pieces.text[piece]), int(pieces.start[piece]), texts[piece], found[piece]

    def _spans(self, tag: Tag, chosen: list[int], pieces: list[bytes]) -> Iterator[tuple[int, int, int]]:
        """(number of a chosen piece, first byte, last byte + 1) of each match; all pieces are searched at once."""
        manner = Manner(self.narrow_boundaries, self.used_up_boundaries, self.cut_addresses, self.names_take_han)
        lines = b"\n".join([pieces[number] for number in chosen])
        begins = list(accumulate((len(pieces[number]) + 1 for number in chosen), initial=0))
        for start, stop in pattern_of(tag, manner).spans(lines) if chosen else ():
            match = lines[start:stop]
            if tag == "KEY" and not self.keep_no_separator:
                stop -= _separator_at_end(match)
            elif tag == "IP_ADDRESS" and self.cut_addresses:
                if not is_published_address(match, self.addresses_like_dates):
                    continue
            elif tag == "IP_ADDRESS":
                inside = address_in(match)
                if inside is None or (self.addresses_like_dates and looks_like_date(match[inside[0] : inside[1]])):
                    continue
                start, stop = start + inside[0], start + inside[1]
            elif tag == "ID" and looks_like_date(match):
                continue
            place = bisect_right(begins, start) - 1
            yield chosen[place], start - begins[place], stop - begins[place]


class _InPlace:
    """Puts tags where matches were found."""

    def __init__(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self._data, self._offsets = data, offsets
        self._start, self._stop, self._tag = array("q"), array("q"), array("B")

    def add(self, text: int, start: int, piece: bytes, matches: list[Match]) -> None:
        """Take note of the matches of a piece; pieces come in order."""
        for match in _without_overlaps(matches):
            self._start.append(start + match.start)
            self._stop.append(start + match.stop)
            self._tag.append(match.tag)

    def finish(self, strings: list[str]) -> pa.Array:
        """The texts with `strings[tag]` in the place of matches."""
        start, stop = (np.frombuffer(column, np.int64) for column in (self._start, self._stop))
        tags = np.frombuffer(self._tag, np.uint8)
        return replace_spans(self._data, self._offsets, start, stop, tags, [string.encode() for string in strings])


class _EveryOccurrence:
    """Replaces the strings that matched wherever they occur in the text, as published."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts
        self._strings: dict[int, list[tuple[int, str]]] = {}

    def add(self, text: int, start: int, piece: bytes, matches: list[Match]) -> None:
        """Take note of the matches of a piece; pieces come in order."""
        found = [(match.tag, piece[match.start : match.stop].decode()) for match in matches]
        self._strings.setdefault(text, []).extend(found)

    def finish(self, strings: list[str]) -> pa.Array:
        """The texts with `strings[tag]` in the place of what matched, tag after tag."""
        texts = self._texts.to_pylist()
        for row, found in self._strings.items():
            for tag, string in sorted(found, key=itemgetter(0)):
                texts[row] = texts[row].replace(string, strings[tag])
        return pa.array(texts, pa.large_string())


def _without_overlaps(matches: list[Match]) -> Iterator[Match]:
    """What is to be replaced, from left to right; matches that overlap become one, of the first of their tags."""
    ordered = sorted(matches)
    start, stop, tag = ordered[0]
    for match in ordered[1:]:
        if match.start < stop:
            stop, tag = max(stop, match.stop), min(tag, match.tag)
        else:
            yield Match(start, stop, tag)
            start, stop, tag = match
    yield Match(start, stop, tag)


def _separator_at_end(match: bytes) -> int:
    """Bytes of the space or dash at the end of a match; 0 if there is none."""
    return next((len(separator) for separator in _separators() if match.endswith(separator)), 0)


@lru_cache(maxsize=1)
def _separators() -> tuple[bytes, ...]:
    """The space and the dashes of all scripts."""
    codes = (code for first, last in ranges_of(r"\p{Pd}") for code in range(first, last + 1))
    return (b" ", *(chr(code).encode() for code in codes))


@lru_cache(maxsize=1)
def _kinds() -> Kinds:
    def codes(members: str) -> tuple[int, ...]:
        return tuple(code for first, last in ranges_of(members) for code in range(first, last + 1))

    return kinds_of(codes(r"\p{Nd}"), codes(r"\p{Pd}"), codes(_CUTS))
