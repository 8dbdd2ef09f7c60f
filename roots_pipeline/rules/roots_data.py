"""What the filters of ROOTS take as given: special characters, spaces, and settings by language, from `rules/data`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from roots_pipeline.rules.columns import DEFAULT
from roots_pipeline.rules.presets import load_data


@dataclass(frozen=True, slots=True)
class LanguageSettings:
    """One language of `data/roots_parameters.yaml`, where each key is explained."""

    longest_word: int | None
    pieces: bool
    character_ngram: int
    word_ngram: int
    groups: tuple[int, ...]
    groups_of_paper: tuple[int, ...]
    joint: str


@lru_cache
def settings_of(language: str) -> LanguageSettings:
    """The settings of a language by its code, those of `default` where it has none."""
    table = load_data("roots_parameters")
    entry = {**table[DEFAULT], **table.get(language, {})}
    return LanguageSettings(
        longest_word=entry["longest_word"],
        pieces=entry["words"] == "pieces",
        character_ngram=entry["character_ngram"],
        word_ngram=entry["word_ngram"],
        groups=tuple(entry["groups"]),
        groups_of_paper=tuple(entry.get("groups_of_paper", entry["groups"])),
        joint=entry["joint"],
    )


@lru_cache
def special_characters(with_letters: bool) -> frozenset[int]:
    """The special characters by code point; by option with the letters that the published set has among them."""
    groups = load_data("roots_special_characters")
    chosen = [ranges for name, ranges in groups.items() if with_letters or name != "letters"]
    return frozenset(code for ranges in chosen for code in _codes(ranges.split()))


def _codes(ranges: Sequence[str]) -> list[int]:
    codes: list[int] = []
    for entry in ranges:
        first, _, last = entry.partition("-")
        codes.extend(range(int(first, 16), int(last or first, 16) + 1))
    return codes


@lru_cache
def space_like() -> frozenset[int]:
    """The code points that become a space."""
    return frozenset(load_data("roots_normalisation")["spaces"])


@lru_cache
def unwanted_in_words() -> tuple[str, ...]:
    """Words that contain one of these strings are removed."""
    return tuple(load_data("roots_normalisation")["unwanted"])
