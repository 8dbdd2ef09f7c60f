"""Evaluation against scores computed one by one from whole logits, and against definitions written out by hand."""

from __future__ import annotations

import json
import math
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BloomForCausalLM

from roots_pipeline.core.errors import RecipeError, RootbloomError, SourceError, TrainingError
from tests.train.conftest import WORDS
from tests.train.test_model import Exported
from train.evaluation import scores
from train.evaluation.contamination import Contamination, Trained
from train.evaluation.prefixes import Likelihood, Model, Request, Scorer, load_model
from train.evaluation.scores import Words, evaluate
from train.evaluation.tasks import find_tasks, read_items, read_tasks
from train.standalone import load_standalone


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path) -> Path:
    return Exported(6, tmp_path_factory.mktemp("evaluated"), tokenizer).folder


@lru_cache(maxsize=1)
def theirs_from(folder: Path) -> Any:
    return BloomForCausalLM.from_pretrained(str(folder))


@lru_cache(maxsize=1)
def mine_from(folder: Path) -> Model:
    return load_model(folder)


def one_by_one(folder: Path, requests: list[Request]) -> list[Likelihood]:
    """Each request alone, from the logits of Hugging Face's class."""
    theirs = theirs_from(folder)
    found = []
    for request in requests:
        with torch.no_grad():
            logits = theirs(torch.tensor([request.inputs])).logits[0, -len(request.continuation) :, :WORDS]
        rows = zip(logits.log_softmax(-1), request.continuation, strict=True)
        total = sum(float(row[token]) for row, token in rows)
        found.append(Likelihood(total, bool((logits.argmax(-1) == torch.tensor(request.continuation)).all())))
    return found


def check(folder: Path, requests: list[Request], batch: int = 4) -> Scorer:
    scorer = Scorer(mine_from(folder), WORDS, batch)
    for mine, theirs in zip(scorer.score(requests), one_by_one(folder, requests), strict=True):
        assert mine.total == pytest.approx(theirs.total, abs=1e-4, rel=1e-5) and mine.greedy == theirs.greedy
    return scorer


def drawn(random: np.random.Generator, count: int) -> tuple[int, ...]:
    return tuple(random.integers(4, WORDS, count).tolist())


def test_shared_examples_and_endings_are_computed_once(model: Path) -> None:
    """HellaSwag with five examples: 12 questions of 4 endings. The saving is what the lengths predict, above 4."""
    random = np.random.default_rng(0)
    shots, requests = drawn(random, 120), []
    for _ in range(12):
        question = drawn(random, 30)
        requests += [Request(shots + question, drawn(random, 8)) for _ in range(4)]
    scorer = check(model, requests)
    assert scorer.requested == 48 * 157
    assert scorer.computed <= 120 + 12 * (30 + 4 * 7) and scorer.requested / scorer.computed > 4


TOKENS = st.lists(st.integers(4, 7), min_size=1, max_size=6).map(tuple)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.builds(Request, TOKENS, TOKENS), min_size=1, max_size=12), st.integers(1, 4))
def test_any_requests_score_as_one_by_one(model: Path, requests: list[Request], batch: int) -> None:
    """Repeated ones, ones that begin others, ones of a single token."""
    distinct = len({one.inputs[: end + 1] for one in requests for end in range(len(one.inputs))})
    assert check(model, requests, batch).computed == distinct


def test_very_deep_trees(model: Path) -> None:
    long = drawn(np.random.default_rng(1), 150)
    check(model, [Request(long[:end], (5,)) for end in range(1, 150)], 16)


def test_a_gopher_shares_what_it_computes(tmp_path: Path, tokenizer: Path) -> None:
    """Scores equal those of whole texts through the trainer's layers; each beginning is computed once."""
    exported = Exported(4, tmp_path, tokenizer, kind="gopher")
    random = np.random.default_rng(5)
    shots, requests = drawn(random, 20), []
    for _ in range(4):
        question = shots + drawn(random, 7)
        requests += [Request(question, drawn(random, 1 + length)) for length in range(5)]
    requests += [Request(shots, drawn(random, 3)), Request(drawn(random, 1), (5,))]
    scorer = Scorer(mine_from(exported.folder), WORDS, 3)
    whole = load_standalone(exported.folder)
    for request, found in zip(requests, scorer.score(requests), strict=True):
        with torch.no_grad():
            logits = whole(torch.tensor([request.inputs]))[0, -len(request.continuation) :, :WORDS]
        labels = torch.tensor(request.continuation)
        assert found.total == pytest.approx(float(logits.log_softmax(-1).gather(1, labels[:, None]).sum()), rel=1e-5)
        assert found.greedy == bool((logits.argmax(-1) == labels).all())
    assert scorer.computed == len({one.inputs[: end + 1] for one in requests for end in range(len(one.inputs))})


def write(folder: Path, tasks: list[dict[str, Any]], **files: list[Any]) -> Path:
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "tasks.yaml").write_text(json.dumps({"tasks": tasks}))
    return folder / "tasks.yaml"


CHOICE = {"name": "piqa", "kind": "choice", "file": "piqa.jsonl", "context": "w1 {goal} w2",
          "choices": ["{sol1}", "{sol2}"], "answer": "label"}  # fmt: skip


def sentence(random: np.random.Generator, count: int) -> str:
    return " ".join(f"w{number}" for number in random.integers(0, WORDS - 4, count))


def test_scores_are_the_definitions_written_out(model: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    piqa: list[dict[str, Any]] = [
        {"goal": sentence(random, 5), "sol1": sentence(random, 3), "sol2": sentence(random, 6), "label": n % 2}
        for n in range(9)
    ]
    cloze = [{"text": sentence(random, 6), "word": sentence(random, 1)} for _ in range(7)]
    texts = [{"text": sentence(random, count)} for count in (3, 40, 41)]
    file = write(
        tmp_path,
        [CHOICE | {"examples": "shots.jsonl", "shots": 2},
         {"name": "lambada", "kind": "cloze", "file": "lambada.jsonl", "context": "{text}", "target": " {word}"},
         {"name": "pile", "kind": "text", "file": "pile.jsonl", "context": "{text}"}],
        piqa=piqa, shots=piqa[:3], lambada=cloze, pile=texts,
    )  # fmt: skip
    found = evaluate(model, file, length=20)
    words = AutoTokenizer.from_pretrained(str(model))

    def likelihood(context: str, continuation: str) -> Likelihood:
        ids = (words(text, add_special_tokens=False).input_ids for text in (context, continuation))
        return one_by_one(model, [Request(*(tuple(one) for one in ids))])[0]

    before = "".join(f"w1 {one['goal']} w2 {one['sol1'] if one['label'] == 0 else one['sol2']}\n\n" for one in piqa[:2])
    rows = [[likelihood(f"{before}w1 {one['goal']} w2", one[name]).total for name in ("sol1", "sol2")] for one in piqa]
    right = [float((row[1] > row[0]) == one["label"]) for row, one in zip(rows, piqa, strict=True)]
    normed = [float((row[1] / len(one["sol2"]) > row[0] / len(one["sol1"])) == one["label"])
              for row, one in zip(rows, piqa, strict=True)]  # fmt: skip
    piqa_scores = found["piqa"]
    assert (piqa_scores["acc"], piqa_scores["acc_norm"], piqa_scores["items"]) == (sum(right) / 9, sum(normed) / 9, 9)
    mean = sum(right) / 9
    assert piqa_scores["acc_stderr"] == pytest.approx(math.sqrt(sum((one - mean) ** 2 for one in right) / 8 / 9))
    assert piqa_scores["tokens_computed"] < piqa_scores["tokens_one_by_one"]
    targets = [likelihood(one["text"], one["word"]) for one in cloze]
    assert found["lambada"]["perplexity"] == pytest.approx(math.exp(-sum(one.total for one in targets) / 7), rel=1e-5)
    assert found["lambada"]["acc"] == sum(one.greedy for one in targets) / 7
    # Windows of 20 tokens: 3; 20 + 20; 20 + 20 + 1, the last of which sees 20 tokens before it.
    total, end = 0.0, words.eos_token_id
    for line in texts:
        ids = words(line["text"], add_special_tokens=False).input_ids
        for start in range(0, len(ids), 20):
            part = ids[start : start + 20]
            context = [end, *ids[:start]][-(21 - len(part)) :]
            total += one_by_one(model, [Request(tuple(context), tuple(part))])[0].total
    size = sum(len(line["text"]) for line in texts)
    assert found["pile"]["bits_per_byte"] == pytest.approx(-total / size / math.log(2), rel=1e-5)
    assert found["pile"]["word_perplexity"] == pytest.approx(math.exp(-total / 84), rel=1e-5)


def test_spaces_before_a_continuation_are_its_own(model: Path) -> None:
    words = Words(AutoTokenizer.from_pretrained(str(model)))
    assert words.request("w1 w2  ", "w3") == words.request("w1 w2", " w3") == Request((5, 6), (7,))
    assert words.request("", "w3") == Request((words.first,), (7,))


def test_contamination_is_shown_beside_a_score(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores without the items found are those of a file without these lines; without a corpus nothing is known."""
    random = np.random.default_rng(4)
    piqa = [{"goal": sentence(random, 4), "sol1": sentence(random, 2), "sol2": sentence(random, 2), "label": n % 2}
            for n in range(5)]  # fmt: skip
    file = write(tmp_path, [CHOICE, CHOICE | {"name": "rest", "file": "rest.jsonl"}], piqa=piqa, rest=piqa[1:4])
    unknown = evaluate(model, file, 20)["piqa"]["contamination"]
    assert unknown == {"known": False, "reason": "no run, so nobody knows what the model was trained on"}
    told = Contamination("piqa", 5, (0, 4), 3, "drop", None)
    monkeypatch.setattr(scores, "contamination", lambda trained, task, *_: told if task.name == "piqa" else "nothing")
    found = evaluate(model, file, 20, trained=Trained(tmp_path))
    beside, rest = found["piqa"]["contamination"], found["rest"]
    assert (beside["found"], beside["share"], beside["action"]) == (2, 0.4, "drop")
    assert beside["without_found"] == {name: rest[name] for name in beside["without_found"]}
    assert beside["without_found"]["items"] == 3 and rest["contamination"]["known"] is False


def test_models_that_cannot_be_scored(model: Path, tmp_path: Path) -> None:
    """No folder, no BLOOM, cut weights, no tokenizer: one sentence each, and nobody asks the Hub."""
    file = write(tmp_path, [CHOICE], piqa=[{"goal": "w1", "sol1": "w2", "sol2": "w3", "label": "1"}])
    with pytest.raises(TrainingError, match="there is no model"):
        evaluate(tmp_path / "nowhere", file, 20)
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    for path in copy.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(TrainingError, match="tokenizer cannot be read"):
        evaluate(copy, file, 20)
    (copy / "model.safetensors").write_bytes((copy / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(TrainingError, match="the model cannot be read"):
        evaluate(copy, file, 20)
    (copy / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(TrainingError, match=r"config\.json says 'llama'"):
        evaluate(copy, file, 20)


GOOD = {"goal": "a", "sol1": "b", "sol2": "c", "label": 0}


@pytest.mark.parametrize(
    ("task", "lines", "error", "message"),
    [
        ({"answer": None}, [GOOD], RecipeError, "needs choices and answer"),
        ({"kind": "cloze"}, [GOOD], RecipeError, "needs a target"),
        ({"shots": 2}, [GOOD], RecipeError, "needs a file of examples"),
        ({"kind": "essay"}, [GOOD], RecipeError, "kind"),
        ({"file": "absent.jsonl"}, [GOOD], SourceError, "cannot be read"),
        ({}, [], SourceError, "no line"),
        ({}, [GOOD, [1]], SourceError, r"piqa\.jsonl:2: this line is no JSON object"),
        ({}, [{**GOOD, "label": 2}], SourceError, "names no choice"),
        ({}, [{**GOOD, "label": True}], SourceError, "names no choice"),
        ({"answer": "goal"}, [GOOD], SourceError, "names no choice"),
        ({"choices": "goal"}, [GOOD], SourceError, "is no list of texts"),
        ({"context": "{nothing}"}, [GOOD], SourceError, "nothing is missing"),
        ({"context": "{goal.__class__}"}, [GOOD], None, ""),
    ],
)
def test_mistakes_in_tasks(
    task: dict[str, Any], lines: list[Any], error: type[RootbloomError] | None, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path, [CHOICE | task], piqa=lines)
    if error is None:  # no more than fields are looked at
        assert read_items(read_tasks(file)[0], tmp_path)[0].context == "{goal.__class__}"
        return
    with pytest.raises(error, match=message):
        read_items(read_tasks(file)[0], tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "the file: it holds no tasks"), ("tasks: []", "it lists no task"), ("tasks: 3", "tasks: "),
     ("[", "cannot be read as YAML"), ("[" * 3000, "nested too deeply"), ("tasks: 2026-13-45", "month must be in 1")],
)
def test_files_that_list_no_tasks(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text(text)
    with pytest.raises(RecipeError, match=message):
        read_tasks(tmp_path / "tasks.yaml")


def test_tasks_by_name() -> None:
    tasks = read_tasks(found := find_tasks("sample"))
    assert {len(read_items(one, found.parent)) for one in tasks} == {12}
    with pytest.raises(RecipeError, match="Did you mean 'sample'"):
        find_tasks("smaple")


@pytest.mark.peers
def test_scores_equal_those_of_lm_evaluation_harness(tmp_path: Path, tokenizer: Path) -> None:
    """Three tasks of the same lines, the exported model without padding rows, which the harness does not know of."""
    harness = pytest.importorskip("lm_eval")
    pytest.importorskip("accelerate")
    served_by = pytest.importorskip("lm_eval.models.huggingface")
    listed_by = pytest.importorskip("lm_eval.tasks")
    folder, random = Exported(6, tmp_path / "model", tokenizer, strip=True).folder, np.random.default_rng(3)
    lines: dict[str, list[Any]] = {
        "piqa": [{"goal": sentence(random, 5), "sol1": sentence(random, 3), "sol2": sentence(random, 6),
                  "label": n % 2} for n in range(40)],
        "lambada": [{"text": sentence(random, 6), "word": sentence(random, 1)} for _ in range(40)],
        "pile": [{"text": sentence(random, count)} for count in (3, 40, 64, 65, 150, 200)],
    }  # fmt: skip
    file = write(
        tmp_path,
        [CHOICE,
         {"name": "lambada", "kind": "cloze", "file": "lambada.jsonl", "context": "{text}", "target": " {word}"},
         {"name": "pile", "kind": "text", "file": "pile.jsonl", "context": "{text}"}],
        **lines,
    )  # fmt: skip
    mine = evaluate(folder, file, length=64)
    theirs = {
        "piqa": {"output_type": "multiple_choice", "doc_to_text": "w1 {{goal}} w2",
                 "doc_to_choice": "{{[sol1, sol2]}}", "doc_to_target": "label"},
        "lambada": {"output_type": "loglikelihood", "doc_to_text": "{{text}}", "doc_to_target": "{{' ' + word}}"},
        "pile": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}"},
    }  # fmt: skip
    means = {"perplexity": "perplexity", "bits_per_byte": "bits_per_byte", "acc": "mean", "acc_norm": "mean"}
    metrics = {"piqa": ["acc", "acc_norm"], "lambada": ["acc", "perplexity"],
               "pile": ["bits_per_byte", "byte_perplexity", "word_perplexity"]}  # fmt: skip
    (tmp_path / "theirs").mkdir()
    for name, task in theirs.items():
        listed = [{"metric": one, "aggregation": means.get(one, "weighted_perplexity"), "higher_is_better": True}
                  for one in metrics[name]]  # fmt: skip
        whole = {"task": f"own_{name}", "dataset_path": "json", "test_split": "test", "metric_list": listed,
                 "dataset_kwargs": {"data_files": {"test": str(tmp_path / f"{name}.jsonl")}}, **task}  # fmt: skip
        (tmp_path / "theirs" / f"{name}.yaml").write_text(json.dumps(whole))
    words = AutoTokenizer.from_pretrained(str(folder))
    options = {"device": "cpu", "dtype": "float32", "batch_size": 1, "max_length": 64}
    served = served_by.HFLM(
        pretrained=str(folder), tokenizer=words, prefix_token_id=words.eos_token_id, **options
    )  # fmt: skip
    manager = listed_by.TaskManager(include_path=str(tmp_path / "theirs"), include_defaults=False)
    tasks = [f"own_{name}" for name in theirs]
    found = harness.simple_evaluate(served, tasks=tasks, task_manager=manager, bootstrap_iters=0)["results"]
    for name, wanted in metrics.items():
        for metric in wanted:
            assert mine[name][metric] == pytest.approx(found[f"own_{name}"][f"{metric},none"], rel=1e-5), (name, metric)
