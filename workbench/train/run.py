"""A training: the model's graph bound to weights, batches prepared for it, and an optimizer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernels import aligned
from kernels.plan import BatchPlan
from workbench import data, executor, formats, graph, models, optimizers
from workbench.data import loader
from workbench.ops.products import Unsummed, make_plan
from workbench.train.events import Laps, StepEvent
from workbench.train.setup import LAZY, Setup, SetupError, refuse_impossible

PHASE_OF = {"plan": "gradient", "forward": "forward", "loss": "loss", "backward": "gradient", "store": "gradient"}
"""The phase that each part of the executor's program is filed under; a plan is only taken there, being prepared."""


@dataclass
class Prepared:
    """A batch in the format it is trained in, with its plan where the gradient reads one."""

    x: Any
    y: np.ndarray
    plan: BatchPlan | None
    bytes_own: int
    """Bytes beyond the data set's own arrays: what conversion made, and the plan."""
    seconds: dict[str, float]
    """Of convert and plan."""

    @property
    def plans(self) -> dict[str, BatchPlan]:
        """The plan by the name of its argument."""
        return {"x": self.plan} if self.plan else {}


class Run:
    """Weights, optimizer state and batches of one training; `events` does the steps.

    X [rows, D] is CSR, or dense for format dense; y is what the model's loss takes; `weights` [D, N] and the
    `intercept` [N], None where the setup asks for none, start at zero.
    Raises `SetupError` for settings that do not go together.
    """

    def __init__(self, setup: Setup, x, y: np.ndarray, width: int) -> None:
        self.setup, self.model = setup, models.get(setup.model)
        refuse_impossible(setup, self.model, width)
        if setup.device != "cpu":
            raise SetupError(f"A Run trains on cpu; its setup says {setup.device}. Call make_run, which does both.")
        self.batches = data.Batches(x, y, setup.batch_rows, shuffle=setup.shuffle, seed=setup.seed, last=setup.last)
        self.width, self.dtype = width, np.dtype(setup.dtype)
        self.weights = aligned.zeros((x.shape[1], width), self.dtype)
        self.intercept = aligned.zeros((width,), self.dtype) if setup.intercept else None
        self.updater = self._new_updater()
        self.scores, self.loss = self.model.graph(setup.engine, setup.intercept)
        self.executor = self._bind(self.loss, {"w": setup.gradient, "b": "dense"}, y)
        self.kept: dict[int, Prepared] = {}
        self.step = 0

    def _new_updater(self) -> optimizers.Updater:
        multipliers = {"b": optimizers.Multiplier(decay=0.0)} if self.setup.intercept else None
        lazy = LAZY[self.setup.update]
        return optimizers.Updater(self.setup.optimizer, lazy=lazy, multipliers=multipliers, **self.setup.options)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The weights, and the intercept where there is one, by their names in the graph."""
        return {"w": self.weights} | ({} if self.intercept is None else {"b": self.intercept})

    def _bind(self, symbol: graph.Graph, grad_formats: Mapping[str, str], y: np.ndarray) -> executor.Executor:
        """The graph bound to the weights, for batches of the setup's size; `y` tells the targets' shape and type."""
        rows = min(self.setup.batch_rows, self.batches.total)
        arguments = symbol.arguments()
        shapes = {"x": (rows, len(self.weights)), "y": (rows, *y.shape[1:])}
        dtypes = {"x": self.weights.dtype, "y": y.dtype}
        return executor.bind(
            symbol,
            self.parameters,
            shapes={name: shape for name, shape in shapes.items() if name in arguments},
            dtypes={name: dtype for name, dtype in dtypes.items() if name in arguments},
            formats={"x": self.setup.format},
            grad_req={name: "write" for name in grad_formats if name in arguments},
            grad_formats={name: format for name, format in grad_formats.items() if name in arguments},
        )

    @cached_property
    def scorer(self) -> executor.Executor:
        """The scores alone, for predictions."""
        return self._bind(self.scores, {}, np.empty(0))

    @property
    def states(self) -> list[np.ndarray]:
        """The optimizer's state of the weights, as far as a step has made it."""
        return self.updater.states.get("w", [])

    def reset(self) -> None:
        """Zero weights and state, step zero: as new, prepared batches kept."""
        for array in self.parameters.values():
            array[...] = 0
        self.updater = self._new_updater()
        self.step = 0

    def densified(self) -> list[dict]:
        """What these settings make dense on the way, of which shape and bytes: nothing for most."""
        made = [(fact.name, fact.shape, fact.bytes_densified) for fact in self.executor.inference.densified]
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            made.append(("gradient for the standard update", self.weights.shape, self.weights.nbytes))
        if self.setup.format == "dense" and not isinstance(self.batches.x, np.ndarray):
            shape = (self.setup.batch_rows, self.weights.shape[0])
            made.append(("batch from csr", shape, shape[0] * shape[1] * self.weights.itemsize))
        return [{"op": op, "shape": list(shape), "bytes": size} for op, shape, size in made]

    def write_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        """weights[rows] = values."""
        self.weights[rows] = values

    def read_rows(self, rows: np.ndarray) -> np.ndarray:
        """weights[rows], a copy."""
        return self.weights[rows]

    def slope(self) -> np.ndarray:
        """Of the loss of the last `forward`, right after it [R, N]."""
        return self.executor.slopes["loss"]

    def gradient_rows(self, gradient: Any, columns: np.ndarray) -> np.ndarray | None:
        """Rows `columns` of what `backward` returned; None where it is left unsummed."""
        if isinstance(gradient, Unsummed):
            return None
        if isinstance(gradient, formats.RowSparse):
            return gradient.values[np.searchsorted(gradient.indices, columns)]
        return gradient[columns].copy()

    @property
    def bytes_held(self) -> int:
        """Bytes of all arrays of the training: data, kept batches, weights, state, scores, slope, gradient."""
        kept = sum(batch.bytes_own for batch in self.kept.values())
        own = sum(array.nbytes for array in self.parameters.values())
        own += self.updater.nbytes + self.executor.bytes_buffers
        return formats.nbytes(self.batches.x) + kept + own

    def prepare(self, batch: data.Batch) -> Prepared:
        """The batch in the setup's format, with its plan and its values in the plan's order."""
        laps = Laps()
        x = formats.to_format(batch.x, self.setup.format)
        laps.lap("convert")
        plan = make_plan(x) if self.setup.gradient_rule.plan else None
        if plan:
            plan.in_order(x.data)
        laps.lap("plan")
        own = 0 if x is batch.x else formats.nbytes(x)
        seconds = {phase: laps.seconds[phase] for phase in ("convert", "plan")}
        return Prepared(x, batch.y, plan, own + (plan.nbytes if plan else 0), seconds)

    def forward(self, batch: Prepared, laps: Laps | None = None) -> float:
        """The mean loss of a batch; its slope is in `executor.slopes["loss"]`."""
        if self.setup.update == "exact":
            self.updater.catch_up({"w": self.weights}, rows={"w": _columns(batch)})
        return float(self.executor.forward(True, batch.plans, _filed(laps), x=batch.x, y=batch.y)[0])

    def backward(self, laps: Laps | None = None):
        """Gradient of the weights for the batch of the last `forward`: dense, row_sparse, or left unsummed."""
        return self.executor.backward(lap=_filed(laps))["w"]

    def update(self, gradient) -> None:
        """Change the weights, the intercept and the state by one step; `gradient` is what `backward` returned."""
        others = {name: self.executor.grads[name] for name in self.parameters if name != "w"}
        self.updater.update(self.parameters, {"w": gradient, **others})

    def do_step(self, batch: Prepared, epoch: int, laps: Laps, seconds_prepare: float = 0.0) -> StepEvent:
        """One step on a prepared batch."""
        self.step += 1
        loss = self.forward(batch, laps)
        self.update(self.backward(laps))
        laps.lap("update")
        return StepEvent(self.step, epoch, batch.x.shape[0], loss, laps.seconds, seconds_prepare)

    def epoch(self, epoch: int) -> Iterator[StepEvent]:
        """The steps of one epoch."""
        if self.kept:
            for batch in self.kept.values():
                yield self.do_step(batch, epoch, Laps())
            return
        kept: dict[int, Prepared] = {}
        made = loader.ahead(self.batches.epoch(epoch), self.prepare, depth=int(self.setup.ahead))
        for number, ready in enumerate(made):
            prepared = ready.value
            if not self.setup.shuffle:
                kept[number] = prepared
            slice_seconds = ready.seconds_prepare - sum(prepared.seconds.values())
            here = {"wait": ready.seconds_wait} if self.setup.ahead else {"slice": slice_seconds, **prepared.seconds}
            yield self.do_step(prepared, epoch, Laps(here), ready.seconds_prepare)
        self.kept = kept

    def events(self, epochs: int | None = None) -> Iterator[StepEvent]:
        """The steps of `epochs` epochs, or without end."""
        epoch = 0
        while epochs is None or epoch < epochs:
            yield from self.epoch(epoch)
            epoch += 1

    def predict(self, x) -> np.ndarray:
        """Scores [rows, N] of X, in chunks of the batch size, in the setup's format."""
        self.updater.catch_up({"w": self.weights})
        batches = data.Batches(x, None, self.setup.batch_rows)
        return np.concatenate([self.scores_of(batch.x).copy() for batch in batches.epoch(0)])

    def scores_of(self, x) -> np.ndarray:
        """Scores [R, N] of a batch, in a buffer that the next call overwrites."""
        return self.scorer.forward(x=formats.to_format(x, self.setup.format))[0]

    def quality(self, x, y: np.ndarray) -> float:
        """The model's measure of quality on held-out X and y."""
        return self.model.quality(self.predict(x), y)


def _filed(laps: Laps | None):
    """What the executor calls after each of its steps."""
    return None if laps is None else lambda step: laps.lap(PHASE_OF[step.part])


def _columns(batch: Prepared) -> np.ndarray:
    """The columns that a batch reads, sorted."""
    return batch.plan.columns if batch.plan else np.unique(formats.to_format(batch.x, "coo").coords[1])
