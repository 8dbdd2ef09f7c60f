"""A node dies, agent and all, and one that stood by takes its place: three torchruns on this machine."""

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


def test_a_spare_node_takes_the_place_of_one_that_dies(tmp_path: Path, project: Path) -> None:
    """The node that leads is killed in step 6; the other one and the spare go on from step 4, to the same end.

    The rendezvous is held by this process, so that any node may die.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1",
        "--rdzv-id", "spare", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{store.port}",
        "--rdzv-conf", "is_host=0,keep_alive_interval=2,keep_alive_max_attempt=4",
        "--local-addr", "127.0.0.1", "--max-restarts", "3", "--monitor-interval", "0.2",
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
    dead = int((tmp_path / "died").read_text())
    codes = {agent.pid: agent.returncode for agent in agents}
    assert [pid for pid, code in codes.items() if code] == [dead], "\n".join(said)[-6000:]
    took_part = [{int((tmp_path / "lives" / f"{life}.{rank}").read_text()) for rank in (0, 1)} for life in (0, 1)]
    assert dead in took_part[0] and took_part[1] == set(codes) - {dead} != took_part[0]
    log = [orjson.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_bytes().splitlines()]
    calm = train(settings(**spare.CHANGES), tmp_path / "calm")
    assert [one["step"] for one in log] == list(range(1, 9))
    for mine, alone in zip(numbers(log), numbers(calm), strict=True):
        assert mine == pytest.approx(alone, rel=1e-5, abs=1e-5)
