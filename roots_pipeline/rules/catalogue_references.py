"""Cuts references off scientific texts: `remove_references_{lang}` of ROOTS's catalogue cleaning (paper, appendix B.3).

    text ──▶ text

Lines behind the last one with more than a language's share of stop words go, and if there is no such line, all go. The
shares (`rules/data/catalogue.yaml`) are those of the filter of stop words of OSCAR. The published function has a fault,
with a switch:

`words_as_written`  words are counted only if they are written exactly as in the list, not `The` or `the,`; the shares
                    were found for words in lower case without punctuation. In Chinese, whose words have no spaces
                    between them, whole sentences are looked up, and all text goes; without the fault each character is
                    a word
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.catalogue_edit import TextEdit
from roots_pipeline.rules.presets import load_data
from roots_pipeline.rules.roots_data import special_characters
from roots_pipeline.rules.roots_word_lists import built_in_stop_words, lists_fingerprint, read_lists

_PART = 1 << 20  # bytes of a line that are looked at at once
_LONG_WORD = 100  # characters; such words are rare, and together they would fill the memory


@dataclass(frozen=True, slots=True)
class RemoveReferences(TextEdit):
    """Keeps a text up to its last line of prose.

    `stop_words` is the path of a file `{language: [word, …]}`; without it the lists that come with rootbloom are used.
    `ratio` replaces the share, which is the published one for a file (it goes with the lists of ROOTS) and one that was
    made for them with the lists that come with rootbloom.
    """

    name: ClassVar[str] = "remove_references"
    language: ClassVar[str]
    stop_words: str = ""
    ratio: float | None = None
    words_as_written: bool = False
    as_published: bool = False
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        where = f"stage '{self.name}'"
        if self.as_published:
            object.__setattr__(self, "words_as_written", True)
        if self.ratio is None:
            shares = load_data("catalogue")["remove_references" if self.stop_words else "remove_references_built_in"]
            object.__setattr__(self, "ratio", shares[self.language])
        elif not 0 <= self.ratio < 1:
            raise RecipeError(f"`ratio` is {self.ratio}; it must be from 0 up to below 1.", where=where)
        object.__setattr__(self, "fingerprint", lists_fingerprint(self.stop_words, where))
        if not self._words():
            raise RecipeError(
                f"there is no list of stop words for '{self.language}'.", where=where,
                hint="Give the path of a JSON or YAML file {language: [word, …]} as `stop_words`.",
            )

    def edit(self, text: bytes) -> bytes:
        stop = len(text.rstrip(b"\n"))  # blank lines are no prose
        while True:
            start = text.rfind(b"\n", 0, stop) + 1
            if self._is_prose(text, start, stop):
                return text if stop == len(text) else text[:stop]
            if start == 0:
                return b""
            stop = start - 1

    def _is_prose(self, text: bytes, start: int, stop: int) -> bool:
        if start == stop:
            return False
        words = self._words()
        listed = all_words = 0
        for part in _parts(text, start, stop):
            if self.words_as_written:
                found = part.split()
                all_words += len(found)
                listed += sum(map(words.__contains__, found))
            else:
                shaped = list(filter(None, map(_shaped, part if self.language == "zh" else part.split())))
                all_words += len(shaped)
                listed += sum(map(words.__contains__, shaped))
        assert self.ratio is not None
        return listed > all_words * self.ratio

    def _words(self) -> frozenset[str]:
        return _stop_words(self.stop_words, self.fingerprint, self.language, self.words_as_written)


@lru_cache(maxsize=32)
def _stop_words(path: str, fingerprint: str, language: str, as_written: bool) -> frozenset[str]:
    """The list of a language; a file with another fingerprint is read anew."""
    lists = read_lists(path) if path else built_in_stop_words()
    words = lists.get(language, frozenset())
    return words if as_written else frozenset(filter(None, map(_shaped, words)))


def _shaped(word: str) -> str:
    """A word in the shape in which words are compared, empty if it has nothing but special characters."""
    return _remembered(word) if len(word) < _LONG_WORD else word.lower().strip(_ends())


@lru_cache(maxsize=1 << 16)
def _remembered(word: str) -> str:
    return word.lower().strip(_ends())


@lru_cache(maxsize=1)
def _ends() -> str:
    return "".join(map(chr, special_characters(False)))


def _parts(text: bytes, start: int, stop: int) -> Iterator[str]:
    """A line in parts of about `_PART` bytes that end behind spaces, so that a huge line needs little memory."""
    while stop - start > _PART:
        space = text.find(b" ", start + _PART, stop)
        end = stop if space < 0 else space + 1
        yield text[start:end].decode()
        start = end
    yield text[start:stop].decode()
