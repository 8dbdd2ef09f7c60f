# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Measures of program source in one pass: characters, lines, tokens, numbers, encoded data, lines that do something.

UTF-8 texts ──▶ one row of numbers per measure. Lines end at newlines only, tokens are what white space separates, word
characters are those of Python's `\\w`. No programming language is parsed: a line is a comment if it begins with one of
the usual signs, and does something if it has an opening parenthesis.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.memory import kernel

CODE_MEASURES = (
    "code_characters",  # Unicode code points
    "longest_code_line",  # in characters, without the newline
    "token_length_deviation",  # standard deviation of the lengths of tokens
    "non_word_share",  # characters outside \w over all characters
    "mean_code_line",  # characters over lines
    "white_space_share",  # white space over all characters
    "number_share",  # characters of words that begin with a digit over word characters
    "encoded_share",  # characters in runs of ENCODED_RUN or more of base64's alphabet over all characters
    "acting_line_share",  # lines with a parenthesis over lines that are neither blank nor comments
)
ENCODED_RUN = 60  # lines of base64 have 64 or 76 characters; names in mixed case with digits are hardly ever so long

WORD, SPACE, ENCODED = 1, 2, 4
_DIGIT, _UPPER, _LOWER = 8, 16, 32
_MIXED = _DIGIT | _UPPER | _LOWER


@lru_cache(maxsize=1)
def code_classes() -> npt.NDArray[np.uint8]:
    """Flags of every code point, uint8[0x110000]: WORD is `\\w`, SPACE `str.isspace`, ENCODED base64 and its kin."""
    table = np.zeros(0x110000, np.uint8)
    for code in range(0x110000):
        character = chr(code)
        if character.isalnum():
            table[code] = WORD
        elif character.isspace():
            table[code] = SPACE
    table[ord("_")] |= WORD
    for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_":
        table[ord(character)] |= ENCODED
    for first, last, flag in (("0", "9", _DIGIT), ("A", "Z", _UPPER), ("a", "z", _LOWER)):
        table[ord(first) : ord(last) + 1] |= flag
    table.setflags(write=False)
    return table


def measure_code(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The measures of each text: float64[len(CODE_MEASURES), texts]. Ratios over nothing are 0.

    Without lines that are neither blank nor comments, `acting_line_share` is NaN: it has no say.
    """
    out = np.zeros((len(CODE_MEASURES), len(offsets) - 1))
    _measure(data, offsets, code_classes(), out)
    return out


@kernel
def _measure(data, offsets, classes, out):
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        characters = spaces = words = numbers = encoded = 0
        lines, line, longest = 1, 0, 0
        token = tokens = token_sum = token_squares = 0
        in_number = in_word = False
        run, run_kinds = 0, 0
        first, second, acting = 0, 0, False
        code_lines = acting_lines = 0
        while i <= end:
            if i < end:
                code, length = decode(data, i, end)
                flags = np.int64(classes[code])
                newline = code == 0x0A
                characters += 1
            else:  # the end closes whatever is open, as a newline does
                code, length, flags, newline = np.int64(0x0A), 1, np.int64(SPACE), True
            i += length
            if flags & SPACE:
                spaces += 1
                if token:
                    tokens += 1
                    token_sum += token
                    token_squares += token * token
                    token = 0
            else:
                token += 1
                if not first:
                    first = code
                elif not second:
                    second = code
                acting |= code == 0x28
            if flags & WORD:
                words += 1
                if not in_word:
                    in_word, in_number = True, flags & _DIGIT != 0
                numbers += in_number
            else:
                in_word = False
            if flags & ENCODED:
                run += 1
                run_kinds |= flags
            else:
                if run >= ENCODED_RUN and run_kinds & _MIXED == _MIXED:
                    encoded += run
                run, run_kinds = 0, 0
            if newline:
                longest = max(longest, line)
                if first and not _begins_comment(first, second):
                    code_lines += 1
                    acting_lines += acting
                line, first, second, acting = 0, 0, 0, False
                lines += i <= end
            else:
                line += 1
        spaces -= 1
        lines -= end > offsets[text] and data[end - 1] == 0x0A  # a newline at the end begins no line
        everything = max(characters, 1)
        out[0, text] = characters
        out[1, text] = longest
        if tokens:
            out[2, text] = np.sqrt(max(0.0, token_squares / tokens - (token_sum / tokens) ** 2))
        out[3, text] = (characters - words) / everything
        out[4, text] = characters / lines
        out[5, text] = spaces / everything
        out[6, text] = numbers / max(words, 1)
        out[7, text] = encoded / everything
        out[8, text] = acting_lines / code_lines if code_lines else np.nan


@kernel
def _begins_comment(first, second):
    """`#`, `*`, `//`, `/*`, `--`, `;` or `%`; directives of C's preprocessor begin like comments."""
    if first == 0x23 or first == 0x2A or first == 0x3B or first == 0x25:
        return True
    return (first == 0x2F and (second == 0x2F or second == 0x2A)) or (first == 0x2D and second == 0x2D)
