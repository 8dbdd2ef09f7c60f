"""Functions of ROOTS's catalogue cleaning that drop lines, by their published names (ROOTS paper, appendix B.3).

    text ──▶ text

`remove_lines_with_code`   lines with `{`, `}`, `[if` or `<script`
`remove_html_spans`        lines with a tag `span`, `div`, `a` or `br`
`remove_html_spans_sanad`  lines with remains of the pages that the SANAD data set was made of
`remove_wiki_mojibake`     lines with `À À`

Lines end at newlines only. All strings are in `rules/data/catalogue.yaml`. Two functions have a fault, with a switch:

`case_matters`   (`remove_lines_with_code`) `[IF` and `<SCRIPT` are not found
`fixed_strings`  (`remove_html_spans`) strings are looked for, not tags: `<a` is in `<article>`, `br>` in `<abbr>`, and
                 `<BR>`, `<br/>` and `<DIV>` are not found
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.rules.catalogue_edit import TextMap
from roots_pipeline.rules.presets import load_data
from roots_pipeline.text.line_removal import Sought, sought, without_lines


class LineRemoval(TextMap):
    """Drops the lines in which one of some strings is found."""

    @abstractmethod
    def strings(self) -> Sought:
        """What is looked for."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        return with_columns(batch, {"text": without_lines(data, offsets, self.strings())})


@dataclass(frozen=True, slots=True)
class RemoveLinesWithCode(LineRemoval):
    """Drops lines that look like code."""

    name: ClassVar[str] = "remove_lines_with_code"
    case_matters: bool = False
    as_published: bool = False

    def strings(self) -> Sought:
        return sought(_listed(self.name), any_case=not (self.case_matters or self.as_published))


@dataclass(frozen=True, slots=True)
class RemoveHtmlSpans(LineRemoval):
    """Drops lines with remains of HTML."""

    name: ClassVar[str] = "remove_html_spans"
    fixed_strings: bool = False
    as_published: bool = False

    def strings(self) -> Sought:
        if self.fixed_strings or self.as_published:
            return sought(_listed(self.name))
        tags = [bracket + tag for tag in _listed("html_tags") for bracket in ("<", "</")]
        return sought(tags, any_case=True, whole_tags=True)


@dataclass(frozen=True, slots=True)
class RemoveHtmlSpansSanad(LineRemoval):
    """Drops lines with remains of the pages of SANAD."""

    name: ClassVar[str] = "remove_html_spans_sanad"

    def strings(self) -> Sought:
        return sought(_listed(self.name))


@dataclass(frozen=True, slots=True)
class RemoveWikiMojibake(LineRemoval):
    """Drops lines with text that was decoded wrongly."""

    name: ClassVar[str] = "remove_wiki_mojibake"

    def strings(self) -> Sought:
        return sought(_listed(self.name))


def _listed(name: str) -> list[str]:
    strings: list[str] = load_data("catalogue")[name]
    return strings
