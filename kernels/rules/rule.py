"""Update rules: a formula written once, made into kernels for all rows, for given rows, and fused with the gradient.

A file of `kernels/updates` states in a `Rule` the step of an element, as a formula that works on plain floats and on
vectors, and `register_rule` makes from it:

    <rule>_dense  update every row of the weights by a gradient [D, N]
    <rule>_lazy   update the rows `rows` by a gradient [U, N]
    <rule>_fused  update the rows `columns` by the gradient (A.T @ g)[columns] of a batch in column order: the sum over
    a
                  column's entries stays in registers and is applied at once
    <rule>_step_by_step, if the rule supports it: update the rows `rows` by gradients of zero, one step for each row of
    `table`
                  [S, numbers] from row `since[u]` on; a row of the table has the settings of a step, and weights and
                  states stay in registers from the first to the last
"""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import plan
from kernels.contract import Case, Cost, Kernel, KernelError, Sizes
from kernels.gpu import updates
from kernels.registry import get, register
from kernels.rules import steps
from kernels.threads import LEAST_WORK
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import LINE, MANY, cache_bytes, cut_elements, cut_sums, head_of, is_far_gradient, is_far_state

PARTS = ("reference", "cpu", "cost", "arguments")
"""Parts of a kernel: of each kind, dense, lazy, fused and step_by_step, there is `<part>_<kind>` below."""

# Definitions, in plain loops


def _without_unused(settings: tuple[float, ...]) -> tuple[float, ...]:
    """Return the settings for compiled code: without the last two, rescale and clip, if these are `UNCHANGED`."""
    return settings[:-2] if settings[-2:] == steps.UNCHANGED else settings


def step_row(rule: "Rule", row: int, weights, states, gradient, settings: tuple) -> None:
    """Update row `row` of weights [D, N] and `states` in place by `gradient` [N], computed in float64."""
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
    """Update all rows of weights and states in place by a gradient [D, N], in plain loops.

    `args` are the kernel's operands: weights, states, gradient, scalars.
    """
    (weights, *states), (gradient,), settings = rule.split(args)
    for row in range(weights.shape[0]):
        step_row(rule, row, weights, states, gradient[row], settings)


def reference_lazy(rule: "Rule", *args) -> None:
    """Update the rows `rows` of weights and states in place by a gradient [U, N], in plain loops.

    `args` are the kernel's operands: weights, states, rows, gradient, scalars.
    """
    (weights, *states), (rows, gradient), settings = rule.split(args)
    for u, row in enumerate(rows):
        step_row(rule, row, weights, states, gradient[u], settings)


def reference_step_by_step(rule: "Rule", *args) -> None:
    """Apply the zero-gradient steps that each of `rows` has missed, in place, in plain loops.

    `args` are weights, states, rows [U], since [U] (first missed step of each) and table [S, settings].
    """
    arrays, (rows, since, table) = args[: len(rule.written)], args[len(rule.written) :]
    nought = np.zeros(arrays[0].shape[1])
    for row, first in zip(rows, since, strict=True):
        for settings in table[first:].tolist():
            step_row(rule, row, arrays[0], arrays[1:], nought, settings)


def reference_fused(rule: "Rule", *args) -> None:
    """Update the rows `columns` in place by the gradient (A.T @ g)[columns], in plain loops.

    `args` are weights, states, columns, segments, rows, values, g and scalars.
    """
    (weights, *states), (columns, segments, rows, values, g), settings = rule.split(args)
    for u, column in enumerate(columns):
        gradient = np.zeros(g.shape[1])
        for k in range(segments[u], segments[u + 1]):
            gradient += values[k] * g[rows[k]].astype(np.float64)
        step_row(rule, column, weights, states, gradient, settings)


# On the cores of this machine


def _in_chunks(rule: "Rule", arrays: tuple) -> tuple[tuple[int, int], int, int, tuple]:
    """Return ((width, itemsize) of a row of the loop, rows, work, arrays) of a dense update.

    Arrays [D, N] are flattened and rows are chunks of CHUNK elements, unless the rule averages over a row.
    """
    rows, width = arrays[-1].shape
    itemsize = arrays[-1].itemsize
    if not rule.average:
        arrays = tuple([array.reshape(-1) for array in arrays])
        rows, width = -(-arrays[-1].size // steps.CHUNK), steps.CHUNK
    return (width, itemsize), rows, rule.work(rows, width), arrays


def cpu_dense(rule: "Rule", loop: RowLoop, *args) -> None:
    """Update all rows of weights and states in place by a gradient [D, N], on the CPU; `args` as `reference_dense`."""
    arrays, gradient, settings = rule.split(args)
    shape, rows, work, flat = _in_chunks(rule, (*arrays, *gradient))
    loop.run(shape, rows, work, *flat, *_without_unused(settings))


def _bytes_state(rule: "Rule", arrays: tuple) -> int:
    """Return the bytes of weights and states, the `arrays` of a call of `rule`."""
    return sum([array.nbytes for array in arrays]) if rule.average else len(arrays) * arrays[0].nbytes


def cpu_lazy(rule: "Rule", loop: RowLoop, *args) -> None:
    """Update the rows `rows` of weights and states in place, on the CPU; `args` as `reference_lazy`."""
    arrays, (rows, gradient), settings = rule.split(args)
    width = gradient.shape[1]
    far = is_far_state(_bytes_state(rule, arrays), gradient.itemsize * width)
    shape, work = (width, gradient.itemsize, far), rule.work(rows.size, width)
    loop.run(shape, rows.size, work, *arrays, rows, gradient, *_without_unused(settings))


def cpu_fused(rule: "Rule", loop: RowLoop, *args) -> None:
    """Update the rows `columns` in place by (A.T @ g)[columns], on the CPU; `args` as `reference_fused`."""
    arrays, batch, settings = rule.split(args)
    columns, _, rows, _, g = batch
    width, in_a_column = g.shape[1], min(rows.size // max(columns.size, 1), MANY)
    shape = shape_of_fused(g.shape, g.itemsize, _bytes_state(rule, arrays), in_a_column)
    work = work_of(rows.size, width, columns.size) + rule.work(columns.size, width)
    loop.run(shape, columns.size, work, *arrays, *batch, *_without_unused(settings))


@functools.lru_cache(4096)
def shape_of_fused(slope: tuple[int, int], itemsize: int, bytes_state: int, in_a_column: int) -> tuple:
    """Return the arguments of `cut_sums` for a fused update: (width, itemsize, far_rows, far_state, head); cached.

    `slope` is the shape of g [R, N], `in_a_column` the mean number of entries of a column, at most `MANY`.
    """
    rows, width = slope
    bytes_row = itemsize * width
    far = is_far_gradient(rows * bytes_row, bytes_row), is_far_state(bytes_state, bytes_row)
    # where rows of a line and more come from memory, more entries at once keep their rows waiting: 30 % slower
    head = 0 if bytes_row >= LINE and bytes_state > cache_bytes(3) else head_of(in_a_column, 1, bytes_row)
    return width, itemsize, *far, head


def cpu_step_by_step(rule: "Rule", loop: RowLoop, *args) -> None:
    """Apply the zero-gradient steps that each of `rows` has missed, in place, on the CPU.

    `args` as `reference_step_by_step`.
    """
    weights, rows, since, table = args[0], *args[-3:]
    width, steps_missed = weights.shape[1], len(table) * rows.size - int(since.sum())
    loop.run((width, weights.itemsize), rows.size, rule.work(steps_missed, width), *args)


# Cost


def cost_dense(rule: "Rule", s: Sizes) -> Cost:
    """Return flops and bytes of a dense update: every row of weights, states and gradient moves once."""
    return Cost(rule.flops * s.D * s.N, s.D * (rule.bytes_row(s) + s.N * s.value))


def cost_lazy(rule: "Rule", s: Sizes) -> Cost:
    """Return flops and bytes of a lazy update by `rule` of s.U rows of s.N values: every active row moves once."""
    return Cost(rule.flops * s.U * s.N, s.U * (8 + rule.bytes_row(s) + s.N * s.value))


def cost_step_by_step(rule: "Rule", s: Sizes) -> Cost:
    """Return flops and bytes of one missed step of s.U rows by `rule`; more steps add flops only."""
    return Cost(rule.flops * s.U * s.N, s.U * (16 + rule.bytes_row(s)))


def cost_fused(rule: "Rule", s: Sizes) -> Cost:
    """Return flops and bytes of a fused update: active rows and rows of g move once; the gradient is never stored."""
    entries = s.z * (s.index + s.value) + (s.U + 1) * s.index + s.R * s.N * s.value
    flops = 2 * s.z * s.N + rule.flops * s.U * s.N
    work = ("entry", s.z * s.lines), ("row", s.U * s.lines)
    return Cost(flops, entries + s.U * (8 + rule.bytes_row(s)), s.z * s.N * s.value, work)


# Arguments


def _arrays(rule: "Rule", case: Case) -> list[np.ndarray]:
    """Return [weights, *states] of random values for a test case; states that are sums of squares are not negative."""
    shape = (case.D,) if rule.average else (case.D, case.N)
    states = [case.dense(*shape, salt=2 + number) for number in range(len(rule.states))]
    squared = [np.square(s) if name in rule.squares else s for name, s in zip(rule.states, states, strict=True)]
    return [case.dense(case.D, case.N), *squared]


def arguments_dense(rule: "Rule", case: Case) -> tuple:
    """Build operands of a call from `case`: weights, states, a gradient [D, N] and the rule's example scalars."""
    return *_arrays(rule, case), case.dense(case.D, case.N, salt=1), *rule.example


def arguments_lazy(rule: "Rule", case: Case) -> tuple:
    """Build operands from `case`: weights, states, A's columns as rows, their gradient, and scalars."""
    rows = np.unique(case.indices).astype(np.int64)
    return *_arrays(rule, case), rows, case.dense(rows.size, case.N, salt=1), *rule.example


def arguments_fused(rule: "Rule", case: Case) -> tuple:
    """Build operands from `case`: weights, states, A's plan and values in column order, a dense g, scalars."""
    p = plan.build(case.indptr, case.indices, case.D)
    g = case.dense(case.R, case.N, salt=1)
    return *_arrays(rule, case), p.columns, p.segments, p.rows, p.in_order(case.data), g, *rule.example


def arguments_step_by_step(rule: "Rule", case: Case) -> tuple:
    """Build operands from `case`: weights, states, A's columns, their first missed steps, 5 steps' table."""
    rows = np.unique(case.indices).astype(np.int64)
    since = np.random.default_rng(case.seed).integers(0, 6, rows.size)
    table = np.tile(rule.settings(*rule.example), (5, 1)) * np.linspace(1, 0.5, 5)[:, None]  # [S, numbers]
    return *_arrays(rule, case), rows, since, table.astype(case.dtype)


BATCH = "columns:l[U]<!D segments:i[U+1]^z rows:i[z]<R values:f[z] g:f[R,N]"
"""What a fused kernel takes between the states and the numbers."""


def _as_given(*numbers: float) -> tuple[float, ...]:
    """Return `numbers`, the scalars of a call, unchanged: the default of `Rule.settings`."""
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
    closed_form: Callable[..., tuple[float, ...] | None] | None = None
    """What a step without gradient does, from the settings: (a,) for w <- a w, the states unchanged, or (a, b, c, d)
    for (w, s) <- (a w + b s, c w + d s), s the only state; None where it is neither."""
    at_rest: Callable[..., float | None] | None = None
    """What a step without gradient multiplies w by while all states are zero, which they then stay, from the settings;
    None if it is no multiplication. A row whose w is zero, too, stays as it is under every rule with `step_by_step`."""
    step_by_step: bool = False
    """Whether there is a kernel that repeats steps without gradient."""
    is_linear: bool = False
    """Whether steps by several gradients, one after the other, come to the step by their sum if a step without gradient
    changes nothing."""
    last_step: bool = False
    """Whether a step without gradient computes w from the states alone and keeps them, so that the last of several
    missed steps has the effect of all."""

    @functools.cached_property
    def row_cost(self) -> int:
        """Return the cost of a row's step, in stored entries of a sum."""
        return 4 + 4 * len(self.states)

    def work(self, rows: int, width: int) -> int:
        """Return the work of the steps of `rows` rows of `width` elements, in the multiply-adds of `threads.is_serial`.

        Measured as in `kernels.vector.gather.work_of`, 7,000 rows with AdaGrad: 19 and 36 us with N = 1 and 16.
        """
        return rows * (8 * len(self.written) + width * self.flops // 8)

    @functools.cached_property
    def written(self) -> tuple[str, ...]:
        """Return the names of the parameters that a call changes: weights and states."""
        return ("weights", *self.states)

    def bytes_row(self, s: Sizes) -> int:
        """Return the bytes of weights and states that the step of a row of s.N elements reads and writes."""
        return 2 * s.value * (s.N + len(self.states) * (1 if self.average else s.N))

    def operands(self, gradient: str) -> str:
        """Return the declaration of a kernel's operands, such as "weights:f[D,N] ... learning_rate:s".

        `gradient` declares the arrays of the gradient; with a "table:" among them there are no scalars.
        """
        state = "f[D]" if self.average else "f[D,N]"
        arrays = [f"{name}:{state}" for name in self.states]
        numbers = [] if "table:" in gradient else [f"{name}:s" for name in self.numbers]
        return " ".join(["weights:f[D,N]", *arrays, gradient, *numbers])

    def split(self, args: tuple) -> tuple[tuple, tuple, tuple]:
        """Split the operands of a call into (weights and states), (gradient's arrays), (settings, by `set`)."""
        first, last = self._places
        return args[:first], args[first:last], self.set(args[last:])

    def set(self, numbers: tuple) -> tuple[float, ...]:
        """Return the settings of the formula for one step as floats, from a call's scalars (learning rate, decay,
        ...).
        """
        return tuple(map(float, numbers if self.settings is _as_given else self.settings(*numbers)))

    @functools.cached_property
    def has_step(self) -> bool:
        """Whether the step count is among the scalars of a call."""
        return "step" in self.numbers

    def with_step(self, numbers: list[float], step: int) -> list[float]:
        """Return the scalars of a call with `step`, the step count, filled in.

        Unchanged if the rule does not use it.
        """
        if not self.has_step:
            return numbers
        return [step if name == "step" else value for name, value in zip(self.numbers, numbers, strict=True)]

    @functools.cached_property
    def _places(self) -> tuple[int, int]:
        """Return (number of weights and states among the operands, start of the scalars from the end, negative)."""
        return len(self.written), -len(self.numbers)


# Registration


MOST_ALONE = 4 * LEAST_WORK
"""Work, in multiply-adds, up to which a step of the active rows stays on one thread, as `kernels.products.csr_dense`:
below it the choice between one thread and two costs more than it saves."""


def _bind_names(rule: Rule, function: Callable, names: list[str], *bound) -> Callable:
    """Return `function` with rule and `bound` bound, the signature `names`, and the module of the rule's formula."""
    implementation: Any = functools.partial(function, rule, *bound)
    functools.update_wrapper(implementation, function)
    implementation.__module__ = rule.formula.__module__
    implementation.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return implementation


def _register(rule: Rule, kind: str, gradient: str, emit: Callable, cut: Callable, starts: int | None = None) -> None:
    """Register the kernel `<rule>_<kind>`; `kind` is "dense", "lazy", "fused" or "step_by_step".

    `gradient` declares its operands after the states; `emit` and `cut` make its row loop, `starts` is the position of
    the row pointers among the operands (None: rows of equal cost).
    """
    reference, cpu, cost, arguments = (globals()[f"{part}_{kind}"] for part in PARTS)
    operands = rule.operands(gradient)
    names = [operand.partition(":")[0] for operand in operands.split()]
    most, name = MOST_ALONE if kind in ("lazy", "fused") else LEAST_WORK - 1, f"{rule.name}_{kind}"
    loop = RowLoop(emit(rule), cut=cut, starts=starts, per_row=rule.row_cost, name=name, most_alone=most)
    register(
        Kernel(
            name=f"{rule.name}_{kind}",
            operands=operands,
            reference=_bind_names(rule, reference, names),
            cpu=_bind_names(rule, cpu, names, loop),
            gpu=_bind_names(rule, getattr(updates, f"gpu_{kind}"), names),
            cost=functools.partial(cost, rule),
            arguments=functools.partial(arguments, rule),
            writes=rule.written,
        )
    )


def register_kernels(rule: Rule) -> None:
    """Register `<rule>_dense`, `<rule>_lazy`, `<rule>_fused` and, if the rule has one, `<rule>_step_by_step`.

    Raises KernelError if the rule's last two settings are not rescale and clip.
    """
    example = dict(zip(rule.numbers, rule.example, strict=True))
    if rule.settings(*rule.example)[-2:] != (example.get("rescale"), example.get("clip")):
        raise KernelError(f"{rule.name}: the last two settings must be rescale and clip, as given.")
    _rules[rule.name] = rule
    updates.register_source(rule)
    _register(rule, "dense", "gradient:f[D,N]", steps.dense, cut_elements)
    _register(rule, "lazy", "rows:l[U]<!D gradient:f[U,N]", steps.lazy, cut_elements)
    _register(rule, "fused", BATCH, steps.fused, cut_sums, starts=len(rule.written) + 1)
    if rule.step_by_step:
        _register(rule, "step_by_step", "rows:l[U]<!D since:l[U]<S+1 table:f[S,K]", steps.step_by_step, cut_elements)


_rules: dict[str, Rule] = {}


def register_rule(module: str, states: tuple[str, ...], example: tuple[float, ...], flops: int, **fields: Any) -> None:
    """Register the kernels of the rule that a file of `kernels/updates` defines; `module` is its `__name__`.

    The rule has the file's name and its functions: `formula`, and `settings`, `closed_form`, `at_rest` if it has them.
    Its numbers are the parameters of `settings`, else those of `formula` after the gradient. `fields` are further
    fields of `Rule`.
    Raises KernelError as `register_kernels` does.
    """
    functions = vars(sys.modules[module])
    formula, given = (
        functions["formula"],
        {part: functions[part] for part in ("settings", "closed_form", "at_rest") if part in functions},
    )
    numbers = tuple(inspect.signature(given.get("settings", formula)).parameters)
    if "settings" not in given:
        numbers = numbers[len(states) + 2 + ("average" in fields) :]
    register_kernels(Rule(module.rpartition(".")[2], formula, states, numbers, example, flops, **given | fields))


def get_rule(name: str) -> Rule:
    """Return the rule called `name`, such as "adagrad".

    Raises KernelError that lists the kernels for an unknown one.
    """
    if name not in _rules:
        get(f"{name}_dense")
    return _rules[name]
