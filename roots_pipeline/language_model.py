"""Make the models of the perplexity filter for one language, from the documents that a run kept.

    python -m roots_pipeline language-model fr --run RUN --to models

RUN/corpus ──▶ models/fr.sentencepiece.model (unigram pieces)
           ──▶ models/fr.arpa                (n-gram model of KenLM over these pieces)
           ──▶ perplexities of documents that the models have not seen, by share: where to set the limit

Texts get the normal form in which the stage `roots_perplexity` scores them. One document in fifty is held back. KenLM's
estimator `lmplz` is a program of its own (https://kheafield.com/code/kenlm/estimation/): by default it is looked for on
the PATH. ROOTS used models of Wikipedia with 5-grams; its limits on perplexity mean nothing for other models.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow.compute as pc

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.errors import EmptyOutputError, EngineError, RecipeError
from roots_pipeline.core.storage import commit_file, join, list_files, write_bytes
from roots_pipeline.rules.columns import language_code
from roots_pipeline.rules.perplexity import load_scorer, perplexity_of
from roots_pipeline.rules.roots_normalisation import normalise
from roots_pipeline.rules.roots_pieces import Encode, load_pieces, model_fingerprint, optional_package

HELD_BACK = 50  # one document in so many
SHARES = (0.5, 0.75, 0.9, 0.95, 0.99)
_MOST_SCORED = 5000
_LINE = 1000  # characters; SentencePiece leaves out lines of more than 4,192 bytes
_WHERE = "language-model"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a model is made with: pieces, order of n-grams, and megabytes of text for choosing the pieces."""

    pieces: int = 65_536
    order: int = 5
    megabytes: int = 100
    glue_lines: bool = False
    lmplz: str = "lmplz"

    def __post_init__(self) -> None:
        for name, smallest in (("pieces", 8), ("order", 2), ("megabytes", 1)):
            if (value := getattr(self, name)) < smallest:
                raise RecipeError(f"`{name}` is {value}; it must be at least {smallest}.", where=_WHERE)


@dataclass(frozen=True, slots=True)
class Models:
    """Paths of both models, and the perplexity below which each of SHARES of the documents held back lies."""

    sentencepiece: str
    kenlm: str
    documents: int
    perplexities: dict[float, float]


def make_models(run: str, language: str, to: str, settings: Settings) -> Models:
    """Train both models. Raises RecipeError without `lmplz`, EmptyOutputError without documents in the language."""
    for package in ("sentencepiece", "kenlm"):
        optional_package(package, _WHERE)
    lmplz = shutil.which(settings.lmplz)
    if lmplz is None:
        raise RecipeError(f"there is no program '{settings.lmplz}'.", where=_WHERE,
                          hint="Build KenLM (cmake, boost) and put lmplz on the PATH, or give its path with --lmplz.")
    if not list_files(join(run, "corpus", "documents"), ".parquet"):
        raise RecipeError("there is no corpus.", where=join(run, "corpus"), hint="Run a recipe there first.")
    name = join(to, language_code(language))
    pieces, arpa = f"{name}.sentencepiece.model", f"{name}.arpa"
    write_bytes(pieces, _train_pieces(_trained(run, language, settings), settings))
    encode = load_pieces(pieces, model_fingerprint(pieces, _WHERE), _WHERE)
    with commit_file(arpa) as temporary:
        documents = _estimate(lmplz, _trained(run, language, settings), encode, settings, temporary)
    score = load_scorer(arpa, model_fingerprint(arpa, _WHERE))
    held = islice(_texts(run, language, held_back=True), _MOST_SCORED)
    found = sorted(perplexity_of(text, encode, score, settings.glue_lines) for text in held)
    shares = {share: found[min(len(found) - 1, int(share * len(found)))] for share in SHARES} if found else {}
    return Models(pieces, arpa, documents, shares)


def _texts(run: str, language: str, *, held_back: bool) -> Iterator[str]:
    """Texts of a language in the order of the corpus, those that are held back or the others."""
    code, number = language_code(language), 0
    for path in list_files(join(run, "corpus", "documents"), ".parquet"):
        file = open_parquet(path)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["text", "language"])
            names = [name for name in pc.unique(table["language"]).to_pylist() if name and language_code(name) == code]
            if not names:
                continue
            for text in table.filter(pc.is_in(table["language"], pc.cast(names, table["language"].type)))["text"]:
                if (number % HELD_BACK == HELD_BACK - 1) == held_back:
                    yield text.as_py()
                number += 1


def _trained(run: str, language: str, settings: Settings) -> Iterator[str]:
    for text in _texts(run, language, held_back=False):
        yield normalise(text, lower_case=False, glue_lines=settings.glue_lines)


def _train_pieces(texts: Iterable[str], settings: Settings) -> bytes:
    """A SentencePiece model (unigram, as in cc_net) of the first so many megabytes."""
    left, empty = settings.megabytes * 10**6, True

    def lines() -> Iterator[str]:
        nonlocal left, empty
        for text in texts:
            for start in range(0, len(text), _LINE):
                piece = text[start : start + _LINE]
                left, empty = left - len(piece.encode()), False
                if left < 0:
                    return
                yield piece

    written = io.BytesIO()
    trainer = optional_package("sentencepiece", _WHERE).SentencePieceTrainer
    try:
        trainer.train(sentence_iterator=lines(), model_writer=written, model_type="unigram", minloglevel=2,
                      vocab_size=settings.pieces, hard_vocab_limit=False, character_coverage=0.9995)
    except (RuntimeError, OSError) as error:
        if empty:
            raise EmptyOutputError("the corpus has no text in this language.", where=_WHERE,
                                   hint="Its manifest counts documents by language.") from error
        raise RecipeError(f"SentencePiece cannot make {settings.pieces} pieces of this text ({error}).", where=_WHERE,
                          hint="Ask for fewer with --pieces, or give it more text.") from error
    return written.getvalue()


def _estimate(lmplz: str, texts: Iterable[str], encode: Encode, settings: Settings, to: str) -> int:
    """Let `lmplz` write its model; the number of documents it was given."""
    documents = 0
    with tempfile.TemporaryDirectory(dir=Path(to).parent) as scratch:
        command = [lmplz, "-o", str(settings.order), "--discount_fallback", "-T", scratch, "--arpa", to]
        said = Path(scratch) / "said"
        with said.open("wb") as errors:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors, stdout=subprocess.DEVNULL)
            assert process.stdin is not None
            try:
                with process.stdin as sentences:
                    for text in texts:
                        sentences.write(" ".join(encode(text)).encode() + b"\n")
                        documents += 1
            except BrokenPipeError:
                pass  # it has ended; its exit code and words say why
            except BaseException:
                process.kill()
                raise
            finally:
                code = process.wait()
        if code:
            last = said.read_text("utf-8", errors="replace").strip().rpartition("\n")[2][-300:]
            raise EngineError(f"lmplz ended with code {code}: {last}", where=lmplz,
                              hint="It needs room in memory and beside the model; --order 3 needs less.")
    return documents
