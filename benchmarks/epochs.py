"""`benchmarks epochs`: whole epochs of every shape and rule, compared with the fastest loop that does the same work.

A configuration is logistic regression (N = 1) or softmax on synthetic CSR rows, float32, with an intercept and the
loss of every batch. A process draws the rows, makes every candidate ready, compares its first epoch with float64 loops,
and times whole epochs in turned rounds. Batches are new in each epoch, with the order drawn in the timed call, or they
repeat, and what depends on the batches alone is made before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from benchmarks import epoch_loops, epoch_problem
from benchmarks.contest import Contest, Ready, mean_seconds, prepare
from benchmarks.epoch_loops import RULES
from benchmarks.epoch_problem import BATCHES_INDEXED, Configuration, Problem, error_of
from benchmarks.fit.candidates import Rows, vowpal_wabbit
from workbench import training
from workbench.advising.frameworks.training import ALLOWED, State, why_not_installed
from workbench.advising.frameworks.ways.scikit_learn import DECAY_SPARSE
from workbench.measure import race

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
        starts = [mean_seconds(partial(self.call, "--examples 1"), 1) for _ in range(3)]
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


# The suite


POLICY = race.Policy(seconds_call=0.08, rounds=9, rounds_slow=3, slow=2.0, seconds_most=12.0)
"""A call trains whole epochs for about `seconds_call`."""


def contest(settings: Mapping[str, Any], request: Mapping[str, Any]) -> Contest:
    """Draw the rows of a configuration and return all its candidates, each checked against float64 loops."""
    one, policy = Configuration(**settings), race.Policy(**request["policy"])
    problem = epoch_problem.draw(one, request["threads"])

    def prepared(candidate: Candidate) -> race.Prepared:
        """Make a candidate ready, or say why it is not."""
        reason = candidate.unavailable(one)
        return prepare(
            lambda: ready(candidate.make(problem), problem),
            policy,
            ALLOWED,
            group=(candidate.side,),
            unavailable=reason,
        )

    able = {name: lambda _, each=candidate: prepared(each) for name, candidate in CANDIDATES.items()}
    return Contest({"nnz": int(problem.csr.nnz)}, able)


def ready(trainer: Trainer, problem: Problem) -> Ready:
    """Return a training whose calls are epochs, the first of which is compared with float64 loops."""
    made = Ready(trainer.run, sample=lambda call, count: max(mean_seconds(call, count) - trainer.seconds_start, 1e-9))

    def judge(_: object) -> float | None:
        """Return the error of the epoch trained, None if not compared; note its mean loss."""
        state = trainer.state()
        made.columns["loss"] = None if state.losses is None else float(np.mean(state.losses))
        if not trainer.is_compared:
            return None
        return error_of(state, problem.reference(trainer.first_order(), trainer.rate_intercept))

    made.judge = judge
    return made
