"""What a run of the corpus step says at its end: what was kept and dropped, why, where it is, and that it adds up.

In: a manifest, or the folder of a finished corpus. Out: facts for programs, sentences and a table for people.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.output import table
from roots_pipeline.core.storage import join
from roots_pipeline.verify import verify_corpus


def closing_facts(manifest: Manifest, folder: str, ran: str) -> dict[str, Any]:
    """Counts by source; `ran` says what the engine did."""
    names = ("read", "kept", "rejected", "kept_bytes", "bad_records")
    return {"folder": folder, **{name: manifest.counts[name] for name in names}, "ran": ran,
            "sources": {source: {"kept": verdicts.pop("", 0), "dropped": verdicts}
                        for source, verdicts in _by_source(manifest).items()}}


def closing_parts(manifest: Manifest, folder: str, ran: str) -> list[str | Table]:
    """The same as a table and one or two sentences."""
    counts = manifest.counts
    rows = table(f"corpus in {folder}", ("source",), ("read", "kept", "dropped"))
    rows.add_column("most frequent reasons")
    for source, verdicts in _by_source(manifest).items():
        kept, dropped = verdicts.pop("", 0), sum(verdicts.values())
        top = sorted(verdicts.items(), key=lambda item: (-item[1], item[0]))[:3]
        rows.add_row(Text(source), str(kept + dropped), str(kept), str(dropped),
                     ", ".join(f"{name} {n}" for name, n in top))
    parts: list[str | Table] = [
        rows, f"{counts['kept']} of {counts['read']} documents kept ({counts['kept_bytes']:,} bytes); {ran}."]
    if counts["bad_records"]:
        parts.append(f"{counts['bad_records']} records could not be read: see {join(folder, 'quarantine')}.")
    return parts


def check_corpus(folder: str, *, hashes: bool) -> tuple[dict[str, Any], str]:
    """What a check found, as facts and as a sentence. Raises StorageError with all problems if it does not add up."""
    found = verify_corpus(folder, hashes=hashes)
    if found.problems:
        raise StorageError("the corpus does not add up:\n" + "\n".join(found.problems), where=folder,
                           hint="Delete the folder's .work/write and run the recipe again.")
    stayed = sum(number for (_, fate), number in found.twins.items() if not fate)
    later = Counter({fate: number for (_, fate), number in found.twins.items() if fate})
    rest = "".join(f"; the twins of {number} went later ({fate})" for fate, number in sorted(later.items()))
    facts = {name: value for name, value in asdict(found).items() if name in ("read", "kept", "rejected")}
    return {**facts, "twins_kept": stayed, "twins_dropped_later": later}, (
        f"verified: {found.kept} kept + {found.rejected} rejected = {found.read} read; "
        f"{stayed} duplicates have a kept twin{rest}.")


def _by_source(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Documents by source and verdict; '' for kept ones."""
    sources: dict[str, dict[str, int]] = {}
    for source, _, verdict, documents, _ in manifest.counts["by_source_language_verdict"]:
        sources.setdefault(source, {}).setdefault(verdict, 0)
        sources[source][verdict] += documents
    return sources
