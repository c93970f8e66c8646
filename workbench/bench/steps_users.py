"""Our own steps as users take them: a training (`train.Run`) and a module, on batches cut from the rows of a data set.

The rows of all batches stand in one matrix in a random order, as they come where rows are shuffled: `new` batches are
cut from it in their step, with their plan, and let go of after it, as the loops of both do.
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse

from workbench import data, graph, module, ops, train
from workbench.bench.steps import Phases, Problem


def rows_of(problem: Problem) -> tuple[data.Batches, list[np.ndarray]]:
    """(all rows of the problem as the data of a training, the rows of each of its batches)."""
    parts = [
        scipy.sparse.csr_array((batch.data, batch.indices, batch.indptr), shape=(batch.R, batch.D))
        for batch in problem.batches
    ]
    count = sum(part.shape[0] for part in parts)
    order = np.random.default_rng(0).permutation(count)
    x, y = scipy.sparse.vstack(parts, format="csr")[order], np.concatenate(problem.targets)[order]
    places = np.split(np.argsort(order), np.cumsum([part.shape[0] for part in parts])[:-1])
    return data.Batches(x, y, rows=parts[0].shape[0], shuffle=True), places


@dataclass
class Training:
    """A training on the host, a fused gradient, no intercept."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        problem, (self.batches, self.rows) = self.problem, rows_of(self.problem)
        setup = train.Setup(
            model="linear",
            optimizer=problem.optimizer,
            options=problem.options,
            gradient="fused",
            update="lazy",
            batch_rows=self.batches.rows,
            shuffle=True,
            intercept=False,
        )
        self.run = train.Run(setup, self.batches.x, self.batches.y, problem.targets[0].shape[1])

    def prepare(self, number: int) -> Any:
        """The batch cut from the rows, with its plan."""
        start = perf_counter()
        batch = self.batches.of_rows(self.rows[number])
        start = self.phases.lap("convert", start)
        prepared = self.run.prepare(batch)
        self.phases.lap("plan", start)
        return prepared

    def step(self, prepared: Any) -> None:
        """One step."""
        self.phases.steps += 1
        for phase, seconds in self.run.do_step(prepared, 0, {}, 0.0).seconds.items():
            if seconds:
                self.phases.seconds[phase] = self.phases.seconds.get(phase, 0.0) + seconds

    def start(self) -> None:
        """Set everything back to the start."""
        self.run.reset()
        self.run.weights[self.problem.touched] = self.problem.weights

    def weights(self) -> np.ndarray:
        """The weights of the touched rows."""
        return self.run.weights[self.problem.touched]


@dataclass
class Fitted:
    """A module with the graph `squared_loss(dot(data, w), label)`, a fused gradient."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        problem, (self.batches, self.rows) = self.problem, rows_of(self.problem)
        w = graph.variable("w", shape=problem.tables[0].shape)
        loss = ops.squared_loss(ops.dot(graph.variable("data"), w), graph.variable("label"))
        self.module = module.Module(loss).bind(self.batches, grad_formats={"w": "fused"}).initialise("zeros")
        self.table = self.module.workers[0].weights["w"]

    def prepare(self, number: int) -> Any:
        """The batch cut from the rows, with its plan."""
        start = perf_counter()
        batch = self.batches.of_rows(self.rows[number])
        start = self.phases.lap("convert", start)
        prepared = self.module.prepare(batch)
        self.phases.lap("plan", start)
        return prepared

    def step(self, prepared: Any) -> None:
        """One step."""
        self.phases.steps += 1
        now = perf_counter()
        self.module.forward(prepared)
        now = self.phases.lap("forward", now)
        self.module.backward()
        self.module.update()
        self.phases.lap("update", now)

    def start(self) -> None:
        """Set everything back to the start."""
        self.module.set_optimizer(self.problem.optimizer, **self.problem.options)
        self.table[...] = 0
        self.table[self.problem.touched] = self.problem.weights

    def weights(self) -> np.ndarray:
        """The weights of the touched rows."""
        return self.table[self.problem.touched]
