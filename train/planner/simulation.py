"""Simulation of a run event by event: the 1F1B pipeline of one step, and months of steps with failures and spares.

Both have a closed form for simple cases, which the tests compare with; the simulation also covers stages of unequal
length, transfers that take time, and spare nodes that run out and are repaired.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """The order of work of a stage: forward passes to fill, then forward and backward in turn, then the rest."""
    warm = min(stages - stage - 1, micro_batches)
    order = [("forward", number) for number in range(warm)]
    for number in range(micro_batches - warm):
        order += [("forward", warm + number), ("backward", number)]
    return order + [("backward", number) for number in range(micro_batches - warm, micro_batches)]


def pipeline_seconds(
    forward: Sequence[float], backward: Sequence[float], micro_batches: int, transfer: float = 0.0
) -> float:
    """Time of a step without the exchange of gradients; `forward` and `backward` are seconds of each stage."""
    stages = len(forward)
    orders = [one_forward_one_backward(stage, stages, micro_batches) for stage in range(stages)]
    done: dict[tuple[str, int, int], float] = {}
    clocks, places = [0.0] * stages, [0] * stages
    while any(place < len(order) for place, order in zip(places, orders, strict=True)):
        moved = False
        for stage, order in enumerate(orders):
            while places[stage] < len(order):
                kind, number = order[places[stage]]
                ready = _ready(kind, number, stage, stages, done, transfer)
                if ready is None:
                    break
                took = forward[stage] if kind == "forward" else backward[stage]
                clocks[stage] = max(clocks[stage], ready) + took
                done[kind, number, stage] = clocks[stage]
                places[stage] += 1
                moved = True
        assert moved, "the order of a pipeline cannot block itself"
    return max(clocks)


def _ready(
    kind: str, number: int, stage: int, stages: int, done: dict[tuple[str, int, int], float], transfer: float
) -> float | None:
    """When a piece of work may begin, or None if what it waits for is not done."""
    if kind == "forward":
        if stage == 0:
            return 0.0
        before = done.get(("forward", number, stage - 1))
        return None if before is None else before + transfer
    if stage == stages - 1:
        return done.get(("forward", number, stage))
    before = done.get(("backward", number, stage + 1))
    return None if before is None else before + transfer


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that the run needs, nodes that wait, and how they fail; times in seconds."""

    nodes: int
    spares: int
    node_mtbf: float
    repair: float
    restart: float
    save: float
    interval: float  # of work between saves


@dataclass(frozen=True, slots=True)
class Goodput:
    """What became of the time: `kept` work, and shares of it lost to saves, repeated work, restarts, and waiting for a
    node."""

    kept: float
    saving: float
    repeated: float
    restarting: float
    waiting: float
    failures: int


def simulate(cluster: Cluster, work: float, seed: int = 0) -> Goodput:
    """Run until `work` seconds of work are done and saved.

    A failure loses what was done since the last save. A spare takes over after the restart; without one the run waits
    until a node is repaired. Nodes fail at random, also while the run restarts; waiting spares do not fail.
    """
    random = np.random.default_rng(seed)
    rate = cluster.nodes / cluster.node_mtbf
    now = done = saving = repeated = restarting = waiting = 0.0
    failures, spares = 0, cluster.spares
    repairs: list[float] = []
    fails = float(random.exponential(1 / rate))

    def lose_a_node() -> None:
        nonlocal now, spares, waiting, failures, fails
        failures += 1
        heapq.heappush(repairs, now + cluster.repair)
        while repairs and repairs[0] <= now:
            heapq.heappop(repairs)
            spares += 1
        if spares == 0:
            back = heapq.heappop(repairs)
            waiting += back - now
            now, spares = back, 1
        spares -= 1
        fails = now + float(random.exponential(1 / rate))

    while work - done > 1e-9 * work:
        # Pieces that pass without a failure, all at once.
        calm = min((work - done) // cluster.interval, (fails - now) // (cluster.interval + cluster.save))
        now += calm * (cluster.interval + cluster.save)
        done += calm * cluster.interval
        saving += calm * cluster.save
        piece = min(cluster.interval, work - done)
        if fails >= now + piece + cluster.save:
            now += piece + cluster.save
            done += piece
            saving += cluster.save
            continue
        repeated += fails - now
        now = fails
        lose_a_node()
        while fails < now + cluster.restart:
            restarting += fails - now
            now = fails
            lose_a_node()
        now += cluster.restart
        restarting += cluster.restart
    return Goodput(work / now, saving / now, repeated / now, restarting / now, waiting / now, failures)
