"""DeepSpeed's settings for a run: ZeRO stage 1, gradient accumulation in float32, clipping of the global
norm.

bf16 runs keep float32 master weights and moments, sharded over data-parallel processes, and add up the
micro-batches' gradients in float32, as BLOOM's did. float32 runs use stage 1 too: without it DeepSpeed clips
by each process's own norm when a model is cut over processes.
"""

from __future__ import annotations

from typing import Any

from train.config import TrainConfig
from train.optimizer import make_optimizer
from train.parallel.backend import deepspeed, quiet_deepspeed
from train.parallel.pipeline import BloomPipeline, check_equal_groups
from train.parallel.topology import Place


def deepspeed_settings(config: TrainConfig, data_parallel: int) -> dict[str, Any]:
    """The dictionary that DeepSpeed is configured with."""
    first_batch = config.batch_size()(0)
    settings: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": config.micro_batch,
        "gradient_accumulation_steps": first_batch // (config.micro_batch * data_parallel),
        "gradient_clipping": config.clip,
        "zero_optimization": {"stage": 1},
        "steps_per_print": 10**12,
        # Reentrant checkpointing would lose the gradient of the embedding, whose input is token ids.
        "pipeline": {
            "use_reentrant": False,
            "activation_checkpoint_interval": int(config.activation_checkpointing),
        },
    }
    if config.precision == "bf16":
        settings |= {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}
    return settings


def build_engine(config: TrainConfig, vocabulary: int, place: Place) -> Any:
    """Model, optimizer and DeepSpeed's pipeline engine on this process."""
    model = BloomPipeline(config.shape(vocabulary), place, activation_checkpointing=config.activation_checkpointing)
    optimizer = make_optimizer(model, weight_decay=config.weight_decay, betas=config.betas, eps=config.eps)
    check_equal_groups([len(group["params"]) for group in optimizer.param_groups])
    with quiet_deepspeed():
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=deepspeed_settings(config, place.layout.data)
        )
    return engine
