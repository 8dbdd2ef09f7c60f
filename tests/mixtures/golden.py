"""Reading the golden numbers of the original programs, and comparing arrays with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def load(shared: Path, name: str) -> Any:
    """One golden file of Megatron."""
    return json.loads((shared / "golden" / "megatron" / f"{name}.json").read_text("utf-8"))


def same(wanted: dict[str, Any], array: np.ndarray[Any, Any], dtype: str | None = None) -> bool:
    """Whether an array has the dtype, shape and content hash that a golden file tells."""
    given = np.ascontiguousarray(array if dtype is None else array.astype(dtype))
    digest = hashlib.sha256(given.tobytes()).hexdigest()
    return (str(given.dtype), list(given.shape), digest) == (wanted["dtype"], wanted["shape"], wanted["sha256"])
