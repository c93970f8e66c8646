"""Our own steps as users take them: a training (`training.Run`) and a module, on the batches of shuffled epochs.

The rows of all batches stand in one matrix, so that a first epoch, shuffled, begins with the problem's batches: `new`
ones are cut from it in their step, by the loader of both, with their plan, and let go of after it. New steps of the
training are those of its own `events`.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.steps import Phases, Problem
from workbench import data, graph, module, ops, training
from workbench.data.batches import feed
from workbench.ops.products import plan_of

ROWS = 16 * 1024
"""Rows that an epoch has at least: those of the problem again and again, for what an epoch costs is not a step's."""


def rows_of(problem: Problem) -> data.Batches:
    """Return the problem's rows, repeated to at least 16,384, as shuffled batches.

    The first epoch's shuffle yields the problem's batches in their order.
    """
    parts = [
        scipy.sparse.csr_array((batch.data, batch.indices, batch.indptr), shape=(batch.R, batch.D))
        for batch in problem.batches
    ]
    height = parts[0].shape[0]
    copies = max(ROWS // (height * len(parts)), 1)
    x, y = scipy.sparse.vstack(parts * copies, format="csr"), np.concatenate(problem.targets * copies)
    places = np.argsort(data.Batches(x, y, rows=height, shuffle=True).order())
    return data.Batches(x[places], y[places], rows=height, shuffle=True)


def endless_batches(batches: data.Batches, prepare: Callable[[data.Batch], Any]) -> Iterator[feed.Ready]:
    """Return the batches of one epoch after another without end, prepared by `prepare` ahead of use."""
    epochs = map(batches.epoch, itertools.count())
    return feed.prefetch(itertools.chain.from_iterable(epochs), prepare, 0, batches.at_once)


@dataclass
class Training:
    """A training on the host, a fused gradient, no intercept."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        """Make a linear training with fused gradient and lazy update on the problem's rows, and start its batches."""
        problem, self.batches = self.problem, rows_of(self.problem)
        setup = training.Setup(
            model="linear",
            optimizer=problem.optimizer,
            options=problem.options,
            gradient="fused",
            update="lazy",
            batch_rows=self.batches.rows,
            shuffle=True,
            intercept=False,
        )
        self.run = training.Run(setup, self.batches.x, self.batches.y, problem.targets[0].shape[1])
        self.coming, self.events = endless_batches(self.batches, self.run.prepare), self.run.events()

    def prepare(self, number: int) -> None:
        """Return None: the training cuts and plans the next batch of its epoch in its own step."""

    def keep(self, number: int) -> Any:
        """Return the next batch with its plan, to be used for many steps; `number` is not used."""
        prepared = next(self.coming).value
        prepared.plan = prepared.plan or plan_of(prepared.x)
        return prepared

    def step(self, prepared: Any) -> None:
        """Do one step, on a kept batch, or with None on the next one of the epochs; adds up phase times."""
        self.phases.steps += 1
        if prepared is None:
            seconds = next(self.events).seconds
            seconds["convert"] += seconds.pop("slice")
        else:
            seconds = self.run.do_step(prepared, 0, {}, 0.0).seconds
        self.phases.add_all(seconds)

    def start(self) -> None:
        """Restart the epochs and reset the training to the problem's initial weights."""
        self.coming, self.events = endless_batches(self.batches, self.run.prepare), self.run.events()
        self.run.reset()
        self.run.weights[self.problem.active] = self.problem.weights

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.run.weights[self.problem.active]


@dataclass
class Fitted:
    """A module with the graph `squared_loss(dot(data, w), label)`, a fused gradient."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        """Bind a module of linear regression to the problem's rows, with fused gradient and zero weights."""
        problem, self.batches = self.problem, rows_of(self.problem)
        w = graph.variable("w", shape=problem.tables[0].shape)
        loss = ops.squared_loss(ops.dot(graph.variable("data"), w), graph.variable("label"))
        self.module = module.Module(loss).bind(self.batches, grad_formats={"w": "fused"}).initialise("zeros")
        self.table = self.module.workers[0].weights["w"]
        self.once = functools.partial(self.module.prepare, plans=False, once=True, is_own=True)
        self.coming = endless_batches(self.batches, self.once)

    def prepare(self, number: int) -> Any:
        """Return the next batch of the epochs; its preparation time goes to the phase "convert". `number` is unused."""
        ready = next(self.coming)
        self.phases.add("convert", ready.seconds_prepare)
        return ready.value

    def keep(self, number: int) -> Any:
        """Return the next batch with its plan, to be used for many steps."""
        return self.module.prepare(self.prepare(number).batch, is_own=True)

    def step(self, prepared: Any) -> None:
        """Run forward, backward and update on a prepared batch, in place; adds up phase times."""
        self.phases.steps += 1
        now = perf_counter()
        self.module.forward(prepared)
        now = self.phases.split("forward", now)
        self.module.backward()
        self.module.update()
        self.phases.split("update", now)

    def start(self) -> None:
        """Restart the epochs, make a new optimizer and reset the table to the initial weights."""
        self.coming = endless_batches(self.batches, self.once)
        self.module.set_optimizer(self.problem.optimizer, **self.problem.options)
        self.table[...] = 0
        self.table[self.problem.active] = self.problem.weights

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.table[self.problem.active]
