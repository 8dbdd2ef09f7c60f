"""What a recipe can choose: pre-tokenizers, digits, reserved slots, byte fallback, going on, importing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from roots_pipeline.core.errors import RecipeError, TokenizerError
from roots_pipeline.core.manifest import read_manifest
from tests.tokenizer.corpora import adversarial, sample_texts, train_on_texts
from tests.tokenizer.test_train import recipe, run, shards_of, train, write_corpus
from tokenizer.byte_fallback import LibraryEncoder
from tokenizer.config import load_tokenizer_recipe
from tokenizer.encode import Encoder
from tokenizer.export import tokenizer_files
from tokenizer.memory import training_memory
from tokenizer.pretokenizers import BLOOM, Splitter, patterns_of
from tokenizer.tokenizer_file import check_content_of
from tokenizer.weights import Pruned, WeightedPieces

__all__ = ["run"]  # a fixture

STRANGE = [
    "Hello  world, it's 12345!</s>  \n\n", "", " ", "naïve café\r\n\tx = 3.14159", "你好，世界。 नमस्ते دنیا ١٢٣",
    "<reserved 0> <pad> ▁a ▁", "can't WE'LL 'd", "a" * 300, "🙂🙃 \U0001f600\u200d", "x１２３ ²³ ⅷ",
]  # fmt: skip


def hugging_face(path: Path) -> Any:
    theirs = Tokenizer.from_file(str(path))
    theirs.encode_special_tokens = True
    return theirs


def same_ids(path: Path, texts: list[str]) -> None:
    theirs, ours = hugging_face(path), Encoder.from_file(str(path))
    column = pa.array([*texts, None], pa.large_string())
    ids, lengths = ours.encode_column(column, append_eos=True)
    place = 0
    for text, length in zip([*texts, ""], lengths.tolist(), strict=True):
        found = ids[place : place + length].tolist()
        assert found == [*theirs.encode(text, add_special_tokens=False).ids, ours.end_id], text
        assert ours.decode(found) == text.replace("▁", " " if isinstance(ours, LibraryEncoder) else "▁")
        place += length
    assert place == len(ids)
    for text, found_ids in zip(texts, ours.encode_batch(texts), strict=True):
        assert found_ids.tolist() == ours.encode(text).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"pretokenizer": "gpt2"}, {"pretokenizer": "gpt4"}, {"digits": "single"}, {"digits": "threes"},
        {"pretokenizer": "gpt2", "digits": "single"}, {"pretokenizer": "sentencepiece"},
    ],
    ids=str,
)  # fmt: skip
def test_ids_are_hugging_faces_with_every_pre_tokenizer(run: Path, sample: Path, options: dict[str, Any]) -> None:
    train(run, **options)
    path = run / "tokenizer" / "tokenizer.json"
    same_ids(path, STRANGE + sample_texts(sample)[100:130])
    assert len(Encoder.from_file(str(path)).tokens) == 1500
    assert AutoTokenizer.from_pretrained(str(path.parent))("a b")["input_ids"]


def test_merges_with_another_pre_tokenizer_are_hugging_faces(run: Path, sample: Path) -> None:
    train(run, pretokenizer="gpt2", digits="single")
    theirs = Tokenizer(models.BPE())
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]  # GPT-2's own
    theirs.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), *steps])
    theirs.decoder = decoders.ByteLevel()
    # Digits first, then GPT-2's: a space before a digit stays with neither; so compare on text without digits.
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>", "<s>", "</s>", "<pad>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    rows = [text for shard in shards_of(sample).values() for text, _ in shard]
    bare = ["".join(character for character in text if not character.isnumeric()) for text in rows]
    theirs.train_from_iterator(bare, trainer)
    write_corpus(run, {"all": [(text, "en") for text in bare]})
    for name in ("web-00000", "web-00001", "code-00000"):
        (run / "corpus" / "documents" / f"{name}.parquet").unlink()
    train(run, pretokenizer="gpt2", digits="single", vocab_size=700)
    ours = json.loads((run / "tokenizer" / "tokenizer.json").read_text("utf-8"))["model"]
    assert ours["merges"] == json.loads(theirs.to_str())["model"]["merges"]


def test_splitters_join_to_the_text() -> None:
    for name in ("bloom", "gpt2", "gpt4", "sentencepiece"):
        for digits in ("whole", "single", "threes"):
            splitter = Splitter(patterns_of(name, digits))  # type: ignore[arg-type]
            pieces, numbers = splitter.split_column(pa.array(STRANGE, pa.large_string()))
            assert "".join(pieces.to_pylist()) == "".join(STRANGE) and int(numbers.sum()) == len(pieces)
    assert Splitter(patterns_of("bloom", "single")).pieces("a 12 b") == ["a", " ", "1", "2", " b"]
    assert Splitter(patterns_of("bloom", "threes")).pieces("12345") == ["123", "45"]


def test_reserved_slots_are_the_last_ids_and_no_text_gives_them(run: Path) -> None:
    train(run, reserved=8)
    path = run / "tokenizer" / "tokenizer.json"
    same_ids(path, STRANGE)
    theirs = AutoTokenizer.from_pretrained(str(path.parent))
    assert len(theirs) == 1500 and theirs.convert_tokens_to_ids("<reserved 7>") == 1499
    assert Encoder.from_file(str(path)).encode("<reserved 7>").max() < 1492
    with pytest.raises(TokenizerError, match="at least 2,260: 4 special tokens and 256 bytes, and 2,000 are reserved"):
        train(run, reserved=2000)


def test_going_on_gives_what_training_at_once_gives(run: Path, tmp_path: Path) -> None:
    whole = train(run, vocab_size=1500)
    train(run, vocab_size=900, reserved=3)
    smaller = tmp_path / "smaller.json"
    smaller.write_bytes((run / "tokenizer" / "tokenizer.json").read_bytes())
    assert train(run, vocab_size=1500, continue_from=str(smaller))["tokenizer.json"] == whole["tokenizer.json"]
    with pytest.raises(TokenizerError, match="Set vocab_size to at least 897"):
        train(run, vocab_size=800, continue_from=str(smaller))
    with pytest.raises(TokenizerError, match="no such tokenizer file"):
        train(run, continue_from=str(tmp_path / "none.json"))
    with pytest.raises(TokenizerError, match="another pre-tokenizer"):
        train(run, continue_from=str(smaller), pretokenizer="gpt2")


def test_going_on_from_other_text_keeps_the_first_merges(run: Path, sample: Path, tmp_path: Path) -> None:
    train(run, vocab_size=900)
    smaller = tmp_path / "smaller.json"
    smaller.write_bytes((run / "tokenizer" / "tokenizer.json").read_bytes())
    write_corpus(tmp_path / "other", {"all": [(text, "en") for text in sample_texts(sample)[90:160]]})
    train(tmp_path / "other", vocab_size=1500, continue_from=str(smaller))
    first = json.loads(smaller.read_text("utf-8"))["model"]["merges"]
    longer = json.loads((tmp_path / "other" / "tokenizer" / "tokenizer.json").read_text("utf-8"))["model"]["merges"]
    assert longer[: len(first)] == first and len(longer) == 1240


@pytest.mark.parametrize("block", range(2))
def test_going_on_at_any_merge_of_adversarial_corpora(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        texts = adversarial(seed)
        for limit in (None, 4):
            whole = train_on_texts(texts, 330, max_token_length=limit)
            for size in (260, 263, 290):
                files = tokenizer_files(train_on_texts(texts, size, max_token_length=limit))
                earlier = check_content_of(json.loads(files["tokenizer.json"]), "here")
                again = train_on_texts(texts, 330, max_token_length=limit, earlier=earlier)
                assert again.tokens == whole.tokens, (seed, size, limit)
                assert again.merges.tolist() == whole.merges.tolist()


def test_an_existing_tokenizer_is_taken_over(run: Path, sample_file: str) -> None:
    written = train(run, existing=sample_file)
    assert json.loads(written["tokenizer.json"]) == json.loads(Path(sample_file).read_bytes())
    manifest = read_manifest(str(run / "tokenizer"))
    assert (manifest.counts["vocab_size"], manifest.counts["padded_vocab_size"]) == (7992, 8192)
    assert manifest.counts["bytes_per_token"]["en"] > 2 and manifest.config["import"] == sample_file
    same_ids(run / "tokenizer" / "tokenizer.json", STRANGE)


def test_imports_that_cannot_be(run: Path, tmp_path: Path, sample_file: str) -> None:
    with pytest.raises(TokenizerError, match="no such tokenizer file"):
        train(run, existing=str(tmp_path / "none.json"))
    content = json.loads(Path(sample_file).read_bytes())
    huge = json.loads(Path(sample_file).read_bytes())
    huge["model"]["vocab"]["zzzz"] = 10**13  # must not make a list of that length
    (tmp_path / "huge.json").write_text(json.dumps(huge))
    with pytest.raises(TokenizerError, match="id 10,000,000,000,000 is beyond"):
        train(run, existing=str(tmp_path / "huge.json"))
    content["added_tokens"] = [added for added in content["added_tokens"] if added["content"] != "</s>"]
    del content["model"]["vocab"]["</s>"]
    (tmp_path / "no_end.json").write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="no special token </s>"):
        train(run, existing=str(tmp_path / "no_end.json"))
    path = tmp_path / "both.yaml"
    path.write_text("tokenizer:\n  import: a.json\n  continue_from: b.json\n")
    with pytest.raises(RecipeError, match="not both"):
        load_tokenizer_recipe(str(path))


def test_byte_fallback_learns_from_documents_only(run: Path) -> None:
    for options in ({"language_weights": {"en": 2}}, {"digits": "single"}, {"sampling": {"rule": "bloom"}}):
        with pytest.raises(TokenizerError, match="learned from documents"):
            train(run, pretokenizer="sentencepiece", **options)
    train(run, pretokenizer="sentencepiece", sampling={"rule": "bloom", "apply": "documents", "budget": 100_000})
    encoder = Encoder.from_file(str(run / "tokenizer" / "tokenizer.json"))
    assert encoder.tokens[4:260] == [bytes([byte]) for byte in range(256)]
    assert encoder.encode("\U0001f9ec").tolist() == [4 + byte for byte in "\U0001f9ec".encode()]


def test_pruned_pieces_are_told(run: Path) -> None:
    train(run, vocab_size=900)
    exact = read_manifest(str(run / "tokenizer")).counts
    train(run, vocab_size=900, minimum_count=2)
    pruned = read_manifest(str(run / "tokenizer")).counts
    assert "pruned" not in exact and pruned["pruned"]["pieces"] > 1000
    assert pruned["pieces"] < exact["pieces"]
    assert 0 < pruned["pruned"]["pair_count_error_at_most"] < pruned["pruned"]["occurrences"]


def test_weights_by_rule_train_like_the_same_weights_by_hand(run: Path) -> None:
    by_rule = train(run, sampling={"rule": "explicit", "weights": {"*.en": 2, "*.hi": 1, "*": 1}})
    counts = read_manifest(str(run / "tokenizer")).counts["languages"]
    total = sum(facts["bytes"] for facts in counts.values())
    share = {"en": 0.5, "hi": 0.25, "und": 0.25}
    by_hand = train(run, language_weights={n: share[n] * total / facts["bytes"] for n, facts in counts.items()})
    assert by_rule["tokenizer.json"] == by_hand["tokenizer.json"]


def test_the_memory_needed_is_more_than_the_text() -> None:
    one = WeightedPieces(np.zeros(1, np.uint8), np.array([0, 10**9]), np.array([1]), 1, Pruned())
    assert training_memory(one, 250_680) > 10**10
    assert recipe().patterns == BLOOM
