"""The names a recipe may use, and what they stand for: explicit tables, no registration by import.

`SOURCES` maps the `kind` of a source to its reader, `STAGES` the name of a stage to its class. Both kinds are frozen
dataclasses, so their fields are the keys that a recipe may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter, ValidationError

from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.stages import Stage
from roots_pipeline.decontamination.stage import Decontaminate
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.segments_joined import JoinedSegments
from roots_pipeline.dedup.simhash import SimHashDuplicates
from roots_pipeline.dedup.substring import RepeatedPassages
from roots_pipeline.dedup.urls import UrlDuplicates
from roots_pipeline.rules.catalogue import CATALOGUE_FILTERS, CATALOGUE_MAPS
from roots_pipeline.rules.classifier import Classify
from roots_pipeline.rules.code import CodeMeasures
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification
from roots_pipeline.rules.license_filter import DetectLicense, FilterLicense
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.rules.perplexity import RootsPerplexity
from roots_pipeline.rules.pii import PersonalInformation
from roots_pipeline.rules.roots_measures import RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from roots_pipeline.rules.thresholds import Thresholds
from roots_pipeline.rules.url_blocklist import UrlBlocklist
from roots_pipeline.sources import SOURCES

_ALL: tuple[type[Stage], ...] = (
    UrlBlocklist, Classify, LanguageIdentification, LanguageAgreement, MassiveText, RootsModify, RootsMeasures,
    RootsPerplexity, CodeMeasures, DetectLicense, FilterLicense, Thresholds,
    UrlDuplicates, ExactDuplicates, MinHashDuplicates, SimHashDuplicates, RepeatedLines, RepeatedPassages,
    JoinedSegments, Decontaminate, PersonalInformation, *CATALOGUE_MAPS, *CATALOGUE_FILTERS,
)
STAGES: dict[str, type[Stage]] = {stage.name: stage for stage in _ALL}

# Filled in from the source's name and path; not for recipes.
_OURS = ("source", "root")


def make_stage(name: str, settings: Mapping[str, Any]) -> Stage:
    """A stage from its recipe entry. Raises ValueError with a sentence for an unknown name, key or value."""
    if name not in STAGES:
        raise ValueError(f"unknown stage '{name}'. {nearest(name, list(STAGES))}")
    stage: Stage = _make(STAGES[name], f"stage '{name}'", settings)
    return stage


def make_reader(kind: str, settings: Mapping[str, Any]) -> Any:
    """A reader from its recipe entry. Raises ValueError with a sentence for an unknown kind, key or value."""
    if kind not in SOURCES:
        raise ValueError(f"unknown kind of source '{kind}'. {nearest(kind, list(SOURCES))}")
    return _make(SOURCES[kind], f"source of kind '{kind}'", settings)


def _make(kind: type[Any], what: str, settings: Mapping[str, Any]) -> Any:
    known = [entry.name for entry in fields(kind) if entry.init and entry.name not in _OURS]
    for key in settings:
        if key not in known and key not in _OURS:
            raise ValueError(f"unknown key '{key}' in {what}. {nearest(key, known)}")
    try:
        return TypeAdapter(kind).validate_python(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        quote = " YAML reads yes, no, on and off as true or false: put such a word in quotes."
        hint = quote if isinstance(first["input"], bool) else ""
        raise ValueError(f"{what}: {place}: {first['msg']} (found {first['input']!r}).{hint}"[:500]) from error
