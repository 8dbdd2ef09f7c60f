"""What failures leave of a run on clusters of several sizes: a step of its layout, and months of steps, event by event.

`play` gives one `Row` for each size, `rows_as_text` prints them beside the closed forms: (p - 1) / (m + p - 1) for the
bubble of equal stages, Daly's expectation for the share of time that is kept if a spare node is always there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, quantiles
from typing import Any

from roots_pipeline.core.errors import RecipeError
from train.config import TrainConfig
from train.model.shape import checkpoint_bytes, parameter_count
from train.parallel.layout import Layout
from train.planner.costs import HOURS_A_DAY, SECONDS_AN_HOUR, Assumptions, best_interval, expected_goodput
from train.planner.hardware import Hardware
from train.planner.sheet import LEAST_GOODPUT, plan_run
from train.planner.simulation import Cluster, Goodput, pipeline_seconds, simulate
from train.planner.speed import bubble_share, stage_seconds

_DAY = HOURS_A_DAY * SECONDS_AN_HOUR
_FAILURES = 20_000.0  # of one trial at most, about: more change nothing but the time it takes
_FOUND = 0.99  # share of failures that find a spare node, if nobody says how many there are


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for every size; `spares` and `save_minutes` follow from the size if they are None."""

    spares: int | None = None
    repair_hours: float = 24.0
    save_minutes: float | None = None  # of work between saves; None: Daly's
    days: float = 100.0  # of work, where no layout says how long the run is
    trials: int = 20
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the fastest layout that fits, simulated and by formula; `equal_bubble` is that of equal stages."""

    layout: Layout
    micro_batch: int
    seconds: float
    formula_seconds: float
    bubble: float
    formula_bubble: float
    equal_bubble: float


@dataclass(frozen=True, slots=True)
class Row:
    """One size of cluster. Times in seconds; `simulated` is the mean of all trials, None if next to nothing is kept."""

    nodes: int
    spares: int
    spares_enough: int  # so many are there for 99% of the failures
    step: Step | None
    no_step: str | None  # why there is none
    mtbf: float  # of the whole cluster
    save: float
    interval: float
    closed_form: float  # with spares enough
    simulated: Goodput | None
    low: float  # kept in the worst tenth of the trials, and in the best
    high: float
    work: float  # of the whole run, or what was asked for

    @property
    def days(self) -> float | None:
        """Of the whole run with failures; None without a layout."""
        return self.work / self.simulated.kept / _DAY if self.step and self.simulated else None


def play(
    config: TrainConfig, vocabulary: int, sizes: Sequence[int], hardware: Hardware, assumed: Assumptions,
    asked: Question,
) -> list[Row]:  # fmt: skip
    """One row for each number of nodes. Raises RecipeError if this GPU does not compute in the recipe's precision."""
    hardware.peak(config.precision)
    return [_row(config, vocabulary, nodes, hardware, assumed, asked) for nodes in sizes]


def _row(
    config: TrainConfig, vocabulary: int, nodes: int, hardware: Hardware, assumed: Assumptions, asked: Question
) -> Row:
    step, why, work = _step(config, vocabulary, nodes, hardware, asked.days * _DAY)
    mtbf = assumed.node_mtbf_hours * SECONDS_AN_HOUR / nodes
    size = checkpoint_bytes(parameter_count(config.shape(vocabulary)), config.precision)
    save, restart = size / (assumed.write_gbytes * 1e9), 60 * assumed.restart_minutes
    interval = best_interval(save, mtbf) if asked.save_minutes is None else 60 * asked.save_minutes
    interval = max(interval, step.seconds) if step else interval  # saves come after whole steps
    expected = expected_goodput(interval, save, restart, mtbf)
    enough = enough_spares(nodes * asked.repair_hours / assumed.node_mtbf_hours)
    spares = enough if asked.spares is None else asked.spares
    found: list[Goodput] = []
    together = None
    if expected >= LEAST_GOODPUT:
        repair = asked.repair_hours * SECONDS_AN_HOUR
        cluster = Cluster(nodes, spares, assumed.node_mtbf_hours * SECONDS_AN_HOUR, repair, restart, save, interval)
        part = min(work, _FAILURES * mtbf * expected)
        found = [simulate(cluster, part, seed=asked.seed + trial) for trial in range(asked.trials)]
        together = _together(found, part / work)
    kept = [one.kept for one in found]
    tenths = quantiles(kept, n=10) if len(kept) > 1 else [kept[0]] * 9 if kept else [0.0] * 9
    return Row(
        nodes, spares, enough, step, why, mtbf, save, interval, expected, together,
        max(tenths[0], min(kept, default=0.0)), min(tenths[-1], max(kept, default=0.0)), work,
    )  # fmt: skip


def _step(
    config: TrainConfig, vocabulary: int, nodes: int, hardware: Hardware, otherwise: float
) -> tuple[Step | None, str | None, float]:
    """(the step, or why there is none, seconds of work of the whole run or `otherwise`)."""
    try:
        # Failures are judged by whoever asks, so the plan itself shall not stumble over them.
        sheet = plan_run(config, vocabulary, nodes * hardware.node.gpus, hardware, Assumptions(node_mtbf_hours=1e12))
    except RecipeError as error:
        return None, error.message, otherwise
    chosen = sheet.chosen
    used = config.model_copy(update={"micro_batch": chosen.micro_batch})
    forward, backward, transfer = stage_seconds(sheet.shape, used, chosen.layout, hardware)
    micro_batches = used.global_batch // (used.micro_batch * chosen.layout.data)
    played = pipeline_seconds(forward, backward, micro_batches, transfer)
    busy = micro_batches * (fmean(forward) + fmean(backward))
    seconds = played + chosen.time.data
    step = Step(
        chosen.layout, chosen.micro_batch, seconds, chosen.time.total, max(0.0, 1 - busy / played),
        chosen.time.bubble_share, bubble_share(chosen.layout.pipeline, micro_batches),
    )  # fmt: skip
    return step, None, sheet.seconds * seconds / chosen.time.total


def enough_spares(under_repair: float) -> int:
    """The fewest spares with which 99% of failures find one; nodes under repair are Poisson distributed."""
    if under_repair == 0:
        return 1
    count, below = max(0, math.floor(under_repair - 10 * math.sqrt(under_repair))), 0.0
    while below < _FOUND:
        below += math.exp(count * math.log(under_repair) - under_repair - math.lgamma(count + 1))
        count += 1
    return count


def _together(found: Sequence[Goodput], share: float) -> Goodput:
    """All trials as one: their work over their time. `share` is what they simulated of the work, in which failures are
    counted."""
    times = [1 / one.kept for one in found]
    names = ("saving", "repeated", "restarting", "waiting")
    saving, repeated, restarting, waiting = (fmean([getattr(one, name) for one in found], times) for name in names)
    failures = round(fmean(one.failures for one in found) / share)
    return Goodput(1 / fmean(times), saving, repeated, restarting, waiting, failures)


def rows_as_text(
    rows: Sequence[Row], config: TrainConfig, vocabulary: int, assumed: Assumptions, asked: Question
) -> str:
    """The rows for people: the steps, then the runs."""
    shape = config.shape(vocabulary)
    size = checkpoint_bytes(parameter_count(shape), config.precision)
    short = [f"{row.spares_enough} for {row.nodes:,} nodes" for row in rows if row.spares < row.spares_enough]
    why = dict.fromkeys(row.no_step for row in rows if row.no_step)
    return "\n".join([
        f"{shape.title} of {parameter_count(shape):,} parameters. A node fails every {assumed.node_mtbf_hours:,g} "
        f"hours, comes back after {asked.repair_hours:g};",
        f"a restart takes {assumed.restart_minutes:g} minutes, a save of {size / 1e9:,.1f} GB "
        f"{size / 1e9 / assumed.write_gbytes:,.1f} seconds. Trials: {asked.trials}.",
        "",
        f"{'nodes':>7}  {'layout':<38}{'micro':>6}{'s/step':>9}{'formula':>9}{'bubble':>8}{'formula':>9}"
        f"{'equal stages':>14}",
        *(_step_line(row) for row in rows),
        *(f"No layout for this size: {one}" for one in why),
        "",
        f"{'nodes':>7}{'spares':>8}{'failures':>10}{'kept':>8}{'10% to 90%':>17}{'formula':>9}{'saves':>7}"
        f"{'repeats':>9}{'restarts':>10}{'waits':>7}{'save every':>12}{'days':>9}",
        *(_run_line(row) for row in rows),
        "",
        "Formulas: the first micro-batch through all stages, the others at the pace of the longest; Daly's share kept,",
        "if a failure always finds a spare." + (
            f" For that in 99% of all failures: {', '.join(short)}." if short else ""
        ),
    ])  # fmt: skip


def _step_line(row: Row) -> str:
    step = row.step
    if step is None:
        return f"{row.nodes:>7}  -"
    return (
        f"{row.nodes:>7}  {step.layout!s:<38}{step.micro_batch:>6}{step.seconds:>9.2f}{step.formula_seconds:>9.2f}"
        f"{step.bubble:>8.1%}{step.formula_bubble:>9.1%}{step.equal_bubble:>14.1%}"
    )


def _run_line(row: Row) -> str:
    found, head = row.simulated, f"{row.nodes:>7}{row.spares:>8}"
    if found is None:
        return f"{head}  something fails every {row.mtbf:,.0f} seconds: next to nothing is kept"
    days = f"{row.days:,.1f}" if row.days else "-"
    return (
        f"{head}{found.failures:>10,}{found.kept:>8.1%}{f'{row.low:.1%} to {row.high:.1%}':>17}{row.closed_form:>9.1%}"
        f"{found.saving:>7.1%}{found.repeated:>9.1%}{found.restarting:>10.1%}{found.waiting:>7.1%}"
        f"{f'{row.interval / 60:,.1f} min':>12}{days:>9}"
    )


def rows_as_facts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows for programs."""
    return [{**asdict(row), "days": row.days} for row in rows]
