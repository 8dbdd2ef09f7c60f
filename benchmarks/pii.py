"""Personal information: our stage beside the published procedure, and how good both are. CPU time of one core.

    python -m benchmarks.pii [--megabytes 20] [--plain-megabytes 1] [--rounds 3] [--documents 10000]

Input: real text in all languages of the folder beside the checkout; without it the benchmark says so and stops. The
published procedure is `tests.rules.pii_twin` (one `regex` pattern a tag over whole texts, string replace); it gets a
sample, of lines of at most 1,000 characters, for its pattern of keys takes the square of a run.

Then precision and recall for e-mail and IP addresses on synthetic sentences with known spans, where each address counts
as found if a match covers exactly its characters; and what is found in so many documents of real text, and in how many.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from benchmarks._real_text import texts_or_leave
from roots_pipeline.core.documents import text_buffers
from roots_pipeline.rules.pii import PersonalInformation
from tests.rules import pii_twin

LABELLED = Path(__file__).resolve().parents[2] / "shared" / "data" / "pii" / "synth_dataset_v2.json"
SAME = {"EMAIL": "EMAIL_ADDRESS", "IP_ADDRESS": "IP_ADDRESS"}
STAGES = {"published": PersonalInformation(as_published=True), "default": PersonalInformation()}


def spans(stage: PersonalInformation, texts: list[str]) -> list[set[tuple[str, int, int]]]:
    """(tag, first character, last character + 1) of each text."""
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    found: list[set[tuple[str, int, int]]] = [set() for _ in texts]
    for text, start, piece, matches in stage.matches(data, offsets, np.zeros(len(texts), np.int64)):
        first = len(data[offsets[text] : start].tobytes().decode())
        for match in matches:
            a, b = (first + len(piece[:place].decode()) for place in (match.start, match.stop))
            found[text].add((stage.tags[match.tag], a, b))
    return found


def speed(megabytes: float, plain_megabytes: float, rounds: int) -> None:
    """Megabytes a second, the best of some rounds in turns."""
    texts = texts_or_leave(megabytes)
    batches = pa.table({"text": pa.array(texts, pa.large_string())}).to_batches(max_chunksize=1000)
    sample = ["\n".join(line[:1000] for line in text.split("\n")) for text in texts_or_leave(plain_megabytes)]
    runs: dict[str, tuple[float, Callable[[], object]]] = {
        f"stage, {name}": (size_of(texts), lambda stage=stage: [stage(batch) for batch in batches])  # type: ignore[misc]
        for name, stage in STAGES.items()
    }
    runs["published procedure, `regex`"] = (size_of(sample), lambda: [pii_twin.redacted(text) for text in sample])
    best = dict.fromkeys(runs, 0.0)
    for stage in STAGES.values():
        stage(pa.record_batch({"text": pa.array(["a@b.org 8.8.8.8 A1A1A1A1"], pa.large_string())}))  # compile
    for _ in range(rounds):
        for name, (size, run) in runs.items():
            start = process_time()
            run()
            best[name] = max(best[name], size / (process_time() - start))
    for name, rate in best.items():
        print(f"{name:32} {rate:8.1f} MB/s", flush=True)


def size_of(texts: list[str]) -> float:
    """Megabytes of texts as UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def quality() -> None:
    """Precision and recall on labelled sentences."""
    if not LABELLED.is_file():
        print("skipped: there are no labelled sentences beside the checkout.")
        return
    rows = json.loads(LABELLED.read_text("utf-8"))
    texts = [row["full_text"] for row in rows]
    for name, stage in STAGES.items():
        found = spans(stage, texts)
        for tag, label in SAME.items():
            right = wrong = missed = 0
            for row, here in zip(rows, found, strict=True):
                wanted = {(span["start_position"], span["end_position"]) for span in row["spans"]
                          if span["entity_type"] == label}
                got = {(a, b) for kind, a, b in here if kind == tag}
                right, wrong, missed = right + len(wanted & got), wrong + len(got - wanted), missed + len(wanted - got)
                for kind, pairs in (("wrong", got - wanted), ("missed", wanted - got)):
                    for a, b in sorted(pairs):
                        print(f"    {kind}: {row['full_text'][max(0, a - 15):b + 15]!r}")
            precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
            print(f"{name:10} {tag:10} right {right}, wrong {wrong}, missed {missed}: "
                  f"precision {precision:.3f}, recall {recall:.3f}")


def alarms(documents: int) -> None:
    """What is found in real text, almost all of which is neither secret nor personal."""
    texts = texts_or_leave(documents * 0.01)[:documents]
    for name, stage in STAGES.items():
        found = spans(stage, texts)
        matches = Counter(tag for here in found for tag, _, _ in here)
        in_documents = Counter(tag for here in found for tag in {tag for tag, _, _ in here})
        print(f"{name}: {len(texts)} documents, {size_of(texts):.1f} MB: "
              + ", ".join(f"{tag} {matches[tag]} in {in_documents[tag]}" for tag in stage.tags))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--plain-megabytes", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=10_000)
    options = parser.parse_args()
    speed(options.megabytes, options.plain_megabytes, options.rounds)
    quality()
    alarms(options.documents)


if __name__ == "__main__":
    main()
