"""The colours of the style sheet against the contrast that WCAG 2.2 asks for: 4.5 for text, 3 for marks of charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[2] / "roots_pipeline" / "report" / "templates" / "style.css"
TEXT = [(ink, paper) for ink in ("ink", "muted", "link") for paper in ("paper", "sheet")] + [
    ("warn-ink", "warn-paper"), ("good-ink", "good-paper")]
MARKS = [(mark, "sheet") for mark in (
    "kept", "rejected", "elsewhere", "limit", "train", "validation", "entropy", "uniform")]


def palettes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text("utf-8"), re.DOTALL)
    light, dark = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks[:2])
    assert light.keys() == dark.keys()
    return {"light": light, "dark": dark}


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2, definitions)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", ["light", "dark"])
def test_contrast(name: str) -> None:
    palette = palettes()[name]
    for pairs, least in ((TEXT, 4.5), (MARKS, 3.0)):
        for front, back in pairs:
            bright, dim = sorted((luminance(palette[front]), luminance(palette[back])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= least, (name, front, back)
