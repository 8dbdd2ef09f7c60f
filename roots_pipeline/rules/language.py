"""Which language a text is in (CLD2, or a fastText model by path), and whether its source says the same.

    text ──▶ detected_language, language_score, second_language_share, language_reliable ──▶ verdict `language`

`LanguageIdentification` measures and fills in the language of documents that come without one; `LanguageAgreement`
judges. Codes are those of ROOTS (`columns.language_code`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pycld2

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import encode_languages, floats, language_code
from roots_pipeline.rules.fasttext_language import languages_of, load_predictor, model_fingerprint

VERDICT = "language"

# CLD2 takes text fit for interchange only: no control characters but tab and line ends, no noncharacters.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


_CLEAR = 0.95
_LIKELY = 0.5


class Detected(NamedTuple):
    """A language or None, its share, that of the second language, and 1.0 if the answer is trusted."""

    language: str | None
    share: float
    second_share: float
    reliable: float


@lru_cache(maxsize=1)
def detectable() -> frozenset[str]:
    """The languages that CLD2 can tell."""
    codes = dict(pycld2.LANGUAGES)
    return frozenset(language_code(codes[name]) for name in pycld2.DETECTED_LANGUAGES)


@dataclass(frozen=True, slots=True)
class LanguageIdentification(Map):
    """Adds what CLD2, or a fastText model, says of each text, or of parts of it.

    Of a text longer than `quick_bytes`, three pieces (beginning, middle, end) of that size in all are looked at; if
    they are not clearly in one language (reliable, and 95% of them), the first `prefix_bytes` bytes decide. Of 25,806
    documents in 82 languages, 16 came out in another language than by their prefix alone (with 2,400 bytes 9, with 600
    142), most of them Indonesian or Malay; it took three fifths of the time. 0: no pieces.

    `detected_language` is null where it cannot tell; `language_score` is the share of the text in that language,
    `second_language_share` that of the next one, `language_reliable` 1 if CLD2 trusts its answer, else 0. With `fill`,
    documents without a language get the detected one if it is reliable.

    `model` is the path of a fastText model (lid.176, GlotLID). It looks at the first `prefix_bytes` bytes, in lower
    case unless `lower_case` is false; shares are its probabilities, and an answer of at least 0.5 is reliable.
    """

    name: ClassVar[str] = "identify_language"
    prefix_bytes: int = 20_000
    quick_bytes: int = 1200
    fill: bool = True
    model: str = ""
    lower_case: bool = True
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", _fingerprint(self.model, "stage 'identify_language'"))
        if self.quick_bytes < 0:
            raise RecipeError(
                f"`quick_bytes` is {self.quick_bytes}; it must not be negative.", where="stage 'identify_language'"
            )
        if self.prefix_bytes < 1:
            raise RecipeError(
                f"`prefix_bytes` is {self.prefix_bytes}; it must be at least 1.", where="stage 'identify_language'"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        columns = ("detected_language", "language_score", "second_language_share", "language_reliable")
        return (*columns, "language") if self.fill else columns

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        found = [self._look_at(data, start, end) for start, end in pairwise(offsets.tolist())]
        detected = pa.array([code for code, _, _, _ in found], pa.string())
        scores = np.array([row[1:] for row in found], np.float64).reshape(-1, 3)
        new = {"detected_language": detected}
        for place, name in enumerate(("language_score", "second_language_share", "language_reliable")):
            new[name] = pa.array(scores[:, place])
        if self.fill:
            reliable = pa.array([code if sure else None for code, _, _, sure in found], pa.string())
            new["language"] = batch.column("language").fill_null(reliable)
        return with_columns(batch, new)

    def _look_at(self, data: npt.NDArray[np.uint8], start: int, end: int) -> Detected:
        if self.model:
            return self._predict(_whole_characters(data, start, start + self.prefix_bytes, start, end).decode())
        if 0 < self.quick_bytes < end - start and self.quick_bytes < self.prefix_bytes:
            piece, middle = self.quick_bytes // 3, (start + end) // 2
            begins = (start, middle - piece // 2, end - piece)
            quick = _detect(b"\n".join(_whole_characters(data, at, at + piece, start, end) for at in begins))
            if quick.reliable and quick.share >= _CLEAR:
                return quick
        return _detect(_whole_characters(data, start, start + self.prefix_bytes, start, end))

    def _predict(self, text: str) -> Detected:
        found = load_predictor(self.model, self.fingerprint)(text.lower() if self.lower_case else text, 2)
        if not text.strip() or not found:
            return Detected(None, 0.0, 0.0, 0.0)
        (language, share), *others = found
        return Detected(language, share, others[0][1] if others else 0.0, float(share >= _LIKELY))


def _fingerprint(model: str, where: str) -> str:
    return model_fingerprint(model, where) if model else ""


def _whole_characters(data: npt.NDArray[np.uint8], begin: int, stop: int, start: int, end: int) -> bytes:
    """The characters of the text `data[start:end]` that lie between `begin` and `stop`, none of them cut."""
    stop = min(stop, end)
    while start < begin < stop and data[begin] & 0xC0 == 0x80:
        begin += 1
    while begin < stop < end and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return data[begin:stop].tobytes()


def _detect(text: bytes) -> Detected:
    try:
        reliable, _, languages = pycld2.detect(text, isPlainText=True)
    except pycld2.error:
        fit = _UNFIT.sub(" ", text.decode("utf-8", "replace"))
        reliable, _, languages = pycld2.detect(fit.encode(), isPlainText=True)
    (_, first, share, _), (_, _, second_share, _) = languages[:2]
    if first == "un":
        return Detected(None, 0.0, 0.0, 0.0)
    return Detected(language_code(first), share / 100, second_share / 100, float(reliable))


@dataclass(frozen=True, slots=True)
class LanguageAgreement(Map):
    """Drops documents that are reliably in another language than the declared one; the verdict is `language`.

    The other language must hold at least `minimum_score` of the text. Languages in one list of `equivalent` are not
    told apart: those that CLD2 confuses. Documents without a declared language, or in one that CLD2 (or the fastText
    model `model`, if `identify_language` used one) does not know, are not judged.
    """

    name: ClassVar[str] = "language_agrees"
    minimum_score: float = 0.6
    equivalent: list[list[str]] = field(
        default_factory=lambda: [["id", "ms"], ["bs", "hr", "sr"], ["no", "nn", "da"], ["rn", "rw"]]
    )
    model: str = ""
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", _fingerprint(self.model, "stage 'language_agrees'"))
        if not 0 <= self.minimum_score <= 1:
            raise RecipeError(
                f"`minimum_score` is {self.minimum_score}; it must be between 0 and 1.", where="stage 'language_agrees'"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("language", "detected_language", "language_score", "language_reliable", "verdict")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict",)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (VERDICT,)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        declared, declared_rows = encode_languages(batch.column("language"))
        detected, detected_rows = encode_languages(batch.column("detected_language"))
        known = languages_of(self.model, self.fingerprint) if self.model else detectable()
        differs = np.array([[self._differ(one, other, known) for other in detected] for one in declared], np.bool_)
        reliable, score = floats(batch.column("language_reliable")), floats(batch.column("language_score"))
        sure = (reliable > 0) & (score >= self.minimum_score)
        drop = kept(batch) & sure & differs.reshape(len(declared), len(detected))[declared_rows, detected_rows]
        verdicts = pa.array(np.where(drop, VERDICT, ""), pa.string(), mask=~drop)
        return with_columns(batch, {"verdict": batch.column("verdict").fill_null(verdicts)})

    def _differ(self, declared: str, detected: str, known: frozenset[str]) -> bool:
        same = declared == detected or any(declared in group and detected in group for group in self.equivalent)
        return declared in known and detected in known and not same
