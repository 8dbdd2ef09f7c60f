"""All maps and filters of ROOTS's catalogue cleaning (ROOTS paper, section 2.2 and appendix B.3), one stage a function.

Its dedups, which see all documents of a data set, are exchanges and live in `roots_pipeline.dedup`. The published
chains of functions for each kind of source are in `docs/rules.md`.
"""

from __future__ import annotations

from roots_pipeline.core.stages import Map
from roots_pipeline.rules.catalogue_by_language import REMOVE_REFERENCES, SPLIT_SENTENCES
from roots_pipeline.rules.catalogue_filters import (
    FilterRemoveEmptyDocs,
    FilterSmallDocs,
    FilterSmallDocsBytes300,
    FilterSmallDocsBytes1024,
    FilterWikiNonTextType,
    FilterWikiUserTitles,
)
from roots_pipeline.rules.catalogue_lines import (
    RemoveHtmlSpans,
    RemoveHtmlSpansSanad,
    RemoveLinesWithCode,
    RemoveWikiMojibake,
)
from roots_pipeline.rules.catalogue_texts import (
    ReplaceNewlineWithSpace,
    StripSubstringsEnWiktionary,
)

CATALOGUE_MAPS: tuple[type[Map], ...] = (
    ReplaceNewlineWithSpace,
    RemoveLinesWithCode,
    RemoveHtmlSpans,
    RemoveHtmlSpansSanad,
    RemoveWikiMojibake,
    StripSubstringsEnWiktionary,
    *REMOVE_REFERENCES,
    *SPLIT_SENTENCES,
)
CATALOGUE_FILTERS: tuple[type[Map], ...] = (
    FilterRemoveEmptyDocs,
    FilterWikiUserTitles,
    FilterWikiNonTextType,
    FilterSmallDocs,
    FilterSmallDocsBytes300,
    FilterSmallDocsBytes1024,
)
