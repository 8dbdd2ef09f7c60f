"""The ledger of licences: of the documents of a corpus, how many carry which licence, and how many can be attributed.

In: `documents/` of a finished corpus (three short columns; texts are not read). A document without a licence of its own
has that of its source, which is what its reader wrote into it; null means that nobody said.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from roots_pipeline.core.storage import join
from roots_pipeline.report.reading import parquet_files


@dataclass(frozen=True, slots=True)
class LicenceEntry:
    """Documents of a source under a licence (null: unknown); `with_url` of them name where they come from."""

    source: str
    licence: str | None
    documents: int
    with_url: int


def licence_ledger(folder: str) -> list[LicenceEntry]:
    """All entries of a corpus folder, by source and then by number of documents."""
    documents: Counter[tuple[str, str | None]] = Counter()
    with_url: Counter[tuple[str, str | None]] = Counter()
    for file in parquet_files(join(folder, "documents")):
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["source", "license", "url"], use_threads=False)
            table = table.append_column("named", pc.cast(pc.is_valid(table.column("url")), "int64"))
            counted = table.group_by(["source", "license"]).aggregate([("named", "sum"), ([], "count_all")])
            for row in counted.to_pylist():
                key = row["source"], row["license"]
                documents[key] += row["count_all"]
                with_url[key] += row["named_sum"]
    entries = [LicenceEntry(*key, number, with_url[key]) for key, number in documents.items()]
    return sorted(entries, key=lambda entry: (entry.source, -entry.documents, entry.licence or ""))
