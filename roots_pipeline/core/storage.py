"""Files that are either whole or absent, on local disks and on object stores.

Every file we write goes through `commit_file`: a temporary name beside the target, fsync, rename, fsync of the
folder. A reader therefore never sees half a file under its final name, whatever killed the writer. For fsspec URLs the
file is finished locally first, then uploaded in one piece, and its size is looked at. Object stores show an upload only
when it is whole; on stores that do not, half of one may be seen, but no record or manifest names it with that size.

Paths are strings: local paths or fsspec URLs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
import orjson
import xxhash

from roots_pipeline.core.errors import RecipeError, StorageError

_TEMPORARY = ".tmp"
_CHUNK = 1 << 20
_AGAIN = "Run the same command again; finished work is kept."
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}
_MISPLACED = {
    errno.ENOTDIR: "a file stands where a folder is needed",
    errno.EEXIST: "a file stands where a folder is needed",
    errno.EISDIR: "a folder stands where a file is needed",
    errno.ENAMETOOLONG: "the name is too long",
}


def is_remote(path: str) -> bool:
    """Whether a path is an fsspec URL of something other than a local file."""
    return "://" in path and not path.startswith(("file://", "local://"))


def join(folder: str, *names: str) -> str:
    """A path below a folder, for local paths and URLs alike. Raises StorageError for a folder without a name."""
    if not folder:
        raise StorageError("the folder of the run has no name.", where="--run", hint="Name one, such as runs/mine.")
    for prefix in ("file://", "local://"):
        folder = folder.removeprefix(prefix)
    return "/".join(["" if folder == "/" else folder.rstrip("/"), *names])


def to_beside(path: str, record: str) -> str:
    """A path as seen from the folder of another file."""
    return os.path.relpath(path, os.path.dirname(record))


def from_beside(name: str, record: str) -> str:
    """The path that `to_beside` made a name of."""
    protocol, mark, inside = os.path.dirname(record).rpartition("://")
    return protocol + mark + os.path.normpath(os.path.join(inside, name))


def filesystem_of(path: str) -> tuple[Any, str]:
    """The fsspec filesystem of a path, and the path inside it. Raises StorageError for an unknown protocol."""
    # Listings that were kept would not show what other processes have written since.
    fresh = {"use_listings_cache": False} if is_remote(path) and "::" not in path else {}
    try:
        filesystem, target = fsspec.core.url_to_fs(path, **fresh)
    except (ValueError, ImportError) as error:
        raise StorageError(f"cannot use this address ({error}).", where=path) from error
    return filesystem, str(target)


def explain_os_error(error: OSError, path: str = "output") -> StorageError | None:
    """A sentence for the operating-system errors that a user can do something about; None for all others."""
    if (misplaced := _MISPLACED.get(error.errno or 0)) is not None:
        return StorageError(f"cannot use this path: {misplaced}.", where=str(error.filename or path),
                            hint="Move away what is there, or choose another folder.")
    reason = _REASONS.get(error.errno or 0)
    if reason is None:
        return None
    hint = "Free some space and run the same command again; finished work is kept." if error.errno in (
        errno.ENOSPC, errno.EDQUOT) else "Choose an output folder that you may write to."
    return StorageError(f"cannot write: {reason}.", where=str(error.filename or path), hint=hint)


@contextmanager
def commit_file(path: str) -> Iterator[str]:
    """Yield a temporary local path; when the block ends without an error, its content appears at `path`."""
    if is_remote(path):
        with _upload_when_done(path) as local:
            yield local
        return
    target = Path(path)
    temporary = target.parent / f".{target.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}{_TEMPORARY}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield str(temporary)
        with open(temporary, "rb") as done:
            os.fsync(done.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        if (sentence := explain_os_error(error, path)) is not None:
            raise sentence from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _upload_when_done(path: str) -> Iterator[str]:
    filesystem, target = filesystem_of(path)
    with tempfile.TemporaryDirectory() as folder:
        temporary = os.path.join(folder, "content")
        yield temporary
        try:
            filesystem.makedirs(os.path.dirname(target), exist_ok=True)
            filesystem.put_file(temporary, target)
            wrote = size_of(path)
        except Exception as error:  # each store has errors of its own
            raise StorageError(f"cannot upload: {type(error).__name__}: {error}.", where=path, hint=_AGAIN) from error
        if wrote != os.path.getsize(temporary):
            raise StorageError(f"the upload has {wrote} bytes instead of {os.path.getsize(temporary)}.", where=path,
                               hint=_AGAIN)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: str, data: bytes) -> None:
    """Write a small file, whole or not at all."""
    with commit_file(path) as temporary, open(temporary, "wb") as out:
        out.write(data)


def write_json(path: str, value: Any) -> None:
    """Write JSON with sorted keys: equal values give equal bytes."""
    write_bytes(path, to_json(value, orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def to_json(value: Any, option: int = 0) -> bytes:
    """JSON of a value. Raises RecipeError, with the number, for one of more than 64 bits: someone asked for it."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        number = _oversized(value)
        if number is None:
            raise
        raise RecipeError(f"the number {number} is too large: more than 64 bits.", hint="Give a smaller one.") from None


def _oversized(value: Any) -> int | None:
    if isinstance(value, int):
        return None if -(1 << 63) <= value < 1 << 64 else value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((found for one in inner if (found := _oversized(one)) is not None), None)


def open_read(path: str) -> BinaryIO:
    """Open a local path or URL for reading bytes."""
    if "://" not in path and "::" not in path:
        return open(path, "rb")  # what fsspec would do, but for its cost: records are read by the thousand
    filesystem, target = filesystem_of(path)
    handle: BinaryIO = filesystem.open(target, "rb")
    return handle


def read_json(path: str) -> Any:
    """Read one of our JSON files. Raises FileNotFoundError if absent, StorageError if it is not JSON."""
    with open_read(path) as handle:
        data = handle.read()
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise StorageError(f"not valid JSON ({error}).", where=path, hint="Delete the file and run again.") from error


def exists(path: str) -> bool:
    """Whether a file or folder exists."""
    filesystem, target = filesystem_of(path)
    return bool(filesystem.exists(target))


def list_files(folder: str, suffix: str = "") -> list[str]:
    """Files directly in a folder with this suffix, sorted by name; temporary ones are left out."""
    filesystem, target = filesystem_of(folder)
    if not filesystem.isdir(target):
        return []
    names = sorted(os.path.basename(entry.rstrip("/")) for entry in filesystem.ls(target, detail=False))
    return [join(folder, name) for name in names if name.endswith(suffix) and not name.startswith(".")]


def size_of(path: str) -> int | None:
    """Bytes of a file, None if it does not exist."""
    filesystem, target = filesystem_of(path)
    try:
        return int(filesystem.size(target))
    except FileNotFoundError:
        return None


def hash_file(path: str) -> str:
    """xxh3-128 of a file's bytes, as hex."""
    digest = xxhash.xxh3_128()
    with open_read(path) as handle:
        while block := handle.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(value: Any) -> str:
    """xxh3-128 of a JSON-able value, as hex; the order of dictionary keys does not matter."""
    return xxhash.xxh3_128_hexdigest(to_json(value, orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))


def remove_file(path: str) -> None:
    """Delete a file if it exists."""
    filesystem, target = filesystem_of(path)
    if filesystem.exists(target):
        filesystem.rm_file(target)


def sweep_temporaries(folder: str) -> None:
    """Delete what killed writers left below a local folder. Only safe while holding its lock."""
    if not is_remote(folder):
        for leftover in Path(folder).rglob(f".*{_TEMPORARY}"):
            leftover.unlink(missing_ok=True)


@contextmanager
def lock_folder(folder: str) -> Iterator[None]:
    """Keep a second run out of a local folder until this one ends, however it ends."""
    if is_remote(folder):
        yield
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        handle = os.open(Path(folder) / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise explain_os_error(error) or StorageError(f"cannot use this folder: {error}.", where=folder) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StorageError(
                "another run is writing here.", where=folder,
                hint="Wait until it ends, or choose another folder with --run.",
            ) from error
        yield
    finally:
        os.close(handle)
