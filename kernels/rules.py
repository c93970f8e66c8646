"""Update rules: a formula written once, made into kernels for every row, for named rows, and fused with the gradient.

A file of `kernels/updates` says in a `Rule` what an element's step is, as a formula that works on plain floats and on
vectors alike, and `register_kernels` makes from it:

    <rule>_dense  every row of the weights, by a gradient [D, N]
    <rule>_lazy   the rows named by `rows`, by a gradient [U, N]
    <rule>_fused  the rows named by `columns`, by the gradient (A.T @ g)[columns] of a batch in column order: the sum
                  over a column's entries stays in registers and is applied at once
"""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels import plan, steps
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.gather import RowLoop, cut_evenly, cut_rows, work_of
from kernels.registry import register
from kernels.tiles import LINE, cache_bytes, cut_elements, cut_sums, head_of, is_far_gradient, is_far_state

BATCH = "columns:l[U] segments:i[U+1] rows:i[z] permutation:i[z] data:f[z] g:f[R,N]"
"""What a fused kernel takes between the states and the numbers."""


def _as_given(*numbers: float) -> tuple[float, ...]:
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
    """What the formula takes, from the numbers that the kernel takes."""
    average: Callable | None = None

    @property
    def row_cost(self) -> int:
        """What a row's step costs, in entries of a sum."""
        return 4 + 4 * len(self.states)

    def work(self, elements: int) -> int:
        """The work of so many elements' steps, in the measure of `threads.is_serial`."""
        return elements * self.flops // 8

    @property
    def written(self) -> tuple[str, ...]:
        """The parameters that a call changes: weights and states."""
        return ("weights", *self.states)

    def bytes_row(self, s: Sizes) -> int:
        """Bytes of weights and state that a row's step reads and writes."""
        return 2 * s.value * (s.N + len(self.states) * (1 if self.average else s.N))

    def operands(self, gradient: str) -> str:
        """The operands of a kernel to which `gradient` gives the gradient."""
        state = "f[D]" if self.average else "f[D,N]"
        arrays = [f"{name}:{state}" for name in self.states]
        return " ".join(["weights:f[D,N]", *arrays, gradient, *[f"{name}:s" for name in self.numbers]])

    def split(self, args: tuple) -> tuple[tuple, tuple, tuple]:
        """(weights and states), (what gives the gradient), (settings) of a call."""
        first, last = len(self.written), len(args) - len(self.numbers)
        return args[:first], args[first:last], tuple(map(float, self.settings(*args[last:])))


# Definitions, in plain loops


def step_row(rule: Rule, row: int, weights, states, gradient, settings: tuple) -> None:
    """One row's step by `gradient` [N]."""
    pairs = [(np.float64(w), np.float64(g)) for w, g in zip(weights[row], gradient, strict=True)]
    shared = [np.float64(state[row]) for state in states] if rule.average else []
    mean = (sum(rule.average(w, g, *settings) for w, g in pairs) / len(pairs),) if rule.average else ()
    for n, (w, g) in enumerate(pairs):
        place = row if rule.average else (row, n)
        old = shared or [np.float64(state[place]) for state in states]
        weights[row, n], *after = rule.formula(w, *old, g, *mean, *settings)
        for state, value in zip(states, after, strict=True):
            state[place] = value


def reference_dense(rule: Rule, *args) -> None:
    """Every row."""
    (weights, *states), (gradient,), settings = rule.split(args)
    for row in range(weights.shape[0]):
        step_row(rule, row, weights, states, gradient[row], settings)


def reference_lazy(rule: Rule, *args) -> None:
    """The rows named by `rows`."""
    (weights, *states), (rows, gradient), settings = rule.split(args)
    for u, row in enumerate(rows):
        step_row(rule, row, weights, states, gradient[u], settings)


def reference_fused(rule: Rule, *args) -> None:
    """The rows named by `columns`."""
    (weights, *states), (columns, segments, rows, permutation, data, g), settings = rule.split(args)
    for u, column in enumerate(columns):
        gradient = np.zeros(g.shape[1])
        for k in range(segments[u], segments[u + 1]):
            gradient += data[permutation[k]] * g[rows[k]].astype(np.float64)
        step_row(rule, column, weights, states, gradient, settings)


# On the cores of this machine


def cpu_dense(rule: Rule, loop: RowLoop, *args) -> None:
    """Every row, in chunks of flat arrays where an element's step needs no other element."""
    arrays, (gradient,), settings = rule.split(args)
    rows, width = gradient.shape
    if not rule.average:
        arrays, gradient = [array.reshape(-1) for array in arrays], gradient.reshape(-1)
        rows, width = -(-gradient.size // steps.CHUNK), steps.CHUNK
    bounds = cut_evenly(rows, rule.work(gradient.size))
    loop(bounds, (width, gradient.itemsize), *arrays, gradient, *settings)


def cpu_lazy(rule: Rule, loop: RowLoop, *args) -> None:
    """The rows named by `rows`."""
    arrays, (rows, gradient), settings = rule.split(args)
    far = is_far_state(sum([array.nbytes for array in arrays]), gradient.itemsize * gradient.shape[1])
    bounds = cut_evenly(rows.size, rule.work(gradient.size))
    loop(bounds, (gradient.shape[1], gradient.itemsize, far), *arrays, rows, gradient, *settings)


def cpu_fused(rule: Rule, loop: RowLoop, *args) -> None:
    """The rows named by `columns`."""
    arrays, batch, settings = rule.split(args)
    columns, segments, rows, _, _, g = batch
    width = g.shape[1]
    bytes_row, bytes_state = g.itemsize * width, sum([array.nbytes for array in arrays])
    far = is_far_gradient(g.nbytes, bytes_row), is_far_state(bytes_state, bytes_row)
    # where rows of a line and more come from memory, more entries at once keep their rows waiting: 30 % slower
    head = 0 if bytes_row >= LINE and bytes_state > cache_bytes(3) else head_of(rows.size, columns.size, bytes_row)
    bounds = cut_rows(segments, work_of(rows.size, width) + rule.work(columns.size * width), rule.row_cost)
    loop(bounds, (width, g.itemsize, *far, head), *arrays, *batch, *settings)


# Cost


def cost_dense(rule: Rule, s: Sizes) -> Cost:
    """Every row of weights, state and gradient moves once."""
    return Cost(rule.flops * s.D * s.N, s.D * (rule.bytes_row(s) + s.N * s.value))


def cost_lazy(rule: Rule, s: Sizes) -> Cost:
    """Every touched row moves once."""
    return Cost(rule.flops * s.U * s.N, s.U * (8 + rule.bytes_row(s) + s.N * s.value))


def cost_fused(rule: Rule, s: Sizes) -> Cost:
    """Every touched row and every row of g moves once; the gradient is nowhere."""
    entries = s.z * (2 * s.index + s.value) + (s.U + 1) * s.index + s.R * s.N * s.value
    flops = 2 * s.z * s.N + rule.flops * s.U * s.N
    return Cost(flops, entries + s.U * (8 + rule.bytes_row(s)), s.z * s.N * s.value)


# Arguments


def _arrays(rule: Rule, case: Case) -> list[np.ndarray]:
    shape = (case.D,) if rule.average else (case.D, case.N)
    states = [case.dense(*shape, salt=2 + number) for number in range(len(rule.states))]
    squared = [np.square(s) if name in rule.squares else s for name, s in zip(rule.states, states, strict=True)]
    return [case.dense(case.D, case.N), *squared]


def arguments_dense(rule: Rule, case: Case) -> tuple:
    """Weights, states, and a gradient for all of them."""
    return *_arrays(rule, case), case.dense(case.D, case.N, salt=1), *rule.example


def arguments_lazy(rule: Rule, case: Case) -> tuple:
    """Weights, states, and a gradient for the columns that A touches."""
    rows = np.unique(case.indices).astype(np.int64)
    return *_arrays(rule, case), rows, case.dense(rows.size, case.N, salt=1), *rule.example


def arguments_fused(rule: Rule, case: Case) -> tuple:
    """Weights, states, the plan of A, its values, and a dense g."""
    p = plan.build(case.indptr, case.indices, case.D)
    g = case.dense(case.R, case.N, salt=1)
    return *_arrays(rule, case), p.columns, p.segments, p.rows, p.permutation, case.data, g, *rule.example


# Registration


def _named(rule: Rule, function: Callable, names: list[str], *bound) -> Callable:
    """`function` with `bound` filled in, under the parameters `names` and the module of the rule."""
    made = functools.partial(function, rule, *bound)
    functools.update_wrapper(made, function)
    made.__module__ = rule.formula.__module__
    made.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return made


def _register(
    rule: Rule, kind: str, gradient: str, emit: Callable, cut: Callable, functions: tuple[Callable, ...]
) -> None:
    reference, cpu, cost, arguments = functions
    operands = rule.operands(gradient)
    names = [operand.partition(":")[0] for operand in operands.split()]
    loop = RowLoop(emit(rule), steps, sys.modules[rule.formula.__module__], cut=cut, name=f"{rule.name}_{kind}")
    register(
        Kernel(
            name=f"{rule.name}_{kind}",
            operands=operands,
            reference=_named(rule, reference, names),
            cpu=_named(rule, cpu, names, loop),
            gpu=None,
            cost=functools.partial(cost, rule),
            arguments=functools.partial(arguments, rule),
            writes=rule.written,
        )
    )


def register_kernels(rule: Rule) -> None:
    """Register `<rule>_dense`, `<rule>_lazy` and `<rule>_fused`."""
    dense = reference_dense, cpu_dense, cost_dense, arguments_dense
    lazy = reference_lazy, cpu_lazy, cost_lazy, arguments_lazy
    fused = reference_fused, cpu_fused, cost_fused, arguments_fused
    _register(rule, "dense", "gradient:f[D,N]", steps.dense, cut_elements, dense)
    _register(rule, "lazy", "rows:l[U] gradient:f[U,N]", steps.lazy, cut_elements, lazy)
    _register(rule, "fused", BATCH, steps.fused, cut_sums, fused)
