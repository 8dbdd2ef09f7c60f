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


def best_fit(lengths: list[int], names: list[int], room: int) -> list[list[tuple[int, int]]]:
    """Best-fit decreasing by looking at all samples: (name, start) of each piece, sample by sample."""
    pieces = [(min(room, length - start), name, start) for length, name in zip(lengths, names, strict=True)
              for start in range(0, length, room)]  # fmt: skip
    samples: list[list[tuple[int, int]]] = []
    left: list[tuple[int, int]] = []  # room of each sample, and when it came to have it
    for time, (length, name, start) in enumerate(sorted(pieces, key=lambda piece: -piece[0])):
        fitting = [(*left[sample], sample) for sample in range(len(samples)) if left[sample][0] >= length]
        if fitting:
            now, _, sample = min(fitting)
        else:
            now, sample = room, len(samples)
            samples.append([])
            left.append((room, time))
        samples[sample].append((name, start))
        left[sample] = (now - length, time)
    return samples
