"""The greedy choice of a blend, sample after sample: the group with the largest error, the first of equal ones.

The error of a group before sample i is w x max(i, 1) - drawn, in float64, one multiplication and one subtraction
(see `blend`). Looking at every group for every sample is fastest for few groups. Of many, only those can be chosen
whose error is near the largest: a group that has just been drawn is behind by one, and catches up by w a sample. So
groups below a threshold sleep until the sample at which they may have reached it, and only those awake are compared.
Once none of them reaches the threshold, it is set anew below the largest error of all. Sleeping groups are below the
threshold whatever the rounding, so the choice is the same one, ties included.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from mixtures.indexed import IntArray

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_MANY = 128  # from so many groups on, sleeping pays
_WHEEL = 4096  # samples that a group sleeps at most before its time is looked at again
_NEVER = np.iinfo(np.int64).max


def draw(shares: Floats, limits: Integers, groups: IntArray, numbers: Integers, drawn: Integers) -> None:
    """Fill `groups` and `numbers` [samples], and count `drawn` [groups], of which none goes beyond `limits`."""
    (_draw_of_many if len(shares) >= _MANY else _draw_of_few)(shares, limits, groups, numbers, drawn)


@njit(cache=True)
def _draw_of_few(shares: Floats, limits: Integers, groups: IntArray, numbers: Integers, drawn: Integers) -> None:
    counts = np.zeros(len(shares))
    for i in range(len(groups)):
        scale = max(np.float64(i), 1.0)
        best, best_error = -1, -np.inf
        for group in range(len(shares)):
            error = shares[group] * scale - counts[group]
            if error > best_error and drawn[group] < limits[group]:
                best, best_error = group, error
        groups[i] = best
        numbers[i] = drawn[best]
        drawn[best] += 1
        counts[best] += 1.0


@njit(cache=True)
def _draw_of_many(shares: Floats, limits: Integers, groups: IntArray, numbers: Integers, drawn: Integers) -> None:
    total = len(shares)
    counts = np.zeros(total)
    inverse = np.where(shares > 0, 1 / shares, np.inf)
    width = 0.5 / math.sqrt(total)  # wider than what the largest error fluctuates by, mostly
    threshold, crowd, look_again = np.inf, int(4 * width * total), 0
    awake, number_awake = np.empty(total, np.int64), 0
    # Sleeping groups by the sample at which they wake, as lists: the first of each slot, and the next of each group.
    slots, following = np.full(_WHEEL, -1), np.empty(total, np.int64)
    for i in range(len(groups)):
        scale = max(np.float64(i), 1.0)
        woken = slots[i % _WHEEL]
        slots[i % _WHEEL] = -1
        while woken >= 0:
            group, woken = woken, following[woken]
            time = _time(inverse[group], counts[group], threshold)
            number_awake = _wake_or_sleep(group, time, i, slots, following, awake, number_awake)
        place, best_error = _largest(awake, number_awake, shares, counts, scale)
        if best_error < threshold or (number_awake > crowd and i >= look_again):
            threshold = _largest_error(shares, counts, drawn, limits, scale) - width
            number_awake, look_again = 0, i + total
            slots[:] = -1
            for group in range(total):
                if drawn[group] < limits[group]:
                    time = _time(inverse[group], counts[group], threshold)
                    number_awake = _wake_or_sleep(group, time, i, slots, following, awake, number_awake)
            place, best_error = _largest(awake, number_awake, shares, counts, scale)
        best = awake[place]
        groups[i] = best
        numbers[i] = drawn[best]
        drawn[best] += 1
        counts[best] += 1.0
        time = _time(inverse[best], counts[best], threshold) if drawn[best] < limits[best] else _NEVER
        if time > i + 1:
            number_awake -= 1
            awake[place] = awake[number_awake]
            _sleep(best, time, i, slots, following)


@njit(cache=True)
def _largest(awake: Integers, number: int, shares: Floats, counts: Floats, scale: float) -> tuple[int, float]:
    """The place in `awake` of the group with the largest error, the lowest number of equal ones, and that error."""
    best, best_error = -1, -np.inf
    for place in range(number):
        group = awake[place]
        error = shares[group] * scale - counts[group]
        if error > best_error or (error == best_error and group < awake[best]):
            best, best_error = place, error
    return best, best_error


@njit(cache=True)
def _largest_error(shares: Floats, counts: Floats, drawn: Integers, limits: Integers, scale: float) -> float:
    largest = -np.inf
    for group in range(len(shares)):
        if drawn[group] < limits[group]:
            largest = max(largest, shares[group] * scale - counts[group])
    return largest


@njit(cache=True)
def _time(inverse: float, count: float, threshold: float) -> int:
    """A sample before which the error of a group is certainly below the threshold: early by more than any rounding.

    `inverse` is 1 / w, infinite for a group without weight.
    """
    wanted = count + threshold - 1e-6 - 1e-14 * count
    if wanted <= 0:
        return 0
    time = wanted * inverse
    return int(time) - 1 if time < 2.0**62 else _NEVER


@njit(cache=True)
def _wake_or_sleep(
    group: int, time: int, now: int, slots: Integers, following: Integers, awake: Integers, number: int
) -> int:
    """Add a group to the `number` that are awake, or put it to sleep until the sample `time`; how many are awake."""
    if time > now:
        _sleep(group, time, now, slots, following)
        return number
    awake[number] = group
    return number + 1


@njit(cache=True)
def _sleep(group: int, time: int, now: int, slots: Integers, following: Integers) -> None:
    """Put a group to sleep until the sample `time`, or as long as the wheel is; for ever if that is never."""
    if time < _NEVER:
        slot = min(time, now + _WHEEL - 1) % _WHEEL
        following[group] = slots[slot]
        slots[slot] = group
