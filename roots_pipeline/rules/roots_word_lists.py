"""Lists of stop words and of flagged words by language, read from files and made ready for looking up.

A file is JSON or YAML, `{language: [word, …]}`. Lists of stop words come with rootbloom; of flagged words none does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import orjson
import yaml

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import hash_file, open_read
from roots_pipeline.core.yaml_hints import parse_yaml
from roots_pipeline.rules.columns import by_code
from roots_pipeline.rules.presets import load_data
from roots_pipeline.rules.roots_data import settings_of, special_characters
from roots_pipeline.text.roots_lists import Listed, ListTables, list_tables

Lists = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class LanguageLists:
    """The lists of all languages: the tables, the number of each language in them, and who has which list."""

    tables: ListTables
    numbers: dict[str, int]
    with_stop_words: frozenset[str]
    with_flagged_words: frozenset[str]


def lists_fingerprint(path: str, where: str) -> str:
    """The hash of a file's content, empty for no file. Raises RecipeError if it cannot be read."""
    try:
        return hash_file(path) if path else ""
    except OSError as error:
        raise RecipeError(
            f"the word lists '{path}' cannot be read ({error.strerror or error}).",
            where=where,
            hint="Give the path of a JSON or YAML file {language: [word, …]}.",
        ) from error


@lru_cache(maxsize=8)
def make_lists(
    stop_words: str,
    flagged_words: str,
    fingerprints: tuple[str, ...],
    letters_are_special: bool,
    as_written: bool,
    groups_of_paper: bool,
) -> LanguageLists:
    """The lists of two files (empty: the stop words that come with rootbloom, no flagged words).

    `fingerprints` are those of the files: with other content the lists are made anew. Raises RecipeError.
    """
    special = special_characters(letters_are_special)
    stop, flagged = (
        {language: words if as_written else _as_words_are(words, special) for language, words in lists.items()}
        for lists in (read_lists(stop_words) if stop_words else built_in_stop_words(), read_lists(flagged_words))
    )
    languages = sorted({*stop, *flagged})
    listed = []
    for language in languages:
        settings = settings_of(language)
        groups = settings.groups_of_paper if groups_of_paper else settings.groups
        none: frozenset[str] = frozenset()
        listed.append(Listed(stop.get(language, none), flagged.get(language, none), groups, settings.joint))
    return LanguageLists(
        list_tables(listed or [Listed(frozenset(), frozenset())]),
        {language: number for number, language in enumerate(languages)},
        frozenset(language for language, words in stop.items() if words),
        frozenset(language for language, words in flagged.items() if words),
    )


def built_in_stop_words() -> Lists:
    """The stop words that come with rootbloom."""
    return {language: frozenset(words.split()) for language, words in load_data("stop_words").items()}


def read_lists(path: str) -> Lists:
    """The lists of a file; none of no file. Raises RecipeError if it holds no lists."""
    if not path:
        return {}
    with open_read(path) as file:
        data = file.read()
    try:
        found = orjson.loads(data) if path.endswith(".json") else parse_yaml(data)
    except (orjson.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"word lists must be JSON or YAML ({error}).", where=path) from error
    if not isinstance(found, dict):
        raise RecipeError("word lists must be {language: [word, …]}.", where=path)
    lists: Lists = {}
    for language, words in found.items():
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise RecipeError(
                f"the words of '{language}' must be a list of strings that are not empty.",
                where=path,
                hint="In YAML, put quotation marks around words such as no, on and yes.",
            )
        lists[str(language)] = frozenset(words)
    return by_code(lists)


def _as_words_are(words: frozenset[str], special: frozenset[int]) -> frozenset[str]:
    """Words in the shape in which words of a text are compared: lower case, no special characters at the ends."""
    ends = "".join(map(chr, special))
    return frozenset(shaped for word in words if (shaped := word.lower().strip(ends)))
