"""The killable child: limits, crashes, recovery, and no orphans."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import EngineError
from roots_pipeline.sources.isolation import Isolated, Killed


@pytest.fixture
def child() -> Iterator[Isolated]:
    isolated = Isolated("tests.sources.misbehaving:misbehave")
    yield isolated
    isolated._stop()


def call(child: Isolated, do: str, data: bytes = b"", seconds: float = 20, memory: int = 1 << 30) -> dict[str, Any]:
    return child.call(data, {"do": do}, seconds=seconds, memory_bytes=memory)


def test_answers_errors_and_noise(child: Isolated) -> None:
    big = b"x" * 3_000_000
    first = call(child, "echo", big)
    assert first["text"] == big.decode() and first["process"] != os.getpid()
    assert call(child, "raise") == {"error": "ValueError: no \\x1b[2J good"}
    assert call(child, "print") == {"text": "done"}
    assert call(child, "echo")["process"] == first["process"]


@pytest.mark.parametrize(("do", "reason"), [
    ("hang", r"took more than 0\.3 s of CPU time"), ("crash", r"crashed the parser \(SIGSEGV\)"),
    ("exit", r"ended the parser \(exit code 3\)"),
])
def test_a_deadly_call_costs_only_itself(child: Isolated, do: str, reason: str) -> None:
    with pytest.raises(Killed, match=reason):
        call(child, do, seconds=0.3)
    assert call(child, "echo", b"alive")["text"] == "alive"


def test_too_much_memory(child: Isolated) -> None:
    assert call(child, "eat", memory=1 << 29) == {"error": "needs more than 512 MiB of memory"}
    assert call(child, "echo", b"alive")["text"] == "alive"


def test_time_asleep_does_not_count(child: Isolated) -> None:
    assert call(child, "sleep", seconds=0.3) == {"text": "done"}


def test_a_child_that_died_between_calls_is_replaced(child: Isolated) -> None:
    process = call(child, "echo")["process"]
    os.kill(process, signal.SIGKILL)
    assert child._child is not None
    child._child.wait()
    assert call(child, "echo", b"alive")["text"] == "alive"


def test_a_child_that_cannot_start() -> None:
    with pytest.raises(EngineError, match="did not start"):
        Isolated("tests.sources.nothing_here:function").call(b"", {}, seconds=1, memory_bytes=1 << 30)


def test_no_child_outlives_its_parent(project: Path) -> None:
    program = (
        "from roots_pipeline.sources.isolation import Isolated\n"
        "import os\n"
        "child = Isolated('tests.sources.misbehaving:misbehave')\n"
        "print(child.call(b'', {'do': 'echo'}, seconds=5, memory_bytes=1 << 30)['process'], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, timeout=120, check=False)
    process = int(parent.stdout)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and _runs(process):
        time.sleep(0.05)
    assert not _runs(process)


def _runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_with_many_open_files_can_still_wait_for_its_child() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2500, limit[1]), limit[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1200)]
    isolated = Isolated("tests.sources.misbehaving:misbehave")
    try:
        assert max(held) > 1023
        assert call(isolated, "echo", b"still here")["text"] == "still here"
    finally:
        isolated._stop()
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
