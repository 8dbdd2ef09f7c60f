"""Kept text by language and script beside ROOTS, and by kind of source beside MassiveText.

In: the counts of the manifest and `data/published.yaml`. Languages are those that the documents carry; a
script is the one that their language is usually written in, not counted letter by letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from roots_pipeline.core.manifest import Manifest
from roots_pipeline.report.gallery_facts import Composition, ShareRow
from roots_pipeline.report.reading import TABLE_ROWS

_DATA = Path(__file__).parent / "data" / "published.yaml"
_CODE, _UNKNOWN = "code", "unknown"


@cache
def published() -> dict[str, Any]:
    """The published figures."""
    value: dict[str, Any] = yaml.safe_load(_DATA.read_text("utf-8"))
    return value


def collect_composition(manifest: Manifest, table: Sequence[tuple[str, str, str, int, int]]) -> Composition:
    """Shares of the kept bytes of a table of source, language, verdict ('' = kept), documents and bytes."""
    facts = published()
    groups = {str(entry["name"]): str(entry.get("group", "")) for entry in manifest.config["sources"]}
    languages: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for source, language, verdict, _, size in table:
        if not verdict:
            group = groups.get(source, "")
            code = language.lower().replace("_", "-").partition("-")[0]
            languages[_CODE if group == _CODE else facts["names"].get(code, code) or _UNKNOWN] += size
            kinds[next((kind for kind, of in facts["massivetext"]["groups"].items() if group in of), group)] += size
    roots: dict[str, int] = facts["roots"]
    return Composition(
        _rows(languages, roots), _rows(_by_script(languages, facts), _by_script(roots, facts)),
        _rows(kinds, facts["massivetext"]["sampling"]),
    )


def _by_script(languages: Mapping[str, int], facts: Mapping[str, Any]) -> dict[str, int]:
    script_of = {language: script for script, names in facts["scripts"].items() for language in names}
    scripts: Counter[str] = Counter()
    for language, size in languages.items():
        scripts[_CODE if language == _CODE else script_of.get(language, _UNKNOWN)] += size
    return dict(scripts)


def _rows(sizes: Mapping[str, int], theirs: Mapping[str, float]) -> tuple[ShareRow, ...]:
    """What either has, the larger of both shares first."""
    whole, published_whole = sum(sizes.values()), sum(theirs.values())
    rows = [ShareRow(name, sizes.get(name, 0), sizes.get(name, 0) / whole if whole else 0.0,
                     theirs[name] / published_whole if name in theirs else None)
            for name in {*sizes, *theirs}]
    rows.sort(key=lambda row: (-row.size, -(row.published or 0), row.name))
    return tuple(rows[:TABLE_ROWS])
