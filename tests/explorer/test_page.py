"""The page in a real browser: no console message, no foreign request, no script of a document; sliders move counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roots_pipeline.explorer.server import Explorer
from tests.browser import CHROMIUM, Page, browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def page(served: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        tab.open(served, "document.querySelectorAll('#documents li').length")
        yield tab


def cell(page: Page, name: str) -> int:
    found = f"[...document.querySelectorAll('#counts tr')].find((row) => row.cells[0].textContent === '{name}')"
    return int(page.run(f"{found}.cells[1].textContent").replace(",", ""))


@contextmanager
def counted(page: Page) -> Iterator[None]:
    """Waits for the counts that follow from what is done inside."""
    before = page.run("document.body.dataset.judged")
    yield
    page.wait(f"document.body.dataset.judged !== '{before}'")


def test_sliders_move_the_counts_to_what_is_computed_directly(page: Page, explorer: Explorer) -> None:
    with counted(page):
        page.enter("measure", "word_count")
    assert cell(page, "newly dropped") == 0
    with counted(page):
        page.enter("low-slider", "700", "input")
    page.wait("document.getElementById('low').value > 0")
    low = float(page.run("document.getElementById('low').value"))
    table, passed = explorer.table.table, explorer.judge.judge(0).passes
    rows = zip(passed, table.column("word_count").to_pylist(), table.column("language").to_pylist(), strict=True)
    fell = sum(1 for passes, words, language in rows if passes and words < low and language != "fr")
    assert fell > 0 and cell(page, "newly dropped") == fell
    page.wait("document.querySelector('#documents .about')")
    with counted(page):
        page.click("undo")
    assert cell(page, "newly dropped") == 0


def test_no_script_of_a_document_runs_and_nothing_else_is_loaded(page: Page, served: str) -> None:
    with counted(page):
        page.enter("language", "en")
    page.enter("which", "dropped")
    shown = 0
    items = "[...document.querySelectorAll('#documents li')]"
    for _ in range(12):
        page.click("draw")
        page.wait(f"{items}.length")
        shown += page.run(f"{items}.filter((it) => it.textContent.includes('hostile')).length")
    assert shown > 0
    page.enter("text", "<img src=x onerror=\"document.title='canary'\"><script>document.title = 'canary'</script>" * 9)
    page.click("ask")
    page.wait("document.querySelector('#pasted table')")
    page.click("export")
    page.wait("!document.getElementById('recipe').hidden")
    assert "stage: thresholds" in page.run("document.getElementById('recipe').textContent")
    assert page.run("document.title") == "Rootbloom explorer"
    assert page.run("document.querySelectorAll('main img, main script, main iframe').length") == 0
    assert page.trouble == []
    assert [url for url in page.requests if not url.startswith((served, "data:,", "blob:"))] == []


def test_every_control_has_a_name_and_errors_are_shown(page: Page) -> None:
    controls = "[...document.querySelectorAll('main select, main input, main textarea')]"
    assert page.run(f"{controls}.every((it) => it.labels.length > 0 || it.ariaLabel)")
    page.enter("text", "a" * 1_000_001)
    page.click("ask")
    page.wait("!document.getElementById('error').hidden")
    assert "1,000,000" in page.run("document.getElementById('error').textContent")


def test_the_page_fits_a_telephone(page: Page, tmp_path: Path) -> None:
    for name, width, dark in (("desktop", 1200, False), ("telephone", 390, True)):
        page.screen(tmp_path / f"{name}.png", width, 900, dark=dark)
        wide = f"[...document.querySelectorAll('*')].filter((it) => it.getBoundingClientRect().right > {width})"
        assert page.run("document.documentElement.scrollWidth") <= width, page.run(
            f"{wide}.map((it) => it.outerHTML.slice(0, 200))")
