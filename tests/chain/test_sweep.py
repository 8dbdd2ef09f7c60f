"""One proxy of a sweep with the real trainer: recipe, lock and log are understood on both sides."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import yaml
from typer.testing import CliRunner

from mixtures.__main__ import app
from tests.chain.conftest import Chain


def test_a_proxy_is_trained_on_the_files_of_the_run(chain: Chain, tmp_path: Path) -> None:
    experiment = {
        "domains": {"code": ["code.*"], "english": ["*.en"], "rest": ["*"]},
        "candidates": [{"method": "list", "weights": [{"code": 1, "english": 1}]}],
        "seeds": [3],
        "train": {
            "model": {"hidden": 16, "layers": 2, "heads": 2}, "micro_batch": 8, "train_samples": 16,
            "warmup_samples": 0,
        },
        "held_out_samples": 8,
    }  # fmt: skip
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(experiment))
    command = ["sweep", "--experiment", str(path), "--run", str(chain.run), "--quiet", "--workers", "2"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and "all proxies are trained" in done.stdout, done.exception
    folder = chain.run / "experiments" / "tiny"
    rows = pq.read_table(folder / "results.parquet").to_pylist()
    domains = {(row["candidate"], row["name"]): row for row in rows if row["level"] == "domain"}
    # A domain without any weight is looked at, too.
    assert domains["list-000", "rest"]["weight"] == 0
    assert all(0.5 < row["bits_per_byte"] < 20 for row in rows)
    assert list((folder / "runs").iterdir()) == []
