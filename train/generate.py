"""Continue a prompt with the exported model, through the same Hugging Face classes its users will load it
with."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging


def generate(
    model_folder: Path,
    prompt: str,
    *,
    tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> str:
    """The prompt and up to `tokens` further tokens; temperature 0 always takes the likeliest one.

    An empty prompt starts a new document: the model has learnt that one begins after the end-of-text token.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    words = AutoTokenizer.from_pretrained(str(model_folder))
    model = AutoModelForCausalLM.from_pretrained(str(model_folder))
    start = (
        words(prompt, return_tensors="pt", add_special_tokens=False).input_ids
        if prompt
        else torch.tensor([[words.eos_token_id]])
    )
    torch.manual_seed(seed)
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_p": top_p} if temperature > 0 else {"do_sample": False}
    )
    unused = list(range(len(words), model.config.vocab_size))  # padding rows stand for no token
    written = model.generate(
        start,
        attention_mask=torch.ones_like(start),
        max_new_tokens=tokens,
        suppress_tokens=unused or None,
        **sampling,
    )
    return str(words.decode(written[0], skip_special_tokens=True))
