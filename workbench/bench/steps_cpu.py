"""Candidates of a training step on the cpu: our own steps, and those of the competitors that are installed."""

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import executor, graph, ops, optimizers
from workbench.bench import steps_pytorch, steps_tensorflow
from workbench.bench.steps import Learner, Ours, Phases, Problem, StepContender
from workbench.formats import compressed
from workbench.ops.products import plan_of

# Our own step as users run it: a graph bound to its tables, with an updater; what the graph costs beyond its kernels.
#
# The graph is that of linear regression, `squared_loss(dot(x, w), y)`; its gradient is left to the fused update.


@dataclass
class Graph:
    """Executor and updater on the problem's tables. Its phase forward has the loss in it."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

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
        """Return the batch as SciPy's array, made as a loader does, its plan where its one step reads one, and its
        targets."""
        return self._prepared(number, functools.partial(self.executor.new_plan, "x"))

    def keep(self, number: int) -> tuple[Any, ...]:
        """Return a batch that is used repeatedly, with its plan."""
        return self._prepared(number, plan_of)

    def _prepared(self, number: int, plan_of_batch: Callable[[Any], BatchPlan | None]) -> tuple[Any, ...]:
        """Return (X as CSR, its plan or None, targets) of batch `number`; plan time is recorded."""
        batch, start = self.problem.batches[number], perf_counter()
        x = compressed.assemble("csr", batch.indptr, batch.indices, batch.data, (batch.R, batch.D))
        batch_plan = plan_of_batch(x)
        if batch_plan is not None:
            batch_plan.in_order(x.data)
        self.phases.split("plan", start)
        return x, batch_plan, self.problem.targets[number]

    def step(self, prepared: tuple[Any, ...]) -> None:
        """One step."""
        x, batch_plan, targets = prepared
        self.phases.steps += 1
        now = perf_counter()
        plans = {} if batch_plan is None else {"x": batch_plan}
        self.executor.forward(training=True, plans=plans, x=x, y=targets)
        now = self.phases.split("forward", now)
        gradients = self.executor.backward()
        self.updater.update({"w": self.problem.tables[0]}, gradients)
        self.executor.release()
        self.phases.split("update", now)

    def start(self) -> None:
        """Set everything back to the start."""
        self.problem.reset()
        options: dict[str, Any] = {**self.problem.options}
        self.updater = optimizers.Updater(self.problem.optimizer, **options)

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows."""
        return self.problem.tables[0][self.problem.touched]


USERS = {"training": "Training", "module": "Fitted"}
"""Our steps as users take them, by what they use: classes of `steps_users`."""

OF_USERS = "workbench.bench.steps_of_user_code"
"""Imported by its name: what it imports is a part of the steps' hash, and of no kernel's (`cells.roots_of`)."""


def _of_users(name: str, problem: Problem) -> Learner:
    """Return the learner of a training loop as users write it, by name."""
    return getattr(importlib.import_module(OF_USERS), USERS[name])(problem)


def list_step_candidates(problem_size: int, optimizer: str) -> Sequence[StepContender]:
    """Return the CPU candidates of a step, own ones first, then PyTorch's and TensorFlow's; `problem_size` is D * N."""
    two = functools.partial(Ours, fused=False)
    ours = [StepContender("ours", "ours", Ours), StepContender("ours, two kernels", "ours", two)]
    ours.append(StepContender("ours, graph", "ours", Graph, shares=False))
    ours += [StepContender(f"ours, {name}", "ours", functools.partial(_of_users, name), shares=False) for name in USERS]
    return [
        *ours,
        *steps_pytorch.list_torch_candidates(),
        *steps_tensorflow.list_tensorflow_candidates(problem_size, optimizer),
    ]
