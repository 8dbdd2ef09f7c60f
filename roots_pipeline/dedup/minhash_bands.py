"""How MinHash bands behave: the S-curve, what is wrong with a choice of bands, and what a signature proves.

A pair of similarity s agrees in one number of the signature with probability s, in a whole band of r numbers with s^r,
and becomes a candidate, if any of b bands agrees, with 1 - (1 - s^r)^b (Leskovec, Rajaraman, Ullman: Mining of Massive
Datasets, section 3.4). The number of equal numbers among k is binomial; so a signature alone can settle most pairs.
"""

from __future__ import annotations

_WANTED_RECALL = 0.99
_POOR_RECALL = 0.9
_UNRELATED = 0.5  # half the threshold is "quite unrelated"; candidates there cost time and lead to nothing


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """The chance that a pair of this Jaccard similarity shares at least one band."""
    return float(1 - (1 - similarity**rows) ** bands)


def best_bands(threshold: float, hashes: int, recall: float = _WANTED_RECALL) -> tuple[int, int]:
    """(bands, rows) that find pairs at the threshold with the wanted chance and the fewest needless candidates."""
    for rows in range(hashes, 1, -1):
        if candidate_probability(threshold, hashes // rows, rows) >= recall:
            return hashes // rows, rows
    return hashes, 1


def band_advice(threshold: float, hashes: int, bands: int, rows: int) -> list[str]:
    """What a user should know about a choice of bands: sentences, none if all is well."""
    found = candidate_probability(threshold, bands, rows)
    swapped = candidate_probability(threshold, rows, bands)
    needless = candidate_probability(threshold * _UNRELATED, bands, rows)
    better = "bands: {}, rows: {} would find {:.1%}".format(
        *(choice := best_bands(threshold, hashes)), candidate_probability(threshold, *choice)
    )
    advice = []
    if found < _POOR_RECALL and swapped >= _POOR_RECALL:
        advice.append(f"bands ({bands}) and rows ({rows}) look swapped: pairs at the threshold {threshold} are found "
                      f"with a chance of {found:.2%}, the other way round with {swapped:.1%}.")
    elif found < _POOR_RECALL:
        advice.append(f"{bands} bands of {rows} rows find only {found:.1%} of the pairs at the threshold {threshold}; "
                      f"{better}.")
    if needless > 0.5:
        advice.append(f"{bands} bands of {rows} rows compare {needless:.0%} of all pairs that are half as similar as "
                      f"the threshold {threshold} asks, which is slow and finds nothing; {better}.")
    if hashes - bands * rows >= rows:
        advice.append(f"{hashes - bands * rows} of {hashes} hashes are in no band; they only sharpen the estimate.")
    return advice


def certain_agreements(threshold: float, hashes: int, doubt: float) -> tuple[int, int]:
    """(accept, reject): from how many equal numbers on, and up to how many, a signature settles a pair.

    A pair exactly at the threshold would have at least `accept` or at most `reject` with a chance of at most `doubt`
    each. With doubt 0 no pair is ever settled (accept = hashes + 1, reject = -1).
    """
    if doubt <= 0:
        return hashes + 1, -1
    from scipy.special import bdtr, bdtrc  # here, because it takes longer to import than most of our modules together

    accept = next(k for k in range(hashes + 2) if (1.0 if k == 0 else bdtrc(k - 1, hashes, threshold)) <= doubt)
    reject = next(k for k in range(hashes, -2, -1) if (0.0 if k < 0 else bdtr(k, hashes, threshold)) <= doubt)
    return accept, reject
