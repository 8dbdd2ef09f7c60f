"""Perplexity: the formula by a stand-in, and real KenLM and SentencePiece models made here where both are installed."""

from __future__ import annotations

import io
import math
import pickle
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules import roots_pieces
from roots_pipeline.rules.perplexity import RootsPerplexity, perplexity_of
from roots_pipeline.rules.roots_measures import RootsMeasures
from tests.rules import roots_twin as twin
from tests.rules.corpora import batch_of

SENTENCES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog", "我们是学生 我们在学校"] * 20
ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99\t<s>\t-0.3
-1.0\t</s>
-2.5\t<unk>
-0.7\t▁the\t-0.4
-1.3\t▁cat\t-0.2

\\2-grams:
-0.2\t<s> ▁the
-0.5\t▁the ▁cat
-0.6\t▁cat </s>

\\end\\
"""


def fixed_score(value: float) -> float:
    return perplexity_of("a b", str.split, lambda sentence: value, True)


def test_formula_and_rounding() -> None:
    assert fixed_score(-3.0) == 10.0  # two pieces and the end of the sentence
    assert fixed_score(-math.log10(2.26) * 3) == 2.3
    assert fixed_score(0.0) == 1.0
    assert fixed_score(-3000.0) == math.inf
    assert perplexity_of("", str.split, lambda sentence: -1.0 if sentence else -2.0, True) == 100.0


def test_normal_form_keeps_case_and_glues_lines_as_published_only() -> None:
    seen: list[str] = []

    def score(sentence: str) -> float:
        seen.append(sentence)
        return 0.0

    for glue_lines in (True, False):
        perplexity_of(" A 12\nb\t…\r\n", lambda text: [text], score, glue_lines)
    assert seen == ["A 00b...", "A 00 b ..."]


@pytest.mark.parametrize("package", ["sentencepiece", "kenlm"])
def test_missing_packages_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"model")

    for name in ("sentencepiece", "kenlm"):
        monkeypatch.setitem(sys.modules, name, None if name == package else io)  # None: import fails
    with pytest.raises(RecipeError, match=rf"'{package}', which is not installed.*rootbloom\[perplexity\]"):
        RootsPerplexity(sentencepiece={"en": str(path)}, kenlm={"en": str(path)})


def test_missing_models_are_explained(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there are no models"):
        RootsPerplexity()
    with pytest.raises(RecipeError, match="'en' has one of them only"):
        RootsPerplexity(kenlm={"en": "x.bin"})
    with pytest.raises(RecipeError, match=r"x\.model.*cannot be read"):
        RootsPerplexity(kenlm={"en": "x.bin"}, sentencepiece={"en": str(tmp_path / "x.model")})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A SentencePiece model trained on a few sentences and a KenLM model of bigrams."""
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("kenlm")
    folder = tmp_path_factory.mktemp("models")
    pieces, language = folder / "pieces.model", folder / "language.arpa"
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=written, vocab_size=45, hard_vocab_limit=False,
        character_coverage=1.0, minloglevel=2, user_defined_symbols=["▁the", "▁cat"],
    )  # fmt: skip
    pieces.write_bytes(written.getvalue())
    language.write_text(ARPA, "utf-8")
    return str(pieces), str(language)


def test_real_models(models: tuple[str, str]) -> None:
    """Of `the cat`: log10 p is -0.2 - 0.5 - 0.6 over two pieces and the end."""
    stage = RootsPerplexity(sentencepiece={"en": models[0]}, kenlm={"en": models[1]}, glue_lines=True)
    batch = make_batch(
        [
            {"id": str(k), "text": text, "source": "test", "language": language}
            for k, (language, text) in enumerate([("en", "the cat"), ("en", ""), ("fr", "the cat"), (None, "the cat")])
        ]
    )
    empty = -0.3 - 1.0  # back-off of the beginning, then the end
    wanted = [round(10 ** (1.3 / 3), 1), round(10**-(empty), 1), None, None]
    assert stage(batch).column("perplexity").to_pylist() == wanted
    unknown = stage(batch_of("x")).column("perplexity")[0].as_py()
    encode = roots_pieces.load_pieces(models[0], stage.fingerprints[0], "test")
    # Each unknown piece backs off from what came before it: the beginning has a back-off weight, unknown pieces none.
    count = len(encode("x"))
    assert unknown == round(10 ** ((0.3 + 2.5 * count + 1.0) / (count + 1)), 1)


def test_stage_travels_and_follows_its_models(models: tuple[str, str]) -> None:
    stage = RootsPerplexity(sentencepiece={"en": models[0]}, kenlm={"en": models[1]})
    assert len(set(stage.fingerprints)) == 2
    batch = batch_of("the cat sat", "on the\nmat")
    copy = pickle.loads(pickle.dumps(stage))
    assert copy(batch).column("perplexity") == stage(batch).column("perplexity")
    assert stage(make_batch([])).num_rows == 0


def test_long_texts_are_cut_before_sentencepiece(models: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    roots_pieces.load_pieces.cache_clear()
    encode = roots_pieces.load_pieces(models[0], "a fingerprint", "test")
    text = "the cat " * 20
    whole = encode(text)
    monkeypatch.setattr(roots_pieces, "CHARACTERS_AT_ONCE", 16)
    assert encode(text) == whole


@pytest.mark.parametrize("published", [True, False])
def test_words_of_chinese_are_pieces(models: tuple[str, str], published: bool) -> None:
    stage = RootsMeasures(sentencepiece={"zh": models[0]}, letters_are_special=published, glue_lines=published)
    encode = roots_pieces.load_pieces(models[0], stage.fingerprints[2], "test")
    texts = ["我们是学生 我们在学校", "", "The Cat\n我们。", "ＡＢ １２ 上上 ΑΣ ΑΣ"]
    batch = make_batch(
        [
            {"id": str(k), "text": text, "source": "test", "language": language}
            for k, (text, language) in enumerate((text, language) for text in texts for language in ("zh", "en"))
        ]
    )
    found = stage(batch)
    for k, text in enumerate(texts):
        for row, language in ((2 * k, "zh"), (2 * k + 1, "en")):
            pieces = encode if language == "zh" else None
            wanted = twin.measures(text, language, None, None, pieces, published, published)
            for name in ("number_of_words", "word_repetition_ratio", "special_character_ratio"):
                assert found.column(name)[row].as_py() == wanted[name], (text, language, name)


def test_models_that_are_none_are_explained(tmp_path: Path, models: tuple[str, str]) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no model", "utf-8")
    batch: pa.RecordBatch = batch_of("the cat")
    with pytest.raises(RecipeError, match="no SentencePiece model"):
        RootsPerplexity(sentencepiece={"en": str(broken)}, kenlm={"en": models[1]})(batch)
    with pytest.raises(RecipeError, match="no KenLM model"):
        RootsPerplexity(sentencepiece={"en": models[0]}, kenlm={"en": str(broken)})(batch)
