"""The stage `decontaminate`: documents that hold items of evaluation sets are dropped, cut, or only reported.

    - stage: decontaminate
      evaluations:
        - {name: gsm8k, path: "evaluations/gsm8k.jsonl.zst", fields: [question, answer]}

Every document is scanned for the n-grams of all items (`indexing`, `scanning`). What it holds of an item is then judged
together with what all other documents hold of it, because a passage that many documents quote is no leak: licences,
instructions, proverbs and headings stand in evaluation sets as well. Documents meet by item (an `Exchange`), and only
those with n-grams of an item take part, so little moves.

The rule `overlap`, for one item (`evidence` says what overlap and run are):

1. A document holds the item nearly whole if its overlap is at least 0.8.
2. An n-gram is common if more than `common_documents` documents have it without holding the item nearly whole. (So an
   item that leaked into a hundred documents is not taken for common.) Common n-grams are worth nothing, neither in the
   share found nor in the total; but the total never falls below half of what it was.
3. A document is contaminated if its overlap is at least `threshold`, or its longest run at least `long_match` words.
4. A short item, found as a whole, contaminates every document that has it, unless those are more than
   `common_documents`.

The rule `jaccard` (MassiveText: Gopher paper, appendix A.1.1): a document is contaminated if the Jaccard similarity of
its set of n-grams and that of an item is above `threshold`. What is common does not
matter, and documents need not meet.

Out: verdict `contaminated` with the cause `<set>/<item id>` (action `drop`); for every action the measure
`contamination_overlap`, the largest overlap (or similarity) with any item, and `contamination_items`, the items that
contaminated the document, the cause first, before those that an earlier stage `decontaminate` has noted. For documents
that could reach the threshold the overlap is that after step 2, for all others that before.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept
from roots_pipeline.core.stages import Exchange, Map
from roots_pipeline.core.storage import fingerprint
from roots_pipeline.decontamination.consequences import (
    VERDICT,
    contaminations,
    measured_overlaps,
    similar_documents,
    with_cuts,
    with_measures,
    with_verdicts,
)
from roots_pipeline.decontamination.evaluations import Evaluation, content_of
from roots_pipeline.decontamination.index import EvaluationIndex, Matching, Rule
from roots_pipeline.decontamination.indexing import load_index
from roots_pipeline.decontamination.judging import Limits
from roots_pipeline.decontamination.meeting import ENTRY, FINDING, entries_of, judge_entries
from roots_pipeline.decontamination.scanning import ITEMS, OVERLAP, ContaminationScan


@dataclass(frozen=True, slots=True)
class Decontaminate(Exchange):
    """Finds documents that hold items of evaluation sets.

    `evaluations`       the sets; see `evaluations.Evaluation`
    `rule`              `overlap` or `jaccard`, as above
    `action`            `drop`: the verdict `contaminated`; `cut`: what is the item's is taken out of the text, and the
                        document dropped if fewer than `shortest_rest` words are left; `report`: measures only
    `threshold`         share of an item's words from which on a document is contaminated, default 0.5; with `jaccard`
                        the similarity above which it is, default 0.8 (the paper's)
    `long_match`        so many distinctive words of an item in a row contaminate however long the item is; 0: never
    `ngram`             words of an n-gram
    `common_items`      an n-gram in more items of a set than this is worth nothing (10)
    `common_documents`  an n-gram that more documents than this quote is worth nothing (10, as GPT-3: Brown et al. 2020,
                        appendix C); 0: the corpus does not matter
    `short_minimum`     items of fewer words are not looked for
    `short_anywhere`    items shorter than an n-gram count inside a sentence from so many words on,
    `anywhere_characters`  or from so many characters on (0: never)
    """

    name: ClassVar[str] = "decontaminate"
    evaluations: tuple[Evaluation, ...] = ()
    rule: Rule = "overlap"
    action: Literal["drop", "cut", "report"] = "drop"
    threshold: float | None = None
    long_match: float = 50.0
    ngram: int = 13
    common_items: int = 10
    common_documents: int = 10
    short_minimum: float = 4.0
    short_anywhere: float = 6.0
    anywhere_characters: int = 30
    shortest_rest: float = 50.0
    content: str = field(init=False, default="")

    def __post_init__(self) -> None:
        names = [evaluation.name for evaluation in self.evaluations]
        if not names:
            raise ValueError("there is no evaluation set to look for; name at least one in `evaluations`.")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two evaluation sets are called '{name}'; names must differ.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold} is no share from 0 to 1.")
        for name, least in (("ngram", 2), ("common_items", 1), ("short_minimum", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        for name in ("long_match", "common_documents", "short_anywhere", "anywhere_characters", "shortest_rest"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)}.")
        if self.rule == "jaccard" and self.action == "cut":
            raise ValueError("rule 'jaccard' speaks of whole documents, so nothing can be cut; use action 'drop'.")

    @property
    def matching(self) -> Matching:
        """The part of the settings that the index depends on."""
        return Matching(self.rule, self.ngram, self.common_items, self.short_minimum, self.short_anywhere,
                        self.anywhere_characters)

    @property
    def limits(self) -> Limits:
        threshold = self.threshold if self.threshold is not None else 0.5 if self.rule == "overlap" else 0.8
        return Limits(threshold, self.long_match, self.common_documents)

    def parameters(self) -> dict[str, Any]:
        return {**Exchange.parameters(self), "content": self.located}

    @property
    def located(self) -> str:
        """The fingerprint of the evaluation files: as they were when the run was planned, else as they are."""
        return self.content or content_of(self.evaluations)

    @property
    def index(self) -> EvaluationIndex:
        return load_index(self.evaluations, self.matching, self.located)

    def rounds(self) -> tuple[Exchange, ...]:
        planned = copy(self)
        object.__setattr__(planned, "content", self.located)
        return (planned,)

    @property
    def column(self) -> str:
        """The working column with what was found; its name follows from the settings."""
        return f"_contamination_{fingerprint(self.parameters())[:8]}"

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", "cause", self.column, OVERLAP, ITEMS, *(("text",) if self.action == "cut" else ()))

    @property
    def gives(self) -> tuple[str, ...]:
        changed = {"drop": ("verdict", "cause"), "cut": ("verdict", "cause", "text"), "report": ()}[self.action]
        return (OVERLAP, ITEMS, *changed)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return () if self.action == "report" else (VERDICT,)

    def prepare(self) -> Map:
        return ContaminationScan(self.evaluations, self.matching, self.located, self.column)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        column = batch.column(self.column)
        rows = np.flatnonzero(kept(batch) & column.is_valid().to_numpy(zero_copy_only=False)).tolist()
        if not rows or self.rule == "jaccard":
            return ENTRY.empty_table()
        found = {row + first_row: column[row].values.to_numpy() for row in rows}
        return entries_of(self.index, self.limits, found, shard)

    def resolve(self, entries: pa.Table) -> pa.Table:
        if not len(entries):
            return FINDING.empty_table()
        return judge_entries(self.index, self.limits, entries, found=self.action == "cut")

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.rule == "jaccard":
            valid = batch.column(self.column).null_count < batch.num_rows
            found = similar_documents(batch, self.index, self.column, self.limits.threshold) if valid else {}
        else:
            found = contaminations(findings, first_row)
        batch = with_measures(batch, measured_overlaps(findings, first_row), found)
        if self.action == "cut":
            return with_cuts(batch, self.index, found, self.shortest_rest) if found else batch
        return with_verdicts(batch, found) if self.action == "drop" else batch
