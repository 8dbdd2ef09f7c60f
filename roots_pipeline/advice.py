"""What a look at a finished corpus would make one change first: said at the end of a run, before anybody looks.

In: the manifest and two columns of the tables. Out: sentences. Three mistakes are common: a source is said to be in a
language that it is not in, documents have no language at all, and limits made for English web pages drop nearly
everything of a source.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.stages import Exchange
from roots_pipeline.core.storage import join, list_files
from roots_pipeline.rules.language import detectable
from roots_pipeline.stage_table import STAGES

_FEW = 20  # of fewer documents nothing is said
_NEARLY_ALL = 0.8
_COLUMNS = ["source", "language", "detected_language", "language_reliable"]


def advice_on_corpus(manifest: Manifest, folder: str) -> list[str]:
    """Sentences, most important first; none if there is nothing to say."""
    run = folder.rpartition("/")[0]
    return [*_other_languages(folder), *_no_language(manifest), *_nearly_all_dropped(manifest, run)]


def _other_languages(folder: str) -> list[str]:
    found: Counter[tuple[str, str, str]] = Counter()
    for part in ("documents", "rejected"):
        for path in list_files(join(folder, part), ".parquet"):
            file = open_parquet(path)
            if set(_COLUMNS) <= set(file.schema_arrow.names):
                found.update(_told_and_found(file.read(columns=_COLUMNS, use_threads=False)))
    told: Counter[tuple[str, str]] = Counter()
    for (source, language, _), documents in found.items():
        told[source, language] += documents
    sentences = []
    for (source, language), documents in sorted(told.items()):
        others = Counter({other: number for (name, said, other), number in found.items()
                          if (name, said) == (source, language) and other not in (language, "")})
        judged = language in detectable() or len(language) > 3  # rare languages are taken for their neighbours
        if judged and documents >= _FEW and others.total() > documents / 2:
            top = ", ".join(f"{other} ({number})" for other, number in others.most_common(3))
            sentences.append(f"{others.total()} of {documents} documents of '{source}' that are said to be in "
                             f"'{language}' look like {top}. Mend `language` or `language_field` of the source.")
    return sentences


def _told_and_found(table: pa.Table) -> dict[tuple[str, str, str], int]:
    """Documents by source, language, and detected language ('' if it is not trusted)."""
    trusted = pc.fill_null(pc.greater(table.column("language_reliable"), 0), False)
    detected = pc.fill_null(pc.if_else(trusted, table.column("detected_language"), ""), "")
    counted = table.select(["source", "language"]).append_column("detected", detected)
    counted = counted.filter(pc.is_valid(counted.column("language")))
    rows = counted.group_by(counted.column_names).aggregate([([], "count_all")]).to_pylist()
    return {(row["source"], row["language"], row["detected"]): row["count_all"] for row in rows}


def _no_language(manifest: Manifest) -> list[str]:
    without: Counter[str] = Counter()
    for source, language, _, documents, _ in manifest.counts["by_source_language_verdict"]:
        without[source] += 0 if language else documents
    return [f"{documents} documents of '{source}' have no language. Name `language`, `language_field` or "
            "`language_from` of the source, or add the stage identify_language."
            for source, documents in sorted(without.items()) if documents >= _FEW]


def _nearly_all_dropped(manifest: Manifest, run: str) -> list[str]:
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    for source, language, verdict, documents, _ in manifest.counts["by_source_language_verdict"]:
        verdicts.setdefault((source, language), Counter())[verdict] += documents
    look = f"See what other limits would keep: python -m roots_pipeline explore --run {shlex.quote(run)}"
    sentences = []
    for (source, language), counted in sorted(verdicts.items()):
        read, dropped = counted.total(), counted.total() - counted[""]
        (reason, number), *_ = [*(counted - Counter({"": counted[""]})).most_common(1), ("", 0)]
        if read >= _FEW and dropped > _NEARLY_ALL * read and reason not in _by_others(manifest):
            what = f"'{source}' in '{language}'" if language else f"'{source}'"
            sentences.append(f"{dropped} of {read} documents of {what} were dropped, {number} of them by {reason}. "
                             f"{look}")
    return sentences


def _by_others(manifest: Manifest) -> set[str]:
    """Verdicts that another document caused: no limit would change them."""
    stages: list[Any] = [STAGES.get(entry["stage"]) for entry in manifest.config["stages"]]
    return {stage.name for stage in stages if stage is not None and issubclass(stage, Exchange)} | {"removed"}
