"""Updates of weights of two bytes a value: computed in float32 from states and gradients of float32, rounded once.

The arguments are those of the kernels `<rule>_dense`, `<rule>_lazy`, `<rule>_fused` and `<rule>_replay`, with weights
that are float16, or bfloat16 as uint16. Arrays live on a device; what is not contiguous is seen, and written, through a
copy. Raises `KernelError` for what does not fit, and `TypeError` for arrays of the host.
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
    """Step every row: weights [D, N], states, gradient [D, N], then the rule's numbers."""

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        (gradients,) = gradient
        updates.lazy(update_rule, arrays, None, gradients, settings, rounding)

    _call("dense", rule, "gradient:f[D,N]", args, step)


def lazy(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Step the rows named: weights [D, N], states, rows int64 [U], gradient [U, N], then the rule's numbers."""

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        rows, gradients = gradient
        updates.lazy(update_rule, arrays, rows, gradients, settings, rounding)

    _call("lazy", rule, "rows:l[U] gradient:f[U,N]", args, step)


def fused(rule: str, *args: Any, rounding: Rounding = NEAREST, lengths: Lengths = UNKNOWN) -> None:
    """Step the rows that a batch touches: weights [D, N], states, the batch in column order, then the rule's numbers.

    Each of these rows is read and written once. `lengths` is what is known of the columns.
    """

    def step(update_rule: Rule, arrays: tuple, batch: tuple, settings: tuple) -> None:
        updates.fused(update_rule, arrays, batch, settings, lengths, rounding=rounding)

    _call("fused", rule, BATCH, args, step)


def replay(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Step rows by gradients of zero: weights [D, N], states, rows int64 [U], since int64 [U], table [S, numbers].

    The weights are rounded once, after the last step. `KernelError` for a rule that does not replay.
    """

    def step(update_rule: Rule, arrays: tuple, missed: tuple, _: tuple) -> None:
        updates.replay(update_rule, arrays, missed, rounding)

    if not get_rule(rule).replays:
        raise KernelError(f"There is no {rule}_replay: a step of {rule} without a gradient is not repeated.")
    _call("replay", rule, "rows:l[U] since:l[U] table:f[S,K]", args, step)


def _call(kind: str, rule: str, gradient: str, args: tuple, step: Callable) -> None:
    """Check a call and hand weights and states, what gives the gradient, and settings on to `step`."""
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
