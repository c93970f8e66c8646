"""A batch after a batch: scores X @ W + b, their gradient g, X.T @ g on the active columns, a lazy step of W.

Arguments  indptr int32|int64 [T+1] - row starts; indices same type [z]; data float32|float64 [z]; targets as the loss
           takes them, a row for each of T; counts same as data [T], what the loss of each row counts for, or [0];
           order int64 [M], the rows of the batches, one after the other, any number of times; batch_rows >= 1;
           epoch_rows >= 1, after so many rows a batch ends, which may have fewer; weights same as data [D, N] and
           states as the rule has them; intercept same [N], or [0] for none, and its states [N]; settings same [S, K],
           what the rule's formula takes in each step, those after the last as the last; settings_intercept the same
           for the intercept
           way standard: gradient same as weights [D, N], of zeros; ways that catch up: last int64 [D], how many steps
           each row of the weights has had or caught up on; missed, of the steps from number `first` on, the settings
           [S, K], in a closed form float64 [2*S, 4], a tree of their matrices (`kernels.rules.missed`), up to
           the last but one of the call; first, now int, the numbers of the first of them and of the call's first step
Writes     weights, intercept and the states of both, last; gradient, which is of zeros again; nothing else changes;
           returns the losses, float64 [batches]: each the equally weighted mean over its rows before the step
Assumes    N >= 1; duplicates are summed, columns may be unsorted; a target out of range is refused when the batches
           before it have had their steps
Cost       of a batch: 4*z*N flops, those of the loss and of U steps of the rule; reads z*(index+value) bytes, targets,
           weights and states of U rows, and writes those; standard: D rows for U; step_by_step: each missed step too
Parallel   within a batch, where it has work for several threads, over rows and then over columns; same bits on every
           run with as many threads; on one thread the sums of a column are in the order of the entries, and on any
           number if entries step the weights at once or are brought into the order of their columns
Limits     z < 2**63, D*N < 2**63; besides the arguments memory grows with the rows of a batch and with the columns that
           these touch; it has D*(N*value+1) more on one thread with rows of a line or less, where D*N is at most 65,536
           or 4*M*z/T, and 4*D where that is less than for the columns touched
Source     csr_dense, the loss, csr_t_dense and the lazy rule in one call, as online learners do it a row at a time
           (Langford, Li and Strehl 2007, Vowpal Wabbit); differs: batches of any size, any rule
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs import calls, touched
from kernels.loss_blocks import block_of
from kernels.registry import get as get_kernel
from kernels.rules.missed import Spans
from kernels.rules.rule import Rule, arguments_dense, get_rule, step_row


def reference(loss: str, rule: Rule, way: str, *args) -> np.ndarray:
    """Train a linear model in plain loops: per batch scores X @ W + b, their gradient, X.T @ g, a step of the rule.

    `args` are the operands of the kernel, `way` the strategy for inactive rows. Updates weights, states, intercept and
    `last` in place; `gradient` is zero again. Returns float64 [batches]: the mean loss of a batch before its step, in
    which all rows count equally.
    """
    call = calls.Call.of(rule, way, args)
    losses = []
    for step, rows in enumerate(_batches(call)):
        _catch_up(rule, call, rows, step)
        scores = np.zeros((rows.size, call.arrays[0].shape[1])) + (call.intercept[0] if call.has_intercept else 0)
        for q, k in _entries(call, rows):
            scores[q] += call.data[k] * call.arrays[0][call.indices[k]].astype(np.float64)
        slope = np.zeros_like(scores)
        losses.append(get_kernel(loss).reference(scores, call.targets[rows], slope))
        if call.counts.size:
            slope *= call.counts[rows, None]
        gradient: dict[int, np.ndarray] = {}
        for q, k in _entries(call, rows):
            column = int(call.indices[k])
            gradient[column] = gradient.get(column, 0.0) + call.data[k] * slope[q]
        settings = call.settings[min(step, len(call.settings) - 1)]
        every = range(len(call.arrays[0])) if touched.is_dense(way) else ()
        for column, total in (dict.fromkeys(every, np.zeros_like(scores[0])) | gradient).items():
            step_row(rule, column, call.arrays[0], call.arrays[1:], total, tuple(settings.tolist()))
        _step_intercept(rule, call, slope.sum(axis=0), step)
    return np.array(losses, np.float64)


def _batches(call: calls.Call) -> Iterator[np.ndarray]:
    """Yield the rows of each batch, int64, of one epoch after the other."""
    for begin in range(0, call.order.size, call.epoch_rows):
        epoch = call.order[begin : begin + call.epoch_rows]
        for first in range(0, epoch.size, call.batch_rows):
            yield epoch[first : first + call.batch_rows]


def _entries(call: calls.Call, rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield (position of the row in `rows`, position of the entry in indices and data) of each entry of `rows`."""
    for q, row in enumerate(rows):
        for k in range(call.indptr[row], call.indptr[row + 1]):
            yield q, k


def _catch_up(rule: Rule, call: calls.Call, rows: np.ndarray, step: int) -> None:
    """Apply the steps that the columns of the rows have missed, before batch `step`, in place; none if not deferred."""
    if not touched.catches_up(call.way):
        return
    last, missed, first, now = call.update_arrays
    for column in {int(call.indices[k]) for _, k in _entries(call, rows)}:
        since, stop = int(last[column]) - first, now + step - first
        for number in range(max(since, stop - 1) if call.way == "last_step" else since, stop):
            if call.way in ("closed_form", "closed_form_pair"):
                _multiply_rows(call, column, missed[len(missed) // 2 + number])
            else:
                nothing = np.zeros(call.arrays[0].shape[1])
                step_row(rule, column, call.arrays[0], call.arrays[1:], nothing, tuple(missed[number].tolist()))
        last[column] = now + step + 1


def _multiply_rows(call: calls.Call, column: int, matrix: np.ndarray) -> None:
    """Apply one zero-gradient step to row `column` of weights and state in place, given as `matrix` (a, b, c, d)."""
    w, (a, b, c, d) = call.arrays[0][column], matrix
    if call.way == "closed_form":
        w *= a
    else:
        s = call.arrays[1][column]
        w[:], s[:] = a * w + b * s, c * w + d * s


def _step_intercept(rule: Rule, call: calls.Call, gradient: np.ndarray, step: int) -> None:
    """Update the intercept and its states in place by `gradient` [N] with the settings of batch `step`, if any."""
    if call.has_intercept:
        settings = call.settings_intercept[min(step, len(call.settings_intercept) - 1)]
        weights, *states = call.tables
        for n, total in enumerate(gradient):
            step_row(rule, n, weights, states, [total], tuple(settings.tolist()))


def cpu(loss: str, rule: Rule, way: str, *args) -> np.ndarray:
    """Train a linear model on the CPU: per batch scores X @ W + b, their gradient, X.T @ g, a step of the rule.

    `args` are the operands of the kernel, `way` the strategy for inactive rows. Updates weights, states, intercept and
    `last` in place; `gradient` is zero again. Returns float64 [batches]: the mean loss of a batch before its step, in
    which all rows count equally. Raises KernelError for invalid operands or targets.
    """
    return calls.run(loss, rule, calls.Call.of(rule, way, args))


def cost(loss: str, rule: Rule, way: str, s: Sizes) -> Cost:
    """Return flops and bytes of a batch of s.R rows: entries, updated weights and states move once each."""
    of_loss, stepped = get_kernel(loss).cost(s), s.D if touched.is_dense(way) else s.U
    flops = 4 * s.z * s.N + of_loss.flops + rule.flops * stepped * s.N
    moved = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value + stepped * rule.bytes_row(s)
    return Cost(flops, moved, 2 * s.z * s.N * s.value)


def arguments(loss: str, rule: Rule, way: str, case: Case) -> tuple:
    """Build operands from `case`: A as X, rows in random order, each about twice, in batches of three.

    Further: targets, weights, states, an intercept, settings of two steps, and what strategy `way` takes.
    """
    random = np.random.default_rng(case.seed)
    order = random.integers(0, case.R, 2 * case.R + 1 if case.R else 0)
    _, targets, _ = get_kernel(loss).arguments(case)
    arrays = arguments_dense(rule, case)[: len(rule.written)]
    b = Case(case.indptr, case.indices, case.data, case.N, 1, case.seed)
    tables = arguments_dense(rule, b)[: len(rule.written)]
    table = np.tile(rule.settings(*rule.example), (2, 1)) * np.array([[1.0], [0.75]])
    table = table.astype(case.dtype)
    counts = 1 + case.dense(case.R, salt=9).clip(-1, 1) / 2
    x = case.indptr, case.indices, case.data
    cut = 3, max(order.size, 1)
    operands = *x, targets, counts, order, *cut, *arrays, *(one.reshape(-1) for one in tables), table, table[:1] * 0.5
    return *operands, *_update_operands(way, case, table[:1], NOW - FIRST + order.size)


UPDATE_ARRAYS = ("gradient", "last")
"""Operands of ways that a call writes to."""

FIRST, NOW = 2, 6
"""Of the arguments: the step that is known first, and the first that is done."""


def _update_operands(way: str, case: Case, settings: np.ndarray, steps: int) -> tuple:
    """Build the extra operands of strategy `way`: () for lazy, (zero gradient,) for standard, else those of a `Lag`.

    `settings` [1, K] are scaled down from step to step for the `steps` missed steps.
    """
    if touched.is_dense(way):
        return (np.zeros((case.D, case.N), case.dtype),)
    if not touched.catches_up(way):
        return ()
    last = np.random.default_rng(case.seed).integers(FIRST, NOW + 1, case.D)
    missed = np.repeat(settings, steps, axis=0) * np.linspace(1, 0.5, steps)[:, None]
    if way in ("closed_form", "closed_form_pair"):
        spans = Spans(1 << steps.bit_length())
        for a in np.linspace(1, 0.5, steps):
            spans.append((a,) if way == "closed_form" else (a, -0.25, 0.125, a / 2))
        return last, spans.tree, FIRST, NOW
    return last, missed.astype(case.dtype), FIRST, NOW


def operands_of(loss: str, rule: Rule, way: str) -> str:
    """Return the declaration of an epoch kernel's operands, such as "indptr:i[T+1]^z indices:i[z]<D ...".

    `way` is the strategy for inactive rows, which adds operands.
    """
    targets = next(operand for operand in get_kernel(loss).operands.split()[1:])
    kind = targets.partition(":")[2].replace("R", "T")
    state = "f[D]" if rule.average else "f[D,N]"
    arrays = ["weights:f[D,N]", *(f"{name}:{state}" for name in rule.states)]
    intercept = [f"{name}:f[B]" for name in ("intercept", *(f"intercept_{name}" for name in rule.states))]
    x = "indptr:i[T+1]^z indices:i[z]<D data:f[z]"
    batches = f"targets:{kind} counts:f[C] order:l[M]<T batch_rows:s epoch_rows:s"
    lag = f"last:l[D] missed:{'d' if way in ('closed_form', 'closed_form_pair') else 'f'}[L,F] first:s now:s"
    others = {"lazy": "", "standard": "gradient:f[D,N]"}
    update_arrays = others.get(way, lag)
    return " ".join(
        (x, batches, *arrays, *intercept, "settings:f[S,K] settings_intercept:f[P,K]", update_arrays)
    ).strip()


def named_twin(function: Callable, names: list[str], *bound: object) -> Callable:
    """Return `function` with its first parameters bound to `bound` and the signature `names`."""
    implementation: Any = functools.partial(function, *bound)
    functools.update_wrapper(implementation, function)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    implementation.__signature__ = inspect.Signature(parameters)
    return implementation


@functools.cache
def get(loss: str, rule: str, way: str = "lazy") -> Kernel:
    """Return the kernel `<loss>_<rule>_epoch`, with `_<way>` unless `way` is "lazy" (see `kernels.epochs.touched`).

    Cached. Raises KernelError, with the known names, for an unknown loss, rule or strategy. The kernel is not in the
    registry.
    """
    block_of(loss)
    known = get_rule(rule)
    touched.check_way(known, way)
    operands = operands_of(loss, known, way)
    names = [operand.partition(":")[0] for operand in operands.split()]
    return Kernel(
        name=f"{loss}_{rule}_epoch{'' if way == 'lazy' else f'_{way}'}",
        operands=operands,
        reference=named_twin(reference, names, loss, known, way),
        cpu=named_twin(cpu, names, loss, known, way),
        gpu=None,
        cost=functools.partial(cost, loss, known, way),
        arguments=functools.partial(arguments, loss, known, way),
        writes=(*known.written, *(name for name in names if name.startswith("intercept") or name in UPDATE_ARRAYS)),
    )
