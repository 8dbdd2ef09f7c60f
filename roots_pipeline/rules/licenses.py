"""Under which licence a source file is, by what its header says; and whether an expression of SPDX allows its use.

header of a file ──▶ SPDX expression (`MIT`, `GPL-2.0-or-later`, `Apache-2.0 OR MIT`) or None

A tag `SPDX-License-Identifier:` is believed. Otherwise known phrases decide (`rules/data/licenses.yaml`), and for the
licences of the GNU project a look at the words around their name: version, `or any later version`, exceptions. Nothing
is guessed: a header that names no licence gives None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from roots_pipeline.rules.presets import load_data

HEADER_BYTES = 6000
_MOST_TOKENS = 200  # of an expression; longer ones are no expressions

_HINTS = (b"licen", b"copyright", b"permission", b"redistribut", b"public domain", b"gpl", b"cc0", b"perl itself",
          b"propriet")
_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+\-() ]+)", re.I)
# Comment signs and other decoration at the ends of lines, and what may stand around words of a sentence.
_SIGNS = " \t\r*/#;%!'\"<>-|"
_QUOTES = str.maketrans(dict.fromkeys("\"'`<>", " "))

_GNU = re.compile(r"(?:gnu )?(?P<kind>affero |lesser |library )?general public licen[sc]e(?: \(?(?:l|a)?gpl\)?)?")
_SHORT = re.compile(
    r"\b(?P<kind>[la]?)gpl(?:,|-| )?(?:version |ver\.? |v)?(?P<version>[123](?:\.[01])?)"
    r"(?P<later>\+|-or-later| or later)?"
)
_VERSION = re.compile(r"\b(?:version|v\.?|ver\.?) ?(?P<version>[123](?:\.[01])?)\b")
_LATER = re.compile(r"(?:any|or) later version|or (?:\(?at your option\)? )?any later|or later\b|or newer\b")
_KINDS = {"affero ": "AGPL", "lesser ": "LGPL", "library ": "LGPL", "a": "AGPL", "l": "LGPL"}
_EXCEPTIONS = {"gcc runtime library exception": "GCC-exception-3.1", "classpath exception": "Classpath-exception-2.0",
               "as a special exception": "LicenseRef-exception"}
_CHOICE = re.compile(
    r"\balternatively\b|\bdual[- ]licen[sc]ed?\b|\beither\b(?! express)(?! version)|\bat your (?:choice|discretion)|"
    r"licen[sc]e or the |/gpl|your choice of"
)


class _Phrases(NamedTuple):
    """All phrases of the data file as one automaton, and which of them (by number) each licence asks for."""

    automaton: Any
    licenses: tuple[tuple[str, frozenset[int], frozenset[int], frozenset[int]], ...]

    def licenses_in(self, words: str) -> list[str]:
        there = frozenset(self.automaton.Match(words) or ())
        return [
            name for name, any_of, all_of, none_of in self.licenses
            if all_of <= there and (not any_of or any_of & there) and not none_of & there
        ]


@lru_cache(maxsize=1)
def _phrases() -> _Phrases:
    entries, numbers = load_data("licenses"), dict[str, int]()

    def numbered(phrases: Iterable[str]) -> frozenset[int]:
        return frozenset(numbers.setdefault(phrase, len(numbers)) for phrase in phrases)

    licenses = tuple(
        (name, numbered(entry.get("any", ())), numbered(entry.get("all", ())), numbered(entry.get("none", ())))
        for name, entry in entries.items()
    )
    automaton = re2.Set.SearchSet()
    for phrase in numbers:
        automaton.Add(re2.escape(phrase))
    automaton.Compile()
    return _Phrases(automaton, licenses)


def license_of(header: bytes) -> str | None:
    """The licence that the first HEADER_BYTES of a file state, as an SPDX expression."""
    lower = header.lower()
    if not any(hint in lower for hint in _HINTS):
        return None
    text = header.decode("utf-8", "replace")
    tag = _TAG.search(text) if b"spdx-license" in lower else None
    if tag is not None and (expression := _tidied(tag[1])):
        return expression
    lines = " ".join(line.strip(_SIGNS) for line in text.split("\n"))
    words = " ".join(lines.translate(_QUOTES).lower().split())
    found = _phrases().licenses_in(words)
    if "gpl" in words or "general public licen" in words:
        found += _gnu_licenses(words)
    if len(found) < 2:
        return found[0] if found else None
    joint = " OR " if _CHOICE.search(words) else " AND "
    return joint.join(f"({name})" if " " in name and " WITH " not in name else name for name in found)


def _tidied(tag: str) -> str:
    """The expression of a tag, without the words of a comment that may follow it."""
    words = tag.replace("(", " ( ").replace(")", " ) ").split()
    kept: list[str] = []
    for word in words:
        joint = word.upper() in ("AND", "OR", "WITH")
        if kept and not joint and word != ")" and kept[-1].upper() not in ("AND", "OR", "WITH", "("):
            break
        kept.append(word.upper() if joint else word)
    while kept and kept[-1] in ("AND", "OR", "WITH", "-", "--"):
        kept.pop()
    return " ".join(kept).replace("( ", "(").replace(" )", ")") if any(map(str.isalnum, "".join(kept))) else ""


def _gnu_licenses(words: str) -> list[str]:
    """The licences of the GNU project that a header names, by kind, with the version where it says one."""
    found: dict[str, str] = {}
    for match in _GNU.finditer(words):
        around = words[max(0, match.start() - 40) : match.start()], words[match.end() : match.end() + 140]
        before = [*_VERSION.finditer(around[0])]
        version = _VERSION.search(around[1]) or (before[-1] if before else None)
        if version is not None:
            later = _LATER.search(around[1]) is not None
            found.setdefault(_KINDS.get(match["kind"] or "", "GPL"), _named(match["kind"], version["version"], later))
    for match in _SHORT.finditer(words):
        later = match["later"] is not None or _LATER.search(words[match.end() : match.end() + 40]) is not None
        found.setdefault(_KINDS.get(match["kind"], "GPL"), _named(match["kind"], match["version"], later))
    if not found:
        for match in _GNU.finditer(words):
            if words[max(0, match.start() - 60) : match.start()].find("under") >= 0:
                found.setdefault(kind := _KINDS.get(match["kind"] or "", "GPL"), f"LicenseRef-{kind}")
    exception = next((name for phrase, name in _EXCEPTIONS.items() if phrase in words), None)
    return [f"{name} WITH {exception}" if exception else name for name in found.values()]


def _named(kind: str | None, version: str, later: bool) -> str:
    number = version if "." in version else f"{version}.0"
    return f"{_KINDS.get(kind or '', 'GPL')}-{number}-{'or-later' if later else 'only'}"


def allows(expression: str, allowed: Callable[[str], bool]) -> bool:
    """Whether the licences of an SPDX expression that are `allowed` are enough to use the work.

    `A OR B`: one of them; `A AND B`: both; an exception (`A WITH x`) changes nothing. AND binds closer than OR. What
    cannot be read as an expression is taken as the name of one licence.
    """
    tokens = re.findall(r"\(|\)|[^\s()]+", expression)
    if len(tokens) > _MOST_TOKENS:
        return allowed(expression.strip())
    result, rest = _either(tokens, allowed)
    return result if not rest else allowed(expression.strip())


def _either(tokens: list[str], allowed: Callable[[str], bool]) -> tuple[bool, list[str]]:
    result, tokens = _both(tokens, allowed)
    while tokens and tokens[0].upper() == "OR":
        other, tokens = _both(tokens[1:], allowed)
        result = result or other
    return result, tokens


def _both(tokens: list[str], allowed: Callable[[str], bool]) -> tuple[bool, list[str]]:
    result, tokens = _one(tokens, allowed)
    while tokens and tokens[0].upper() == "AND":
        other, tokens = _one(tokens[1:], allowed)
        result = result and other
    return result, tokens


def _one(tokens: list[str], allowed: Callable[[str], bool]) -> tuple[bool, list[str]]:
    if not tokens:
        return False, []
    if tokens[0] == "(":
        result, tokens = _either(tokens[1:], allowed)
        return result, tokens[1:] if tokens[:1] == [")"] else [*tokens, "("]
    result, tokens = allowed(tokens[0]), tokens[1:]
    return result, tokens[2:] if len(tokens) > 1 and tokens[0].upper() == "WITH" else tokens
