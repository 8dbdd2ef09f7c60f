"""Facts as a page: self-contained HTML without any script; all text is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, content: dict[str, Any]) -> str:
    """One of our templates with this content."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(number=_number, percent=_percent, change=_change)
    return environment.get_template(template).render(**content)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _change(percent: float) -> str:
    return f"{percent:+.1f}%"
