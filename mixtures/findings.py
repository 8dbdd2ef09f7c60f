"""What a sweep found: tables of all results, means over seeds, and what one domain's gain costs the others.

In: the results of the proxies. Out: `results.parquet` (a row for each candidate, seed and domain or group) and arrays
for the regressions. Bits per byte of a domain are those of all its held-out tokens together: bits over bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mixtures.experiment import Domain
from mixtures.lock import Lock
from mixtures.sweep import Result
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.storage import commit_file

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
    """Candidates in order with weights [n, domains], bits per byte [n, domains] and their noise [domains].

    `noise` is the standard deviation between seeds of one candidate, pooled over candidates (NaN with one seed).
    """

    names: list[str]
    weights: Floats
    bits: Floats
    noise: Floats
    by_seed: dict[str, Floats]

    def row(self, name: str) -> int:
        return self.names.index(name)


def domain_bits(result: Result, domain: Domain, lock: Lock) -> float:
    """Bits per byte of all held-out tokens of a domain. Raises MixtureError if they stand for no byte."""
    bits = size = 0.0
    for group in domain.tokens:
        if group in result.loss:
            tokens = lock.groups[group].validation_tokens
            per_token = result.loss[group] / math.log(2)
            bits += tokens * per_token
            size += tokens * per_token / result.bits_per_byte[group]
    if not size:
        hint = "Hold out a larger share in the mixture's recipe."
        raise MixtureError(f"the held-out documents of the domain {domain.name} hold no bytes.", hint=hint)
    return bits / size


def measure(results: Sequence[Result], domains: Sequence[Domain], lock: Lock) -> Measured:
    """Means over seeds, candidates in the order of the results."""
    by_name: dict[str, list[Result]] = {}
    for result in results:
        by_name.setdefault(result.candidate, []).append(result)
    by_seed = {
        name: np.array([[domain_bits(one, domain, lock) for domain in domains] for one in rows])
        for name, rows in by_name.items()
    }
    squares = [((rows - rows.mean(axis=0)) ** 2).sum(axis=0) for rows in by_seed.values()]
    degrees = sum(len(rows) - 1 for rows in by_seed.values())
    noise = np.sqrt(np.sum(squares, axis=0) / degrees) if degrees else np.full(len(domains), np.nan)
    weights = np.array([[rows[0].weights[domain.name] for domain in domains] for rows in by_name.values()])
    bits = np.array([rows.mean(axis=0) for rows in by_seed.values()])
    return Measured(list(by_name), weights, bits, noise, by_seed)


def write_results(path: str, results: Sequence[Result], domains: Sequence[Domain], lock: Lock) -> None:
    """All results as one Parquet table; `level` is `domain` or `group`, a group has no weight of its own."""
    rows = []
    for result in results:
        head = {"candidate": result.candidate, "seed": result.seed, "seconds": result.seconds}
        for domain in domains:
            rows.append({**head, "level": "domain", "name": domain.name, "weight": result.weights[domain.name],
                         "bits_per_byte": domain_bits(result, domain, lock)})  # fmt: skip
        for group, bits in result.bits_per_byte.items():
            rows.append({**head, "level": "group", "name": group, "weight": None, "bits_per_byte": bits})
    schema = pa.schema([
        ("candidate", pa.string()), ("seed", pa.int64()), ("seconds", pa.float64()), ("level", pa.string()),
        ("name", pa.string()), ("weight", pa.float64()), ("bits_per_byte", pa.float64()),
    ])  # fmt: skip
    with commit_file(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")
