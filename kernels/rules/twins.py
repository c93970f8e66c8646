"""Kernels of every update rule: references, CPU implementations, costs and operands, with the rule as first parameter.

`kernels.rules.rule` fills in the rule and registers them.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernels import plan
from kernels.contract import Case, Cost, Sizes
from kernels.rules import steps
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import LINE, MANY, cache_bytes, head_of, is_far_gradient, is_far_state

if TYPE_CHECKING:
    from kernels.rules.rule import Rule

PARTS = ("reference", "cpu", "cost", "arguments")
"""Parts of a kernel: of each kind, dense, lazy, fused and replay, there is `<part>_<kind>` below."""

# Definitions, in plain loops


def step_row(rule: "Rule", row: int, weights, states, gradient, settings: tuple) -> None:
    """Update one row by `gradient` [N], in place."""
    pairs = [(np.float64(w), np.float64(g)) for w, g in zip(weights[row], gradient, strict=True)]
    shared = [np.float64(state[row]) for state in states] if rule.average else []
    mean = (sum(rule.average(w, g, *settings) for w, g in pairs) / len(pairs),) if rule.average else ()
    for n, (w, g) in enumerate(pairs):
        place = row if rule.average else (row, n)
        old = shared or [np.float64(state[place]) for state in states]
        weights[row, n], *after = rule.formula(w, *old, g, *mean, *settings)
        for state, value in zip(states, after, strict=True):
            state[place] = value


def reference_dense(rule: "Rule", *args) -> None:
    """Take a step of a rule on all rows of weights and states in plain loops, in place."""
    (weights, *states), (gradient,), settings = rule.split(args)
    for row in range(weights.shape[0]):
        step_row(rule, row, weights, states, gradient[row], settings)


def reference_lazy(rule: "Rule", *args) -> None:
    """Take a step of a rule on the rows `rows` of weights and states in plain loops, in place."""
    (weights, *states), (rows, gradient), settings = rule.split(args)
    for u, row in enumerate(rows):
        step_row(rule, row, weights, states, gradient[u], settings)


def reference_replay(rule: "Rule", *args) -> None:
    """Apply the zero-gradient steps that each of `rows` has missed in plain loops, in place."""
    arrays, (rows, since, table) = args[: len(rule.written)], args[len(rule.written) :]
    nought = np.zeros(arrays[0].shape[1])
    for row, first in zip(rows, since, strict=True):
        for settings in table[first:].tolist():
            step_row(rule, row, arrays[0], arrays[1:], nought, settings)


def reference_fused(rule: "Rule", *args) -> None:
    """Take a step of a rule on the rows `columns` by (A.T @ g)[columns] in plain loops, in place."""
    (weights, *states), (columns, segments, rows, values, g), settings = rule.split(args)
    for u, column in enumerate(columns):
        gradient = np.zeros(g.shape[1])
        for k in range(segments[u], segments[u + 1]):
            gradient += values[k] * g[rows[k]].astype(np.float64)
        step_row(rule, column, weights, states, gradient, settings)


# On the cores of this machine


def _in_chunks(rule: "Rule", arrays: tuple) -> tuple[tuple[int, int], int, int, tuple]:
    """Return (shape of a row, rows, work, arrays) of a dense update, flattened if the step of an element needs no
    other one.
    """
    rows, width = arrays[-1].shape
    itemsize = arrays[-1].itemsize
    if not rule.average:
        arrays = tuple([array.reshape(-1) for array in arrays])
        rows, width = -(-arrays[-1].size // steps.CHUNK), steps.CHUNK
    return (width, itemsize), rows, rule.work(rows, width), arrays


def cpu_dense(rule: "Rule", loop: RowLoop, *args) -> None:
    """Take a step of a rule on all rows of weights and states on the CPU, in place."""
    arrays, gradient, settings = rule.split(args)
    shape, rows, work, flat = _in_chunks(rule, (*arrays, *gradient))
    loop.run(shape, rows, work, *flat, *steps.given(settings))


def bound_dense(rule: "Rule", loop: RowLoop, *arrays: np.ndarray) -> Callable[..., None]:
    """Return the dense update of these arrays (the last is the gradient) as a function of the scalars."""
    shape, rows, work, flat = _in_chunks(rule, arrays)
    settings = functools.lru_cache(1)(lambda *numbers: steps.given(rule.set(numbers)))
    run = functools.partial(loop.bind(shape, rows, work), *flat)
    return lambda *numbers: run(*settings(*numbers))


def _bytes_state(rule: "Rule", arrays: tuple) -> int:
    """Return the bytes of weights and states."""
    return sum([array.nbytes for array in arrays]) if rule.average else len(arrays) * arrays[0].nbytes


def cpu_lazy(rule: "Rule", loop: RowLoop, *args) -> None:
    """Take a step of a rule on the rows `rows` of weights and states on the CPU, in place."""
    arrays, (rows, gradient), settings = rule.split(args)
    width = gradient.shape[1]
    far = is_far_state(_bytes_state(rule, arrays), gradient.itemsize * width)
    shape, work = (width, gradient.itemsize, far), rule.work(rows.size, width)
    loop.run(shape, rows.size, work, *arrays, rows, gradient, *steps.given(settings))


def cpu_fused(rule: "Rule", loop: RowLoop, *args) -> None:
    """Take a step of a rule on the rows `columns` by (A.T @ g)[columns] on the CPU, in place."""
    arrays, batch, settings = rule.split(args)
    columns, _, rows, _, g = batch
    width, in_a_column = g.shape[1], min(rows.size // max(columns.size, 1), MANY)
    shape = shape_of_fused(g.shape, g.itemsize, _bytes_state(rule, arrays), in_a_column)
    work = work_of(rows.size, width, columns.size) + rule.work(columns.size, width)
    loop.run(shape, columns.size, work, *arrays, *batch, *steps.given(settings))


@functools.lru_cache(4096)
def shape_of_fused(slope: tuple[int, int], itemsize: int, bytes_state: int, in_a_column: int) -> tuple:
    """Return the arguments of `cut_sums` for sums of rows of the gradient of the scores; cached."""
    rows, width = slope
    bytes_row = itemsize * width
    far = is_far_gradient(rows * bytes_row, bytes_row), is_far_state(bytes_state, bytes_row)
    # where rows of a line and more come from memory, more entries at once keep their rows waiting: 30 % slower
    head = 0 if bytes_row >= LINE and bytes_state > cache_bytes(3) else head_of(in_a_column, 1, bytes_row)
    return width, itemsize, *far, head


def cpu_replay(rule: "Rule", loop: RowLoop, *args) -> None:
    """Apply the zero-gradient steps that each of `rows` has missed on the CPU, in place."""
    weights, rows, since, table = args[0], *args[-3:]
    width, steps_missed = weights.shape[1], len(table) * rows.size - int(since.sum())
    loop.run((width, weights.itemsize), rows.size, rule.work(steps_missed, width), *args)


# Cost


def cost_dense(rule: "Rule", s: Sizes) -> Cost:
    """Return the cost: every row of weights, states and gradient moves once."""
    return Cost(rule.flops * s.D * s.N, s.D * (rule.bytes_row(s) + s.N * s.value))


def cost_lazy(rule: "Rule", s: Sizes) -> Cost:
    """Return the cost: every active row moves once."""
    return Cost(rule.flops * s.U * s.N, s.U * (8 + rule.bytes_row(s) + s.N * s.value))


def cost_replay(rule: "Rule", s: Sizes) -> Cost:
    """Return the cost of one missed step; more of them add flops only."""
    return Cost(rule.flops * s.U * s.N, s.U * (16 + rule.bytes_row(s)))


def cost_fused(rule: "Rule", s: Sizes) -> Cost:
    """Return the cost: every active row and every row of g moves once; the gradient is never stored."""
    entries = s.z * (s.index + s.value) + (s.U + 1) * s.index + s.R * s.N * s.value
    flops = 2 * s.z * s.N + rule.flops * s.U * s.N
    work = ("entry", s.z * s.lines), ("row", s.U * s.lines)
    return Cost(flops, entries + s.U * (8 + rule.bytes_row(s)), s.z * s.N * s.value, work)


# Arguments


def _arrays(rule: "Rule", case: Case) -> list[np.ndarray]:
    """Return [weights, *states] with random values, for tests and benchmarks."""
    shape = (case.D,) if rule.average else (case.D, case.N)
    states = [case.dense(*shape, salt=2 + number) for number in range(len(rule.states))]
    squared = [np.square(s) if name in rule.squares else s for name, s in zip(rule.states, states, strict=True)]
    return [case.dense(case.D, case.N), *squared]


def arguments_dense(rule: "Rule", case: Case) -> tuple:
    """Build operands: weights, states, and a gradient for all rows."""
    return *_arrays(rule, case), case.dense(case.D, case.N, salt=1), *rule.example


def arguments_lazy(rule: "Rule", case: Case) -> tuple:
    """Build operands: weights, states, and a gradient for the columns of A's entries."""
    rows = np.unique(case.indices).astype(np.int64)
    return *_arrays(rule, case), rows, case.dense(rows.size, case.N, salt=1), *rule.example


def arguments_fused(rule: "Rule", case: Case) -> tuple:
    """Build operands: weights, states, the plan of A, its values, and a dense g."""
    p = plan.build(case.indptr, case.indices, case.D)
    g = case.dense(case.R, case.N, salt=1)
    return *_arrays(rule, case), p.columns, p.segments, p.rows, p.in_order(case.data), g, *rule.example


def arguments_replay(rule: "Rule", case: Case) -> tuple:
    """Build operands: weights, states, the columns of A's entries, and up to five steps that each missed."""
    rows = np.unique(case.indices).astype(np.int64)
    since = np.random.default_rng(case.seed).integers(0, 6, rows.size)
    table = np.tile(rule.settings(*rule.example), (5, 1)) * np.linspace(1, 0.5, 5)[:, None]  # [S, numbers]
    return *_arrays(rule, case), rows, since, table.astype(case.dtype)
