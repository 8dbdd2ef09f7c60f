"""What every page that Rootbloom writes must do in a real browser: stand alone, stay quiet, fit the screen."""

from __future__ import annotations

from pathlib import Path

from tests.browser import Page

# Boxes scroll by themselves; nothing else may be wider than the screen.
_WIDER = """[...document.querySelectorAll('main *, header *, footer *')].filter((it) => !it.closest('.box, svg, nav')
    && it.getBoundingClientRect().right > innerWidth + 1).map((it) => it.outerHTML.slice(0, 200))"""


def assert_stands_alone(tab: Page, path: Path, title: str) -> None:
    """Open a file: no request but for itself, no message, no script, no wider than a telephone or a desk screen."""
    tab.requests.clear()
    tab.trouble.clear()
    tab.open(path.as_uri(), f"document.readyState === 'complete' && location.href === {path.as_uri()!r}")
    # All folds open, or what is in them is never laid out.
    tab.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    for width in (390, 1200):
        for dark in (False, True):
            tab.size(width, 900, dark=dark)
            assert tab.run("document.documentElement.scrollWidth") <= width
            assert tab.run(_WIDER) == []
    paper = tab.run("getComputedStyle(document.body).backgroundColor")
    tab.size(1200, 900)
    assert tab.run("getComputedStyle(document.body).backgroundColor") != paper  # dark and light differ
    assert tab.run("document.title") == title
    assert tab.run("document.querySelectorAll('script, img, iframe, object, form').length") == 0
    assert tab.trouble == []
    assert [url for url in tab.requests if not url.startswith(("data:,", path.as_uri()))] == []
