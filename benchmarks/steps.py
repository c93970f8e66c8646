"""A whole training step: from a CSR batch to changed weights, lazily; ours, on squared loss, and what competitors
share.

Each learner keeps one table of weights [D, N] and its state, and goes through the problem's batches in turn. `repeat`
prepares every batch once, before the clock; `new` prepares each in its step. Checked are the weights after one turn.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, final

import numpy as np
import scipy.sparse

import kernels
from benchmarks.candidates import Ready
from benchmarks.shapes import Batch, BenchError, Shape, draw_batch
from kernels import Cost, Sizes, aligned, plan
from kernels.registry import unknown_name

TURN = 4
"""Batches that a learner goes through in turn, so that no cache holds the next one's rows for free."""

ALLOWED = 2e-3
"""Error allowed, relative to the largest movement of a weight."""

OPTIONS: dict[str, dict[str, float]] = {
    "sgd": {"learning_rate": 0.5, "decay": 0.0},
    "adagrad": {"learning_rate": 0.05, "decay": 0.0, "epsilon": 1e-20},
    "adam": {"learning_rate": 0.01, "decay": 0.0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
}
"""Settings of each optimizer, the same for every learner. The epsilon of AdaGrad stands inside the root in ours, and
outside in the others: it is so small that no gradient of these problems tells the difference."""

UNCHANGED = {"rescale": 1.0, "clip": math.inf}
"""What else the kernels of ours take: the gradient as it is."""

STATES = {"sgd": (), "adagrad": ("history",), "adam": ("mean", "variance")}


@dataclass(frozen=True, eq=False)
class Problem:
    """Batches that follow each other, targets [R, N] of each, and the weights of all rows that they touch at first."""

    batches: tuple[Batch, ...]
    targets: tuple[np.ndarray, ...]
    active: np.ndarray
    weights: np.ndarray
    optimizer: str
    loss: str
    tables: tuple[np.ndarray, ...]
    """Weights and states [D, N], zeros where not touched: learners that can share memory share these."""

    @property
    def options(self) -> dict[str, float]:
        """Options of the optimizer by name, with the constant ones that the kernels take (rescale, clip)."""
        return {**OPTIONS[self.optimizer], **UNCHANGED}

    def reset(self) -> None:
        """Set the active rows of the shared tables to the initial weights and zero states, in place."""
        self.tables[0][self.active] = self.weights
        for state in self.tables[1:]:
            state[self.active] = 0


GRAD_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared": lambda scores, targets: (scores - targets) / len(targets),
    "logistic": lambda scores, targets: (1 / (1 + np.exp(-scores)) - targets) / targets.size,
}
"""Slopes of losses by scores and targets [R, N]; the logistic one is PyTorch's mean over all."""

PROBABLE = (0.75, 0.25)
"""Targets of the logistic loss. With 1 and 0 thousands of steps on few batches end in scores whose exponentials are
denormal, which takes a hundred times as long and which no training has."""


def make_problem(shape: Shape, width: int, optimizer: str, seed: int = 0, loss: str = "squared") -> Problem:
    """Return the problem of a shape: batches, targets, initial weights and tables; BenchError for another optimizer.

    `width` is N; `loss` is "squared" or "logistic"; batch k is drawn from `seed` + k.
    """
    if optimizer not in OPTIONS:
        raise BenchError(unknown_name("optimizer in this suite", optimizer, OPTIONS))
    batches = tuple(draw_batch(shape, seed + number, N=width) for number in range(TURN))
    active = np.unique(np.concatenate([batch.indices for batch in batches]))
    targets = tuple(batch.dense(batch.R, width, salt=7) for batch in batches)
    if loss == "logistic":
        targets = tuple(np.where(each > 0, *PROBABLE).astype(np.float32) for each in targets)
    tables = tuple(aligned.zeros((shape.features, width), np.float32) for _ in range(1 + len(STATES[optimizer])))
    return Problem(batches, targets, active, batches[0].dense(active.size, width, salt=5), optimizer, loss, tables)


class Learner(Protocol):
    """Steps of a library; `prepare` is all that depends on the batch's indices and values alone."""

    def prepare(self, number: int) -> Any:
        """Return batch `number` in the library's form; everything that depends on its entries alone."""

    def step(self, prepared: Any) -> None:
        """Do one training step on a prepared batch in place: forward, loss, gradient, update."""

    def start(self) -> None:
        """Reset weights and states to the initial ones."""

    def weights(self) -> np.ndarray:
        """Return the present weights of the active rows, float32 [U, N]."""


def expected_weights(problem: Problem, every: bool = False) -> np.ndarray:
    """Return the weights of the active rows after one pass over the batches, float64 [U, N], by SciPy and formulas.

    With `every` each step updates all rows, as a dense gradient does.
    """
    weights = problem.weights.astype(np.float64)
    states = [np.zeros_like(weights) for _ in STATES[problem.optimizer]]
    for number, (batch, target) in enumerate(zip(problem.batches, problem.targets, strict=True)):
        columns, places = np.unique(batch.indices, return_inverse=True)
        x = scipy.sparse.csr_array((batch.data.astype(np.float64), places, batch.indptr))
        at: Any = np.searchsorted(problem.active, columns)
        gradient = x.T @ GRAD_SCORES[problem.loss](x @ weights[at], target)
        if every:
            spread = np.zeros_like(weights)
            spread[at], at = gradient, slice(None)
            gradient = spread
        part = [table[at].copy() for table in (weights, *states)]
        _apply(problem, part, gradient, number + 1, every)
        for table, changed in zip((weights, *states), part, strict=True):
            table[at] = changed
    return weights


def _apply(problem: Problem, part: list[np.ndarray], gradient: np.ndarray, step: int, every: bool) -> None:
    """Apply one optimizer step to `part` (weights and states, [U, N] each) in place, by formulas.

    The epsilon of PyTorch's Adam for dense gradients (`every`) comes after the correction of the bias.
    """
    o = problem.options
    if problem.optimizer == "sgd":
        part[0] -= o["learning_rate"] * gradient
    elif problem.optimizer == "adagrad":
        part[1] += gradient**2
        part[0] -= o["learning_rate"] * gradient / np.sqrt(part[1] + o["epsilon"])
    else:
        part[1] += (1 - o["beta1"]) * (gradient - part[1])
        part[2] += (1 - o["beta2"]) * (gradient**2 - part[2])
        corrected = np.sqrt(1 - o["beta2"] ** step)
        rate = o["learning_rate"] * corrected / (1 - o["beta1"] ** step)
        part[0] -= rate * part[1] / (np.sqrt(part[2]) + o["epsilon"] * (corrected if every else 1))


def error(actual: np.ndarray, expected: np.ndarray, start: np.ndarray) -> float:
    """Return the 99.9th percentile of the weight errors relative to the largest movement from `start`.

    The result is inf if a weight is not finite. A percentile, since Adam makes a full step of the sign of a gradient
    that is zero but for rounding.
    """
    if not np.isfinite(actual).all():
        return float("inf")
    return float(np.quantile(np.abs(actual - expected), 0.999) / np.abs(expected - start).max())


def ready(learner: Learner, problem: Problem, batches: str, expected: np.ndarray) -> Ready:
    """Return one pass over the batches as a timed call; "repeat" prepares the batches before, "new" inside.

    `expected` are the correct weights after one pass, float64 [U, N], against which it is checked.
    """
    numbers = range(len(problem.batches))
    start = perf_counter()
    keep = getattr(learner, "keep", learner.prepare)
    kept = [keep(number) for number in numbers] if batches == "repeat" else None
    once = perf_counter() - start if kept else 0.0

    def turn() -> None:
        """Do one step of the learner per batch, in order."""
        for number in numbers:
            learner.step(kept[number] if kept else learner.prepare(number))

    learner.start()
    phases = getattr(learner, "phases", None)
    judged = lambda _: error(learner.weights(), expected, problem.weights)  # noqa: E731
    return Ready(turn, judged, _cost(problem), seconds_once=once, steps=len(numbers), phases=phases)


def _cost(problem: Problem) -> Cost:
    """Return the mean cost of a step over the batches, by the formulas of its kernels.

    They are the products forward and backward, the loss and the lazy update.
    """
    names = ("csr_dense", "squared", "csr_t_dense", f"{problem.optimizer}_lazy")
    each = []
    for batch in problem.batches:
        sizes = Sizes(batch.R, batch.indices.size, batch.D, batch.N, np.unique(batch.indices).size)
        each += [kernels.get(name).cost(sizes) for name in names]
    return sum(each, Cost(0, 0)).over(len(problem.batches))


@final
@dataclass
class Phases:
    """Seconds of each phase of steps, added up until they are asked for."""

    seconds: dict[str, float] = field(default_factory=dict)
    steps: int = 0

    def split(self, phase: str, start: float) -> float:
        """Add the time since `start` to a phase; return the present time (s)."""
        now = perf_counter()
        self.add(phase, now - start)
        return now

    def add(self, phase: str, seconds: float) -> None:
        """Add seconds to the total of a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def add_all(self, seconds: Mapping[str, float]) -> None:
        """Add `seconds` by phase to the totals, phases of 0 s left out; one call, since its own time counts."""
        total = self.seconds
        for phase, more in seconds.items():
            if more:
                total[phase] = total.get(phase, 0.0) + more

    def __call__(self) -> dict[str, float]:
        """Return {phase: mean seconds per step} since the last call, and reset the totals."""
        means = {phase: seconds / max(self.steps, 1) for phase, seconds in self.seconds.items()}
        self.seconds, self.steps = {}, 0
        return means


@dataclass
class Ours:
    """The kernels of this project: plan, product, loss, then gradient and update in one kernel, or in two."""

    problem: Problem
    fused: bool = True
    t: int = 0
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        """Allocate scores and their gradient and look up the kernels.

        `fused` is dropped if there is no fused kernel.
        """
        problem, name = self.problem, self.problem.optimizer
        rows, width = problem.targets[0].shape
        self.scores, self.grad_scores = (aligned.empty((rows, width), np.float32) for _ in range(2))
        self.product, self.loss = kernels.get("csr_dense").trusted, kernels.get("squared").trusted
        self.gradient, self.lazy = kernels.get("csr_t_dense").trusted, kernels.get(f"{name}_lazy").trusted
        self.fused = self.fused and f"{name}_fused" in kernels.names()
        self.update = kernels.get(f"{name}_fused").trusted if self.fused else None

    def prepare(self, number: int) -> tuple[Batch, plan.BatchPlan, np.ndarray]:
        """Return (batch, its plan with values in order, targets) of batch `number`; adds to the phase "plan"."""
        batch, start = self.problem.batches[number], perf_counter()
        batch_plan = plan.build(batch.indptr, batch.indices, batch.D, batch.data)
        batch_plan.in_order(batch.data)
        self.phases.split("plan", start)
        return batch, batch_plan, self.problem.targets[number]

    def step(self, prepared: tuple[Batch, plan.BatchPlan, np.ndarray]) -> None:
        """Do one training step on a prepared batch, in place in the problem's tables; adds up the phase times."""
        batch, batch_plan, targets = prepared
        self.t += 1
        self.phases.steps += 1
        now = perf_counter()
        self.product(batch.indptr, batch.indices, batch.data, self.problem.tables[0], self.scores)
        now = self.phases.split("forward", now)
        self.loss(self.scores, targets, self.grad_scores)
        now = self.phases.split("loss", now)
        numbers = (*self.problem.options.values(), *((self.t,) if self.problem.optimizer == "adam" else ()))
        entries = batch_plan.segments, batch_plan.rows, batch_plan.in_order(batch.data), self.grad_scores
        if self.update is not None:
            self.update(*self.problem.tables, batch_plan.columns, *entries, *numbers)
        else:
            gradient = np.empty((batch_plan.touched, batch.N), np.float32)  # [U, N]
            self.gradient(*entries, gradient)
            now = self.phases.split("gradient", now)
            self.lazy(*self.problem.tables, batch_plan.columns, gradient, *numbers)
        self.phases.split("update", now)

    def start(self) -> None:
        """Reset the problem's tables and the step count."""
        self.problem.reset()
        self.t = 0

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.problem.tables[0][self.problem.active]


@dataclass(frozen=True)
class StepCandidate:
    """A learner by name, made when its turn comes; or why it cannot take part."""

    name: str
    side: str
    make: Callable[[Problem], Learner]
    unavailable: str = ""
    shares: bool = True
    """Whether it works on the problem's own tables; else it keeps a copy."""
    every: bool = False
    """Whether it steps every row."""
