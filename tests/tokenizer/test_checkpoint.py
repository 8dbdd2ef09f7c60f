"""A training that is killed goes on from its merges."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tokenizer.test_train import run, train
from tokenizer.checkpoint import MergeCheckpoint

__all__ = ["run"]  # a fixture

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tokenizer.test_train import train
from tokenizer import checkpoint, merge_loop

checkpoint.SECONDS, merge_loop.MERGES_A_CALL = 0, 100
save = checkpoint.MergeCheckpoint.save

def save_and_die(self, blocks):
    save(self, blocks)
    if len(blocks) == 4:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.MergeCheckpoint.save = save_and_die
train(Path(sys.argv[1]))
"""


def test_a_training_that_was_killed_goes_on_to_the_same_bytes(
    run: Path, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [sys.executable, "-c", KILLED, str(run)]
    assert subprocess.run(line, cwd=project, check=False).returncode == -signal.SIGKILL
    kept = run / "tokenizer" / ".work" / "merges.json"
    assert len(json.loads(kept.read_bytes())["merges"]) == 300 and not (run / "tokenizer" / "tokenizer.json").exists()
    loaded: list[Any] = []
    load = MergeCheckpoint.load

    def note(self: MergeCheckpoint) -> Any:
        loaded.append(load(self))
        return loaded[-1]

    monkeypatch.setattr(MergeCheckpoint, "load", note)
    resumed = train(run)
    assert len(loaded[0]) == 300 and not kept.exists()
    other = tmp_path / "other"
    shutil.copytree(run / "corpus", other / "corpus")
    straight = train(other)
    assert loaded[1] is None
    assert {name: content for name, content in resumed.items() if name != "manifest.json"} == {
        name: content for name, content in straight.items() if name != "manifest.json"
    }


def test_a_checkpoint_of_another_training_is_not_used(run: Path) -> None:
    kept = run / "tokenizer" / ".work" / "merges.json"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"mark": "another", "merges": [[5, 260, 1]]}')
    assert MergeCheckpoint(str(kept), "another").load() is not None
    first = train(run)
    assert not kept.exists()
    (run / "tokenizer" / ".work" / "train.json").unlink()
    assert train(run) == first
