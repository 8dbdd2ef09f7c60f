"""What `run` prints at its end for programs, and a run that changes nothing."""

from __future__ import annotations

from pathlib import Path

import orjson
from typer.testing import CliRunner

from roots_pipeline.__main__ import app

RECIPE = """
corpus:
  sources: [{name: s, kind: jsonl, path: "%s", language: en}]
  stages: [{stage: exact_duplicates}]
"""


def test_dry_run_and_closing_object(tmp_path: Path) -> None:
    lines = [orjson.dumps({"id": str(number), "text": f"text {number % 3}"}) for number in range(5)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "r.yaml").write_text(RECIPE % (tmp_path / "in.jsonl"))
    command = ["run", "--recipe", str(tmp_path / "r.yaml"), "--run", str(tmp_path / "run"), "--workers", "1", "--json"]
    plan = orjson.loads(CliRunner().invoke(app, [*command, "--dry-run"]).stdout)
    assert plan["sources"][0]["files"] == 1 and not (tmp_path / "run" / "corpus" / "manifest.json").exists()
    done = CliRunner().invoke(app, [*command, "--quiet"])
    told = orjson.loads(done.stdout)
    assert (told["read"], told["kept"], told["rejected"]) == (5, 3, 2)
    assert told["sources"] == {"s": {"kept": 3, "dropped": {"exact_duplicates": 2}}}
