"""The `corpus` section of a recipe: sources, and the ordered list of stages with their parameters.

    corpus:
      sources:
        - {name: news, kind: jsonl, path: "data/news/*.jsonl.zst", language: en, group: web}
      stages:
        - {stage: massivetext, groups: [web]}

Checked here, at the border; everything behind it works with frozen dataclasses. Paths are local paths or fsspec URLs,
relative to the folder the command runs in; `package://sample/…` names a file that ships with rootbloom.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StrictInt, model_validator

from roots_pipeline.core.recipe import load_section, nearest
from roots_pipeline.core.stages import Stage
from roots_pipeline.dedup.ranks import sources_named
from roots_pipeline.stage_table import make_reader, make_stage

RECIPES = Path(__file__).parent / "recipes"
# A recipe may inherit stages for groups that it has no sources of; any other unknown group is a slip of the pen.
USUAL_GROUPS = ("books", "code", "news", "web", "wiki")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)?")
_UNITS = {None: 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class SourceEntry(BaseModel):
    """One source. Further keys are those of its reader (see `roots_pipeline.sources`).

    `limit`: only its first so many documents, in the order of its files.
    """

    model_config = ConfigDict(extra="allow")

    name: str
    kind: str
    path: Annotated[str, Field(min_length=1)]
    group: str = "web"
    exclude: list[str] = []
    limit: Annotated[int, Field(ge=1)] | None = None
    _reader: Any = PrivateAttr()

    @model_validator(mode="after")
    def _make_reader(self) -> SourceEntry:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the name {self.name[:120]!r} cannot be part of a file name. "
                             "Use up to 100 letters, digits, '-' and '_', the first a letter or digit.")
        for key in ("source", "root"):
            if key in (self.model_extra or {}):
                raise ValueError(f"unknown key '{key}': it follows from `name` and `path`.")
        self._reader = make_reader(self.kind, {**(self.model_extra or {}), "source": self.name, "root": self.path})
        return self

    @property
    def reader(self) -> Any:
        """The reader with its settings."""
        return self._reader

    def wants(self, path: str) -> bool:
        """Whether a file found below `path` is not excluded by its name."""
        return not any(fnmatch(path.rsplit("/", 1)[-1], pattern) for pattern in self.exclude)


class StageEntry(BaseModel):
    """One stage: its name, the groups of sources it works on (default all), and its own parameters."""

    model_config = ConfigDict(extra="allow")

    stage: str
    groups: Annotated[list[str], Field(min_length=1)] | None = None
    _made: Any = PrivateAttr()

    @model_validator(mode="after")
    def _make_stage(self) -> StageEntry:
        self._made = make_stage(self.stage, self.model_extra or {})
        return self

    @property
    def made(self) -> Stage:
        """The stage with its parameters."""
        stage: Stage = self._made
        return stage


class CorpusRecipe(BaseModel):
    """The whole section."""

    model_config = ConfigDict(extra="forbid")

    sources: Annotated[list[SourceEntry], Field(min_length=1)]
    stages: list[StageEntry] = []
    shard_size: str | StrictInt = "auto"
    rejected_text: Literal["full", "excerpt", "none"] = "excerpt"
    maximum_bad_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    allow_empty: bool = False

    @model_validator(mode="after")
    def _check(self) -> CorpusRecipe:
        names = [source.name for source in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sources are called '{name}'; names must differ.")
        groups = {source.group for source in self.sources} | set(USUAL_GROUPS)
        for entry in self.stages:
            for group in entry.groups or []:
                if group not in groups:
                    raise ValueError(f"stage '{entry.stage}' works on group '{group}', which no source belongs to. "
                                     + nearest(group, list(groups)))
        if self.shard_bytes is not None and self.shard_bytes < 1:
            raise ValueError("shard_size must be at least one byte.")
        return self

    @property
    def shard_bytes(self) -> int | None:
        """Target size of a shard in bytes of input files; None: it follows from the size of the inputs."""
        if isinstance(self.shard_size, int):
            return self.shard_size
        if self.shard_size == "auto":
            return None
        match = _SIZE.fullmatch(self.shard_size.strip())
        if match is None or len(match[1]) > 15:
            raise ValueError(f"shard_size: {self.shard_size!r} is not `auto` and not a size such as 64MB.")
        return int(float(match[1]) * _UNITS[match[2]])


def load_corpus_recipe(recipe: str) -> CorpusRecipe:
    """The checked `corpus` section of a recipe, by name or path. Raises RecipeError."""
    return load_section(recipe, "corpus", CorpusRecipe, RECIPES)


def with_limit(recipe: CorpusRecipe, limit: int) -> CorpusRecipe:
    """The recipe on no more than so many documents of each source."""
    sources = [source.model_copy(update={"limit": min(limit, source.limit or limit)}) for source in recipe.sources]
    return recipe.model_copy(update={"sources": sources})


def advice_on(recipe: CorpusRecipe) -> list[str]:
    """Sentences about settings that are possible but poor, unless they are those of `sample`, which nobody chose."""
    names = [source.name for source in recipe.sources]
    given = [(entry.stage, entry.groups, entry.model_extra) for entry in load_corpus_recipe("sample").stages]
    sentences = []
    for entry in recipe.stages:
        own = (entry.stage, entry.groups, entry.model_extra) not in given
        found = [*(entry.made.advice() if own else ()), *_unknown_preferences(entry, names)]
        sentences += [f"stage '{entry.stage}': {sentence}" for sentence in found]
    return sentences


def _unknown_preferences(entry: StageEntry, names: list[str]) -> list[str]:
    """A slip of the pen, or a stage that a recipe inherits with other sources: no error therefore."""
    unknown = [name for name in sources_named(entry.made) if name not in names]
    known = len(unknown) < len(sources_named(entry.made))
    return [f"prefers source '{name}', which there is not. {nearest(name, names)}" for name in unknown if known]
