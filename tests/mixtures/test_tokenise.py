"""Encoding shards and joining groups: the files hold exactly what Hugging Face's tokenizer gives for each document."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from mixtures.indexed import IndexedReader
from mixtures.join import file_name, write_group
from mixtures.tokenise import Vocabulary, encode_shard, read_vocabulary
from roots_pipeline.core.errors import MixtureError, SourceError, TokenizerError
from roots_pipeline.core.storage import hash_file
from roots_pipeline.core.tasks import Commit
from tests.mixtures.build import write_pieces
from tests.mixtures.small_run import mixed_shards, write_run


def test_files_hold_the_tokens_of_each_document(tmp_path: Path) -> None:
    run = Path(write_run(tmp_path))
    truth = Tokenizer.from_file(str(run / "tokenizer" / "tokenizer.json"))
    truth.encode_special_tokens = True  # no text can forge a control token
    pieces: dict[str, list[tuple[str, list[int]]]] = {}
    for name in sorted(mixed_shards()):
        output = str(tmp_path / f"{name}.arrow")
        result = encode_shard(
            Commit(), documents=str(run / "corpus" / "documents" / f"{name}.parquet"),
            tokenizer=str(run / "tokenizer" / "tokenizer.json"), output=output,
        )  # fmt: skip
        for group, facts in result["groups"].items():
            pieces.setdefault(group, []).append((output, facts["batches"]))
    assert set(pieces) == {"web.en", "web.fr", "web.und", "web.hi", "code.python"}
    for group, parts in pieces.items():
        commit, prefix = Commit(), str(tmp_path / file_name(group))
        written = write_group(commit, pieces=parts, prefix=prefix, dtype="uint16")
        rows = [row for name in sorted(mixed_shards()) for row in mixed_shards()[name]]
        rows = [row for row in rows if f"{row[2]}.{row[3] or 'und'}" == group]
        reader = IndexedReader(prefix)
        reader.check()
        assert [reader[number].tolist() for number in range(len(reader))] == [
            [*truth.encode(row[1]).ids, 2] for row in rows
        ]
        table = pq.read_table(f"{prefix}.documents.parquet").to_pydict()
        assert table["id"] == [row[0] for row in rows] and table["sequence"] == [*range(len(rows))]
        for number, (offset, tokens) in enumerate(zip(table["offset"], table["tokens"], strict=True)):
            assert reader.tokens[offset : offset + tokens].tolist() == reader[number].tolist()
        assert (written["documents"], written["tokens"]) == (len(rows), len(reader.tokens))
        assert written["files"][".bin"]["xxh3"] == hash_file(f"{prefix}.bin")
        assert len(commit.files) == 3


def test_many_pieces_are_joined_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixtures.join._ROWS_OF_A_GROUP", 5)
    batches = [[[number, 2]] * (number % 4) for number in range(3, 20)]
    write_pieces(tmp_path / "a.arrow", batches[:9])
    write_pieces(tmp_path / "b.arrow", batches[9:], first=100)
    parts = [(str(tmp_path / "a.arrow"), [*range(9)]), (str(tmp_path / "b.arrow"), [*range(8)])]
    written = write_group(Commit(), pieces=parts, prefix=str(tmp_path / "g"), dtype="int32")
    documents = [document for batch in batches for document in batch]
    assert IndexedReader(str(tmp_path / "g")).tokens.tolist() == [token for document in documents for token in document]
    file = pq.ParquetFile(tmp_path / "g.documents.parquet")
    assert written["documents"] == file.metadata.num_rows == len(documents) and file.num_row_groups > 2
    assert file.read().column("sequence").to_pylist() == [*range(len(documents))]


def test_a_vocabulary_too_large_for_the_file(tmp_path: Path) -> None:
    write_pieces(tmp_path / "a.arrow", [[[70_000, 2]]])
    with pytest.raises(MixtureError, match="token id 70000 does not fit uint16"):
        write_group(Commit(), pieces=[(str(tmp_path / "a.arrow"), [0])], prefix=str(tmp_path / "g"), dtype="uint16")
    assert [path.name for path in tmp_path.iterdir()] == ["a.arrow"]


def test_unusable_inputs(tmp_path: Path) -> None:
    run = Path(write_run(tmp_path))
    tokenizer = str(run / "tokenizer" / "tokenizer.json")
    assert read_vocabulary(tokenizer) == Vocabulary(Tokenizer.from_file(tokenizer).get_vocab_size(), 2)
    with pytest.raises(TokenizerError, match="no such tokenizer file"):
        read_vocabulary(str(tmp_path / "missing.json"))
    shard = run / "corpus" / "documents" / "web-00000.parquet"
    shard.write_bytes(shard.read_bytes()[:-10])
    for path in (str(shard), str(tmp_path / "missing.parquet")):
        with pytest.raises(SourceError, match="corpus file cannot be read"):
            encode_shard(Commit(), documents=path, tokenizer=tokenizer, output=str(tmp_path / "x.arrow"))
    assert not (tmp_path / "x.arrow").exists()


def test_group_names_become_file_names() -> None:
    assert [file_name(name) for name in ("web.en", "a/b.zh", "web.c++", "ü.fr", "..")] == [
        "web.en", "a%2Fb.zh", "web.c++", "%C3%BC.fr", "..",
    ]  # fmt: skip
