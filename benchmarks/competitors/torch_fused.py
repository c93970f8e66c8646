"""PyTorch's sparse gradient of an EmbeddingBag with the optimizer's step on it: what fused updates are compared with.

torch.sgd_fused           as sgd_fused, by torch.optim.SGD, on the CPU
torch.adagrad_fused       as adagrad_fused, by torch.optim.Adagrad
torch.adam_fused          as adam_fused, by torch.optim.SparseAdam
torch_cuda.<rule>_fused   the same three on a CUDA device, over the memory of CuPy's arrays

Arguments  as those of the kernel that each competes with, less what the optimizers have not: decay 0, rescale 1, clip
           infinite
Writes     weights and states; nothing else changes
Assumes    indices in range, as ours do; a batch's forward pass is done once, in `prepare`, with its entries by row
Cost       flops and bytes as of the kernel that each competes with; PyTorch sorts the batch's columns anew in each step
Parallel   as PyTorch does; on a CUDA device its sums come in any order
Limits     z < 2**31
Source     torch.nn.EmbeddingBag(mode="sum", sparse=True), backward from g, and the optimizer's step; differs: epsilon
           of Adagrad stands outside the root, and is too small here for that to tell
"""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.competitors import register_competitor, torch_cuda
from benchmarks.competitors.torch_sparse import UNAVAILABLE, pytorch
from kernels.contract import KernelError
from kernels.registry import get
from kernels.rules import rule as rules_of_updates
from kernels.rules.rule import Rule, get_rule
from kernels.vendor import cusparse

NUMBERS: dict[str, dict[str, float]] = {"sgd": {}, "adagrad": {"epsilon": 1e-20}, "adam": {}}
"""Rules that PyTorch has an optimizer of for sparse gradients, and numbers that tests and benchmarks take of each."""

WITHOUT = {"decay": 0.0, "rescale": 1.0, "clip": math.inf}
"""What these optimizers have not is left out so."""


def _scalars_by_name(rule: Rule, numbers: tuple) -> dict[str, float]:
    """Return the rule's scalars by name. Raises KernelError for a decay, rescale or clip unknown to PyTorch."""
    named = dict(zip(rule.numbers, numbers, strict=True))
    if refused := [f"{name} {named[name]}" for name, value in WITHOUT.items() if named[name] != value]:
        allowed = ", ".join(f"{name} {value}" for name, value in WITHOUT.items())
        raise KernelError(f"PyTorch's {rule.name} for sparse gradients has no {', '.join(refused)}; pass {allowed}.")
    return named


def _optimizer(rule: Rule, weights: Any, states: list, named: dict[str, float]) -> Any:
    """Return PyTorch's optimizer of the rule for tensor `weights`, with `states`, which it changes in place.

    `named` are the scalars of the rule: learning_rate, epsilon, ...
    """
    optim = pytorch().optim
    if rule.name == "sgd":
        return optim.SGD([weights], lr=named["learning_rate"])
    if rule.name == "adagrad":
        optimizer = optim.Adagrad([weights], lr=named["learning_rate"], eps=named["epsilon"])
        optimizer.state[weights]["sum"] = states[0]
        return optimizer
    betas = named["beta1"], named["beta2"]
    optimizer = optim.SparseAdam([weights], lr=named["learning_rate"], betas=betas, eps=named["epsilon"])
    optimizer.state[weights] = {"step": int(named["step"]) - 1, "exp_avg": states[0], "exp_avg_sq": states[1]}
    return optimizer


def _sort_by_row(columns: Any, segments: Any, rows: Any, values: Any, count: int) -> tuple[Any, Any, Any]:
    """Return (column of each entry, row starts [count + 1], values): a batch sorted by row, as tensors.

    It is given in column order: columns, segments, rows, values; `count` is the number of rows.
    """
    torch = pytorch()
    order = torch.argsort(rows, stable=True)
    starts = torch.zeros(count + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.bincount(rows, minlength=count), 0, out=starts[1:])
    return torch.repeat_interleave(columns, segments.diff().long())[order], starts, values[order]


def _step(rule: Rule, tensors: list, named: dict[str, float]) -> Callable[[], None]:
    """Return backward pass from g and optimizer step as a call without arguments; the forward pass is done here.

    `tensors` are weights, states, columns, segments, rows, values, g; calls change weights and states in place.
    """
    torch, count = pytorch(), len(rule.written)
    (table, *states), (columns, segments, rows, values, g) = tensors[:count], tensors[count:]
    if not rows.numel() or not g.numel():
        return lambda: None
    kept = {"freeze": False, "mode": "sum", "sparse": True, "include_last_offset": True}
    bag = torch.nn.EmbeddingBag.from_pretrained(table, **kept)
    indices, starts, ordered = _sort_by_row(columns, segments, rows, values, g.shape[0])
    scores = bag(indices, starts, per_sample_weights=ordered)
    optimizer = _optimizer(rule, bag.weight, states, named)

    def call() -> None:
        """Compute the sparse gradient of the table by PyTorch and take one step of its optimizer, in place."""
        optimizer.zero_grad(set_to_none=True)
        scores.backward(g, retain_graph=True)
        optimizer.step()

    return call


def _prepare(rule: Rule, *args: Any) -> Callable[[], None]:
    """Return a call without arguments: one optimizer step of `rule` by PyTorch on the CPU, in place.

    `args` are the operands of the fused kernel. Raises KernelError for scalars that PyTorch does not support.
    """
    count = len(args) - len(rule.numbers)
    named = _scalars_by_name(rule, args[count:])
    return _step(rule, list(map(pytorch().from_numpy, args[:count])), named)


def _prepare_cuda(rule: Rule, *args: Any) -> Callable[[], None]:
    """Return a call without arguments: one optimizer step of `rule` by PyTorch on a CUDA device, in place.

    `args` are the operands of the fused kernel. Raises KernelError for scalars that PyTorch does not support.
    """
    count = len(args) - len(rule.numbers)
    named = _scalars_by_name(rule, args[count:])
    with torch_cuda.stream():  # of the forward pass, which backward follows
        step = _step(rule, torch_cuda.tensors(*args[:count]), named)
    return torch_cuda.in_stream(step)


def _implementation(rule: Rule, prepare: Callable[..., Callable[[], None]], names: list[str]) -> Callable:
    """Return a function with the parameters `names` that prepares a step of `rule` by `prepare` and does it once."""

    def step(*args: Any) -> None:
        """Prepare the rule's step on the operands `args` and do it once; weights and states change in place."""
        prepare(rule, *args)()

    implementation: Any = step
    implementation.__module__ = __name__
    implementation.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return implementation


def _register(rule: Rule) -> None:
    """Register the competitors torch.<rule>_fused (CPU) and torch_cuda.<rule>_fused of a rule's fused kernel."""
    ours = get(f"{rule.name}_fused")
    numbers = dict(zip(rule.numbers, rule.example, strict=True)) | WITHOUT | NUMBERS[rule.name]
    plain = replace(rule, example=tuple(numbers[name] for name in rule.numbers))
    arguments = functools.partial(rules_of_updates.arguments_fused, plain)
    names = [name for name, _, _ in ours.parsed]
    for library, prepare, unavailable in (
        ("torch", _prepare, UNAVAILABLE),
        ("torch_cuda", _prepare_cuda, UNAVAILABLE or cusparse.UNAVAILABLE),
    ):
        implementation, on_cuda = _implementation(rule, prepare, names), library == "torch_cuda"
        register_competitor(
            library,
            ours.name,
            None if on_cuda else implementation,
            implementation if on_cuda else None,
            arguments=arguments,
            prepare=functools.partial(prepare, rule),
            unavailable=unavailable,
        )


for _name in NUMBERS:
    _register(get_rule(_name))
