"""What the galleries show, as plain frozen dataclasses: duplicates, cut passages, contamination, composition.

Like all facts, text in here is as it was found, and hostile. Sizes are bytes of UTF-8, shares lie between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from roots_pipeline.report.differences import Piece


@dataclass(frozen=True, slots=True)
class Twin:
    """One document of a cluster. `pieces` is the beginning of its text, None if that was not stored.

    `similarity` is in words, such as "Jaccard 0.87", None where pairs were not compared one by one.
    """

    id: str
    source: str
    language: str
    verdict: str | None
    similarity: str | None
    pieces: tuple[Piece, ...] | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents that one verdict dropped because of the same document; `dropped` are some of `size`."""

    cause: Twin
    dropped: tuple[Twin, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Clusters of one verdict, drawn at random, and how many documents it dropped in all."""

    verdict: str
    documents: int
    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A kept document that lost `size` bytes. `pieces`: its text around the cuts, with what was cut in place.

    None if the text of its source cannot be laid over the stored one: `reason` says why. `elsewhere` is another
    document that holds the first passage that was cut, if a search of the first part of the corpus found one.
    """

    id: str
    source: str
    language: str
    size: int
    pieces: tuple[Piece, ...] | None
    reason: str | None
    elsewhere: str | None


@dataclass(frozen=True, slots=True)
class Cuts:
    """How many kept documents lost something, how many bytes in all, and some of them."""

    documents: int
    size: int
    examples: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """What was found of one evaluation set; `outcomes` are what became of the documents that hold its items."""

    name: str
    items: int
    found: int
    documents: int
    outcomes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A document beside the item that it holds: the passages around what they share; empty if it was not stored."""

    evaluation: str
    item: str
    document: str
    source: str
    language: str
    outcome: str
    overlap: float
    document_passage: tuple[Piece, ...]
    item_passage: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Contamination:
    """The review of a decontaminated corpus; `reviewed` is false if it has not been written for this corpus yet."""

    reviewed: bool
    sets: tuple[EvaluationSet, ...]
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class ShareRow:
    """Bytes of one language, script or kind of source, and its share beside the published one (None: not named)."""

    name: str
    size: int
    share: float
    published: float | None


@dataclass(frozen=True, slots=True)
class Composition:
    """Kept bytes by language and script beside ROOTS, and by kind of source beside MassiveText."""

    languages: tuple[ShareRow, ...]
    scripts: tuple[ShareRow, ...]
    kinds: tuple[ShareRow, ...]
