"""Every GPU kernel against the plain computation in float64, value and gradients, in float32 and bfloat16."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.gpu.distance import check
from train.model.attention import alibi_table
from train.model.compiled import compiled_on_gpu
from train.model.flex import attention_by_distance, attention_by_key
from train.model.loss import vocabulary_loss
from train.model.norms import sum_and_layer_norm, sum_and_rms_norm
from train.model.plain import plain_attention
from train.model.randomness import Randomness
from train.model.relative import by_key
from train.optimizer import make_optimizer
from train.parallel.tensor import TensorParallel

# Batch, heads, length, head size: one odd in every way, one as BLOOM uses them.
SIZES = [(torch.float32, (2, 6, 300, 64)), (torch.bfloat16, (2, 16, 2048, 128))]


def drawn(shape: Sequence[int], dtype: torch.dtype, device: torch.device, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, device=device) * scale).to(dtype).requires_grad_()


def compare(what: str, fast: Callable[..., Tensor], plain: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
    """`fast` on the inputs against `plain` on their float64 copies: the result and the gradient of every input."""
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    expected, found = plain(*exact), fast(*inputs)
    slope = torch.randn_like(found)
    truth = torch.autograd.grad(expected, exact, slope.double())
    gradients = torch.autograd.grad(found, inputs, slope)
    check(what, found, expected, "value", inputs[0].dtype)
    for number, (mine, theirs) in enumerate(zip(gradients, truth, strict=True)):
        check(f"{what}, gradient {number}", mine, theirs, "gradient")


def plain(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, documents: Tensor | None = None) -> Tensor:
    unseen = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device).triu(1)
    if documents is not None:  # numbers of documents [batch, length]
        unseen = unseen | (documents[:, None, :, None] != documents[:, None, None, :])
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + bias
    return torch.softmax(scores.masked_fill(unseen, -math.inf), -1) @ value


def drawn_documents(batch: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Numbers of documents, and where the document of each position begins, both [batch, length].

    One sample is a single document; in the others one position in fifty begins a new one.
    """
    begins = torch.rand(batch, length, device=device) < 0.02
    begins[0], begins[:, 0] = False, True
    places = torch.arange(length, device=device, dtype=torch.int32).expand(batch, length)
    return begins.cumsum(1), torch.where(begins, places, 0).cummax(1).values.int()


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_attention_with_alibi(dtype: torch.dtype, size: tuple[int, ...], gpu: torch.device) -> None:
    heads, length = size[1:3]
    table = alibi_table(heads, 0, heads, length, dtype, gpu)
    compare(
        "attention with ALiBi",
        lambda *mixed: attention_by_key(*mixed, table),
        lambda *mixed: plain(*mixed, table.double()[:, None]),
        [drawn(size, dtype, gpu) for _ in range(3)],
    )


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_attention_with_relative_positions(dtype: torch.dtype, size: tuple[int, ...], gpu: torch.device) -> None:
    batch, heads, length, _ = size
    by_distance = drawn((batch, heads, length, length), dtype, gpu)
    compare(
        "attention with relative positions",
        attention_by_distance,
        lambda query, key, value, bias: plain(query, key, value, by_key(bias)),
        [*(drawn(size, dtype, gpu) for _ in range(3)), by_distance],
    )


def own_biases(table: Tensor, starts: Tensor) -> Tensor:
    """Of positions counted from the beginning of each document, [batch, heads, 1, length]."""
    places = torch.arange(starts.shape[1], device=starts.device) - starts
    return torch.stack([table.double()[:, row] for row in places])[:, :, None]


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_attention_within_documents(dtype: torch.dtype, size: tuple[int, ...], gpu: torch.device) -> None:
    batch, heads, length, _ = size
    table = alibi_table(heads, 0, heads, length, dtype, gpu)
    for _ in range(2):  # other documents with the same compiled kernel
        documents, starts = drawn_documents(batch, length, gpu)
        biases = own_biases(table, starts)
        compare(
            "attention with ALiBi within documents",
            lambda *mixed, starts=starts: attention_by_key(*mixed, table, starts),
            lambda *mixed, documents=documents, biases=biases: plain(*mixed, biases, documents),
            [drawn(size, dtype, gpu) for _ in range(3)],
        )
    by_distance = drawn((batch, heads, length, length), dtype, gpu)
    compare(
        "attention with relative positions within documents",
        lambda *mixed: attention_by_distance(*mixed, starts),
        lambda query, key, value, bias: plain(query, key, value, by_key(bias), documents),
        [*(drawn(size, dtype, gpu) for _ in range(3)), by_distance],
    )


def test_the_plain_attention_of_runs_with_dropout_is_the_reference(gpu: torch.device) -> None:
    query, key, value = (drawn((2, 3, 40, 16), torch.float64, gpu) for _ in range(3))
    bias = torch.randn(3, 1, 40, device=gpu, dtype=torch.float64)
    future = torch.ones(40, 40, dtype=torch.bool, device=gpu).triu(1)
    masked = bias.expand(3, 40, 40).masked_fill(future, -math.inf)
    found = plain_attention(query, key, value, masked, 0.0, "", Randomness(), 0)
    torch.testing.assert_close(found, plain(query, key, value, bias), atol=1e-6, rtol=1e-6)  # its softmax is float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1000, 250_880])
def test_vocabulary_loss(
    dtype: torch.dtype, rows: int, gpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vocabulary_loss.__globals__["_LOGITS_AT_ONCE"], "cuda", 130 * rows)  # several uneven chunks
    hidden, weight = drawn((1, 300, 128), dtype, gpu), drawn((rows, 128), dtype, gpu, 0.1)
    labels = torch.randint(0, rows, (1, 300), device=gpu)
    compare(
        f"loss over {rows} rows",
        lambda *inputs: vocabulary_loss(*inputs, labels, TensorParallel()),
        lambda hidden, weight: F.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten()),
        [hidden, weight],
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_vocabulary_loss_of_labels_that_count(
    dtype: torch.dtype, gpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vocabulary_loss.__globals__["_LOGITS_AT_ONCE"], "cuda", 130 * 1000)
    hidden, weight = drawn((1, 300, 128), dtype, gpu), drawn((1000, 128), dtype, gpu, 0.1)
    labels = torch.randint(0, 1000, (1, 300), device=gpu)
    labels[0, 200:] = -100
    compare(
        "loss of labels that count",
        lambda *inputs: vocabulary_loss(*inputs, labels, TensorParallel(), 170.5),
        lambda hidden, weight: F.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten(), reduction="sum")
        / 170.5,
        [hidden, weight],
    )


def test_gradients_of_tokens_that_are_almost_certain(gpu: torch.device) -> None:
    """Their softmax is so close to 1 that bfloat16 could not hold the difference, which is their gradient."""
    hidden = torch.zeros(8, 16, device=gpu, dtype=torch.bfloat16)
    hidden[:, 0] = 7.0
    weight = torch.zeros(4, 16, device=gpu, dtype=torch.bfloat16)
    weight[1, 0] = 1.0
    hidden.requires_grad_(), weight.requires_grad_()
    labels = torch.ones(8, dtype=torch.long, device=gpu)
    vocabulary_loss(hidden, weight, labels, TensorParallel()).backward()  # type: ignore[no-untyped-call]
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, weight)]
    F.cross_entropy(exact[0] @ exact[1].T, labels).backward()  # type: ignore[no-untyped-call]
    for mine, theirs in zip((hidden, weight), exact, strict=True):
        assert mine.grad is not None and theirs.grad is not None
        check("gradient of certain tokens", mine.grad, theirs.grad, "gradient")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sum_and_norms(dtype: torch.dtype, gpu: torch.device) -> None:
    hidden, branch = (drawn((2, 50, 2048), dtype, gpu) for _ in range(2))
    weight, bias = (drawn((2048,), dtype, gpu) for _ in range(2))

    def joined(results: tuple[Tensor, Tensor]) -> Tensor:
        return torch.cat(results)

    def layer_norm(hidden: Tensor, branch: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        total = hidden + branch
        return joined((total, F.layer_norm(total, (2048,), weight, bias, 1e-5)))

    def rms_norm(hidden: Tensor, branch: Tensor, weight: Tensor) -> Tensor:
        total = hidden + branch
        return joined((total, total / (total.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight))

    fast = (lambda *all_: joined(sum_and_layer_norm(*all_, 1e-5)), lambda *all_: joined(sum_and_rms_norm(*all_, 1e-5)))
    compare("sum and LayerNorm", fast[0], layer_norm, [hidden, branch, weight, bias])
    compare("sum and RMSNorm", fast[1], rms_norm, [hidden, branch, weight])


def test_compiled_functions_equal_plain_ones_on_both_devices(gpu: torch.device) -> None:
    def gelu(values: Tensor) -> Tensor:
        return 0.5 * values * (1 + torch.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)))

    values = torch.linspace(-4, 4, 1000, device=gpu)
    chosen = compiled_on_gpu(gelu)
    torch.testing.assert_close(chosen(values), F.gelu(values, approximate="tanh"), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(chosen(values.cpu()), gelu(values.cpu()))


def test_fused_adamw(gpu: torch.device) -> None:
    """Four steps against the formula (arXiv 1711.05101, algorithm 2) in float64."""
    module = torch.nn.Linear(64, 32, device=gpu)
    rate, decay, (first, second), eps = 1e-2, 0.1, (0.9, 0.95), 1e-8
    optimizer = make_optimizer(module, weight_decay=decay, betas=(first, second), eps=eps)
    assert all(group["fused"] for group in optimizer.param_groups)
    exact = {name: parameter.detach().double().clone() for name, parameter in module.named_parameters()}
    moments = {name: (torch.zeros_like(values), torch.zeros_like(values)) for name, values in exact.items()}
    for group in optimizer.param_groups:
        group["lr"] = rate
    for step in range(1, 5):
        for name, parameter in module.named_parameters():
            parameter.grad = torch.randn_like(parameter)
            gradient, (mean, square) = parameter.grad.double(), moments[name]
            mean.lerp_(gradient, 1 - first)
            square.lerp_(gradient**2, 1 - second)
            exact[name] *= 1 - rate * (decay if parameter.ndim > 1 else 0.0)
            exact[name] -= rate * (mean / (1 - first**step)) / ((square / (1 - second**step)).sqrt() + eps)
        optimizer.step()
    for name, parameter in module.named_parameters():
        check(f"AdamW, {name}", parameter.detach(), exact[name], "value")


def test_fused_adamw_reaches_every_weight_of_more_than_two_billion(gpu: torch.device) -> None:
    """BLOOM's fused optimizer crashed above 2.7 billion parameters a GPU, where 32-bit numbers of places end.

    One flat tensor, as DeepSpeed hands it over: 2.8 billion weights, gradients and two moments take 42 GiB.
    """
    count = 2_800_000_000
    if torch.cuda.get_device_properties(gpu).total_memory < 18 * count:
        pytest.skip("this GPU is too small for 2.8 billion weights with their optimizer")
    weights = torch.nn.Parameter(torch.ones(count, device=gpu))
    weights.grad = torch.full((count,), 2.0, device=gpu)
    optimizer = torch.optim.AdamW([weights], lr=0.25, weight_decay=0.0, eps=0.0, fused=True)
    optimizer.step()
    # The first step of Adam is the sign of the gradient times the rate, wherever a weight lies.
    assert float(weights.detach().min()) == pytest.approx(0.75) and float(weights.detach().max()) == pytest.approx(0.75)
