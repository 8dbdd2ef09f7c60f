"""The review: how many items of each evaluation set were found where, and a sample of hits to judge by eye.

    write_review("runs/x/corpus")  ──▶  contamination.html     tables, and passages side by side; no script, no network
                                        contamination.parquet  every hit (`hits.HITS`)
                                        contamination.json     the counts

A number of false alarms can only be told by reading, so the page shows hits drawn at random from each set, with the
words that document and item share in bold. The draw follows from the seed and the ids alone.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from roots_pipeline import __version__, report
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import commit_file, join, write_bytes, write_json
from roots_pipeline.decontamination.hits import Hit, as_table, find_hits_of, find_sets, stages_of
from roots_pipeline.decontamination.index import Tally
from roots_pipeline.decontamination.passages import Part
from roots_pipeline.report import numbers
from roots_pipeline.report.safe_text import marked, plain

_TEMPLATES = [Path(__file__).parent / "templates", Path(report.__file__).parent / "templates"]
_PLACES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class SetReview:
    """What was found of one evaluation set."""

    tally: Tally
    action: str
    items_found: int
    documents: int
    hits: int  # pairs of a document and an item
    outcomes: tuple[tuple[str, int], ...]
    places: tuple[tuple[str, str, int, int], ...]  # source, language, documents, items; most documents first
    examples: tuple[Hit, ...]


def write_review(corpus_folder: str, output: str | None = None, examples: int = 12, seed: int = 0) -> str:
    """Write the three files into `output` (default: the corpus folder) and return the path of the page.

    `examples` hits of each set are shown. Raises StaleDataError if the corpus is not finished, was not decontaminated,
    or the evaluation files have changed since.
    """
    manifest = read_manifest(corpus_folder, made_by="python -m roots_pipeline run")
    sets = find_sets(stages_of(manifest, corpus_folder))
    hits = list(find_hits_of(corpus_folder, sets, manifest.config["rejected_text"]))
    reviews = [_review(own.tally, own.stage.action, [hit for hit in hits if hit.evaluation == name], examples, seed)
               for name, own in sets.items()]
    folder = output or corpus_folder
    with commit_file(join(folder, "contamination.parquet")) as path:
        table = as_table(hits).replace_schema_metadata({"corpus": manifest.fingerprint})
        pq.write_table(table, path, compression="zstd")
    write_json(join(folder, "contamination.json"), [_counts(review) for review in reviews])
    page = join(folder, "contamination.html")
    write_bytes(page, _render(corpus_folder, reviews, seed).encode())
    return page


def _review(tally: Tally, action: str, hits: list[Hit], examples: int, seed: int) -> SetReview:
    places: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        places.setdefault((hit.source, hit.language or ""), []).append(hit)
    rows = [(source, language, _documents(own), len({hit.item for hit in own}))
            for (source, language), own in places.items()]
    ordered = sorted(hits, key=lambda hit: (hit.document, hit.source, hit.item))
    drawn = random.Random(f"{seed} {tally.name}").sample(ordered, min(examples, len(ordered)))
    return SetReview(
        tally, action, len({hit.item for hit in hits}), _documents(hits), len(hits),
        tuple(sorted(Counter({(hit.source, hit.document): hit.outcome for hit in hits}.values()).items())),
        tuple(sorted(rows, key=lambda row: (-row[2], row[0], row[1]))), tuple(drawn),
    )


def _documents(hits: list[Hit]) -> int:
    return len({(hit.source, hit.document) for hit in hits})


def _counts(review: SetReview) -> dict[str, Any]:
    return {
        **review.tally._asdict(), "action": review.action, "items_found": review.items_found,
        "documents": review.documents, "hits": review.hits, "outcomes": dict(review.outcomes),
        "places": [dict(zip(("source", "language", "documents", "items"), row, strict=True)) for row in review.places],
    }


def _render(folder: str, reviews: list[SetReview], seed: int) -> str:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_fit_to_print,
    )
    environment.filters.update(count=numbers.count, size=numbers.size, plain=plain, passage=_passage, width=_width)
    environment.globals.update(share=numbers.share)
    return environment.get_template("review.html.j2").render(
        folder=folder, reviews=reviews, seed=seed, version=__version__, places_shown=_PLACES_SHOWN)


def _fit_to_print(value: object) -> object:
    return plain(value, 1000) if isinstance(value, str) and not isinstance(value, Markup) else value


def _width(part: float, whole: float) -> str:
    """Percent for a style attribute."""
    return f"{100 * part / whole if whole else 0:.2f}%"


def _passage(parts: list[Part]) -> Markup:
    """A passage as HTML: escaped, hidden characters boxed, shared words in bold."""
    shown = [marked(part.text, 2000, 60, 2000) for part in parts]
    return Markup("").join(Markup("<b>{}</b>").format(text) if part.shared else text
                           for part, text in zip(parts, shown, strict=True))
