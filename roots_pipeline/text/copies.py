# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which lines or paragraphs of a text are copies of an earlier one, by their hashes."""

from __future__ import annotations

from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.tables import find, grown, is_half_full, is_taken, put, sized, value_at


@allocating
def count_copies(keys, sizes, length, table, stamp, first_too):
    """(copies, characters in them, table) of `keys` with `sizes`: how many occurred before.

    With `first_too` all occurrences of a repeated key are counted, the first one too.
    """
    table, mask = sized(table, length)
    done = distinct = copies = characters = 0
    while True:
        done, distinct, some, inside = _count_some(keys, sizes, length, table, mask, stamp, first_too, done, distinct)
        copies += some
        characters += inside
        if done == length:
            return copies, characters, table
        table, mask = grown(table, mask, stamp)


@kernel
def _count_some(keys, sizes, length, table, mask, stamp, first_too, done, distinct):
    copies = characters = 0
    for k in range(done, length):
        if is_half_full(mask, distinct):
            return k, distinct, copies, characters
        slot = find(table, mask, keys[k], stamp)
        if is_taken(table, slot, stamp):
            times = 2 if first_too and value_at(table, slot) == 1 else 1
            put(table, slot, keys[k], stamp, 2)
            copies += times
            characters += times * sizes[k]
        else:
            put(table, slot, keys[k], stamp, 1)
            distinct += 1
    return length, distinct, copies, characters
