"""How good near-duplicate removal is, beside datatrove's: an installation manual for several machines, page by page.

    python -m benchmarks.near_duplicates_quality

Input: 2,530 pages in 852 clusters (the same page for several machines) from the folder of real text beside the
checkout. Both programs get 5-grams of words and 14 bands of 8 rows (datatrove's default); datatrove's words are those
of `str.split`. A group is what a program treats as copies of one document. Printed of each: documents dropped; pairs of
one group that are of one page (precision) and pairs of one page that are in one group (recall); dropped documents whose
most similar document that stays has a Jaccard similarity below the threshold, which means that something was lost (of
words without punctuation, Han characters one by one).
"""

from __future__ import annotations

import sys
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._rounds import run_rounds
from benchmarks.decontamination import DATA, read_zstd
from roots_pipeline.core.documents import make_batch
from roots_pipeline.dedup.minhash import MinHashDuplicates

THRESHOLD = 0.75  # what 14 bands of 8 rows find half of is 0.72


def ours(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Dropped document to the one that stays."""
    stage = MinHashDuplicates(ngram=5, threshold=THRESHOLD, lower_case=True, bands=14, rows=8)
    documents = [{"id": row["id"], "text": row["text"], "source": "s"} for row in rows]
    _, batches = run_rounds(stage, [make_batch(documents)])
    return {row["id"]: row["cause"] for batch in batches for row in batch.to_pylist() if row["verdict"]}


def datatrove(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The same by its four steps: within a cluster all but one go; the one that stays stands for the cluster."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup import minhash as module

    module.load_word_tokenizer = lambda language: SimpleNamespace(word_tokenize=str.split)
    documents = [Document(text=row["text"], id=row["id"]) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        config = module.MinhashConfig()
        module.MinhashDedupSignature(f"{folder}/s", config).run(iter(documents), 0, 1)
        for bucket in range(config.num_buckets):
            module.MinhashDedupBuckets(f"{folder}/s", f"{folder}/b", config=config).run(
                None, bucket, config.num_buckets)
        module.MinhashDedupCluster(f"{folder}/b", f"{folder}/c", config, save_cluster_id=True).run(None, 0, 1)
        step = module.MinhashDedupFilter(f"{folder}/c", load_cluster_ids=True)
        stay = {document.id for document in step.run(iter(documents), 0, 1)}
    clusters = {document.id: document.metadata.get("minhash_cluster_id") for document in documents}
    kept = {cluster: name for name, cluster in clusters.items() if name in stay and cluster is not None}
    return {name: kept[cluster] for name, cluster in clusters.items() if name not in stay}


def ngrams(text: str) -> set[tuple[str, ...]]:
    letters = (c for c in text.lower() if unicodedata.category(c)[0] not in "PS")
    words = "".join(f" {c} " if "\u2e80" <= c <= "\u9fff" else c for c in letters).split()
    return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))}  # a shorter text is one


def pairs_within(groups: Iterable[Iterable[str]]) -> set[tuple[str, str]]:
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def report(name: str, dropped: Mapping[str, str], rows: list[dict[str, Any]]) -> None:
    groups: dict[str, set[str]] = defaultdict(set)
    pages: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        groups[dropped.get(row["id"], row["id"])].add(row["id"])
        pages[row["cluster"]].add(row["id"])
    found, true = pairs_within(groups.values()), pairs_within(pages.values())
    sets = {row["id"]: ngrams(row["text"]) for row in rows}
    stay = [row["id"] for row in rows if row["id"] not in dropped]
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for other in stay:
        for gram in sets[other]:
            places[gram].append(other)
    lost = sum(best_similarity(sets[own], sets, places) < THRESHOLD for own in dropped)
    print(f"  {name:10s} dropped {len(dropped):5d}  precision {len(found & true) / max(1, len(found)):.4f}  "
          f"recall {len(found & true) / len(true):.4f}  dropped without a twin that stays: {lost}")


def best_similarity(
    own: set[tuple[str, ...]], sets: Mapping[str, set[tuple[str, ...]]], places: Mapping[tuple[str, ...], list[str]]
) -> float:
    shared: dict[str, int] = defaultdict(int)
    for gram in own:
        for other in places.get(gram, ()):
            shared[other] += 1
    return max((count / (len(own) + len(sets[other]) - count) for other, count in shared.items()), default=0.0)


def main() -> None:
    path = Path(DATA) / "dedup" / "debian_installguide_arch.jsonl.zst"
    if not path.exists():
        print("skipped: this benchmark needs the folder of real text beside the checkout.")
        sys.exit(0)
    rows = list(read_zstd(path))
    print(f"{len(rows)} pages, threshold {THRESHOLD}, 5-grams of words, 14 bands of 8 rows")
    for name, run in (("rootbloom", ours), ("datatrove", datatrove)):
        report(name, run(rows), rows)


if __name__ == "__main__":
    main()
