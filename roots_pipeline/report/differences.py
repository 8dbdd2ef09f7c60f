"""Two texts laid over each other: what both hold, and what only one does.

`compare` is for the beginnings of two similar documents, word by word; it takes time that grows with the square of
their words, so it cuts them first. `cuts_between` is for a text and what is left of it after passages were cut out; it
takes one pass, however long they are.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

# Scripts without spaces between words are compared letter by letter.
_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|[\p{L}\p{M}\p{N}_]+|.", regex.DOTALL)
_ANCHOR = 24  # characters after a cut by which its end is found
_CUTS = 1000

Kind = Literal["same", "own", "cut", "left out"]


class Piece(NamedTuple):
    """A stretch of text. `own`: only this text of two has it; `cut`: taken out; `left out`: not shown, for brevity."""

    text: str
    kind: Kind


def compare(left: str, right: str, words: int = 300) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The beginnings of two texts, each with what the other does not have marked as its own."""
    sides: list[list[str]] = [_WORD.findall(text[: 20 * words])[:words] for text in (left, right)]
    matcher = SequenceMatcher(None, sides[0], sides[1], autojunk=False)
    shown: tuple[list[Piece], list[Piece]] = ([], [])
    for tag, *ends in matcher.get_opcodes():
        for side, pieces, (begin, end) in zip(sides, shown, (ends[:2], ends[2:]), strict=True):
            if begin < end:
                pieces.append(Piece("".join(side[begin:end]), "same" if tag == "equal" else "own"))
    for text, pieces in zip((left, right), shown, strict=True):
        if len(text) > sum(len(piece.text) for piece in pieces):
            pieces.append(Piece("…", "left out"))
    return tuple(shown[0]), tuple(shown[1])


def cuts_between(original: str, left: str) -> list[tuple[int, int]] | None:
    """The stretches of `original` without which it is `left`; None if it is not what is left of it after few cuts."""
    source, rest = _codes(original), _codes(left)
    cuts: list[tuple[int, int]] = []
    at = done = 0  # in the original and in what is left
    while len(cuts) <= _CUTS:
        same = _common(source[at:], rest[done:])
        at, done = at + same, done + same
        if done == len(rest):
            return [*cuts, (at, len(source))] if at < len(source) else cuts
        if len(source) - at == len(rest) - done:
            return None
        end = original.find(left[done : done + _ANCHOR], at + 1)
        if end < 0:
            return None
        cuts.append((at, end))
        at = end
    return None


def around_cuts(original: str, cuts: list[tuple[int, int]], context: int = 160, most: int = 4) -> tuple[Piece, ...]:
    """The first cuts of a text, with what stands around them; long stretches are left out in the middle."""
    pieces: list[Piece] = []
    at = 0
    for begin, end in cuts[:most]:
        pieces += [*_shortened(original[at:begin], "same", context, first=at == 0),
                   *_shortened(original[begin:end], "cut", 2 * context, first=False)]
        at = end
    tail = original[at : at + context]
    pieces += [Piece(tail, "same")] if tail else []
    if at + context < len(original):
        pieces.append(Piece("…", "left out"))
    return tuple(pieces)


def _shortened(text: str, kind: Kind, context: int, *, first: bool) -> list[Piece]:
    if not text:
        return []
    if first and len(text) > context:
        return [Piece("…", "left out"), Piece(text[-context:], kind)]
    if len(text) <= 2 * context:
        return [Piece(text, kind)]
    return [Piece(text[:context], kind), Piece("…", "left out"), Piece(text[-context:], kind)]


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _common(left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]) -> int:
    """Length of the common beginning."""
    size = min(len(left), len(right))
    different = left[:size] != right[:size]
    return int(different.argmax()) if different.any() else size
