"""JSON schema of the section `corpus`: sources by kind and stages by name, each with the keys that it takes."""

from __future__ import annotations

from typing import Any

from roots_pipeline.config import CorpusRecipe, SourceEntry, StageEntry
from roots_pipeline.core.schema import Schema, describe
from roots_pipeline.sources import SOURCES
from roots_pipeline.stage_table import STAGES

# Filled in from the name and the path of a source, or computed.
_OURS = ("source", "root", "content")


def corpus_schema() -> Schema:
    """The schema of the section."""
    section = describe(CorpusRecipe)
    section["properties"]["sources"]["items"] = {"oneOf": [
        _entry(SourceEntry, "kind", name, reader) for name, reader in SOURCES.items()]}
    section["properties"]["stages"]["items"] = {"oneOf": [
        _entry(StageEntry, "stage", name, stage) for name, stage in STAGES.items()]}
    return section


def _entry(entry: type[Any], key: str, name: str, kind: type[Any]) -> Schema:
    """One alternative: the keys of every entry, the name that chooses this one, and the keys of its class."""
    common, own = describe(entry), describe(kind, leave_out=_OURS)
    properties = {key: {"const": name}, **{other: value for other, value in common["properties"].items()
                                           if other != key}, **own["properties"]}
    return {**own, "title": name, "properties": properties,
            "required": [*common["required"], *own.get("required", [])]}
