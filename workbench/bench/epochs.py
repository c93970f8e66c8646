"""Whole epochs of every shape and rule, compared with the fastest loop that does the same work: `bench epochs`.

A configuration is logistic regression (N = 1) or softmax on synthetic CSR rows, float32, with an intercept and the
loss of every batch. A process draws the rows, makes every candidate ready, compares its first epoch with float64 loops,
and times whole epochs in turned rounds. Batches are new in each epoch, with the order drawn in the timed call, or they
repeat, and what depends on the batches alone is made before.
"""

import importlib.util
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, final

import numpy as np

from workbench import store, training
from workbench.bench import epoch_loops, epoch_problem, experiment
from workbench.bench.child import set_threads
from workbench.bench.epoch_loops import RULES
from workbench.bench.epoch_problem import BATCHES_INDEXED, Configuration, Problem, State, error_of
from workbench.bench.experiment import Progress, Record, Results, Worker
from workbench.bench.fair.competitors.sklearn_sgd import DECAY_SPARSE
from workbench.bench.fair.runner import done_keys
from workbench.bench.fit.candidates import Rows, vowpal_wabbit
from workbench.measure import closure
from workbench.measure.clock import median_interval
from workbench.measure.machine import OtherPrograms, describe_stack
from workbench.measure.rounds import counterbalanced_order
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
    "epoch": {"launch": "epoch", "gradient": "row_sparse"},
    "steps": {"launch": "kernels", "gradient": "fused"},
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
        if reason := self.why_not(configuration):
            return reason
        if self.needs and not importlib.util.find_spec(self.needs):
            return f"{self.needs} is not installed: {self.install}."
        return ""


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


ALLOWED = 1e-3
"""Largest relative error of the first epoch: float32 sums, of which the next steps are made."""


@dataclass(frozen=True)
class Policy:
    """A call trains whole epochs for about `seconds_call`; there are `rounds`, none begun after `seconds_most` but the
    first `rounds_least`. A candidate that is `slow` times slower than the fastest of its side has `rounds_least`."""

    seconds_call: float = 0.08
    rounds: int = 9
    rounds_least: int = 3
    seconds_most: float = 12.0
    slow: float = 2.0


@dataclass
class Ready:
    """A candidate that is ready: epochs of a call, seconds an epoch as estimated, and those of each round."""

    side: str
    trainer: Trainer
    epochs: int
    estimate: float
    samples: list[float] = field(default_factory=list)


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
    configuration, policy = Configuration(**request["configuration"]), Policy(**request["policy"])
    yield {"at": "rows"}
    problem = epoch_problem.draw(configuration, request["threads"])
    facts = {"nnz": int(problem.csr.nnz)}
    able: dict[str, Ready] = {}
    records: dict[str, Record] = {}
    for name, candidate in CANDIDATES.items():
        if name in request["left_out"]:
            continue
        yield {"at": name}
        records[name], ready = prepare(candidate, problem, policy)
        if ready:
            able[name] = ready
    yield {"at": "rounds"}
    others = OtherPrograms()
    time_rounds(able, policy)
    busy = others.share()
    for name, record in records.items():
        times = times_of(able[name]) | {"busy_others": busy} if name in able else {}
        yield {"name": name, "record": facts | record | times}


def prepare(candidate: Candidate, problem: Problem, policy: Policy) -> tuple[Record, Ready | None]:
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
    except MemoryError as failure:
        return {"status": "memory", "reason": f"Out of memory: {failure or 'an allocation failed'}."}, None
    except Exception as failure:
        traceback.print_exc()
        return {"status": "failed", "reason": f"{type(failure).__name__}: {failure}"}, None
    if known["error"] is not None and not known["error"] <= ALLOWED:
        reason = f"Differs from float64 loops over the same batches by {known['error']:.2g}; allowed is {ALLOWED:g}."
        return known | {"status": "wrong", "reason": reason}, None
    epochs = max(1, round(policy.seconds_call / estimate))
    return known | {"status": "ok", "reason": ""}, Ready(candidate.side, trainer, epochs, estimate)


def check(trainer: Trainer, problem: Problem) -> Record:
    """Return `error` of the first epoch (None if not compared), `error_allowed` and the mean `loss` as columns."""
    state = trainer.state()
    error = None
    if trainer.is_compared:
        error = error_of(state, problem.reference(trainer.first_order(), trainer.rate_intercept))
    loss = None if state.losses is None else float(np.mean(state.losses))
    return {"error": error, "error_allowed": ALLOWED, "loss": loss}


def time_rounds(able: Mapping[str, Ready], policy: Policy) -> None:
    """Time the candidates in rounds of counterbalanced order; appends seconds per epoch to their `samples`.

    Candidates twice as slow as the fastest of their side take part in the first rounds only. `able` is {name: ready
    candidate}; no round begins after `policy.seconds_most` but the first ones.
    """
    fastest = {side: min(one.estimate for one in able.values() if one.side == side) for side in _sides(able)}
    start = perf_counter()
    for number in range(policy.rounds):
        if number >= policy.rounds_least and perf_counter() - start > policy.seconds_most:
            break
        for name in counterbalanced_order(list(able), number):
            one = able[name]
            if number < policy.rounds_least or one.estimate <= policy.slow * fastest[one.side]:
                one.samples.append(time_call(one.trainer, one.epochs))


def _sides(able: Mapping[str, Ready]) -> set[str]:
    """Return the sides ("project", "competitor") that have a candidate."""
    return {one.side for one in able.values()}


def times_of(ready: Ready) -> Record:
    """Return the columns `samples`, `seconds`, `seconds_low`, `seconds_high` (s an epoch) and `epochs_call`."""
    median, low, high = median_interval(ready.samples)
    times = {"samples": ready.samples, "seconds": median, "seconds_low": low, "seconds_high": high}
    return times | {"epochs_call": ready.epochs}


# Runs


WORK = "workbench.bench.epochs:answers"
SECONDS_CANDIDATE = 120.0
"""Seconds until a candidate is ready, compiling included, and for all rounds together."""


class Runner:
    """Measures configurations into a folder of results; `budget` are seconds after which none is begun."""

    def __init__(
        self,
        folder: Path,
        policy: Policy,
        threads: int | None = None,
        budget: float = float("inf"),
        progress: Progress = lambda what, share: None,
    ) -> None:
        """Open the results of a folder and set the limits; `threads` None takes all, `budget` is seconds of the run."""
        self.policy, self.progress, self.threads = policy, progress, experiment.resolve_threads(threads)
        self.results, self.budget = Results(store.EPOCHS, folder), budget
        self.worker = Worker(WORK, folder, ["workbench.bench.epochs"])

    def run(self, configurations: Sequence[Configuration]) -> bool:
        """Measure the configurations without final records; False if Ctrl-C stopped it, which loses nothing finished.

        Not final are "failed" and "timeout", which are measured again.
        """
        done = done_keys(self.results.open())
        return self.results.collect(lambda: self._measure_missing(configurations, done))

    def _measure_missing(self, configurations: Sequence[Configuration], done: set[str]) -> None:
        """Append the records of each configuration whose key is not in `done`, until the budget is spent."""
        start = monotonic()
        for place, one in enumerate(configurations):
            if (key := self.key(one)) in done:
                continue
            if monotonic() - start >= self.budget:
                return
            self.progress(one.name, place / len(configurations))
            for name, record in self.measured(one).items():
                candidate = CANDIDATES[name]
                own = {"side": candidate.side, "note": candidate.note, "threads": self.threads}
                columns = {"key": key, "candidate": name, "source": source_hash()} | one.columns() | own | record
                self.results.append(**columns)

    def measured(self, configuration: Configuration) -> dict[str, Record]:
        """Return {candidate name: its columns} of one configuration, measured in new processes.

        Candidates that end their process, or do not fit in memory, have status and reason.
        """
        limit = self.worker.bytes_limit
        if configuration.bytes_needed > limit:
            reason = f"Needs {configuration.bytes_needed} bytes; the limit is {limit}."
            return {name: {"status": "memory", "reason": reason} for name in CANDIDATES}

        def of(left_out: list[str]) -> Iterator[Record]:
            """Yield the answers of a new process that times all candidates except `left_out`."""
            settings = {"configuration": asdict(configuration), "policy": asdict(self.policy)}
            request = settings | {"threads": self.threads, "left_out": left_out}
            return self.worker.answers(request, lambda _: SECONDS_CANDIDATE)

        return experiment.records_of_candidates(CANDIDATES, of)

    def key(self, configuration: Configuration) -> str:
        """Return the hash of everything that the records of a configuration depend on: settings, code, versions."""
        settings = [asdict(configuration), asdict(self.policy), self.threads, list(CANDIDATES), source_hash()]
        return closure.result_key([*settings, describe_stack("scikit-learn", "vowpalwabbit")])


@cache
def source_hash() -> str:
    """Return the hash of the code that draws the rows, trains and times; computed once per process."""
    roots = {"workbench.bench.epochs", "workbench.measure.child"}
    for model in ("logistic", "softmax"):
        for rule in RULES:
            roots |= spec.roots_of(spec.Configuration(dataset="uniform", model=model, optimizer=rule, gradient="fused"))
    return closure.installed_code().digest(roots)
