"""Weights: the rules, the presets, and every way to get them wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.weight_rules import Weights, choose_weights
from roots_pipeline.core.weights import Entry, explicit, proportional, read_preset, temperature, unimax

TOKENS = {"web.en": 600, "web.fr": 200, "books.fr": 100, "code.go": 100}


def entries(**weights: float) -> list[Entry]:
    return [Entry(name, weight, (name.replace("_", "."),)) for name, weight in weights.items()]


def test_rules() -> None:
    assert proportional(TOKENS) == {"web.en": 0.6, "web.fr": 0.2, "books.fr": 0.1, "code.go": 0.1}
    roots = {name: math.sqrt(count) for name, count in TOKENS.items()}
    found = temperature(TOKENS, 0.5)
    assert all(math.isclose(found[name], root / sum(roots.values())) for name, root in roots.items())
    assert temperature(TOKENS, 0) == dict.fromkeys(TOKENS, 0.25)
    assert temperature({**TOKENS, "web.xx": 0}, 0)["web.xx"] == 0


def test_unimax_by_hand() -> None:
    # 800 tokens: the two of 100 are capped at one epoch, then 200 of web.fr, the rest (400) goes to web.en.
    assert unimax(TOKENS, 800, 1) == {"web.en": 0.5, "web.fr": 0.25, "books.fr": 0.125, "code.go": 0.125}
    assert unimax(TOKENS, 40, 4) == dict.fromkeys(TOKENS, 0.25)
    assert unimax(TOKENS, 10**9, 2) == proportional(TOKENS)


@given(
    st.dictionaries(st.text(), st.integers(1, 10**12), min_size=1, max_size=30),
    st.integers(1, 10**12),
    st.floats(0.5, 8),
)
def test_unimax_never_repeats_more_than_allowed(tokens: dict[str, int], budget: int, cap: float) -> None:
    weights = unimax(tokens, budget, cap)
    used = min(budget, cap * sum(tokens.values()))
    assert math.isclose(sum(weights.values()), 1)
    assert all(weight * used <= cap * tokens[name] * (1 + 1e-9) for name, weight in weights.items())


def test_explicit_weights_share_patterns_by_tokens() -> None:
    wanted = [Entry("go", 0.5, ("code.go",)), Entry("french", 0.3, ("*.fr",)), Entry("rest", 0.2, ("*",))]
    weights, unmatched = explicit(TOKENS, wanted)
    assert weights == pytest.approx({"web.en": 0.2, "web.fr": 0.2, "books.fr": 0.1, "code.go": 0.5})
    assert not unmatched.groups and not unmatched.entries
    # A name goes before a pattern, wherever it stands.
    assert explicit(TOKENS, [Entry("all", 0.5, ("*",)), Entry("go", 0.5, ("code.go",))])[0]["code.go"] == 0.5


def test_wrong_weights() -> None:
    with pytest.raises(MixtureError, match=r"no group matches web\.eng.*Did you mean 'web\.en'"):
        explicit(TOKENS, [Entry("web.eng", 1, ("web.eng",))])
    with pytest.raises(MixtureError, match=r"no weight is given for web\.fr, books\.fr, code\.go"):
        explicit(TOKENS, entries(web_en=1))
    with pytest.raises(MixtureError, match=r"weight of web_en is -0\.1"):
        explicit(TOKENS, entries(web_en=-0.1))
    with pytest.raises(MixtureError, match="weight of web_en is nan"):
        explicit(TOKENS, entries(web_en=math.nan))
    with pytest.raises(MixtureError, match=r"add up to 0\.0"):
        explicit(TOKENS, [Entry("all", 0, ("*",))])
    with pytest.raises(MixtureError, match="weight 1 but nothing in it"):
        explicit({"web.en": 0, "web.fr": 5}, entries(web_en=1, web_fr=1))
    with pytest.raises(MixtureError, match="alpha is -1"):
        temperature(TOKENS, -1)
    with pytest.raises(MixtureError, match="0 groups add up to 0"):
        proportional({})
    with pytest.raises(MixtureError, match="unimax needs"):
        unimax(TOKENS, 0, 1)


def test_leaving_out_what_does_not_match() -> None:
    wanted = [Entry("english", 0.2, ("*.en",)), Entry("klingon", 0.8, ("*.tlh",))]
    weights, unmatched = explicit(TOKENS, wanted, allow_unmatched=True)
    assert weights["web.en"] == 1 and sum(weights.values()) == 1
    assert unmatched.entries == ("klingon",) and unmatched.groups == ("web.fr", "books.fr", "code.go")


def test_presets() -> None:
    roots = read_preset("roots")
    assert len(roots) == 28 and math.isclose(sum(entry.weight for entry in roots), 1)
    shares = {entry.name: round(100 * entry.weight, 2) for entry in roots}
    assert (shares["en"], shares["oscar-en"], shares["code"], shares["zhs"]) == (22.17, 8.14, 13.03, 12.09)
    text = read_preset("massivetext")
    assert [round(100 * entry.weight) for entry in text] == [48, 27, 10, 10, 3, 2]
    with pytest.raises(MixtureError, match="Did you mean 'roots'"):
        read_preset("root")


def test_the_groups_of_roots_are_found() -> None:
    tokens = {
        "oscar.en": 10,
        "catalogue.en": 30,
        "pseudocrawl.en": 10,
        "code.python": 5,
        "catalogue.sw": 1,
        "wiki.zh": 2,
    }
    weights, _ = explicit(tokens, read_preset("roots"), allow_unmatched=True)
    total = (
        0.22171164529099704 + 0.08137213783015229 + 0.13027200903379185 + 0.00031588689199263235 + 0.12091748245519074
    )
    assert weights["oscar.en"] == pytest.approx(0.08137213783015229 / total)
    assert weights["catalogue.en"] == pytest.approx(0.75 * 0.22171164529099704 / total)
    assert weights["catalogue.sw"] == pytest.approx(0.00031588689199263235 / total)


def chosen(tokens: dict[str, int], **rule: object) -> dict[str, float]:
    read: Weights = TypeAdapter(Weights).validate_python(rule)
    return choose_weights(read, tokens)[0]


def test_hierarchical_weights_by_hand() -> None:
    # Sources 0.5 / 0.3 / 0.2; inside web by the square root of 600 and 200 tokens.
    weights = {"web": 0.5, "books": 0.3, "code": 0.2}
    outer, inner = {"rule": "explicit", "weights": weights}, {"rule": "temperature", "alpha": 0.5}
    found = chosen(TOKENS, rule="hierarchical", outer=outer, inner=inner)
    root = math.sqrt(3)
    wanted = {"web.en": 0.5 * root / (1 + root), "web.fr": 0.5 / (1 + root), "books.fr": 0.3, "code.go": 0.2}
    assert found == pytest.approx(wanted)
    # Languages first: en, fr and go are equal, fr is shared 2 : 1 by tokens.
    even = {"rule": "temperature", "alpha": 0}
    found = chosen(TOKENS, rule="hierarchical", first="language", outer=even)
    assert found == pytest.approx({"web.en": 1 / 3, "web.fr": 2 / 9, "books.fr": 1 / 9, "code.go": 1 / 3})
    # One source has a rule of its own; a source may have dots in its name.
    only = {"rule": "explicit", "weights": {"en": 1, "fr": 0}}
    found = chosen(TOKENS, rule="hierarchical", outer=outer, inner=even, inner_of={"web": only})
    assert found == pytest.approx({"web.en": 0.5, "web.fr": 0, "books.fr": 0.3, "code.go": 0.2})
    assert chosen({"a.b.en": 1, "a.c.en": 3}, rule="hierarchical", outer={"rule": "proportional"})["a.c.en"] == 0.75
    # UniMax inside a source has the source's share of the budget: 400 of 800, the 200 of web.fr at most once.
    inner = {"rule": "unimax", "tokens": 800, "max_epochs": 0.5}
    found = chosen(TOKENS, rule="hierarchical", outer=outer, inner=inner)
    assert found["web.fr"] == pytest.approx(0.5 * 100 / 400)


@given(st.dictionaries(st.from_regex(r"[ab]\.[xyz]", fullmatch=True), st.integers(0, 10**9), min_size=1))
def test_hierarchical_by_tokens_is_proportional(tokens: dict[str, int]) -> None:
    if sum(tokens.values()):
        found = chosen(tokens, rule="hierarchical", outer={"rule": "proportional"})
        assert found == pytest.approx(proportional(tokens))


def test_wrong_hierarchies() -> None:
    with pytest.raises(MixtureError, match=r"no group matches wab.*Did you mean 'web'"):
        chosen(TOKENS, rule="hierarchical", outer={"rule": "explicit", "weights": {"wab": 1}})
    with pytest.raises(MixtureError, match="inner_of names 'wab'"):
        chosen(TOKENS, rule="hierarchical", outer={"rule": "proportional"}, inner_of={"wab": {"rule": "proportional"}})
    left_out = {"rule": "explicit", "weights": {"web": 1}, "unmatched": "leave_out"}
    assert chosen(TOKENS, rule="hierarchical", outer=left_out)["code.go"] == 0
