"""What is disturbed: a command with its run folder, started in a process group of its own, and the files it leaves."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml

COMMANDS = {
    "corpus": ["roots_pipeline", "run"],
    "tokenizer": ["tokenizer", "train"],
    "mixture": ["mixtures", "write"],
    "train": ["train", "run"],
}
FOLDERS = {"corpus": "corpus", "tokenizer": "tokenizer", "mixture": "mixture", "train": "model"}
# Times and event logs differ between any two runs; what was trained is compared through the exported weights.
_UNCOMPARED = ("history.jsonl", ".lock", "tensorboard/", "checkpoints/", "log.jsonl", ".work/")
HANGS_AFTER = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (None: it hung and was killed), and the end of what it printed."""

    code: int | None
    printed: str


class Run:
    """One command on one run folder."""

    def __init__(self, step: str, recipe: str, folder: Path, more: list[str]) -> None:
        self.step, self.folder, self.recipe = step, folder, recipe
        self._more = more if step == "corpus" else []
        self._log = folder.with_name(f"{folder.name}.log")

    @property
    def output(self) -> Path:
        """The folder of the step."""
        return self.folder / FOLDERS[self.step]

    @property
    def finished(self) -> bool:
        """Whether a run has written its last file, the manifest; `Storm.compare` takes it away."""
        return (self.output / "manifest.json").exists()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it in a process group of its own."""
        command = [sys.executable, "-m", *COMMANDS[self.step], "--recipe", self.recipe, "--run", str(self.folder)]
        with open(self._log, "wb") as out:
            return subprocess.Popen([*command, *self._more], stdout=out, stderr=out, start_new_session=True)

    def begun(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for its first words: before them, Python itself answers signals. Whether it still runs."""
        while process.poll() is None and self._log.stat().st_size == 0:
            time.sleep(0.02)
        return process.poll() is None

    def end(self, process: subprocess.Popen[bytes], seconds: float = HANGS_AFTER) -> Ended:
        """Wait for its end; one that has not ended after so long hangs, and is killed."""
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        return Ended(code, self._log.read_text(errors="replace")[-3000:])

    def undisturbed(self) -> float:
        """Run to the end; returns the seconds. Exits where that fails."""
        began = time.monotonic()
        ended = self.end(self.start())
        if ended.code == 0 and self.step == "train":
            export = [sys.executable, "-m", "train", "export", "--run", str(self.folder)]
            done = subprocess.run(export, capture_output=True, text=True, check=False)
            ended = Ended(done.returncode, done.stdout + done.stderr)
        if ended.code != 0:
            sys.exit(f"{self.step} failed with exit code {ended.code}:\n{ended.printed}")
        return time.monotonic() - began

    def hashes(self) -> dict[str, str]:
        """Hashes of all files that are compared, by name; leftover temporary files are among them."""
        found = {}
        for path in sorted(self.output.rglob("*")):
            name = str(path.relative_to(self.output))
            temporary = path.name.startswith(".") and path.name.endswith(".tmp")
            if path.is_file() and (temporary or not any(part in name for part in _UNCOMPARED)):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Other processes of its group that have done some work: workers, not helpers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(status[2]) == process.pid != int(entry.name) and b"forkserver" in command and status[0] != "Z":
                found.append(int(entry.name))
    return sorted(found)[1:]  # the first is the fork server itself


def write_small_input(folder: Path, files: int = 8, documents: int = 120) -> str:
    """A recipe with all kinds of stages on text with copies, near copies and shared passages (1.3 MB); its path."""
    dice = random.Random(8)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(3000)]
    (folder / "input").mkdir(parents=True)
    texts: list[str] = []
    for file in range(files):
        lines = []
        for number in range(documents):
            kind = dice.random()
            if texts and kind < 0.3:
                text = dice.choice(texts)
                if kind < 0.2:
                    text = " ".join(word if dice.random() < 0.97 else dice.choice(words) for word in text.split(" "))
            else:
                text = ". ".join(" ".join(dice.choices(words, k=12)) for _ in range(dice.randint(3, 30)))
            texts.append(text)
            lines.append(orjson.dumps({"id": f"{file}-{number}", "text": f"{text}\nthe same footer on every page"}))
        (folder / "input" / f"{file}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    stages = [{"stage": name} for name in ("massivetext", "exact_duplicates", "near_duplicates", "repeated_lines",
                                           "repeated_passages")]
    recipe = folder / "recipe.yaml"
    sources = [{"name": "small", "kind": "jsonl", "path": str(folder / "input")}]
    recipe.write_text(yaml.safe_dump({"corpus": {"sources": sources, "stages": stages, "shard_size": "100kB"}}))
    return str(recipe)
