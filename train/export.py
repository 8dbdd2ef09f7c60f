"""A checkpoint becomes a Hugging Face model: safetensors, configuration, generation settings, tokenizer.

Layers are read one at a time and the parts of tensor-parallel processes joined, so a model need not fit
into memory. BLOOM's published weights keep the padding rows of the embedding, and so does this by default;
stripped, the model has exactly as many rows as the tokenizer has tokens.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoTokenizer, BloomConfig, GenerationConfig

from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.core.manifest import read_manifest, write_manifest
from roots_pipeline.core.storage import fingerprint, hash_file, lock_folder, write_bytes, write_json
from train.background import read_tensors
from train.model.architecture import TIED, partition_dim, published_name
from train.model.shape import Shape
from train.model_card import FILE, card
from train.parallel.layout import Layout
from train.saved import Saved
from train.whole import WEIGHT, open_whole

_SHARD_BYTES = 5_000_000_000
_KINDS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "bf16-stochastic": torch.bfloat16}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def export(saved: Saved, tokenizer: Path, target: Path, *, strip_padding: bool = False) -> Path:
    """Write the model of a checkpoint to `target`, replacing what was there in one step; returns `target`.

    Raises StorageError if another process is just doing that.
    """
    with lock_folder(str(target.with_name(f".{target.name}.writing"))):
        return _export(saved, tokenizer, target, strip_padding)


def _export(saved: Saved, tokenizer: Path, target: Path, strip_padding: bool) -> Path:
    shape = Shape(**saved.shape)
    words = AutoTokenizer.from_pretrained(str(tokenizer))
    rows = len(words) if strip_padding else shape.vocabulary
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    kind = _write_weights(published_parameters(saved, rows), unfinished)
    _write_configuration(shape, rows, kind, words, unfinished)
    for name in _TOKENIZER_FILES:
        if (tokenizer / name).is_file():
            shutil.copy(tokenizer / name, unfinished / name)
    files = {
        path.name: {"size": path.stat().st_size, "xxh3": hash_file(str(path))} for path in sorted(unfinished.iterdir())
    }
    write_manifest(
        str(unfinished),
        "export",
        config={"strip_padding": strip_padding},
        inputs={"checkpoint": saved.folder.name},
        counts={"step": saved.step, "samples": saved.samples, "vocab_size": len(words), "rows": rows},
        fingerprint=_fingerprint(saved, strip_padding),
        files=files,
    )
    write_bytes(str(unfinished / FILE), card(saved, rows).encode())  # no file of the manifest: scores come later
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    unfinished.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    return target


def ensure_exported(saved: Saved, tokenizer: Path, target: Path, say: Callable[[str], None]) -> None:
    """Export the checkpoint unless `target` already holds it, undamaged, with or without padding.

    Its card is brought up to date in any case: scores may have come since.
    """
    try:
        found = read_manifest(str(target))
    except RootbloomError:
        export(saved, tokenizer, target)
        return
    strip = bool(found.config.get("strip_padding"))
    if found.fingerprint == _fingerprint(saved, strip):
        changed = _changed_file(target, found.files)
        if changed is None:
            renew_card(saved, target)
            return
        say(f"{changed} of the export is not what was written; it is exported again.")
    export(saved, tokenizer, target, strip_padding=strip)


def renew_card(saved: Saved, target: Path) -> None:
    """Bring the card of an export of this checkpoint up to date, without a look at the weights."""
    path, content = target / FILE, card(saved, int(read_manifest(str(target)).counts["rows"])).encode()
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(str(path), content)


def _changed_file(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The first file that is missing or has other bytes than its manifest says."""
    return next(
        (name for name, entry in files.items() if not (folder / name).is_file()
         or hash_file(str(folder / name)) != entry["xxh3"]),
        None,
    )  # fmt: skip


def check_tokenizer(saved: Saved, tokenizer: Path) -> None:
    """Raise StaleDataError if a checkpoint was trained with another tokenizer than the one in this folder."""
    manifest = read_manifest(str(tokenizer), made_by="python -m tokenizer train")
    wanted = str(saved.identity.get("tokenizer"))
    if manifest.fingerprint != wanted:
        raise StaleDataError(
            f"checkpoint {saved.folder.name} was trained with another tokenizer ({wanted[:12]}, now "
            f"{manifest.fingerprint[:12]}).",
            where=str(tokenizer),
            hint="Put back the tokenizer that the mixture was made with, or train again.",
        )
    files = {name: entry for name, entry in manifest.files.items() if name in _TOKENIZER_FILES}
    if (changed := _changed_file(tokenizer, files)) is not None:
        raise StaleDataError(
            f"{changed} is not what `python -m tokenizer train` wrote.",
            where=str(tokenizer),
            hint="Run `python -m tokenizer train` again.",
        )


def _fingerprint(saved: Saved, strip_padding: bool) -> str:
    return fingerprint([saved.fingerprint(), strip_padding])


def published_parameters(saved: Saved, rows: int) -> Iterator[tuple[str, Tensor]]:
    """Every parameter under its published name, whole, in the run's precision; the embedding has its first `rows`
    rows."""
    layers = Shape(**saved.shape).layers
    for position in range(layers + 3):
        found = _stored_whole(saved, position) if saved.layout is None else _joined(saved, saved.layout, position)
        for own in sorted(found):
            whole = found[own]
            yield (
                f"transformer.{published_name(position, layers, own)}",
                (whole[:rows].contiguous() if position == 0 else whole),
            )


def _joined(saved: Saved, layout: Layout, position: int) -> dict[str, Tensor]:
    """A layer from DeepSpeed's files, one of each tensor-parallel process."""
    layers = Shape(**saved.shape).layers
    names = [f"layer_{position:02d}-model_{rank:02d}-model_states.pt" for rank in range(layout.tensor)]
    parts = [read_tensors(saved.folder / name, lazily=True) for name in names]
    return {
        own: first if (dim := partition_dim(published_name(position, layers, own))) is None
        else torch.cat([part[own] for part in parts], dim)
        for own, first in parts[0].items()
    }  # fmt: skip


def _stored_whole(saved: Saved, position: int) -> dict[str, Tensor]:
    """A layer from a universal checkpoint, whose master weights are rounded to the run's precision."""
    prefix = f"tied_modules.{TIED}." if position == 0 else f"{position}."
    kind, whole = _KINDS[str(saved.identity.get("precision", "fp32"))], open_whole(saved)
    found = {}
    for name in saved.parameters:
        if name.startswith(prefix) and (values := whole.read(name, WEIGHT)) is not None:
            found[name.removeprefix(prefix)] = values.to(kind)
    return found


def _write_weights(parameters: Iterator[tuple[str, Tensor]], folder: Path) -> torch.dtype:
    """Files of at most 5 GB, with an index if there are several; returns the data type of the weights."""
    shards: list[list[str]] = []
    held: dict[str, Tensor] = {}
    total, kind = 0, torch.float32

    def flush() -> None:
        save_file(held, folder / f"shard-{len(shards)}", metadata={"format": "pt"})
        shards.append(list(held))
        held.clear()

    for name, tensor in parameters:
        size = tensor.numel() * tensor.element_size()
        if held and sum(t.numel() * t.element_size() for t in held.values()) + size > _SHARD_BYTES:
            flush()
        held[name] = tensor
        total, kind = total + size, tensor.dtype
    flush()
    names = (
        ["model.safetensors"]
        if len(shards) == 1
        else [f"model-{number:05d}-of-{len(shards):05d}.safetensors" for number in range(1, len(shards) + 1)]
    )
    for number, name in enumerate(names):
        (folder / f"shard-{number}").rename(folder / name)
    if len(names) > 1:
        place = {key: name for name, keys in zip(names, shards, strict=True) for key in keys}
        write_json(
            str(folder / "model.safetensors.index.json"),
            {"metadata": {"total_size": total}, "weight_map": place},
        )
    return kind


def _write_configuration(shape: Shape, rows: int, kind: torch.dtype, words: Any, folder: Path) -> None:
    special = {
        "bos_token_id": words.bos_token_id,
        "eos_token_id": words.eos_token_id,
        "pad_token_id": words.pad_token_id,
    }
    if shape.kind == "gopher":  # no class of transformers: the layout is described in docs/training.md
        facts = {"vocabulary": rows, "model_type": "gopher", "dtype": str(kind).removeprefix("torch.")}
        write_json(str(folder / "config.json"), {**asdict(shape), **facts, **special})
        return
    config = BloomConfig(
        vocab_size=rows,
        hidden_size=shape.hidden,
        n_layer=shape.layers,
        n_head=shape.heads,
        layer_norm_epsilon=shape.epsilon,
        initializer_range=shape.init_std,
        architectures=["BloomForCausalLM"],
        hidden_dropout=shape.dropout,
        attention_dropout=shape.dropout,
        dtype=kind,
        tie_word_embeddings=True,
        **special,
    )
    config.save_pretrained(str(folder))
    GenerationConfig(**special).save_pretrained(str(folder))  # type: ignore[no-untyped-call]
