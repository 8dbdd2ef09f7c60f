"""Disturb runs at random moments and compare the bytes with those of an undisturbed run.

    python -m tests.faults [--faults 20] [--seed 1] [--recipe small] [--steps corpus] [--kinds kill,SIGTERM,...]
                           [--log faults.md] [-- MORE ARGUMENTS OF THE CORPUS STEP]
    python -m tests.faults --engine portable [--faults 40] (kills on Beam's PortableRunner, see `portable`)

For each step, the undisturbed command runs once and is timed. Then the same command runs in another folder and is
disturbed (`injections`), again and again, going on from what the disturbed runs have left. Whenever one of them ends
well, and at last, a run without disturbance follows: every file that both leave is compared by hash, and leftover
temporary files count as differences. A hang (300 s) or an exit code that a fault does not explain counts, too. The
recipe `small` is made here, with all kinds of stages; any other one may be named. Where file systems may be mounted,
the run folder is one of 64 MB, so that the disk can be filled. Exit code 1 on any difference.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.injections import ALLOWED, ANY_STEP, FAULTS
from tests.faults.portable import portable_storm
from tests.faults.runs import FOLDERS, Ended, Run, write_small_input


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of 64 MB at `folder` if that is allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    mounted = shutil.which("mount") is not None and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


class Storm:
    """All faults of one step, and what came of them."""

    def __init__(self, calm: Run, stormy: Run, seconds: float, dice: random.Random) -> None:
        self.calm, self.stormy, self.seconds, self.dice = calm, stormy, seconds, dice
        self.rows: list[str] = []
        self.bad = 0

    def compare(self) -> int:
        """Finish without disturbance, compare, and begin anew; returns how many files differ."""
        self.stormy.undisturbed()
        one, two = self.calm.hashes(), self.stormy.hashes()
        wrong = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
        if wrong:
            print(f"{len(wrong)} of {len(one)} files differ: {wrong[:5]}", flush=True)
        self.bad += len(wrong)
        shutil.rmtree(self.stormy.output)
        return len(wrong)

    def inject(self, kind: str) -> None:
        """One fault, and a comparison if the run ended well in spite of it."""
        began = time.monotonic()
        ended = FAULTS[kind](self.stormy, self.seconds, self.dice)
        # After its last words Python itself answers signals; then all must be there, as after any other good end.
        by_signal = kind in ("SIGTERM", "SIGINT") and ended.code in (-signal.SIGTERM, -signal.SIGINT)
        late = by_signal and self.stormy.finished
        fine = (late or ended.code in ALLOWED[kind]) and "Traceback" not in ended.printed
        if not fine:
            self.bad += 1
            print(ended.printed, flush=True)
        after = self.outcome(self.compare()) if late or ended.code == 0 else "goes on"
        row = (f"| {len(self.rows) + 1} | {self.stormy.step} | {kind} | {time.monotonic() - began:.1f} | "
               f"{'hang' if ended.code is None else ended.code} | {self.said(ended)} | {after} |")
        self.rows.append(row)
        print(row, flush=True)

    def outcome(self, differences: int) -> str:
        """What a comparison showed, in words."""
        return f"{differences} files differ" if differences else "same bytes"

    def said(self, ended: Ended) -> str:
        """The sentence that a refused run ended with, without its paths."""
        lines = [line for line in ended.printed.splitlines() if line.startswith(("error:", "stopped by"))]
        words = " ".join(word for word in (lines or [""])[-1].split() if "/" not in word)
        return words.replace("|", "/")[:90]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recipe", default="small")
    parser.add_argument("--steps", default="corpus")
    parser.add_argument("--kinds", default=",".join(FAULTS))
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no new fault after so long")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--engine", choices=["local", "portable"], default="local")
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    if options.engine == "portable":
        return portable_storm(options.faults, options.seed, options.minutes, options.log)
    dice = random.Random(options.seed)
    steps, began, storms = options.steps.split(","), time.monotonic(), []
    with tempfile.TemporaryDirectory() as temporary, small_disk(Path(temporary, "stormy")) as mounted:
        small = options.recipe == "small"
        recipe = write_small_input(Path(temporary, "recipe")) if small else options.recipe
        calm = {step: Run(step, recipe, Path(temporary, "calm"), options.more) for step in steps}
        seconds = {step: run.undisturbed() for step, run in calm.items()}
        for step in steps:
            stormy = Run(step, recipe, Path(temporary, "stormy"), options.more)
            for earlier in steps[: steps.index(step)]:  # the step under attack starts from the undisturbed ones
                shutil.copytree(calm[earlier].output, stormy.folder / FOLDERS[earlier], dirs_exist_ok=True)
            possible = [kind for kind in options.kinds.split(",") if (step == "corpus" or kind in ANY_STEP)
                        and (mounted or kind != "full disk") and (small or kind != "cut input")]
            storm = Storm(calm[step], stormy, seconds[step], dice)
            for number in range(options.faults // len(steps)):
                if time.monotonic() - began < 60 * options.minutes:
                    storm.inject(possible[number % len(possible)])
            storm.rows.append(f"|  | {step} | none, at last |  | 0 |  | {storm.outcome(storm.compare())} |")
            storms.append(storm)
    rows = [row for storm in storms for row in storm.rows]
    kinds = Counter(row.split("|")[3].strip() for row in rows)
    bad = sum(storm.bad for storm in storms)
    print(f"{sum(kinds.values()) - len(steps)} faults ({dict(kinds)}), {bad} differences or unexplained ends")
    if options.log:
        head = "| | step | fault | s | exit code | said | afterwards |\n|--:|---|---|--:|--:|---|---|\n"
        options.log.write_text(head + "\n".join(rows) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
