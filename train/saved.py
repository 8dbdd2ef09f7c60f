"""Saved checkpoints seen from outside: which one is whole, may this run continue from it, and which are kept?

Each checkpoint is a folder `step_...` with a manifest of sizes and hashes (written by `train.checkpoint`, or by
`train.convert` in a form that fits every layout). The newest whose files match it is used; anything else is skipped
with a message. No PyTorch needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from roots_pipeline.core.errors import RootbloomError, StaleDataError, TrainingError
from roots_pipeline.core.storage import hash_file, read_json
from train.parallel.layout import Layout
from train.skips import continues

FORMAT = 2
PREFIX = "step_"
SKIPPED = "skip_samples"
KEPT = "keep"  # a file of this name in a checkpoint's folder, which anybody may make: it is never removed
HIDDEN = ".unfinished_"  # what is being written or deleted has this before its name
UNDONE = "undone_"  # what a run has gone back from has this before its name; it is not used again
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Saved:
    """A complete checkpoint and how far the run had come.

    `layout` is None if every parameter is stored whole. `parameters` holds for each name the whole shape and the axis
    along which tensor-parallel processes cut it; `shards` say which optimizer file is whose. `origin` names the
    weights that the run began with, if it did not begin with random ones.
    """

    folder: Path
    step: int
    samples: int
    layout: Layout | None
    identity: dict[str, Any]
    shape: dict[str, Any]
    parameters: dict[str, dict[str, Any]]
    shards: list[dict[str, Any]]
    origin: str | None
    saved_at: float  # seconds since 1970

    def manifest(self, files: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What `read_saved` reads: everything but the folder, and size and hash of each file."""
        return {"format": FORMAT, **{k: v for k, v in asdict(self).items() if k != "folder"}, "files": files}

    def fingerprint(self) -> str:
        """That of its manifest, and so of all its files."""
        return hash_file(str(self.folder / "manifest.json"))


def read_saved(folder: Path) -> tuple[Saved, dict[str, dict[str, Any]]]:
    """The manifest of a checkpoint and its files; raises TrainingError with the reason if it is none."""
    path = folder / "manifest.json"
    try:
        value = read_json(str(path))
    except FileNotFoundError as error:
        raise TrainingError("it has no manifest") from error
    except RootbloomError as error:
        raise TrainingError(f"its manifest cannot be read ({error.message})") from error
    found = value.get("format") if isinstance(value, dict) else type(value).__name__
    if found != FORMAT:
        raise TrainingError(f"its manifest has format {found}, this version reads {FORMAT}")
    try:
        layout, files = value["layout"], value["files"]
        known = {key: value[key] for key in Saved.__slots__ if key not in ("folder", "layout")}
        sizes = {str(name): {"size": int(entry["size"]), "xxh3": str(entry["xxh3"])} for name, entry in files.items()}
        return Saved(folder=folder, layout=None if layout is None else Layout(**layout), **known), sizes
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TrainingError(f"its manifest lacks what it should hold ({error})") from error


def broken_because(folder: Path, *, hashes: bool = True, share: tuple[int, int] = (0, 1)) -> str | None:
    """Why a checkpoint folder cannot be used, or None if all its files are as its manifest says.

    Without `hashes` only names and sizes are compared. `share` (k, n): read only every n-th file, from the k-th on,
    because n processes do it together.
    """
    try:
        _, files = read_saved(folder)
    except TrainingError as error:
        return error.message
    for name, entry in list(files.items())[share[0] :: share[1]]:
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != entry["size"]:
            return f"{name} has {size} bytes instead of {entry['size']}"
        if hashes and hash_file(str(path)) != entry["xxh3"]:
            return f"the content of {name} has changed"
    return None


def newest_first(checkpoints: Path) -> Iterator[Path]:
    """The folders of all checkpoints, broken ones included."""
    yield from sorted(checkpoints.glob(f"{PREFIX}*"), reverse=True)


def newest_complete(checkpoints: Path, skipped: Callable[[str], None], *, hashes: bool = True) -> Saved | None:
    """The newest usable checkpoint below a folder; `skipped` is told about newer ones that are broken."""
    for folder in newest_first(checkpoints):
        if (reason := broken_because(folder, hashes=hashes)) is None:
            return read_saved(folder)[0]
        skipped(skip_message(folder, reason))
    return None


def skip_message(folder: Path, reason: str) -> str:
    """What is said about a checkpoint that is passed over."""
    return f"Skipping checkpoint {folder.name}: {reason}."


def saved_to_use(checkpoints: Path, step: int | None = None) -> Saved:
    """The checkpoint to export: that of `step`, or the newest; never an older one for a newest that is lost or damaged.

    Raises TrainingError if there is none, StaleDataError if it is incomplete; both name what to do.
    """
    complaints: list[str] = []
    folders = [folder for folder in newest_first(checkpoints) if step is None or _step_of(folder.name) == step]
    named = [_step_of(folder.name) for folder in folders] + [_step_of(_latest(checkpoints))]
    wanted = max(named) if step is None else step
    saved = next((read_saved(folder)[0] for folder in folders if _is_usable(folder, complaints)), None)
    if saved is not None and saved.step >= wanted:
        return saved
    if wanted < 0:
        raise TrainingError(
            "there is no complete checkpoint here.", where=str(checkpoints), hint="Run `python -m train run` first."
        )
    reason = complaints[0] if complaints else f"checkpoint {PREFIX}{wanted:08d} is missing"
    older = "" if saved is None else f", or use the older one with --step {saved.step}"
    raise StaleDataError(
        f"{reason}.",
        where=str(checkpoints),
        hint=f"Run `python -m train run` again to train the missing steps{older}.",
    )


def _is_usable(folder: Path, complaints: list[str]) -> bool:
    if (reason := broken_because(folder)) is not None:
        complaints.append(f"checkpoint {folder.name} cannot be used: {reason}")
    return reason is None


def _latest(checkpoints: Path) -> str:
    try:
        return (checkpoints / "latest").read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _step_of(name: str) -> int:
    digits = name.removeprefix(PREFIX).split("_")[0]
    return int(digits) if digits.isdecimal() else -1


def check_continues(saved: Saved, identity: dict[str, Any]) -> None:
    """Raise StaleDataError if a run with these settings and data may not go on from a checkpoint."""
    wanted = orjson.loads(orjson.dumps(identity))
    for key in sorted(wanted.keys() | saved.identity.keys()):
        before, now = saved.identity.get(key), wanted.get(key)
        if key == SKIPPED and continues(before, now, saved.samples):
            continue  # what lies ahead may be passed over at any time
        if before != now:
            raise StaleDataError(
                f"the checkpoints here belong to another run: {key} was {before}, now it is {now}.",
                where=str(saved.folder.parent),
                hint="Choose another --run, or remove this folder to start over.",
            )


def has_seen_skipped(saved: Saved, identity: dict[str, Any]) -> bool:
    """Whether a checkpoint was trained on samples that this run passes over, or passed over others."""
    return not continues(saved.identity.get(SKIPPED), identity.get(SKIPPED), saved.samples)


def newest_to_continue(checkpoints: Path, identity: dict[str, Any]) -> Saved | None:
    """The newest checkpoint, judged by names and sizes alone, that has seen no sample which is now passed over.

    If all have, the oldest; raises StaleDataError if that one, or the one found, belongs to another run.
    """
    saved = None
    for folder in newest_first(checkpoints):
        if broken_because(folder, hashes=False) is None:
            saved = read_saved(folder)[0]
            if not has_seen_skipped(saved, identity):
                break
    if saved is not None:
        check_continues(saved, identity)
    return saved


def to_forget(saved: Sequence[Saved], *, keep: int, keep_every: int = 0, keep_hours: float = 0.0) -> list[Saved]:
    """Which complete checkpoints are no longer needed.

    Kept are the `keep` newest, those of every `keep_every` steps, and one in `keep_hours` hours, counted from the
    oldest on, so that the choice stays the same when newer ones are added.
    """
    doomed, last = [], float("-inf")
    by_age = sorted(saved, key=lambda one: (one.step, one.folder.name))
    for one in by_age[: max(0, len(by_age) - keep)]:
        if keep_every and one.step % keep_every == 0:
            continue
        if keep_hours and one.saved_at - last >= keep_hours * _SECONDS_PER_HOUR:
            last = one.saved_at
            continue
        doomed.append(one)
    return doomed
