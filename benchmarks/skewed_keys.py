"""Keys that half of all documents share: peak memory of each exchange, beside that of a corpus without such keys.

    python -m benchmarks.skewed_keys [--sizes 30,90] [--stages exact_duplicates,...] [--kinds plain,skewed]

Made-up text of so many MB. In the skewed corpora every second document has the same text (`exact_duplicates`,
`near_duplicates`, `url_duplicates`: the same URL), the same line (`repeated_lines`), the same passage of 240 bytes
(`repeated_passages`) or the same evaluation item (`decontaminate`). Each run is a process of its own with one worker,
so its peak is that of a worker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import yaml

STAGES = ("exact_duplicates", "url_duplicates", "near_duplicates", "repeated_lines", "repeated_passages",
          "decontaminate")
_WORDS_A_LINE, _LINES = 14, 20


def write_corpus(folder: Path, size: int, stage: str, skewed: bool) -> int:
    """Write about `size` bytes of text in files of 8 MB; returns the number of documents."""
    dice = np.random.default_rng(7)
    letters = dice.integers(97, 123, (40_000, 7), np.uint8)
    words = [bytes(word[: 2 + number % 6]).decode() for number, word in enumerate(letters)]
    shared = " ".join(words[:40])
    (folder / "items.jsonl").write_bytes(orjson.dumps({"id": "item", "text": shared}) + b"\n")
    (folder / "input").mkdir()
    done = documents = 0
    while done < size:
        lines = []
        written = 0
        while written < 8_000_000 and done + written < size:
            drawn = iter(dice.integers(0, len(words), _WORDS_A_LINE * _LINES).tolist())
            text = "\n".join(" ".join(words[next(drawn)] for _ in range(_WORDS_A_LINE)) for _ in range(_LINES))
            url = f"https://example.org/{documents}"
            if skewed and documents % 2:
                if stage in ("exact_duplicates", "near_duplicates"):
                    text = "\n".join([shared] * 8)
                elif stage == "url_duplicates":
                    url = "https://example.org/"
                else:
                    text = f"{text}\n{shared}"
            lines.append(orjson.dumps({"id": f"d{documents:09d}", "text": text, "url": url}))
            written += len(text)
            documents += 1
        (folder / "input" / f"{done:012d}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        done += written
    return documents


def measure(stage: str, size: int, skewed: bool) -> tuple[int, float, int]:
    """Documents, CPU seconds and peak bytes of a run with one stage."""
    entry: dict[str, Any] = {"stage": stage}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        documents = write_corpus(folder, size, stage, skewed)
        if stage == "decontaminate":
            entry["evaluations"] = [{"name": "items", "path": str(folder / "items.jsonl")}]
        recipe = folder / "recipe.yaml"
        sources = [{"name": "all", "kind": "jsonl", "path": str(folder / "input")}]
        recipe.write_text(yaml.safe_dump({"corpus": {"sources": sources, "stages": [entry]}}))
        process = subprocess.Popen([sys.executable, "-m", "roots_pipeline", "run", "--recipe", str(recipe), "--run",
                                    str(folder / "run"), "--workers", "1", "--quiet"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"the run failed ({status}).")
        return documents, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="30,90", help="MB of text, by commas")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--kinds", default="plain,skewed")
    options = parser.parse_args()
    for stage in options.stages.split(","):
        for kind in options.kinds.split(","):
            for size in map(int, options.sizes.split(",")):
                documents, seconds, peak = measure(stage, size * 1_000_000, kind == "skewed")
                print(f"{stage:<20} {kind:<7} {size:>5} MB {documents:>8} documents {seconds:8.1f} s CPU "
                      f"{peak / 1e6:7.0f} MB peak", flush=True)


if __name__ == "__main__":
    main()
