"""Repeated lines and sentences against brute force, whatever the shards, partitions and order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.dedup import line_keys
from roots_pipeline.dedup.lines import RepeatedLines
from tests.dedup.driver import document, run
from tests.text.test_segments import lower, segments_of, without_lines, without_sentences

LINES = ["", "a", "Menu", "menu ", "  Menu", "é日", "one. Two! three?", "Two! three? four.", "Two!  Two! Two!",
         "x。y。x。y。"]
URLS = [None, "http://www.a.org/1", "https://A.org/2", "http://b.org", "nonsense"]
DOMAINS = dict(zip(URLS, [None, "a.org", "a.org", "b.org", None], strict=True))


def brute_force(rows: list[dict[str, Any]], stage: RepeatedLines) -> list[tuple[str, str | None, str | None]]:
    """Text, verdict and cause of each document."""
    def scope(row: dict[str, Any]) -> str | None:
        return {"corpus": "", "source": row["source"], "domain": DOMAINS[row.get("url")]}[stage.scope]

    place = {name: rank for rank, name in enumerate(stage.prefer)}
    order = sorted((row for row in rows if not row.get("verdict") and scope(row) is not None),
                   key=lambda row: (place.get(row["source"], len(place)), row["id"]))
    sizes = Counter(scope(row) for row in order)
    pieces, runs = {}, {}
    for row in order:
        own = segments_of(row["text"], stage.unit == "sentences")
        pieces[row["id"]] = own
        keys = [tuple(lower(s) if stage.lower_case else s for s in own[k : k + stage.run])
                for k in range(len(own) - stage.run + 1)]
        runs[row["id"]] = [(scope(row), key) if sum(map(len, own[k : k + stage.run])) >= stage.minimum_characters
                           else None for k, key in enumerate(keys)]
    holders: dict[Any, list[str]] = {}
    for row in order:
        for key in runs[row["id"]]:
            if key is not None:
                holders.setdefault(key, []).append(row["id"])
    repeated = set()
    for key, ids in holders.items():
        times = len(ids) if stage.count == "lines" else len(set(ids))
        if times >= stage.minimum_times and (
                not stage.minimum_share or times > stage.minimum_share * sizes[key[0]]):
            repeated.add(key)
    result = []
    seen: set[Any] = set()
    done: dict[str, tuple[str, str | None, str | None]] = {}
    for row in order:
        name, own = row["id"], pieces[row["id"]]
        cut, best = [False] * len(own), (0, 0, None)
        for k, key in enumerate(runs[name]):
            if key not in repeated:
                continue
            stays = stage.keep == "first" and key not in seen
            seen.add(key)
            if not stays:
                cut[k : k + stage.run] = [True] * stage.run
                first = segments_bytes(row["text"], stage, k)
                if best[2] is None or first > best[0]:
                    best = (first, k, key)
        text = without_sentences(row["text"], cut) if stage.unit == "sentences" else \
            without_lines(row["text"], cut, stage.strip_lines)
        left = [piece for piece, goes in zip(own, cut, strict=True) if piece and not goes]
        short = any(cut) and (len(text.encode()) < stage.minimum_left or len(left) < stage.minimum_segments)
        lost = len(text.encode()) < len(row["text"].encode())
        if short or (lost and not text.strip()):
            others = [other for other in holders.get(best[2], []) if other != name]
            done[name] = (text, "repeated_lines", others[0] if others else name)
        else:
            done[name] = (text, None, None)
    for row in rows:
        result.append(done.get(row["id"], (row["text"], row.get("verdict"), None)))
    return result


def segments_bytes(text: str, stage: RepeatedLines, first: int) -> int:
    return len(segments_of(text, stage.unit == "sentences")[first].encode())


@st.composite
def stages(draw: st.DrawFn) -> RepeatedLines:
    unit = draw(st.sampled_from(["lines", "sentences"]))
    return RepeatedLines(
        unit=unit, run=draw(st.integers(1, 3)), scope=draw(st.sampled_from(["source", "domain", "corpus"])),
        keep=draw(st.sampled_from(["none", "first"])), count=draw(st.sampled_from(["lines", "documents"])),
        minimum_characters=draw(st.integers(0, 5)), minimum_times=draw(st.integers(2, 4)),
        minimum_share=draw(st.sampled_from([0.0, 0.3])), lower_case=draw(st.booleans()),
        strip_lines=unit == "lines" and draw(st.booleans()), minimum_left=draw(st.sampled_from([0, 6])),
        minimum_segments=draw(st.sampled_from([0, 2])), prefer=("y", "x"),
    )


@st.composite
def corpora(draw: st.DrawFn) -> list[dict[str, Any]]:
    dice = random.Random(draw(st.integers(0, 10**9)))
    names = [f"d{number:02d}" for number in range(draw(st.integers(0, 10)))]
    dice.shuffle(names)
    return [document(name, "\n".join(dice.choice(LINES) for _ in range(dice.randint(1, 6))), dice.choice("xyz"),
                     url=dice.choice(URLS), verdict="word_count" if dice.random() < 0.1 else None) for name in names]


@given(corpora(), stages(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_against_brute_force(
    rows: list[dict[str, Any]], stage: RepeatedLines, shards: int, partitions: int, seed: int
) -> None:
    outcome = run(stage, rows, shards, partitions, seed, batch_rows=3)
    got = [(row["text"], row["verdict"], row["cause"]) for row in outcome.rows]
    assert got == brute_force(rows, stage)


def test_a_line_of_every_document_costs_one_entry_a_batch() -> None:
    rows = [document(f"d{number:04d}", f"A line of every page.\nbody {number}") for number in range(2000)]
    outcome = run(RepeatedLines(minimum_characters=0), rows, 4, 2, 0, batch_rows=100)
    assert {row["text"] for row in outcome.rows} == {f"body {number}" for number in range(2000)}
    keys = outcome.entries[0].column("key").to_pylist()
    assert max(Counter(keys).values()) == 20
    assert len(outcome.entries[1]) == 2 * 20


def test_first_copy_stays_in_the_preferred_source() -> None:
    text = "We use cookies to improve this site. "
    rows = [document("a", text + "One.", "web"), document("z", text + "Two.", "wiki"),
            document("b", text + text, "web")]
    stage = RepeatedLines(unit="sentences", scope="corpus", keep="first", minimum_times=2, prefer=("wiki", "web"))
    outcome = run(stage, rows, 3, 2, 0)
    assert [row["text"] for row in outcome.rows] == ["One.", text + "Two.", ""]
    assert outcome.dropped() == {"b": "z"}


@pytest.mark.parametrize("change", [{"run": 0}, {"minimum_times": 1}, {"minimum_share": 1.0}, {"minimum_left": -1},
                                    {"unit": "sentences", "strip_lines": True}])
def test_impossible_settings(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be at least|share|strip_lines"):
        RepeatedLines(**change)


def test_keys_that_meet_by_chance_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(2)
    rows = [document(f"d{number:02d}", "\n".join(dice.choice(LINES) for _ in range(5)), dice.choice("xyz"))
            for number in range(20)]
    kinds: list[Any] = ["none", "first"]
    stages_ = [RepeatedLines(minimum_characters=0, minimum_times=times, keep=keep, prefer=("y",))
               for times in (2, 5) for keep in kinds]
    wanted = [run(stage, rows, 2, 1, 1, batch_rows=4).rows for stage in stages_]
    hashes = line_keys.segment_hashes

    def poor(*given: Any) -> tuple[Any, Any]:
        high, low = hashes(*given)
        return high & np.uint64(1), low

    monkeypatch.setattr(line_keys, "segment_hashes", poor)
    for stage, before in zip(stages_, wanted, strict=True):
        assert run(stage, rows, 2, 1, 1, batch_rows=4).rows == before
        assert [(row["text"], row["verdict"], row["cause"]) for row in before] == brute_force(rows, stage)


def test_advice() -> None:
    assert RepeatedLines().advice() == [] == RepeatedLines(minimum_times=2, keep="first").advice()
    assert "exists twice" in RepeatedLines(minimum_times=2).advice()[0]
