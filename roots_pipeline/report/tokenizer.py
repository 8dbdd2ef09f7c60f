"""RUN/tokenizer as facts, all from its manifest."""

from __future__ import annotations

from roots_pipeline.core.manifest import Manifest
from roots_pipeline.report.facts import Tokenizer
from roots_pipeline.report.reading import TABLE_ROWS


def collect_tokenizer(manifest: Manifest) -> Tokenizer:
    """Sizes of the vocabulary, and bytes per token by language if the tokenizer measured them."""
    counts = manifest.counts
    by_language = [(str(name), float(value)) for name, value in (counts.get("bytes_per_token") or {}).items()]
    return Tokenizer(
        int(counts["vocab_size"]), int(counts["padded_vocab_size"]), len(by_language),
        tuple(sorted(by_language, key=lambda row: (-row[1], row[0]))[:TABLE_ROWS]),
    )
