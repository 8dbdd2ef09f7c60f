"""What a run costs: GPU-hours, energy, carbon; and how often to save, given how often things fail.

Energy is the GPUs' rated power, all the time, times the power usage of the building: an upper bound, and the way the
published 433,196 kWh of BLOOM were found (1,082,990 hours x 0.4 kW exactly). Carbon follows from the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HOURS_A_DAY, SECONDS_AN_HOUR = 24.0, 3600.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is not known of a cluster: power usage effectiveness, grams of CO2 a kWh, failures and restarts."""

    pue: float = 1.2
    grams_per_kwh: float = 57.0  # France, where BLOOM was trained
    node_mtbf_hours: float = 8000.0  # of one node; BLOOM's 48 saw one or two failures a week
    restart_minutes: float = 15.0
    write_gbytes: float = 60.0  # of the shared disk, GB/s: BLOOM's 2.3 TB took 40 seconds


@dataclass(frozen=True, slots=True)
class Bill:
    """Of a whole run."""

    days: float
    gpu_hours: float
    kwh: float
    tonnes_co2: float


def bill(seconds: float, gpus: int, watts: float, assumed: Assumptions) -> Bill:
    """For `gpus` GPUs during `seconds`."""
    hours = seconds / SECONDS_AN_HOUR * gpus
    energy = hours * watts / 1000.0 * assumed.pue
    return Bill(seconds / SECONDS_AN_HOUR / HOURS_A_DAY, hours, energy, energy * assumed.grams_per_kwh / 1e6)


def best_interval(save_seconds: float, mtbf_seconds: float) -> float:
    """Seconds of work between saves that lose least: Daly's higher-order estimate of Young's sqrt(2 C M).

    J. T. Daly, A higher order estimate of the optimum checkpoint interval, FGCS 22 (2006), equation 37.
    """
    if save_seconds >= 2 * mtbf_seconds:
        return mtbf_seconds
    root = math.sqrt(save_seconds / (2 * mtbf_seconds))
    return math.sqrt(2 * save_seconds * mtbf_seconds) * (1 + root / 3 + root * root / 9) - save_seconds


def expected_goodput(interval: float, save: float, restart: float, mtbf: float) -> float:
    """Share of time that is kept work, with failures at random (exponential) and saves every `interval` seconds.

    A segment of interval + save seconds is repeated, after a restart, until it passes without a failure: its expected
    time is M exp(R / M) (exp((interval + save) / M) - 1) (Daly 2006, equation 13). 0 if that is beyond all numbers.
    """
    if restart + interval + save > 700 * mtbf:
        return 0.0
    expected = mtbf * math.exp(restart / mtbf) * math.expm1((interval + save) / mtbf)
    return interval / expected
