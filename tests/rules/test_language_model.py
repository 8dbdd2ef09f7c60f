"""Models of the perplexity filter made from a corpus: with a stand-in for `lmplz`, and the real one where it is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import EmptyOutputError, EngineError, RecipeError
from roots_pipeline.language_model import HELD_BACK, Settings, make_models
from roots_pipeline.rules.perplexity import RootsPerplexity
from tests.rules.corpora import batch_of

# Words by counts and one bigram, in the form that `lmplz` writes.
STAND_IN = """#!{python}
import math, sys
from collections import Counter
given = sys.argv[1:]
counts, lines = Counter(), 0
for line in sys.stdin:
    counts.update(line.split())
    lines += 1
total = sum(counts.values()) + lines
with open(given[given.index("--arpa") + 1], "w", encoding="utf-8") as out:
    out.write(f"\\\\data\\\\\\nngram 1={{len(counts) + 3}}\\nngram 2=1\\n\\n\\\\1-grams:\\n")
    out.write(f"-9\\t<unk>\\n-99\\t<s>\\t0\\n{{math.log10(lines / total)}}\\t</s>\\n")
    for word, count in sorted(counts.items()):
        out.write(f"{{math.log10(count / total)}}\\t{{word}}\\t0\\n")
    out.write("\\n\\\\2-grams:\\n-1\\t<s> </s>\\n\\n\\\\end\\\\\\n")
"""
BROKEN = "#!{python}\nimport sys\nprint('no memory left', file=sys.stderr)\nsys.exit(3)\n"
TEXTS = ["The cat sat on the mat.", "The dog sat on the log.", "A cat and a dog met\non the mat."] * 60


def program(folder: Path, text: str) -> str:
    path = folder / "estimator"
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of two files with three languages."""
    folder = tmp_path_factory.mktemp("run") / "corpus" / "documents"
    folder.mkdir(parents=True)
    rows = [{"id": str(k), "text": text, "source": "s", "language": ("en", "fr", None)[k % 4 if k % 4 < 3 else 0]}
            for k, text in enumerate(TEXTS)]
    for part in range(2):
        pq.write_table(pa.Table.from_batches([make_batch(rows[part::2])]), folder / f"{part}.parquet")
    return str(folder.parents[1])


@pytest.fixture(autouse=True)
def packages() -> None:
    for name in ("sentencepiece", "kenlm"):
        pytest.importorskip(name)


def test_models_are_made_and_score(run: str, tmp_path: Path) -> None:
    made = make_models(run, "en", str(tmp_path / "models"), Settings(30, lmplz=program(tmp_path, STAND_IN)))
    assert made.documents == 90 - 90 // HELD_BACK and Path(made.kenlm).name == "en.arpa"
    assert not [path for path in (tmp_path / "models").iterdir() if path.suffix not in (".arpa", ".model")]
    values = list(made.perplexities.values())
    assert values == sorted(values) and 1 < values[0] < 60
    stage = RootsPerplexity(sentencepiece={"en": made.sentencepiece}, kenlm={"en": made.kenlm})
    near, far = stage(batch_of("The cat sat on the log.", "QZX 77 ///")).column("perplexity").to_pylist()
    assert near < 60 < far


@pytest.mark.skipif(shutil.which("lmplz") is None, reason="KenLM's estimator is not on the PATH")
def test_the_real_estimator(run: str, tmp_path: Path) -> None:
    made = make_models(run, "en", str(tmp_path), Settings(30, order=3))
    assert Path(made.kenlm).read_text("utf-8").startswith("\\data\\\nngram 1=")
    stage = RootsPerplexity(sentencepiece={"en": made.sentencepiece}, kenlm={"en": made.kenlm})
    near, far = stage(batch_of("The cat sat on the log.", "log the on sat cat The")).column("perplexity").to_pylist()
    assert near < far


def test_failures_are_sentences(run: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="code 3: no memory left"):
        make_models(run, "en", str(tmp_path), Settings(30, lmplz=program(tmp_path, BROKEN)))
    assert not (tmp_path / "en.arpa").exists()
    with pytest.raises(EmptyOutputError, match="no text in this language"):
        make_models(run, "sw", str(tmp_path), Settings(30, lmplz=program(tmp_path, STAND_IN)))
    with pytest.raises(RecipeError, match="there is no corpus"):
        make_models(str(tmp_path), "en", str(tmp_path), Settings(30, lmplz=program(tmp_path, STAND_IN)))
    with pytest.raises(RecipeError, match="no program 'nowhere'"):
        make_models(run, "en", str(tmp_path), Settings(30, lmplz="nowhere"))
    with pytest.raises(RecipeError, match="`order` is 1"):
        Settings(order=1)
    with pytest.raises(RecipeError, match="cannot make 8 pieces"):
        make_models(run, "en", str(tmp_path), Settings(8, lmplz=program(tmp_path, STAND_IN)))
