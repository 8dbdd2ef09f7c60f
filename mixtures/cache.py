"""Index arrays on disk, built once and mapped ever after.

Why: the order of a large group takes minutes to build and gigabytes to hold. What an array is called is a
fingerprint of everything it was built from (content hashes of the data included), so a stale one can never be
found; the description is committed last, so a half-written one cannot either. Ranks that build the same
arrays at the same time write the same bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import (
    commit_file,
    fingerprint,
    join,
    list_files,
    read_json,
    remove_file,
    write_json,
)

# Raised when the arrays change although their inputs do not.
_FORMAT = 1
_BUILDING_SECONDS = 6 * 3600.0
Arrays = dict[str, npt.NDArray[Any]]


def cached(
    folder: str, kind: str, inputs: Mapping[str, Any], build: Callable[[], tuple[Arrays, Any]]
) -> tuple[Arrays, Any]:
    """Arrays (mapped, read-only) and JSON-able facts that follow from `inputs` alone.

    `build()` makes both if they are not there yet. Raises StorageError if the folder cannot be written or a
    file in it is damaged.
    """
    key = f"{kind}-{fingerprint([_FORMAT, kind, inputs])}"
    description = join(folder, f"{key}.json")
    try:
        known = read_json(description)
    except FileNotFoundError:
        arrays, facts = build()
        for name, array in arrays.items():
            with commit_file(join(folder, f"{key}-{name}.npy")) as path, open(path, "wb") as out:
                np.save(out, array, allow_pickle=False)
        known = {
            "inputs": inputs,
            "arrays": {name: len(array) for name, array in arrays.items()},
            "facts": facts,
        }
        write_json(description, known)
    return {name: _load(join(folder, f"{key}-{name}.npy"), rows) for name, rows in known["arrays"].items()}, known[
        "facts"
    ]


def forget(folder: str, usable: Callable[[Mapping[str, Any]], bool]) -> None:
    """Delete arrays whose inputs are not `usable` any more; who has mapped them keeps them.

    Arrays without a description go, too, if they are older than any that somebody may be building right now.
    """
    described = set()
    for path in list_files(folder, ".json"):
        key = path.removesuffix(".json")
        try:
            known = usable(read_json(path)["inputs"])
        except (StorageError, KeyError, TypeError):  # not ours, or damaged
            known = False
        if known:
            described.add(key)
            continue
        remove_file(path)
        for array in list_files(folder, ".npy"):
            if array.rpartition("-")[0] == key:
                remove_file(array)
    old = time.time() - _BUILDING_SECONDS
    for path in list_files(folder, ".npy"):
        if path.rpartition("-")[0] not in described and os.path.getmtime(path) < old:
            remove_file(path)


def _load(path: str, rows: int) -> npt.NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r" if rows else None, allow_pickle=False)
        if len(array) != rows:
            raise ValueError(f"{len(array)} rows instead of {rows}")
    except (OSError, ValueError) as error:
        raise StorageError(
            f"a cached index cannot be read ({error}).",
            where=path,
            hint="Delete this cache folder; it is rebuilt.",
        ) from error
    return np.asarray(array)
