"""The stage: whole, partial and short items, what is common, actions, settings, fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import SourceError, StaleDataError
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.index import Matching
from roots_pipeline.decontamination.indexing import load_index
from roots_pipeline.decontamination.stage import Decontaminate
from tests.decontamination import twins
from tests.decontamination.corpora import judge, make_stage, write_set

QUESTION = (
    "A beekeeper fills fourteen crates with jars of honey and each crate holds two dozen jars but on the way to market "
    "the cart hits a stone and sixteen jars break so how many jars are left"
)
FILLER = "Rain fell on the hills all night and nobody went out before the bells had rung twice in the valley. "
LICENCE = "this file may be copied changed and shared by anyone for any purpose without asking first nor any promise "


def test_an_item_is_found_whatever_its_layout(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION, "another item " * 3 + LICENCE]})
    broken = "\n".join(f"* {part.upper()} ..." for part in QUESTION.split(" and "))
    broken = broken.replace("EACH", "and each").replace("SIXTEEN", "and sixteen")
    outcome = judge(stage, [FILLER + QUESTION, FILLER + broken, FILLER[:60], ""])
    assert outcome.dropped() == {"0": "honey/0", "1": "honey/0"}
    assert [row["contamination_overlap"] for row in outcome.rows] == [1.0, 1.0, 0.0, 0.0]
    assert outcome.rows[0]["contamination_items"] == ["honey/0"]
    assert outcome.rows[0]["verdict"] == "contaminated"


def test_half_an_item_is_enough_and_a_third_is_not(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION]})
    words = QUESTION.split()
    half, third = " ".join(words[: len(words) // 2 + 1]), " ".join(words[: len(words) // 3 + 1])
    assert len(third.split()) >= 13
    outcome = judge(stage, [FILLER + half, FILLER + third])
    assert outcome.kept() == {"1"}
    assert 0.3 < outcome.rows[1]["contamination_overlap"] < 0.4


def test_one_changed_word_costs_a_word_and_not_thirteen_ngrams(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION]})
    words = QUESTION.split()
    words[16] = "fetches"
    outcome = judge(stage, [" ".join(words)])
    assert outcome.rows[0]["contamination_overlap"] == pytest.approx(1 - 1 / len(words))


def test_a_long_passage_of_a_much_longer_item_is_enough(tmp_path: Path) -> None:
    article = " ".join(f"word{number}" for number in range(1000))
    stage = make_stage(tmp_path, {"articles": [article]})
    part = " ".join(f"word{number}" for number in range(300, 350))
    outcome = judge(stage, [FILLER + part, FILLER + part.removesuffix(" word349")])
    assert outcome.kept() == {"1"}
    assert judge(make_stage(tmp_path, {"articles": [article]}, long_match=0), [FILLER + part]).kept() == {"0"}


def test_instructions_in_many_items_do_not_convict(tmp_path: Path) -> None:
    instruction = "Read the passage carefully and then answer the question below in one short sentence of your own. "
    items = [f"{instruction} What did the {name} do after that?" for name in
             ("miller", "baker", "farmer", "smith", "sailor", "tailor", "mason", "painter", "fisher", "hunter", "cook")]
    stage = make_stage(tmp_path, {"reading": items})
    outcome = judge(stage, [FILLER + instruction, FILLER + items[3]])
    assert outcome.dropped() == {"1": "reading/3"}
    assert outcome.rows[0]["contamination_overlap"] == 0.0
    few = make_stage(tmp_path, {"reading": items[:5]})  # worth a fifth for each
    assert judge(few, [FILLER + instruction]).kept() == {"0"}


def test_what_many_documents_quote_does_not_convict(tmp_path: Path) -> None:
    item = f"{LICENCE} def ferry(weights, limit): cars wait and board the boat in order of arrival"
    quoting = [f"{FILLER} {LICENCE} program number {number} is mine" for number in range(11)]
    stage = make_stage(tmp_path, {"code": [item]}, threshold=0.4)
    assert judge(stage, quoting[:10]).kept() == set()  # ten documents are not yet many
    outcome = judge(stage, quoting)
    assert len(outcome.kept()) == 11
    assert {row["contamination_overlap"] for row in outcome.rows} == {0.0}
    # The item as a whole, and what is its own, still convict.
    outcome = judge(stage, [*quoting, item, FILLER + item.removeprefix(LICENCE)])
    assert outcome.dropped() == {"11": "code/0", "12": "code/0"}
    assert len(judge(make_stage(tmp_path, {"code": [item]}, threshold=0.4, common_documents=0), quoting).kept()) == 0


def test_common_words_leave_at_least_half_of_the_total(tmp_path: Path) -> None:
    common, own = [f"common{number}" for number in range(40)], [f"own{number}" for number in range(14)]
    stage = make_stage(tmp_path, {"s": [" ".join(common + own)]}, long_match=0)
    outcome = judge(stage, [" ".join(own), *(f"{number} {' '.join(common)}" for number in range(11))])
    # N-grams that begin in the first 28 words are common; the others cover 26 of 54 words, of which 27 are kept.
    assert outcome.rows[0]["contamination_overlap"] == pytest.approx(14 / 27)
    assert outcome.rows[1]["contamination_overlap"] == pytest.approx(0.0)


def test_an_item_that_leaked_everywhere_is_not_taken_for_common(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION]})
    assert judge(stage, [f"{number} {QUESTION}" for number in range(50)]).kept() == set()


def test_short_items(tmp_path: Path) -> None:
    items = {
        "short": ["What is the capital of the northern province?", "Where do herons sleep?", "Name three large rivers",
                  "no no no no no no no no no no", "12 13 14 15 16 17 18 19 20 21", "Why?"],
    }
    stage = make_stage(tmp_path, items)
    assert stage.index.tallies[0] == ("short", 6, 0, 0, 1, 5, 0)
    stage = make_stage(tmp_path, {"short": [*items["short"], "Heron colonies sleep standing"]})
    outcome = judge(stage, [
        "and so what is the capital of the northern province of that land",  # eight words: anywhere
        "He said:\nheron colonies sleep standing. Really.",  # four words: between borders
        "he said that heron colonies sleep standing. Really.",
        "He said: heron colonies sleep standing up.",
        "Heron colonies, sleep standing",  # edges of the text
        "what is the capital of the northern",
        "12 13 14 15 16 17 18 19 20 21",
    ])
    assert outcome.dropped() == {"0": "short/0", "1": "short/6", "4": "short/6"}


def test_short_phrases_that_many_documents_have_do_not_convict(tmp_path: Path) -> None:
    phrase = "Thank you very much for your interest in this"
    stage = make_stage(tmp_path, {"phrases": [phrase]})
    texts = [f"{FILLER}\n{phrase}\n{number}" for number in range(11)]
    assert len(judge(stage, texts[:10]).kept()) == 0
    assert len(judge(stage, texts).kept()) == 11
    assert len(judge(stage, texts, batch_rows=2, shards=3).kept()) == 11


def test_scripts_without_spaces(tmp_path: Path) -> None:
    item = "蜂农把蜂蜜装满十四个木箱，每箱二十四瓶。去集市的路上，车撞到石头，碎了十六瓶。还剩多少瓶？"
    short = "北方省份的首府是哪座城市？"
    stage = make_stage(tmp_path, {"zh": [item, short]})
    assert stage.index.tallies[0] == ("zh", 2, 0, 1, 1, 0, 0)
    texts = ["昨天" + item.replace("，", "\n") + "完", "请问" + short, "北方省份的首府是那座城市", item[:15]]
    outcome = judge(stage, texts)
    assert outcome.dropped() == {"0": "zh/0", "1": "zh/1"}


def test_the_cause_is_the_item_most_of_which_is_there(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(40)]
    items = [" ".join(words[:20]), " ".join(words), " ".join([*words, *(f"more{number}" for number in range(30))])]
    outcome = judge(make_stage(tmp_path, {"b": items, "a": items}), [" ".join(words)])
    assert outcome.rows[0]["contamination_items"] == ["b/1", "a/1", "b/0", "a/0"]
    assert outcome.rows[0]["cause"] == "b/1"


def test_cut_takes_out_the_item_and_drops_what_is_left_too_short(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION]}, action="cut", shortest_rest=30)
    long = f"{FILLER}«{QUESTION.upper()}?»\n{FILLER}é 你好"
    outcome = judge(stage, [long, FILLER + QUESTION, FILLER])
    assert outcome.rows[0]["text"] == f"{FILLER}«\n{FILLER}é 你好"
    assert outcome.rows[0]["verdict"] is None
    assert outcome.rows[0]["contamination_items"] == ["honey/0"]
    assert outcome.dropped() == {"1": "honey/0"}
    assert outcome.rows[1]["text"] == FILLER + QUESTION
    assert outcome.rows[2]["text"] == FILLER


def test_report_changes_nothing_but_measures(tmp_path: Path) -> None:
    outcome = judge(make_stage(tmp_path, {"honey": [QUESTION]}, action="report"), [FILLER + QUESTION])
    assert outcome.kept() == {"0"}
    assert outcome.rows[0]["contamination_overlap"] == 1.0
    assert outcome.rows[0]["contamination_items"] == ["honey/0"]


def test_documents_that_have_a_verdict_are_left_alone(tmp_path: Path) -> None:
    from tests.dedup.driver import run

    stage = make_stage(tmp_path, {"honey": [QUESTION]})
    rows = [{"id": "a", "text": QUESTION, "source": "s", "verdict": "near_duplicates", "cause": "b"},
            {"id": "b", "text": QUESTION, "source": "s"}]
    outcome = run(stage, rows)
    assert outcome.dropped() == {"a": "b", "b": "honey/0"}
    assert outcome.rows[0]["contamination_items"] is None


def test_jaccard_is_that_of_sets_of_ngrams(tmp_path: Path) -> None:
    base = [f"w{number}" for number in range(60)]
    variants = [base, base[:-4], [*base, *(f"x{number}" for number in range(40))], [*base, *base], base[:12],
                ["tiny", "document"]]
    texts = [" ".join(words) for words in variants]
    items = [texts[0], "Tiny document!", texts[0].replace("w30", "v30")]
    outcome = judge(make_stage(tmp_path, {"s": items}, rule="jaccard"), texts)

    def grams(text: str) -> set[tuple[str, ...]]:
        words = [word.text for word in twins.words_of(text)]
        return set(twins.grams_of(words, 13)) or {tuple(words)}

    for row, text in zip(outcome.rows, texts, strict=True):
        similar = [len(grams(text) & grams(item)) / len(grams(text) | grams(item)) for item in items]
        assert row["contamination_overlap"] == pytest.approx(max(similar))
        assert row["cause"] == (f"s/{similar.index(max(similar))}" if max(similar) > 0.8 else None)
    assert outcome.dropped() == {"0": "s/0", "1": "s/0", "5": "s/1"}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("abc", max_size=12), min_size=1, max_size=4), st.lists(st.text("abc", max_size=14), max_size=6),
       st.integers(2, 4), st.sampled_from([0.0, 0.3, 0.8, 1.0]))
def test_jaccard_is_that_of_brute_force(
    tmp_path: Path, items: list[str], texts: list[str], ngram: int, threshold: float
) -> None:
    def grams(text: str) -> set[str]:
        return {text[at : at + ngram] for at in range(len(text) - ngram + 1)} or ({text} if text else set())

    items = [*dict.fromkeys(items), "cab"]  # letters stand for words
    stage = make_stage(tmp_path, {"s": [" ".join(item) for item in items]}, rule="jaccard", ngram=ngram,
                       threshold=threshold)
    rows = judge(stage, [" ".join(text) for text in texts], shards=2).rows
    for text, row in zip(texts, rows, strict=True):
        similar = [len(grams(text) & grams(item)) / max(1, len(grams(text) | grams(item))) for item in items]
        assert row["contamination_overlap"] == pytest.approx(max(similar))
        assert (row["verdict"] is not None) == (max(similar) > threshold)
        if row["verdict"] is not None:
            assert similar[int(row["cause"].partition("/")[2])] == max(similar)


LONG_WORDS = ["ampersand", "buttercup", "cathedral", "dragonfly", "elaborate", "featherly", "你", "好", "世", "界"]
GAPS = [" ", " ", " ", "\n", ", ", ". "]
PIECES = st.lists(st.tuples(st.sampled_from(LONG_WORDS), st.sampled_from(GAPS)), max_size=14)
Case = tuple[dict[str, list[str]], list[str], dict[str, Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Sets, documents and settings; documents are made of parts of items and of other words."""
    def text(pieces: list[tuple[str, str]]) -> str:
        return "".join(word + gap for word, gap in pieces)

    items = draw(st.lists(PIECES, min_size=1, max_size=4))
    longer = st.sampled_from(items).flatmap(lambda item: PIECES.map(lambda more: item + more))
    items += draw(st.lists(longer, max_size=3))
    split = draw(st.integers(1, len(items)))
    slices = st.sampled_from(items).flatmap(
        lambda item: st.tuples(st.integers(0, len(item)), st.integers(0, len(item))).map(
            lambda ends: item[min(ends) : max(ends)]))
    parts = st.lists(st.one_of(slices, PIECES.map(lambda own: own[:3]), st.sampled_from(items)), max_size=4)
    documents = draw(st.lists(parts.map(lambda found: "".join(map(text, found))), min_size=1, max_size=6))
    sets = {"one": [text(item) for item in items[:split]], "two": [text(item) for item in items[split:]] or ["nothing"]}
    own = {
        "ngram": draw(st.integers(4, 6)), "threshold": draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        "long_match": draw(st.sampled_from([0.0, 6.0, 9.0])), "common_items": draw(st.integers(1, 3)),
        "common_documents": draw(st.integers(0, 3)), "short_minimum": draw(st.sampled_from([1.0, 2.0, 3.0])),
        "short_anywhere": draw(st.sampled_from([0.0, 3.0, 4.0, 9.0])),
        "anywhere_characters": draw(st.sampled_from([0, 30, 36])),
    }
    return sets, documents, own


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(), shards=st.integers(1, 3), partitions=st.integers(1, 3), seed=st.integers(0, 9))
def test_the_stage_is_its_twin(
    tmp_path: Path, case: Case, shards: int, partitions: int, seed: int
) -> None:
    sets, texts, own = case
    named = [(name, [(str(k), text) for k, text in enumerate(items)]) for name, items in sets.items()]
    expected = twins.decontaminate(named, texts, twins.Settings(**own))
    findable = {item.name.partition("/")[0] for item in twins.index_of(named, twins.Settings(**own))}
    if findable != set(sets):
        return  # a set of which nothing can be looked for is an error
    outcome = judge(make_stage(tmp_path, sets, **own), texts, shards=shards, partitions=partitions, seed=seed,
                    batch_rows=2)
    for row, wanted in zip(outcome.rows, expected, strict=True):
        assert row["contamination_overlap"] == pytest.approx(wanted.overlap, abs=1e-5)
        assert (row["contamination_items"] or []) == wanted.items
        assert row["cause"] == (wanted.items[0] if wanted.items else None)


def test_shards_partitions_and_order_change_nothing(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION, LICENCE + FILLER]})
    texts = [f"{number} {part} {FILLER}" for number in range(40) for part in (QUESTION, QUESTION[:100], LICENCE, "")]
    first = judge(stage, texts)
    for shards, partitions, seed in ((3, 5, 1), (7, 2, 2), (1, 1, 3)):
        assert judge(stage, texts, shards=shards, partitions=partitions, seed=seed, batch_rows=9).rows == first.rows


def test_phrases_of_the_whole_web_send_one_entry_a_batch(tmp_path: Path) -> None:
    line = "Every single page has this line in it"
    stage = make_stage(tmp_path, {"honey": [f"{QUESTION} {LICENCE} {FILLER}"], "short": [line]})
    outcome = judge(stage, [f"{LICENCE[:76]}\n{line}\n{number}" for number in range(1000)])
    assert outcome.entries[0].column("documents").to_pylist() == [1000, 1000]


def test_the_fingerprint_covers_the_content_of_the_files(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, {"honey": [QUESTION]})
    before, planned = stage.parameters(), stage.rounds()[0]
    assert stage.parameters() == before == planned.parameters()
    write_set(tmp_path, "honey", [{"id": "0", "text": QUESTION.replace("honey", "jelly")}])  # same size
    after = stage.parameters()
    assert after["content"] != before["content"]
    assert {**after, "content": ""} == {**before, "content": ""}
    assert isinstance(planned, Decontaminate)
    assert planned.parameters() == before
    with pytest.raises(StaleDataError, match="changed since this run was planned"):
        load_index(planned.evaluations, Matching(ngram=12), planned.content)


def test_a_missing_path_is_an_error_when_the_run_is_planned(tmp_path: Path) -> None:
    write_set(tmp_path, "honey", [{"id": "0", "text": QUESTION}])
    stage = Decontaminate((Evaluation("honey", str(tmp_path / "hony.jsonl")),))
    with pytest.raises(SourceError, match=r"does not exist.*honey\.jsonl"):
        stage.rounds()


@pytest.mark.parametrize(("texts", "message"), [
    (["Why?", "12 13 14 15 16 17 18 19 20 21 22 23 24 25"], "1 are too short, every n-gram of 1 is common"),
    ([""], "is empty"),
])
def test_a_set_that_can_find_nothing_is_an_error(tmp_path: Path, texts: list[str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        judge(make_stage(tmp_path, {"honey": [QUESTION], "nothing": texts}), [FILLER])


@pytest.mark.parametrize(("change", "message"), [
    ({"evaluations": ()}, "no evaluation set"),
    ({"threshold": 1.5}, "threshold 1.5"),
    ({"ngram": 1}, "ngram must be at least 2"),
    ({"common_items": 0}, "common_items must be at least 1"),
    ({"common_documents": -1}, "common_documents must not be negative"),
    ({"rule": "jaccard", "action": "cut"}, "nothing can be cut"),
])
def test_impossible_settings(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Decontaminate(**{"evaluations": (Evaluation("a", "a.jsonl"),), **change})


def test_no_index_is_built_to_plan_a_run(tmp_path: Path) -> None:
    scan = make_stage(tmp_path, {"set": ["short"]}).prepare()
    assert set(scan.gives) <= set(scan(make_batch([])).schema.names)
    with pytest.raises(SourceError, match="can be looked for"):  # what building one says of this set
        scan(make_batch([{"text": "some text"}]))


def test_names_of_sets() -> None:
    with pytest.raises(ValueError, match="two evaluation sets are called 'a'"):
        Decontaminate((Evaluation("a", "a"), Evaluation("a", "b")))
    with pytest.raises(ValueError, match="'a/b' cannot name"):
        Evaluation("a/b", "x")
    with pytest.raises(ValueError, match="names no field"):
        Evaluation("a", "x", fields=())
