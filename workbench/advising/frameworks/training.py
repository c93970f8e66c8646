"""The rows that ways to train are timed on, what training on them comes to in float64, and how each way is checked.

A way has a `Trainer`, which trains batches of the next epoch from call to call. Its first batches are compared with the
float64 definition of stochastic gradient descent before it is timed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from time import perf_counter

import numpy as np
import scipy.sparse
import scipy.special

from kernels.registry import unknown_name
from workbench.measure.race import (
    Clock,
    Policy,
    Prepared,
    ReadyCandidate,
    Record,
    failure_record,
    measure_candidates,
)
from workbench.sweeps.spec import SpecError

RATE = 0.5
"""Learning rate for rows of length 1."""
ALLOWED = 1e-3
"""Largest relative error after the batches checked: float32 sums, of which the next steps are made."""
WORK_CHECKED = 2e8
"""Multiply-adds of the batches that are checked, about: a second."""
BATCHES_CHECKED = 2000
"""Batches checked at most; at least two, so that the second one's loss shows the first one's update."""
KINDS = ("dense", "sparse")
"""How X is held."""
SIDES = ("project", "independent")


@dataclass(frozen=True)
class State:
    """Weights of all columns, or of those that occur, [D or U, N], intercept [N], and the loss of each batch.

    The losses are None if a library does not report them.
    """

    w: np.ndarray
    b: np.ndarray
    losses: np.ndarray | None = None


@dataclass(frozen=True)
class Sizes:
    """Sizes of a training: D `features`, rows a batch, N outputs (`width`), the share of stored values, and a seed."""

    features: int
    batch_rows: int
    width: int
    density: float
    seed: int = 0

    @property
    def model(self) -> str:
        """Name of the model: "logistic" for one output, "softmax" for several."""
        return "logistic" if self.width == 1 else "softmax"


@dataclass(eq=False)
class Problem:
    """X [R, D] float32 dense and as CSR (`csr`, indices int32), `labels` int64 [R]; rows have length 1, about.

    `threads` is the thread count of every candidate, `rate` the learning rate.
    """

    sizes: Sizes
    dense: np.ndarray
    csr: scipy.sparse.csr_array
    labels: np.ndarray
    threads: int = 1
    rate: float = RATE
    states: dict[tuple, State] = field(default_factory=dict)

    @property
    def batch_rows(self) -> int:
        """Number of rows of a batch."""
        return self.sizes.batch_rows

    @property
    def outputs(self) -> int:
        """Number of outputs N, columns of the weights."""
        return self.sizes.width

    @property
    def features(self) -> int:
        """Number of columns D of the data."""
        return self.sizes.features

    @property
    def batches(self) -> int:
        """Number of whole batches of an epoch."""
        return len(self.labels) // self.batch_rows

    @cached_property
    def targets(self) -> np.ndarray:
        """Labels as the project's models take them: float32 [R, 1] for logistic regression, int64 [R] for softmax."""
        return self.labels.astype(np.float32)[:, None] if self.outputs == 1 else self.labels

    def order(self, epoch: int) -> np.ndarray:
        """Return the row indices of an epoch in random order, int64 [R], the same for the same seed and epoch."""
        return np.random.default_rng((self.sizes.seed, epoch)).permutation(len(self.labels))

    def expected(self, order: np.ndarray, rate_intercept: float | None = None) -> State:
        """Return weights, intercept and losses after training on the rows of `order` from zero, in float64; cached.

        `rate_intercept` is another learning rate of the intercept, None for that of the weights.
        """
        rate_b = self.rate if rate_intercept is None else rate_intercept
        key = order.tobytes(), rate_b
        if key not in self.states:  # most candidates train on the same rows
            self.states[key] = self._trained(order, rate_b)
        return self.states[key]

    def _trained(self, order: np.ndarray, rate_intercept: float) -> State:
        """Return what stochastic gradient descent on the batches of `order` comes to, by definition, in float64."""
        w, b, losses = np.zeros((self.features, self.outputs)), np.zeros(self.outputs), self.new_losses(order)
        for batch in range(losses.size):
            rows = order[batch * self.batch_rows : (batch + 1) * self.batch_rows]
            x = self.csr[rows].astype(np.float64)
            losses[batch], grad_scores = loss_and_gradient(x @ w + b, self.labels[rows])
            of_entries = np.repeat(grad_scores, np.diff(x.indptr), axis=0)
            np.subtract.at(w, x.indices, self.rate * x.data[:, None] * of_entries)
            b -= rate_intercept * grad_scores.sum(axis=0)
        return State(w, b, losses)

    def new_losses(self, order: np.ndarray) -> np.ndarray:
        """Return a zeroed float64 array with an element for each batch of `order`."""
        return np.zeros(order.size // self.batch_rows)


def loss_and_gradient(scores: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean loss of scores [R, N] and its gradient [R, N]: logistic for one output, else softmax.

    `labels` [R] are 0 and 1 for one output, else class indices.

    >>> loss_and_gradient(np.zeros((1, 1)), np.array([1]))[1].tolist()
    [[-0.5]]
    """
    rows = len(scores)
    if scores.shape[1] == 1:
        z, y = scores[:, 0], labels
        loss = np.logaddexp(0.0, z) - z * y
        return float(loss.mean()), ((scipy.special.expit(z) - y) / rows)[:, None]
    logs = scipy.special.log_softmax(scores, axis=1)
    own = np.arange(rows), labels
    gradient = np.exp(logs)
    gradient[own] -= 1
    return float(-logs[own].mean()), gradient / rows


def error_of(state: State, expected: State) -> float:
    """Return the largest error of weights, intercept and losses, each relative to its largest expected value.

    inf if anything is not finite.
    """
    pairs = [(state.w, expected.w), (state.b, expected.b)]
    if state.losses is not None and expected.losses is not None:
        pairs.append((state.losses, expected.losses))
    worst = float(np.max([np.abs(came - wanted).max() / (np.abs(wanted).max() or 1.0) for came, wanted in pairs]))
    return worst if np.isfinite(worst) else float("inf")


class Trainer(ABC):
    """A training that goes on from call to call, each on batches of the next epoch's order."""

    def __init__(self, problem: Problem) -> None:
        """Store the problem; nothing is trained yet."""
        self.problem = problem

    @abstractmethod
    def run(self, batches: int) -> int:
        """Train at least `batches` batches of the next epoch, in a newly drawn order; return how many it trained."""

    @abstractmethod
    def state(self) -> State:
        """Return weights, intercept and the losses of the last run."""

    def first_order(self) -> np.ndarray:
        """Return the row indices of the first epoch in the order that the first run takes them, int64 [R]."""
        return self.problem.order(0)

    @property
    def rate_intercept(self) -> float | None:
        """Learning rate of the intercept if it differs from that of the weights, else None."""
        return None


class LoopTrainer(Trainer):
    """A training by a function of an order of rows: the epoch's order is drawn in each run, as users do."""

    def __init__(self, problem: Problem) -> None:
        """Store the problem; the next epoch is number 0 and there are no losses yet."""
        super().__init__(problem)
        self.epoch = 0
        self.losses = np.zeros(0)

    @abstractmethod
    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in place; write the mean loss of each batch to `losses` (float64)."""

    def run(self, batches: int) -> int:
        """Draw the next epoch's order and train its first `batches` batches; return `batches`.

        Their mean losses are in `losses` then.
        """
        order = self.problem.order(self.epoch)[: batches * self.problem.batch_rows]
        self.losses = self.problem.new_losses(order)
        self.train(order, self.losses)
        self.epoch += 1
        return batches


@dataclass(frozen=True)
class Candidate:
    """A way to train: its name and side, how X is held (`kind`), and how it is made ready.

    `why_not` returns why it does not train a problem, or ""; `needs` is the package that it imports, `install` the line
    that gets it. `near` is the factor to the fastest independent one of its kind beyond which it is left out, for what
    takes long to make ready; it is then compared with the candidate named `like`, which does the same work.
    `note` says what of its work differs from that of the others.
    """

    name: str
    side: str
    kind: str
    make: Callable[[Problem], Trainer]
    why_not: Callable[[Problem], str] = lambda problem: ""
    needs: str = ""
    install: str = ""
    like: str = ""
    near: float = float("inf")
    note: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for an unknown `side` or `kind`."""
        for name, allowed in (("side", SIDES), ("kind", KINDS)):
            if getattr(self, name) not in allowed:
                raise SpecError(f"{self.name}: {unknown_name(name, getattr(self, name), allowed)}")

    def unavailable(self, problem: Problem) -> str:
        """Return why it does not take part in a problem, "" if it does; nothing is imported."""
        return why_not_installed(self.needs, self.install) or self.why_not(problem)


def why_not_installed(package: str, install: str) -> str:
    """Return that a package is not installed, with the line to type; "" if it is, or for "". Nothing is imported."""
    return f"{package} is not installed: {install}." if package and not find_spec(package) else ""


def measure(
    problem: Problem, candidates: Sequence[Candidate], policy: Policy, clock: Clock = perf_counter
) -> Iterator[Record]:
    """Check and time candidates on a problem; yield answers as `workbench.measure.race.measure_candidates` does."""

    def prepare(candidate: Candidate, able: Mapping[str, ReadyCandidate]) -> Prepared:
        """Make a candidate ready unless there is a reason to leave it out."""
        record = skipped_record(candidate, problem, able)
        return (record, None) if record else prepare_candidate(candidate, problem, policy, clock)

    return measure_candidates({one.name: partial(prepare, one) for one in candidates}, policy, clock)


def batches_checked(problem: Problem) -> int:
    """Return how many batches a candidate trains before its weights are checked: at least 2, about a second's work."""
    work = max(problem.csr.nnz / max(problem.batches, 1) * problem.outputs * 2, 1.0)
    return min(problem.batches, BATCHES_CHECKED, max(2, int(WORK_CHECKED / work)))


def wrong_record(error: float | None) -> Record:
    """Return the columns `status` and `reason` of a candidate whose error is above `ALLOWED`; {} for another one.

    An error of None was not found out.
    """
    if error is None or error <= ALLOWED:
        return {}
    reason = f"Differs from float64 loops over the same batches by {error:.2g}; allowed is {ALLOWED:g}."
    return {"status": "wrong", "reason": reason}


def skipped_record(candidate: Candidate, problem: Problem, able: Mapping[str, ReadyCandidate]) -> Record:
    """Return the columns of a candidate that is not prepared: unavailable, or similar to a far slower one; else {}.

    `able` are the candidates prepared before it.
    """
    if reason := candidate.unavailable(problem):
        return {"status": "unsupported", "reason": reason}
    estimates = [one.estimate for one in able.values() if one.group == (candidate.side, candidate.kind)]
    if candidate.like not in able or not estimates:
        return {}
    factor = able[candidate.like].estimate / min(estimates)
    reason = (
        f"{candidate.like} takes {factor:.3g} times the fastest one's time; beyond {candidate.near:g} "
        f"times it is left out."
    )
    return {"status": "skipped", "reason": reason} if factor > candidate.near else {}


def prepare_candidate(candidate: Candidate, problem: Problem, policy: Policy, clock: Clock) -> Prepared:
    """Return (columns, ready candidate or None): make it, check its first run in float64, calibrate the call.

    An exception becomes the columns `status` and `reason`. Prints the traceback of an unexpected exception.
    """
    start = clock()
    try:
        trainer = candidate.make(problem)
        done = trainer.run(batches_checked(problem))
        order = trainer.first_order()[: done * problem.batch_rows]
        error = error_of(trainer.state(), problem.expected(order, trainer.rate_intercept))
    except Exception as failure:
        return failure_record(failure), None
    known: Record = {"error": error, "error_allowed": ALLOWED, "batches_checked": done}
    known["seconds_ready"] = clock() - start
    if wrong := wrong_record(error):
        return wrong | known, None
    batches, estimate = calibrate(trainer, problem, policy, clock)

    def call() -> float:
        """Train the batches of a call and return the seconds of a batch."""
        seconds, done = time_run(trainer, batches, clock)
        return seconds / done

    known |= {"status": "ok", "reason": "", "batches_call": batches}
    return known, ReadyCandidate((candidate.side, candidate.kind), call, estimate)


def calibrate(trainer: Trainer, problem: Problem, policy: Policy, clock: Clock) -> tuple[int, float]:
    """Return (batches per call, seconds per batch).

    Batches are added until a call takes about `policy.seconds_call`.
    """
    batches = batches_checked(problem)
    for _ in range(4):
        seconds, done = time_run(trainer, batches, clock)
        estimate = seconds / done
        wanted = min(max(1, round(policy.seconds_call / max(estimate, 1e-9))), problem.batches)
        if wanted <= 1.5 * batches:
            break
        batches = wanted
    again, done = time_run(trainer, wanted, clock)
    return wanted, min(estimate, again / done)


def time_run(trainer: Trainer, batches: int, clock: Clock) -> tuple[float, int]:
    """Return (seconds, batches trained) of one run of at least `batches` batches."""
    start = clock()
    done = trainer.run(batches)
    return clock() - start, done
