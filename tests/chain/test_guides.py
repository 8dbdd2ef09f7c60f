"""The guides in `docs/`: links lead somewhere, recipes are valid, and every command runs.

Each guide gets a folder with copies of the chain's run, where its commands run in their order. The few that need a
cluster, a service, hours or the network are listed with the reason; of those, options and values are read by the
command's own parser.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import orjson
import pytest
import yaml
from typer.testing import CliRunner

from roots_pipeline.stage_table import STAGES
from roots_pipeline.verify import verify_corpus
from tests.chain.chain_copy import copy_of
from tests.chain.commands import run_make
from tests.chain.conftest import Chain
from tests.chain.guides import GUIDES, ROOT, app_of, blocks, commands, options_of, ours, parse

DOCS = sorted(name for name in GUIDES if name not in ("README.md", "CONTRIBUTING.md"))

# Why a command is not run here. Keys are beginnings of command lines.
NOT_RUN = {
    "make corpus tokenizer train": "the chain fixture, or CI itself",
    "make tokenizer train RECIPE=mine.yaml": "minutes; test_documentation runs these targets on one's own data",
    "make layouts": "minutes; tests/train/test_layouts.py trains a part of it",
    "bash tests/gpu/run.sh": "needs a GPU",
    "export PATH": "a setting of the shell",
    "python -m apache_beam": "a service; tests/engines/clusters.py starts it",
    "python -m dask": "a service of an extra package",
    "hf upload": "needs the Hub",
    "source .venv/bin/activate": "a setting of the shell",
    "rootbloom-": "writes into a start-up file; tests/test_options.py lets bash complete",
    ".venv/bin/python -m roots_pipeline explore": "serves until it is interrupted; tests/explorer",
    "python -m roots_pipeline explore": "serves until it is interrupted; tests/explorer",
    "torchrun --nnodes 4": "needs four nodes; tests/train/test_operations.py starts torchrun on one",
    "torchrun --nnodes 48": "needs 48 nodes; tests/train/test_spare.py starts three torchruns on one",
    "python -m train run --recipe model.yaml": "needs eight GPUs; tests/train/test_commands.py trains a small model",
    "python -m mixtures sweep": "a quarter of an hour; test_sweep trains one proxy",
    "python -m mixtures fit": "needs the proxies of the sweep; tests/mixtures",
    "python -m roots_pipeline language-model": "needs KenLM's estimator",
    "python -m roots_pipeline run --recipe sample --run runs/mine --engine beam -- --runner": "needs services; "
    "tests/engines/test_beam.py",
    "python -m roots_pipeline run --recipe sample --run runs/mine --engine beam -- --direct": "needs a quarter of a "
    "minute to start; tests/engines/test_beam.py",
}
# What is added to a command so that it can run on the sample (250,680 tokens need more text), or in less time.
CHANGED = {
    "python -m roots_pipeline plan": " --seconds 1",
    ".venv/bin/python -m roots_pipeline plan": " --seconds 1",
    "python -m tokenizer train --recipe roots --run runs/mine": " --dry-run",
    "python -m tokenizer report --run runs/mine": " --languages en,hi",
    "python -m train convert --run RUN --tensor-parallel 4": " --tensor-parallel 2",
}
PLACEHOLDERS = {"RUN": "runs/sample", "R": "sample", "RECIPE": "sample", "FOLDER": "runs/sample/model/export",
                "/models/bloom-560m": "runs/sample/model/export", "corpus.yaml": "sample", "model.yaml": "sample",
                "/shared/560m": "runs/sample", "/shared/176b": "runs/sample", "12000": "12",
                "/shared/176b/model/export": "runs/sample/model/export"}


def reason_of(line: str) -> str | None:
    return next((reason for begin, reason in NOT_RUN.items() if line.startswith(begin)), None)


@pytest.mark.parametrize("name", DOCS)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDES[name]):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), f"{name}: {target}"


@pytest.mark.parametrize("name", DOCS)
def test_yaml_is_valid_and_names_stages_that_there_are(name: str) -> None:
    for block in blocks(GUIDES[name], "yaml"):
        value = yaml.safe_load(block)
        sections = value.get("corpus", {}) if isinstance(value, dict) else {}
        stages = value if isinstance(value, list) else sections.get("stages", [])
        for entry in stages:
            assert "stage" not in entry or entry["stage"] in STAGES, f"{name}: {entry}"


def test_reasons_for_not_running_are_of_commands_that_there_are() -> None:
    lines = [line for text in GUIDES.values() for line in commands(text)]
    for begin in (*NOT_RUN, *CHANGED):
        assert any(line.startswith(begin) for line in lines), begin


@pytest.mark.parametrize("line", sorted({line for name in DOCS for line in commands(GUIDES[name])
                                         if ours(line) and reason_of(line)}))
def test_commands_that_are_not_run_are_parsed(line: str) -> None:
    package, arguments = ours(line) or ("", [])
    parse(package, arguments)


@pytest.mark.parametrize("name", sorted(GUIDES))
def test_commands_in_sentences_have_the_options_that_they_name(name: str) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", GUIDES[name], flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`]*python -m [^`]*)`", prose.replace("\n", " ")):
        found = ours(code)
        if found is None or not found[1] or not re.fullmatch(r"[a-z-]+", found[1][0]):
            continue
        package, (command, *words) = found
        known = options_of(package, command)
        assert known, f"{name}: `{code}`: {package} has no command {command}"
        assert {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"} <= known, code


# Those of the corpus step run in the last test.
RUN = [name for name in DOCS if name != "corpus.md" and any(not reason_of(line) for line in commands(GUIDES[name]))]


@pytest.mark.parametrize("name", RUN)
def test_commands_of_a_guide_run(name: str, chain: Chain, tmp_path: Path, sample: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(name, tmp_path, sample, chain)
    monkeypatch.chdir(tmp_path)
    for line in commands(GUIDES[name]):
        if reason_of(line):
            continue
        if line.startswith("make "):
            run_make(ROOT, tmp_path, *shlex.split(line)[1:])
            continue
        found = ours(line)
        assert found is not None, f"{name}: nobody knows how to run: {line}"
        changed = next((more for begin, more in CHANGED.items() if line.startswith(begin)), "")
        package, arguments = ours(line.partition(" > ")[0] + changed) or ("", [])
        arguments = [PLACEHOLDERS.get(word, word) for word in arguments]
        if (package, arguments[0]) == ("train", "import"):  # weights go into a run that has none
            arguments[-1] = "runs/new"
        done = CliRunner().invoke(app_of(package), arguments)
        assert done.exit_code == 0, f"{name}: {line}\n{done.output}\n{done.exception!r}"
        if " > " in line:
            Path(line.partition(" > ")[2]).write_text(done.stdout)


def prepare(name: str, folder: Path, sample: Path, chain: Chain) -> None:
    """What a reader of the guide has at hand: a run or two, and the files that it tells to write."""
    lines = " ".join(commands(GUIDES[name]))
    copy_of(chain.run, folder / "runs" / "sample")
    if name in ("engines.md", "tokenizer.md"):
        copy_of(chain.run, folder / "runs" / "mine", without=("model",))
        copy_of(chain.run, folder / "runs" / "other", without=("model", "mixture"))
    if "train import" in lines:
        copy_of(chain.run, folder / "runs" / "new", without=("model",))
    (folder / "names.txt").write_text("en-003\nnobody\n")
    for block, file in ((block, file) for file in ("strict.yaml", "mine.yaml") if file in GUIDES[name]
                        for block in blocks(GUIDES[name], "yaml") if block.lstrip("#").find("corpus:") >= 0):
        (folder / file).write_text(block)
    if name == "your-own-data.md":
        own_data(folder / "data", sample)
    if "tasks.yaml" in lines:
        evaluation_tasks(folder, blocks(GUIDES["evaluation.md"], "yaml")[0])


def own_data(folder: Path, sample: Path) -> None:
    """The sources of the recipe in `your-own-data.md`."""
    for part in ("news", "forum"):
        (folder / part).mkdir(parents=True)
    shutil.copy(sample / "web" / "en.jsonl", folder / "news")
    shutil.copytree(sample / "code", folder / "src")
    rows = [orjson.loads(line)["text"] for line in (sample / "web" / "fr.jsonl").read_bytes().splitlines()]
    quoted = ['"' + text.replace('"', '""') + '",fr' for text in rows]
    (folder / "forum" / "a.csv").write_text("\n".join(["body,lang", *quoted]) + "\n")


def evaluation_tasks(folder: Path, text: str) -> None:
    """The tasks of `evaluation.md`, with two items each."""
    (folder / "tasks.yaml").write_text(text)
    item = {"ctx": "The mill", "endings": ["turns", "sings"], "label": 0, "goal": "Grind", "sol1": "a mill",
            "sol2": "a mile", "text": "The old mill stands", "word": "still", "context": "A mill", "question": "What?",
            "answer": "a mill"}
    for task in yaml.safe_load(text)["tasks"]:
        for file in filter(None, (task["file"], task.get("examples"))):
            row = {**item, "answer": 0} if "piqa" in file else item
            (folder / file).write_bytes(b"\n".join([orjson.dumps(row)] * 6))


def test_commands_of_the_corpus_step_do_what_the_guide_says(chain: Chain, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    copy_of(chain.run, tmp_path / "runs" / "sample", without=("model", "mixture"))
    (tmp_path / "names.txt").write_text("en-003\nnobody\n")
    monkeypatch.chdir(tmp_path)
    said = [CliRunner().invoke(app_of("roots_pipeline"), (ours(line) or ("", []))[1]).stdout
            for line in commands(GUIDES["corpus.md"])]
    assert "0 tasks run" in said[0] and "because of en-007" in "".join(said)
    assert (tmp_path / "runs" / "sample" / "corpus" / "contamination.html").exists()
    assert "1 documents were removed" in said[-1] and "nobody" in said[-1]
    assert verify_corpus(os.path.join("runs", "sample", "corpus")).problems == []
