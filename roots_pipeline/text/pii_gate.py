# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which parts of texts may hold personal information: what every match must have, checked in one scan.

The exact patterns are looked for in the pieces that pass. A piece is a line; a longer line is cut behind a character of
which the caller says that it bounds matches on both sides. A run without any of them that is longer than a piece may be
is left out, and counted, so the work on a piece is bounded.

What passes, of the runs of characters a match consists of:
`AT`         an `@` with something behind it
`ADDRESS`    hexadecimal digits, `:`, `.` with a digit and three dots behind digits, seven colons, `::` or `:%`
`KEY`        four pairs of letters and joints (digits, dashes, `/ + = : _`), in either order, but letters not behind an
             underscore; or capitals, digits, dashes and spaces with three of: three digits, a change between capital
             and digit
`NUMBER`     six digits of any script in the piece
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from string import ascii_letters, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.memory import kernel

AT, ADDRESS, KEY, NUMBER = 1, 2, 4, 8

_ROOM = 1 << 12  # pieces that one call of the kernel can return
_BYTES = 1 << 20  # and about how many bytes they have: what is found in them must fit into memory
_MANY = 7  # as good as so many colons

# Kinds of characters.
_PLAIN, _DIGIT, _OTHER_DIGIT, _DASH, _JOINT, _COLON, _UNDERSCORE, _DOT, _PERCENT, _AT, _NEWLINE, _LONG = range(12)
# What plain ones are; a long one is none of it.
_LETTER, _CAPITAL, _HEX, _SPACE = 1, 2, 4, 8
_NONE, _LETTERS, _JOINTS = range(3)


class Kinds(NamedTuple):
    """What each byte and each code point is."""

    of_byte: Any  # uint8[256]: its kind; _LONG: look at the character
    nature: Any  # uint8[256]: what a plain byte is
    of_code: Any  # uint8[0x110000]: the kind of a character
    cuts: Any  # bool[0x110000]: whether a piece may end behind it


class Pieces(NamedTuple):
    """Parts of the texts that passed: byte `start[i]` up to `stop[i]` of text `text[i]` passed `gates[i]`."""

    text: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    gates: npt.NDArray[np.uint8]


@lru_cache(maxsize=4)
def kinds_of(digits: tuple[int, ...], dashes: tuple[int, ...], cuts: tuple[int, ...]) -> Kinds:
    """The tables. `digits` and `dashes` are those of all scripts; a piece may end behind one of `cuts`."""
    of_code = np.full(0x110000, _PLAIN, np.uint8)
    of_code[list(digits)], of_code[list(dashes)] = _OTHER_DIGIT, _DASH
    for characters, kind in (
        ("0123456789", _DIGIT), ("-", _DASH), ("/+=", _JOINT), (":", _COLON), ("_", _UNDERSCORE), (".", _DOT),
        ("%", _PERCENT), ("@", _AT), ("\n", _NEWLINE),
    ):  # fmt: skip
        of_code[[ord(character) for character in characters]] = kind
    of_byte, nature = np.full(256, _PLAIN, np.uint8), np.zeros(256, np.uint8)
    of_byte[:0x80] = of_code[:0x80]
    for code in (code for code in (*digits, *dashes) if code >= 0x80):
        of_byte[chr(code).encode()[0]] = _LONG
    for characters, kind in (
        (ascii_letters, _LETTER), (ascii_uppercase, _CAPITAL), ("abcdefABCDEF", _HEX), (" ", _SPACE)
    ):  # fmt: skip
        nature[[ord(character) for character in characters]] |= kind
    may_cut = np.zeros(0x110000, np.bool_)
    may_cut[list(cuts)] = True
    return Kinds(of_byte, nature, of_code, may_cut)


def pieces_that_pass(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    kinds: Kinds,
    wanted: int,
    longest: int,
    unread: npt.NDArray[np.int64],
) -> Iterator[Pieces]:
    """Yields `Pieces` until all texts are through; `unread[i]` grows by the bytes of text i that were left out.

    `wanted` are the gates asked for, `longest` is the bytes a piece may have.
    """
    text, place = 0, int(offsets[0])
    while text < len(offsets) - 1:
        columns = [np.empty(_ROOM, np.int64) for _ in range(3)]
        found = Pieces(columns[0], columns[1], columns[2], np.empty(_ROOM, np.uint8))
        text, place, count = _scan(data, offsets, kinds, wanted, longest, unread, text, place, found)
        if count:
            yield Pieces(found.text[:count], found.start[:count], found.stop[:count], found.gates[:count])


@kernel
def _scan(data, offsets, kinds, wanted, longest, unread, text, i, found):
    """Fill `found` from byte i of `text` on; returns where to go on (text, byte) and how many pieces there are."""
    count = size = 0
    texts = offsets.size - 1
    while text < texts:
        end = offsets[text + 1]
        while i < end:
            if count == found.text.size or size >= _BYTES:
                return text, i, count
            start = i
            i, passed, read = _piece(data, i, end, kinds, longest)
            if not read:
                unread[text] += i - start
            elif passed & wanted:
                found.text[count] = text
                found.start[count] = start
                found.stop[count] = i - (data[i - 1] == 10)  # the newline is no part of it
                found.gates[count] = passed & wanted
                count += 1
                size += i - start
        text += 1
        if text < texts:
            i = offsets[text]
    return text, i, count


@kernel
def _piece(data, i, end, kinds, longest):
    """(where the piece from byte i ends, what it passes, whether it is to be read)."""
    start, limit = i, min(end, i + longest)
    passed = digits = 0
    # Of a key of letters and joints: the last character; pairs so far; characters of the run of letters or joints that
    # we are in, and whether one of them belongs to a pair already; whether the last joint can be before letters.
    mixture, pairs, stretch, spent, joins = _NONE, 0, 0, False, False
    run, parts, after_capital = 0, 0, False  # of a key of capitals and digits
    colons = dots = previous = 0  # of an address
    has_digit = False
    while i < limit:
        kind, length = kinds.of_byte[data[i]], 1
        if kind == _LONG:
            code, length = decode(data, i, end)
            kind = kinds.of_code[code]
        if kind == _PLAIN:
            nature = kinds.nature[data[i]]
            every, some, last = _LETTER | _CAPITAL | _HEX | _SPACE, 0, 0
            if mixture == _JOINTS:
                spent = joins and nature & _LETTER != 0 and (not spent or stretch > 1)
                pairs += spent
            else:
                spent = False
            parts += run > 0 and nature & _CAPITAL != 0
            if pairs >= 4 or parts >= 3:
                passed |= KEY
            begin = i
            all_fit = True  # all are capitals or spaces
            while True:
                every &= nature
                some |= nature
                all_fit &= nature & (_CAPITAL | _SPACE) != 0
                last = nature
                i += length
                length = 1
                if i >= limit or kinds.of_byte[data[i]] != _PLAIN:
                    break
                nature = kinds.nature[data[i]]
            stretch = i - begin
            if not every & _LETTER:
                pairs, spent = 0, False
            mixture = _LETTERS if last & _LETTER else _NONE
            if not all_fit:
                parts = 0
            run, after_capital = 0, last & _CAPITAL != 0
            if not every & _HEX:
                colons, dots, has_digit = 0, 0, False
            previous = _PLAIN
            continue
        i += length
        if kind == _NEWLINE:
            return i, passed, True
        if kind in (_DIGIT, _OTHER_DIGIT):
            digits += 1
            run += 1
            parts += after_capital + (run % 3 == 0)
        else:
            run = 0
            if kind != _DASH:
                parts = 0
        after_capital = False
        if kind <= _UNDERSCORE:
            if mixture == _JOINTS:
                stretch += 1
            else:
                spent = mixture == _LETTERS and (not spent or stretch > 1)
                pairs += spent
                mixture, stretch = _JOINTS, 1
            joins = kind != _UNDERSCORE
        else:
            mixture, pairs = _NONE, 0
        if pairs >= 4 or parts >= 3:
            passed |= KEY
        if digits >= 6:
            passed |= NUMBER
        if kind == _DIGIT:
            has_digit = True
        elif kind == _COLON:
            colons += _MANY if previous == _COLON else 1
        elif kind == _DOT:
            dots += previous == _DIGIT
        elif kind == _PERCENT and previous == _COLON:
            colons += _MANY
        else:
            colons, dots, has_digit = 0, 0, False
        if has_digit and (dots >= 3 or colons >= 7):
            passed |= ADDRESS
        if kind == _AT and i < end and data[i] > 0x20:
            passed |= AT
        previous = kind
    if i >= end:
        return i, passed, True
    cut = _last_cut(data, start, i, end, kinds)
    if cut > start:
        return cut, passed, True
    return _next_cut(data, i, end, kinds), 0, False


@kernel
def _last_cut(data, start, i, end, kinds):
    """Behind the last character of `data[start:i]` that may end a piece; `start` if there is none."""
    while i > start:
        first = i - 1
        while first > start and data[first] & 0xC0 == 0x80:
            first -= 1
        if kinds.cuts[decode(data, first, end)[0]]:
            return i
        i = first
    return start


@kernel
def _next_cut(data, i, end, kinds):
    """Behind the next character from byte i on that may end a piece; i may be inside a character."""
    while i < end and data[i] & 0xC0 == 0x80:
        i += 1
    while i < end:
        code, length = decode(data, i, end)
        i += length
        if kinds.cuts[code]:
            break
    return i
