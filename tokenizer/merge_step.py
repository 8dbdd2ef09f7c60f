# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""One merge of byte-pair encoding: replace a pair everywhere and bring the counts of its neighbours up to date.

When (a, b) becomes c, a neighbour x on the left turns the pair (x, a) into (x, c), a neighbour y on the right
turns (b, y) into (c, y). Occurrences with the same neighbour on the same side are gathered into one group
first, so that each pair's count is touched once and its new positions lie together in a list of their own. The
rules, including the odd ones, are those of Hugging Face's trainer; the comments name them.

The kernels expect room in all arrays; `merge_loop` checks it before a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined, kernel
from tokenizer.pair_queue import COUNT, join_pair, pair_slot, push
from tokenizer.training_text import INSIDE, OUTSIDE

Int64 = npt.NDArray[np.int64]

_TOKEN, _WEIGHT, _NUMBER, _PLACE, _ON_LEFT = range(5)  # columns of a group
GROUP_COLUMNS = 5


class Scratch(NamedTuple):
    """Working memory of one step. `left`, `right`: int32 by token id, the token's group or -1 (always reset);
    `groups`: (n, 5) int64; `touched`: (n, 2) int64, group and position of each new pair."""

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    groups: Int64
    touched: Int64


@inlined
def _join_group(slots, groups, number, token, weight, on_left):
    """Add an occurrence's weight to the group of a neighbour; `number` is the group if it is a new one."""
    group = np.int64(slots[token])
    if group < 0:
        group = np.int64(number)
        slots[token] = group
        groups[group, _TOKEN] = token
        groups[group, _WEIGHT] = 0
        groups[group, _NUMBER] = 0
        groups[group, _ON_LEFT] = on_left
    groups[group, _WEIGHT] += weight
    groups[group, _NUMBER] += 1
    return group


@kernel
def replace_pair(cells, lengths, positions, a, b, c, scratch):
    """Write c over the pairs (a, b) at `positions`, left to right; returns (groups, touched)."""
    ids, pieces, counts = cells
    left_slots, right_slots, groups, touched = scratch
    length_a, length_b = lengths[a], lengths[b]
    group_number = 0
    touched_number = 0
    for index in range(positions.size):
        cell = np.int64(positions[index])
        middle = cell + length_a
        if ids[cell] != a or ids[middle] != b:
            continue  # gone since it was noted, or overlapped by the occurrence before it
        weight = counts[pieces[cell]]
        behind = middle + length_b
        x, y = ids[cell - 1], ids[behind]
        ids[middle - 1] = INSIDE
        ids[middle] = INSIDE
        ids[cell] = c
        ids[behind - 1] = c
        if x != OUTSIDE:
            group = _join_group(left_slots, groups, group_number, x, weight, 1)
            group_number = max(group_number, group + 1)
            touched[touched_number, 0] = group
            touched[touched_number, 1] = cell - lengths[x]
            touched_number += 1
        if y != OUTSIDE:
            group = _join_group(right_slots, groups, group_number, y, weight, 0)
            group_number = max(group_number, group + 1)
            touched[touched_number, 0] = group
            touched[touched_number, 1] = cell
            touched_number += 1
    return group_number, touched_number


@kernel
def update_counts(pairs, lengths, a, b, c, longest, groups):
    """Take each group's weight from its old pair and give it to its new one."""
    rows, used = pairs
    for group in range(groups.shape[0]):
        token = groups[group, _TOKEN]
        weight = groups[group, _WEIGHT]
        on_left = groups[group, _ON_LEFT] == 1
        old = join_pair(token, a) if on_left else join_pair(b, token)
        rows[pair_slot(rows, used, old), COUNT] -= weight
        # Hugging Face's rule: a token may be shorter than the limit, not as long, and pairs of bytes are exempt.
        if lengths[token] + lengths[c] < longest:
            new = join_pair(token, c) if on_left else join_pair(c, token)
            rows[pair_slot(rows, used, new), COUNT] += weight


@kernel
def queue_new_pairs(pairs, queue, occurrences, lengths, c, longest, scratch, group_number, touched_number):
    """Queue each group's new pair with its positions, if its count is positive; reset the scratch slots."""
    pair_rows, pair_used = pairs
    queue_rows, queue_used = queue
    positions, spans, used = occurrences
    left_slots, right_slots, groups, touched = scratch
    for group in range(group_number):
        token = groups[group, _TOKEN]
        on_left = groups[group, _ON_LEFT] == 1
        if on_left:
            left_slots[token] = -1
        else:
            right_slots[token] = -1
        groups[group, _PLACE] = -1
        if lengths[token] + lengths[c] >= longest:
            continue
        pair = join_pair(token, c) if on_left else join_pair(c, token)
        count = pair_rows[pair_slot(pair_rows, pair_used, pair), COUNT]
        if count <= 0:
            continue
        entry, place = used[0], used[1]
        push(queue_rows, queue_used, count, pair, entry)
        spans[entry, 0] = place
        spans[entry, 1] = groups[group, _NUMBER]
        groups[group, _PLACE] = place
        used[0] = entry + 1
        used[1] = place + groups[group, _NUMBER]
    for index in range(touched_number):
        group = touched[index, 0]
        place = groups[group, _PLACE]
        if place >= 0:
            positions[place] = touched[index, 1]
            groups[group, _PLACE] = place + 1
