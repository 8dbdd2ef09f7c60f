"""A mixture as options of Megatron's own trainers.

    python -m mixtures export --style weighted-split-paths     BigScience's Megatron-DeepSpeed
    python -m mixtures export --style data-path                Megatron-LM

In: a lock and the folder of its files. Out: lines of a command. What is exported draws the same samples as we do
if the split is one of ranges (first style) or of comma parts (second). A split by hash has no such form: then
all documents are exported only if asked for, and held-out documents would be trained on.
"""

from __future__ import annotations

import os
from typing import Literal

from mixtures.lock import GroupFacts, Lock
from roots_pipeline.core.errors import MixtureError

Style = Literal["weighted-split-paths", "data-path"]
_ALL = "Use --all-documents to give every document to training, or choose a split that can be exported."


def export_options(lock: Lock, folder: str, style: Style, all_documents: bool = False) -> list[str]:
    """Lines of options. Raises MixtureError for a split that the style cannot express, and for unusable paths."""
    groups = {name: group for name, group in lock.groups.items() if group.weight > 0}
    common = f"--seq-length {lock.sequence_length} --seed {lock.seed}"
    if style == "data-path":
        parts = " ".join(f"{group.weight!r} {_path(folder, group)}" for group in groups.values())
        return [f"--data-path {parts}", f"--split {_comma_parts(lock, all_documents)}", common]
    ranges = _ranges(lock, all_documents)
    lines = [f"--train-weighted-split-paths {quoted('TRAIN', groups, folder, ranges['train'])}"]
    if "validation" in ranges:
        # BLOOM's sets: the blend, and every group by its own name.
        sets = [quoted("VALID", groups, folder, ranges["validation"])]
        for name, group in groups.items():
            sets.append(quoted(f"VALID_{name}", {name: group}, folder, ranges["validation"], 1.0))
        lines.append(f"--valid-weighted-split-paths {' '.join(sets)}")
    return [*lines, f"--data-impl mmap {common}"]


def quoted(name: str, groups: dict[str, GroupFacts], folder: str, span: str, weight: float | None = None) -> str:
    """`"NAME: weight from:to path, ..."`: one group of the option, as its parser wants it."""
    entries = [(group.weight if weight is None else weight, _path(folder, group)) for group in groups.values()]
    return f'"{name}: {", ".join(f"{share!r} {span} {path}" for share, path in entries)}"'


def _path(folder: str, group: GroupFacts) -> str:
    path = os.path.join(os.path.abspath(folder), group.file)
    wrong = next((sign for sign in (" ", ",", '"', "'") if sign in path), None)
    if wrong is not None:
        raise MixtureError(f"the path holds {wrong!r}, which separates entries.", where=path, hint="Move the run.")
    return path


def _ranges(lock: Lock, all_documents: bool) -> dict[str, str]:
    if all_documents:
        return {"train": "0:1"}
    if lock.split["method"] != "range":
        raise MixtureError(f"a split by {lock.split['method']} has no form as weighted split paths.", hint=_ALL)
    return {side: lock.split[side] for side in ("train", "validation")}


def _comma_parts(lock: Lock, all_documents: bool) -> str:
    if all_documents:
        return "1,0,0"
    if lock.split["method"] != "comma":
        raise MixtureError(f"a split by {lock.split['method']} has no form as --split.", hint=_ALL)
    return str(lock.split["parts"])
