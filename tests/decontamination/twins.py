"""What the kernels and the stage compute, in plain Python on strings: slow, and the definition of what is right."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roots_pipeline.text.characters import UNSPACED_BLOCKS
from roots_pipeline.text.contamination_characters import NO_BORDER, fold

MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,15}(?:[\0- ][^<>]*|/)?>|&#?[A-Za-z0-9]{1,16};")
LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


class Word(NamedTuple):
    """A folded word; the size is in words."""

    text: str
    size: float
    letter: bool
    characters: int
    border: bool  # a border, or the start of the text, is before it
    start: int  # bytes
    stop: int


def is_word_character(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM" and fold(character) != ""


def is_ignored(character: str) -> bool:
    category = unicodedata.category(character)
    return category == "Cf" or (category[0] in "LNM" and fold(character) == "")


def is_border(character: str) -> bool:
    return character in LINE_BREAKS or (unicodedata.category(character)[0] in "PS" and character not in NO_BORDER)


def size_of(character: str) -> float:
    """Size of a character that is a word of its own, 0 for all others."""
    category = unicodedata.category(character)
    if not (category[0] == "L" or category == "Nl"):
        return 0
    if not any(first <= ord(character) <= last for first, last in UNSPACED_BLOCKS):
        return 0
    return 1 / 2 if is_han(character) else 1 / 4


def is_han(character: str) -> bool:
    return unicodedata.name(character, "").startswith(("CJK", "IDEOGRAPHIC"))


def words_of(text: str) -> list[Word]:
    """The words of a text."""
    words: list[Word] = []
    border, at = True, 0
    current: list[str] = []
    start = stop = 0
    size = 0.0
    before = True

    def close() -> None:
        nonlocal current
        if current:
            marks = [part for part in current if unicodedata.category(part)[0] == "M"]
            lengths = sum(3 if size_of(part) == 1 / 2 else 1 for part in current) - len(marks)
            words.append(Word("".join(map(fold, current)), size,
                              any(unicodedata.category(part)[0] == "L" for part in current), lengths, before, start,
                              stop))
        current = []

    skipped = 0  # characters of markup still to be passed over
    for place, character in enumerate(text):
        width = len(character.encode())
        if skipped:
            skipped -= 1
        elif is_word_character(character):
            alone = size_of(character)
            mark = unicodedata.category(character)[0] == "M"
            if current and (alone or (size < 1 and not mark)):
                close()
                border = False
            if not current:
                start, before, size, border = at, border, alone or 1.0, False
            current.append(character)
            stop = at + width
        elif is_ignored(character):
            stop = at + width
        else:
            close()
            border = border or is_border(character)
            markup = MARKUP.match(text, place)
            skipped = len(markup[0]) - 1 if markup else 0
        at += width
    close()
    return words


def ends_in_border(text: str, words: Sequence[Word], count: int) -> bool:
    """Whether a border, or the end of the text, is behind the first `count` words."""
    if count == len(words):
        return True
    return words[count].border


@dataclass(frozen=True)
class Settings:
    """The settings of the stage that matter here."""

    ngram: int
    threshold: float
    long_match: float
    common_items: int
    common_documents: int
    short_minimum: float
    short_anywhere: float
    anywhere_characters: int


class PlainItem:
    """An item of a set: its words, what its n-grams are worth, whether it is looked for as a whole."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.words = name, words_of(text)
        self.texts = tuple(word.text for word in self.words)
        self.size = sum(word.size for word in self.words)
        self.weights: list[float] = []
        self.short = False


def index_of(sets: Sequence[tuple[str, Sequence[tuple[str, str]]]], own: Settings) -> list[PlainItem]:
    """The items that can be found."""
    found: list[PlainItem] = []
    for name, entries in sets:
        items, seen = [], set()
        for item_id, text in entries:
            item = PlainItem(f"{name}/{item_id}", text)
            if item.texts and item.texts not in seen:
                items.append(item)
            seen.add(item.texts)
        long = [item for item in items if item.size >= own.ngram]
        having = Counter(gram for item in long for gram in set(grams_of(item.texts, own.ngram)))
        for item in long:
            for at, gram in enumerate(grams_of(item.texts, own.ngram)):
                worth = having[gram] <= own.common_items and varied(item.words[at : at + own.ngram])
                item.weights.append(1 / having[gram] if worth else 0.0)
            if any(item.weights):
                found.append(item)
        for item in items:
            if (item.size < own.ngram and item.size >= own.short_minimum and varied(item.words)
                    and sum(word.characters for word in item.words) >= 25):
                item.short = True
                found.append(item)
    return found


def varied(words: Sequence[Word]) -> bool:
    return len({word.text for word in words if word.letter}) >= 4


def grams_of(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def holds_whole(text: str, item: PlainItem, own: Settings) -> bool:
    """Whether a text has a short item."""
    words = words_of(text)
    for at, gram in enumerate(grams_of([word.text for word in words], len(item.texts))):
        if gram == item.texts:
            bounded = words[at].border and ends_in_border(text, words, at + len(gram))
            characters = sum(word.characters for word in item.words)
            if item.size >= own.short_anywhere or characters >= own.anywhere_characters > 0 or bounded:
                return True
    return False


def cover(item: PlainItem, has: Sequence[bool], weights: Sequence[float], ngram: int) -> tuple[float, float]:
    """(words covered, longest run)."""
    covered = longest = run = 0.0
    for at, word in enumerate(item.words):
        best = max((weights[gram] for gram in range(max(0, at - ngram + 1), min(at, len(weights) - 1) + 1)
                    if has[gram]), default=0.0)
        covered += best * word.size
        run = run + best * word.size if best > 0 else 0.0
        longest = max(longest, run)
    return covered, longest


class Outcome(NamedTuple):
    """What the stage says about a document."""

    overlap: float
    items: list[str]


def decontaminate(
    sets: Sequence[tuple[str, Sequence[tuple[str, str]]]], texts: Sequence[str], own: Settings
) -> list[Outcome]:
    """The outcome for each document."""
    raw: list[list[float]] = [[] for _ in texts]
    final: list[list[tuple[float, float, int, str]]] = [[] for _ in texts]  # of items that had a chance
    guilty: list[list[tuple[float, float, int, str]]] = [[] for _ in texts]
    document_grams = [set(grams_of([word.text for word in words_of(text)], own.ngram)) for text in texts]
    order = {item: number for number, item in enumerate(_in_order(sets, own))}
    for item, number in order.items():
        if item.short:
            holders = [place for place, text in enumerate(texts) if holds_whole(text, item, own)]
            common = 0 < own.common_documents < len(holders)
            for place in holders:
                entry = (0.0, 0.0, number, item.name) if common else (-1.0, -item.size, number, item.name)
                final[place].append(entry)
                if not common:
                    guilty[place].append(entry)
            continue
        grams = grams_of(item.texts, own.ngram)
        has = [[gram in found and weight > 0 for gram, weight in zip(grams, item.weights, strict=True)]
               for found in document_grams]
        total, _ = cover(item, [True] * len(grams), item.weights, own.ngram)
        shares = [cover(item, marks, item.weights, own.ngram) for marks in has]
        quoting: Counter[tuple[str, ...]] = Counter()
        for marks, (covered, _) in zip(has, shares, strict=True):
            if covered / total < 0.8:
                quoting.update({gram for gram, mark in zip(grams, marks, strict=True) if mark})
        weights = [0.0 if 0 < own.common_documents < quoting[gram] else weight
                   for gram, weight in zip(grams, item.weights, strict=True)]
        left, _ = cover(item, [True] * len(grams), weights, own.ngram)
        new_total = max(left, total / 2)
        for place, (marks, (covered, run)) in enumerate(zip(has, shares, strict=True)):
            if not any(marks):
                continue
            raw[place].append(min(1.0, covered / total))
            if covered / total >= own.threshold / 2 - 1e-6 or (own.long_match and run >= own.long_match - 1e-6):
                new_covered, new_run = cover(item, marks, weights, own.ngram)
                overlap = min(1.0, new_covered / new_total)
                entry = (-overlap, -overlap * new_total, number, item.name)
                final[place].append(entry)
                if (overlap > 0 and overlap >= own.threshold) or (own.long_match and new_run >= own.long_match):
                    guilty[place].append(entry)
    return [
        Outcome(-min(final[place])[0] if final[place] else max(raw[place], default=0.0),
                [entry[3] for entry in sorted(guilty[place])])
        for place in range(len(texts))
    ]


def _in_order(sets: Sequence[tuple[str, Sequence[tuple[str, str]]]], own: Settings) -> list[PlainItem]:
    names = {f"{name}/{item_id}": number for number, (name, item_id) in enumerate(
        (name, item_id) for name, entries in sets for item_id, _ in entries)}
    return sorted(index_of(sets, own), key=lambda item: names[item.name])
