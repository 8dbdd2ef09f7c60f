"""From the path in a recipe to the list of files: a file, a folder, a pattern, a URL, or `package://...`.

The list is sorted bytewise by address, so shards never depend on the order in which a disk lists a folder.
Hidden files and folders (names that start with a dot) are left out of folders: they hold version control
and caches.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol, runtime_checkable

from fsspec.implementations.local import LocalFileSystem

from roots_pipeline.core.errors import SourceError
from roots_pipeline.sources.base import FileSlice, Reader
from roots_pipeline.sources.files import address, has_pattern, locate


def discover(path: str, suffixes: Sequence[str] = ()) -> list[FileSlice]:
    """Files of a source, sorted.

    A folder is searched with its sub-folders for names that end in one of `suffixes` (all files if empty).
    A file that is named, or matched by a pattern that spells out its ending (`*.txt`), is taken whatever
    its suffix. Raises SourceError if the path does not exist (with the nearest name that does) or nothing
    matches.
    """
    filesystem, inside = locate(path)
    search = _Search(path, filesystem, tuple(suffixes))
    for name, details in _entries(path, filesystem, inside).items():
        search.add(name, details, any_suffix=not inside.endswith("*"))
    found = search.found
    if not found:
        raise _nothing(path, search.seen, suffixes)
    return [FileSlice(name, found[name]) for name in sorted(found, key=str.encode)]


@runtime_checkable
class _KnowsItsFiles(Protocol):
    def files(self, path: str) -> list[FileSlice]: ...


def files_of(reader: Reader, path: str) -> list[FileSlice]:
    """The files of a source: those the reader itself names, else those that `discover` finds by their endings."""
    return reader.files(path) if isinstance(reader, _KnowsItsFiles) else discover(path, reader.suffixes)


class _Search:
    """Collects files, those of folders included; `seen` also names the files that have another suffix."""

    def __init__(self, path: str, filesystem: Any, suffixes: tuple[str, ...]) -> None:
        self._path, self._filesystem, self._suffixes = path, filesystem, suffixes
        self._folders: set[str] = set()
        self.found: dict[str, int] = {}
        self.seen: list[str] = []

    def add(self, name: str, details: dict[str, Any], any_suffix: bool) -> None:
        kind = details["type"]
        if kind == "other":  # how fsspec calls a symbolic link
            kind = "directory" if self._filesystem.isdir(name) else "file"
        if kind == "directory":
            self._add_folder(name)
            return
        self.seen.append(name)
        if any_suffix or not self._suffixes or name.endswith(self._suffixes):
            if details["type"] == "other" and not self._filesystem.isfile(name):
                what = "neither a file nor a folder (a link that leads nowhere, or a device)."
                raise SourceError(what, where=name, hint="Remove it, or name the files to read by a pattern.")
            if not _is_text(name):
                raise SourceError("this file's name is not UTF-8.", where=ascii(name), hint="Rename the file.")
            self.found[address(self._path, self._filesystem, name)] = int(details.get("size") or 0)

    def _add_folder(self, folder: str) -> None:
        real = os.path.realpath(folder) if isinstance(self._filesystem, LocalFileSystem) else folder
        if real in self._folders:  # a link back to a folder above, or a second way to the same one
            return
        self._folders.add(real)
        for name, details in self._filesystem.find(folder, detail=True).items():
            if not _hidden(name, folder):
                self.add(name, details, any_suffix=False)


def _entries(path: str, filesystem: Any, inside: str) -> dict[str, dict[str, Any]]:
    """What a path stands for directly: one file, one folder, or all that a pattern matches."""
    try:
        if filesystem.exists(inside):  # first, because a real name may contain [ ] * ?
            return {inside: filesystem.info(inside)}
        if has_pattern(inside):
            matched: dict[str, dict[str, Any]] = filesystem.glob(inside, detail=True)
            return matched
    except OSError as error:
        raise SourceError(f"cannot list this path: {error.strerror or error}.", where=path) from error
    raise SourceError("this path does not exist.", where=path, hint=_nearest(path, filesystem, inside))


def _nearest(path: str, filesystem: Any, inside: str) -> str:
    """A sentence that names the existing neighbour which a missing path most resembles."""
    place = PurePosixPath(inside)
    for parent, wanted in zip(place.parents, (place, *place.parents), strict=False):
        try:
            names = sorted(PurePosixPath(entry).name for entry in filesystem.ls(str(parent), detail=False))
        except (OSError, NotImplementedError):
            continue
        close = difflib.get_close_matches(wanted.name, names, n=1, cutoff=0.6)
        if close:
            return f"Did you mean '{address(path, filesystem, str(parent / close[0]))}'?"
        folder = address(path, filesystem, str(parent))
        listed = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        return f"'{folder}' holds {listed}." if names else f"'{folder}' is empty."
    return "No folder above it exists either."


def _nothing(path: str, seen: list[str], suffixes: Sequence[str]) -> SourceError:
    if not seen:
        hint = "The pattern matches nothing." if has_pattern(path) else "The folder is empty."
        return SourceError("no files to read.", where=path, hint=hint)
    endings = Counter(PurePosixPath(name).suffix or "no suffix" for name in seen).most_common(4)
    held = ", ".join(f"{ending} ({count})" for ending, count in endings)
    return SourceError(f"none of {len(seen)} files ends in {', '.join(suffixes)}.", where=path,
                       hint=f"Found instead: {held}.")


def _hidden(name: str, folder: str) -> bool:
    below = name.removeprefix(folder)
    return any(part.startswith(".") for part in below.split("/"))


def _is_text(name: str) -> bool:
    """False for names whose bytes are not UTF-8, which Python carries as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
