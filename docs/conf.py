"""Sphinx: `make site` builds these guides to build/site, for a browser without a network.

In: the Markdown files of this folder, which stay plain (they read the same on any code host). Out: HTML with styles and
search of its own; nothing is loaded from elsewhere. The order of the pages is that of the links in index.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

project = "Rootbloom"
author = "The Rootbloom authors"
extensions = ["myst_parser"]
exclude_patterns: list[str] = []
nitpicky = True
myst_heading_anchors = 3
html_theme = "furo"
html_extra_path = ["recipe.schema.json"]  # where editors may fetch it from
html_title = "Rootbloom"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"source_view_link": "", "top_of_page_buttons": []}
FOLDER = Path(__file__).parent


def contents(index: str) -> str:
    """The tables of contents that Sphinx wants, one for each heading of index.md with links to pages."""
    tables = []
    for section in index.split("\n## ")[1:]:
        pages = re.findall(r"^- \[[^]]+\]\(([a-z-]+)\.md\)", section, re.MULTILINE)
        caption = section.partition("\n")[0]
        tables.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"]))
    return "\n\n".join(tables)


def add_contents(_app: Any, name: str, source: list[str]) -> None:
    if name == "index":
        source[0] += "\n" + contents(source[0])


def setup(app: Any) -> None:
    app.connect("source-read", add_contents)
