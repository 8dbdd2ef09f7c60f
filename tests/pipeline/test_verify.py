"""The verifier passes real runs and notices every kind of damage."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.verify import verify_corpus
from tests.pipeline.test_run import digest, rows, run, write_lines, write_recipe

STAGES = [
    {"stage": "exact_duplicates"}, {"stage": "near_duplicates", "ngram": 3, "threshold": 0.6, "bands": 60, "rows": 2},
    {"stage": "simhash_duplicates"}, {"stage": "repeated_passages", "passage_bytes": 60, "minimum_left": 80},
    {"stage": "massivetext"},
    {"stage": "thresholds", "preset": "", "limits": {"default": {"word_count": [6, None]}}},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Copies, edited copies and shared passages in four files; all stages dropped something."""
    dice = random.Random(7)
    words = [f"word{number}" for number in range(500)]
    passages = [" ".join(dice.choices(words, k=14)) for _ in range(3)]
    bodies = [dice.choices(words, k=dice.choice([4, 12, 40])) for _ in range(30)]
    texts = []
    for _ in range(120):
        body = list(dice.choice(bodies))
        if dice.random() < 0.5:
            body[dice.randrange(len(body))] = dice.choice(words)
        text = " ".join(body)
        texts.append(f"{text} {dice.choice(passages)}" if dice.random() < 0.2 else text)
    for number in range(4):
        write_lines(tmp_path / "in" / f"{number}.jsonl", texts[number::4], f"f{number}-")
    recipe = write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}], STAGES,
                          shard_size=1, rejected_text="full")
    run(recipe, tmp_path / "corpus")
    return tmp_path / "corpus"


def test_a_real_run_adds_up(corpus: Path) -> None:
    found = verify_corpus(str(corpus))
    assert found.problems == []
    assert (found.read, found.kept + found.rejected) == (120, 120)
    dropped = [row for row in rows(corpus, "rejected") if row["cause"] is not None]
    verdicts = {row["verdict"] for row in dropped}
    assert {"exact_duplicates", "near_duplicates", "repeated_passages"} <= verdicts
    assert sum(found.twins.values()) == len(dropped)
    kept = {row["id"] for row in rows(corpus, "documents")}
    assert sum(number for (_, fate), number in found.twins.items() if not fate) == sum(
        row["cause"] in kept for row in dropped)


def test_workers_and_shards_do_not_change_what_deduplication_does(corpus: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    run(str(recipe), tmp_path / "two", 2)
    assert digest(tmp_path / "two") == digest(corpus)
    recipe.write_text(recipe.read_text().replace("shard_size: 1", "shard_size: 1MB"))
    run(str(recipe), tmp_path / "big")
    for part in ("documents", "rejected"):
        assert rows(tmp_path / "big", part) == rows(corpus, part)


def test_pairs_are_those_of_dropped_documents_with_better_ones(corpus: Path) -> None:
    pairs = rows(corpus, "pairs")
    rejected = {row["id"]: row for row in rows(corpus, "rejected")}
    near = {row["id"]: row["cause"] for row in rejected.values() if row["verdict"] == "near_duplicates"}
    found = {(row["id"], row["other"]): row for row in pairs if row.get("jaccard") is not None}
    assert near and all((own, cause) in found for own, cause in near.items())
    for row in found.values():
        assert row["cluster"] <= row["other"] < row["id"]
        assert 0.6 <= row["jaccard"] <= 1


def change(corpus: Path, part: str, edit: Callable[[pa.Table], pa.Table]) -> None:
    for path in sorted((corpus / part).glob("*.parquet")):
        table = pq.read_table(path)
        if table.num_rows and not (after := edit(table)).equals(table):
            pq.write_table(after, path)
            return
    raise AssertionError("nothing was changed")


def set_cause(name: str | None) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        at = pc.equal(table.column("verdict"), "near_duplicates")
        causes = pc.if_else(at, pa.scalar(name, pa.string()), table.column("cause"))
        return table.set_column(table.schema.get_field_index("cause"), "cause", causes)

    return edit


def test_a_lost_document_is_noticed(corpus: Path) -> None:
    change(corpus, "documents", lambda table: table.slice(1))
    assert any("120 were read" in problem for problem in problems_of(corpus))


def test_a_cause_that_does_not_exist_or_was_dropped_before_is_noticed(corpus: Path) -> None:
    change(corpus, "rejected", set_cause("nobody"))
    assert any("for nobody, which is not in the corpus" in problem for problem in problems_of(corpus))
    gone = next(row["id"] for row in rows(corpus, "rejected") if row["verdict"] == "exact_duplicates")
    change(corpus, "rejected", set_cause(gone))
    assert any(f"for {gone}, which had been dropped itself" in problem for problem in problems_of(corpus))


def test_a_missing_cause_is_noticed(corpus: Path) -> None:
    change(corpus, "rejected", set_cause(None))
    assert any("no document" in problem for problem in problems_of(corpus))


def problems_of(corpus: Path) -> list[str]:
    """Problems other than sizes, which `check_files` would stop at: the manifest is made to agree."""
    path = corpus / "manifest.json"
    manifest = orjson.loads(path.read_bytes())
    for name, entry in manifest["files"].items():
        entry["size"] = (corpus / name).stat().st_size
    path.write_bytes(orjson.dumps(manifest))
    return verify_corpus(str(corpus), hashes=False).problems


def test_changed_bytes_are_noticed_and_told_in_one_sentence(corpus: Path) -> None:
    victim = next(path for path in sorted((corpus / "documents").glob("*.parquet")) if path.stat().st_size > 200)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    problem, = verify_corpus(str(corpus)).problems
    assert problem.startswith(f"documents/{victim.name} is not what was written")
    command = [sys.executable, "-m", "roots_pipeline", "verify", "--run", str(corpus.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    victim.unlink()
    with pytest.raises(StaleDataError, match="is missing"):
        verify_corpus(str(corpus))
