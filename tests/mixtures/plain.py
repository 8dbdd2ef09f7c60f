"""The published algorithms once more, in plain Python: the definition of what the kernels must do."""

from __future__ import annotations


def sample_starts(lengths: list[int], order: list[int], sequence_length: int, samples: int) -> list[tuple[int, int]]:
    """Walk the documents token by token, S + 1 tokens a sample, one token shared by neighbours."""
    stream = [(position, offset) for position, document in enumerate(order) for offset in range(lengths[document])]
    starts = [(0, 0)]
    for sample in range(samples):
        first = sample * sequence_length
        assert first + sequence_length < len(stream), "a sample reads past the end"
        starts.append(stream[first + sequence_length])
    return starts


def greedy(weights: list[float], samples: int) -> list[tuple[int, int]]:
    """Always the group that lags most behind its weight."""
    drawn = [0] * len(weights)
    out = []
    for i in range(samples):
        errors = [weight * max(i, 1) - count for weight, count in zip(weights, drawn, strict=True)]
        group = errors.index(max(errors))
        out.append((group, drawn[group]))
        drawn[group] += 1
    return out
