"""Candidates of a case: each makes itself ready on the case's batch, and is then a call that is timed.

The arguments of a kernel are made by the kernel itself, once for all candidates that take the same.
"""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast

import numba
import numpy as np
import scipy.sparse

import kernels
from benchmarks import reasons
from benchmarks.competitors import competitors_of
from benchmarks.shapes import Batch, BenchError, Shape
from kernels import Case, Cost, Kernel, Sizes, plan
from kernels.code_cache import njit
from kernels.devices import Device
from kernels.registry import unknown_name
from workbench.measure import bandwidth
from workbench.measure.bandwidth import active_bytes, table_bytes

# Expected results of a kernel: its own reference, in float64, on the very arguments of the call.
#
# The reference is plain loops. Numba compiles it as it stands, and it is run on everything; that of an update, which is
# made from a formula, is run on some of the active rows, those of the longest runs among them. Conversions and
# merges, whose references search, are judged by SciPy and NumPy.


# Memory traffic of a call beyond its kernel's formula: lines instead of narrow rows, and rows no cache can keep.
#
# A row narrower than a line moves a whole line where its neighbours are not touched. Of the rows that are gathered, the
# most frequent are served by the last cache as far as they fit it, at best; the others come from memory each time.


@dataclass(frozen=True)
class Traffic:
    """`bytes_row` is 0 if nothing is known; `cold_share` is the share of gathered rows that no cache can keep."""

    bytes_row: int = 0
    bytes_table: int = 0
    bytes_lines: int = 0
    cold: float = 0.0


UNKNOWN = Traffic()


def traffic_of(kernel: Kernel, sizes: Sizes, batch: Batch) -> Traffic:
    """Return the memory traffic of one call of a kernel on a batch: row size, table size, extra lines, cold share.

    Gradient kernels (with an argument `g`) gather the rows of g, all others those of x.
    """
    if "g" in (name for name, _, _ in kernel.parsed):
        counts = np.diff(batch.indptr)
    else:
        counts = np.bincount(np.unique(batch.indices, return_inverse=True)[1])
    table = table_bytes(kernel, sizes)
    return Traffic(sizes.N * sizes.value, table, bytes_of_lines(kernel, sizes), cold_share(counts, table))


def bytes_of_lines(kernel: Kernel, sizes: Sizes) -> int:
    """Return the bytes that a call moves beyond the active rows of its [D, N] tables because memory moves whole lines.

    A table that the kernel writes counts twice, for the read and the write.
    """
    bytes_unused = max(active_bytes(sizes) - sizes.U * sizes.N * sizes.value, 0)
    shape = (("D", 0), ("N", 0))
    tables = (name for name, kind, axes in kernel.parsed if kind == "f" and axes == shape and name != "out")
    return bytes_unused * sum(2 if name in kernel.writes else 1 for name in tables)


def cold_share(counts: np.ndarray, bytes_table: int) -> float:
    """Return the share of row accesses that the last-level cache cannot serve, if it keeps the most frequent rows.

    `counts` int64 [rows] are accesses per row; `bytes_table` is the size of the whole table.

    >>> cold_share(np.array([5, 3, 1, 1]), 0)
    0.0
    """
    kept = int(len(counts) * min(1.0, bandwidth.last_cache_bytes() / max(bytes_table, 1)))
    return float(np.sort(counts)[: len(counts) - kept].sum() / max(counts.sum(), 1))


ALLOWED = {"float32": 2e-4, "float64": 1e-10}
"""Largest error allowed, relative to the largest value of the array it is in."""

LARGE = 2**24
"""Elements from which on an array that is only read stays as it is: what it is multiplied with is float64 already."""

SAMPLED = 48
"""Active rows that an update is checked on."""


def _sort_by(numbers, count, *others):
    """Return starts, int64 [count + 1], of each value in sorted `numbers`, then `others` in that stable order.

    `numbers` are integers from 0 to count - 1, [nnz]; `others` are arrays [nnz].
    """
    order = np.argsort(numbers, kind="stable")
    return np.searchsorted(numbers[order], np.arange(count + 1)), *(other[order] for other in others)


def _csr_to_csc(indptr, indices, data, n_columns):
    """Return (indptr, row indices, data) in CSC form of a CSR matrix, by NumPy's stable sort.

    indptr is [rows + 1], indices and data are [nnz]; the matrix has `n_columns` columns, so the new indptr is
    [n_columns + 1].
    """
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return _sort_by(indices, n_columns, rows, data)


def _slice_rows(indptr, indices, data, rows):
    """Return (indptr, indices, data) of the rows with the indices `rows` of a CSR matrix, by SciPy.

    indptr is [rows + 1], indices and data are [nnz]; rows may repeat and come in any order.
    """
    shape = len(indptr) - 1, int(indices.max(initial=0)) + 1
    part = scipy.sparse.csr_array((data, indices, indptr), shape=shape)[rows]
    return part.indptr, part.indices, part.data


def _dense_to_csr(dense):
    """Return (indptr, indices, data) of a dense array [rows, columns], by SciPy; zeros are left out."""
    part = scipy.sparse.csr_array(dense)
    return part.indptr, part.indices, part.data


def _merge_rows(indices, values):
    """Return (ascending unique indices, float64 sums of the rows of `values` with equal index), by NumPy.

    `indices` is [n], `values` [n, ...].
    """
    unique, places = np.unique(indices, return_inverse=True)
    sums = np.zeros((unique.size, *values.shape[1:]))
    np.add.at(sums, places, values)
    return unique, sums


def _add_rows(left_indices, left_values, right_indices, right_values):
    """Return (ascending unique indices, float64 sums) of two row-sparse arrays, by NumPy.

    Indices are [n], values [n, ...], of the left and the right array; rows with equal index are added.
    """
    return _merge_rows(np.concatenate([left_indices, right_indices]), np.concatenate([left_values, right_values]))


def _retain_rows(indices, values, chosen):
    """Return (indices, rows) of the stored rows whose index is in `chosen`, in stored order, by NumPy.

    `indices` is [n], `values` [n, ...], `chosen` an array of row indices.
    """
    kept = np.isin(indices, chosen)
    return indices[kept], values[kept]


DIRECT: dict[str, Callable[..., tuple]] = {
    "add_rows": _add_rows,
    "coo_to_csr": lambda row, col, data, n_rows: _sort_by(row, n_rows, col, data),
    "csr_to_csc": _csr_to_csc,
    "dense_to_csr": _dense_to_csr,
    "merge_rows": _merge_rows,
    "retain_rows": _retain_rows,
    "slice_rows": _slice_rows,
}

Judge = Callable[[Any], float]
"""Takes what the call returned and gives its largest error; the arrays that the call wrote are looked at then."""


def make_judge(kernel: Kernel, args: Sequence) -> Judge:
    """Return a function that takes what a call of `kernel` returned and gives its largest relative error.

    The expected result is computed here in float64 from `args`; call it before the timed call, which may overwrite
    `args`. The returned function reads the arrays in `args` that the call has written. Updates are checked on some
    active rows only.
    """
    named = {name: arg for (name, _, _), arg in zip(kernel.parsed, args, strict=True)}
    active = "columns" if "columns" in named else "rows"
    if "weights" in named and active in named:
        return _judge_update(kernel, named, active)
    desired = expected_results(kernel, args)
    return lambda returned: largest_error(collect_results(kernel, args, returned), desired)


@functools.cache
def compile_function(function: Callable) -> Callable:
    """Return the function compiled by Numba, with the plain functions of its module that it calls.

    The result is cached per function, its machine code on disk.
    """
    code, known = function.__code__, function.__globals__
    called = {name: compile_function(known[name]) for name in code.co_names if inspect.isfunction(known.get(name))}
    return njit()(types.FunctionType(code, {**known, **called}, function.__name__, function.__defaults__))


def _to_float64(arg: Any, written: bool = True) -> Any:
    """Return a copy of an array with floats as float64; scalars, and large arrays that are not `written`, unchanged."""
    if not isinstance(arg, np.ndarray) or (arg.size >= LARGE and not written):
        return arg
    return arg.astype(np.float64) if arg.dtype.kind == "f" else arg.copy()


def collect_results(kernel: Kernel, args: Sequence, returned: Any) -> list[np.ndarray]:
    """Return the results of a call as arrays: what it returned, then the arguments that the kernel writes."""
    parts = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    written = [arg for arg, (name, _, _) in zip(args, kernel.parsed, strict=True) if name in kernel.writes]
    return [np.asarray(part) for part in (*parts, *written)]


def expected_results(kernel: Kernel, args: Sequence) -> list[np.ndarray]:
    """Return what `collect_results` should give after a call with `args`, in float64; `args` are not changed.

    Computed by SciPy or NumPy if listed in DIRECT, else by the kernel's reference, compiled if Numba can. O(work of the
    kernel).
    """

    def copies() -> list:
        """Return the arguments with arrays copied and floats converted to float64."""
        return [_to_float64(arg, name in kernel.writes) for arg, (name, *_) in zip(args, kernel.parsed, strict=True)]

    wide = copies()
    if kernel.name in DIRECT:
        return list(DIRECT[kernel.name](*wide))
    try:
        returned = compile_function(kernel.reference)(*wide)
    # what Numba cannot compile, which it asserts where an exception is made by a function, runs plain, and slow
    except (numba.core.errors.NumbaError, numba.core.errors.NumbaWarning, AssertionError):
        wide = copies()
        returned = kernel.reference(*wide)
    return collect_results(kernel, wide, returned)


def _judge_update(kernel: Kernel, named: dict[str, Any], active: str) -> Judge:
    """Return the error function of an update kernel, checked on a sample of the active rows.

    `named` has the arguments by name, `named[touched]` the indices of the active rows. The reference runs here, on
    float64 copies of the sampled rows; the returned function ignores its argument and reads the tables in `named`.
    """
    rows, picked = named[active], _pick_rows(named)
    tables = [name for name in kernel.writes if isinstance(named[name], np.ndarray)]
    each = [name for name, _, axes in kernel.parsed if axes[:1] == (("U", 0),) and name != active]
    part = {name: _to_float64(arg) for name, arg in named.items() if name not in (*tables, *each)}
    part |= {name: _to_float64(named[name][rows[picked]]) for name in tables}
    part[active] = np.arange(picked.size)
    for name in each:
        part[name] = _to_float64(named[name][picked])
    if "segments" in named:
        part |= _entries_of(named, picked)
    kernel.reference(*(part[name] for name in named))
    desired = [part[name] for name in tables]
    return lambda _: largest_error([named[name][rows[picked]] for name in tables], desired)


def _pick_rows(named: dict[str, Any]) -> np.ndarray:
    """Return sorted positions int64 [n] of up to 48 random active rows, and of the two longest if `segments` is known.

    `named` has the kernel's arguments by name, `columns` or `rows` the active rows; the draw is the same every time.
    """
    count = len(named["columns"] if "columns" in named else named["rows"])
    picked = np.random.default_rng(0).choice(count, min(SAMPLED, count), replace=False)
    longest = np.argsort(-np.diff(named["segments"]), kind="stable")[:2] if "segments" in named else picked[:0]
    return np.union1d(picked, longest)


def _entries_of(named: dict[str, Any], picked: np.ndarray) -> dict[str, np.ndarray]:
    """Return `segments`, `rows` and `values` of the batch plan for the columns at positions `picked` only."""
    starts, ends = named["segments"][picked], named["segments"][picked + 1]
    places = np.concatenate([np.arange(*ends_of) for ends_of in zip(starts, ends, strict=True)] or [np.empty(0, int)])
    segments = np.concatenate([[0], np.cumsum(ends - starts)])
    return {"segments": segments} | {name: named[name][places] for name in ("rows", "values")}


def largest_error(actual: Sequence[np.ndarray], desired: Sequence[np.ndarray]) -> float:
    """Return the largest error of all arrays, each relative to its largest desired value; inf if shapes differ."""
    if [array.shape for array in actual] != [array.shape for array in desired]:
        return float("inf")
    return max((_error(*pair) for pair in zip(actual, desired, strict=True)), default=0.0)


def _error(actual: np.ndarray, desired: np.ndarray) -> float:
    """Return the largest deviation relative to the largest desired value; inf for unequal integers, NaN or inf."""
    if desired.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, desired) else float("inf")
    scale = np.abs(desired).max(initial=0.0)
    worst = np.abs(actual - desired).max(initial=0.0)
    return float(worst / (scale or 1.0)) if np.isfinite(worst) else float("inf")


BYTES_DENSE = 512 * 2**20
"""Largest batch that is made dense for BLAS."""


@dataclass
class Ready:
    """A call to be timed, and what it costs. `make_judge` gives the error of a call from what the call returned."""

    call: Callable[[], Any]
    judge: Judge
    cost: Cost
    traffic: Traffic = UNKNOWN
    seconds_once: float = 0.0
    why_below: str = ""
    """What keeps calls from their bound, where it is known."""
    steps: int = 1
    """What a call does so often; times are of one."""
    phases: Callable[[], dict[str, float]] | None = None
    """Seconds of the phases of a step, means since it was asked last."""


@dataclass
class Setting:
    """The batch of a case, its sizes, and arguments that candidates share."""

    batch: Batch
    sizes: Sizes
    shared: dict[Any, tuple] = field(default_factory=dict)
    judges: dict[tuple[Any, Any], Judge] = field(default_factory=dict)
    """Check of the result of each reference on arguments made in one way."""

    @classmethod
    def of(cls, batch: Batch) -> "Setting":
        """Return the setting of a batch with its `Sizes`: rows, entries, columns, width, active columns, item sizes."""
        active = np.unique(batch.indices).size
        widths = batch.data.itemsize, batch.indices.itemsize
        return cls(batch, Sizes(batch.R, batch.indices.size, batch.D, batch.N, active, *widths))

    def arguments(self, kernel: Kernel) -> tuple:
        """Return the kernel's arguments; kernels that make theirs in the same way get the same arrays (cached).

        Updates have no decay: with it thousands of steps on one batch bring states down to denormal numbers, which take
        up to a third longer and which no training has.
        """
        if kernel.arguments not in self.shared:
            named = zip(kernel.parsed, kernel.arguments(cast("Case", self.batch)), strict=True)
            self.shared[kernel.arguments] = tuple(0.0 if name == "decay" else arg for (name, _, _), arg in named)
        return self.shared[kernel.arguments]

    def traffic(self, kernel: Kernel) -> Traffic:
        """Return the memory traffic of one call of the kernel on this batch."""
        return traffic_of(kernel, self.sizes, self.batch)


def require_device(on: Device | None) -> Device:
    """Return the device `on`; raises BenchError if it is None (a candidate that was made only to list its name)."""
    if on is None:
        raise BenchError("A candidate on a device was made without one.")
    return on


@dataclass(frozen=True)
class Candidate:
    """A name, a side (ours or competitor), how it makes itself ready, the bytes that takes and the most it may take
    (None: the run's own limit), and why it cannot take part."""

    name: str
    side: str
    make: Callable[[Setting], Ready]
    bytes_needed: Callable[[Sizes], int] = lambda sizes: 0
    bytes_most: int | None = None
    unavailable: str = ""


def list_candidates(task: str, shape: Shape) -> list[Candidate]:
    """Return all CPU candidates of a task on a shape, this project's first; BenchError for an unknown task."""
    if task not in (known := list_tasks()):
        raise BenchError(unknown_name("task", task, known))
    if task == "plan":
        return [Candidate("plan.build", "project", _plan), Candidate("numpy.argsort", "competitor", _argsort)]
    ours = [of_kernel(kernels.get(task))]
    if shape.values == "ones" and f"{task}_ones" in kernels.names():
        ours.append(of_kernel(kernels.get(f"{task}_ones")))
    return ours + _competitors(task) + _other_candidates(task)


def _competitors(task: str) -> list[Candidate]:
    """Return the competitors of a task that run on the CPU, unavailable ones included.

    Those for GPUs only are left out.
    """
    return [
        of_kernel(competitor, "competitor")
        for competitor in competitors_of(task)
        if competitor.cpu or not competitor.gpu
    ]


def _other_candidates(task: str) -> list[Candidate]:
    """Return the candidates that are not one kernel with the task's arguments: BLAS, new plans, two kernels."""
    if task == "csr_dense":
        return [_blas(task)]
    if task == "csr_t_dense":
        return [_with_new_plan(task), *_competitors("csr_t_dense_full")]
    return [_two_kernels(task)] if task.endswith("_fused") else []


def list_tasks() -> list[str]:
    """Return the names of what the suite `kernels` can measure: "plan" and this project's CPU kernels.

    Kernels for all-ones values and dense updates are left out.
    """
    names = [name for name in kernels.names() if "." not in name and not name.endswith("_ones")]
    every_row = {name.replace("_lazy", "_dense") for name in names if name.endswith("_lazy")}
    return ["plan", *(name for name in names if name not in every_row and kernels.get(name).cpu is not None)]


def of_kernel(kernel: Kernel, side: str = "project") -> Candidate:
    """Return a candidate that times a registered kernel as it is; `side` is "project" or "competitor"."""
    make, needed = functools.partial(_ready, kernel), functools.partial(operand_bytes, kernel)
    return Candidate(kernel.name, side, make, needed, unavailable=kernel.unavailable)


def operand_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Return three times the bytes of a call's arrays: the arrays themselves and float64 copies for the check.

    Sizes follow from the axes letters in the kernel's declaration and the numbers in `sizes`.
    """
    letters = {"R": sizes.R, "M": sizes.R, "D": sizes.D, "N": sizes.N, "U": sizes.U, "V": sizes.U}
    each = {"f": sizes.value, "i": sizes.index, "l": 8, "s": 0}
    return 3 * sum(
        each[kind] * int(np.prod([letters.get(letter, sizes.z) for letter, _ in axes], dtype=np.int64))
        for _, kind, axes in kernel.parsed
    )


def _ready(kernel: Kernel, setting: Setting) -> Ready:
    """Return the kernel prepared on the setting's arguments: timed call, error function, cost and traffic.

    The error function is stored in `setting.judges`, shared by candidates with the same reference and arguments. Runs
    `kernel.prepare` if there is one, and times it.
    """
    args = setting.arguments(kernel)
    same = kernel.reference, kernel.arguments  # which competitors share, and so what takes long to compute
    judged = setting.judges.get(same)
    if (
        judged is None or not kernel.competitor_of or set(kernel.writes) - {"out"}
    ):  # what a step is to give is of its start
        judged = setting.judges[same] = make_judge(kernel, args)
    start = perf_counter()
    call = kernel.prepare(*args) if kernel.prepare else functools.partial(kernel.trusted, *args)
    once = perf_counter() - start if kernel.prepare else 0.0
    out = next((arg for arg, (name, _, _) in zip(args, kernel.parsed, strict=True) if name == "out"), None)
    if kernel.prepare and out is not None:
        judged = functools.partial(_copy_and_judge, out, judged)
    return Ready(
        call, judged, kernel.cost(setting.sizes), setting.traffic(kernel), once, reasons.why_below(kernel.name)
    )


def _copy_and_judge(out: np.ndarray, judged: Judge, returned: Any) -> float:
    """Copy `returned`, unless it is None, into `out`, then return the error that `judged` finds.

    For competitors that keep their results in separate tensors.
    """
    if returned is not None:
        out[...] = np.asarray(returned)
    return judged(None)


def _plan(setting: Setting) -> Ready:
    """Return the call that builds the batch plan, checked against NumPy's unique columns and their counts."""
    batch = setting.batch
    call = functools.partial(plan.build, batch.indptr, batch.indices, batch.D)
    columns, counts = np.unique(batch.indices, return_counts=True)
    desired = [columns, np.concatenate([[0], np.cumsum(counts)])]
    return Ready(
        call, lambda result: largest_error([result.columns, result.segments], desired), plan_cost(setting.sizes)
    )


def plan_cost(s: Sizes) -> Cost:
    """Return the bytes that building a batch plan reads (indices) and writes (columns, segments, rows, order)."""
    return Cost(0, s.z * 3 * s.index + s.U * (8 + s.index) + (s.R + 1) * s.index)


def _argsort(setting: Setting) -> Ready:
    """Return NumPy's argsort and unique of the column indices as a competitor of the batch plan."""
    indices = setting.batch.indices

    def call():
        """Return the distinct columns of the batch in ascending order and the first position of each when sorted."""
        order = np.argsort(indices, kind="stable")
        return np.unique(indices[order], return_index=True)

    columns = np.unique(indices)
    return Ready(call, lambda result: largest_error([result[0]], [columns]), plan_cost(setting.sizes))


def _blas(task: str) -> Candidate:
    """Return the candidate that computes a sparse task on the batch made dense, by BLAS; at most 512 MiB."""
    kernel = kernels.get("blas.dense_dense")

    def make(setting: Setting) -> Ready:
        """Return the dense product of the setting's batch, ready to be timed; allocates the dense array [R, D]."""
        ours = kernels.get(task)
        *matrix, x, out = setting.arguments(ours)
        dense = np.zeros((setting.sizes.R, setting.sizes.D), x.dtype)
        rows = np.repeat(np.arange(setting.sizes.R), np.diff(matrix[0]))
        dense[rows, matrix[1]] = matrix[2]
        call = functools.partial(kernel.trusted, dense, x, out)
        return Ready(call, setting.judges[ours.reference, ours.arguments], kernel.cost(setting.sizes))

    return Candidate(kernel.name, "competitor", make, lambda s: s.R * s.D * s.value, BYTES_DENSE)


def _with_new_plan(task: str) -> Candidate:
    """Return the candidate that computes a gradient and builds the batch plan inside of the timed call."""
    kernel = kernels.get(task)

    def make(setting: Setting) -> Ready:
        """Return plan building and gradient as one timed call, with their joint cost."""
        batch, args = setting.batch, setting.arguments(kernel)
        named = {name: arg for (name, _, _), arg in zip(kernel.parsed, args, strict=True)}
        from_plan = [name for name in named if name in plan.BatchPlan.__dataclass_fields__]

        def call() -> None:
            """Build the plan of the batch, then write the gradient computed from it to the kernel's output array."""
            batch_plan = plan.build(batch.indptr, batch.indices, batch.D)
            named.update(
                {name: getattr(batch_plan, name) for name in from_plan}, values=batch_plan.in_order(batch.data)
            )
            kernel.trusted(*named.values())

        judged = setting.judges.get((kernel.reference, kernel.arguments)) or make_judge(kernel, args)
        both = kernel.cost(setting.sizes) + plan_cost(setting.sizes)
        return Ready(call, judged, both, setting.traffic(kernel))

    return Candidate(f"{task} + plan", "project", make, functools.partial(operand_bytes, kernel))


def _two_kernels(task: str) -> Candidate:
    """Return the candidate that replaces a fused kernel by the gradient kernel and then the lazy update kernel."""
    lazy, gradient = kernels.get(task.replace("_fused", "_lazy")), kernels.get("csr_t_dense")

    def make(setting: Setting) -> Ready:
        """Return gradient and lazy update as one timed call; computes the gradient once for the check."""
        first, second = setting.arguments(gradient), list(setting.arguments(lazy))
        second[[name for name, _, _ in lazy.parsed].index("gradient")] = first[-1]
        gradient.trusted(*first)
        judged = make_judge(lazy, second)

        def call() -> None:
            """Compute the gradient, then update the active rows of the tables in place from it."""
            gradient.trusted(*first)
            lazy.trusted(*second)

        both = gradient.cost(setting.sizes) + lazy.cost(setting.sizes)
        return Ready(call, judged, both, setting.traffic(gradient))

    both = lambda sizes: operand_bytes(lazy, sizes) + operand_bytes(gradient, sizes)  # noqa: E731
    return Candidate(f"csr_t_dense + {lazy.name}", "project", make, both)
