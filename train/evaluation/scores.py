"""Scores of tasks, with the definitions of lm-evaluation-harness where it has the task.

choice  acc: the likeliest choice is the right one; acc_norm: the likeliest per character
cloze   acc: each token of the target is the likeliest one; perplexity of the targets
text    bits_per_byte, byte_perplexity, word_perplexity of whole texts, read in windows that do not overlap

Each item has an outcome of its own, so that scores of some of them can be told: those that the corpus was not found to
hold (`train.evaluation.contamination`). Standard errors are those of a mean: the spread of the items over the root of
their number.
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

from roots_pipeline.core.errors import TrainingError
from roots_pipeline.core.evaluation import METRICS
from train.evaluation.contamination import Contamination, Trained, contamination
from train.evaluation.prefixes import Likelihood, Request, Scorer, load_model
from train.evaluation.tasks import Item, TaskConfig, read_items, read_tasks

Outcome = tuple[float, ...]


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


def evaluate(model: Path, file: Path, length: int, batch: int = 16, trained: Trained | None = None) -> dict[str, Any]:
    """Scores of all tasks of a YAML file for an exported model; `length` is that of the windows of texts.

    Beside them, under `contamination`: which share of the items the corpus was found to hold, and the scores without
    these (`without_found`; None if none was found or none is left). Without `trained` that is unknown.
    """
    tasks = read_tasks(file)
    items = {task.name: read_items(task, file.parent) for task in tasks}  # mistakes are found before time is spent
    known = {task.name: contamination(trained, task, items[task.name]) for task in tasks}
    loaded, words = load_model(model), _words_of(model)
    scorer = Scorer(loaded, len(words.tokenizer), batch)
    results: dict[str, Any] = {}
    for task in tasks:
        before, own = (scorer.computed, scorer.requested), items[task.name]
        outcomes = outcomes_of(task, own, words, scorer, length)
        work = {"tokens_computed": scorer.computed - before[0], "tokens_one_by_one": scorer.requested - before[1]}
        results[task.name] = {
            "kind": task.kind,
            **scores_of(task.kind, outcomes),
            **work,
            "contamination": _beside(task.kind, outcomes, known[task.name]),
        }
    return results


def _words_of(model: Path) -> Words:
    """The tokenizer beside a model. Raises TrainingError without one, or one without an end-of-text token."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(model))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrainingError(f"the model's tokenizer cannot be read ({reason}).", where=str(model)) from error
    if tokenizer.eos_token_id is None:
        raise TrainingError("the model's tokenizer has no end-of-text token (eos_token).", where=str(model))
    return Words(tokenizer)


def _beside(kind: str, outcomes: list[Outcome], known: Contamination | str) -> dict[str, Any]:
    """What is known of the items, and the scores of those that were not found."""
    if isinstance(known, str):
        return {"known": False, "reason": known}
    others = [one for number, one in enumerate(outcomes) if number not in set(known.found)]
    without = scores_of(kind, others) if known.found and others else None
    return {**known.facts(len(outcomes)), "sentence": known.sentence(len(outcomes)), "without_found": without}


def outcomes_of(task: TaskConfig, items: Sequence[Item], words: Words, scorer: Scorer, length: int) -> list[Outcome]:
    """What became of each item: (right, right per character); (log-likelihood, greedy); (the same, bytes, words)."""
    if task.kind == "text":
        return _texts([one.continuations[0] for one in items], words, scorer, length)
    requests = [words.request(one.context, continuation) for one in items for continuation in one.continuations]
    likelihoods = iter(scorer.score(requests))
    rows = [[next(likelihoods) for _ in one.continuations] for one in items]
    if task.kind == "cloze":
        return [(row[0].total, float(row[0].greedy)) for row in rows]
    return [_choice(item, row) for item, row in zip(items, rows, strict=True)]


def scores_of(kind: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The scores of some items of a task; see the module."""
    columns = list(zip(*outcomes, strict=True))
    if kind == "choice":
        return {"items": len(outcomes), **_mean("acc", columns[0]), **_mean("acc_norm", columns[1])}
    if kind == "cloze":
        return {"items": len(outcomes), **_mean("acc", columns[1]), "perplexity": _exp(-fmean(columns[0]))}
    total, size, count = (math.fsum(column) for column in columns)
    return {
        "items": len(outcomes),
        "bits_per_byte": -total / size / math.log(2) if size else math.nan,
        "byte_perplexity": _exp(-total / size) if size else math.nan,
        "word_perplexity": _exp(-total / count),
    }


def _exp(value: float) -> float:
    """Not beyond 1e304: a hopeless model still has a score."""
    return math.exp(min(700.0, value))


def _choice(item: Item, row: list[Likelihood]) -> Outcome:
    totals = [one.total for one in row]
    per_character = [total / size for total, size in zip(totals, item.lengths, strict=True)]
    return (
        float(totals.index(max(totals)) == item.answer),
        float(per_character.index(max(per_character)) == item.answer),
    )


def _mean(name: str, values: Sequence[float]) -> dict[str, float]:
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return {name: fmean(values), f"{name}_stderr": error}


def _texts(texts: list[str], words: Words, scorer: Scorer, length: int) -> list[Outcome]:
    windows = [words.windows(text, length) for text in texts]
    likelihoods = iter(scorer.score([request for one in windows for request in one]))
    return [
        (sum(next(likelihoods).total for _ in one), float(len(text.encode())), float(len(re.split(r"\s+", text))))
        for text, one in zip(texts, windows, strict=True)
    ]


def as_text(results: dict[str, Any]) -> str:
    """The scores for people."""
    lines = []
    for name, found in results.items():
        known = found["contamination"]
        lines.append(f"{name} ({found['kind']}, {found['items']} items)")
        without = known.get("without_found")
        for metric in (one for one in METRICS if one in found):
            others = f"    without the items found in the corpus: {_shown(without, metric)}" if without else ""
            lines.append(f"  {metric:<18}{_shown(found, metric)}{others}")
        lines.append(f"  contamination     {known['sentence'] if known['known'] else 'unknown: ' + known['reason']}")
        lines.append(f"  tokens computed   {found['tokens_computed']:,} (one by one: {found['tokens_one_by_one']:,})")
    return "\n".join(lines)


def _shown(scores: dict[str, Any], metric: str) -> str:
    error = scores.get(f"{metric}_stderr")
    return f"{scores[metric]:.4g}" + ("" if error is None or math.isnan(error) else f" ± {error:.2g}")
