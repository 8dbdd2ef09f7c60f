"""The card of an exported model: README.md, which people and the Hugging Face Hub read first.

In: a checkpoint and RUN/model/evaluation.json, if there is one. Out: what the model is, how it is loaded, and, if that
very checkpoint was scored, its scores with what the corpus is known to hold of their items. Scores of another step are
not listed.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from roots_pipeline.core.errors import RootbloomError
from roots_pipeline.core.evaluation import Evaluation, read_evaluation
from train.model.shape import Shape, parameter_count
from train.saved import Saved

FILE = "README.md"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")
_HEAD = """---
{library}pipeline_tag: text-generation
tags: [rootbloom, {kind}]
---
# {title} of step {step:,}

A {title} with {parameters:,} parameters: {layers:,} layers, hidden width {hidden:,}, {heads:,} heads.
Trained by Rootbloom for {step:,} steps on {samples:,} samples{origin}.

## Load it

{load}
"""
_LOAD = {
    "bloom": "```python\nfrom transformers import AutoTokenizer, BloomForCausalLM\n\n"
             "model = BloomForCausalLM.from_pretrained(FOLDER)\ntokenizer = AutoTokenizer.from_pretrained(FOLDER)\n```",
    "gopher": "transformers has no class for it: `model.safetensors` holds the weights, `config.json` the sizes.",
}  # fmt: skip
_TABLE = """
## Scores

Items found in the corpus were seen in training, or others like them. What nobody looked for is unknown, not clean.

| task | items | found in the corpus | metric | score | without found items | what is known of the items |
|---|---:|---:|---|---:|---:|---|
"""


def card(saved: Saved, rows: int) -> str:
    """The card as Markdown; `rows` are those of the exported embedding."""
    shape = Shape(**{**saved.shape, "vocabulary": rows})
    origin = f", beginning with the weights {_text(saved.origin)}" if saved.origin else ""
    head = _HEAD.format(
        library="library_name: transformers\n" if shape.kind == "bloom" else "", kind=shape.kind, title=shape.title,
        step=saved.step, parameters=parameter_count(shape), layers=shape.layers, hidden=shape.hidden,
        heads=shape.heads, samples=saved.samples, origin=origin, load=_LOAD[shape.kind],
    )  # fmt: skip
    return head + _scores(saved)


def _scores(saved: Saved) -> str:
    """The section of scores; empty if this checkpoint has none. A damaged file keeps no model from its export."""
    path = _evaluation_of(saved)
    try:
        evaluation = read_evaluation(str(path))
    except RootbloomError as error:
        return f"\n## Scores\n\n{path.name} of this run cannot be used: {_text(error.message)}\n"
    if evaluation is None or evaluation.step != saved.step or evaluation.checkpoint not in (None, saved.fingerprint()):
        return ""
    return _TABLE + "".join(f"| {' | '.join(cells)} |\n" for cells in _rows(evaluation))


def _evaluation_of(saved: Saved) -> Path:
    """RUN/model/evaluation.json of the checkpoint RUN/model/checkpoints/step_N."""
    return saved.folder.parents[1] / "evaluation.json"


def _rows(evaluation: Evaluation) -> list[list[str]]:
    rows = []
    for task in evaluation.tasks:
        if task.found is None or task.searched is None:
            found, remark = "unknown", f"unknown: {task.remark}"
        else:
            found, remark = f"{task.found:,} of {task.searched:,} ({task.found / task.searched:.1%})", task.remark
        for row in task.metrics:
            without = "–" if row.without_found is None else str(row.without_found)
            cells = (task.name, f"{task.items:,}", found, row.metric, str(row.score), without, remark)
            rows.append([_text(cell) for cell in cells])
    return rows


def _text(value: str) -> str:
    """One line that Markdown and HTML take for text; names of tasks come from files."""
    line = "".join(one if one.isprintable() else f"⟨U+{ord(one):04X}⟩" for one in value[:500])
    return _SPECIAL.sub(r"\\\1", escape(line, quote=False))
