"""Plain-Python twins of the tokenizer's kernels: slow, obvious, and what is right by definition.

Integers have no limit here, so the twin of the trainer also says what counts beyond 2^32 and 2^53 must do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

SEPARATORS = frozenset(
    "\t\n\v\f\r !(),.?|\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000،।۔…、。，"
)
SPECIALS = (b"<unk>", b"<s>", b"</s>", b"<pad>")


def byte_order() -> list[int]:
    """The bytes in the order of their ids: printable ones first, then those that borrow other characters."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return printable + [byte for byte in range(256) if byte not in printable]


def split(text: str) -> list[str]:
    """Pieces by going through the characters."""
    pieces: list[str] = []
    place = 0
    while place < len(text):
        end = place + (text[place] == " " and text[place + 1 : place + 2] not in SEPARATORS | {""})
        while end < len(text) and text[end] not in SEPARATORS:
            end += 1
        if end == place:
            while end < len(text) and text[end] in SEPARATORS:
                if text[end] == " " and text[end + 1 : end + 2] not in SEPARATORS | {""}:
                    break
                end += 1
        pieces.append(text[place:end])
        place = end
    return pieces


def pair_counts(words: Mapping[tuple[int, ...], int]) -> Counter[tuple[int, int]]:
    """How often each pair of neighbours occurs, overlapping ones included."""
    counts: Counter[tuple[int, int]] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            counts[pair] += count
    return counts


def replace(word: tuple[int, ...], pair: tuple[int, int], new: int) -> tuple[int, ...]:
    """The word with the pair replaced from left to right."""
    out: list[int] = []
    place = 0
    while place < len(word):
        if word[place : place + 2] == pair:
            out.append(new)
            place += 2
        else:
            out.append(word[place])
            place += 1
    return tuple(out)


def train(
    pieces: Mapping[bytes, int], vocab_size: int, minimum_frequency: int = 0, max_token_length: int | None = None
) -> tuple[list[bytes], list[tuple[int, int]]]:
    """(tokens by id, merges) of byte-level BPE, counting every pair anew for every merge."""
    tokens = [*SPECIALS, *(bytes([byte]) for byte in byte_order())]
    ids = {token: number for number, token in enumerate(tokens)}
    words = Counter({tuple(ids[piece[i : i + 1]] for i in range(len(piece))): n for piece, n in pieces.items()})
    merges: list[tuple[int, int]] = []
    refused: set[tuple[int, int]] = set()
    while len(tokens) < vocab_size:
        candidates = []
        for (left, right), count in pair_counts(words).items():
            length = len(tokens[left]) + len(tokens[right])
            too_long = max_token_length is not None and length > 2 and length >= max_token_length
            if count > 0 and not too_long and (left, right) not in refused:
                candidates.append((-count, left, right))
        if not candidates or -min(candidates)[0] < minimum_frequency:
            break
        _, left, right = min(candidates)
        token = tokens[left] + tokens[right]
        if token in SPECIALS:
            refused.add((left, right))
            continue
        assert token not in ids, "no token can be made twice"
        ids[token] = len(tokens)
        tokens.append(token)
        merges.append((left, right))
        merged: Counter[tuple[int, ...]] = Counter()
        for word, count in words.items():
            merged[replace(word, (left, right), ids[token])] += count
        words = merged
    return tokens, merges


def encode(piece: bytes, tokens: Sequence[bytes], ranks: Mapping[tuple[int, int], tuple[int, int]]) -> list[int]:
    """Ids of one piece: while any two neighbours merge, merge the pair of lowest rank, the leftmost first."""
    ids = [tokens.index(piece[i : i + 1]) for i in range(len(piece))]
    while True:
        known = [(ranks[pair], place) for place, pair in enumerate(pairwise(ids)) if pair in ranks]
        if not known:
            return ids
        (_, new), place = min(known)
        ids[place : place + 2] = [new]
