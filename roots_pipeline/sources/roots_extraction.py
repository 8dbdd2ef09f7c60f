"""The text of a web page as ROOTS took it from its pseudo-crawl: everything but a few kinds of sub-tree.

Published in ROOTS section 2.1 and appendix B.1; where the paper is silent, this follows what the published
program does (data-preparation repository, `sourcing/cc_pseudo_crawl`, with the parser of the
`metadata` repository): which tags end a line, where a removed element's following text goes, that nested
single `div`s count as one, that conditional comments count as text. In: a page as a string. Out: its text;
empty if the page has no body.

Lines that recur on the pages of a domain were removed afterwards; that is a stage of its own.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree, html

# Removed with all they hold, whatever their length.
_REMOVED = frozenset(("script", "style", "header", "iframe", "footer", "form"))
# Removed with all they hold if that is short. The paper says "less than 64", the program removes 64 too.
_REMOVED_IF_SHORT = frozenset(("body", "div", "p", "section", "table", "ul", "ol", "dl"))
_SHORT = 64
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "button", "canvas", "caption", "col", "colgroup", "dd",
    "div", "dl", "dt", "embed", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hgroup", "hr", "li", "map", "noscript", "object", "ol", "output", "p", "pre", "progress",
    "section", "table", "tbody", "textarea", "tfoot", "th", "thead", "tr", "ul", "video",
))
_SPACED = frozenset((
    "cite", "details", "datalist", "iframe", "img", "input", "label", "legend", "optgroup", "q", "select",
    "summary", "td", "time",
))
_FOLDED = "folded-div"
_VERBATIM = frozenset(("pre", "textarea", "script", "style"))
_HTML_SPACE = re.compile("[ \t\n\f\r]+")
_RUN_OF_SPACE = re.compile(r"(\s)\s+")
_WALK = ("start", "end", "comment", "pi")
# Characters that a page may hold and lxml refuses; in the tree, private ones stand for them.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_STAND_IN = 0xF0000
_STAND_INS = re.compile(f"[{chr(_STAND_IN)}-{chr(_STAND_IN + 0xFFFF)}]")
_KEPT_COMMENT = re.compile(r"!|\[if\s")


def pseudo_crawl_text(page: str) -> str:
    """The text of a page by the algorithm of ROOTS's pseudo-crawl."""
    if not page.strip():
        return ""
    try:
        tree = html.document_fromstring(page, parser=html.HTMLParser(huge_tree=True))
    except (etree.ParserError, ValueError):  # nothing in it but comments; characters that XML forbids
        return ""
    body = tree.find(".//body")
    if body is None:
        return ""
    root = etree.Element("html")
    root.append(body)
    _drop_comments(root)
    _collapse_space(root)
    _remove_sub_trees(root)
    return _text(root)


def _drop_comments(root: Any) -> None:
    """Remove comments, but not conditional ones and those that ask to be kept, as the program's minifier does."""
    for comment in list(root.iter(etree.Comment)):
        if not _KEPT_COMMENT.match(comment.text or ""):
            _remove(comment, comment.tail or "")
        elif comment.text.startswith("!"):
            comment.text = _allowed(comment.text[1:])


def _remove(element: Any, tail: str) -> None:
    """Remove an element and put `tail`, which follows it, after what stands before it."""
    parent, previous = element.getparent(), element.getprevious()
    parent.remove(element)
    if previous is not None:
        previous.tail = _allowed((previous.tail or "") + tail)
    else:
        parent.text = _allowed((parent.text or "") + tail)


def _collapse_space(root: Any) -> None:
    """Runs of white space become one space, except where a page shows them."""
    verbatim = 0
    for event, element in etree.iterwalk(root, events=_WALK):
        shown = element.tag in _VERBATIM
        if event == "start":
            verbatim += shown
            if element.text and not verbatim:
                element.text = _allowed(_HTML_SPACE.sub(" ", element.text))
        else:
            verbatim -= shown and event == "end"
            if element.tail and not verbatim:
                element.tail = _allowed(_HTML_SPACE.sub(" ", element.tail))


def _remove_sub_trees(root: Any) -> None:
    """Remove sub-trees from the root down: what is short is measured before anything in it is removed."""
    sizes = _text_sizes(root)
    waiting = [root]
    while waiting:
        element = waiting.pop()
        only = element[0] if len(element) == 1 else None
        if element.tag in ("div", _FOLDED) and only is not None and only.tag == "div":
            only.tag = _FOLDED
        tag = element.tag
        if tag in _REMOVED or (tag in _REMOVED_IF_SHORT and sizes[element] <= _SHORT):
            _remove_keeping_tail(element)
        else:
            waiting.extend(reversed(element))


def _text_sizes(root: Any) -> dict[Any, int]:
    """Characters of the text in each element."""
    sizes: dict[Any, int] = {}
    for element in reversed(list(root.iter())):
        own = len(element.text or "") if isinstance(element.tag, str) else 0
        sizes[element] = own + sum(sizes[child] + len(child.tail or "") for child in element)
    return sizes


def _remove_keeping_tail(element: Any) -> None:
    """Remove an element. The text after it joins what stands before it, with one space in between.

    Where the sibling before has both a text and a tail, the program appends to its text, so that words change
    places; that is kept.
    """
    tail, parent, previous = element.tail, element.getparent(), element.getprevious()
    parent.remove(element)
    if not tail:
        return
    if previous is None:
        parent.text = _allowed(tail if parent.text is None else _joined(parent.text, tail))
    elif previous.tail is None:
        previous.tail = _allowed(tail)
    elif previous.text and previous.text.endswith(" ") == tail.startswith(" "):
        previous.text = _allowed(_joined(previous.text, tail))
    else:
        between = "" if previous.tail.endswith(" ") or tail.startswith(" ") else " "
        previous.tail = _allowed(previous.tail + between + tail)


def _joined(before: str, after: str) -> str:
    if before.endswith(" ") and after.startswith(" "):
        return before[:-1] + after
    return before + after if before.endswith(" ") or after.startswith(" ") else before + " " + after


def _allowed(text: str) -> str:
    """A text as the tree can hold it."""
    return _REFUSED.sub(lambda found: chr(_STAND_IN + ord(found[0])), text)


def _meant(text: str) -> str:
    """The text that `_allowed` was given."""
    return _STAND_INS.sub(lambda found: chr(ord(found[0]) - _STAND_IN), text)


def _text(root: Any) -> str:
    """The texts in document order, with the separators of their tags."""
    out = _Text()
    for event, element in etree.iterwalk(root, events=_WALK):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event != "end":
            if tag == "br":
                out.line_end()
            out.add(tag, element.text)
        if event != "start":
            out.add(tag, element.tail)
    return "".join(out.parts)


class _Text:
    """The text so far, and its last character."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.last = ""

    def line_end(self) -> None:
        self.parts.append("\n")
        self.last = "\n"

    def add(self, tag: str, text: str | None) -> None:
        """Add a text that stands in an element of this tag, or after it."""
        if self.last and (tag in _BLOCKS or tag == _FOLDED):
            self._end_line()
        elif self.last and tag in _SPACED and self.last not in " \n":
            self.parts.append(" ")
            self.last = " "
        text = _meant(text) if text else text
        if text and tag != "pre":
            text = text.replace("\u00a0", " ").replace("\r", " ").replace("\n", " ")
            text = _RUN_OF_SPACE.sub(r"\1", text)
            if (not self.last or self.last.isspace()) and text[0].isspace():
                text = text[1:]
        if text:
            self.parts.append(text)
            self.last = text[-1]

    def _end_line(self) -> None:
        if self.last == " ":
            self.parts[-1] = self.parts[-1][:-1]
        if self.last != "\n":
            self.line_end()
