"""Modifies documents as the filters of ROOTS do before they measure (OSCAR part; ROOTS paper, appendix C, and code).

    text, language ──▶ text

White space is cut off at both ends and spaces of all shapes become the space. In the 13 languages of ROOTS but Chinese,
words are removed that contain one of `http www .com href //` or are longer than the language allows
(`rules/data/roots_parameters.yaml`), and the words that stay are joined again: runs of separators become one, empty
lines go. Case, digits and punctuation stay as they are.

The published procedure has faults, each of which has a switch. As published, all are true:

`letters_are_special`   some letters and vowel signs are in the set of special characters, which are left out when the
                        length of a word is looked at
`case_matters`          `HREF` and `WWW` are not looked for
`ends_are_ignored`      a word such as `//` or `"www"` is looked at without the special characters at its ends, so that
                        what is special itself is not found there
`only_newlines`         of all characters that end a line only the newline separates words: text with carriage returns
                        or U+2028 is one long word, and goes
`trim_once`             white space is cut off before other spaces become the space, so some remain at the ends

The paper also says that characters which cannot be printed are removed; the code does not, and neither does this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import by_code, encode_languages
from roots_pipeline.rules.roots_data import settings_of, space_like, special_characters, unwanted_in_words
from roots_pipeline.text.roots_characters import roots_flags
from roots_pipeline.text.roots_modify import KEEP_WORDS, Manner, modify_texts, unwanted

_SWITCHES = ("letters_are_special", "case_matters", "ends_are_ignored", "only_newlines", "trim_once")
_WHERE = "stage 'roots_modify'"


@dataclass(frozen=True, slots=True)
class RootsModify(Map):
    """Replaces the text of each document by its modified form.

    `longest_word` changes the number of characters by language (null: no words are removed there), `unwanted` the
    strings that make a word unwanted. `as_published` sets all switches to true.
    """

    name: ClassVar[str] = "roots_modify"
    longest_word: dict[str, int | None] = field(default_factory=dict)
    unwanted: tuple[str, ...] = ()
    letters_are_special: bool = False
    case_matters: bool = False
    ends_are_ignored: bool = False
    only_newlines: bool = False
    trim_once: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.as_published:
            for switch in _SWITCHES:
                object.__setattr__(self, switch, True)
        object.__setattr__(self, "longest_word", by_code(self.longest_word))
        object.__setattr__(self, "unwanted", self.unwanted or unwanted_in_words())
        if not all(self.unwanted):
            raise RecipeError("an empty string is in every word.", where=_WHERE, hint="Take it out of `unwanted`.")
        for language, longest in self.longest_word.items():
            if longest is not None and longest < 1:
                raise RecipeError(
                    f"`longest_word` of '{language}' is {longest}; it must be at least 1.",
                    where=_WHERE,
                    hint="Write null to keep all words.",
                )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text",)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        languages, rows = encode_languages(batch.column("language"))
        longest = [self._longest(language) for language in languages]
        flags = roots_flags(special_characters(self.letters_are_special), space_like())
        manner = Manner(
            any_case=not self.case_matters,
            whole_words=not self.ends_are_ignored,
            all_line_ends=not self.only_newlines,
            trim_again=not self.trim_once,
        )
        data, offsets = modify_texts(
            *text_buffers(batch.column("text")),
            flags,
            np.array([KEEP_WORDS if size is None else size for size in longest], np.int64)[rows],
            unwanted(self.unwanted),
            manner,
        )
        text = pa.Array.from_buffers(
            pa.large_string(), batch.num_rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        return with_columns(batch, {"text": text})

    def _longest(self, language: str) -> int | None:
        return self.longest_word.get(language, settings_of(language).longest_word)
