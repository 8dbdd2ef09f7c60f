"""Rules for program source: the published filters of ROOTS's code, and what else is no program that somebody wrote.

    text ──▶ ten columns of numbers; `thresholds` with the preset `code` or `roots_code` turns them into verdicts

Measures of ROOTS (data-preparation repository, sourcing/code_dataset/processing.py): `code_characters`,
`longest_code_line`, `token_length_deviation`, `non_word_share`. Ours: `mean_code_line` and `white_space_share`
(minified source), `number_share` (tables of data), `encoded_share` (base64 and the like), `acting_line_share` (settings
and tables have hardly a line with a parenthesis), and `generated_mark`, 1 if the file says at its beginning that a
program wrote it. See `text/code_measures.py` for what each is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import re2

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.presets import load_data
from roots_pipeline.text.code_measures import CODE_MEASURES, measure_code

MEASURES = (*CODE_MEASURES, "generated_mark")


@dataclass(frozen=True, slots=True)
class CodeMeasures(Map):
    """Adds MEASURES as float64 columns. Marks are looked for in the first `beginning_bytes` bytes."""

    name: ClassVar[str] = "code_measures"
    beginning_bytes: int = 2000

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return MEASURES

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        columns = {
            name: pa.array(row, mask=np.isnan(row))
            for name, row in zip(CODE_MEASURES, measure_code(data, offsets), strict=True)
        }
        beginnings = (data[start : min(stop, start + self.beginning_bytes)] for start, stop in pairwise(offsets))
        marks = [float(is_generated(beginning.tobytes())) for beginning in beginnings]
        return with_columns(batch, {**columns, "generated_mark": pa.array(marks, pa.float64())})


def is_generated(beginning: bytes) -> bool:
    """Whether a file says at its beginning that a program wrote it."""
    return _marks().search(beginning) is not None


@lru_cache(maxsize=1)
def _marks() -> Any:
    """All phrases of `data/generated_marks.yaml` in one pattern; a space stands for what is between two words."""
    between = r"[\s*/#;%!<>-]+"
    phrases = (between.join(word for word in phrase.split(" ")) for phrase in load_data("generated_marks")["phrases"])
    options = re2.Options()
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    return re2.compile("|".join(phrases).encode(), options)
