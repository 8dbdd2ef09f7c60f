"""The task that writes which record of the evaluation sets is which item (`core.evaluation_records`).

In: the sets of each stage `decontaminate`, and what their files held when the run was planned. Out: one row a record.
A set that several stages have stands there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.core.evaluation_records import NAME, RECORDS
from roots_pipeline.core.tasks import Commit
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.indexing import check_content, found_as
from roots_pipeline.decontamination.items import read_keyed_items

_ROWS = 1 << 16


def write_records(
    commit: Commit, *, stages: Sequence[tuple[tuple[Evaluation, ...], str]], output: str
) -> dict[str, Any]:
    """Write the records of all sets. `stages`: the sets of each, and what `content_of` says of these.

    Raises SourceError for a set that cannot be read, StaleDataError if its files have changed. Memory: one set.
    """
    for evaluations, content in stages:
        check_content(evaluations, content)
    rows = 0
    with (commit.file(output) as path,
          pq.ParquetWriter(path, RECORDS, compression="zstd", use_dictionary=["set"], write_page_checksum=True) as out):
        for evaluation in dict.fromkeys(evaluation for evaluations, _ in stages for evaluation in evaluations):
            read = read_keyed_items(evaluation)
            names = found_as([item for item, _ in read])
            columns = [[evaluation.name] * len(read), names, [key for _, key in read]]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
            out.write_table(pa.Table.from_arrays(arrays, schema=RECORDS), row_group_size=_ROWS)
            rows += len(read)
    return {"rows": rows, "files": {NAME: commit.files[output]}}
