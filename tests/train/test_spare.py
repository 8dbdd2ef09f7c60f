"""Nodes die, agent and all; one that stood by takes the place of the first: three torchruns on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from tests.train import spare
from tests.train.scenario import numbers, settings, train


def test_a_spare_node_takes_the_place_of_one_that_dies_and_the_last_one_goes_on_alone(
    tmp_path: Path, project: Path
) -> None:
    """The node that leads is killed in step 6, and the next one in step 8; each time the others go on from the last
    checkpoint, to the same end.

    The rendezvous is held by this process, so that any node may die.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    rendezvous = "is_host=0,keep_alive_interval=2,keep_alive_max_attempt=4,last_call_timeout=10"
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "1",
        "--rdzv-id", "spare", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{store.port}",
        "--rdzv-conf", rendezvous, "--local-addr", "127.0.0.1", "--max-restarts", "5", "--monitor-interval", "0.2",
        "-m", "tests.train.spare", str(tmp_path),
    ]  # fmt: skip
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"
    }  # fmt: skip
    agents = [
        subprocess.Popen(
            command, cwd=project, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        for _ in range(3)
    ]
    try:
        said = [agent.communicate(timeout=240)[1] for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    codes = {agent.pid: agent.returncode for agent in agents}
    dead = [int((tmp_path / f"died.{life}").read_text()) for life in (0, 1)]
    assert {pid for pid, code in codes.items() if code} == set(dead), "\n".join(said)[-6000:]
    lives = [{int(path.read_text()) for path in (tmp_path / "lives").glob(f"{life}.*")} for life in (0, 1, 2)]
    assert len(lives[0]) == 2 and dead[0] in lives[0]
    assert dead[1] in lives[1] and lives[1] == set(codes) - {dead[0]}
    assert lives[2] == set(codes) - set(dead)
    log = [orjson.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_bytes().splitlines()]
    calm = train(settings(**spare.CHANGES), tmp_path / "calm")
    assert [one["step"] for one in log] == list(range(1, 9))
    for mine, alone in zip(numbers(log), numbers(calm), strict=True):
        assert mine == pytest.approx(alone, rel=1e-5, abs=1e-5)
