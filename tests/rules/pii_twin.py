"""Personal information as ROOTS looked for it, in plain Python: whole texts, one `regex` pattern a tag, string replace.

Slow, and with the faults of the original. It defines what `as_published` means; texts must be short enough for the
pattern of keys, whose time grows with the square of a run.
"""

from __future__ import annotations

import regex

from roots_pipeline.rules.pii_patterns import Tag

ORDER: tuple[Tag, ...] = ("KEY", "EMAIL", "USER", "IP_ADDRESS", "ID", "NUMBER")
Span = tuple[int, int]

_GROUP = "[0-9A-Fa-f]{1,4}"
_ADDRESSES = [
    r"(?:25[0-5]|2[0-4]\d|[01]?\d\d?)(?:\.(?:25[0-5]|2[0-4]\d|[01]?\d\d?)){3}".replace(r"\d", "[0-9]"),
    f"(?:{_GROUP}:){{7}}{_GROUP}",
    f"(?:{_GROUP}:){{1,7}}:",
    f"(?:{_GROUP}:){{1,6}}:{_GROUP}",
    f"(?:{_GROUP}:){{1,5}}(?::{_GROUP}){{1,2}}",
    f"(?:{_GROUP}:){{1,4}}(?::{_GROUP}){{1,3}}",
    f"(?:{_GROUP}:){{1,3}}(?::{_GROUP}){{1,4}}",
    f"(?:{_GROUP}:){{1,2}}(?::{_GROUP}){{1,5}}",
    f"{_GROUP}:(?:(?::{_GROUP}){{1,6}})",
    f":(?:(?::{_GROUP}){{1,7}}|:)",
    "fe80:(?::[0-9A-Fa-f]{0,4}){0,4}%[0-9A-Za-z]+",
    r"::(?:ffff(?::0{1,4})?:)?(?:(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])\.){3}(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])",
    rf"(?:{_GROUP}:){{1,4}}:(?:(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])\.){{3}}(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])",
]
_AROUND = r"""\x08\s@?,!;:'")(.\p{Han}"""
_PATTERNS = {
    "KEY": rf"(?:^|[{_AROUND}])"
    r"((?:[A-Za-z]+[\p{Nd}\p{Pd}/+=:_]+|[\p{Nd}\p{Pd}/+=:]+[A-Za-z]+){4,}"
    r"|(?:(?:\p{Nd}{3,}|[A-Z]+\p{Nd}+[A-Z]*|\p{Nd}+[A-Z]+\p{Nd}*)[ \p{Pd}]?){3,})"
    rf"(?:$|[{_AROUND}])",
    "EMAIL": rf"(?<=^|[{_AROUND}<])"
    r"""([^\x08\s@?!;,:)('"<]+@[^\x08\s@!?;,/]*[^\x08\s@?!;,/:)('">.]\.\p{L}\w+)"""
    rf"(?=$|[{_AROUND}>])",
    "USER": r"""(?<=^|[)(\s@,?!;:'"\p{Han}])(@[^)(\s@,?!;:'"]{3,})""",
    "IP_ADDRESS": rf"(?:^|[{_AROUND}])({'|'.join(_ADDRESSES)})" r"""(?:$|[\s@,?!;:'"(.\p{Han}])""",
    "ID": rf"(?:^|[{_AROUND}])([A-Za-z]*(?:\p{{Pd}}*\p{{Nd}}){{6,}})(?:$|[{_AROUND}])",
    "NUMBER": r"""(?:^|[\s'"(\p{Han}])((?:\+\p{Nd}+[ /.\p{Pd}]*)?(?:(?:\(\+?\p{Nd}+\))?(?:[ /.\p{Pd}]*\p{Nd})){7,}"""
    r"""(?:[\t\f #]*\p{Nd}+)?)(?:$|[\s@,?!;:'"(.\p{Han}])""",
}
_COMPILED = {tag: regex.compile(pattern, regex.MULTILINE) for tag, pattern in _PATTERNS.items()}
_YEAR, _PART = "[12][0-9]{3}", "[0-3][0-9]"
_DATES = [
    regex.compile(f"(?:{shape})" r"""(?:$|[\s@,?!;:'"(.\p{Han}])""")
    for shape in (
        rf"{_YEAR}[\p{{Pd}}/]{_YEAR}",
        rf"{_YEAR}[\p{{Pd}}/.]{_PART}[\p{{Pd}}/.]{_PART}",
        rf"{_PART}[\p{{Pd}}/.]{_PART}[\p{{Pd}}/.](?:[0-9]{{2}}|{_YEAR})",
        rf"{_PART}[\p{{Pd}}/](?:[0-9]{{2}}|{_YEAR})",
        rf"{_YEAR}-{_PART}",
    )
]


def matches(text: str, tag: str) -> list[Span]:
    """Where a tag is, in characters."""
    found = []
    for match in _COMPILED[tag].finditer(text):
        string = match[1]
        if tag == "IP_ADDRESS" and not any(map(str.isdigit, string)):
            continue
        if tag in ("ID", "IP_ADDRESS") and any(date.match(string) for date in _DATES):
            continue
        found.append(match.span(1))
    return found


def redacted(text: str, tags: tuple[str, ...] = ORDER[:4]) -> str:
    """The text with each string that matched replaced wherever it is, tag after tag."""
    strings = [(tag, text[start:stop]) for tag in tags for start, stop in matches(text, tag)]
    for tag, string in strings:
        text = text.replace(string, f"PI:{tag}")
    return text
