"""The data files of the rules: `rules/data/*.yaml`, read once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from roots_pipeline.core.errors import RecipeError

DATA = Path(__file__).parent / "data"


@lru_cache
def load_data(name: str) -> dict[str, Any]:
    """The content of `data/<name>.yaml`. Raises RecipeError if there is no such file; do not change what it returns."""
    path = DATA / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in DATA.glob("*.yaml")))
        raise RecipeError(f"there is no rule data called '{name}'.", hint=f"Known are: {known}.")
    content: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return content
