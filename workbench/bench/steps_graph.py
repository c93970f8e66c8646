"""Our own step as users run it: a graph bound to its tables, with an updater; what the graph costs beyond its kernels.

The graph is that of linear regression, `squared_loss(dot(x, w), y)`; its gradient is left to the fused update.
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from workbench import executor, graph, ops, optimizers
from workbench.bench.steps import Problem
from workbench.formats import compressed
from workbench.ops.products import make_plan


@dataclass
class Graph:
    """Executor and updater on the problem's tables."""

    problem: Problem
    seconds: dict[str, float] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        problem, batch = self.problem, self.problem.batches[0]
        scores = ops.dot(graph.variable("x"), graph.variable("w"), name="scores")
        self.executor = executor.bind(
            ops.squared_loss(scores, graph.variable("y")),
            {"w": problem.tables[0]},
            shapes={"x": (batch.R, batch.D), "y": problem.targets[0].shape},
            dtypes={"x": np.float32, "y": np.float32},
            formats={"x": "csr"},
            grad_req={"w": "write"},
            grad_formats={"w": "fused"},
        )
        self.start()

    def prepare(self, number: int) -> tuple[Any, ...]:
        """The batch as SciPy's array, made as a loader does, its plan, and its targets."""
        batch, start = self.problem.batches[number], perf_counter()
        x = compressed.assemble("csr", batch.indptr, batch.indices, batch.data, (batch.R, batch.D))
        made = make_plan(x)
        made.in_order(x.data)
        self._lap("plan", start)
        return x, made, self.problem.targets[number]

    def _lap(self, phase: str, start: float) -> float:
        now = perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - start
        return now

    def step(self, prepared: tuple[Any, ...]) -> None:
        """One step."""
        x, made, targets = prepared
        self.steps += 1
        now = perf_counter()
        self.executor.forward(training=True, plans={"x": made}, x=x, y=targets)
        now = self._lap("forward", now)
        gradients = self.executor.backward()
        self.updater.update({"w": self.problem.tables[0]}, gradients)
        self._lap("update", now)

    def start(self) -> None:
        """As at the start."""
        self.problem.reset()
        self.updater = optimizers.Updater(self.problem.optimizer, **self.problem.options)

    def weights(self) -> np.ndarray:
        """Of the touched rows."""
        return self.problem.tables[0][self.problem.touched]

    def phases(self) -> dict[str, float]:
        """Seconds a step of each phase since the last time this was asked; forward has the loss in it."""
        means = {phase: seconds / max(self.steps, 1) for phase, seconds in self.seconds.items()}
        self.seconds, self.steps = {}, 0
        return means
