"""A small corpus with hostile documents, made once, and the explorer on it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import uvicorn
import yaml

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.progress import Progress
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.explorer.server import HOST, Explorer, make_app
from roots_pipeline.run import run_corpus

HOSTILE = [
    "<script>document.title = 'canary'</script>", "<img src=x onerror=\"document.title='canary'\">",
    "[a](javascript:document.title='canary')", "\u202egnirts desrever\u202c and \x1b[31mred\x07",
    "</div></pre></textarea><svg onload=\"document.title='canary'\">", "{{7*7}} ${document.title='canary'}",
]


def write_input(path: Path) -> None:
    """Documents of 30 to 330 words in three languages, one in ten the copy of another, and the hostile ones."""
    dice = random.Random(5)
    letters = {"en": "abcdefghilmnoprstuvw", "fr": "abcdeéfghilmnoprstuv", "ar": "ابتثجحخدذرزسشصضطظعغفق"}
    stops = {"en": "the of and that", "fr": "le de et que", "ar": "في من على أن"}
    lines: list[dict[str, str]] = []
    for number in range(300):
        language = ("en", "fr", "ar")[number % 3]
        words = ["".join(dice.choices(letters[language], k=dice.randint(3, 7))) for _ in range(26 + number)]
        text = lines[number - 30]["text"] if number % 10 == 9 and number > 30 else " ".join([stops[language], *words])
        lines.append({"id": f"d{number:03}", "text": text, "language": language})
    for number, text in enumerate(HOSTILE):
        lines.append({"id": f"hostile-{number}-{text[:30]}", "text": f"{text} " * 3, "language": "en"})
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def run(recipe: Path, folder: Path) -> None:
    """Run a recipe in this process."""
    with LocalEngine(1) as engine:
        run_corpus(load_corpus_recipe(str(recipe)), str(folder), engine, Progress(quiet=True))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished corpus folder; its recipe lies beside it."""
    root = tmp_path_factory.mktemp("explorer")
    write_input(root / "in.jsonl")
    stages = [{"stage": "massivetext"}, {"stage": "thresholds", "limits": {"fr": {"word_count": [80, None]}}},
              {"stage": "exact_duplicates"}]
    source = {"name": "s", "kind": "jsonl", "path": str(root / "in.jsonl"), "language_field": "language"}
    (root / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {
        "sources": [source], "stages": stages, "rejected_text": "full", "shard_size": "50kB"}}))
    run(root / "recipe.yaml", root / "corpus")
    return root / "corpus"


@pytest.fixture(scope="session")
def explorer(corpus: Path) -> Explorer:
    return Explorer(str(corpus))


@pytest.fixture(scope="session")
def served(explorer: Explorer) -> Iterator[str]:
    """The address of a running server."""
    server = uvicorn.Server(uvicorn.Config(make_app(explorer), host=HOST, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    yield f"http://{HOST}:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
