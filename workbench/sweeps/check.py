"""Before a trial is timed: its own first step, checked stage by stage against float64 on sampled rows and columns.

Each stage is checked with the input it really got: scores with the batch and the weights, the gradient of the scores
with the scores, the gradient of the weights with that of the scores, the new weights with the gradient and the
optimizer's reference.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import kernels
from workbench import executor, formats, optimizers
from workbench.models import Parameter
from workbench.training import Run, Training, epoch_calls

if TYPE_CHECKING:
    from workbench.models.patterns import Pattern

SAMPLED = 16
"""Rows and columns that are checked; the references are plain loops."""

ENTRIES = 2048
"""Stored entries of the columns that are checked, at most: their rows make the reference of the gradient."""

ROWS_AT_ONCE, ELEMENTS_AT_ONCE = 64, 1 << 17
"""Rows that a reference holds dense at once; more of them if these have no more elements (1 MiB)."""

ALLOWED = {"float32": 2e-4, "float64": 1e-10}
"""Largest error allowed, relative to the largest reference value of the stage."""


@dataclass(frozen=True)
class Checked:
    """The largest relative error of each stage, and what is allowed."""

    errors: dict[str, float]
    allowed: float
    digest: bytes
    """Hash of the batch and of all that the step gave; b"" if the batch has more than X and targets."""

    @property
    def error(self) -> float:
        """The largest error of all stages, relative; NaN if any is NaN."""
        return float(np.max(list(self.errors.values())))

    @property
    def reason(self) -> str:
        """Sentence on the stages whose error exceeds `allowed`, "" if none does; a NaN error counts as exceeding."""
        bad = {stage: error for stage, error in self.errors.items() if not error <= self.allowed}
        listed = ", ".join(f"{stage} by {error:.2g}" for stage, error in bad.items())
        return f"Wrong against the float64 reference: {listed}; allowed is {self.allowed:g}." if bad else ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them, the digest as hex text."""
        return {"errors": self.errors, "allowed": self.allowed, "digest": self.digest.hex()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Checked":
        """Return what `to_json` gave."""
        return cls(given["errors"], given["allowed"], bytes.fromhex(given["digest"]))


DRAWS_AT_KINKS = 3
"""Random parameters that a model with kinks is checked on, until its step is right: a fault is wrong on all."""


StepPart = Callable[[], AbstractContextManager[Any]]
"""Makes the context in which a part of the step is computed; the references are computed outside."""


def check_step(run: Training, step_part: StepPart = nullcontext, before: Checked | None = None) -> Checked:
    """Run the training's first step on random parameters and compare each stage with float64 references.

    `step_part()` is a context in which the parts of the step run. A model whose gradient has kinks is tried on up to
    `DRAWS_AT_KINKS` parameters until its errors are allowed, since rounding near a kink may look wrong. `before` is
    the result for another training with the same setup: if this step has the same bits, so has it the same errors, and
    no references are computed. `run` is reset.
    """
    if before is not None and before.digest and _check_step(run, 0, step_part, refer=False).digest == before.digest:
        return before
    for seed in range(DRAWS_AT_KINKS if run.model.has_kinks else 1):
        checked = _check_step(run, seed, step_part)
        if not checked.reason:
            break
    return checked


def _check_step(run: Training, seed: int, step_part: StepPart, refer: bool = True) -> Checked:
    """Return the errors of one step's stages on random weights, and its digest; resets `run` to its first parameters.

    Without `refer` there are no errors, since no references are computed.
    """
    generator = np.random.default_rng(seed)
    batch = next(iter(run.feed.epoch(0)))
    prepared = run.prepare(batch)
    x = formats.to_format(formats.astype(batch.x, np.float64), "csr")
    active = np.unique(x.indices)
    _draw(run, active, generator)
    scores = run.scores_of(batch)
    with step_part():
        run.forward(prepared)
        grad_scores = run.slope()
    digest = hashlib.sha256()
    _add(digest, x.indptr, x.indices, x.data, batch.y, scores, grad_scores)
    scored = _sampled(x.shape[0], generator) if run.model.rows_apart else slice(None)
    rated, columns = _sampled(len(batch.y), generator), _sampled_columns(x, active, generator)
    rows = {parameter.name: run.rows_of(parameter, columns) for parameter in run.parameters}
    errors: dict[str, float] = {}
    if refer:
        others = {name: formats.astype(array, np.float64) for name, array in batch.others.items()}
        errors["forward"] = _forward(run, scores, x, others, scored)
        errors["loss"] = _loss(run, scores, grad_scores, batch.y, rated)
        expected = expected_gradients(run, x, grad_scores.astype(np.float64), columns, others)
    with step_part():
        gradients = run.backward()
    for name in rows:
        if (part := run.gradient_rows(gradients[name], rows[name], name)) is not None:
            _add(digest, part)
            if refer:
                reference, expected[name] = expected[name], part.astype(np.float64)
                errors[_stage("gradient", name)] = _error(expected[name], reference)
    before = {name: run.read_rows(rows[name], name).astype(np.float64) for name in rows}
    ascended = {}
    if refer and isinstance(run, Run) and run.setup.execution == "dual":
        ascended = dual_reference(run, x, active, batch.y)
    with step_part():
        run.update(gradients)
    for parameter in run.parameters:
        name, updated = parameter.name, run.read_rows(rows[parameter.name], parameter.name)
        _add(digest, updated)
        if refer:
            stepped = _stepped(run, parameter, before[name], expected[name])
            if name in ascended:
                stepped = ascended[name][np.searchsorted(active, rows[name]) if parameter.touched else slice(None)]
            errors[_stage("update", name)] = _error(updated, stepped)
    run.reset()
    return Checked(errors, ALLOWED[run.setup.dtype], b"" if batch.others else digest.digest())


def _add(digest: Any, *arrays: np.ndarray) -> None:
    """Add the dtype, shape and bytes of each array to a hash of `hashlib`, in place."""
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array))


def _stage(stage: str, parameter: str) -> str:
    """Return the name of a stage such as "update of v"; without the parameter for "w"."""
    return stage if parameter == "w" else f"{stage} of {parameter}"


def _draw(run: Training, active: np.ndarray, generator: np.random.Generator) -> None:
    """Overwrite the parameters of `run` with random numbers; of those with a row per feature only rows `active`."""
    for parameter in run.parameters:
        rows = run.rows_of(parameter, active)
        deviation = (
            parameter.deviation if parameter.matrix else 0.1
        )  # of few entries the sums stay large enough only so
        values = deviation * generator.standard_normal((rows.size, *parameter.shape[1:]))
        run.write_rows(rows, values.astype(run.dtype), parameter.name)


def _error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest absolute difference divided by the largest absolute expected value (by 1 if that is 0)."""
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(actual - expected).max(initial=0.0) / (scale or 1.0))


def _sampled(size: int, generator: np.random.Generator) -> np.ndarray:
    """Return up to `SAMPLED` distinct indices below `size`, sorted, int64."""
    return np.sort(generator.choice(size, min(SAMPLED, size), replace=False))


def _sampled_columns(x: Any, active: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return up to `SAMPLED` random columns of the CSR matrix `x` out of `active`, sorted.

    Fewer if they have more than `ENTRIES` entries together, but at least one.
    """
    counts = np.bincount(x.indices, minlength=x.shape[1])
    picked = generator.permutation(active)[:SAMPLED]
    return np.sort(picked[np.cumsum(counts[picked]) <= max(ENTRIES, counts[picked[:1]].sum())])


def _scorer(run: Training, x: Any, used: np.ndarray, others: Mapping[str, Any], gradients: bool) -> executor.Executor:
    """Return an executor for the model's scores in float64, bound to rows `x` `[r, U]` of the columns `used` `[U]`.

    Products run in BLAS, or in SciPy for models whose rows depend on each other; `others` are further inputs by name.
    `gradients` requests those of all parameters.
    """
    apart = run.model.rows_apart
    scores, _ = run.model.graph(run.given.on_columns(used), "dense" if apart else "vendor", run.setup.has_intercept)
    args = {"x": x.toarray() if apart else x, **others}
    for parameter in run.parameters:
        values = np.ascontiguousarray(run.read_rows(run.rows_of(parameter, used), parameter.name), np.float64)
        args[parameter.name] = _pattern(run, parameter, used).matrix(values).toarray() if parameter.matrix else values
    grad_req = {parameter.name: "write" for parameter in run.parameters} if gradients else "null"
    kinds = {name: formats.format_of(args[name]) for name in args}
    grad_formats = dict.fromkeys(grad_req, "dense") if gradients else {}
    return executor.bind(scores, args, formats=kinds, grad_req=grad_req, grad_formats=grad_formats)


def _pattern(run: Training, parameter: Parameter, features: np.ndarray) -> "Pattern":
    """Return the pattern of a parameter's matrix; if its rows are features, restricted to the rows `features`."""
    pattern = run.pattern(parameter.name)
    return pattern.on_rows(features)[0] if parameter.touched else pattern


def _forward(run: Training, scores: np.ndarray, x: Any, others: Mapping[str, Any], rows: np.ndarray | slice) -> float:
    """Return the largest relative error of `scores` `[R, N]` on `rows` of the CSR matrix `x` `[R, D]`.

    The reference is computed in float64 by BLAS or SciPy from the present parameters of `run`; `others` are the model's
    further inputs in float64.
    """
    part = x[rows]
    used = np.unique(part.indices)
    return _error(scores[rows], _scorer(run, part[:, used], used, others, gradients=False).forward()[0])


def _loss(run: Training, scores: np.ndarray, grad_scores: np.ndarray, y: np.ndarray, rows: np.ndarray) -> float:
    """Return the largest relative error of `grad_scores` `[R, N]`, the gradient of the scores, on `rows` (indices).

    `scores` `[R, N]` and the targets `y` (int `[R]` or float `[R, N]`) are those it was computed from; the loss is the
    mean over the batch. The reference kernel of the model's loss computes in float64.
    """
    part = scores[rows].astype(np.float64)
    targets = y[rows] if y.dtype.kind == "i" else y[rows].astype(np.float64)
    expected = np.empty_like(part)
    kernels.get(run.model.loss).reference(part, targets, expected)
    return _error(grad_scores[rows], expected * (rows.size / len(y)))


def expected_gradients(
    run: Training, x: Any, grad_scores: np.ndarray, columns: np.ndarray, others: Mapping[str, Any] | None = None
) -> dict[str, np.ndarray]:
    """Compute reference gradients in float64 by parameter name, for the gradient of the scores, `grad_scores` `[R, N]`.

    Of parameters with a row per feature only the rows `columns`, others complete. They come from the graph of the
    scores on dense blocks of `ROWS_AT_ONCE` rows of X or more; only rows with an entry in `columns` if no other
    parameter but the intercept exists: O(entries of these rows * N). For a model whose rows depend on each other, which
    reads `others` too, from all of X by SciPy.
    """
    if not run.model.rows_apart:
        return _gradients_at(run, x, grad_scores, columns, others or {})
    whole = [parameter for parameter in run.parameters if not parameter.touched]
    totals = {
        parameter.name: np.zeros((run.rows_of(parameter, columns).size, *parameter.shape[1:]))
        for parameter in run.parameters
    }
    only_intercept = {one.name for one in whole} <= {"b"}
    rows = np.flatnonzero(np.diff(x[:, columns].indptr)) if only_intercept else np.arange(x.shape[0])
    at_once = max(ROWS_AT_ONCE, ELEMENTS_AT_ONCE // max(x.shape[1], 1))  # each block binds an executor
    for start in range(0, rows.size, at_once):
        here = rows[start : start + at_once]
        for name, gradient in _gradients_at(run, x[here], grad_scores[here], columns, {}).items():
            totals[name] += gradient
    if only_intercept and whole:
        totals["b"] = grad_scores.sum(axis=0)
    return totals


def _gradients_at(
    run: Training, x: Any, grad_scores: np.ndarray, columns: np.ndarray, others: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return float64 gradients by parameter name for rows `x` `[r, D]` and their `grad_scores` `[r, N]`.

    From the present parameters of `run`; `others` are further inputs of the model. Of parameters with a row per feature
    only the rows `columns`.
    """
    used = np.union1d(x.indices, columns)
    bound = _scorer(run, x[:, used], used, others, gradients=True)
    bound.forward(training=True)
    gradients = bound.backward(heads=np.ascontiguousarray(grad_scores))
    places = np.searchsorted(used, columns)
    found = {
        parameter.name: gradients[parameter.name][places] if parameter.touched else gradients[parameter.name]
        for parameter in run.parameters
    }
    patterns = {parameter.name: _pattern(run, parameter, columns) for parameter in run.parameters if parameter.matrix}
    return found | {name: found[name][pattern.rows, pattern.indices] for name, pattern in patterns.items()}


def dual_reference(run: Run, x: Any, active: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return {"w": `[U, N]`, "b": `[N]` or empty} after dual ascent on one batch by the reference, in float64.

    `active` `[U]` are the active columns of the batch's CSR matrix `x`, `y` its targets; "w" has these rows alone.
    """
    x = x[:, active]
    w, rows = run.read_rows(active).astype(np.float64), np.arange(x.shape[0])
    outputs = np.arange(w.shape[1])
    b = run.read_rows(outputs, "b").astype(np.float64) if run.setup.has_intercept else np.zeros(0)
    steps, none = epoch_calls.DualSteps(run), np.zeros(0)
    steps.hold(x)
    targets = y if y.dtype.kind == "i" else y.astype(np.float64)
    variables = np.zeros((x.shape[0], w.shape[1]))
    kernel, *arrays = steps.kernel_of(x)
    kernel.reference(*arrays, targets, none, steps.squares, rows, w, variables, b, steps.square, steps.decay)
    return {"w": w, "b": b}


def _stepped(run: Training, parameter: Parameter, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return parameter rows `values` after the first step of the optimizer's float64 reference for `gradient`.

    Both have the same shape; optimizer states start new, and a parameter that does not decay has decay 0.
    """
    optimizer = optimizers.get(run.setup.optimizer)
    table = values.reshape(len(values), -1).copy()
    expected = [table, *optimizer.new_states(table)]
    kernel = kernels.get(f"{optimizer.name}_dense")
    names = [name for name, _, _ in kernel.parsed][len(expected) + 1 :]
    numbers = {**optimizer.resolve(run.setup.options), "step": 1}
    numbers |= {} if parameter.decays else {"decay": 0.0}
    kernel.reference(*expected, gradient.reshape(table.shape), *(numbers[name] for name in names))
    return table.reshape(values.shape)
