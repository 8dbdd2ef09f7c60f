"""The guides in `docs/`: links lead somewhere, recipes are valid, and commands run or at least have their options.

Commands of the corpus step are run here, on a copy of the chain's corpus; those of the other packages are run by the
tests of their packages, so here it is only checked that command and options exist.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from roots_pipeline.stage_table import STAGES
from roots_pipeline.verify import verify_corpus
from tests.chain.conftest import Chain

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs").glob("*.md"))
_TEXT = {path.name: path.read_text("utf-8") for path in GUIDES}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for text in _TEXT.values() for block in blocks(text, "sh")
             for line in block.replace("\\\n", " ").splitlines()]
    return sorted({line for line in lines if "python -m" in line or " -m " in line})


@pytest.mark.parametrize("name", sorted(_TEXT))
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", _TEXT[name]):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), f"{name}: {target}"


@pytest.mark.parametrize("name", sorted(_TEXT))
def test_yaml_is_valid_and_names_stages_that_there_are(name: str) -> None:
    for block in blocks(_TEXT[name], "yaml"):
        value = yaml.safe_load(block)
        sections = value.get("corpus", {}) if isinstance(value, dict) else {}
        stages = value if isinstance(value, list) else sections.get("stages", [])
        for entry in stages:
            assert "stage" not in entry or entry["stage"] in STAGES, f"{name}: {entry}"


@pytest.mark.parametrize("line", commands())
def test_commands_and_options_exist(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    words = words[words.index("-m") + 1 :]
    app = importlib.import_module(f"{words[0]}.__main__").app
    group = typer.main.get_command(app)
    command = group.commands[words[1]]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known


def test_every_command_of_the_corpus_step_runs(chain: Chain, tmp_path: Path) -> None:
    shutil.copytree(chain.run, tmp_path / "runs" / "sample", ignore=shutil.ignore_patterns("model", "mixture"))
    (tmp_path / "names.txt").write_text("en-003\nnobody\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = []
    lines = [line.strip() for block in blocks(_TEXT["corpus.md"], "sh") for line in block.splitlines()]
    for line in lines:
        command = [sys.executable, *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        ran.append(done.stdout)
    corpus = tmp_path / "runs" / "sample" / "corpus"
    assert "0 tasks run" in ran[0] and "because of en-007" in "".join(ran)
    assert (corpus / "contamination.html").exists()
    assert "1 documents were removed" in ran[-1] and "nobody" in ran[-1]
    assert verify_corpus(str(corpus)).problems == []
