"""Two tokenizers side by side on the text of one run.

A tokenizer is given as a `tokenizer.json` or as the folder of a run. The corpus is counted with each one's own
pre-tokenizer; where these differ, what counts as a word differs too, and bytes per token is the figure to compare.
"""

from __future__ import annotations

from typing import Any

from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import exists, fingerprint, join, write_bytes, write_json
from roots_pipeline.core.tasks import Engine
from tokenizer.config import TokenizerRecipe
from tokenizer.count_corpus import COUNTS, count_corpus
from tokenizer.counts_file import read_counts
from tokenizer.encode import Encoder
from tokenizer.export import FILES
from tokenizer.report.measure import Measurement, measure
from tokenizer.report.page import render


def compare_tokenizers(first: str, second: str, run: str, engine: Engine, output: str) -> dict[str, Any]:
    """Measure both on RUN/corpus, write OUTPUT/compare.json and compare.html, and return the content.

    Raises TokenizerError for files that cannot be used, StaleDataError if the run has no corpus.
    """
    encoders = [Encoder.from_file(_file(name)) for name in (first, second)]
    measured = [measure(read_counts(_counts(run, encoder, engine)), encoder) for encoder in encoders]
    words = [
        {token for number, token in enumerate(encoder.tokens) if number not in encoder.special_ids.values()}
        for encoder in encoders
    ]
    content = {
        "run": run,
        "names": [first, second],
        "vocab_sizes": [encoder.vocab_size for encoder in encoders],
        "shared_tokens": len(words[0] & words[1]),
        "same_pre_tokenizer": encoders[0].patterns == encoders[1].patterns,
        "total": [one.total.facts() for one in measured],
        "languages": {name: _row(name, measured) for name in sorted(measured[0].languages)},
    }
    write_json(join(output, "compare.json"), content)
    write_bytes(join(output, "compare.html"), render("compare.html.j2", content).encode())
    return content


def _row(name: str, measured: list[Measurement]) -> dict[str, Any]:
    one, other = (side.languages[name] for side in measured)
    return {
        "bytes": one.bytes,
        "fertility": [round(side.fertility, 4) for side in (one, other)],
        "bytes_per_token": [round(side.bytes_per_token, 4) for side in (one, other)],
        "split_words": [round(side.split_share, 4) for side in (one, other)],
        "tokens_percent": round(100 * (other.tokens / one.tokens - 1), 2) if one.tokens else 0.0,
    }


def _file(name: str) -> str:
    path = join(name, "tokenizer", FILES[0])
    return path if not name.endswith(".json") and exists(path) else name


def _counts(run: str, encoder: Encoder, engine: Engine) -> str:
    """A count table of the run's corpus, cut as the encoder cuts."""
    folder = join(run, "tokenizer")
    if exists(join(folder, "manifest.json")):
        recipe = TokenizerRecipe.model_validate(read_manifest(folder).config)
        if recipe.patterns == encoder.patterns and not recipe.sampling.draws:
            return join(folder, COUNTS)
    place = join(folder, ".work", "compare", fingerprint(list(encoder.patterns))[:12])
    return count_corpus(engine, join(run, "corpus"), place, encoder.patterns).path
