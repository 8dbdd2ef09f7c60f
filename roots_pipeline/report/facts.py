"""What the page shows, as plain frozen dataclasses: the border between reading files and drawing them.

All text in here is as it was found, and hostile; `safe_text` handles it where it is shown. Sizes are bytes of UTF-8
text, shares lie between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roots_pipeline.core.evaluation import Evaluation
from roots_pipeline.report.gallery_facts import Composition, Contamination, Cuts, Duplicates
from roots_pipeline.report.history import Cost

State = Literal["finished", "unfinished", "missing"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the chain. `cost` is None if no call has finished, `stale` why its result is out of date."""

    name: str
    title: str
    state: State
    command: str
    fingerprint: str | None = None
    cost: Cost | None = None
    stale: str | None = None


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """What was read and kept of one source or one language."""

    name: str
    read: int
    kept: int
    read_bytes: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class Example:
    """A rejected document. `text` is its beginning, None if the run did not store the text of rejected documents.

    `value` is the number that led to the verdict, if the verdict is the name of a measure.
    """

    id: str
    language: str
    cause: str | None
    value: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """How many documents of one source got one verdict, with a few of them."""

    verdict: str
    documents: int
    size: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class SourceVerdicts:
    """All verdicts of one source, the most frequent first."""

    source: str
    is_code: bool
    read: int
    verdicts: tuple[VerdictRow, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds of one measure that a stage of the recipe sets; None: no bound. `language` None: all without their own."""

    measure: str
    minimum: float | None
    maximum: float | None
    language: str | None


@dataclass(frozen=True, slots=True)
class Split:
    """Documents by what became of them: kept, rejected because of the measure in question, or for another reason."""

    kept: int
    here: int
    elsewhere: int

    @property
    def total(self) -> int:
        """All three."""
        return self.kept + self.here + self.elsewhere


@dataclass(frozen=True, slots=True)
class Histogram:
    """Distribution of one measure over all documents.

    Bin i holds values in [edges[i], edges[i + 1]), the last one also its upper edge. `below` and `above` count what
    lies outside the edges, `absent` documents that this measure was not taken of (or that gave no number). `whole`:
    each bin holds one whole number. `smallest` and `largest` are over all documents, None if there is no value at all.
    """

    measure: str
    edges: tuple[float, ...]
    logarithmic: bool
    whole: bool
    bins: tuple[Split, ...]
    below: Split
    above: Split
    absent: int
    smallest: float | None
    largest: float | None
    limits: tuple[Limit, ...] = ()

    @property
    def counted(self) -> Split:
        """Documents with a value."""
        parts = (*self.bins, self.below, self.above)
        return Split(*(sum(getattr(part, name) for part in parts) for name in ("kept", "here", "elsewhere")))


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read; `record` is None if the whole file is meant."""

    file: str
    record: int | None
    reason: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Bad records: how many, how often each reason, and the first of them."""

    total: int
    reasons: tuple[tuple[str, int], ...]
    first: tuple[BadRecord, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """RUN/corpus."""

    read: int
    kept: int
    rejected: int
    bad_records: int
    read_bytes: int
    kept_bytes: int
    by_source: tuple[FunnelRow, ...]
    by_language: tuple[FunnelRow, ...]
    verdicts: tuple[SourceVerdicts, ...]
    measures: tuple[Histogram, ...]
    quarantine: Quarantine
    duplicates: tuple[Duplicates, ...]
    cuts: Cuts | None
    contamination: Contamination | None
    composition: Composition


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """RUN/tokenizer. `padded_vocab_size` counts the rows of the embedding.

    `bytes_per_token` is by language, the highest first; of `languages` in all, as many as a table can hold.
    """

    vocab_size: int
    padded_vocab_size: int
    languages: int
    bytes_per_token: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class MixtureRow:
    """One group of the mixture; `epochs` is how often its training tokens are read within the budget, None: unknown."""

    group: str
    documents: int
    tokens: int
    train_tokens: int
    validation_tokens: int
    weight: float
    epochs: float | None


@dataclass(frozen=True, slots=True)
class Mixture:
    """RUN/mixture. `budget`: training tokens that the epochs refer to; `budget_is_trained` if training read them.

    `rows` are the heaviest of the `groups`, as many as a table can hold. `packed`: documents are laid into samples
    whole, and padding counts among the tokens of the budget.
    """

    sequence_length: int
    rule: str
    groups: int
    tokens: int
    budget: int
    budget_is_trained: bool
    rows: tuple[MixtureRow, ...]
    packed: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over the steps of training, thinned: means of equal runs of steps, and the extremes within each."""

    steps: tuple[float, ...]
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    last: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A text the model wrote."""

    prompt: str
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """A step that went wrong, in the words of the log."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Training:
    """RUN/model. Losses and entropies are in nats a token; `uniform_loss` is ln of the vocabulary.

    `first_incidents` are the first of `incidents` steps that were noted as out of the ordinary.
    """

    steps: int
    samples: int
    tokens: int | None
    parameters: int | None
    curves: dict[str, Curve]
    unigram_entropy: float | None
    uniform_loss: float | None
    sample: Sample | None
    incidents: int
    first_incidents: tuple[Incident, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything on the page."""

    folder: str
    version: str
    steps: tuple[Step, ...]
    corpus: Corpus | None
    tokenizer: Tokenizer | None
    mixture: Mixture | None
    training: Training | None
    evaluation: Evaluation | None
