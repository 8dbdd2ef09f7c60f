"""Continue a prompt with the exported model: a BLOOM through the Hugging Face classes its users will load it with, a
Gopher, which they do not know, through ours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import read_json
from train.standalone import Standalone, load_standalone

_MOST_TOKENS = 65_536  # prompt and continuation; attention needs memory by the square of it
_COLDEST, _HOTTEST = 0.01, 100.0


def generate(
    model_folder: Path,
    prompt: str,
    *,
    tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> str:
    """Up to `tokens` tokens that follow the prompt, as text; temperature 0 always takes the likeliest one.

    An empty prompt starts a new document: the model has learnt that one begins after the end-of-text token. Raises
    RecipeError for options that cannot be.
    """
    _check(prompt, tokens, temperature, top_p, seed)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    words = AutoTokenizer.from_pretrained(str(model_folder))
    given: list[int] = words(prompt, add_special_tokens=False).input_ids
    if len(given) + tokens > _MOST_TOKENS:
        raise RecipeError(
            f"{len(given)} tokens of the prompt and {tokens} more are above the limit of {_MOST_TOKENS}.",
            where="--prompt",
            hint="Use a shorter prompt or fewer --tokens.",
        )
    start = torch.tensor([given or [words.eos_token_id]])
    torch.manual_seed(seed)
    if read_json(str(model_folder / "config.json"))["model_type"] == "bloom":
        written = _through_transformers(model_folder, words, start, tokens, temperature, top_p)
    else:
        model = load_standalone(model_folder)
        written = _step_by_step(model, start, tokens, temperature, top_p, len(words), words.eos_token_id)
    whole, known = (str(words.decode(ids, skip_special_tokens=True)) for ids in (written, given))
    if whole.startswith(known):  # a character may have been completed by the first new token
        return whole[len(known) :]
    return str(words.decode(written[len(given) :], skip_special_tokens=True))


def _check(prompt: str, tokens: int, temperature: float, top_p: float, seed: int) -> None:
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RecipeError(
            f"the prompt is no text: character {error.start + 1} is {prompt[error.start]!r}.",
            where="--prompt",
            hint="Give it in UTF-8.",
        ) from error
    if not 1 <= tokens <= _MOST_TOKENS:
        raise RecipeError(f"{tokens} tokens cannot be asked for.", where="--tokens", hint=f"Use 1 to {_MOST_TOKENS}.")
    if temperature != 0.0 and not _COLDEST <= temperature <= _HOTTEST:
        hint = f"Use 0 (always the likeliest token), or {_COLDEST} to {_HOTTEST:g}."
        raise RecipeError(f"a temperature of {temperature} is impossible.", where="--temperature", hint=hint)
    if not 0.0 < top_p <= 1.0:
        raise RecipeError(f"a share of {top_p} is impossible.", where="--top-p", hint="Use more than 0, at most 1.")
    if not 0 <= seed < 2**63:
        raise RecipeError(f"{seed} is no seed.", where="--seed", hint=f"Use 0 to {2**63 - 1}.")


def _through_transformers(
    folder: Path, words: Any, start: Tensor, tokens: int, temperature: float, top_p: float
) -> list[int]:
    model = AutoModelForCausalLM.from_pretrained(str(folder))
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_p": top_p} if temperature > 0 else {"do_sample": False}
    )
    unused = list(range(len(words), model.config.vocab_size))  # padding rows stand for no token
    written: list[int] = model.generate(
        start,
        attention_mask=torch.ones_like(start),
        max_new_tokens=tokens,
        suppress_tokens=unused or None,
        **sampling,
    )[0].tolist()
    return written


@torch.no_grad()
def _step_by_step(
    model: Standalone, start: Tensor, tokens: int, temperature: float, top_p: float, known: int, end: int
) -> list[int]:
    """The same without a cache of keys and values; `known` counts the tokens that exist, `end` is the last one."""
    written = start
    for _ in range(tokens):
        logits = model(written)[0, -1, :known].float()
        chosen = _sampled(logits / temperature, top_p) if temperature > 0 else int(logits.argmax())
        written = torch.cat([written, torch.tensor([[chosen]])], 1)
        if chosen == end:
            break
    return [int(token) for token in written[0]]


def _sampled(logits: Tensor, top_p: float) -> int:
    """A token from the fewest likeliest ones that hold `top_p` of the probability (arXiv 1904.09751)."""
    probabilities, order = torch.softmax(logits, -1).sort(descending=True)
    before = probabilities.cumsum(-1) - probabilities
    probabilities = probabilities.masked_fill(before >= top_p, 0.0) if not math.isclose(top_p, 1.0) else probabilities
    return int(order[torch.multinomial(probabilities, 1)])
