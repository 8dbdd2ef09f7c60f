"""Real text in many languages for benchmarks, from the folder beside the checkout; it is no part of the project."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

_FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "corpus"


def texts_or_leave(megabytes: float, languages: tuple[str, ...] = ()) -> list[str]:
    """About this much text, the same share of each language (default: of all there are).

    Says so and ends the program with exit code 0 if the folder is not there.
    """
    files = [path for path in sorted(_FOLDER.glob("*.jsonl.zst")) if not languages or _language(path) in languages]
    if not files:
        print("skipped: this benchmark needs the folder of real text beside the checkout.")
        sys.exit(0)
    found, size = [], 0
    streams = {_language(path): _texts(path) for path in files}
    taken = dict.fromkeys(streams, 0)
    while streams and size < megabytes * 1e6:
        name = min(streams, key=taken.__getitem__)
        text = next(streams[name], None)
        if text is None:
            del streams[name]
            continue
        found.append(text)
        length = len(text.encode())
        taken[name] += length
        size += length
    return found


def _language(path: Path) -> str:
    return path.name.removesuffix(".jsonl.zst")


def _texts(path: Path) -> Iterator[str]:
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as data:
        for line in io.BufferedReader(data, 1 << 20):
            yield json.loads(line)["text"]
