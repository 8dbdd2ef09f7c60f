"""Scores of tasks, with the definitions of lm-evaluation-harness where it has the task.

choice  acc: the likeliest choice is the right one; acc_norm: the likeliest per character
cloze   acc: each token of the target is the likeliest one; perplexity of the targets
text    bits_per_byte, byte_perplexity, word_perplexity of whole texts, read in windows that do not overlap

Standard errors are those of a mean: the spread of the items over the root of their number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from transformers import AutoTokenizer

from roots_pipeline.core.storage import read_json
from train.evaluation.prefixes import Likelihood, Request, Scorer, load_model
from train.evaluation.tasks import Item, TaskConfig, read_items, read_tasks


@dataclass(frozen=True, slots=True)
class Words:
    """A tokenizer, and the token that a text without context begins with."""

    tokenizer: Any

    @property
    def first(self) -> int:
        """The end of the text before, which is what the model has learnt to begin after."""
        return int(self.tokenizer.eos_token_id)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids

    def request(self, context: str, continuation: str) -> Request:
        """Both as the tokens of the whole: spaces at the end of the context belong to the continuation."""
        stripped = context.rstrip()
        context, continuation = stripped, context[len(stripped) :] + continuation
        before = self.encode(context)
        after = self.encode(context + continuation)[len(before) :]
        return Request(tuple(before) or (self.first,), tuple(after) or (self.first,))

    def windows(self, text: str, length: int) -> list[Request]:
        """A text in windows of at most `length` tokens, each token in the continuation of one; the last window sees as
        much of what lies before it as fits."""
        tokens = self.encode(text)
        found = []
        for start in range(0, len(tokens), length):
            part = tokens[start : start + length]
            before = [self.first, *tokens[:start]][-(length - len(part) + 1) :]
            found.append(Request(tuple(before), tuple(part)))
        return found


def evaluate(model: Path, file: Path, length: int, batch: int = 16, corpus: Path | None = None) -> dict[str, Any]:
    """Scores of all tasks of a YAML file for an exported model; `length` is that of the windows of texts.

    With `corpus`, what its decontamination found of each task is named beside the score.
    """
    words = Words(AutoTokenizer.from_pretrained(str(model)))
    scorer = Scorer(load_model(model), len(words.tokenizer), batch)
    tasks = read_tasks(file)
    items = {task.name: read_items(task, file.parent) for task in tasks}  # mistakes are found before time is spent
    known = contamination(corpus)
    results: dict[str, Any] = {}
    for task in tasks:
        before = scorer.computed, scorer.requested
        scores = score_task(task, items[task.name], words, scorer, length)
        work = {"tokens_computed": scorer.computed - before[0], "tokens_one_by_one": scorer.requested - before[1]}
        results[task.name] = {**scores, **work, "contamination": known.get(task.name)}
    return results


def contamination(corpus: Path | None) -> dict[str, dict[str, Any]]:
    """Items found in a corpus and documents that hold them, by evaluation set, from its contamination.json."""
    path = corpus / "contamination.json" if corpus else None
    if path is None or not path.is_file():
        return {}
    wanted = ("items_found", "documents", "action")
    return {str(one["name"]): {key: one.get(key) for key in wanted} for one in read_json(str(path))}


def score_task(
    task: TaskConfig, items: Sequence[Item], words: Words, scorer: Scorer, length: int
) -> dict[str, Any]:
    """The scores of one task; see the module."""
    if task.kind == "text":
        return _texts([one.continuations[0] for one in items], words, scorer, length)
    requests = [words.request(one.context, continuation) for one in items for continuation in one.continuations]
    likelihoods = iter(scorer.score(requests))
    rows = [[next(likelihoods) for _ in one.continuations] for one in items]
    return _cloze(rows) if task.kind == "cloze" else _choices(items, rows)


def _choices(items: Sequence[Item], rows: list[list[Likelihood]]) -> dict[str, Any]:
    right, right_by_length = [], []
    for item, row in zip(items, rows, strict=True):
        totals = [one.total for one in row]
        per_character = [total / size for total, size in zip(totals, item.lengths, strict=True)]
        right.append(float(totals.index(max(totals)) == item.answer))
        right_by_length.append(float(per_character.index(max(per_character)) == item.answer))
    return {"items": len(items), **_mean("acc", right), **_mean("acc_norm", right_by_length)}


def _cloze(rows: list[list[Likelihood]]) -> dict[str, Any]:
    totals = [row[0].total for row in rows]
    right = [float(row[0].greedy) for row in rows]
    return {"items": len(rows), **_mean("acc", right), "perplexity": math.exp(-fmean(totals))}


def _mean(name: str, values: list[float]) -> dict[str, float]:
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return {name: fmean(values), f"{name}_stderr": error}


def _texts(texts: list[str], words: Words, scorer: Scorer, length: int) -> dict[str, Any]:
    requests = [request for text in texts for request in words.windows(text, length)]
    total = sum(one.total for one in scorer.score(requests))
    size = sum(len(text.encode()) for text in texts)
    count = sum(len(re.split(r"\s+", text)) for text in texts)
    return {
        "items": len(texts),
        "bits_per_byte": -total / size / math.log(2) if size else math.nan,
        "byte_perplexity": math.exp(-total / size) if size else math.nan,
        "word_perplexity": math.exp(min(700.0, -total / count)),
    }
