"""A strict reader of our own page: every element closed in order, nothing that loads, runs or navigates away."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "br"}
ELEMENTS = {
    "html", "head", "meta", "title", "link", "style", "body", "header", "nav", "main", "footer", "section", "article",
    "div", "p", "span", "a", "ul", "li", "h1", "h2", "h3", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "code", "bdi", "b", "i", "details", "summary", "figure", "figcaption", "svg", "g", "line", "rect",
    "text", "polyline", "polygon", "circle", "del",
}
LOADING = ("src", "srcset", "srcdoc", "action", "background")


class Page(HTMLParser):
    """Text of the page, its ids, and the rows of its tables by caption; asserts on the way."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.counts: dict[str, int] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self._open: list[str] = []
        self._caption: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        self.counts[tag] = self.counts.get(tag, 0) + 1
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        for name, value in attrs:
            assert not name.startswith("on") and name not in LOADING, (tag, name)
            assert value is not None, (tag, name)
            if name == "style":
                assert re.fullmatch(r"width:\d+\.\d\d%", value), value
            elif name == "href":
                assert re.fullmatch(r"#[a-z-]+|data:,|[a-z]+/", value), value
                self.links.append(value)
            elif name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
            elif name not in ("content", "xmlns"):
                assert "://" not in value or name == "aria-label", (tag, name, value)
        if tag == "table":
            self._rows, self._caption = [], []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("th", "td") and self._rows:
            self._rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, tag
        if tag == "table":
            self.tables["".join(self._caption)] = self._rows

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            assert "url(" not in data and "@import" not in data
            return
        self.text.append(data)
        if "caption" in self._open:
            self._caption.append(data)
        elif {"td", "th"} & set(self._open):
            self._rows[-1][-1] += data
