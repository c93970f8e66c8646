"""Contenders of a case: each makes itself ready on the case's batch, and is then a call that is timed.

The arguments of a kernel are made by the kernel itself, once for all contenders that take the same.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from kernels import Cost, Kernel, Sizes, plan
from workbench.bench.definition import Judge, error, judge
from workbench.bench.shapes import Batch, BenchError, Shape
from workbench.bench.traffic import UNKNOWN, Traffic, traffic_of

BYTES_DENSE = 512 * 2**20
"""Largest batch that is made dense for BLAS."""


@dataclass
class Ready:
    """A call to be timed, and what it costs. `judge` gives the error of a call from what the call returned."""

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
    """The batch of a case, its sizes, and arguments that contenders share."""

    batch: Batch
    sizes: Sizes
    shared: dict[Any, tuple] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch) -> "Setting":
        """Setting of a batch whose width is that of the case."""
        touched = np.unique(batch.indices).size
        widths = batch.data.itemsize, batch.indices.itemsize
        return cls(batch, Sizes(batch.R, batch.indices.size, batch.D, batch.N, touched, *widths))

    def arguments(self, kernel: Kernel) -> tuple:
        """The kernel's arguments; kernels that make theirs in the same way get the same arrays.

        Updates have no decay: with it thousands of steps on one batch bring states down to denormal numbers, which take
        up to a third longer and which no training has.
        """
        if kernel.arguments not in self.shared:
            named = zip(kernel.parsed, kernel.arguments(self.batch), strict=True)
            self.shared[kernel.arguments] = tuple(0.0 if name == "decay" else arg for (name, _, _), arg in named)
        return self.shared[kernel.arguments]

    def traffic(self, kernel: Kernel) -> Traffic:
        """Memory traffic of the kernel on this batch."""
        return traffic_of(kernel, self.sizes, self.batch)


@dataclass(frozen=True)
class Contender:
    """A name, a side (ours or rival), how it makes itself ready, the bytes that takes and the most it may take (None:
    the run's own limit), and why it cannot take part."""

    name: str
    side: str
    make: Callable[[Setting], Ready]
    bytes_needed: Callable[[Sizes], int] = lambda sizes: 0
    bytes_most: int | None = None
    unavailable: str = ""


def contenders(task: str, shape: Shape) -> list[Contender]:
    """All that compute `task` on a shape, the first of ours first; `BenchError` lists the known tasks."""
    if task not in (known := tasks()):
        raise BenchError(f"There is no task {task!r}; there is: {', '.join(known)}.")
    if task == "plan":
        return [Contender("plan.build", "ours", _plan), Contender("numpy.argsort", "rival", _argsort)]
    ours = [of_kernel(kernels.get(task))]
    if shape.values == "ones" and f"{task}_ones" in kernels.names():
        ours.append(of_kernel(kernels.get(f"{task}_ones")))
    return ours + _rivals(task) + _more(task)


def _rivals(task: str) -> list[Contender]:
    """Rivals on the CPU, available or not; others run on a GPU alone."""
    return [of_kernel(rival, "rival") for rival in kernels.rivals_of(task) if rival.cpu or not rival.gpu]


def _more(task: str) -> list[Contender]:
    """Contenders that are not one kernel with the arguments of `task`."""
    if task == "csr_dense":
        return [_blas(task)]
    if task == "csr_t_dense":
        return [_planned(task), *_rivals("csr_t_dense_full")]
    return [_two_kernels(task)] if task.endswith("_fused") else []


def tasks() -> list[str]:
    """Names of what the suite `kernels` can measure: kernels of ours whose cost is of the batch, and the batch plan."""
    names = [name for name in kernels.names() if "." not in name and not name.endswith("_ones")]
    every_row = {name.replace("_lazy", "_dense") for name in names if name.endswith("_lazy")}
    return ["plan", *(name for name in names if name not in every_row and kernels.get(name).trusted is not None)]


def of_kernel(kernel: Kernel, side: str = "ours") -> Contender:
    """A registered kernel as it stands."""
    make, needed = functools.partial(_ready, kernel), functools.partial(operand_bytes, kernel)
    return Contender(kernel.name, side, make, needed, unavailable=kernel.unavailable)


def operand_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Bytes of the arrays that a call takes, and of their copies in float64 for the check."""
    letters = {"R": sizes.R, "M": sizes.R, "D": sizes.D, "N": sizes.N, "U": sizes.U, "V": sizes.U}
    each = {"f": sizes.value, "i": sizes.index, "l": 8, "s": 0}
    return 3 * sum(
        each[kind] * int(np.prod([letters.get(letter, sizes.z) for letter, _ in axes], dtype=np.int64))
        for _, kind, axes in kernel.parsed
    )


def _ready(kernel: Kernel, setting: Setting) -> Ready:
    args = setting.arguments(kernel)
    same = kernel.reference, kernel.arguments  # which rivals share, and so what takes long to compute
    judged = setting.shared.get(same)
    if judged is None or not kernel.rival_of or set(kernel.writes) - {"out"}:  # what a step is to give is of its start
        judged = setting.shared[same] = judge(kernel, args)
    start = perf_counter()
    call = kernel.prepare(*args) if kernel.prepare else functools.partial(kernel.trusted, *args)
    once = perf_counter() - start if kernel.prepare else 0.0
    out = next((arg for arg, (name, _, _) in zip(args, kernel.parsed, strict=True) if name == "out"), None)
    if kernel.prepare:
        judged = functools.partial(_into, out, judged)
    return Ready(call, judged, kernel.cost(setting.sizes), setting.traffic(kernel), once, kernel.why_below)


def _into(out: np.ndarray, judged: Judge, returned: Any) -> float:
    """Judge a result that a rival keeps in a tensor of its own."""
    if returned is not None:
        out[...] = np.asarray(returned)
    return judged(None)


def _plan(setting: Setting) -> Ready:
    batch = setting.batch
    call = functools.partial(plan.build, batch.indptr, batch.indices, batch.D)
    columns, counts = np.unique(batch.indices, return_counts=True)
    desired = [columns, np.concatenate([[0], np.cumsum(counts)])]
    return Ready(call, lambda result: error([result.columns, result.segments], desired), plan_cost(setting.sizes))


def plan_cost(s: Sizes) -> Cost:
    """Column numbers in; columns, segments, rows and permutation out."""
    return Cost(0, s.z * 3 * s.index + s.U * (8 + s.index) + (s.R + 1) * s.index)


def _argsort(setting: Setting) -> Ready:
    indices = setting.batch.indices

    def call():
        order = np.argsort(indices, kind="stable")
        return np.unique(indices[order], return_index=True)

    columns = np.unique(indices)
    return Ready(call, lambda result: error([result[0]], [columns]), plan_cost(setting.sizes))


def _blas(task: str) -> Contender:
    kernel = kernels.get("blas.dense_dense")

    def make(setting: Setting) -> Ready:
        ours = kernels.get(task)
        *matrix, x, out = setting.arguments(ours)
        dense = np.zeros((setting.sizes.R, setting.sizes.D), x.dtype)
        rows = np.repeat(np.arange(setting.sizes.R), np.diff(matrix[0]))
        dense[rows, matrix[1]] = matrix[2]
        call = functools.partial(kernel.trusted, dense, x, out)
        return Ready(call, setting.shared[ours.reference, ours.arguments], kernel.cost(setting.sizes))

    return Contender(kernel.name, "rival", make, lambda s: s.R * s.D * s.value, BYTES_DENSE)


def _planned(task: str) -> Contender:
    """The gradient of a new batch: its plan is built in the call."""
    kernel = kernels.get(task)

    def make(setting: Setting) -> Ready:
        batch, args = setting.batch, setting.arguments(kernel)
        named = {name: arg for (name, _, _), arg in zip(kernel.parsed, args, strict=True)}
        from_plan = [name for name in named if name in plan.BatchPlan.__dataclass_fields__]

        def call() -> None:
            batch_plan = plan.build(batch.indptr, batch.indices, batch.D)
            named.update(
                {name: getattr(batch_plan, name) for name in from_plan}, values=batch_plan.in_order(batch.data)
            )
            kernel.trusted(*named.values())

        judged = setting.shared.get((kernel.reference, kernel.arguments)) or judge(kernel, args)
        both = kernel.cost(setting.sizes) + plan_cost(setting.sizes)
        return Ready(call, judged, both, setting.traffic(kernel))

    return Contender(f"{task} + plan", "ours", make, functools.partial(operand_bytes, kernel))


def _two_kernels(task: str) -> Contender:
    """Contender that does what a fused kernel does by the gradient and then the lazy update."""
    lazy, gradient = kernels.get(task.replace("_fused", "_lazy")), kernels.get("csr_t_dense")

    def make(setting: Setting) -> Ready:
        first, second = setting.arguments(gradient), list(setting.arguments(lazy))
        second[[name for name, _, _ in lazy.parsed].index("gradient")] = first[-1]
        gradient.trusted(*first)
        judged = judge(lazy, second)

        def call() -> None:
            gradient.trusted(*first)
            lazy.trusted(*second)

        both = gradient.cost(setting.sizes) + lazy.cost(setting.sizes)
        return Ready(call, judged, both, setting.traffic(gradient))

    both = lambda sizes: operand_bytes(lazy, sizes) + operand_bytes(gradient, sizes)  # noqa: E731
    return Contender(f"csr_t_dense + {lazy.name}", "ours", make, both)
