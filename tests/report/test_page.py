"""The whole page: its numbers, what it may hold, what it says about missing steps, and hostile text."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest

from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.report import numbers, write_report
from tests.report.strict_html import Page
from tests.report.synthetic import (
    CANARIES,
    MEASURES,
    Row,
    make_rows,
    write_corpus,
    write_everything,
    write_hostile,
    write_mixture,
    write_model,
    write_tokenizer,
)

Whole = tuple[Path, list[Row]]
COMMANDS = {
    "corpus": "python -m roots_pipeline run", "tokenizer": "python -m tokenizer train",
    "mixture": "python -m mixtures write", "model": "python -m train run",
}


def read(run: Path) -> tuple[str, Page]:
    path = write_report(str(run))
    assert path == str(run / "report.html")
    html = Path(path).read_text("utf-8")
    return html, Page(html)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    run = tmp_path_factory.mktemp("whole")
    return run, write_everything(run)


def test_the_funnel_says_what_a_direct_computation_says(whole: Whole) -> None:
    run, rows = whole
    _, page = read(run)
    for caption, column in (("By source", "source"), ("By language", "language")):
        expected = {}
        for name in {row[column] for row in rows}:
            mine = [row for row in rows if row[column] == name]
            kept = [row for row in mine if "verdict" not in row]
            sizes = [sum(len(row["text"].encode()) for row in part) for part in (mine, kept)]
            expected[name] = [
                f"{len(mine):,}", f"{len(kept):,}", numbers.share(len(kept), len(mine)), numbers.size(sizes[0]),
                numbers.size(sizes[1]), numbers.share(sizes[1], sizes[0]), ""]
        assert {row[0]: row[1:] for row in page.tables[caption][2:]} == expected


def test_verdicts_and_overview(whole: Whole) -> None:
    run, rows = whole
    html, page = read(run)
    verdicts = Counter((row["source"], row["verdict"]) for row in rows if "verdict" in row)
    row = r'<span class="verdict"><bdi dir="auto">(.*?)</bdi></span> <span class="number">([\d,]+) document'
    found = re.findall(row, html)
    assert Counter(name for name, _ in found) == Counter(verdict for _, verdict in verdicts)
    assert sorted(int(count) for _, count in found) == sorted(verdicts.values())
    kept = sum("verdict" not in row for row in rows)
    assert f"<dt>documents kept</dt><dd>{kept:,}</dd>" in html
    text = "".join(page.text)
    for said in (f"of {len(rows):,} read", "4,000", "4,096", "245,760 tokens", "The old mill", "stood by the river",
                 "the model uses the context", "temperature (alpha 0.5)", "bad/1.jsonl", "whole file"):
        assert said in text
    assert page.tables["Steps"][1][3] == "12.5 s"
    for measure in MEASURES:
        assert f"Histogram of {measure}: " in html
    assert page.counts["article"] == sum(min(3, count) for count in verdicts.values())


def test_mixture_numbers(whole: Whole) -> None:
    _, page = read(whole[0])
    table = next(rows for rows in page.tables.values() if rows[0][0] == "Group")
    total = sum(count**0.5 for count in (40_000, 20_000, 10_000, 30_000))
    assert table[1] == ["web.en", "400", "40,000", "36,000", "4,000", f"{100 * 200 / total:.2f}%", "",
                        f"{245_760 * 200 / total / 36_000:.2f}"]
    assert [row[0] for row in table[1:]] == ["web.en", "code.python", "web.ar", "web.hi"]


def test_packed_samples_of_unknown_fill_name_the_command(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    write_mixture(run)
    lock = run / "mixture" / "mixture.lock.yaml"
    lock.write_text(lock.read_text("utf-8") + "packing: best_fit\n", "utf-8")
    _, page = read(run)
    table = next(rows for rows in page.tables.values() if rows[0][0] == "Group")
    assert [row[-1] for row in table[1:]] == ["–"] * 4
    text = "".join(page.text)
    assert f"python -m mixtures plan --tokens 90000 --run '{run}'" in text and "Packed samples of 256 tokens" in text


def test_the_page_stands_alone(whole: Whole) -> None:
    html, page = read(whole[0])
    assert html.startswith("<!DOCTYPE html>")
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'" in html
    loads = re.findall(r"https?://[^\"'\s<]*", html)
    assert set(loads) <= {"http://www.w3.org/2000/svg"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    assert page.counts["h1"] == 1 and len(html.encode()) < 3_000_000
    assert html.count('role="img"') == page.counts["svg"]


def test_equal_runs_give_equal_bytes(whole: Whole) -> None:
    assert read(whole[0])[0] == read(whole[0])[0]


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    missing = list(COMMANDS)
    for step, write in (
        ("corpus", lambda: write_corpus(tmp_path, make_rows(50))), ("tokenizer", lambda: write_tokenizer(tmp_path)),
        ("mixture", lambda: write_mixture(tmp_path)), ("model", lambda: write_model(tmp_path, [])),
    ):
        write()
        missing.remove(step)
        html, page = read(tmp_path)
        states = [row[1] for row in page.tables["Steps"][1:]]
        assert states == ["finished"] * (4 - len(missing)) + ["not run"] * len(missing)
        for name, command in COMMANDS.items():
            assert (f"Nothing here yet. Run <code>{command} --run {tmp_path}</code>" in html) == (name in missing)
    assert "no step is in its log yet" in html


def test_later_steps_without_earlier_ones(tmp_path: Path) -> None:
    write_model(tmp_path, [{"step": 1, "samples": 8, "loss": 3.0}], finished=False)
    html, _ = read(tmp_path)
    assert "Training has not finished" in html and "training 3.000" in html


def test_an_unfinished_corpus_of_a_finished_model(whole: Whole, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole[0], run)
    (run / "corpus" / "manifest.json").unlink()
    html, page = read(run)
    assert page.tables["Steps"][1][1] == "unfinished" and "This step was begun but has not finished" in html


def test_stale_steps_are_marked(whole: Whole, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole[0], run)
    write_tokenizer(run, corpus="0" * 30)
    _, page = read(run)
    assert "made from an earlier corpus" in page.tables["Steps"][2][1]
    assert page.tables["Steps"][3][1] == "finished"


def test_an_empty_corpus_and_documents_without_measures(tmp_path: Path) -> None:
    write_corpus(tmp_path, [])
    html, page = read(tmp_path)
    assert "No document has a value of" in html and "svg" not in page.counts
    write_corpus(tmp_path, [{"id": "1", "source": "code", "text": "x = 1\n"}])
    html, page = read(tmp_path)
    assert "Every document was kept (1)" in html and "unknown" in page.tables["By language"][2][0]


def break_manifest(run: Path, **changes: Any) -> None:
    path = run / "corpus" / "manifest.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), **changes}))


def overwrite(path: Path, start: int, length: int) -> None:
    data = bytearray(path.read_bytes())
    start %= len(data)
    data[start : start + length] = b"\xff" * length
    path.write_bytes(data)


@pytest.mark.parametrize(("damage", "message"), [
    (lambda run: shutil.rmtree(run), "no such run folder"),
    (lambda run: shutil.rmtree(run / "corpus"), "no step has been run"),
    (lambda run: (run / "corpus" / "manifest.json").unlink(), "corpus was begun but has not finished"),
    (lambda run: break_manifest(run, format=2), "format 2, this version reads format 1"),
    (lambda run: (run / "corpus" / "manifest.json").write_bytes(b"{"), "not valid JSON"),
    (lambda run: (run / "corpus" / "manifest.json").write_bytes(b'{"format": 1}'), "does not have the keys"),
    (lambda run: break_manifest(run, surprise=1), "does not have the keys"),
    (lambda run: break_manifest(run, counts={"read": 3}), "does not hold what this version"),
    (lambda run: break_manifest(run, counts={"by_source_language_verdict": [["web", "en"]]}), "does not hold"),
    (lambda run: (run / "corpus" / "rejected" / "all-00000.parquet").unlink(), "is missing"),
    (lambda run: (run / "corpus" / "quarantine" / "bad.parquet").write_bytes(b"PAR1 no"), "does not hold what this"),
    (lambda run: overwrite(run / "corpus" / "rejected" / "all-00000.parquet", 4, 400), "does not hold what this"),
    (lambda run: overwrite(run / "corpus" / "documents" / "all-00000.parquet", -200, 150), "does not hold what this"),
])
def test_a_damaged_run_gives_one_sentence(tmp_path: Path, damage: Any, message: str) -> None:
    write_corpus(tmp_path, make_rows(20))
    damage(tmp_path)
    with pytest.raises(RootbloomError, match=message) as caught:
        write_report(str(tmp_path))
    assert "\n" not in str(caught.value) and not (tmp_path / "report.html").exists()


def test_a_run_in_an_object_store(whole: Whole) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(whole[0]), "/store/run", recursive=True)
    assert write_report("memory://store/run") == "memory://store/run/report.html"
    page = store.cat("/store/run/report.html").decode()
    local = Path(write_report(str(whole[0]))).read_text("utf-8")
    assert page == local.replace(str(whole[0]), "memory://store/run")


def test_a_newer_lock_and_a_broken_one(tmp_path: Path) -> None:
    write_mixture(tmp_path)
    lock = tmp_path / "mixture" / "mixture.lock.yaml"
    for content, message in (("format: 2", "format 2"), ("a: [", "not valid YAML"), ("format: 1", "does not hold")):
        lock.write_text(content)
        with pytest.raises(StaleDataError, match=message):
            write_report(str(tmp_path))
    lock.unlink()
    with pytest.raises(StaleDataError, match="missing"):
        write_report(str(tmp_path))


def test_hostile_text_cannot_run_break_or_bloat_the_page(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    html, page = read(tmp_path)  # the strict reader refuses scripts, handlers, other elements and foreign links
    assert len(html.encode()) < 500_000
    assert max(map(len, html.split("\n"))) < 40_000
    text = "".join(page.text)
    for shown in CANARIES[:6]:
        assert shown in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", html)
    assert "U+202E" in text and "␛" in text


def test_surrogates_of_a_yaml_lock_are_shown_not_written(tmp_path: Path) -> None:
    write_mixture(tmp_path)
    lock = tmp_path / "mixture" / "mixture.lock.yaml"
    lock.write_text(lock.read_text("utf-8").replace("web.en:", '"web.\\uD800":'), "utf-8")
    _, page = read(tmp_path)
    assert "web.⟨U+D800⟩" in "".join(page.text)


def test_many_languages_fold_into_one_row(tmp_path: Path) -> None:
    row = {"id": "1", "source": "web"}
    write_corpus(tmp_path, [{**row, "language": f"l{size}", "text": "x" * size} for size in range(1, 451)])
    _, page = read(tmp_path)
    rows = page.tables["By language"][2:]
    assert len(rows) == 201 and rows[-1][:3] == ["250 others", "250", "250"]


def test_many_sources_with_many_verdicts_stay_small(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"id": f"{source}-{number}", "source": f"s{source}", "text": "lorem ipsum " * 200, "verdict": f"v{number % 50}"}
        for source in range(70) for number in range(50 + source)
    ]
    write_corpus(tmp_path, rows, per_file=5000, per_group=1000)
    html, page = read(tmp_path)
    assert page.counts["h3"] == 60 and page.counts["details"] == 60 * 40 + 1 and len(html.encode()) < 2_000_000
    assert html.count("drawn for the most frequent verdicts only") == 60 * 40 - 150
    assert html.index("s69</bdi></h3>") < html.index("s68</bdi></h3>")
    assert "Sources with fewer rejected documents are left out" in html


def test_many_groups_and_many_languages_of_a_tokenizer(tmp_path: Path) -> None:
    write_mixture(tmp_path, {f"web.l{number}": 1000 + number for number in range(300)})
    write_tokenizer(tmp_path, bytes_per_token={f"l{number}": 1 + number / 100 for number in range(300)})
    _, page = read(tmp_path)
    assert "in 300 groups, of which the heaviest 200 are shown" in "".join(page.text)
    table = page.tables["Bytes of text per token, the highest 200 of 300 languages"]
    assert table[1][:2] == ["l299", "3.99"] and len(table) == 201
