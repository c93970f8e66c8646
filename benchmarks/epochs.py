"""Whole epochs of every shape and rule, compared with the fastest loop that does the same work: `benchmarks epochs`.

A configuration is logistic regression (N = 1) or softmax on synthetic CSR rows, float32, with an intercept and the
loss of every batch. A process draws the rows, makes every candidate ready, compares its first epoch with float64 loops,
and times whole epochs in turned rounds. Batches are new in each epoch, with the order drawn in the timed call, or they
repeat, and what depends on the batches alone is made before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import Any, final

import numpy as np

from benchmarks import epoch_loops, epoch_problem, experiment, tables
from benchmarks.child import set_threads
from benchmarks.epoch_loops import RULES
from benchmarks.epoch_problem import BATCHES_INDEXED, Configuration, Problem, error_of
from benchmarks.experiment import Record
from benchmarks.fair import measure
from benchmarks.fit.candidates import Rows, vowpal_wabbit
from workbench import training
from workbench.advising.frameworks import training as training_of_ways
from workbench.advising.frameworks.training import State, why_not_installed
from workbench.advising.frameworks.ways.scikit_learn import DECAY_SPARSE
from workbench.measure import closure, race
from workbench.sweeps import spec

# Candidates


class Trainer(ABC):
    """A training that goes on from epoch to epoch; `seconds_start` of each call are no training and are taken off."""

    seconds_start = 0.0
    is_compared = True
    """Whether its weights are compared with those of the float64 loops."""

    def __init__(self, problem: Problem) -> None:
        """Store the problem; the next epoch is number 0."""
        self.problem, self.epoch = problem, 0

    def run(self) -> None:
        """Train the next epoch in place; its number, counted from 0, determines the order of the rows."""
        self.train(self.epoch)
        self.epoch += 1

    @abstractmethod
    def train(self, epoch: int) -> None:
        """Train epoch number `epoch` in place, with the rows in the order that this number gives."""

    @abstractmethod
    def state(self) -> State:
        """Return weights of the occurring columns [U, N], intercept [N] and the losses of the last epoch."""

    def first_order(self) -> np.ndarray:
        """Return the row indices of the first epoch in the order they are trained on, int64 [R]."""
        return self.problem.order(0)

    @property
    def rate_intercept(self) -> float:
        """Learning rate of the intercept; that of the weights unless a subclass differs."""
        return self.problem.configuration.rate


PROJECT = {
    "epoch": {"execution": "epoch", "gradient": "row_sparse"},
    "steps": {"execution": "step", "gradient": "fused"},
}


@final
class ProjectTrainer(Trainer):
    """The project's training, `epoch` in compiled calls or step by step on batches whose column index is kept."""

    def __init__(self, problem: Problem, how: str) -> None:
        """Make the project's training of the problem.

        `how` is "epoch" (compiled call) or "steps" (kernels per step).
        """
        super().__init__(problem)
        one = problem.configuration
        setup = training.Setup(
            model=one.model,
            optimizer=one.optimizer,
            options={"learning_rate": one.rate},
            batch_rows=one.batch_rows,
            intercept=True,
            shuffle=one.batches == "new",
            seed=one.seed,
            format="csr",
            update="lazy",
            **PROJECT[how],
        )
        targets = problem.targets[:, None] if one.width == 1 else problem.targets
        self.training: Any = training.make_run(setup, problem.csr, targets, one.width)
        self.losses: list[Any] = []

    def first_order(self) -> np.ndarray:
        """Return the row indices of the training's own first epoch, int64 [R]."""
        return self.training.batches.order(0)

    def train(self, epoch: int) -> None:
        """Train epoch number `epoch` and keep the losses of its events (a batch or several) in `losses`."""
        self.losses = [event.loss if event.losses is None else event.losses for event in self.training.epoch(epoch)]

    def state(self) -> State:
        """Return weights of the occurring columns [U, N], intercept [N], and each batch's loss of the last epoch."""
        w = self.training.weights[self.problem.occurring[0]]
        return State(w, self.training.intercept.reshape(-1), np.hstack(self.losses))


@dataclass
class Arrays:
    """Weights, states, and those of the intercept, which the loops of a problem train in turn."""

    tables: tuple[np.ndarray, ...]
    intercept: tuple[np.ndarray, ...]
    room: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, problem: Problem) -> "Arrays":
        """Return zeroed arrays for a loop: weights and states [D * N], those of the intercept [N], and work arrays."""
        one = problem.configuration
        count = RULES[one.optimizer]
        tables = tuple(np.zeros(one.features * one.width, np.float32) for _ in range(count))
        intercept = tuple(np.zeros(one.width, np.float32) for _ in range(count))
        return cls(tables, intercept, epoch_loops.new_room(problem.csr, one.batch_rows, one.width))

    def clear(self, columns: np.ndarray, width: int) -> None:
        """Set weights and states of `columns`, and the whole intercept, to zero in place; `width` is the outputs N."""
        for table in self.tables:
            table.reshape(-1, width)[columns] = 0
        for array in self.intercept:
            array[:] = 0


@final
class LoopTrainer(Trainer):
    """A plain Numba loop; the loops of a problem share their arrays, which are cleared for each to begin with."""

    def __init__(self, problem: Problem, how: str) -> None:
        """Compile the Numba loop `how` and zero the problem's shared arrays, which one loop at a time may use."""
        super().__init__(problem)
        one = problem.configuration
        self.loop = epoch_loops.loop_of(one.optimizer, one.width, how)
        if "arrays" not in problem.shared:
            problem.shared["arrays"] = Arrays.of(problem)
        self.arrays: Arrays = problem.shared["arrays"]
        self.arrays.clear(problem.occurring[0], one.width)
        self.room = self.arrays.room
        if how == "indexed":
            self.room = epoch_loops.new_index(problem.csr, one.batch_rows, one.width)
        self.powers = np.ones(2)
        self.losses = np.zeros(0)

    def train(self, epoch: int) -> None:
        """Train epoch number `epoch` in one compiled call; writes the shared arrays and the loss of each batch."""
        one, x, arrays = self.problem.configuration, self.problem.csr, self.arrays
        order, self.losses = self.problem.order(epoch), np.zeros(one.steps)
        rows = x.indptr, x.indices, x.data, self.problem.targets, order, one.batch_rows, np.float32(one.rate)
        self.loop(*rows, self.powers, arrays.tables, arrays.intercept, self.room, self.losses)

    def state(self) -> State:
        """Return weights of the occurring columns, intercept (both copied) and the losses of the last epoch."""
        one = self.problem.configuration
        w = self.arrays.tables[0].reshape(-1, one.width)[self.problem.occurring[0]]
        return State(w, self.arrays.intercept[0].copy(), self.losses)


@final
class SklearnTrainer(Trainer):
    """SGDClassifier by `partial_fit`; its first epoch, which is checked, takes the rows as they stand."""

    def __init__(self, problem: Problem) -> None:
        """Make an SGDClassifier of the problem's learning rate without penalty, and labels as float64."""
        from sklearn.linear_model import SGDClassifier

        super().__init__(problem)
        settings: dict[str, Any] = {"penalty": None, "learning_rate": "constant", "eta0": problem.configuration.rate}
        self.model = SGDClassifier(loss="log_loss", shuffle=False, random_state=0, **settings)
        self.y = problem.labels.astype(np.float64)

    def first_order(self) -> np.ndarray:
        """Return the row indices in stored order, since the first epoch is not shuffled."""
        return np.arange(len(self.y))

    @property
    def rate_intercept(self) -> float:
        """Learning rate of the intercept, which scikit-learn reduces by a constant factor for CSR rows."""
        return self.problem.configuration.rate * DECAY_SPARSE

    def train(self, epoch: int) -> None:
        """Train an epoch by `partial_fit`, shuffled from the second one on if batches are new.

        Finite checks are off.
        """
        import sklearn

        self.model.shuffle = epoch > 0 and self.problem.configuration.batches == "new"
        with sklearn.config_context(assume_finite=True):
            self.model.partial_fit(self.problem.csr, self.y, classes=[0.0, 1.0])

    def state(self) -> State:
        """Return coefficients and intercept; scikit-learn reports no losses."""
        return State(self.model.coef_.T[self.problem.occurring[0]], self.model.intercept_, None)


VW_RULES = {"adagrad": "--adaptive --learning_rate {rate}", "ftrl": "--ftrl --ftrl_alpha {rate} --ftrl_beta 1"}


@final
class VowpalWabbitTrainer(Trainer):
    """Vowpal Wabbit on its cache file, which stands in memory; a start on one row is taken off each time."""

    is_compared = False

    def __init__(self, problem: Problem) -> None:
        """Write the rows to a cache file, set the options, and time a start on one row (median of three)."""
        super().__init__(problem)
        one = problem.configuration
        self.rows = Rows("logistic", problem.csr, problem.labels, 1, True, 1)
        rule = VW_RULES[one.optimizer].format(rate=one.rate)
        self.file = vowpal_wabbit.cache_of(self.rows)  # removed with the object
        cache_file = f"-d /dev/null --cache_file {self.file.path} --holdout_off --passes 1"
        self.options = f"{vowpal_wabbit.options(self.rows)} {rule} {cache_file}"
        starts = [_seconds_of(partial(self.call, "--examples 1")) for _ in range(3)]
        self.seconds_start = sorted(starts)[1]
        self.loss = np.nan

    def call(self, more: str = "") -> None:
        """Train one epoch from zero weights, with the options and `more`; stores its mean loss in `loss`."""
        import vowpalwabbit

        vw = vowpalwabbit.Workspace(f"{self.options} {more}")
        self.loss = vw.get_sum_loss() / max(vw.get_weighted_examples(), 1)
        vw.finish()

    def train(self, epoch: int) -> None:
        """Train one epoch from zero weights, as each call does; `epoch` is not used."""
        self.call()

    def state(self) -> State:
        """Return the mean loss of the epoch, with empty weights, which stay inside of Vowpal Wabbit."""
        return State(np.zeros(0), np.zeros(0), np.array([self.loss]))


@dataclass(frozen=True)
class Candidate:
    """A candidate: how it is made ready, why it does not take part ("" if it does), and what of its work differs."""

    side: str
    make: Callable[[Problem], Trainer]
    why_not: Callable[[Configuration], str] = lambda one: ""
    needs: str = ""
    install: str = ""
    note: str = ""

    def unavailable(self, configuration: Configuration) -> str:
        """Return why it cannot take part in a configuration, "" if it can; nothing is imported."""
        return self.why_not(configuration) or why_not_installed(self.needs, self.install)


def why_not_kept(one: Configuration) -> str:
    """Return why no column index is kept: batches are new, have one row, or are too many; "" if one is."""
    if one.batches == "new":
        return "Batches are new in each epoch."
    if one.batch_rows == 1:
        return "A batch of one row needs no column index."
    return "" if one.steps <= BATCHES_INDEXED else f"{one.steps} batches; {BATCHES_INDEXED} at most are indexed."


def why_not_rows(rules: Sequence[str], one: Configuration) -> str:
    """Return why a library with the optimizers `rules` cannot train a configuration, "" if it can.

    It can with one of these optimizers, one output and batches of one row.
    """
    if one.optimizer not in rules:
        return f"It has no {one.optimizer}."
    if one.width > 1:
        return "It has no softmax: one output against the rest is other work."
    return "" if one.batch_rows == 1 else f"It steps after each row; the batches have {one.batch_rows}."


CANDIDATES: dict[str, Candidate] = {
    "project, epoch": Candidate("project", partial(ProjectTrainer, how="epoch")),
    "project, steps, column index kept": Candidate("project", partial(ProjectTrainer, how="steps"), why_not_kept),
    "Numba loop": Candidate("competitor", partial(LoopTrainer, how="plain")),
    "Numba loop, prefetch": Candidate("competitor", partial(LoopTrainer, how="prefetch")),
    "Numba loop, column index kept": Candidate("competitor", partial(LoopTrainer, how="indexed"), why_not_kept),
    "scikit-learn SGDClassifier": Candidate(
        "competitor",
        SklearnTrainer,
        partial(why_not_rows, ("sgd",)),
        note="checked without its shuffle; reports no losses; shorter steps of the intercept",
    ),
    "Vowpal Wabbit": Candidate(
        "competitor",
        VowpalWabbitTrainer,
        partial(why_not_rows, tuple(VW_RULES)),
        "vowpalwabbit",
        vowpal_wabbit.INSTALL,
        "its own form of the rule, weights not compared; rows as they stand; its start on one row is taken off",
    ),
}


# Process of a configuration


POLICY = race.Policy(seconds_call=0.08, rounds=9, rounds_slow=3, slow=2.0, seconds_most=12.0)
"""A call trains whole epochs for about `seconds_call`."""


def _seconds_of(call: Callable[[], object]) -> float:
    """Call `call` once and return the seconds it took."""
    start = perf_counter()
    call()
    return perf_counter() - start


def time_call(trainer: Trainer, epochs: int) -> float:
    """Return the seconds per epoch of training `epochs` epochs in place, without the trainer's start; at least 1e-9."""
    start = perf_counter()
    for _ in range(epochs):
        trainer.run()
    return max((perf_counter() - start) / epochs - trainer.seconds_start, 1e-9)


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `{"at": name}` before each candidate is prepared, then `{"name": ..., "record": columns}` of each.

    `request` has `configuration`, `policy`, `threads` and `left_out`, names of candidates that ended an earlier
    process.
    """
    set_threads(request["threads"])
    configuration, policy = Configuration(**request["configuration"]), race.Policy(**request["policy"])
    yield {"at": "rows"}
    problem = epoch_problem.draw(configuration, request["threads"])
    able = {
        name: lambda _, one=candidate: prepare(one, problem, policy)
        for name, candidate in CANDIDATES.items()
        if name not in request["left_out"]
    }
    yield from measure.with_facts({"nnz": int(problem.csr.nnz)}, race.measure_candidates(able, policy))


def prepare(candidate: Candidate, problem: Problem, policy: race.Policy) -> race.Prepared:
    """Make a candidate ready, check its first epoch against float64 loops and estimate its time.

    Returns (columns, ready candidate or None). An exception becomes the columns `status` and `reason`; an error above
    `ALLOWED` the status "wrong".
    """
    if reason := candidate.unavailable(problem.configuration):
        return {"status": "unsupported", "reason": reason}, None
    start = perf_counter()
    try:
        trainer = candidate.make(problem)
        trainer.run()
        known = check(trainer, problem) | {"seconds_ready": perf_counter() - start}
        estimate = time_call(trainer, 1)
    except Exception as failure:
        return race.failure_record(failure), None
    if wrong := training_of_ways.wrong_record(known["error"]):
        return known | wrong, None
    epochs = max(1, round(policy.seconds_call / estimate))
    known |= {"status": "ok", "reason": "", "epochs_call": epochs}
    return known, race.ReadyCandidate((candidate.side,), partial(time_call, trainer, epochs), estimate)


def check(trainer: Trainer, problem: Problem) -> Record:
    """Return `error` of the first epoch (None if not compared), `error_allowed` and the mean `loss` as columns."""
    state = trainer.state()
    error = None
    if trainer.is_compared:
        error = error_of(state, problem.reference(trainer.first_order(), trainer.rate_intercept))
    loss = None if state.losses is None else float(np.mean(state.losses))
    return {"error": error, "error_allowed": training_of_ways.ALLOWED, "loss": loss}


# Runs


@cache
def source_hash() -> str:
    """Return the hash of the code that draws the rows, trains and times; computed once per process."""
    roots = {"benchmarks.epochs", "workbench.measure.child"}
    for model in ("logistic", "softmax"):
        for rule in RULES:
            roots |= spec.roots_of(spec.Configuration(dataset="uniform", model=model, optimizer=rule, gradient="fused"))
    return closure.installed_code().digest(roots)


SUITE = experiment.Suite(
    table=tables.EPOCHS,
    work="benchmarks.epochs:answers",
    preload="benchmarks.epochs",
    candidates=lambda: {name: {"side": one.side, "note": one.note} for name, one in CANDIDATES.items()},
    source_hash=source_hash,
    libraries=("scikit-learn", "vowpalwabbit"),
)
