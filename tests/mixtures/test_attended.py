"""Programs that end with their owner: however it dies, and when it says so; a killed sweep leaves nobody behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mixtures.attended import Children
from mixtures.lock import NAME, read_lock
from mixtures.sweep import Sweep, make_proxies
from tests.mixtures.test_experiment import experiment, find_domains, list_candidates, mixture

# Writes its own id and that of a child into a file, and waits for ever.
SLEEPER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(os.environ["PIDS"] + ".new", "w").write(f"{os.getpid()} {child.pid}")
os.rename(os.environ["PIDS"] + ".new", os.environ["PIDS"])
time.sleep(600)
"""


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def environment(tmp_path: Path, project: Path) -> dict[str, str]:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    (tmp_path / "speaker.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit('no more')\n")
    path = os.pathsep.join([str(tmp_path), str(project)])
    return {**os.environ, "PYTHONPATH": path, "PIDS": str(tmp_path / "pids")}


def test_it_is_the_program_itself(environment: dict[str, str]) -> None:
    done = Children().run(["speaker", "a b", "--c"], environment)
    assert (done.returncode, done.stdout, done.stderr) == (1, "['a b', '--c']\n", "no more\n")
    assert "No module named nothing" in Children().run(["nothing"], environment).stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_all_end_when_the_owner_is_killed(environment: dict[str, str], tmp_path: Path, how: signal.Signals) -> None:
    # A background job of a shell ignores SIGINT, and so would what it starts.
    code = ("import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from mixtures.attended import Children; Children().run(['sleeper'], os.environ)")
    owner = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
    assert soon((tmp_path / "pids").exists)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(map(lives, pids))
    owner.send_signal(how)
    owner.wait(60)
    assert soon(lambda: not any(map(lives, pids)))


def test_they_are_ended_on_request_and_none_is_started_after_that(environment: dict[str, str], tmp_path: Path) -> None:
    children, codes = Children(), []
    thread = threading.Thread(target=lambda: codes.append(children.run(["sleeper"], environment).returncode))
    thread.start()
    assert soon((tmp_path / "pids").exists)
    children.end()
    thread.join(60)
    assert codes == [-signal.SIGKILL]
    assert children.run(["sleeper"], environment).returncode == -signal.SIGKILL


def test_an_interrupted_sweep_ends_its_trainers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes while it waits for its proxies, which would go on for minutes."""
    run, asked, ended = mixture(tmp_path), experiment(), threading.Event()

    def trains_until_ended(*_: object) -> subprocess.CompletedProcess[str]:
        assert ended.wait(60)
        return subprocess.CompletedProcess([], -9, "", "")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mixtures.sweep.Children.run", trains_until_ended)
    monkeypatch.setattr("mixtures.sweep.Children.end", lambda _: ended.set())
    monkeypatch.setattr("mixtures.sweep.wait", interrupted)
    lock = read_lock(f"{run}/mixture/{NAME}")
    domains = find_domains(asked, lock)
    proxies = make_proxies(asked, lock, domains, list_candidates(asked, domains))
    with pytest.raises(KeyboardInterrupt):
        Sweep(asked, run, "mine").train(proxies, print, 2)
    assert ended.is_set()
