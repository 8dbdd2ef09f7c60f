"""Log-likelihoods of continuations, with every shared beginning computed once.

Four endings of one text, or a thousand questions after the same examples, begin alike; Gopher's authors put the waste
of computing that again at 4 to 100 times (arXiv 2112.11446). Requests are put into a tree by their tokens. It is walked
from the root with one cache of keys and values that is cut back on the way up; what hangs below a node without
branching further is computed together, as a batch on copies of the node's cache.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging

from roots_pipeline.core.errors import TrainingError
from roots_pipeline.core.storage import read_json
from train.evaluation.gopher import OwnGopher

_DEEPEST = 100  # branchings above one another; what lies deeper is not shared


@dataclass(frozen=True, slots=True)
class Request:
    """Token ids: how likely is `continuation` after `context`? Neither may be empty."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.context + self.continuation)[:-1]


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The sum of the log-probabilities in nats, and whether each token was the likeliest one."""

    total: float
    greedy: bool


class Model(Protocol):
    """What tells the hidden states of tokens after those in a cache."""

    @property
    def embedding(self) -> Tensor: ...

    def hidden(self, tokens: Tensor, cache: Any) -> Tensor:
        """[batch, length] token ids, and a cache that grows by them, to [batch, length, hidden]."""

    def new_cache(self) -> Any:
        """An empty cache."""


class PublishedBloom:
    """A BLOOM in the form of Hugging Face, through its class there."""

    def __init__(self, folder: Path) -> None:
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self._model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)

    @property
    def embedding(self) -> Tensor:
        weight: Tensor = self._model.get_output_embeddings().weight
        return weight

    def hidden(self, tokens: Tensor, cache: Any) -> Tensor:
        found = self._model.transformer(tokens, cache=cache, use_cache=True)
        hidden: Tensor = found.last_hidden_state
        return hidden

    def new_cache(self) -> Any:
        return DynamicCache(config=self._model.config)


_KINDS: dict[str, Callable[[Path], Model]] = {"bloom": PublishedBloom, "gopher": OwnGopher}


def load_model(folder: Path) -> Model:
    """The model of an export, or of any BLOOM in the form of Hugging Face.

    Raises TrainingError if there is none.
    """
    config = read_json(str(folder / "config.json")) if (folder / "config.json").is_file() else {}
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in _KINDS:
        found = f"config.json says {kind!r}" if kind else "there is no model with a config.json"
        hint = "Name a folder with a BLOOM in Hugging Face's form, or an exported Gopher."
        raise TrainingError(f"{found}.", where=str(folder), hint=hint)
    try:
        return _KINDS[kind](folder)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrainingError(f"the model cannot be read ({reason}).", where=str(folder)) from error


@dataclass(slots=True)
class _Node:
    """Tokens after the parent's; `requests` are those whose inputs end here."""

    tokens: tuple[int, ...]
    requests: list[int] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


@dataclass(slots=True)
class Scorer:
    """Scores requests; counts the tokens that were computed and those that would have been one by one.

    `known` is the number of tokens that exist: padding rows of the embedding take no part.
    """

    model: Model
    known: int
    batch: int = 16
    computed: int = 0
    requested: int = 0

    @torch.no_grad()
    def score(self, requests: Sequence[Request]) -> list[Likelihood]:
        """The likelihood of each request, in their order."""
        self.requested += sum(len(one.inputs) for one in requests)
        found: dict[int, Likelihood] = {}
        order = sorted(range(len(requests)), key=lambda number: requests[number].inputs)
        for root in _tree(requests, order, 0, 0):
            self._walk(root, [], self.model.new_cache(), requests, found)
        return [found[number] for number in range(len(requests))]

    def _walk(
        self, node: _Node, above: list[Tensor], cache: Any, requests: Sequence[Request], found: dict[int, Likelihood]
    ) -> None:
        """`above` are the hidden states of the node's ancestors, which the cache holds the keys and values of."""
        here = [*above, self.model.hidden(torch.tensor([node.tokens]), cache)[0]]
        self.computed += len(node.tokens)
        for number in node.requests:
            found[number] = self._likelihood(torch.cat(here), requests[number])
        leaves = [child for child in node.children if not child.children]
        for start in range(0, len(leaves), self.batch):
            self._leaves(leaves[start : start + self.batch], here, cache, requests, found)
        for child in node.children:
            if child.children:
                self._walk(child, here, cache, requests, found)
        if above:
            cache.crop(-len(node.tokens))

    def _leaves(
        self,
        leaves: list[_Node],
        above: list[Tensor],
        cache: Any,
        requests: Sequence[Request],
        found: dict[int, Likelihood],
    ) -> None:
        own = copy.deepcopy(cache)
        own.batch_repeat_interleave(len(leaves))
        longest = max(len(leaf.tokens) for leaf in leaves)
        padded = torch.zeros(len(leaves), longest, dtype=torch.long)  # behind the end nothing looks at it
        for row, leaf in enumerate(leaves):
            padded[row, : len(leaf.tokens)] = torch.tensor(leaf.tokens)
        hidden = self.model.hidden(padded, own)
        for row, leaf in enumerate(leaves):
            self.computed += len(leaf.tokens)
            for number in leaf.requests:
                found[number] = self._likelihood(torch.cat([*above, hidden[row, : len(leaf.tokens)]]), requests[number])

    def _likelihood(self, hidden: Tensor, request: Request) -> Likelihood:
        """From the hidden states of all inputs of a request."""
        labels = torch.tensor(request.continuation)
        logits = hidden[-len(labels) :] @ self.model.embedding[: self.known].T
        chosen = logits.log_softmax(-1).gather(1, labels[:, None])
        return Likelihood(float(chosen.sum()), bool((logits.argmax(-1) == labels).all()))


def _tree(requests: Sequence[Request], order: Sequence[int], depth: int, level: int) -> Iterator[_Node]:
    """Nodes for requests that are sorted and alike up to `depth`, and go on behind it."""
    if level == _DEEPEST:
        yield from (_Node(requests[number].inputs[depth:], [number]) for number in order)
        return
    start = 0
    while start < len(order):
        first = requests[order[start]].inputs
        stop = start + 1
        while stop < len(order) and requests[order[stop]].inputs[depth] == first[depth]:
            stop += 1
        group = order[start:stop]
        last, end = requests[group[-1]].inputs, depth + 1
        # Sorted: what the first and the last share, all share; the first is the shortest of those that end there.
        while end < min(len(first), len(last)) and first[end] == last[end]:
            end += 1
        ended = [number for number in group if len(requests[number].inputs) == end]
        rest = [number for number in group if len(requests[number].inputs) > end]
        yield _Node(first[depth:end], ended, list(_tree(requests, rest, end, level + 1)))
        start = stop
