"""The report of a run's tokenizer: RUN/tokenizer/report.json and report.html.

Measured on the run's own count table, or on that of another run (`on`), whose text the tokenizer has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from roots_pipeline.core.errors import StaleDataError, TokenizerError
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.storage import fingerprint, join, write_bytes, write_json
from roots_pipeline.core.tasks import Commit, Engine, Task
from tokenizer.alphabet import FIRST_MERGE_ID
from tokenizer.config import TokenizerRecipe
from tokenizer.count_corpus import COUNTS
from tokenizer.counts_file import read_counts
from tokenizer.encode import Encoder
from tokenizer.export import FILES
from tokenizer.pretokenizers import SENTENCEPIECE
from tokenizer.report.measure import measure
from tokenizer.report.monolingual import measure_monolingual
from tokenizer.report.page import render
from tokenizer.report.vocabulary import vocabulary_facts
from tokenizer.tokenizer_file import read_tokenizer

_VERSION = 1
_MADE_BY = "python -m tokenizer train"


def build_report(
    run: str, engine: Engine, *, on: str | None = None, monolingual_size: int = 32_000,
    languages: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Measure, write both files, and return what `report.json` holds.

    `monolingual_size`: the most tokens of a monolingual tokenizer, 0 for none; `languages`: those to compare with a
    tokenizer of their own (None: all). Raises StaleDataError if a run has no tokenizer or the two were counted with
    different pre-tokenizers, TokenizerError for an unknown language.
    """
    folder = join(run, "tokenizer")
    manifest, recipe = _read(run)
    counts, text, seen = join(folder, COUNTS), join(folder, COUNTS), manifest.files[COUNTS]["xxh3"]
    if on is not None:
        other, other_recipe = _read(on)
        if other_recipe.patterns != recipe.patterns:
            raise StaleDataError("its text was counted with another pre-tokenizer.", where=on,
                                 hint="Train its tokenizer with the same pretokenizer and digits.")  # fmt: skip
        text, seen = join(on, "tokenizer", COUNTS), other.files[COUNTS]["xxh3"]
    path = join(folder, FILES[0])
    encoder = Encoder.from_file(path)
    measured = measure(read_counts(text), encoder)
    rows: dict[str, dict[str, Any]] = {name: one.facts() for name, one in measured.languages.items()}
    mark = [_VERSION, manifest.fingerprint, manifest.files[COUNTS]["xxh3"], seen]
    byte_level = recipe.pretokenizer != "sentencepiece" and encoder.patterns != SENTENCEPIECE
    if monolingual_size and byte_level:
        chosen = _chosen(languages, manifest, rows)
        tasks = [
            Task(f"monolingual {name}", join(folder, ".work", "report", f"{name}.json"),
                 fingerprint([*mark, name, monolingual_size, recipe.model_dump(mode="json")]), measure_monolingual,
                 {"counts": counts, "text": text, "language": name, "recipe": recipe, "largest": monolingual_size})
            for name in chosen
        ]  # fmt: skip
        for name, own in zip(chosen, engine.run(tasks, "monolingual tokenizers"), strict=True):
            rows[name]["monolingual"] = own
            if own.get("fertility") and rows[name]["fertility"]:
                rows[name]["loss_percent"] = round(100 * (rows[name]["fertility"] / own["fertility"] - 1), 2)
    sizes = _sizes(encoder.vocab_size, recipe) if byte_level else []
    tasks = [
        Task(f"size {size}", join(folder, ".work", "report", f"size-{size}.json"), fingerprint([*mark, size]),
             measure_prefix, {"tokenizer": path, "text": text, "size": size})
        for size in sizes
    ]  # fmt: skip
    content = {
        "run": run,
        "measured_on": on or run,
        "vocab_size": manifest.counts["vocab_size"],
        "padded_vocab_size": manifest.counts["padded_vocab_size"],
        "recipe": manifest.config,
        "total": measured.total.facts(),
        "languages": rows,
        "sizes": engine.run(tasks, "prefixes of the merges"),
        "vocabulary": vocabulary_facts(encoder, measured.usage),
    }
    write_json(join(folder, "report.json"), content)
    write_bytes(join(folder, "report.html"), render("report.html.j2", content).encode())
    return content


def check_losses(content: dict[str, Any], maximum: float) -> None:
    """BLOOM's test: raise TokenizerError if a language's fertility is over `maximum` percent above that of its
    monolingual tokenizer."""
    failed = {
        name: row["loss_percent"] for name, row in content["languages"].items()
        if row.get("loss_percent", 0.0) > maximum
    }  # fmt: skip
    if failed:
        worst = sorted(failed, key=lambda name: -failed[name])
        listed = ", ".join(f"{name} {failed[name]:+.1f}%" for name in worst[:20])
        raise TokenizerError(
            f"{len(failed)} languages lose more than {maximum:g}% to a tokenizer of their own: {listed}.",
            hint="Give them more weight (sampling, language_weights) or the vocabulary more tokens.",
        )


def measure_prefix(commit: Commit, tokenizer: str, text: str, size: int) -> dict[str, Any]:
    """Task: the vocabulary cut to its first `size` tokens, measured. Writes nothing."""
    whole = read_tokenizer(tokenizer)
    shorter = replace(whole, merges=whole.merges[whole.merges[:, 2] < size], tokens=whole.tokens[:size], special_ids={})
    measured = measure(read_counts(text), Encoder(shorter))
    return {
        "vocab_size": size, **measured.total.facts(),
        "unused": int((measured.usage[FIRST_MERGE_ID:] == 0).sum()),
        "languages": {name: round(one.fertility, 4) for name, one in measured.languages.items()},
    }  # fmt: skip


def _read(run: str) -> tuple[Manifest, TokenizerRecipe]:
    folder = join(run, "tokenizer")
    manifest = read_manifest(folder, made_by=_MADE_BY)
    check_files(folder, manifest)
    return manifest, TokenizerRecipe.model_validate(manifest.config)


def _chosen(languages: Sequence[str] | None, manifest: Manifest, rows: dict[str, Any]) -> list[str]:
    known = [name for name in manifest.counts["languages"] if name in rows]
    for name in languages or ():
        if name not in known:
            raise TokenizerError(f"there is no text in the language '{name}'.", hint=nearest(name, known))
    return list(languages) if languages is not None else known


def _sizes(vocab_size: int, recipe: TokenizerRecipe) -> list[int]:
    """An eighth, a quarter, a half of the tokens, each a multiple that the recipe allows, and all of them."""
    step = recipe.divisible_by * recipe.tensor_parallel
    cut = {int(np.ceil(vocab_size / part / step)) * step for part in (8, 4, 2)}
    return [*sorted(size for size in cut if FIRST_MERGE_ID < size < vocab_size), vocab_size]
