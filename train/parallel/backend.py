"""DeepSpeed, imported once and kept quiet; nothing else imports it.

On a machine without a GPU it must be told so before it is imported, and its shared-memory collectives must be
declared unavailable before it connects, or it compiles a C++ operator for them (gloo does the same job).
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import warnings
from collections.abc import Iterator

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import deepspeed.ops
from deepspeed.checkpoint import constants as universal
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
from deepspeed.runtime.pipe.topology import PipelineParallelGrid, PipeModelDataParallelTopology
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils import logger
from deepspeed.utils.tensor_fragment import fragment_address

if not torch.cuda.is_available():
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
logger.setLevel(logging.ERROR)
# Every step of a sharded optimizer calls collectives by the names that PyTorch is renaming.
warnings.filterwarnings("ignore", r"`torch\.distributed\.\w+` is deprecated", FutureWarning)

# Every engine asks whether its optimizer is DeepSpeed's Muon, whose module calls the compiler when it is imported: two
# seconds of each start, for something that is never used.
_compile, torch.compile = torch.compile, lambda function=None, **_: function or (lambda inner: inner)  # type: ignore
try:
    importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")
finally:
    torch.compile = _compile

# What its checkpoints hold besides tensors and plain containers.
STORED_CLASSES = [fragment_address, ZeroStageEnum, LossScaler, DynamicLossScaler]

__all__ = [
    "STORED_CLASSES",
    "LayerSpec",
    "PipeModelDataParallelTopology",
    "PipelineModule",
    "PipelineParallelGrid",
    "TiedLayerSpec",
    "TorchCheckpointEngine",
    "deepspeed",
    "quiet_deepspeed",
    "universal",
]


@contextlib.contextmanager
def quiet_deepspeed() -> Iterator[None]:
    """It prints its set-up on standard output; ours is the only voice there."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
