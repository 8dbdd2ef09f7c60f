"""THE page to read first: a recipe becomes the ordered list of steps, here and nowhere else.

    sources ─▶ read + measure ─▶ judge + emit keys ─▶ resolve ─▶ apply, measure … ─▶ write
               (needs text)      (needs measures)     (keys)                         documents, rejected

The recipe lists stages in order. An `Exchange` (documents that share a key must meet) cuts the list into phases. Inside
a phase, maps that need text or compute measures run together in one pass over the text; maps that only judge measures
are kept apart, behind them. That is sound because a judge reads nothing but measures and every measure is taken of
every document, and it is why a changed threshold never reads a text again: its step has a fingerprint of its own. (A
judge whose measures are taken a second time in the same phase runs before that, in the pass over the text.)

Each step writes only the columns it changed, row by row beside those of the steps before (`columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.stages import Exchange, Map, Stage

_VERDICT_COLUMNS = {"verdict", "cause"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A stage and the groups of sources it works on (None: all)."""

    stage: Stage
    on: tuple[str, ...] | None

    def works_on(self, group: str) -> bool:
        return self.on is None or group in self.on


@dataclass(frozen=True, slots=True)
class Phase:
    """What lies between two exchanges: measures first, then judges, then the exchange that ends it (if any)."""

    measures: tuple[Placed, ...]
    judges: tuple[Placed, ...]
    exchange: Placed | None


def build_phases(recipe: CorpusRecipe) -> list[Phase]:
    """The phases of a recipe; the last one has no exchange."""
    phases: list[Phase] = []
    measures: list[Placed] = []
    judges: list[Placed] = []
    for entry in recipe.stages:
        placed = Placed(entry.made, tuple(entry.groups) if entry.groups is not None else None)
        if isinstance(placed.stage, Exchange):
            for exchange in placed.stage.rounds():
                if (prepare := exchange.prepare()) is not None:
                    _place(Placed(prepare, placed.on), measures, phases)
                phases.append(Phase(tuple(measures), tuple(judges), Placed(exchange, placed.on)))
                measures, judges = [], []
        elif is_judge(placed.stage):
            judges.append(placed)
        else:
            if any(set(placed.stage.gives) & set(judge.stage.needs) for judge in judges):
                measures, judges = [*measures, *judges], []
            measures.append(placed)
    phases.append(Phase(tuple(measures), tuple(judges), None))
    return phases


def is_judge(stage: Stage) -> bool:
    """Whether a map does nothing but set verdicts from measures."""
    return isinstance(stage, Map) and "text" not in stage.needs and set(stage.gives) <= _VERDICT_COLUMNS


def _place(prepare: Placed, measures: list[Placed], phases: list[Phase]) -> None:
    """Put what an exchange needs into the first pass over the text, if no stage has changed its columns since then."""
    exchanges = [phase.exchange for phase in phases if phase.exchange is not None]
    later = [entry for phase in phases[1:] for entry in (*phase.measures, *phase.judges)]
    changed = {name for entry in (*exchanges, *later, *measures) for name in entry.stage.gives}
    if phases and not changed & set(prepare.stage.needs):
        phases[0] = replace(phases[0], measures=(*phases[0].measures, prepare))
    else:
        measures.append(prepare)


def maps_for(placed: Sequence[Placed], group: str) -> list[Map]:
    """The maps of a list that work on a group of sources."""
    return [entry.stage for entry in placed if entry.works_on(group) and isinstance(entry.stage, Map)]
