"""The one training loop: a generator of step events, with a time for each phase of every step.

>>> from workbench import data, train
>>> made = data.load("uniform", rows=64, features=32, density=0.1, classes=3, seed=0)
>>> setup = train.Setup(model="softmax", format="csr", gradient="row_sparse", update="lazy", batch_rows=16)
>>> run = train.Run(setup, made.x, made.y, width=3)
>>> [event.step for event in run.events(epochs=1)]
[1, 2, 3, 4]
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from kernels.plan import BatchPlan
from workbench import data, formats, models, optimizers
from workbench.data import loader
from workbench.ops import dot as dots

PHASES = ("slice", "convert", "plan", "wait", "forward", "loss", "gradient", "update")
GRADIENTS = ("dense", "row_sparse", "fused")
UPDATES = ("standard", "lazy")


class SetupError(ValueError):
    """Settings that do not go together; the message says which and what would."""


@dataclass(frozen=True)
class Setup:
    """How to train: what X, the gradient and the update are held in and computed by.

    With `shuffle` every batch is new, and each step pays for its slice, conversion and plan; with `ahead` these are
    done for the next batch on a thread beside the step, which then pays for what it waits. Without `shuffle`, batches
    repeat and are kept as prepared in the first epoch, at the price of their memory. A `fused` gradient is applied to
    the rows it touches while it is summed, and never held.
    """

    model: str = "softmax"
    format: str = "csr"
    gradient: str = "row_sparse"
    update: str = "lazy"
    engine: str = "ours"
    optimizer: str = "sgd"
    options: Mapping[str, float] = field(default_factory=dict)
    batch_rows: int = 256
    shuffle: bool = True
    ahead: bool = False
    last: str = "keep"
    seed: int = 0
    dtype: str = "float32"

    @property
    def forward_rule(self) -> dots.Rule:
        """The rule of X @ W."""
        return dots.rule(self.format, False, engine=self.engine)

    @property
    def gradient_rule(self) -> dots.Rule:
        """The rule of X.T @ G; for a fused gradient that of its rows."""
        result = "row_sparse" if self.gradient == "fused" else self.gradient
        return dots.rule(self.format, True, result, self.engine)


def why_impossible(setup: Setup) -> str:
    """Why the format, engine, gradient and update do not go together, or "" when they do."""
    try:
        _ = setup.forward_rule, setup.gradient_rule
    except dots.NoRuleError as error:
        return str(error)
    if setup.update == "lazy" and setup.gradient == "dense":
        return "A lazy update changes the rows that a row_sparse gradient names; a dense gradient names none."
    return _why_not_fused(setup) if setup.gradient == "fused" else ""


def _why_not_fused(setup: Setup) -> str:
    if setup.update != "lazy":
        return "A fused gradient is applied as it is summed, to the rows it touches; its update is lazy."
    if not setup.gradient_rule.plan:
        return f"A fused gradient is summed by a batch plan, which {setup.format} has none of; csr and coo have."
    if optimizers.get(setup.optimizer).fused is None:
        return f"The optimizer {setup.optimizer} has no fused rule."
    return ""


@dataclass(frozen=True)
class StepEvent:
    """One step that was done: its loss before the update, and the seconds of each phase.

    `seconds_prepare` is what slice, convert and plan of its batch took, also when that was beside an earlier step; it
    is 0 for a batch that was kept.
    """

    step: int
    epoch: int
    rows: int
    loss: float
    seconds: dict[str, float]
    seconds_prepare: float = 0.0

    @property
    def seconds_step(self) -> float:
        """Sum of the phases."""
        return sum(self.seconds.values())


class Laps:
    """Seconds since the last lap, filed under a phase; `known` are phases that were timed elsewhere."""

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0) | (known or {})
        self.last = perf_counter()

    def lap(self, phase: str) -> None:
        """File the time since the last lap under `phase`."""
        now = perf_counter()
        self.seconds[phase] += now - self.last
        self.last = now


@dataclass
class Prepared:
    """A batch in the format it is trained in, with its plan where the gradient reads one."""

    x: object
    y: np.ndarray
    plan: BatchPlan | None
    bytes_own: int
    """Bytes beyond the data set's own arrays: what conversion made, and the plan."""
    seconds: dict[str, float]
    """Of convert and plan."""


class Run:
    """Weights, optimizer state and batches of one training; `events` does the steps.

    X [rows, D] is CSR, or dense for format dense; y is what the model's loss takes; `weights` [D, N] start at zero.
    Raises `SetupError` for settings that do not go together.
    """

    def __init__(self, setup: Setup, x, y: np.ndarray, width: int) -> None:
        self.setup, self.model = setup, models.get(setup.model)
        self.optimizer = optimizers.get(setup.optimizer)
        self.options = self.optimizer.resolve(setup.options)
        self._refuse_impossible(width)
        dtype = np.dtype(setup.dtype)
        self.batches = data.Batches(x, y, setup.batch_rows, shuffle=setup.shuffle, seed=setup.seed, last=setup.last)
        self.weights = np.zeros((x.shape[1], width), dtype)
        self.states = self.optimizer.new_states(self.weights)
        rows = min(setup.batch_rows, x.shape[0])
        self.scores, self.slope = np.empty((rows, width), dtype), np.empty((rows, width), dtype)
        needs_full = setup.gradient == "dense" or setup.update == "standard"
        self.full = np.empty_like(self.weights) if needs_full else None
        self.kept: dict[int, Prepared] = {}
        self.step = 0

    def _refuse_impossible(self, width: int) -> None:
        if reason := why_impossible(self.setup):
            raise SetupError(reason)
        if not self.model.allows(width):
            raise SetupError(f"The {self.model.name} model has {self.model.widths}; asked for was width {width}.")

    def reset(self) -> None:
        """Zero weights and state, step zero: as new, prepared batches kept."""
        for array in (self.weights, *self.states):
            array[...] = 0
        self.step = 0

    def densified(self) -> list[dict]:
        """What these settings make dense on the way, of which shape and bytes: nothing for most."""
        made = []
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            made.append(("gradient for the standard update", self.weights.shape, self.weights.nbytes))
        if self.setup.format == "dense" and not isinstance(self.batches.x, np.ndarray):
            shape = (self.setup.batch_rows, self.weights.shape[0])
            made.append(("batch from csr", shape, shape[0] * shape[1] * self.weights.itemsize))
        return [{"op": op, "shape": list(shape), "bytes": size} for op, shape, size in made]

    @property
    def bytes_held(self) -> int:
        """Bytes of all arrays of the training: data, kept batches, weights, state, gradient, scores."""
        arrays = [self.weights, *self.states, self.scores, self.slope]
        arrays += [self.full] if self.full is not None else []
        kept = sum(batch.bytes_own for batch in self.kept.values())
        return formats.nbytes(self.batches.x) + kept + sum(array.nbytes for array in arrays)

    def prepare(self, batch: data.Batch) -> Prepared:
        """The batch in the setup's format, with its plan."""
        laps = Laps()
        x = formats.convert(batch.x, self.setup.format)
        laps.lap("convert")
        plan = dots.make_plan(x) if self.setup.gradient_rule.plan else None
        laps.lap("plan")
        own = 0 if x is batch.x else formats.nbytes(x)
        seconds = {phase: laps.seconds[phase] for phase in ("convert", "plan")}
        return Prepared(x, batch.y, plan, own + (plan.nbytes if plan else 0), seconds)

    def forward(self, batch: Prepared) -> np.ndarray:
        """Scores [R, N] of a batch, in a buffer that the next step overwrites."""
        return dots.dot(batch.x, self.weights, out=self.scores[: batch.x.shape[0]], engine=self.setup.engine)

    def backward(self, batch: Prepared, slope: np.ndarray):
        """Gradient of the weights from the slope [R, N] of the loss: row_sparse, or dense in a buffer of its own."""
        setup = self.setup
        out = self.full if setup.gradient == "dense" else None
        return dots.dot_t(batch.x, slope, result=setup.gradient, out=out, plan=batch.plan, engine=setup.engine)

    def update(self, gradient) -> None:
        """Change the weights and the state by one step of the optimizer, lazy or standard."""
        rule = self.optimizer.lazy if self.setup.update == "lazy" else self.optimizer.dense
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            gradient = optimizers.full(gradient, self.full)
        rule(self.weights, self.states, gradient, self.step, **self.options)

    def update_fused(self, batch: Prepared, slope: np.ndarray) -> None:
        """Change the rows that the batch touches by its gradient, which is summed on the way and not held."""
        rule = self.optimizer.fused
        rule(self.weights, self.states, batch.plan, batch.x.data, slope, self.step, **self.options)

    def do_step(self, batch: Prepared, epoch: int, laps: Laps, seconds_prepare: float = 0.0) -> StepEvent:
        """One step on a prepared batch."""
        self.step += 1
        scores = self.forward(batch)
        laps.lap("forward")
        slope = self.slope[: len(scores)]
        loss = self.model.evaluate(scores, batch.y, slope)
        laps.lap("loss")
        if self.setup.gradient == "fused":
            self.update_fused(batch, slope)
        else:
            gradient = self.backward(batch, slope)
            laps.lap("gradient")
            self.update(gradient)
        laps.lap("update")
        return StepEvent(self.step, epoch, len(scores), loss, laps.seconds, seconds_prepare)

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
        scores = np.empty((x.shape[0], self.weights.shape[1]), self.weights.dtype)
        for batch in data.Batches(x, np.zeros(x.shape[0]), self.setup.batch_rows).epoch(0):
            first = int(batch.rows_index[0])
            part = scores[first : first + batch.x.shape[0]]
            dots.dot(formats.convert(batch.x, self.setup.format), self.weights, out=part, engine=self.setup.engine)
        return scores

    def quality(self, x, y: np.ndarray) -> float:
        """The model's measure of quality on held-out X and y."""
        return self.model.quality(self.predict(x), y)
