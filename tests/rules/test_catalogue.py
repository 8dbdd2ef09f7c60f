"""The functions of the catalogue cleaning: golden rows, plain Python on any text, each switch, huge documents."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.catalogue import CATALOGUE_FILTERS, CATALOGUE_MAPS
from roots_pipeline.rules.catalogue_filters import metadata_of
from roots_pipeline.rules.presets import load_data
from roots_pipeline.stage_table import STAGES, make_stage
from tests.rules import roots_twin
from tests.rules.roots_golden import golden, word_lists

FUNCTIONS = {stage.name: stage for stage in (*CATALOGUE_MAPS, *CATALOGUE_FILTERS)}
LISTS = ("remove_lines_with_code", "remove_html_spans", "remove_html_spans_sanad", "remove_wiki_mojibake")
PIECES = [
    "{", "}", "[if", "[IF", "<script", "<SCRIPT", "<span", "</span>", "<spanner", "<div ", "<DIV>", "<a", "<a href",
    "<br>", "<br/>", "<br />", "abr>", "<article>", "</a>", "]]>", "//DW", "var ", "À À", "À", "text", "é", "中", "\n",
    "\n\n", "\r\n", "\u2028", " ", "<", ">", "/",
]  # fmt: skip
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.text(max_size=60))
words = st.lists(st.sampled_from(["the", "The", "the,", "(of)", "and", "zzq", "1", "-", " ", "\t", "\n", "\u3000"]))


def published(name: str, shared: Path | None = None) -> Map:
    """The stage of a name as published."""
    known = {field.name for field in fields(FUNCTIONS[name])}  # type: ignore[arg-type]
    given: dict[str, Any] = {"as_published": True} if "as_published" in known else {}
    if "stop_words" in known and shared is not None:
        given["stop_words"] = word_lists(shared)[0]
    return FUNCTIONS[name](**given)


def new_texts(stage: Map, *given: str) -> list[str]:
    rows = [{"id": str(k), "text": text, "source": "test"} for k, text in enumerate(given)]
    found: list[str] = stage(make_batch(rows)).column("text").to_pylist()
    return found


def verdicts(stage: Map, *given: str, metadata: str | None = None) -> list[str | None]:
    rows = [{"id": str(k), "text": text, "source": "test", "metadata": metadata} for k, text in enumerate(given)]
    found: list[str | None] = stage(make_batch(rows)).column("verdict").to_pylist()
    return found


def test_golden_rows(shared: Path) -> None:
    stages = {name: published(name, shared) for name in FUNCTIONS}
    rows = [row for row in golden(shared, "catalogue") if row["kind"] in ("map", "filter")]
    assert len(rows) == 200
    for row in rows:
        stage = stages[row["function"]]
        if row["kind"] == "map":
            assert new_texts(stage, row["input"]) == [row["output"]], row
        else:
            metadata = json.dumps({"meta": row["meta"]}) if "meta" in row else None
            assert verdicts(stage, row["input"], metadata=metadata) == [None if row["keep"] else row["function"]], row


def test_all_names_are_stages_of_recipes() -> None:
    for name in FUNCTIONS:
        stage = make_stage(name, {})
        assert type(pickle.loads(pickle.dumps(stage))) is STAGES[name]
        assert stage.parameters()["stage"] == name
    ratios = load_data("catalogue")["remove_references"]
    assert {name for name in FUNCTIONS if "references" in name} == {f"remove_references_{code}" for code in ratios}


@settings(max_examples=150, deadline=None)
@given(text=texts)
@example(text="{")
@example(text="a\n{\n")
@example(text="\n{\n{\n\n")
def test_lines_as_in_plain_python(text: str) -> None:
    lines = text.split("\n")
    for name in LISTS:
        strings = load_data("catalogue")[name]
        kept = [line for line in lines if not any(string in line for string in strings)]
        assert new_texts(published(name), text) == ["\n".join(kept)]
    strings = load_data("catalogue")["remove_lines_with_code"]
    kept = [line for line in lines if not any(string in ascii_lower(line) for string in strings)]
    assert new_texts(FUNCTIONS["remove_lines_with_code"](), text) == ["\n".join(kept)]
    tag = re.compile(r"</?(?:span|div|a|br)(?:[\t\r\f />]|$)")
    kept = [line for line in lines if not tag.search(ascii_lower(line))]
    assert new_texts(FUNCTIONS["remove_html_spans"](), text) == ["\n".join(kept)]


def ascii_lower(line: str) -> str:
    return re.sub("[A-Z]+", lambda match: match[0].lower(), line)


def test_case_matters_as_published_only() -> None:
    text = "<SCRIPT>\n[IF IE]\nplain"
    assert new_texts(FUNCTIONS["remove_lines_with_code"](case_matters=True), text) == [text]  # type: ignore[call-arg]
    assert new_texts(FUNCTIONS["remove_lines_with_code"](), text) == ["plain"]


def test_fixed_strings_as_published_only() -> None:
    text = "<article>\nx <abbr>\n<BR>\n<br />\n<a\nplain <i>"
    assert new_texts(FUNCTIONS["remove_html_spans"](fixed_strings=True), text) == [  # type: ignore[call-arg]
        "<BR>\n<br />\nplain <i>"
    ]
    assert new_texts(FUNCTIONS["remove_html_spans"](), text) == ["<article>\nx <abbr>\nplain <i>"]


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.one_of(st.sampled_from(load_data("catalogue")["strip_substrings_en_wiktionary"]), texts)))
def test_notices_as_in_plain_python(parts: list[str]) -> None:
    notices = re.compile("|".join(map(re.escape, load_data("catalogue")["strip_substrings_en_wiktionary"])))
    text = "".join(parts)
    assert new_texts(FUNCTIONS["strip_substrings_en_wiktionary"](), text) == [notices.sub("", text)]


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(words.map("".join), words.map(" ".join), st.text(max_size=50)))
def test_references_as_in_plain_python(text: str) -> None:
    listed = frozenset(roots_twin.built_in_stop_words("en") or ())
    special = "".join(roots_twin.special_characters(False))

    ratio = FUNCTIONS["remove_references_en"]().ratio  # type: ignore[attr-defined]
    assert ratio == 0.1

    def cut(count: Any) -> str:
        lines = text.split("\n")
        prose = [sum(word in listed for word in count(line)) > len(count(line)) * ratio for line in lines]
        return "\n".join(lines[: max([0, *(place + 1 for place, passes in enumerate(prose) if passes)])])

    assert new_texts(published("remove_references_en"), text) == [cut(str.split)]
    shaped = cut(lambda line: [w for word in line.split() if (w := word.lower().strip(special))])
    assert new_texts(FUNCTIONS["remove_references_en"](), text) == [shaped]


def test_words_as_written_as_published_only() -> None:
    text = "The end, of it.\n[1] Zzq, 2001."
    switched = FUNCTIONS["remove_references_en"](words_as_written=True, ratio=0.4)  # type: ignore[call-arg]
    assert new_texts(switched, text) == [""]
    assert new_texts(FUNCTIONS["remove_references_en"](ratio=0.4), text) == ["The end, of it."]  # type: ignore[call-arg]
    chinese = "这是我们的书，也是他的。\n[1] Zzq, 2001."
    assert new_texts(published("remove_references_zh"), chinese) == [""]
    assert new_texts(FUNCTIONS["remove_references_zh"](), chinese) == ["这是我们的书，也是他的。"]


def test_references_need_a_list(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text('{"fr": ["le"]}')
    with pytest.raises(RecipeError, match="no list of stop words for 'en'"):
        FUNCTIONS["remove_references_en"](stop_words=str(path))  # type: ignore[call-arg]
    with pytest.raises(RecipeError, match="ratio"):
        FUNCTIONS["remove_references_fr"](ratio=1.0)  # type: ignore[call-arg]


def test_sentences_come_to_lie_on_lines() -> None:
    given = ["A b. C d! E\n\n f。g。 ", "", " \n ", "no end", "One.\nTwo?\tThree", "Dr. Who (\"said\".) So."]
    wanted = ["A b.\nC d!\nE\nf。\ng。", "", "", "no end", "One.\nTwo?\nThree", "Dr.\nWho (\"said\".)\nSo."]
    for name in ("split_sentences_en", "split_sentences_indic-hi"):
        assert new_texts(FUNCTIONS[name](), *given) == wanted
    assert new_texts(FUNCTIONS["split_sentences_fr"]()) == []


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.one_of(st.text(max_size=40), words.map(". ".join)), max_size=4))
def test_sentences_only_change_white_space(texts: list[str]) -> None:
    out = new_texts(FUNCTIONS["split_sentences_en"](), *texts)
    assert ["".join(text.split()) for text in out] == ["".join(text.split()) for text in texts]
    assert new_texts(FUNCTIONS["split_sentences_en"](), *out) == out


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text("a. 。\n\t", max_size=30), min_size=1, max_size=3))
def test_sentences_of_large_texts_as_of_small_ones(texts: list[str]) -> None:
    split = FUNCTIONS["split_sentences_en"]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roots_pipeline.rules.catalogue_texts._LARGE", 3)
        in_parts = new_texts(split, *texts)
    assert in_parts == new_texts(split, *texts)


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(st.one_of(st.text(" a\t\n\u3000中", max_size=60), st.text(max_size=40)), max_size=4))
def test_filters_as_in_plain_python(texts: list[str]) -> None:
    def check(name: str, keep: Any, **settings: Any) -> None:
        stage = FUNCTIONS[name](**settings)
        assert verdicts(stage, *texts) == [None if keep(text) else name for text in texts]

    check("filter_remove_empty_docs", lambda text: text.strip() != "")
    check("filter_small_docs", lambda text: len(text.split()) >= 15)
    check("filter_small_docs", lambda text: len(text.split(" ")) >= 15, as_published=True)
    check("filter_small_docs", lambda text: len(text.split(" ")) >= 4, count_empty=True, minimum_words=4)
    check("filter_small_docs_bytes_300", lambda text: len(text.encode()) >= 20, minimum_bytes=20)
    check("filter_small_docs_bytes_1024", lambda text: len(text.encode()) >= 1024)


def test_space_only_as_published_only() -> None:
    for title, as_published, mended in (("User:Ann", True, False), ("User talk", False, False), ("Users", True, True)):
        row = json.dumps({"title": title})
        for switch, keep in ((True, as_published), (False, mended)):
            stage = FUNCTIONS["filter_wiki_user_titles"](space_only=switch)  # type: ignore[call-arg]
            assert verdicts(stage, "x", metadata=row) == [None if keep else "filter_wiki_user_titles"]


def test_metadata_in_all_shapes() -> None:
    wanted = {"title": "a", "type": "text"}
    for row in (wanted, {"meta": wanted}, {"meta": str(wanted)}, {"meta": json.dumps(wanted)}, str(wanted)):
        assert metadata_of(json.dumps(row)) == wanted
    for bad in (None, "", "[1]", "null", '{"meta": "__import__(1)"}', '"("', '{"meta": 3}', "(" * 100_000):
        assert metadata_of(bad) == {}
    assert verdicts(FUNCTIONS["filter_wiki_user_titles"](), "x") == [None]
    assert verdicts(FUNCTIONS["filter_wiki_non_text_type"](), "x") == ["filter_wiki_non_text_type"]


def test_an_earlier_verdict_stays() -> None:
    batch = make_batch([{"id": "a", "text": "", "source": "test", "verdict": "earlier"}])
    for stage in CATALOGUE_FILTERS:
        assert stage()(batch).column("verdict").to_pylist() == ["earlier"]


@pytest.mark.parametrize(
    "text", ["x" * 5_000_000, " " * 5_000_000, "{}\n" * 300_000, "the\n" * 1_250_000, "\n" * 5_000_000]
)
def test_giants(text: str) -> None:
    for name in ("remove_lines_with_code", "remove_html_spans", "remove_references_en", "split_sentences_en"):
        (out,) = new_texts(FUNCTIONS[name](), text)
        assert len(out) <= len(text)
    for stage in CATALOGUE_FILTERS[3:]:
        assert verdicts(stage(), text) in ([None], [stage.name])


def test_one_line_of_many_parts() -> None:
    text = "zzq the of " * 200_000 + "\n" + "zzq zzq the " * 200_000
    assert new_texts(FUNCTIONS["remove_references_en"](ratio=0.5), text) == [text.split("\n")[0]]  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("filter_small_docs", {"minimum_words": 0}), ("filter_small_docs_bytes_300", {"minimum_bytes": 0})],
)
def test_settings_that_make_no_sense(name: str, wrong: dict[str, int]) -> None:
    with pytest.raises(RecipeError):
        make_stage(name, wrong)
