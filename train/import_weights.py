"""Weights of a Hugging Face folder become the checkpoint that a run begins with, for continued training.

Read are safetensors, in one file or several, of any `BloomForCausalLM`, and what `python -m train export` wrote of a
Gopher. The moments of the optimizer start at zero. An embedding with fewer rows than the run's (stripped of padding,
for instance) is filled up with fresh initial values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from roots_pipeline.core.errors import StaleDataError, TrainingError
from roots_pipeline.core.storage import fingerprint, hash_file, read_json
from train.convert import write_universal
from train.job import Job
from train.model.architecture import TIED, partition_dim
from train.model.shape import Shape
from train.parallel.tensor import TensorParallel, initial_shard
from train.saved import Saved, newest_first
from train.standalone import Standalone, published_files, read_parameter
from train.whole import WEIGHT

_PREFIX = "transformer."
# Names of the sizes in our recipes and in configurations of BLOOM, where older ones use the second.
_SIZES = {"hidden": ("hidden_size", "n_embed"), "layers": ("n_layer", "num_hidden_layers"),
          "heads": ("n_head", "num_attention_heads")}  # fmt: skip


def import_weights(source: Path, job: Job) -> Saved:
    """Write the checkpoint of step 0; returns it.

    Raises TrainingError if the model does not fit the recipe, StaleDataError if the tokenizers differ or the run has
    checkpoints already.
    """
    if next(newest_first(job.checkpoints), None) is not None:
        raise StaleDataError(
            "this run has checkpoints already.", where=str(job.checkpoints), hint="Choose another --run."
        )
    shape = job.config.shape(job.vocabulary)
    check_configuration(source, shape)
    check_same_tokens(source, job.run / "tokenizer")
    files = published_files(source)
    names = {name.removeprefix(_PREFIX): name for name in files}
    with torch.device("meta"):
        model = Standalone(shape)
    expected = {name.removeprefix(_PREFIX): list(values.shape) for name, values in model.published().items()}
    unknown = sorted(names.keys() - expected.keys() - {"lm_head.weight"})
    if unknown or expected.keys() - names.keys():
        missing = sorted(expected.keys() - names.keys())
        raise TrainingError(
            f"its parameters are not those of a {shape.kind} of this size: unknown {unknown[:3]}, missing "
            f"{missing[:3]}.",
            where=str(source),
        )

    def read(name: str) -> Tensor:
        values = read_parameter(source / files[names[name]], names[name]).to(torch.float32)
        if name == f"{TIED}.weight":
            values = _filled_up(values, shape, source)
        if list(values.shape) != expected[name]:
            raise TrainingError(
                f"{name} is {list(values.shape)}, the recipe's is {expected[name]}.", where=str(source)
            )
        return values

    if "lm_head.weight" in names and not torch.equal(
        read_parameter(source / files[names["lm_head.weight"]], names["lm_head.weight"]),
        read_parameter(source / files[names[f"{TIED}.weight"]], names[f"{TIED}.weight"]),
    ):
        raise TrainingError("its head is not tied to its embedding, as a BLOOM's is.", where=str(source))

    def parameters() -> Iterator[tuple[str, dict[str, Tensor]]]:
        for name in expected:
            yield own_name(name, shape.layers), {WEIGHT: read(name)}

    described = {
        own_name(name, shape.layers): {"shape": size, "cut": partition_dim(name)} for name, size in expected.items()
    }
    like = Saved(
        job.checkpoints / "none", 0, 0, None, job.identity(), asdict(shape), described, [], _origin(source, files), 0.0
    )
    return write_universal(like, parameters(), steps=0.0)


def _origin(source: Path, files: dict[str, str]) -> str:
    """What a run began with: a fingerprint of the weights' files."""
    return fingerprint({file: hash_file(str(source / file)) for file in sorted(set(files.values()))})


def own_name(published: str, layers: int) -> str:
    """The name in the pipeline of a parameter with this published name (without `transformer.`)."""
    head, _, rest = published.partition(".")
    if head == TIED:
        return f"tied_modules.{TIED}.{rest}"
    if head == "h":
        number, _, own = rest.partition(".")
        return f"{int(number) + 2}.{own}"
    return f"{1 if head == 'word_embeddings_layernorm' else layers + 2}.norm.{rest}"


def check_configuration(source: Path, shape: Shape) -> None:
    """Raise TrainingError if config.json describes another model than the recipe, naming the key."""
    path = source / "config.json"
    if not path.is_file():
        raise TrainingError("there is no config.json here.", where=str(source), hint="Name a Hugging Face folder.")
    config = read_json(str(path))
    if (kind := config.get("model_type")) != shape.kind:
        raise TrainingError(f"this is a {kind}, the recipe trains a {shape.kind}.", where=str(path))
    for key, theirs in _SIZES.items():
        found = next((config[name] for name in (*theirs, key) if config.get(name) is not None), None)
        if found != getattr(shape, key):
            raise TrainingError(
                f"its {theirs[0]} is {found}, the recipe's model.{key} is {getattr(shape, key)}.",
                where=str(path),
                hint=f"Set train.model.{key} to {found}.",
            )
    epsilon: Any = config.get("layer_norm_epsilon", config.get("epsilon", shape.epsilon))
    if epsilon != shape.epsilon:
        raise TrainingError(
            f"its layer_norm_epsilon is {epsilon}, the recipe's is {shape.epsilon}.",
            where=str(path),
            hint=f"Set train.model.layer_norm_epsilon to {epsilon}.",
        )
    if config.get("apply_residual_connection_post_layernorm"):
        raise TrainingError("its residuals start after the LayerNorm; such models are not trained here.",
                            where=str(path))  # fmt: skip


def check_same_tokens(source: Path, tokenizer: Path) -> None:
    """Raise StaleDataError if the weights' tokenizer, where they have one, gives tokens other numbers."""
    theirs, ours = source / "tokenizer.json", tokenizer / "tokenizer.json"
    if not theirs.is_file():
        return
    found, wanted = (Tokenizer.from_file(str(path)).get_vocab() for path in (theirs, ours))
    if found != wanted:
        token = next(iter(sorted(found.items() ^ wanted.items())))[0]
        raise StaleDataError(
            f"the weights were trained with another tokenizer: {token!r} is {found.get(token)} there and "
            f"{wanted.get(token)} in this run.",
            where=str(source),
            hint="Write the mixture with the tokenizer of these weights.",
        )


def _filled_up(values: Tensor, shape: Shape, source: Path) -> Tensor:
    missing = shape.vocabulary - len(values)
    if missing < 0:
        raise TrainingError(
            f"its embedding has {len(values)} rows, this run's vocabulary {shape.vocabulary}.",
            where=str(source),
            hint="Pad the tokenizer's vocabulary to as many.",
        )
    if missing == 0:
        return values
    size = (shape.vocabulary, shape.hidden)
    fresh = initial_shard(TIED, size, shape.init_std, shape.seed, TensorParallel(), dim=0)
    return torch.cat([values, fresh[len(values) :]])
