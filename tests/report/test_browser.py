"""The report in a real browser, of an ordinary run and of one whose documents try to break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from roots_pipeline.report import write_report
from tests.browser import CHROMIUM, Page, browser
from tests.report.rendered import assert_stands_alone
from tests.report.synthetic import make_rows, write_corpus, write_everything, write_hostile

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def test_a_whole_run(tab: Page, tmp_path: Path) -> None:
    write_everything(tmp_path)
    assert_stands_alone(tab, Path(write_report(str(tmp_path))), f"Run {tmp_path} · Rootbloom")
    # Every section can be reached with the keyboard, and every chart has a name.
    assert tab.run("[...document.querySelectorAll('nav a')].every((it) => document.querySelector(it.hash))")
    assert tab.run("[...document.querySelectorAll('svg')].every((it) => it.getAttribute('aria-label'))")


def test_hostile_documents(tab: Page, tmp_path: Path) -> None:
    write_hostile(tmp_path)
    assert_stands_alone(tab, Path(write_report(str(tmp_path))), f"Run {tmp_path} · Rootbloom")


def test_right_to_left_text_begins_on_the_right(tab: Page, tmp_path: Path) -> None:
    rows = make_rows(3)
    text = "كتاب قديم على الطاولة."
    rows.append({"id": "ar", "source": "web", "language": "ar", "text": text, "verdict": "word_count"})
    write_corpus(tmp_path, rows)
    path = Path(write_report(str(tmp_path)))
    tab.open(path.as_uri(), f"location.href === {path.as_uri()!r}")
    tab.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    place = tab.run("""(() => {
        const box = document.querySelector('.excerpt[lang=ar]'), range = document.createRange();
        range.selectNodeContents(box);
        const text = range.getBoundingClientRect(), outer = box.getBoundingClientRect();
        return [text.left - outer.left, outer.right - text.right]; })()""")
    assert place[0] > 3 * place[1]
