"""Text of strangers made fit to be shown: cut to size, every hidden character visible, no direction leaking out.

Why: a document may hold markup, terminal codes, characters that turn the reading direction around, or one line of ten
megabytes. Markup is harmless because the template escapes everything; the rest is handled here. In: any `str` or raw
bytes. Out: `plain` gives a string for labels and attributes, `marked` gives HTML in which each hidden character is a
small box with its number.
"""

from __future__ import annotations

import regex
from markupsafe import Markup, escape

# Control, format, surrogate, private, unassigned, line and paragraph separators; except what scripts need to be
# written properly: the two joiners and the Arabic and Brahmic signs that enclose digits.
_HIDDEN = regex.compile(
    r"[[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]--[\n\t\u200c\u200d\p{Prepended_Concatenation_Mark}]]", regex.V1
)
# More marks on one letter than any script needs only serve to paint over the neighbours.
_STACKED = regex.compile(r"(\p{M}{8})\p{M}+")
_CUT = "…"


def decode(value: bytes | str) -> str:
    """A string from bytes that should be UTF-8; bytes that are not become U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def plain(text: str, limit: int = 200) -> str:
    """One line of at most `limit` characters, hidden ones written as numbers such as ⟨U+202E⟩. Not yet escaped."""
    line = _cut(text, limit).replace("\n", " ⏎ ").replace("\t", " ")
    return str(_HIDDEN.sub(lambda match: f"⟨{_name(match[0])}⟩", line))


def visible(text: str, limit: int) -> str:
    """The beginning of a text with its lines, hidden characters written as numbers. For text nodes; not escaped."""
    return str(_HIDDEN.sub(lambda match: f"⟨{_name(match[0])}⟩", _cut(text, limit)))


def marked(text: str, characters: int = 600, lines: int = 12, line_length: int = 240) -> Markup:
    """HTML of the beginning of a text: escaped, hidden characters boxed, long texts and lines cut with an ellipsis."""
    shown = _cut(text, characters).replace("\r\n", "\n").split("\n")
    if len(shown) > lines:
        shown = [*shown[:lines], _CUT]
    return Markup("\n").join(_boxed(_cut(line, line_length)) for line in shown)


def _cut(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[:limit].rstrip() + _CUT
    return str(_STACKED.sub(rf"\1{_CUT}", cut))


def _boxed(line: str) -> Markup:
    parts: list[Markup] = []
    place = 0
    for match in _HIDDEN.finditer(line):
        parts += [escape(line[place : match.start()]), Markup('<span class="hidden">{}</span>').format(_name(match[0]))]
        place = match.end()
    return Markup("").join([*parts, escape(line[place:])])


def _name(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of a C0 control, such as ␛
    return "␡" if code == 0x7F else f"U+{code:04X}"
