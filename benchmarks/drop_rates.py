"""How much the rules drop of real text, by language and rule: the tables of `docs/drop-rates.md`.

    python -m benchmarks.drop_rates [--every 1] [languages …]

Input: the folder of real text beside the checkout; without it the benchmark says so and stops. `--every 10` takes every
tenth document. Recipes are judged one by one, each on documents without a verdict: the rules of `massivetext.yaml`,
those of `roots.yaml`, and for the 13 languages of ROOTS's filters the published ones, with ROOTS's lists and faults.
Neither perplexity nor language scores of fastText are part of it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.decontamination import DATA, read_zstd
from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.rules.roots_measures import RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from roots_pipeline.rules.thresholds import Thresholds

# Removed by all filters, in percent (ROOTS paper, table 1).
PUBLISHED = {
    "ar": 20.3, "bn": 48.8, "ca": 21.1, "en": 17.2, "es": 16.9, "eu": 5.2, "fr": 17.0, "hi": 25.7, "id": 10.4,
    "pt": 12.6, "ur": 15.8, "vi": 21.3, "zh": 23.1,
}  # fmt: skip


def recipes() -> dict[str, tuple[Map, ...]]:
    """What judges, by name; `published` for the languages of PUBLISHED alone."""
    lists = {kind: str(DATA / "wordlists" / f"bigscience_{file}.json")
             for kind, file in (("stop_words", "stopwords"), ("flagged_words", "flagged_words"))}
    return {
        "language": (LanguageIdentification(), LanguageAgreement()),
        "massivetext": (MassiveText(), Thresholds()),
        "roots": (RootsModify(), RootsMeasures(), Thresholds(preset="roots_built_in_lists")),
        "published": (RootsModify(as_published=True), RootsMeasures(**lists, as_published=True),  # type: ignore[arg-type]
                      Thresholds(preset="roots")),
    }


def batches(path: Path, every: int) -> Iterator[pa.RecordBatch]:
    """The documents of a file, 500 at a time."""
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(read_zstd(path)):
        if number % every == 0:
            rows.append({"id": row["id"], "text": row["text"], "source": "real", "language": path.name.split(".")[0]})
        if len(rows) == 500:
            yield make_batch(rows)
            rows = []
    if rows:
        yield make_batch(rows)


def rates(path: Path, every: int) -> tuple[int, float, dict[str, Counter[str]]]:
    """Documents, megabytes, and verdicts by recipe of one language."""
    found: dict[str, Counter[str]] = {}
    count, size = 0, 0.0
    for batch in batches(path, every):
        count, size = count + batch.num_rows, size + batch.column("text").nbytes / 1e6
        for name, stages in recipes().items():
            if name == "published" and path.name.split(".")[0] not in PUBLISHED:
                continue
            judged = batch
            for stage in stages:
                judged = stage(judged)
            verdicts = (verdict for verdict in judged.column("verdict").to_pylist() if verdict)
            found.setdefault(name, Counter()).update(verdicts)
    return count, size, found


def cell(count: int, verdicts: Counter[str], reasons: int) -> str:
    """The share of documents that go, and the most frequent reasons."""
    share = f"{100 * verdicts.total() / count:.1f}"
    top = ", ".join(f"{name} {100 * number / count:.1f}" for name, number in verdicts.most_common(reasons))
    return f"{share} ({top})" if top else share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("languages", nargs="*")
    options = parser.parse_args()
    if not (DATA / "corpus").is_dir():
        print("skipped: there is no folder of real text beside the checkout.")
        return
    paths = sorted((DATA / "corpus").glob("*.jsonl.zst"))
    table = {path.name.split(".")[0]: rates(path, options.every) for path in paths
             if not options.languages or path.name.split(".")[0] in options.languages}
    print("| language | documents | MB | `language` | `massivetext` | `roots` |\n|---|---|---|---|---|---|")
    for language, (count, size, found) in table.items():
        print(f"| {language} | {count} | {size:.1f} | {cell(count, found['language'], 0)} | "
              f"{cell(count, found['massivetext'], 3)} | {cell(count, found['roots'], 3)} |")
    print("\n| language | ROOTS on OSCAR | published rules here | `roots` here |\n|---|---|---|---|")
    for language in filter(table.__contains__, PUBLISHED):
        count, _, found = table[language]
        print(f"| {language} | {PUBLISHED[language]} | {cell(count, found['published'], 4)} | "
              f"{cell(count, found['roots'], 0)} |")


if __name__ == "__main__":
    main()
