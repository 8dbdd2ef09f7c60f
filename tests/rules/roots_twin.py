"""The published procedure of the ROOTS filters in plain Python, one document at a time, as the kernels must have it.

Defines what is right; `switches` are those of the stages, all as published unless told otherwise. Slow on purpose: no
step is merged with another.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from roots_pipeline.rules.presets import load_data

Encode = Callable[[str], list[str]]

ASCII_SPACES = "\t\n\v\f\r "
LINE_ENDS = "\r\v\f\x85\u2028\u2029"


@lru_cache
def special_characters(letters: bool = True) -> frozenset[str]:
    """The set, from its data file."""
    found: set[str] = set()
    for name, ranges in load_data("roots_special_characters").items():
        if name == "letters" and not letters:
            continue
        for entry in ranges.split():
            first, last = (entry.split("-") * 2)[:2]
            found.update(map(chr, range(int(first, 16), int(last, 16) + 1)))
    return frozenset(found)


def built_in_stop_words(language: str) -> list[str] | None:
    """The stop words that the stage takes without a file, in the shape of words."""
    words = load_data("stop_words").get(language)
    return None if words is None else words.split()


def language_settings(language: str) -> dict[str, Any]:
    table = load_data("roots_parameters")
    return {**table["default"], **table.get(language, {})}


def strip_special(word: str, special: frozenset[str]) -> str:
    while word and word[0] in special:
        word = word[1:]
    while word and word[-1] in special:
        word = word[:-1]
    return word


def modify(text: str, language: str, **switches: bool) -> str:
    """The text that the filters look at and that is kept."""
    published = {
        "letters_are_special": True, "case_matters": True, "ends_are_ignored": True,
        "only_newlines": True, "trim_once": True,
    } | switches  # fmt: skip
    special = special_characters(published["letters_are_special"])
    data = load_data("roots_normalisation")
    text = text.strip()
    for code in data["spaces"]:
        text = text.replace(chr(code), " ")
    if not published["only_newlines"]:
        for character in LINE_ENDS:
            text = text.replace(character, "\n")
    if not published["trim_once"]:
        text = text.strip(" ")
    longest = language_settings(language)["longest_word"]
    if longest is None:
        return text

    def is_kept(word: str) -> bool:
        stripped = strip_special(word, special)
        seen = stripped if published["ends_are_ignored"] else word
        for string in data["unwanted"]:
            if string in seen or (not published["case_matters"] and string in ascii_lower(seen)):
                return False
        return bool(len(word) <= longest or 0 < len(stripped) <= longest)

    lines = []
    for line in text.split("\n"):
        fields = []
        for field in line.split("\t"):
            words = [word for word in field.split(" ") if word and is_kept(word)]
            if words:
                fields.append(" ".join(words))
        if fields:
            lines.append("\t".join(fields))
    return "\n".join(lines)


def ascii_lower(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)


def normalise(text: str, lower_case: bool, glue_lines: bool = True) -> str:
    """The normal form for SentencePiece and KenLM."""
    data = load_data("roots_normalisation")
    if not glue_lines:
        text = "".join(" " if character in "\t\n\v\f\r\x85" else character for character in text)
    text = "".join(character for character in text if unicodedata.category(character) != "Cc").strip()
    if lower_case:
        text = text.lower()
    for code in data["spaces"]:
        text = text.replace(chr(code), " ")
    text = "".join("0" if unicodedata.category(character) == "Nd" else character for character in text)
    for character, replacement in data["punctuation"].items():
        text = text.replace(character, replacement)
    return text


def single_characters(text: str) -> list[str]:
    """What stands in for a tokenizer: a piece for each character."""
    return ["▁" if character == " " else character for character in text]


def words_of(
    text: str, special: frozenset[str], encode: Encode | None = None, lower_case: bool = True, glue_lines: bool = True
) -> list[str]:
    if encode is None:
        words = [word for line in text.split("\n") for field in line.split("\t") for word in field.split(" ")]
    else:
        words = encode(normalise(text, True, glue_lines))
    if lower_case:
        words = [word.lower() for word in words]
    return [stripped for word in words if (stripped := strip_special(word, special))]


def character_repetition(text: str, size: int, paper: bool = False) -> float:
    counts = Counter(text[start : start + size] for start in range(len(text) - size + 1))
    if not counts:
        return 0
    k = math.isqrt(len(counts))
    if not paper:
        k = min(k, sum(count > 1 for count in counts.values()))
    return sum(sorted(counts.values(), reverse=True)[:k]) / counts.total()


def word_repetition(words: Sequence[str], size: int) -> float:
    counts = Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
    if not counts:
        return 0
    return sum(count for count in counts.values() if count > 1) / counts.total()


def listed_ratio(words: Sequence[str], entries: Iterable[str], groups: Sequence[int], joint: str) -> float:
    if not words:
        return 0
    entries = set(entries)
    candidates = list(words)
    for size in groups:
        candidates += [joint.join(words[start : start + size]) for start in range(len(words) - size + 1)]
    return min(sum(word in entries for word in candidates) / len(words), 1.0)


def measures(
    text: str,
    language: str,
    stop: Iterable[str] | None,
    flagged: Iterable[str] | None,
    encode: Encode | None = None,
    letters_are_special: bool = True,
    glue_lines: bool = True,
    paper: bool = False,
) -> dict[str, float | None]:
    """All measures of a document."""
    settings = language_settings(language)
    special = special_characters(letters_are_special)
    if settings["words"] == "pieces":
        encode = encode or single_characters
    words = words_of(text, special, encode, glue_lines=glue_lines)
    groups = settings.get("groups_of_paper", settings["groups"]) if paper else settings["groups"]

    def ratio(entries: Iterable[str] | None) -> float | None:
        return None if entries is None else listed_ratio(words, entries, groups, settings["joint"])

    return {
        "number_of_words": len(words_of(text, special, encode, lower_case=False, glue_lines=glue_lines)),
        "character_repetition_ratio": character_repetition(text, settings["character_ngram"], paper),
        "word_repetition_ratio": word_repetition(words, settings["word_ngram"]),
        "special_character_ratio": sum(map(special.__contains__, text)) / len(text) if text else 0,
        "stop_word_ratio": ratio(stop),
        "flagged_word_ratio": ratio(flagged),
    }
