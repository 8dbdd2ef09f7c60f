"""Sampling: the arithmetic against its definition, draws and duplicates against a plain program over whole lists."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import MixtureError, RecipeError, TokenizerError
from roots_pipeline.core.storage import hash_file
from roots_pipeline.core.weights import temperature, water_fill
from tests.tokenizer.test_train import RecordingEngine
from tokenizer.config import TokenizerRecipe, load_tokenizer_recipe
from tokenizer.sampling import first_of_equals
from tokenizer.sampling.config import AnySampling
from tokenizer.sampling.mixture import read_mixture_weights, shares_of_mixture
from tokenizer.sampling.rules import bloom, explicit, ratios
from tokenizer.sampling.sample import Shard, draw_sample, group_ratios

SIZES = {("en", "web"): 600, ("en", "books"): 50, ("fr", "web"): 300, ("yo", "web"): 10}


@given(st.dictionaries(st.integers(), st.floats(0, 1e9), max_size=9), st.floats(0, 1e10))
def test_water_filling_is_max_min_fair(sizes: dict[int, float], total: float) -> None:
    filled = water_fill(sizes, total)
    assert math.isclose(sum(filled.values()), min(total, sum(sizes.values())), rel_tol=1e-9, abs_tol=1e-6)
    level = max(filled.values(), default=0.0)
    for key, size in sizes.items():
        assert filled[key] <= size
        assert math.isclose(filled[key], size, rel_tol=1e-9) or math.isclose(
            filled[key], level, rel_tol=1e-6, abs_tol=1e-6
        )


def test_blooms_rule_by_hand() -> None:
    # Languages 650, 300, 10; filled to 480: level 235, so 235, 235, 10. Shares in proportion to (x / 480) ** 0.3.
    raised = [(235 / 480) ** 0.3, (235 / 480) ** 0.3, (10 / 480) ** 0.3]
    share = [value / sum(raised) for value in raised]
    wanted = bloom(SIZES, 200.0, 0.3, None)
    assert wanted["fr", "web"] == pytest.approx(200 * share[1])
    assert wanted["yo", "web"] == 10  # less than its share of 36: all there is, and the rest is given to nobody
    assert wanted["en", "books"] == pytest.approx(200 * share[0] / 2)  # below the level: both sources the same
    assert wanted["en", "web"] == pytest.approx(200 * share[0] / 2)
    assert ratios(SIZES, wanted)["yo", "web"] == 1.0
    free = bloom(SIZES, 960.0, 0.3, 480.0, repeat=True)
    assert sum(free.values()) == pytest.approx(960) and free["yo", "web"] == pytest.approx(960 * share[2])


def test_temperature_and_explicit() -> None:
    assert temperature({"a": 16.0, "b": 1.0, "c": 0.0}, 0.5) == pytest.approx({"a": 0.8, "b": 0.2, "c": 0.0})
    found = explicit(SIZES, {"web.*": 3, "books.en": 1})
    assert found["en", "books"] == 0.25 and found["en", "web"] == pytest.approx(0.75 * 600 / 910)
    with pytest.raises(TokenizerError, match=r"no group matches wep\.en.*'web\.en'"):
        explicit(SIZES, {"wep.en": 1, "*.*": 1})
    with pytest.raises(TokenizerError, match=r"no weight is given for web\.fr, web\.yo"):
        explicit(SIZES, {"*.en": 1})
    assert explicit(SIZES, {"*.fr": 2}, leave_out=True)["fr", "web"] == 1.0
    with pytest.raises(TokenizerError, match="add up to 0"):
        explicit(SIZES, {"*": 0})
    with pytest.raises(TokenizerError, match="is -1"):
        explicit(SIZES, {"*": -1})


def sampling(**values: Any) -> AnySampling:
    return TokenizerRecipe(vocab_size=300, sampling=values).sampling  # type: ignore[arg-type]


def test_weights_without_budget_may_repeat_and_with_one_may_not() -> None:
    free = group_ratios(sampling(rule="bloom"), SIZES)
    assert free["yo", "web"] > 1 and free["en", "web"] < 1
    assert sum(SIZES[group] * ratio for group, ratio in free.items()) == pytest.approx(960)
    capped = group_ratios(sampling(rule="bloom", budget=480), SIZES)
    assert max(capped.values()) == 1.0
    assert set(group_ratios(sampling(rule="proportional"), SIZES).values()) == {1.0}
    assert group_ratios(sampling(rule="proportional", budget=96), SIZES)["fr", "web"] == pytest.approx(0.1)


def test_same_as_the_mixture(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("tokenizer:\n  sampling: {rule: mixture}\n")
    shares = shares_of_mixture(SIZES, read_mixture_weights(str(path)))  # the sample's: temperature 0.5
    assert shares["en", "web"] / shares["yo", "web"] == pytest.approx(math.sqrt(60))
    recipe = load_tokenizer_recipe(str(path))
    assert group_ratios(recipe.sampling, SIZES)["fr", "web"] == pytest.approx(shares["fr", "web"] * 960 / 300)
    roots = {language: math.sqrt(SIZES[language, "web"]) for language in ("en", "fr", "yo")}
    in_levels = "outer: {rule: explicit, weights: {web: 0.9, books: 0.1}}, inner: {rule: temperature, alpha: 0.5}"
    rules = {
        f"{{rule: hierarchical, {in_levels}}}": {name: 0.9 * roots[name] / sum(roots.values()) for name in roots},
        "{rule: hierarchical, first: language, outer: {rule: temperature, alpha: 0}}": {"en": 200 / 650, "yo": 1 / 3},
        "{rule: unimax, tokens: 100, max_epochs: 1}": {"yo": 10 / 100, "fr": 30 / 100},
        "{rule: proportional}": {"yo": 10 / 960, "fr": 300 / 960},
        "{rule: explicit, weights: {'*.fr': 1, '*': 3}}": {"yo": 0.75 * 10 / 660, "fr": 0.25},
        "{rule: preset, name: roots, unmatched: leave_out}": {"fr": 0.1305402 / (0.2217116 + 0.1305402 + 0.0003159)},
    }
    for rule, expected in rules.items():
        path.write_text(f"mixture:\n  weights: {rule}\n")
        shares = shares_of_mixture(SIZES, read_mixture_weights(str(path)))
        assert sum(shares.values()) == pytest.approx(1)
        for language, share in expected.items():
            assert shares[language, "web"] == pytest.approx(share, rel=1e-5), rule
    path.write_text("mixture:\n  weights: {rule: preset, name: rots}\n")
    with pytest.raises(MixtureError, match="'roots'"):
        shares_of_mixture(SIZES, read_mixture_weights(str(path)))


ROWS = [
    ("a1", "web", "en", "Head\n\n  one line \nfoot"),
    ("a2", "web", "en", "Head\nanother\nfoot\nanother"),
    ("a3", "code", "c", "Head\n\nfoot"),
    ("b1", "web", "fr", "one line"),
    ("b2", "web", "fr", " tout\tnouveau "),
    ("b3", "books", "fr", "tout nouveau"),
    ("b4", "books", "fr", "\u2003\n \n"),
    ("c1", "code", "c", "He ad\nfoot"),
    ("c2", "web", "en", "x y\nz"),
    ("c3", "web", "en", "xy z"),
]


def plain_sample(rows: list[tuple[str, str, str, str]]) -> list[tuple[str, str]]:
    """Global line and article deduplication over a list, as the published program goes through its documents."""
    lines: set[str] = set()
    articles: set[str] = set()
    kept = []
    for name, source, _, text in rows:
        if source != "code":
            fresh = []
            for line in text.split("\n"):
                if line.strip() and line.strip() not in lines:
                    lines.add(line.strip())
                    fresh.append(line)
            text = "\n".join(fresh)
        squeezed = "".join(text.split())
        if text and squeezed not in articles:
            articles.add(squeezed)
            kept.append((name, text))
    return kept


def shards_of(folder: Path, rows: list[tuple[str, str, str, str]], cuts: list[int]) -> list[Shard]:
    shards = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        path = folder / f"s-{number}.parquet"
        batch = make_batch([{"id": i, "source": s, "language": lang, "text": t} for i, s, lang, t in rows[start:stop]])
        pq.write_table(pa.Table.from_batches([batch]), path)
        shards.append(Shard(path.stem, str(path), hash_file(str(path)), hash_file(str(path))))
    return shards


def drawn(shards: list[Shard], chosen: AnySampling, work: Path) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    found, facts = draw_sample(RecordingEngine(), shards, chosen, ["code"], str(work))
    rows = [row for shard in found for row in pq.read_table(shard.path).to_pylist()]
    return [(row["id"], row["text"]) for row in rows], facts


@pytest.mark.parametrize("cuts", [[], [1, 4], [2, 2, 9], list(range(1, 10))])
@pytest.mark.parametrize("partitions", [1, 8])
def test_duplicates_go_as_in_a_plain_program(
    tmp_path: Path, cuts: list[int], partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_of_equals, "_TEXT_OF_A_PARTITION", 400 // partitions)
    chosen = sampling(rule="proportional", deduplicate_lines=True, deduplicate_documents=True)
    found, facts = drawn(shards_of(tmp_path, ROWS, cuts), chosen, tmp_path / "work")
    assert found == plain_sample(ROWS)
    assert facts["documents"] == len(found) and facts["repeated_articles"] >= 2


lines = st.lists(st.sampled_from(["", " ", "a", " a", "b ", "a b", "ab"]), max_size=4).map("\n".join)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["web", "code"]), lines), min_size=1, max_size=8), st.integers(0, 8))
def test_duplicates_of_any_lines(
    tmp_path_factory: pytest.TempPathFactory, some: list[tuple[str, str]], cut: int
) -> None:
    rows = [(f"d{number}", source, "en", text) for number, (source, text) in enumerate(some)]
    if not any(text for *_, text in rows):
        return
    folder = tmp_path_factory.mktemp("any")
    chosen = sampling(rule="proportional", deduplicate_lines=True, deduplicate_documents=True)
    found, _ = drawn(shards_of(folder, rows, [min(cut, len(rows))]), chosen, folder / "work")
    assert found == plain_sample(rows)


def test_documents_are_drawn_by_their_ids_alone(tmp_path: Path) -> None:
    rows = [(f"d{n}", "web", ("en", "yo")[n % 10 == 0], "x" * 100) for n in range(3000)]
    chosen = sampling(rule="explicit", weights={"*.en": 1, "*.yo": 1}, apply="documents", budget=40_000)
    (tmp_path / "other").mkdir()
    found, facts = drawn(shards_of(tmp_path, rows, [1000]), chosen, tmp_path / "work")
    again, _ = drawn(shards_of(tmp_path / "other", rows, [7, 2000]), chosen, tmp_path / "again")
    assert found == again and facts["bytes"] == 100 * len(found)
    by_language = np.bincount([int(name[1:]) % 10 == 0 for name, _ in found])
    assert abs(by_language[0] - 200) < 60 and abs(by_language[1] - 200) < 35  # wanted: 20,000 bytes of each
    other_seed = sampling(rule="explicit", weights={"*": 1}, apply="documents", budget=40_000, seed=7)
    assert set(drawn(shards_of(tmp_path, rows, []), other_seed, tmp_path / "seed")[0]) != set(found)


def test_a_sample_is_not_made_twice(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, ROWS, [5])
    chosen = sampling(rule="proportional", deduplicate_lines=True)
    engine = RecordingEngine()
    first = draw_sample(engine, shards, chosen, [], str(tmp_path / "work"))
    ran = len(engine.ran)
    assert draw_sample(engine, shards, chosen, [], str(tmp_path / "work")) == first and len(engine.ran) == ran


def test_recipes_of_sampling(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("tokenizer:\n  sampling: {rule: bloom, apply: documents}\n")
    with pytest.raises(RecipeError, match="up to a budget"):
        load_tokenizer_recipe(str(path))
    path.write_text("tokenizer:\n  sampling: {rule: bloom, budget: 30GB, alhpa: 1}\n")
    with pytest.raises(RecipeError, match="alhpa"):
        load_tokenizer_recipe(str(path))
    roots = load_tokenizer_recipe("roots")
    assert (roots.sizes.padded_vocab_size, roots.sizes.spare, roots.sampling.budget) == (250_880, 200, 30 * 10**9)
    assert load_tokenizer_recipe("massivetext").sizes.padded_vocab_size == 32_000
