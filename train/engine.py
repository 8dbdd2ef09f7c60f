"""DeepSpeed's settings for a run: ZeRO stage 1, precision, clipping of the global norm.

float32 runs use stage 1 too: without it DeepSpeed clips by each process's own norm when a model is cut over
processes.
"""

from __future__ import annotations

from typing import Any

from train.config import TrainConfig
from train.optimizer import StochasticAdamW, make_optimizer
from train.parallel.backend import deepspeed, quiet_deepspeed
from train.parallel.pipeline import ModelPipeline, check_equal_groups
from train.parallel.topology import Place
from train.precision import check_precision, precision_settings

# Gradients are copied into one buffer to be reduced together, and back. Where there is nobody to reduce them with they
# stay where they are: no buffer, and "buckets" of one gradient, which DeepSpeed does not copy.
_NOTHING_TO_REDUCE = {"contiguous_gradients": False, "reduce_bucket_size": 1}


def deepspeed_settings(config: TrainConfig, data_parallel: int) -> dict[str, Any]:
    """The dictionary that DeepSpeed is configured with."""
    first_batch = config.batch_size()(0)
    return {
        "train_micro_batch_size_per_gpu": config.micro_batch,
        "gradient_accumulation_steps": first_batch // (config.micro_batch * data_parallel),
        "gradient_clipping": config.clip,
        "zero_optimization": {"stage": 1, **({} if data_parallel > 1 else _NOTHING_TO_REDUCE)},
        "steps_per_print": 10**12,
        # DeepSpeed would send each tensor-parallel process's share of the hidden states, as if all held the same.
        "pipeline": {
            "pipe_partitioned": not config.sequence_parallel,
            "grad_partitioned": not config.sequence_parallel,
        },
        **precision_settings(config.precision),
    }


def build_engine(config: TrainConfig, vocabulary: int, place: Place) -> Any:
    """Model, optimizer and DeepSpeed's pipeline engine on this process."""
    check_precision(config.precision, place.device)
    model = ModelPipeline(
        config.shape(vocabulary),
        place,
        recompute=config.activation_checkpointing,
        sequence_parallel=config.sequence_parallel,
    )
    optimizer = make_optimizer(
        model,
        weight_decay=config.weight_decay,
        betas=config.betas,
        eps=config.eps,
        rounding_seed=config.seed if config.precision == "bf16-stochastic" else None,
    )
    check_equal_groups([len(group["params"]) for group in optimizer.param_groups])
    with quiet_deepspeed():
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=deepspeed_settings(config, place.layout.data)
        )
    if isinstance(optimizer, StochasticAdamW):
        optimizer.watch(model)
    return engine
