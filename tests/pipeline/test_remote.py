"""Corpora whose input and output lie in an object store: the same bytes as on a local disk, nothing half."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import yaml

from roots_pipeline.core.errors import StorageError
from roots_pipeline.verify import verify_corpus
from tests.pipeline.test_run import digest, many, run

__all__ = ["many"]  # a fixture


def remote_copy(recipe: str, folder: Path, base: str, filesystem: Any) -> str:
    """The recipe with its input under `base`, uploaded."""
    filesystem.put(str(folder / "in"), base.rpartition("://")[2] + "/in", recursive=True)
    value = yaml.safe_load(Path(recipe).read_text())
    value["corpus"]["sources"][0]["path"] = f"{base}/in"
    path = folder / "remote.yaml"
    path.write_text(yaml.safe_dump(value))
    return str(path)


def fetched(filesystem: Any, inside: str, to: Path) -> dict[str, str]:
    """Hashes of the files of a remote corpus."""
    filesystem.invalidate_cache()
    filesystem.get(inside + "/", str(to), recursive=True)
    return {name: value for name, value in digest(to).items() if name != "manifest.json"}  # it names the inputs


def local_digest(folder: Path) -> dict[str, str]:
    return {name: value for name, value in digest(folder).items() if name != "manifest.json"}


@pytest.fixture
def memory() -> Iterator[Any]:
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def test_input_and_output_in_memory(tmp_path: Path, many: str, memory: Any) -> None:
    recipe = remote_copy(many, tmp_path, "memory://data", memory)
    run(many, tmp_path / "out")
    address: Any = "memory://data/run/corpus"
    manifest, _ = run(recipe, address)
    assert run(recipe, address) == (manifest, 0)
    assert verify_corpus(address).problems == []
    assert fetched(memory, "/data/run/corpus", tmp_path / "fetched") == local_digest(tmp_path / "out")


@pytest.mark.parametrize("kind", ["refused", "half"])
def test_an_upload_that_fails_is_a_sentence_and_never_counts(
        tmp_path: Path, many: str, memory: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    recipe = remote_copy(many, tmp_path, "memory://data", memory)
    address: Any = "memory://data/run/corpus"
    put = type(memory).put_file
    failures: list[str] = []

    def failing(self: Any, local: str, remote: str, **more: Any) -> None:
        put(self, local, remote, **more)
        if any(remote.endswith(name) and name not in failures for name in (
                "0-read/s-00001.parquet", "0-judge/s-00002.json", "documents/s-00003.parquet", "manifest.json")):
            failures.append(remote.split("/corpus/")[1].removeprefix(".work/"))
            data = self.cat_file(remote)
            self.pipe_file(remote, data[: len(data) // 2])
            if kind == "refused":
                raise ConnectionError("the store went away")

    monkeypatch.setattr(type(memory), "put_file", failing)
    for _ in range(4):
        with pytest.raises(StorageError, match="went away" if kind == "refused" else "bytes instead of"):
            run(recipe, address)
    assert len(set(failures)) == 4
    run(recipe, address)
    run(many, tmp_path / "out")
    assert verify_corpus(address).problems == []
    assert fetched(memory, "/data/run/corpus", tmp_path / "fetched") == local_digest(tmp_path / "out")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3-compatible server on this machine, and the environment that leads to it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    s3fs = pytest.importorskip("s3fs")
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
                        "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(name, value)
    filesystem = s3fs.S3FileSystem(skip_instance_cache=True)
    filesystem.mkdir("bucket")
    yield filesystem
    server.stop()


def test_s3_with_two_workers_killed_and_resumed(tmp_path: Path, many: str, s3: Any) -> None:
    for number in range(2, 6):
        (tmp_path / "in" / f"{number}.jsonl").unlink()
    recipe = remote_copy(many, tmp_path, "s3://bucket/data", s3)
    command = [sys.executable, "-m", "roots_pipeline", "run", "--recipe", recipe, "--run", "s3://bucket/run",
               "--workers", "2", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        while not s3.exists("bucket/run/corpus/.work/0-read/s-00001.json") and process.poll() is None:
            s3.invalidate_cache()
            time.sleep(0.1)
        process.kill()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "documents kept" in done.stdout
    assert run(recipe, "s3://bucket/run/corpus")[1] == 0  # type: ignore[arg-type]
    run(many, tmp_path / "out")
    assert fetched(s3, "bucket/run/corpus", tmp_path / "fetched") == local_digest(tmp_path / "out")
