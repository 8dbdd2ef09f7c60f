"""Slurm scripts for runs of one or many nodes, in the shape of BLOOM's: one task a node, one process a GPU.

Goes in: a recipe, a run folder on a file system that all nodes share, and the nodes. Comes out: a script for `sbatch`.
What the settings in it are for is said beside them, so that a site can change them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from string import Template

from roots_pipeline.core.errors import RecipeError
from train.config import TrainConfig

_SCRIPT = Template("""\
#!/bin/bash
# $what: $processes processes ($layout).
# Submit it once for each allocation that the run may need; they wait for one another and each continues where the one
# before stopped, however it stopped:  for n in 1 2 3; do sbatch $file; done
#SBATCH --job-name=$name
#SBATCH --dependency=singleton
#SBATCH --nodes=$nodes
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:$gpus
#SBATCH --cpus-per-task=$cpus
#SBATCH --hint=nomultithread
#SBATCH --time=$time
#SBATCH --output=%x-%j.out
#SBATCH --requeue
$options
set -euo pipefail
cd $folder

export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export OMP_NUM_THREADS=$threads
# A process that waits for a dead one must end, or the job waits until its time is over.
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
# Processes that are started again must not find the addresses of the dead ones.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
$blocking
MASTER_ADDR=$$(scontrol show hostnames "$$SLURM_JOB_NODELIST" | sed -n 1p)
export MASTER_ADDR MASTER_PORT=$${MASTER_PORT:-29500}

$failing
srun --wait=60 --kill-on-bad-exit=$kill bash -c '$command' \\
  node $words
""")

_NODE_COMMAND = (
    '"$1" -m torch.distributed.run --nnodes {nodes} --nproc-per-node {gpus} '
    '--rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" '
    '--max-restarts {restarts} {waiting}--tee 3 -m train run --recipe "$2" --run "$3" --exit-minutes {minutes}'
)
# BLOOM's run hung now and then on more than 20 nodes; with launches one at a time it did not, at no cost in speed.
_MANY_NODES = 20
_RESTARTS = 3  # of all processes after a failure, within one allocation
_MINUTES_TO_SAVE = 10  # before the allocation ends
_FAILS = "# One node that fails ends the job at once, so that it can be requeued with another."
_SPARES = "# A node that fails is replaced by one that waits; all processes start again from the last checkpoint."
_OPTIONS = ("account", "partition", "constraint", "exclude")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is asked of Slurm. `hours` is the limit of one allocation; empty names are left to the site's defaults."""

    nodes: int = 1
    gpus: int = 8  # of each node
    cpus: int = 64  # of each node
    hours: int = 20
    account: str = ""
    partition: str = ""
    constraint: str = ""
    exclude: str = ""  # nodes known to be slow or broken
    spares: int = 0  # further nodes that wait for one to fail


def slurm_script(recipe: str, run: str, config: TrainConfig, cluster: Cluster, *, folder: str, python: str) -> str:
    """The script; `folder` is where the project lies. Raises RecipeError if the processes do not fit the recipe."""
    processes = cluster.nodes * cluster.gpus
    layout = config.layout(processes)
    for value in (recipe, run, folder, python, *(getattr(cluster, name) for name in _OPTIONS)):
        if any(character in value for character in "\n\r\0"):
            raise RecipeError(f"{value!r} cannot be part of a script.", hint="Use a name without line ends.")
    options = [f"#SBATCH --{name}={value}" for name in _OPTIONS if (value := getattr(cluster, name))]
    minutes = 60 * cluster.hours - _MINUTES_TO_SAVE
    spares = cluster.spares
    command = _NODE_COMMAND.format(
        nodes=cluster.nodes,
        gpus=cluster.gpus,
        minutes=minutes,
        restarts=_RESTARTS + 5 * spares,
        waiting=f"--rdzv-conf join_timeout={60 * minutes} " if spares else "",
    )
    title = "".join(character if character.isalnum() or character in "-_" else "-" for character in recipe)
    blocking = ["export CUDA_LAUNCH_BLOCKING=1  # against hangs on many nodes"] if cluster.nodes > _MANY_NODES else []
    script = _SCRIPT.substitute(
        what=f"{recipe} on {cluster.nodes} node{'s' * (cluster.nodes > 1)} of {cluster.gpus}",
        processes=processes,
        layout=layout,
        file=f"{title}.slurm",
        name=title,
        nodes=cluster.nodes + spares,
        failing=_SPARES if spares else _FAILS,
        kill=0 if spares else 1,
        gpus=cluster.gpus,
        cpus=cluster.cpus,
        time=f"{cluster.hours}:00:00",
        options="\n".join(options),
        folder=shlex.quote(folder),
        threads=max(1, cluster.cpus // cluster.gpus),
        blocking="\n".join(blocking),
        command=command,
        words=shlex.join([python, recipe, run]),
    )
    return script.replace("\n\n\n", "\n\n")
