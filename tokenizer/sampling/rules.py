"""The arithmetic of sampling: how much of each group (language, source) a tokenizer should see.

In: bytes of each group. Out: bytes that are wanted of it; how they become a ratio says `ratios`.

BLOOM's rule, as its scripts have it: the sizes of the languages are water-filled to a total, the share of a language is
proportional to (filled size / total) ** 0.3, and what a language gets of the budget is water-filled over its sources.
Water-filling, powers and explicit weights are those of the mixture (`roots_pipeline.core.weights`).
"""

from __future__ import annotations

from collections.abc import Mapping

from roots_pipeline.core import weights as shared
from roots_pipeline.core.errors import MixtureError, TokenizerError
from roots_pipeline.core.weights import Entry, temperature, water_fill
from tokenizer.counts_file import Group


def group_name(group: Group) -> str:
    """A group (language, source) as a mixture writes it: `source.language`."""
    language, source = group
    return f"{source}.{language}"


def bloom(
    sizes: Mapping[Group, int], budget: float, alpha: float, filled_to: float | None, *, repeat: bool = False
) -> dict[Group, float]:
    """Bytes wanted of each group by BLOOM's rule; `filled_to` None: half of all text, as BLOOM's 800 GB were.

    A language that is smaller than its share gives all it has. If text may `repeat`, it gives its share all the same,
    each source in proportion to its size.
    """
    languages: dict[str, float] = {}
    for (language, _), size in sizes.items():
        languages[language] = languages.get(language, 0.0) + size
    total = sum(languages.values()) / 2 if filled_to is None else filled_to
    shares = temperature(water_fill(languages, total), alpha)
    wanted: dict[Group, float] = {}
    for language, share in shares.items():
        own = {group: float(size) for group, size in sizes.items() if group[0] == language}
        if repeat and share * budget > languages[language]:
            wanted |= {group: share * budget * size / languages[language] for group, size in own.items()}
        else:
            wanted |= water_fill(own, share * budget)
    return wanted


def proportional(sizes: Mapping[Group, int], budget: float) -> dict[Group, float]:
    """Bytes wanted of each group: every byte equally likely."""
    total = sum(sizes.values())
    return {group: budget * size / total for group, size in sizes.items()}


def explicit(
    sizes: Mapping[Group, int], weights: Mapping[str, float], *, leave_out: bool = False
) -> dict[Group, float]:
    """Shares from weights of groups or patterns of them, written `source.language` as in a mixture.

    A group belongs to the entry that names it, else to the first whose pattern fits; an entry's weight is shared among
    its groups by their bytes. Raises TokenizerError for weights that cannot be and, unless `leave_out`, for an entry
    without a group and a group without an entry.
    """
    entries = [Entry(name, weight, (name,)) for name, weight in weights.items()]
    names = {group_name(group): size for group, size in sizes.items()}
    try:
        shares, _ = shared.explicit(names, entries, allow_unmatched=leave_out)
    except MixtureError as error:
        raise TokenizerError(f"sampling: {error.message}", where=error.where, hint=error.hint) from error
    return {group: shares[group_name(group)] for group in sizes}


def ratios(
    sizes: Mapping[Group, int], wanted: Mapping[Group, float], *, repeat: bool = False
) -> dict[Group, float]:
    """What part of each group is taken: wanted / size, at most 1 unless text may `repeat`."""
    return {
        group: 0.0 if not size else wanted[group] / size if repeat else min(1.0, wanted[group] / size)
        for group, size in sizes.items()
    }
