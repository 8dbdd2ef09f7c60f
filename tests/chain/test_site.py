"""The guides as a web site: built strictly, complete, and nothing in it is loaded from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, browser


def build(docs: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(target.parent / "doctrees"),
               str(docs), str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("docs") / "site"
    done = build(project / "docs", target)
    assert done.returncode == 0, done.stderr
    return target


def test_every_guide_is_a_page_that_the_contents_lead_to(project: Path, site: Path) -> None:
    first = (site / "index.html").read_text("utf-8")
    for guide in (project / "docs").glob("*.md"):
        if guide.stem != "index":
            assert (site / f"{guide.stem}.html").exists()
            linked = f'<a class="reference internal" href="{guide.stem}.html">' in first
            assert linked, f"docs/index.md has no link to {guide.name}"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]* src=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link rel=\"(?:stylesheet|icon|preconnect|preload)\"[^>]* href=\"([^\"]+)\"", text)
        assert loaded and not [url for url in loaded if re.match(r"(?:\w+:)?//", url)]
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text("utf-8"))


@pytest.mark.parametrize("mistake", ["[page](missing.md)", "[heading](rules.md#no-such-heading)"])
def test_a_link_that_leads_nowhere_fails(project: Path, tmp_path: Path, mistake: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_bytes((project / "docs" / "conf.py").read_bytes())
    (docs / "recipe.schema.json").write_text("{}")
    (docs / "index.md").write_text(f"# Index\n\n## Part\n\n- [Rules](rules.md)\n\n{mistake}\n")
    (docs / "rules.md").write_text("# Rules\n\n## One\n")
    done = build(docs, tmp_path / "site")
    assert done.returncode != 0 and "WARNING" in done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_without_a_network_shows_it(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.open((site / "rules.html").as_uri())
        assert not page.trouble
        assert page.requests and all(url.startswith(("file:", "data:")) for url in page.requests)
        assert page.run("getComputedStyle(document.querySelector('.sidebar-drawer')).display") != "inline"
