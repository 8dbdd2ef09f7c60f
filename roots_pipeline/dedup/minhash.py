"""Near duplicates by MinHash, every pair verified (MassiveText, Gopher appendix A: 13-word n-grams, Jaccard 0.8).

A document is dropped only if it is similar to a document that stays. Four rounds, each an exchange of its own:

1. `MinHashDuplicates`  which bands of signatures are shared         key: band           only keys move
2. `NearPairs`          candidates, compared by signature            key: bucket         signatures of candidates
3. `ExactJaccard`       pairs that a signature cannot settle         key: better half    sets of n-grams
4. `Survivors`          who stays                                    one partition       verified pairs

In: documents. Out: verdict `near_duplicates`, `cause` = the id of the document that stays. The verified pairs (id,
other, jaccard) are among the findings of the last round.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange, Map
from roots_pipeline.dedup.minhash_bands import band_advice
from roots_pipeline.dedup.minhash_exact import ExactJaccard
from roots_pipeline.dedup.minhash_known import BANDS, KnownBands
from roots_pipeline.dedup.minhash_known_pairs import VERDICT as KNOWN
from roots_pipeline.dedup.minhash_known_pairs import KnownJaccard, KnownSignatures
from roots_pipeline.dedup.minhash_near import NearPairs
from roots_pipeline.dedup.minhash_pairs import bucket_names
from roots_pipeline.dedup.minhash_signature import BUCKETS, MinHashSignature, SignatureSettings, band_entries
from roots_pipeline.dedup.reference import check_reference, read_reference
from roots_pipeline.dedup.row_lists import collect, distinct
from roots_pipeline.dedup.survivors import Survivors


@dataclass(frozen=True, slots=True)
class MinHashDuplicates(Exchange):
    """Keeps the best-ranked of documents whose sets of n-grams have a Jaccard similarity of at least `threshold`.

    `unit`, `ngram`    n-grams of 13 words by default; white space and punctuation do not count (see `text.ngrams`)
    `lower_case`       whether case is ignored; Gopher does not say
    `short`            a text shorter than an n-gram: `whole` (similar to the same text only) or `keep` (takes no part)
    `hashes`           numbers in a signature, `bands` x `rows` of which find candidates
    `doubt`            a signature settles a pair if the chance that it misleads is below this; 0 computes every pair
    `small_bucket`     up to so many documents that share a band are all compared with each other; of more, each is
                       compared with `representatives`
    `comparisons`      so many n-gram sets at most is that of a document compared with
    `prefer`           names of sources, best first; sources not named rank behind, then ids decide
    `against`          folders with signatures of other corpora (see `reference`): documents that are similar to one of
                       theirs are dropped first (see `minhash_known`)
    """

    name: ClassVar[str] = "near_duplicates"
    cause_is: ClassVar[CauseIs] = "twin"
    threshold: float = 0.8
    unit: Literal["words", "characters"] = "words"
    ngram: int = 13
    lower_case: bool = False
    short: Literal["whole", "keep"] = "whole"
    hashes: int = 128
    bands: int = 21
    rows: int = 6
    seed: int = 1
    doubt: float = 1e-6
    small_bucket: int = 32
    representatives: int = 32
    comparisons: int = 16
    prefer: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold} is not a similarity above 0 and up to 1.")
        for name in ("ngram", "hashes", "bands", "rows", "representatives", "comparisons"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.bands * self.rows > self.hashes:
            raise ValueError(f"{self.bands} bands of {self.rows} rows need {self.bands * self.rows} hashes, "
                             f"but there are {self.hashes}.")
        for folder in self.against:
            check_reference(folder, self.name, self.settings())

    @property
    def signature(self) -> SignatureSettings:
        """The part of the settings that decides what a signature is."""
        return SignatureSettings(self.unit, self.ngram, self.lower_case, self.short, self.hashes, self.seed)

    def settings(self) -> dict[str, object]:
        """The part of the parameters that two corpora must share for their signatures to be comparable."""
        return {**asdict(self.signature), "bands": self.bands, "rows": self.rows}

    def hashing(self) -> Map:
        """The map that makes the signatures."""
        return MinHashSignature(self.signature)

    def advice(self) -> list[str]:
        """Sentences for the user about a poor choice of bands; none if all is well."""
        return band_advice(self.threshold, self.hashes, self.bands, self.rows)

    def rounds(self) -> tuple[Exchange, ...]:
        near = NearPairs(
            self.signature, self.threshold, self.doubt, self.small_bucket, self.representatives, self.comparisons,
            self.prefer,
        )
        exact = ExactJaccard(self.signature, self.threshold, self.prefer)
        known: list[Exchange] = []
        for number, folder in enumerate(self.against):
            old = read_reference(folder, self.name, self.settings())
            known += [
                KnownBands(self.signature, self.bands, self.rows, self.comparisons, old, number == 0),
                KnownSignatures(self.signature, self.threshold, self.doubt, old),
                KnownJaccard(self.signature, self.threshold, old, old.without_text()),
            ]
        return (*known, self, near, exact, Survivors(self.name, self.signature.edges, self.prefer))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", self.signature.column)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.signature.buckets,)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (self.name, KNOWN)

    def prepare(self) -> Map | None:
        return None if self.against else self.hashing()  # else the first round has them already

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        column = batch.column(self.signature.column)
        keys, rows = band_entries(column, kept(batch), self.signature, self.bands, self.rows)
        return pa.table([keys, np.full(len(keys), shard, np.int32), rows + first_row], schema=pa.schema(KEY_FIELDS))

    def resolve(self, entries: pa.Table) -> pa.Table:
        key, shard, row = (entries.column(name).to_numpy() for name in ("key", "shard", "row"))
        order = np.lexsort((row, shard, key))
        names = bucket_names(key[order], shard[order], row[order])
        members = pa.array(order[names > 0])
        columns = [entries.column("shard").take(members), entries.column("row").take(members),
                   pa.nulls(len(members), pa.string()), pa.array(names[names > 0])]
        return pa.table(columns, schema=pa.schema([*FINDING_FIELDS, *BUCKETS]))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.signature.buckets not in batch.schema.names:
            return batch
        row = findings.column("row").to_numpy()
        once = distinct(row, findings.column("bucket").to_numpy())  # bands that the same documents share
        buckets = findings.select(BUCKETS.names).take(pa.array(once))
        lists = collect(buckets, row[once] - first_row, batch.num_rows)
        return with_columns(batch, {self.signature.buckets: lists})

    def remember(self, batch: pa.RecordBatch, first_row: int) -> dict[str, pa.Table]:
        """Bands and signatures of a batch, for later corpora: see `reference`."""
        column = batch.column(self.signature.column)
        keys, rows = band_entries(column, np.ones(batch.num_rows, bool), self.signature, self.bands, self.rows)
        signatures = pa.table([batch.column("id"), column], names=["id", "signature"])
        return {"bands": pa.table([keys, rows + first_row], schema=BANDS), "signatures": signatures}
