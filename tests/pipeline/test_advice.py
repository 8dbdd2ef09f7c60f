"""What newcomers get wrong most often is said at the end of a run, and nothing is said where nothing is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner

from roots_pipeline.__main__ import app
from roots_pipeline.config import advice_on, load_corpus_recipe

FRENCH = "Le vieux moulin est au bord de la rivière, et les enfants du village y jouent tous les jours. Numéro {}."
LONG = ("Au printemps, la neige fond dans les montagnes, puis le ruisseau monte jusqu'aux premières maisons. On "
        "raconte que le meunier savait lire le temps dans la couleur du ciel; son fils préférait réparer des horloges "
        "et vendait du miel au marché de la ville voisine.")
KEEP = [{"stage": "identify_language"}, {"stage": "exact_duplicates"}]


def ran(folder: Path, source: dict[str, Any], stages: list[dict[str, Any]], documents: int = 30) -> Any:
    texts = [FRENCH.format(number) + (LONG if number > 26 else "") for number in range(documents)]
    rows = [orjson.dumps({"content": text, "lang": "fr"}) for text in texts]
    (folder / "in.jsonl").write_bytes(b"\n".join(rows))
    recipe = {"corpus": {"sources": [{"name": "s", "kind": "jsonl", "path": str(folder / "in.jsonl"), **source}],
                         "stages": stages}}
    (folder / "r.yaml").write_text(yaml.safe_dump(recipe))
    words = ["run", "--recipe", str(folder / "r.yaml"), "--run", str(folder / "run"), "--workers", "1", "--quiet"]
    return CliRunner().invoke(app, [*words, "--json"], catch_exceptions=True)


@pytest.mark.parametrize(
    ("source", "stages", "said"),
    [
        ({"language": "en"}, KEEP, ["30 of 30 documents of 's' that are said to be in 'en' look like fr (30)"]),
        ({"language": "french"}, KEEP, ["said to be in 'french' look like fr"]),
        ({}, [{"stage": "exact_duplicates"}], ["30 documents of 's' have no language"]),
        ({"language_field": "langauge"}, [{"stage": "exact_duplicates"}], ["have no language"]),
        ({"language": "fr"}, KEEP, []),
        ({"language_field": "lang"}, KEEP, []),
        ({}, KEEP, []),
        ({"language": "pcd"}, KEEP, []),  # Picard is taken for French
    ],
)
def test_languages(tmp_path: Path, source: dict[str, Any], stages: list[dict[str, Any]], said: list[str]) -> None:
    advice = orjson.loads(ran(tmp_path, {"text_field": "content", **source}, stages).stdout)["advice"]
    assert len(advice) == len(said) and all(words in found for words, found in zip(said, advice, strict=True))


def thresholds(shortest: int) -> list[dict[str, Any]]:
    return [{"stage": "massivetext"}, {"stage": "thresholds", "limits": {"fr": {"word_count": [shortest, 100_000]}}}]


def test_limits_that_drop_nearly_everything(tmp_path: Path) -> None:
    source = {"text_field": "content", "language": "fr"}
    assert orjson.loads(ran(tmp_path, source, thresholds(0)).stdout)["advice"] == []
    told = orjson.loads(ran(tmp_path, source, thresholds(40)).stdout)
    assert told["kept"] == 3 and len(told["advice"]) == 1
    assert "27 of 30 documents of 's' in 'fr' were dropped, 27 of them by word_count." in told["advice"][0]
    assert f"explore --run {tmp_path / 'run'}" in told["advice"][0]
    done = ran(tmp_path, source, thresholds(500))
    assert "all 30 documents were dropped" in str(done.exception) and "allow_empty" in str(done.exception)


def test_a_text_field_of_another_name_is_named(tmp_path: Path) -> None:
    done = ran(tmp_path, {"language": "fr"}, KEEP)
    assert "Name the field that holds the text in text_field" in str(done.exception)
    assert "fields: content, lang" in str(done.exception)


def test_empty_files_are_not_blamed_on_the_stages(tmp_path: Path) -> None:
    done = ran(tmp_path, {"language": "fr"}, KEEP, documents=0)
    assert "are the files empty?" in str(done.exception) and "Loosen" not in str(done.exception)


def test_nobody_is_scolded_for_what_the_sample_says(tmp_path: Path) -> None:
    assert advice_on(load_corpus_recipe("sample")) == []
    poor = {"stage": "near_duplicates", "threshold": 0.7, "bands": 42, "rows": 3}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump({"corpus": {"stages": [poor]}}))
    assert "bands" in advice_on(load_corpus_recipe(str(tmp_path / "r.yaml")))[0]
