"""Candidates of `bench fair`, one a file: the project's trainings and independent ones at equal work.

How a candidate is made ready, trains some batches, and is checked is described by `Competitor` and `Trainer`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.registry import Registry, unknown_name
from workbench.bench.fair.configurations import Problem, State
from workbench.bench.shapes import BenchError, why_not_installed

KINDS = ("dense", "sparse")
"""How X is held."""
SIDES = ("project", "independent")


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
class Competitor:
    """A candidate: its name and side, how X is held (`kind`), and how it is made ready.

    `why_not` tells why it does not train a problem, or ""; `needs` is the package that it imports, `install` the line
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
        """Raise BenchError for an unknown `side` or `kind`."""
        for name, allowed in (("side", SIDES), ("kind", KINDS)):
            if getattr(self, name) not in allowed:
                raise BenchError(f"{self.name}: {unknown_name(name, getattr(self, name), allowed)}")

    def unavailable(self, problem: Problem) -> str:
        """Return why it does not take part in a problem, "" if it does; nothing is imported."""
        return why_not_installed(self.needs, self.install) or self.why_not(problem)


_competitors: Registry[Competitor] = Registry("competitor", ("workbench.bench.fair.competitors",), BenchError)
register, names, get = _competitors.register, _competitors.names, _competitors.get


def list_competitors() -> list[Competitor]:
    """Return all candidates, the project's first; those compared with another one (`like`) come after it."""
    return sorted(map(get, names()), key=lambda one: (one.side != "project", one.like != "", one.kind, one.name))


def origin(name: str) -> str:
    """Return the name of the module that registered the candidate."""
    return _competitors.origin(name)


def settings_of(value: Any) -> str:
    """Return settings by name as text.

    >>> settings_of({"launch": "epoch", "update": "lazy"})
    'launch epoch, update lazy'
    """
    return ", ".join(f"{name} {one}" for name, one in value.items())
