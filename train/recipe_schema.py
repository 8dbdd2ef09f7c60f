"""JSON schema of the section `train`, with the keys that stand for others."""

from __future__ import annotations

from roots_pipeline.core.schema import Schema, describe
from train.config import TrainConfig


def train_schema() -> Schema:
    """The schema of the section."""
    section = describe(TrainConfig)
    properties = section["properties"]
    for name in ("train", "warmup", "decay", "anneal"):
        properties[f"{name}_tokens"] = {"type": "integer", "minimum": 0,
                                        "description": f"In the place of {name}_samples: these, times sequence_length."}
    properties["activation_checkpointing"]["enum"] += [True, False]
    properties["activation_checkpointing"].pop("type", None)
    return section
