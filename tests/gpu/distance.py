"""How far a kernel's result is from the reference, and what is allowed.

Distances are norm(result - reference) / norm(reference) with the reference computed in float64 from the same inputs.
float32 results differ by summation order alone; bfloat16 keeps 8 bits, so a rounded result is 2e-3 away from the exact
one, and one that went through several roundings (gradients: scores, weights, their gradients) a few times that.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from torch import Tensor

BOUNDS = {
    (torch.float32, "value"): 1e-5,
    (torch.float32, "gradient"): 2e-5,
    (torch.bfloat16, "value"): 5e-3,
    (torch.bfloat16, "gradient"): 2e-2,
}


def check(what: str, found: Tensor, exact: Tensor, kind: str, precision: torch.dtype | None = None) -> None:
    """Assert the bound for `precision`, or for the result's own.

    ROOTBLOOM_DISTANCES names a file that collects what was measured.
    """
    assert found.shape == exact.shape, what
    far = float((found.double() - exact).norm() / exact.norm())
    precision = precision or found.dtype
    bound = BOUNDS[precision, kind]
    log = os.environ.get("ROOTBLOOM_DISTANCES")
    if log:
        with Path(log).open("a") as lines:
            facts = {"what": what, "precision": str(precision), "distance": far, "bound": bound}
            lines.write(json.dumps(facts) + "\n")
    assert far <= bound, f"{what}: {far:.2e} from the reference, {bound:.0e} allowed"
