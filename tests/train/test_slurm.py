"""Scripts for Slurm: what they ask for, and what they would start, run with a stand-in for srun."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import load_section
from tests.train.test_commands import command
from train.config import RECIPES, TrainConfig
from train.slurm import Cluster, slurm_script

CLUSTERS = {
    "bloom-176b": Cluster(48, 8),
    "bloom-1b7": Cluster(1, 8),
    "gopher-44m": Cluster(1, 1, 8),
    "bloom-7b1": Cluster(4, 4, 40),
}


def script(recipe: str, cluster: Cluster, run: str = "/scratch/a run", **more: Any) -> str:
    config = load_section(recipe, "train", TrainConfig, RECIPES)
    return slurm_script(recipe, run, config, cluster, **{"folder": "/project", "python": ".venv/bin/python", **more})


def lines(text: str) -> list[str]:
    return text.splitlines()


@pytest.mark.parametrize("recipe", CLUSTERS)
def test_scripts_are_correct_for_bash(recipe: str) -> None:
    text = script(recipe, CLUSTERS[recipe])
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_layout_of_jean_zay() -> None:
    text = script("bloom-176b", Cluster(48, 8, 64, 100, account="abc@a100", constraint="a100", exclude="node7,node9"))
    assert "384 processes (data 8 x tensor 4 x pipeline 12)" in text
    for option in ("nodes=48", "ntasks-per-node=1", "gres=gpu:8", "cpus-per-task=64", "time=100:00:00",
                   "account=abc@a100", "constraint=a100", "exclude=node7,node9"):  # fmt: skip
        assert f"#SBATCH --{option}" in lines(text)
    assert "CUDA_LAUNCH_BLOCKING=1" in text and "CUDA_LAUNCH_BLOCKING" not in script("bloom-1b7", Cluster(1, 8))
    assert "--partition" not in text


def test_options_come_before_the_first_command() -> None:
    """Slurm reads no #SBATCH line after the first command."""
    text = lines(script("bloom-176b", Cluster(48, 8, partition="p")))
    first = next(number for number, line in enumerate(text) if line and not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in text[first:])


def test_what_each_node_starts(tmp_path: Path) -> None:
    """srun runs the command as a node would; python is replaced by a program that prints its arguments."""
    programs = {
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; SLURM_PROCID=1 exec "$@"',
        "scontrol": "printf 'first\\nsecond\\n'",
        "shown": "printf '%s\\n' \"$@\"",
    }
    for name, body in programs.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
    text = script("bloom-7b1", Cluster(4, 4), run="/scratch/a 'run';$HOME", folder=str(tmp_path), python="shown")
    environment = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_NNODES": "4", "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "nodes[1-2]",
    }  # fmt: skip
    done = subprocess.run(["bash"], input=text, text=True, capture_output=True, env=environment, check=True)
    assert lines(done.stdout) == [
        "-m", "torch.distributed.run", "--nnodes", "4", "--nproc-per-node", "4", "--rdzv-id", "17",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "first:29500", "--max-restarts", "3", "--tee", "3", "-m", "train",
        "run", "--recipe", "bloom-7b1", "--run", "/scratch/a 'run';$HOME", "--exit-minutes", "1190",
    ]  # fmt: skip


def test_spare_nodes_wait_for_one_to_fail() -> None:
    text = script("bloom-176b", Cluster(48, 8, hours=100, spares=4))
    assert "#SBATCH --nodes=52" in lines(text) and "--nnodes 48 " in text and "--kill-on-bad-exit=0" in text
    assert "join_timeout=359400" in text and "--exit-minutes 5990" in text  # as in BLOOM's script
    assert "384 processes" in text and "--kill-on-bad-exit=1" in script("bloom-176b", Cluster(48, 8))


def test_impossible_clusters_and_names_are_refused() -> None:
    with pytest.raises(RecipeError, match="Use --processes 48"):
        script("bloom-176b", Cluster(1, 8))
    for wrong in ({"run": "a\nb"}, {"python": "x\ny"}):
        with pytest.raises(RecipeError, match="cannot be part of a script"):
            script("bloom-1b7", Cluster(1, 8), **wrong)


def test_command_prints_the_script() -> None:
    result = command("slurm", "--recipe", "bloom-176b", "--run", "/scratch/bloom", "--nodes", "48")
    assert result.exit_code == 0 and result.stdout.startswith(
        "#!/bin/bash\n# bloom-176b on 48 nodes of 8: 384 processes"
    )
