"""What personal information looks like: the patterns of ROOTS (its PII code; paper, appendix D), written for RE2.

RE2 takes time in proportion to the text whatever the pattern, which the published engine does not (its pattern for
keys takes 20 s for 16 kB of `A1A1…%`). It has no look-around, so a pattern here takes the character on each side with
its one group; `Pattern.ends` says where the next search goes on. Classes of characters come from the Unicode tables of
`regex`, so that both engines mean the same characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import re2
import regex

Tag = Literal["KEY", "EMAIL", "USER", "IP_ADDRESS", "ID", "NUMBER"]
TAGS: tuple[Tag, ...] = ("KEY", "EMAIL", "USER", "IP_ADDRESS", "ID", "NUMBER")

_MEMORY = 64 << 20  # bytes that the automata of one pattern may take

_LIST = r"""\s\p{Han}@?,!;:'")(."""  # what bounds a match, as published; each tag leaves out some or adds some
_BACKSPACE = r"\x08"  # written \b in the published classes, where it is no word boundary
_ANY_SCRIPT = r"<>\[\]{}|[\p{P}&&[^\x00-\x7f]--[\p{Pd}\p{Pc}]]"  # brackets, and punctuation beyond ASCII

_HEX = "[0-9a-fA-F]"
_GROUP = _HEX + "{1,4}"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_OCTET_IN_IPV6 = "(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])"
_IPV4_IN_IPV6 = rf"(?:{_OCTET_IN_IPV6}\.){{3}}{_OCTET_IN_IPV6}"


class Manner(NamedTuple):
    """The faults of the published patterns that are wanted (see `rules.pii`)."""

    narrow_boundaries: bool
    used_up_boundaries: bool
    cut_addresses: bool
    names_take_han: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern with one group, and whether what bounds a match can bound the next one, too.

    No match goes beyond a line.
    """

    compiled: Any
    shares_boundaries: bool

    def spans(self, lines: bytes) -> list[tuple[int, int]]:
        """Where the group matches, in bytes, from left to right."""
        found, place = [], 0
        while (match := self.compiled.search(lines, place)) is not None:
            start, stop = match.span(1)
            found.append((start, stop))
            place = _before(lines, stop) if self.shares_boundaries else match.end()
        return found


@lru_cache(maxsize=32)
def pattern_of(tag: Tag, manner: Manner) -> Pattern:
    """The pattern of a tag."""
    if tag == "EMAIL":
        return Pattern(_compile(_email(manner)), True)
    if tag == "USER":
        return Pattern(_compile(_user(manner)), True)
    makers = {"KEY": _key, "IP_ADDRESS": _address, "ID": _identifier, "NUMBER": _number}
    return Pattern(_compile(makers[tag](manner)), not manner.used_up_boundaries)


def _key(manner: Manner) -> str:
    digit, dash = class_of(r"\p{Nd}"), class_of(r"\p{Pd}")
    joint, digit_or_joint = rf"[{digit}{dash}/+=:_]", rf"[{digit}{dash}/+=:]"
    mixed = rf"(?:[A-Za-z]+{joint}+|{digit_or_joint}+[A-Za-z]+){{4,}}"
    chunk = rf"(?:[{digit}]{{3,}}|[A-Z]+[{digit}]+[A-Z]*|[{digit}]+[A-Z]+[{digit}]*)"
    sides = _sides(manner, _LIST + _BACKSPACE)
    return _bounded(f"{mixed}|(?:{chunk}[ {dash}]?){{3,}}", sides, sides)


def _email(manner: Manner) -> str:
    taken = "" if manner.names_take_han else r"\p{Han}"
    beyond = "" if manner.narrow_boundaries else _ANY_SCRIPT
    name = class_of(r"""\s\x08@?!;,:)('"<""" + taken + beyond)
    host = class_of(r"\s\x08@?!;,/" + taken + beyond)
    last = class_of(r"""\s\x08@?!;,/:)('">.""" + taken + beyond)
    letter, word = (class_of(rf"[{kind}--[{taken}]]" if taken else kind) for kind in (r"\p{L}", r"\w"))
    address = rf"[^{name}]+@[^{host}]*[^{last}]\.[{letter}][{word}]+"
    both = _LIST + _BACKSPACE
    return _bounded(address, _sides(manner, both + "<"), _sides(manner, both + ">"))


def _user(manner: Manner) -> str:
    ends = r""")(\s@,?!;:'\"""" + ("" if manner.narrow_boundaries else _ANY_SCRIPT)
    name = f"@[^{class_of(ends)}]{{3,}}"
    if not manner.names_take_han:  # a name in Han characters is one; behind another, they are the next word
        without_han = class_of(ends + r"\p{Han}")
        name = f"@[^{without_han}]{{3,}}|{name}"
    left = _sides(manner, ends + r"\p{Han}")
    return f"(?:^|[{left}])({name})"


def _address(manner: Manner) -> str:
    if not manner.cut_addresses:  # whatever looks like one as a whole; `pii_addresses` looks closer
        more = "" if manner.narrow_boundaries else "/=)"
        left = _sides(manner, _LIST.replace(".", "") + _BACKSPACE + more)
        right = _sides(manner, r"\s@,?!;'\"(\p{Han}" + more)
        return _bounded(rf"{_HEX[:-1]}:.]{{2,}}(?:%[0-9a-zA-Z]+)?", left, right)
    shortened = [rf"(?:{_GROUP}:){{1,{7 - groups}}}(?::{_GROUP}){{1,{groups}}}" for groups in range(1, 7)]
    ipv6 = [
        rf"(?:{_GROUP}:){{7}}{_GROUP}",
        rf"(?:{_GROUP}:){{1,7}}:",
        *shortened,
        rf":(?:(?::{_GROUP}){{1,7}}|:)",
        rf"fe80:(?::{_HEX}{{0,4}}){{0,4}}%[0-9a-zA-Z]+",
        rf"::(?:ffff(?::0{{1,4}})?:)?{_IPV4_IN_IPV6}",
        rf"(?:{_GROUP}:){{1,4}}:{_IPV4_IN_IPV6}",
    ]
    left = _sides(manner, _LIST + _BACKSPACE)
    right = _sides(manner, _LIST.replace(")", ""))
    return _bounded("|".join([_IPV4, *ipv6]), left, right)


def _identifier(manner: Manner) -> str:
    digit, dash = class_of(r"\p{Nd}"), class_of(r"\p{Pd}")
    sides = _sides(manner, _LIST + _BACKSPACE)
    return _bounded(rf"[A-Za-z]*(?:[{dash}]*[{digit}]){{6,}}", sides, sides)


def _number(manner: Manner) -> str:
    digit, dash = class_of(r"\p{Nd}"), class_of(r"\p{Pd}")
    between = rf"[ /.{dash}]*"
    number = (
        rf"(?:\+[{digit}]+{between})?(?:(?:\(\+?[{digit}]+\))?(?:{between}[{digit}])){{7,}}(?:[\t\f #]*[{digit}]+)?"
    )
    return _bounded(number, _sides(manner, r"""\s'"(\p{Han}"""), _sides(manner, r"""\s@,?!;:'"(.\p{Han}"""))


def _bounded(group: str, left: str, right: str) -> str:
    return f"(?:^|[{left}])({group})(?:$|[{right}])"


def _sides(manner: Manner, published: str) -> str:
    return class_of(published + ("" if manner.narrow_boundaries else _ANY_SCRIPT))


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    return re2.compile(f"(?m){pattern}", options)


def _before(lines: bytes, place: int) -> int:
    """Where the character that ends at a byte begins."""
    place -= 1
    while lines[place] & 0xC0 == 0x80:
        place -= 1
    return place


@lru_cache
def class_of(members: str) -> str:
    """The inside of a class of RE2 with the characters of a class of `regex`."""
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges_of(members))


@lru_cache
def ranges_of(members: str) -> tuple[tuple[int, int], ...]:
    """The code points (first, last) in a class of `regex`, without its brackets."""
    found = regex.finditer(f"(?V1)[{members}]+", _all_characters())
    return tuple((ord(match[0][0]), ord(match[0][-1])) for match in found)


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
