"""Kill runs at random moments and compare the bytes with those of an undisturbed run.

    python -m tests.faults [--kills 20] [--seed 1] [--recipe sample] [--steps corpus,tokenizer,mixture,train]

For each step, the undisturbed command runs once and is timed. Then the same command starts in another folder and its
whole process group gets SIGKILL at a random moment of that time; this is repeated, and at last it may finish. Every
file that both runs leave is compared by hash, and leftover temporary files count as differences. Exit code 1 on any.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "corpus": ["roots_pipeline", "run"],
    "tokenizer": ["tokenizer", "train"],
    "mixture": ["mixtures", "write"],
    "train": ["train", "run"],
}
FOLDERS = {"corpus": "corpus", "tokenizer": "tokenizer", "mixture": "mixture", "train": "model"}
# Times and event logs differ between any two runs; what was trained is compared through the exported weights.
_UNCOMPARED = ("history.jsonl", ".lock", "tensorboard/", "checkpoints/", "log.jsonl", ".work/")


def command(step: str, recipe: str, run: Path) -> list[str]:
    return [sys.executable, "-m", *COMMANDS[step], "--recipe", recipe, "--run", str(run)]


def start(step: str, recipe: str, run: Path, log: Path) -> subprocess.Popen[bytes]:
    with open(log, "ab") as out:
        return subprocess.Popen(command(step, recipe, run), stdout=out, stderr=out, start_new_session=True)


def finish(step: str, recipe: str, run: Path, log: Path) -> float:
    began = time.monotonic()
    code = start(step, recipe, run, log).wait()
    if code == 0 and step == "train":
        export = [sys.executable, "-m", "train", "export", "--run", str(run)]
        with open(log, "ab") as out:
            code = subprocess.run(export, stdout=out, stderr=out, check=False).returncode
    if code != 0:
        sys.exit(f"{step} failed with exit code {code}; last lines of {log}:\n{log.read_text()[-2000:]}")
    return time.monotonic() - began


def kill_during(step: str, recipe: str, run: Path, log: Path, moment: float) -> bool:
    """Whether the process was still running when its moment came."""
    process = start(step, recipe, run, log)
    try:
        process.wait(timeout=moment)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def hashes(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(part in name for part in _UNCOMPARED):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--steps", default="corpus,tokenizer,mixture,train")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    steps = options.steps.split(",")
    differences = 0
    with tempfile.TemporaryDirectory() as temporary:
        calm, stormy, log = Path(temporary, "calm"), Path(temporary, "stormy"), Path(temporary, "log")
        seconds = {step: finish(step, options.recipe, calm, log) for step in steps}
        for step in steps:
            for earlier in steps[: steps.index(step)]:  # the step under attack starts from the undisturbed ones
                shutil.copytree(calm / FOLDERS[earlier], stormy / FOLDERS[earlier], dirs_exist_ok=True)
            kills = options.kills // len(steps) + (steps.index(step) < options.kills % len(steps))
            landed = 0
            while landed < kills:
                moment = dice.uniform(0.1, seconds[step])
                if kill_during(step, options.recipe, stormy, log, moment):
                    landed += 1
                    print(f"{step}: killed after {moment:.2f} s ({landed}/{kills})", flush=True)
                else:
                    shutil.rmtree(stormy / FOLDERS[step])  # it finished from what was kept: begin anew
            finish(step, options.recipe, stormy, log)
            one, two = hashes(calm / FOLDERS[step]), hashes(stormy / FOLDERS[step])
            wrong = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
            differences += len(wrong)
            print(f"{step}: {kills} kills, {len(one)} files compared, {len(wrong)} differ {wrong[:5]}", flush=True)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
