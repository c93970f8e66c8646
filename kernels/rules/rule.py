"""Update rules: a formula written once, made into kernels for all rows, for given rows, and fused with the gradient.

A file of `kernels/updates` states in a `Rule` the step of an element, as a formula that works on plain floats and on
vectors, and `register_kernels` makes from it:

    <rule>_dense  update every row of the weights by a gradient [D, N]
    <rule>_lazy   update the rows `rows` by a gradient [U, N]
    <rule>_fused  update the rows `columns` by the gradient (A.T @ g)[columns] of a batch in column order: the sum over
    a
                  column's entries stays in registers and is applied at once
    <rule>_replay, if the rule supports it: update the rows `rows` by gradients of zero, one step for each row of
    `table`
                  [S, numbers] from row `since[u]` on; a row of the table has the settings of a step, and weights and
                  states stay in registers from the first to the last
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels import reasons
from kernels.contract import Kernel, KernelError, Sizes
from kernels.gpu import updates
from kernels.registry import get, register
from kernels.rules import steps, twins
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import cut_elements, cut_sums

BATCH = "columns:l[U]<!D segments:i[U+1]^z rows:i[z]<R values:f[z] g:f[R,N]"
"""What a fused kernel takes between the states and the numbers."""


def _as_given(*numbers: float) -> tuple[float, ...]:
    """Return the scalars unchanged: the default of `Rule.settings`."""
    return numbers


@dataclass(frozen=True)
class Rule:
    """An optimizer's step for one element.

    `formula(w, *states, g, *settings)` gives the new `(w, *states)`. With `average`, which gives of an element what is
    averaged over its row, the formula is `formula(w, *states, g, mean, *settings)`, the states have one number a row,
    and their new values must not depend on the element.
    """

    name: str
    formula: Callable
    states: tuple[str, ...]
    numbers: tuple[str, ...]
    example: tuple[float, ...]
    """Numbers for tests and benchmarks."""
    flops: int
    """Operations of an element's step."""
    squares: tuple[str, ...] = ()
    """States that are sums of squares and never negative."""
    settings: Callable[..., tuple[float, ...]] = _as_given
    """What the formula takes, from the numbers that the kernel takes; rescale and clip, as given, are the last two."""
    average: Callable | None = None
    coast: Callable[..., tuple[float, ...] | None] | None = None
    """What a step without gradient does, from the settings: (a,) for w <- a w, the states unchanged, or (a, b, c, d)
    for (w, s) <- (a w + b s, c w + d s), s the only state; None where it is neither."""
    replays: bool = False
    """Whether there is a kernel that repeats steps without gradient."""
    is_linear: bool = False
    """Whether steps by several gradients, one after the other, come to the step by their sum if a step without gradient
    changes nothing."""
    settles: bool = False
    """Whether one step without gradient makes of w what the states say, and leaves the states alone: then many do no
    more than the last of them."""

    @functools.cached_property
    def row_cost(self) -> int:
        """Cost of a row's step, in entries of a sum."""
        return 4 + 4 * len(self.states)

    def work(self, rows: int, width: int) -> int:
        """Return the work of the steps of `rows` rows of `width` elements, in multiply-adds as `threads.is_serial`
        counts them.

        Measured as in `kernels.vector.gather.work_of`, 7,000 rows with AdaGrad: 19 and 36 us with N = 1 and 16.
        """
        return rows * (8 * len(self.written) + width * self.flops // 8)

    @functools.cached_property
    def written(self) -> tuple[str, ...]:
        """Parameters that a call changes: weights and states."""
        return ("weights", *self.states)

    def bytes_row(self, s: Sizes) -> int:
        """Return the bytes of weights and states that a row's step reads and writes."""
        return 2 * s.value * (s.N + len(self.states) * (1 if self.average else s.N))

    def operands(self, gradient: str) -> str:
        """Return the operands of a kernel whose gradient is given by the operands `gradient`, or a table instead of
        scalars.
        """
        state = "f[D]" if self.average else "f[D,N]"
        arrays = [f"{name}:{state}" for name in self.states]
        numbers = [] if "table:" in gradient else [f"{name}:s" for name in self.numbers]
        return " ".join(["weights:f[D,N]", *arrays, gradient, *numbers])

    def split(self, args: tuple) -> tuple[tuple, tuple, tuple]:
        """Split the operands of a call into (weights and states), (arrays of the gradient), (settings)."""
        first, last = self._places
        return args[:first], args[first:last], self.set(args[last:])

    def set(self, numbers: tuple) -> tuple[float, ...]:
        """Return the constants of the formula for one step, from the scalars of a call (learning rate, decay, ...)."""
        return tuple(map(float, numbers if self.settings is _as_given else self.settings(*numbers)))

    @functools.cached_property
    def _places(self) -> tuple[int, int]:
        """Number of weights and states among the operands, and where scalars begin, counted from the end."""
        return len(self.written), -len(self.numbers)


# Registration


def _named(rule: Rule, function: Callable, names: list[str], *bound) -> Callable:
    """Return `function` with `bound` filled in, with the parameters `names` and the module of the rule."""
    twin: Any = functools.partial(function, rule, *bound)
    functools.update_wrapper(twin, function)
    twin.__module__ = rule.formula.__module__
    twin.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return twin


def _register(rule: Rule, kind: str, gradient: str, emit: Callable, cut: Callable, starts: int | None = None) -> None:
    """Register one kernel of a rule."""
    reference, cpu, cost, arguments = (getattr(twins, f"{part}_{kind}") for part in twins.PARTS)
    operands = rule.operands(gradient)
    names = [operand.partition(":")[0] for operand in operands.split()]
    loop = RowLoop(emit(rule), cut=cut, starts=starts, per_row=rule.row_cost, name=f"{rule.name}_{kind}")
    register(
        Kernel(
            name=f"{rule.name}_{kind}",
            operands=operands,
            reference=_named(rule, reference, names),
            cpu=_named(rule, cpu, names, loop),
            gpu=_named(rule, getattr(updates, f"gpu_{kind}"), names),
            cost=functools.partial(cost, rule),
            arguments=functools.partial(arguments, rule),
            bound=functools.partial(twins.bound_dense, rule, loop) if kind == "dense" else None,
            writes=rule.written,
            why_below="" if kind == "dense" else reasons.FOUND_ROWS,
        )
    )


def register_kernels(rule: Rule) -> None:
    """Register `<rule>_dense`, `<rule>_lazy`, `<rule>_fused`, and `<rule>_replay` if the rule has one."""
    example = dict(zip(rule.numbers, rule.example, strict=True))
    if rule.settings(*rule.example)[-2:] != (example.get("rescale"), example.get("clip")):
        raise KernelError(f"{rule.name}: the last two settings must be rescale and clip, as given.")
    _rules[rule.name] = rule
    updates.register_source(rule)
    _register(rule, "dense", "gradient:f[D,N]", steps.dense, cut_elements)
    _register(rule, "lazy", "rows:l[U]<!D gradient:f[U,N]", steps.lazy, cut_elements)
    _register(rule, "fused", BATCH, steps.fused, cut_sums, starts=len(rule.written) + 1)
    if rule.replays:
        _register(rule, "replay", "rows:l[U]<!D since:l[U]<S+1 table:f[S,K]", steps.replay, cut_elements)


_rules: dict[str, Rule] = {}


def get_rule(name: str) -> Rule:
    """Return the rule called `name`. Raises KernelError that lists the kernels."""
    if name not in _rules:
        get(f"{name}_dense")
    return _rules[name]
