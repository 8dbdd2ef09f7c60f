"""How many planted evaluation items decontamination finds, and what it finds in text nobody planted anything in.

    python -m benchmarks.contamination_recall [--items 100] [--seed 1] [--hits FILE]

Input: the folder of real text beside the checkout; without it the benchmark says so and stops. Items of every
evaluation set, those that can be looked for, are put into documents of all languages at random places: whole as a
paragraph, whole inside a sentence, reformatted, marked up as HTML or Markdown, and half of them. Then all documents of
the corpus go through the stage as they are; every one that is found is counted by source, and written with its passage
to `--hits`.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from benchmarks.decontamination import DATA, batches_of
from roots_pipeline.core.documents import make_batch
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.items import read_items
from roots_pipeline.decontamination.passages import common_passages, read
from roots_pipeline.decontamination.stage import Decontaminate

Dice = random.Random
Change = Callable[[str, Dice], str]
# Sources of the corpus that are evaluation sets themselves.
KNOWN_LEAKS = ("github:google-deepmind/xquad", "nltk:udhr2")
_LONGEST_HOST = 20_000


def whole(text: str, dice: Dice) -> str:
    """The item as it is."""
    return text


def reformatted(text: str, dice: Dice) -> str:
    """Other case, punctuation, line breaks and normal form, wide Latin letters, perhaps quoted as in a mail."""
    ways: list[Callable[[str], str]] = [str.upper, str.lower, str.title, str]
    text = dice.choice(ways)(text) if dice.random() < 0.8 else text
    signs = ["", ";", " - ", "…", "!", "»"]
    changed = []
    for word in text.split():
        # A sign inside a word may be what separates two words, so one there is replaced but not removed.
        body = regex.sub(r"(?<=\w)[,.:;!?](?=\w)", lambda _: dice.choice(signs[1:]), word)
        body = regex.sub(r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$", lambda found: dice.choice([*signs, found[0]]), body)
        changed += [body, dice.choice([" ", " ", " ", "  ", "\t", "\n"])]
    text = "".join(changed)
    if dice.random() < 0.5:
        text = unicodedata.normalize(dice.choice(["NFC", "NFD", "NFKC", "NFKD"]), text)
    if dice.random() < 0.1:
        text = text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    return re.sub("^", "> ", text, flags=re.MULTILINE) if dice.random() < 0.3 else text


def marked_up(text: str, dice: Dice) -> str:
    """The item as HTML or Markdown: some words emphasised or linked, new paragraphs, characters as references."""
    ways = [("<b>", "</b>"), ("<em>", "</em>"), ('<a href="https://example.org/a?b=c">', "</a>"), ("<br/>\n", ""),
            ("</p>\n<p class='x'>", "")]
    if dice.random() < 0.5:
        ways = [("**", "**"), ("_", "_"), ("`", "`"), ("\n\n", ""), ("\n- ", "")]
    else:
        text = html.escape(text)
    words = []
    for word in re.findall(r"\S+\s*", text):
        before, behind = dice.choice(ways) if dice.random() < 0.2 else ("", "")
        stem = word.rstrip()
        words.append(before + stem + behind + word[len(stem) :])
    return "".join(words)


def half(text: str, dice: Dice) -> str:
    """A bit more than one half of the words."""
    words = text.split()
    length = (len(words) + 1) // 2 + 1
    start = dice.randrange(len(words) - length + 1) if length < len(words) else 0
    return " ".join(words[start : start + length])


def choose_items(stage: Decontaminate, count: int, dice: Dice) -> dict[int, str]:
    """Item to text: so many items of each set, of those that can be found."""
    index = stage.index
    texts = [item.text for evaluation in stage.evaluations for item in read_items(evaluation)]
    by_set: dict[int, list[int]] = defaultdict(list)
    for item in sorted({*np.flatnonzero(index.totals > 0).tolist(), *index.shorts.tolist()}):
        by_set[int(index.set_of[item])].append(item)
    return {item: texts[item] for own in by_set.values() for item in dice.sample(own, min(count, len(own)))}


def plant(text: str, host: str, inside: bool, dice: Dice) -> str:
    """The host with a text at a random place between two words: inside a sentence, or as a paragraph of its own."""
    places = [found.start() for found in re.finditer(r"\s", host)] or [len(host)]
    place, gap = dice.choice(places), " " if inside else "\n"
    return host[:place] + gap + text + gap + host[place:]


def found_of(stage: Decontaminate, items: dict[int, str], hosts: Sequence[str], change: Change, inside: bool,
             dice: Dice) -> dict[str, tuple[int, int, int]]:
    """Set -> (planted, found, found as what it is); each document holds one item."""
    rows = [{"id": str(item), "source": "s", "text": plant(change(text, dice), dice.choice(hosts), inside, dice)}
            for item, text in items.items()]
    batch = make_batch(rows)
    scan = stage.prepare()
    findings = stage.resolve(stage.emit(scan(batch), 0, 0))
    guilty: dict[int, set[int]] = defaultdict(set)
    for row in findings.filter(findings.column("contaminated")).select(["row", "item"]).to_pylist():
        guilty[row["row"]].add(row["item"])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for place, item in enumerate(items):
        own = counts[stage.index.tallies[stage.index.set_of[item]].name]
        own["planted"] += 1
        own["found"] += place in guilty
        own["named"] += item in guilty[place]
    return {name: (own["planted"], own["found"], own["named"]) for name, own in counts.items()}


def report(title: str, counts: dict[str, tuple[int, int, int]]) -> float:
    """Print recall over all sets and of each that missed some; returns it."""
    planted, found, named = (sum(column) for column in zip(*counts.values(), strict=True))
    missed = ", ".join(f"{name} {own[0] - own[1]} of {own[0]}" for name, own in counts.items() if own[1] < own[0])
    print(f"{title:22} {found:5} of {planted} found: {found / planted:.4f}; as what they are {named / planted:.4f}"
          + (f"; missed: {missed}" if missed else ""))
    return float(found / planted)


def untouched(stage: Decontaminate, batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Every document of a corpus that is found, with the passage that its first item has in common with it."""
    texts: dict[str, str] = {}
    for evaluation in stage.evaluations:
        for item in read_items(evaluation):
            texts.setdefault(f"{evaluation.name}/{item.id}", item.text)
    scan = stage.prepare()
    firsts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    entries = [stage.emit(scan(batch), 0, first) for batch, first in zip(batches, firsts, strict=False)]
    findings = stage.resolve(pa.concat_tables(entries).combine_chunks())
    items: dict[int, list[str]] = defaultdict(list)
    for line in findings.filter(findings.column("contaminated")).sort_by([("overlap", "descending")]).to_pylist():
        items[line["row"]].append(line["cause"])
    found = []
    for row, names in sorted(items.items()):
        number = int(np.searchsorted(firsts, row, side="right")) - 1
        document = batches[number].slice(row - firsts[number], 1).to_pylist()[0]
        common = common_passages(read(document["text"]), read(texts[names[0]]), stage.ngram)
        found.append({
            "id": document["id"], "source": document["source"], "items": names, "share": common.share,
            "document": "".join(f"[[{part.text}]]" if part.shared else part.text for part in common.document),
            "item": "".join(part.text for part in common.item),
        })
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=int, default=100, help="planted of each set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hits", help="a JSON file for what is found in the untouched corpus")
    options = parser.parse_args()
    files = sorted((DATA / "corpus").glob("*.jsonl.zst"))
    sets = sorted((DATA / "eval").glob("*.jsonl.zst"))
    if not files or not sets:
        print("skipped: there is no folder of real text beside the checkout.")
        return
    made = Decontaminate(tuple(Evaluation(path.name.partition(".")[0], str(path)) for path in sets)).rounds()[0]
    assert isinstance(made, Decontaminate)
    batches = [batch for path in files for batch in batches_of(path)]
    hosts = [text for batch in batches
             for text, source in zip(batch.column("text").to_pylist(), batch.column("source").to_pylist(), strict=True)
             if len(text) < _LONGEST_HOST and source not in KNOWN_LEAKS]
    items = choose_items(made, options.items, random.Random(options.seed))
    long = {item: text for item, text in items.items() if made.index.words_in(item) >= 2 * made.ngram}
    for title, chosen, change, inside in (
        ("whole, a paragraph", items, whole, False), ("whole, in a sentence", items, whole, True),
        ("reformatted", items, reformatted, False), ("marked up", items, marked_up, False),
        ("half, in a sentence", long, half, True),
    ):
        report(title, found_of(made, chosen, hosts, change, inside, random.Random(options.seed)))
    found = untouched(made, batches)
    size = sum(batch.column("text").nbytes for batch in batches) / 1e6
    print(f"untouched: {len(found)} of {sum(batch.num_rows for batch in batches):,} documents found ({size:.0f} MB)")
    for source, number in Counter(row["source"] for row in found).most_common():
        own = [row for row in found if row["source"] == source]
        print(f"  {number:5} of {source}; of each at least {min(len(row['items']) for row in own)} items, "
              f"the first shared to {min(row['share'] for row in own):.0%}")
    if options.hits:
        with open(options.hits, "w", encoding="utf-8") as out:
            json.dump(found, out, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main()
