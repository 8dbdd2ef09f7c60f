"""Language identification by fastText models: one written here byte by byte, so that its probabilities are known."""

from __future__ import annotations

import math
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.columns import language_code
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification
from tests.rules.corpora import batch_of

WORDS = {"the": (2.0, 0.0, 0.0), "le": (0.0, 2.0, 0.0), "的": (0.0, 0.0, 2.0), "a": (0.1, 0.0, 0.0)}
LABELS = ("eng_Latn", "fr", "zho_Hant")


def write_model(path: Path) -> str:
    """A supervised model in fastText's binary format, version 12: one dimension a label, whole words, softmax."""
    size = len(LABELS)
    with path.open("wb") as out:
        out.write(struct.pack("<ii", 793712314, 12))
        # dim, ws, epoch, minCount, neg, wordNgrams, loss (softmax), model (supervised), bucket, minn, maxn, rate, t
        out.write(struct.pack("<12id", size, 5, 1, 1, 5, 1, 3, 3, 0, 0, 0, 100, 1e-4))
        out.write(struct.pack("<iiiqq", len(WORDS) + size, len(WORDS), size, 10, -1))
        for kind, names in ((0, WORDS), (1, [f"__label__{label}" for label in LABELS])):
            for name in names:
                out.write(name.encode() + b"\0" + struct.pack("<qb", 1, kind))
        identity = [[float(row == column) for column in range(size)] for row in range(size)]
        for matrix in (list(WORDS.values()), identity):
            out.write(struct.pack("<?qq", False, len(matrix), size))
            out.write(b"".join(struct.pack("<f", value) for row in matrix for value in row))
    return str(path)


def softmax(*values: float) -> list[float]:
    total = sum(map(math.exp, values))
    return [math.exp(value) / total for value in values]


@pytest.fixture
def model(tmp_path: Path) -> str:
    pytest.importorskip("fasttext")
    return write_model(tmp_path / "model.bin")


def identified(model: str, *texts: str, language: str | None = None, **settings: Any) -> list[dict[str, Any]]:
    stage = LanguageIdentification(model=model, **settings)
    rows: list[dict[str, Any]] = pickle.loads(pickle.dumps(stage))(batch_of(*texts, language=language)).to_pylist()
    return rows


def test_probabilities_are_those_of_the_model(model: str) -> None:
    english, mixed, chinese, nothing, unknown = identified(model, "the", "the\nle the", "的 的", " \n", "zzz")
    first, second, _ = softmax(2, 0, 0)
    assert (english["detected_language"], english["language"]) == ("en", "en")
    assert english["language_score"] == pytest.approx(first, abs=1e-4)
    assert english["second_language_share"] == pytest.approx(second, abs=1e-4)
    assert mixed["language_score"] == pytest.approx(softmax(4 / 3, 2 / 3, 0)[0], abs=1e-4)
    assert mixed["second_language_share"] == pytest.approx(softmax(4 / 3, 2 / 3, 0)[1], abs=1e-4)
    assert chinese["detected_language"] == "zht"
    for row in (nothing, unknown):
        assert row["detected_language"] is None and row["language"] is None and row["language_score"] == 0


def test_case_prefix_and_reliability(model: str) -> None:
    assert identified(model, "THE")[0]["detected_language"] == "en"
    assert identified(model, "THE", lower_case=False)[0]["detected_language"] is None
    assert identified(model, "le " + "the " * 9, prefix_bytes=3)[0]["detected_language"] == "fr"
    (row,) = identified(model, "a", fill=True)
    assert row["language_reliable"] == 0 and row["language"] is None and row["detected_language"] == "en"


def test_agreement_asks_the_model_what_it_knows(model: str) -> None:
    rows = [{"id": str(k), "text": "le", "source": "s", "language": language}
            for k, language in enumerate(("en", "fr", "de", "zh-TW"))]
    batch = LanguageIdentification(model=model)(make_batch(rows))
    verdicts = LanguageAgreement(model=model)(batch).column("verdict").to_pylist()
    assert verdicts == ["language", None, None, "language"]  # the model has no German


def test_what_is_wrong_is_a_sentence(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").write_bytes(b"no model at all")
    with pytest.raises(RecipeError, match="no fastText model of languages"):
        LanguageIdentification(model=str(tmp_path / "other"))(batch_of("x"))
    with pytest.raises(RecipeError, match="cannot be read"):
        LanguageIdentification(model=str(tmp_path / "nowhere"))
    with pytest.raises(RecipeError, match="cannot be read"):
        LanguageAgreement(model=str(tmp_path / "nowhere"))
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(RecipeError, match=r"not installed.*rootbloom\[fasttext\]"):
        LanguageIdentification(model=model)


def test_a_changed_model_is_another_stage(tmp_path: Path, model: str) -> None:
    before = LanguageIdentification(model=model).parameters()
    Path(model).write_bytes(Path(model).read_bytes() + b"\0")
    assert LanguageIdentification(model=model).parameters() != before


def test_codes_of_three_letters_and_scripts() -> None:
    codes = {"eng_Latn": "en", "cmn_Hani": "zh", "zho_Hant": "zht", "arb_Arab": "ar", "srp_Cyrl": "sr", "nob": "no",
             "fon_Latn": "fon", "nso": "nso", "twi": "ak", "yue_Hant": "yue", "sr-Latn": "sr-latn", "en-US": "en-us"}
    assert {code: language_code(code) for code in codes} == codes
