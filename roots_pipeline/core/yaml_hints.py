"""What to do about a file that is no YAML: the parser's words say where it got stuck, not what a person wrote wrongly.

In: the problem as PyYAML puts it. Out: the next step, or None where only the place helps. `parse_yaml` has one error
for whatever is wrong with a text, also where PyYAML itself has others.
"""

from __future__ import annotations

from typing import Any

import yaml

_HINTS = (
    ("'\\t'", "Indent with spaces, not with tabs."),
    ("expected alphabetic or numeric character", "A value that begins with * or & needs quotes: \"*.jsonl\"."),
    ("cannot start any token", "A value that begins with %, @ or ` needs quotes."),
    ("mapping values are not allowed", "A value with a colon and a space needs quotes; else look at the indentation."),
    ("expected <block end>", "Look at the indentation of this line: keys of one level begin in one column."),
    ("expected ',' or", "A bracket is not closed, or a comma is missing."),
    ("unknown escape character", "Use / in paths, or single quotes."),
    ("found unexpected end of stream", "A quote is not closed."),
    ("codec can't decode", "Save the file as UTF-8."),
)


def parse_yaml(text: str | bytes) -> Any:
    """The value of a YAML text. Raises yaml.YAMLError, also for a 13th month and for brackets without end."""
    try:
        return yaml.safe_load(text)
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
    except ValueError as error:  # of values that look like a date or a number, and bytes that are not UTF-8
        raise yaml.YAMLError(str(error)) from error


def yaml_hint(problem: str) -> str | None:
    """The advice for a problem of the YAML parser."""
    return next((hint for words, hint in _HINTS if words in problem), None)
