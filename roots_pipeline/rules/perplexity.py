"""Perplexity of documents under KenLM models of SentencePiece pieces, as the filters of ROOTS take it.

    text, language ──▶ perplexity; `thresholds` with the preset `roots_perplexity` turns it into verdicts

A document in its normal form (`roots_normalisation`) is cut into pieces, which are joined with spaces and scored as one
sentence. With the sum s of the log10 probabilities of pieces and end of sentence, and n pieces, the perplexity is
10^(-s / (n + 1)), rounded to one decimal.

Models come by path and language; ROOTS used 5-gram models of Wikipedia openings (edugp/kenlm). The packages `kenlm` and
`sentencepiece` are an extra of rootbloom: `pip install 'rootbloom[perplexity]'`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import pyarrow as pa

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import by_code, language_code
from roots_pipeline.rules.roots_normalisation import normalise
from roots_pipeline.rules.roots_pieces import Encode, load_pieces, model_fingerprint, optional_package

Score = Callable[[str], float]  # log10 probability of a sentence of words between spaces
_WHERE = "stage 'roots_perplexity'"


def perplexity_of(text: str, encode: Encode, score: Score, glue_lines: bool) -> float:
    """The perplexity of a text, rounded to one decimal; inf where it is too large for a float."""
    sentence = " ".join(encode(normalise(text, lower_case=False, glue_lines=glue_lines)))
    try:
        return round(float(10.0 ** (-score(sentence) / (len(sentence.split()) + 1))), 1)
    except OverflowError:
        return float("inf")


@dataclass(frozen=True, slots=True)
class RootsPerplexity(Map):
    """Adds the float64 column `perplexity`; null for languages without models.

    `sentencepiece` and `kenlm` are the paths of the models by language. `glue_lines` (published: true) deletes line
    ends and tabs, which joins words; otherwise they become spaces. `fingerprints` are those of the model files.
    """

    name: ClassVar[str] = "roots_perplexity"
    sentencepiece: dict[str, str] = field(default_factory=dict)
    kenlm: dict[str, str] = field(default_factory=dict)
    glue_lines: bool = False
    fingerprints: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentencepiece", by_code(self.sentencepiece))
        object.__setattr__(self, "kenlm", by_code(self.kenlm))
        if not self.kenlm:
            raise RecipeError(
                "there are no models.", where=_WHERE, hint="Give paths by language in `sentencepiece` and `kenlm`."
            )
        if single := sorted(self.sentencepiece.keys() ^ self.kenlm.keys()):
            raise RecipeError(
                f"a language needs a SentencePiece model and a KenLM model; '{single[0]}' has one of them only.",
                where=_WHERE,
            )
        paths = [self.sentencepiece[language] for language in self.kenlm] + list(self.kenlm.values())
        object.__setattr__(self, "fingerprints", tuple(model_fingerprint(path, _WHERE) for path in paths))
        for package in ("sentencepiece", "kenlm"):
            optional_package(package, _WHERE)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("perplexity",)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        languages = batch.column("language").to_pylist()
        values = [
            self._perplexity(text.as_py(), language_code(language)) if language else None
            for text, language in zip(batch.column("text"), languages, strict=True)
        ]
        return with_columns(batch, {"perplexity": pa.array(values, pa.float64())})

    def _perplexity(self, text: str, language: str) -> float | None:
        if language not in self.kenlm:
            return None
        number = list(self.kenlm).index(language)
        encode = load_pieces(self.sentencepiece[language], self.fingerprints[number], _WHERE)
        score = load_scorer(self.kenlm[language], self.fingerprints[len(self.kenlm) + number])
        return perplexity_of(text, encode, score, self.glue_lines)


@lru_cache(maxsize=16)
def load_scorer(path: str, fingerprint: str) -> Score:
    """The scoring function of the model file that has this fingerprint."""
    package = optional_package("kenlm", _WHERE)
    try:
        score: Score = package.Model(path).score
    except (OSError, RuntimeError) as error:
        raise RecipeError(f"this is no KenLM model ({error}).", where=path) from error
    return score
