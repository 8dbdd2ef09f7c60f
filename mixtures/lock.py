"""mixture.lock.yaml: everything that decides which token is served when, frozen in one small file.

Why: a run that resumes, or is compared with another, must know that it reads the same data in the same
order. The lock holds the fingerprints of corpus and tokenizer, for each group its counts, its weight and
the size and hashes of its files, and the seed, sequence length, split, variant and packing of the order.
`check_files` compares it with the disk.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import xxhash
import yaml

from mixtures.order import Variant
from mixtures.packing import Packing
from roots_pipeline.core.errors import StaleDataError, StorageError
from roots_pipeline.core.storage import fingerprint, hash_file, write_bytes
from roots_pipeline.core.yaml_hints import parse_yaml

NAME = "mixture.lock.yaml"
FORMAT = 1
SUFFIXES = (".bin", ".idx", ".documents.parquet")
_AGAIN = "Run `python -m mixtures write` again."
_COUNTS = ("documents", "tokens", "train_documents", "train_tokens", "validation_documents", "validation_tokens")
_PROBES, _PROBE_BYTES = 64, 4096


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Size in bytes, xxh3-128 of all bytes, and of a probe of them (see `probe`)."""

    size: int
    xxh3: str
    probe: str


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group: how much it holds on each side of the split, its weight, and its files by suffix."""

    file: str
    weight: float
    documents: int
    tokens: int
    train_documents: int
    train_tokens: int
    validation_documents: int
    validation_tokens: int
    files: dict[str, FileFacts]


@dataclass(frozen=True, slots=True)
class Lock:
    """The whole mixture. `split` is the split section of the recipe; weights of all groups add up to 1."""

    corpus: str
    tokenizer: str
    vocab_size: int
    end_of_text: int
    dtype: str
    sequence_length: int
    seed: int
    variant: Variant
    split: dict[str, Any]
    groups: dict[str, GroupFacts]
    format: int = FORMAT
    packing: Packing = "stream"

    @property
    def fingerprint(self) -> str:
        """Changes with anything that could change a sample or its place."""
        return fingerprint(_as_written(self))


def _as_written(lock: Lock) -> dict[str, Any]:
    """The fields of a lock; a stream is not named, so that locks from before there was packing stay what they are."""
    fields = asdict(lock)
    if lock.packing == "stream":
        del fields["packing"]
    return fields


def probe(path: str) -> str:
    """xxh3-128 of up to 64 blocks of 4 KiB spread evenly over a file: the whole file if it is small.

    Cheap enough for every start of a run, and enough to notice any rewritten file. A few flipped bytes of a
    large file escape it; the full hash does not miss them.
    """
    size = os.path.getsize(path)
    digest = xxhash.xxh3_128(str(size))
    with open(path, "rb") as handle:
        if size <= _PROBES * _PROBE_BYTES:
            digest.update(handle.read())
        else:
            for place in range(_PROBES):
                handle.seek(place * (size - _PROBE_BYTES) // (_PROBES - 1))
                digest.update(handle.read(_PROBE_BYTES))
    return digest.hexdigest()


def write_lock(path: str, lock: Lock) -> None:
    """Commit the lock; equal locks give equal bytes."""
    text = yaml.safe_dump(_as_written(lock), sort_keys=False, allow_unicode=True, width=110)
    write_bytes(path, text.encode())


def read_lock(path: str) -> Lock:
    """Read a lock. Raises StaleDataError if absent, of another format or impossible, StorageError if damaged."""
    try:
        value = parse_yaml(Path(path).read_text("utf-8"))
    except FileNotFoundError as error:
        raise StaleDataError(
            "there is no mixture here.", where=path, hint="Run `python -m mixtures write` first."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StorageError(f"cannot be read as YAML ({error}).", where=path, hint=_AGAIN) from error
    found = value.get("format") if isinstance(value, dict) else type(value).__name__
    if found != FORMAT:
        raise StaleDataError(f"the lock has format {found}, this version reads {FORMAT}.", where=path, hint=_AGAIN)
    try:
        groups = {name: _group(row) for name, row in value.pop("groups").items()}
        lock = Lock(groups=groups, **value)
    except (TypeError, KeyError, AttributeError) as error:
        raise StorageError(f"a field is missing or unknown ({error}).", where=path, hint=_AGAIN) from error


    if (wrong := _impossible(lock)) is not None:
        raise StaleDataError(f"{wrong}, which no mixture has.", where=path, hint=_AGAIN)
    return lock


def _impossible(lock: Lock) -> str | None:
    """The first field of a lock, with its value, that has a wrong type or cannot be."""
    for name, found, lowest in (
        ("vocab_size", lock.vocab_size, 1), ("end_of_text", lock.end_of_text, 0),
        ("sequence_length", lock.sequence_length, 1), ("seed", lock.seed, 0),
    ):  # fmt: skip
        if not _whole_number(found, lowest):
            return f"{name} is {found!r}"
    for name in ("corpus", "tokenizer", "dtype"):
        if not isinstance(getattr(lock, name), str):
            return f"{name} is {getattr(lock, name)!r}"
    if lock.variant not in get_args(Variant):
        return f"variant is {lock.variant!r}"
    if lock.packing not in get_args(Packing):
        return f"packing is {lock.packing!r}"
    if not isinstance(lock.split, dict) or "method" not in lock.split:
        return f"split is {lock.split!r}"
    for name, group in lock.groups.items():
        if not isinstance(name, str) or not isinstance(group.file, str) or "/" in group.file:
            return f"a group is called {name!r}, its file {group.file!r}"
        if type(group.weight) not in (int, float) or not 0 <= group.weight < math.inf:
            return f"the weight of {name!r} is {group.weight!r}"
        for count in _COUNTS:
            if not _whole_number(getattr(group, count), 0):
                return f"{count} of {name!r} is {getattr(group, count)!r}"
        for suffix, facts in group.files.items():
            if not (_whole_number(facts.size, 0) and isinstance(facts.xxh3, str) and isinstance(facts.probe, str)):
                return f"{suffix} of {name!r} is {facts}"
    total = sum(group.weight for group in lock.groups.values())
    return None if 0 < total < math.inf else f"the sum of the weights is {total}"


def _whole_number(value: Any, lowest: int) -> bool:
    return type(value) is int and value >= lowest  # a bool is no number here


def _group(row: Mapping[str, Any]) -> GroupFacts:
    files = {suffix: FileFacts(**row["files"][suffix]) for suffix in SUFFIXES}
    return GroupFacts(**{**row, "files": files})


def check_files(lock: Lock, folder: str, *, full: bool = False) -> None:
    """Compare every file of the mixture with the lock: size and probe, or all bytes with `full`.

    Raises StaleDataError naming the first file that differs and in what.
    """
    for group in lock.groups.values():
        check_group(group, folder, full=full)


def check_group(group: GroupFacts, folder: str, *, full: bool = False) -> None:
    """The same for the files of one group."""
    for suffix, facts in group.files.items():
        path = f"{folder.rstrip('/')}/{group.file}{suffix}"
        try:
            size = os.path.getsize(path)
        except FileNotFoundError as error:
            raise StaleDataError("a file of the mixture is missing.", where=path, hint=_AGAIN) from error
        if size != facts.size:
            raise StaleDataError(f"it has {size} bytes, the lock says {facts.size}.", where=path, hint=_AGAIN)
        found, wanted = (hash_file(path), facts.xxh3) if full else (probe(path), facts.probe)
        if found != wanted:
            raise StaleDataError(
                f"its content is not what the lock describes ({found[:12]} instead of {wanted[:12]}).",
                where=path,
                hint=f"{_AGAIN} If the file was damaged, delete it first.",
            )


def check_inputs(lock: Lock, *, corpus: str | None = None, tokenizer: str | None = None) -> None:
    """Raise StaleDataError if the lock was made from another corpus or tokenizer than these fingerprints."""
    for name, found in (("corpus", corpus), ("tokenizer", tokenizer)):
        wanted = getattr(lock, name)
        if found is not None and found != wanted:
            raise StaleDataError(
                f"the mixture was made from another {name} ({wanted[:12]}, now {found[:12]}).", hint=_AGAIN
            )


def differences(old: Lock, new: Lock) -> list[str]:
    """What a user would have to put back to get from the new lock to the old one, a phrase for each."""
    found = [
        f"{field.name} was {getattr(old, field.name)}, now {getattr(new, field.name)}"
        for field in fields(Lock)
        if field.name != "groups" and getattr(old, field.name) != getattr(new, field.name)
    ]
    for name in sorted({*old.groups, *new.groups}):
        before, now = old.groups.get(name), new.groups.get(name)
        if before is None or now is None:
            found.append(f"group {name} is {'new' if before is None else 'missing'}")
            continue
        for field in fields(GroupFacts):
            if field.name == "files":
                changed = [suffix for suffix in SUFFIXES if before.files[suffix] != now.files[suffix]]
                found += [f"{name}{suffix} has other content" for suffix in changed]
            elif (was := getattr(before, field.name)) != (is_now := getattr(now, field.name)):
                found.append(f"{field.name} of {name} was {was}, now {is_now}")
    return found
