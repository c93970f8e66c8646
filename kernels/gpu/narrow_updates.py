"""Updates of weights of two bytes per value: computed in float32 from float32 states and gradients, rounded once.

Arguments are those of the kernels `<rule>_dense`, `<rule>_lazy`, `<rule>_fused` and `<rule>_replay`, with weights that
are float16, or bfloat16 as uint16. Arrays are on a device; non-contiguous ones are copied. Raises KernelError for
invalid operands, and TypeError for host arrays.
"""

from collections.abc import Callable
from typing import Any

from kernels.contract import KernelError
from kernels.gpu import updates
from kernels.gpu.narrow_calls import launch
from kernels.gpu.rounding import NEAREST, Rounding
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.rules.rule import BATCH, Rule, get_rule


def dense(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Update every row: weights [D, N], states, gradient [D, N], then the rule's scalars."""

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        (gradients,) = gradient
        updates.lazy(update_rule, arrays, None, gradients, settings, rounding)

    _call("dense", rule, "gradient:f[D,N]", args, step)


def lazy(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Update the rows given: weights [D, N], states, rows int64 [U], gradient [U, N], then the rule's scalars."""

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        rows, gradients = gradient
        updates.lazy(update_rule, arrays, rows, gradients, settings, rounding)

    _call("lazy", rule, "rows:l[U] gradient:f[U,N]", args, step)


def fused(rule: str, *args: Any, rounding: Rounding = NEAREST, lengths: Lengths = UNKNOWN) -> None:
    """Update the active rows of a batch: weights [D, N], states, the batch in column order, then the rule's scalars.

    Each row is read and written once. `lengths` is what is known of the column lengths.
    """

    def step(update_rule: Rule, arrays: tuple, batch: tuple, settings: tuple) -> None:
        updates.fused(update_rule, arrays, batch, settings, lengths, rounding=rounding)

    _call("fused", rule, BATCH, args, step)


def replay(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Repeat steps without gradient: weights [D, N], states, rows int64 [U], since int64 [U], table [S, numbers].

    Weights are rounded once, after the last step. Raises KernelError for a rule without replay.
    """

    def step(update_rule: Rule, arrays: tuple, missed: tuple, _: tuple) -> None:
        updates.replay(update_rule, arrays, missed, rounding)

    if not get_rule(rule).replays:
        raise KernelError(f"There is no {rule}_replay: a step of {rule} without a gradient is not repeated.")
    _call("replay", rule, "rows:l[U] since:l[U] table:f[S,K]", args, step)


def _call(kind: str, rule: str, gradient: str, args: tuple, step: Callable) -> None:
    """Validate a call and pass weights and states, the arrays of the gradient, and the settings to `step`."""
    update_rule = get_rule(rule)
    numbers = update_rule.numbers if kind != "replay" else ()
    operands = [text for text in update_rule.operands(gradient).split() if "[" in text]
    operands[0] = operands[0].replace(":f", ":h")
    count, name, first = len(operands), f"{rule}_{kind}", len(update_rule.written)
    if len(args) != count + len(numbers):
        signature = " ".join((*operands, *numbers))
        raise KernelError(f"{name} takes {count + len(numbers)} arguments ({signature}), not {len(args)}.")
    settings = tuple(map(float, update_rule.settings(*args[count:]))) if numbers else ()
    launch(
        name,
        " ".join(operands),
        update_rule.written,
        args[:count],
        lambda *ready: step(update_rule, ready[:first], ready[first:], settings),
    )
