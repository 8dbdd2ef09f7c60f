"""The measures behind the filters of ROOTS (OSCAR part; ROOTS paper, appendix C, and its published code).

    text, language ──▶ six columns of numbers; `thresholds` with the preset `roots` turns them into verdicts

    number_of_words             words, before lower case
    character_repetition_ratio  the k largest counts of character n-grams over all counts, k = sqrt(different n-grams)
    word_repetition_ratio       counts of word n-grams that occur more than once over all counts
    special_character_ratio     special characters over all characters
    stop_word_ratio             words (and groups of neighbours) in the language's list over all words, at most 1
    flagged_word_ratio          the same for the list of flagged words

Words are what spaces, tabs and newlines separate, in lower case, without special characters at their ends. Chinese text
is cut into pieces by a SentencePiece model; without one, each character of the normalised text is a word. A ratio is
null where the language has no list. Languages differ as `rules/data/roots_parameters.yaml` says.

Where paper and code differ, or the code has a fault, there is a switch:

`character_repetition`  `code`: k is at most the number of n-grams that occur more than once. `paper`: it is not, so
                        that text without any repetition gets about 1/sqrt(n-grams).
`word_groups`           `code`: Vietnamese is looked up by words and pairs. `paper`: by triples as well.
`letters_are_special`   published: true. Some letters and vowel signs are in the set of special characters (Arabic heh,
                        Devanagari signs, three Han characters), so they count as special and words lose them.
`entries_as_written`    published: true. Entries of word lists that are not in the shape of words (capitals, special
                        characters or invisible marks at the ends) are never met.
`glue_lines`            published: true. For SentencePiece, line ends and tabs are deleted, not made spaces.
`as_published`          sets the last three to true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import by_code, encode_languages
from roots_pipeline.rules.roots_data import settings_of, special_characters
from roots_pipeline.rules.roots_normalisation import word_rules
from roots_pipeline.rules.roots_pieces import load_pieces, model_fingerprint, optional_package, with_pieces
from roots_pipeline.rules.roots_word_lists import LanguageLists, lists_fingerprint, make_lists
from roots_pipeline.text.roots_measures import LETTER_MEASURES, WORD_MEASURES, measure_letters, measure_words
from roots_pipeline.text.roots_words import CHARACTERS, SPACED

Variant = Literal["code", "paper"]
MEASURES = (
    "number_of_words",
    "character_repetition_ratio",
    "word_repetition_ratio",
    "special_character_ratio",
    "stop_word_ratio",
    "flagged_word_ratio",
)
_WHERE = "stage 'roots_measures'"


@dataclass(frozen=True, slots=True)
class RootsMeasures(Map):
    """Adds MEASURES as float64 columns.

    `stop_words` and `flagged_words` are paths of lists, `{language: [word, …]}` in JSON or YAML. Without the first, the
    lists that come with rootbloom are used; without the second, `flagged_word_ratio` is null. `sentencepiece` gives
    the paths of models by language. `fingerprints` are those of all these files.
    """

    name: ClassVar[str] = "roots_measures"
    stop_words: str = ""
    flagged_words: str = ""
    sentencepiece: dict[str, str] = field(default_factory=dict)
    character_repetition: Variant = "code"
    word_groups: Variant = "code"
    letters_are_special: bool = False
    entries_as_written: bool = False
    glue_lines: bool = False
    as_published: bool = False
    fingerprints: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.as_published:
            for switch in ("letters_are_special", "entries_as_written", "glue_lines"):
                object.__setattr__(self, switch, True)
        object.__setattr__(self, "sentencepiece", by_code(self.sentencepiece))
        lists = [lists_fingerprint(path, _WHERE) for path in (self.stop_words, self.flagged_words)]
        models = [model_fingerprint(path, _WHERE) for path in self.sentencepiece.values()]
        object.__setattr__(self, "fingerprints", (*lists, *models))
        if models:
            optional_package("sentencepiece", _WHERE)
        self._lists()

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        return MEASURES

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        texts = batch.column("text")
        languages, rows = encode_languages(batch.column("language"))
        settings = [settings_of(language) for language in languages]
        kinds = [
            CHARACTERS if setting.pieces and language not in self.sentencepiece else SPACED
            for language, setting in zip(languages, settings, strict=True)
        ]
        lists = self._lists()
        rules = word_rules(special_characters(self.letters_are_special), self.glue_lines)

        def of_rows(values: list[int]) -> npt.NDArray[np.int64]:
            return np.array(values, np.int64)[rows]

        letters = measure_letters(
            *text_buffers(texts),
            rules,
            lists.tables,
            of_rows([setting.character_ngram for setting in settings]),
            self.character_repetition == "paper",
        )
        words = measure_words(
            *text_buffers(self._in_pieces(texts, languages, rows)),
            rules,
            lists.tables,
            of_rows([setting.word_ngram for setting in settings]),
            of_rows(kinds),
            of_rows([lists.numbers.get(language, -1) for language in languages]),
        )
        measures = dict(zip((*LETTER_MEASURES, *WORD_MEASURES), (*letters, *words), strict=True))
        missing = {
            "stop_word_ratio": of_rows([language not in lists.with_stop_words for language in languages]),
            "flagged_word_ratio": of_rows([language not in lists.with_flagged_words for language in languages]),
        }
        none = np.zeros(batch.num_rows, np.int64)
        return with_columns(
            batch, {name: pa.array(measures[name], mask=missing.get(name, none) != 0) for name in MEASURES}
        )

    def _in_pieces(self, texts: pa.Array, languages: list[str], rows: npt.NDArray[np.int64]) -> pa.Array:
        """The texts, those of languages with a SentencePiece model replaced by their pieces."""
        for (language, path), fingerprint in zip(self.sentencepiece.items(), self.fingerprints[2:], strict=True):
            if language in languages:
                encode = load_pieces(path, fingerprint, _WHERE)
                texts = with_pieces(texts, rows == languages.index(language), encode, self.glue_lines)
        return texts

    def _lists(self) -> LanguageLists:
        return make_lists(
            self.stop_words,
            self.flagged_words,
            self.fingerprints[:2],
            self.letters_are_special,
            self.entries_as_written,
            self.word_groups == "paper",
        )
