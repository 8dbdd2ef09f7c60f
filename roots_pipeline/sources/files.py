"""Where inputs lie: local paths, fsspec URLs, and `package://` for what ships inside this package.

Paths that leave here are absolute or full URLs, so every worker opens the same file whatever its working
folder. `package://sample/web` keeps its form: where the package is installed must not leak into a corpus.
Importing this module makes `package://` known to fsspec, so that every `fsspec.open` in the process
understands it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any, BinaryIO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from roots_pipeline.core.errors import SourceError
from roots_pipeline.sources.base import FileSlice

_MAGIC = "*?["


class PackageFileSystem(LocalFileSystem):  # type: ignore[misc]
    """Files inside the installed roots_pipeline package: `package://sample/web` is its folder `sample/web`."""

    protocol = "package"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        path = os.fspath(path)
        if path.startswith("package://"):
            path = f"{_package_folder()}/{path.removeprefix('package://').strip('/')}"
        return str(super()._strip_protocol(path))

    def unstrip_protocol(self, name: str) -> str:
        """The `package://` address of a path inside the package."""
        inside = os.path.relpath(self._strip_protocol(name), _package_folder())
        return "package://" + inside.replace(os.sep, "/")


fsspec.register_implementation("package", PackageFileSystem, clobber=True)


def locate(path: str) -> tuple[Any, str]:
    """The filesystem of a path and the path inside it.

    Raises SourceError for an unknown protocol or one whose driver is not installed.
    """
    try:
        filesystem, inside = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise SourceError(f"cannot use this address: {error}.", where=path) from error
    return filesystem, str(inside)


def address(given: str, filesystem: Any, inside: str) -> str:
    """The address that opens the file `inside` a filesystem which `given` had led to."""
    head, chained, rest = given.partition("::")
    if not chained:
        return inside if "file" in filesystem.protocol else str(filesystem.unstrip_protocol(inside))
    if "://" in head:  # zip://folder/*.jsonl::archive.zip: the archive stays, the member changes
        return f"{head.partition('://')[0]}://{inside}::{rest}"
    return f"{head}::{rest.partition('://')[0]}://{inside}"  # simplecache::https://host/*: the cache stays


def relative_name(path: str, root: str) -> str:
    """A file's name below the root of a recipe, with '/' between folders; its bare name if it is not below."""
    inside = _slashes(locate(path)[1])
    if root:
        base = _slashes(locate(root)[1])
        first = min((base.find(char) for char in _MAGIC if char in base), default=len(base))
        if first < len(base):
            base = base[: base.rfind("/", 0, first) + 1]
        base = base.rstrip("/") + "/"
        if inside.startswith(base) and len(inside) > len(base):
            return inside[len(base) :]
    return inside.rsplit("/", 1)[-1]


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open an input for reading bytes. Raises SourceError if opening it, or reading it in the block, fails."""
    filesystem, inside = locate(path)
    try:
        with filesystem.open(inside, "rb") as handle:
            yield handle
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        hint = "Nothing was left out: run the same command again when the file can be read."
        raise SourceError(f"cannot read this file: {reason}.", where=path, hint=hint) from error


# What tells that a file has changed, in the words of several stores; the first that one has.
_CHANGES = ("ETag", "etag", "md5Hash", "crc32c", "mtime", "LastModified", "last_modified", "created")


def state_of(path: str) -> str | None:
    """Size and time (or tag) of a file, which change when it does; None where the store has nothing of the kind.

    Raises SourceError if the file is gone.
    """
    filesystem, inside = locate(path)
    filesystem.invalidate_cache()
    try:
        found = filesystem.info(inside)
    except OSError as error:
        raise SourceError("this file cannot be found any more.", where=path) from error
    change = next((found[name] for name in _CHANGES if found.get(name) is not None), None)
    return None if change is None else f"{found.get('size')} {change}"


def check_unchanged(file: FileSlice) -> None:
    """Raise SourceError if a file is not any more what was hashed."""
    if file.state is not None and state_of(file.path) != file.state:
        raise SourceError("this file was changed during the run.", where=file.path,
                          hint="Run the same command again when nobody writes to it.")


def has_pattern(path: str) -> bool:
    """Whether a path contains a wildcard."""
    return any(char in path for char in _MAGIC)


def _package_folder() -> str:
    return str(resources.files("roots_pipeline"))


def _slashes(path: str) -> str:
    return path.replace(os.sep, "/")
