"""The measures behind the quality filter and the repetition removal of MassiveText (Gopher paper, appendix A.1.1).

    text, language ──▶ 21 columns of numbers, one pass over the text; `thresholds` turns them into verdicts

What the paper leaves open is settled here:

- Words are what white space separates. In the scripts named in `words` as `characters`, each letter is a word.
- Lines are those with a word in them; paragraphs are separated by empty lines. Both are compared word by word.
- A duplicate is the second and every later copy; with `count_first_copy` the first copy of what repeats counts too.
- Fractions of characters are of the characters that are not white space, and count each character once, so that
  overlapping n-grams add nothing twice and no fraction exceeds 1. A top n-gram occurs at least twice.
- Stop words count once each, as written, capitalised or in upper case. A language without a list has no count (null).
- An ellipsis is `…` or three dots. A bullet line starts with one of `bullets`.

`convention: datatrove` takes the measures as datatrove 0.10 does in its Gopher filters (`text.datatrove_convention`),
with its bullets and its set of punctuation, and stop words as written only.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import by_code, encode_languages
from roots_pipeline.rules.presets import load_data
from roots_pipeline.text.characters import Classes, character_classes
from roots_pipeline.text.datatrove_convention import measure_as_datatrove
from roots_pipeline.text.measures import MEASURES, measure_quality_and_repetition
from roots_pipeline.text.stop_words import StopWords, stop_words
from roots_pipeline.text.words import CHARACTERS, SPACED

Words = Literal["whitespace", "characters"]
Convention = Literal["paper", "datatrove"]

UNSPACED_LANGUAGES = ("ja", "km", "lo", "my", "th", "zh", "zht")
PAPER_BULLETS = "•‣⁃◦▪▫●○■□◆◇►▶➤✓✔·・*-–—"
DATATROVE_BULLETS = "•-"


@dataclass(frozen=True, slots=True)
class MassiveText(Map):
    """Adds the measures of `text.measures.MEASURES` as float64 columns.

    `words` and `stop_words` are by language and add to the built-in ones; an empty list of stop words takes a
    language's list away. `bullets` left empty are those of the convention.
    """

    name: ClassVar[str] = "massivetext"
    convention: Convention = "paper"
    count_first_copy: bool = False
    bullets: str = ""
    words: dict[str, Words] = field(default_factory=dict)
    stop_words: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        built_in: dict[str, Words] = dict.fromkeys(UNSPACED_LANGUAGES, "characters")
        lists = {language: words.split() for language, words in load_data("stop_words").items()}
        object.__setattr__(self, "words", built_in | by_code(self.words))
        object.__setattr__(self, "stop_words", lists | by_code(self.stop_words))
        if not self.bullets:
            bullets = PAPER_BULLETS if self.convention == "paper" else DATATROVE_BULLETS
            object.__setattr__(self, "bullets", bullets)
        for language, setting in self.words.items():
            if setting not in ("whitespace", "characters"):
                raise RecipeError(
                    f"words of '{language}' are '{setting}'; they can be 'whitespace' or 'characters'.",
                    where="stage 'massivetext'",
                )
        if self.convention == "datatrove" and self.count_first_copy:
            raise RecipeError(
                "`count_first_copy` is not part of datatrove's convention.",
                where="stage 'massivetext'",
                hint="Leave it out, or use `convention: paper`.",
            )
        self._stop_words()

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        return MEASURES

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        languages, rows = encode_languages(batch.column("language"))
        listed = list(self.stop_words)
        settings = np.array([self._setting(language) for language in languages], np.uint8)[rows]
        places = [listed.index(language) if self.stop_words.get(language) else -1 for language in languages]
        lists, stops = np.array(places, np.int64)[rows], self._stop_words()
        if self.convention == "paper":
            classes = character_classes(self.bullets)
            measures = measure_quality_and_repetition(
                data, offsets, classes, settings, lists, stops, self.count_first_copy
            )
        else:
            classes = _datatrove_classes(self.bullets)
            measures = measure_as_datatrove(data, offsets, classes, settings, lists, stops)
        return with_columns(
            batch, {name: pa.array(row, mask=np.isnan(row)) for name, row in zip(MEASURES, measures, strict=True)}
        )

    def _setting(self, language: str) -> int:
        return CHARACTERS if self.words.get(language) == "characters" else SPACED

    def _stop_words(self) -> StopWords:
        spelled = _as_written if self.convention == "datatrove" else _spellings
        key = tuple((language, tuple(spelled(word) for word in words)) for language, words in self.stop_words.items())
        return _make_stop_words(key)


@lru_cache(maxsize=1 << 14)
def _spellings(word: str) -> tuple[str, ...]:
    """The word as written, capitalised and in upper case, each composed and decomposed."""
    forms = {word, word.capitalize(), word.upper()}
    return tuple(sorted({unicodedata.normalize(form, spelling) for spelling in forms for form in ("NFC", "NFD")}))


def _as_written(word: str) -> tuple[str, ...]:
    return (word,)


@lru_cache(maxsize=8)
def _make_stop_words(lists: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]) -> StopWords:
    for language, words in lists:
        for spellings in words:
            if any(spelling.split() != [spelling] for spelling in spellings):
                raise RecipeError(
                    f"stop word '{spellings[0]}' of '{language}' is not one word.",
                    where="stage 'massivetext'",
                    hint="Write each word as an entry of its own.",
                )
    return stop_words([words for _, words in lists])


def _datatrove_classes(bullets: str) -> Classes:
    from datatrove.utils.text import PUNCTUATION_SET  # its own set, whatever its version; only loaded if asked for

    return character_classes(bullets, "".join(sorted(PUNCTUATION_SET)))
