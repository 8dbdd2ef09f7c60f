"""Exact duplicates against brute force: one survivor a group, the best-ranked, whatever the order of arrival."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.dedup.exact import ExactDuplicates

TEXTS = st.text(alphabet="ab \n\té日", max_size=4)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["x", "y", "z"])), max_size=30)


def run(stage: ExactDuplicates, shards: list[list[dict[str, str]]], dice: random.Random) -> list[dict[str, object]]:
    batches = [stage.prepare()(make_batch(rows)) for rows in shards]
    entries = [stage.emit(batch, number, 0) for number, batch in enumerate(batches)]
    table = pa.concat_tables(entries)
    order = list(range(table.num_rows))
    dice.shuffle(order)
    found = stage.resolve(table.take(pa.array(order, pa.int64())).combine_chunks())
    out: list[dict[str, object]] = []
    for number, batch in enumerate(batches):
        mine = found.filter(pa.compute.equal(found.column("shard"), number))
        mine = mine.take(pa.compute.sort_indices(mine, sort_keys=[("row", "ascending")]))
        out += stage.apply(batch, mine, 0).to_pylist()
    return out


@given(ROWS, st.integers(1, 4), st.sampled_from(["nothing", "white_space"]), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_against_brute_force(texts: list[tuple[str, str]], shards: int, ignore: str, seed: int) -> None:
    rows = [{"id": f"d{n:02d}", "text": text, "source": source} for n, (text, source) in enumerate(texts)]
    stage = ExactDuplicates(ignore=ignore, prefer=("y", "x"))  # type: ignore[arg-type]
    result = run(stage, [rows[n::shards] for n in range(shards)], random.Random(seed))

    best: dict[str, tuple[int, str]] = {}
    for row in rows:
        key = row["text"] if ignore == "nothing" else "".join(row["text"].split())
        rank = (["y", "x", "z"].index(row["source"]), row["id"])
        best[key] = min(best.get(key, rank), rank)
    for row in result:
        key = str(row["text"]) if ignore == "nothing" else "".join(str(row["text"]).split())
        if row["id"] == best[key][1]:
            assert (row["verdict"], row["cause"]) == (None, None)
        else:
            assert (row["verdict"], row["cause"]) == ("exact_duplicates", best[key][1])


def test_documents_dropped_before_do_not_take_part() -> None:
    stage = ExactDuplicates()
    dropped = {"id": "a", "text": "same", "source": "s", "verdict": "word_count"}
    rows = [dropped, {"id": "b", "text": "same", "source": "s"}]
    batch = stage.prepare()(make_batch(rows))
    assert stage.emit(batch, 0, 0).column("row").to_pylist() == [1]
    assert stage.resolve(stage.emit(batch, 0, 0)).num_rows == 0
