"""A training on a CUDA device: batches are cut on the host and copied, weights and states never leave the device.

With `ahead` the next batch is cut on a thread and copied on a second stream beside the step, from pinned memory; its
batch plan is built there, too. Every step ends by waiting for the device, for its loss is a number of the host.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import numpy as np

import kernels
from kernels.gpu import plan as on_device
from kernels.sessions import Beside, CudaSession, Session
from workbench import data, formats, models, optimizers
from workbench.data import loader
from workbench.formats import RowSparse
from workbench.optimizers.contract import numbers_of
from workbench.train import products
from workbench.train.copies import Copied, DeviceLaps
from workbench.train.events import Laps, StepEvent
from workbench.train.setup import Setup, refuse_impossible

STEPS_WATCHED = 3
"""Steps on new batches after which no further one takes more memory."""


class DeviceRun:
    """Weights, states and batches of one training on a device; `events` does the steps, as those of `Run`.

    X [rows, D] is CSR, or dense for format dense, on the host; y is what the model's loss takes; weights [D, N] start
    at zero. `session` is the device, by default the CUDA device through CuPy (`ImportError` without it). Raises
    `SetupError` for settings that do not go together; `MemoryError` where the device has too little.
    """

    def __init__(self, setup: Setup, x: Any, y: np.ndarray, width: int, session: Session | None = None) -> None:
        self.setup, self.model, self.width = setup, models.get(setup.model), width
        refuse_impossible(setup, self.model, width)
        self.session = session or CudaSession()
        self.device = self.session.device
        self.batches = data.Batches(x, y, setup.batch_rows, shuffle=setup.shuffle, seed=setup.seed, last=setup.last)
        self.features, self.dtype = x.shape[1], np.dtype(setup.dtype)
        self.optimizer = optimizers.get(setup.optimizer)
        self.options = self.optimizer.resolve(setup.options)
        rows = min(setup.batch_rows, self.batches.total)
        self.scores, self.slopes = (self.device.empty((rows, width), self.dtype) for _ in range(2))  # [R, N]
        self.forward_of, self.gradient_of = products.chosen(setup, self.session)
        self.weights: Any = None
        self.states: list[Any] = []
        self.last: Copied | None = None
        self.kept: dict[int, Copied] = {}
        self.reset()

    def reset(self) -> None:
        """Zero weights and states, step zero: as new, copied batches kept."""
        self.weights, self.states, self.step, self.rows = None, [], 0, 0  # their memory is free for the new ones
        self.weights = self.device.zeros((self.features, self.width), self.dtype)
        shape = self.features if self.optimizer.states_by_row else (self.features, self.width)
        self.states = [self.device.zeros(shape, self.dtype) for _ in self.optimizer.states]

    # Batches

    def prepare(self, batch: data.Batch) -> Copied:
        """Queue the copies of a batch, and its plan, on the second stream."""
        laps = Laps()
        x = formats.to_format(batch.x, "dense" if self.setup.format == "dense" else "csr")
        laps.lap("convert")
        with self.session.beside() as work:
            copied = self._copied(x, batch.y, work)
        laps.lap("transfer")
        copied.seconds = {"convert": laps.seconds["convert"], "inside": laps.seconds["transfer"]}
        return copied

    def _copied(self, x: Any, y: np.ndarray, work: Beside) -> Copied:
        host = (x,) if isinstance(x, np.ndarray) else (x.indptr - x.indptr[0], x.indices, x.data)
        arrays = tuple(self.session.copy(array, work) for array in host)
        y = self.session.copy(y, work)
        work.marks["copied"] = self.session.mark()
        plan, values = None, None
        if self.setup.gradient_rule.plan:
            plan = on_device.build(*arrays[:2], x.shape[1])
            values = on_device.in_order(plan, arrays[2])
        if self.setup.format == "coo":
            arrays = products.coordinates(*arrays)
        return Copied(x.shape[0], arrays, y, plan, values, work)

    def _arrive(self, batch: Copied) -> None:
        if batch.work is not None:
            self.session.join(batch.work)

    # Steps

    def forward(self, batch: Copied, laps: DeviceLaps | None = None) -> float:
        """The mean loss of a batch; its slope is in `slopes`."""
        self._arrive(batch)
        self.rows = batch.rows
        scores, slope = self.scores[: batch.rows], self.slopes[: batch.rows]
        self.forward_of(batch.arrays, self.weights, scores)
        _lap(laps, "forward")
        loss = kernels.get(self.model.loss).gpu(scores, batch.y, slope)
        _lap(laps, "loss")
        self.last = batch
        return float(loss)

    def backward(self, laps: DeviceLaps | None = None) -> Any:
        """Gradient of the weights for the batch of the last `forward`: dense, `RowSparse`, or None, left unsummed."""
        if self.setup.gradient == "fused":
            return None
        batch, slope = self.last, self.slopes[: self.rows]
        if self.setup.gradient == "row_sparse":
            values = self.device.empty((batch.plan.columns.size, self.width), self.dtype)  # [U, N]
            kernels.get("csr_t_dense").gpu(batch.plan.segments, batch.plan.rows, batch.values, slope, values)
            gradient = RowSparse.assemble(values, batch.plan.columns, (self.features, self.width))
        else:
            gradient = self.device.empty((self.features, self.width), self.dtype)
            self.gradient_of(batch.arrays, slope, gradient)
        _lap(laps, "gradient")
        return gradient

    def update(self, gradient: Any) -> None:
        """Change the weights and states by one step of the optimizer."""
        self.step += 1
        numbers = numbers_of(self.optimizer.rule, self.options, self.step)
        if gradient is None:
            plan, slope = self.last.plan, self.slopes[: self.rows]
            kind, given = "fused", (plan.columns, plan.segments, plan.rows, self.last.values, slope)
        elif not isinstance(gradient, RowSparse):
            kind, given = "dense", (gradient,)
        elif self.setup.update == "lazy":
            kind, given = "lazy", (gradient.indices, gradient.values)
        else:
            full = self.device.zeros(gradient.shape, self.dtype)
            kernels.get("scatter_rows").gpu(gradient.values, gradient.indices, full)
            kind, given = "dense", (full,)
        kernels.get(f"{self.optimizer.name}_{kind}").gpu(self.weights, *self.states, *given, *numbers)

    def do_step(self, batch: Copied, epoch: int, known: dict[str, float], seconds_prepare: float) -> StepEvent:
        """One step on a batch that may still be under way; `known` are phases of the host."""
        laps, work = DeviceLaps(self.session), batch.work
        self._arrive(batch)
        laps.lap("transfer")
        loss = self.forward(batch, laps)
        self.update(self.backward(laps))
        laps.lap("update")
        self.session.finish()  # synchronize!
        batch.work = self.last = None  # what copies read, and arrays of the second stream, may go only now
        seconds = Laps(known | laps.seconds()).seconds
        if work is not None:
            seconds, seconds_prepare = self._with_copies(work, seconds, seconds_prepare)
        return StepEvent(self.step, epoch, batch.rows, loss, seconds, seconds_prepare)

    def _with_copies(self, work: Beside, seconds: dict[str, float], host: float) -> tuple[dict[str, float], float]:
        """Phases with copies and plan where they were in the step, and what making the batch took in all."""
        of = work.marks
        copies, plan = (self.session.seconds(of[a], of[b]) for a, b in (("start", "copied"), ("copied", "end")))
        if not self.setup.ahead:
            seconds = seconds | {"transfer": copies, "plan": plan}
        return seconds, host + copies + plan

    def epoch(self, epoch: int) -> Iterator[StepEvent]:
        """The steps of one epoch."""
        if self.kept:
            for batch in self.kept.values():
                yield self.do_step(batch, epoch, {}, 0.0)
            return
        kept: dict[int, Copied] = {}
        made = loader.ahead(self.batches.epoch(epoch), self.prepare, depth=int(self.setup.ahead))
        for number, ready in enumerate(made):
            batch, convert, inside = ready.value, ready.value.seconds["convert"], ready.value.seconds["inside"]
            if not self.setup.shuffle:
                kept[number] = batch
            host = ready.seconds_prepare - inside
            known = {"wait": ready.seconds_wait} if self.setup.ahead else {"slice": host - convert, "convert": convert}
            yield self.do_step(batch, epoch, known, host)
        self.kept = kept

    def events(self, epochs: int | None = None) -> Iterator[StepEvent]:
        """The steps of `epochs` epochs, or without end."""
        epoch = 0
        while epochs is None or epoch < epochs:
            yield from self.epoch(epoch)
            epoch += 1

    # What is asked of a training

    def densified(self) -> list[dict]:
        """What these settings make dense on the way, of which shape and bytes: nothing for most."""
        made, value = [], self.dtype.itemsize
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            made.append(("gradient for the standard update", (self.features, self.width)))
        if self.setup.format == "dense" and not isinstance(self.batches.x, np.ndarray):
            made.append(("batch from csr", (self.setup.batch_rows, self.features)))
        return [{"op": op, "shape": list(shape), "bytes": shape[0] * shape[1] * value} for op, shape in made]

    @property
    def bytes_held(self) -> int:
        """Bytes of the arrays on the host: the data."""
        return formats.nbytes(self.batches.x)

    @property
    def bytes_device_held(self) -> int:
        """Bytes of the arrays on the device: weights, states, scores, slope, kept batches."""
        own = (self.weights, *self.states, self.scores, self.slopes)
        return sum(array.nbytes for array in own) + sum(batch.nbytes for batch in self.kept.values())

    def watch(self) -> int:
        """The most bytes in use on the device at once, from untimed steps: of a whole epoch where batches are kept.

        The run is as new afterwards, but for the batches it keeps.
        """
        with self.watching():
            steps = self.epoch(0)
            for _ in steps if not self.setup.shuffle else islice(steps, STEPS_WATCHED):
                pass
            steps.close()
        self.reset()
        return self.session.bytes_most

    def watching(self) -> AbstractContextManager[None]:
        """The session's."""
        return self.session.watching()

    def write_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        """weights[rows] = values."""
        places = self.device.put(np.asarray(rows, np.int64))
        kernels.get("scatter_rows").gpu(self.device.put(values), places, self.weights)

    def read_rows(self, rows: np.ndarray) -> np.ndarray:
        """weights[rows], on the host."""
        return self._rows_of(self.weights, rows)

    def _rows_of(self, table: Any, rows: np.ndarray) -> np.ndarray:
        out = self.device.empty((rows.size, self.width), self.dtype)
        kernels.get("take_rows").gpu(table, self.device.put(np.asarray(rows, np.int64)), out)
        return self.device.read(out)  # synchronize!

    def slope(self) -> np.ndarray:
        """Of the loss of the last `forward`, on the host [R, N]."""
        return self.device.read(self.slopes[: self.rows])  # synchronize!

    def gradient_rows(self, gradient: Any, columns: np.ndarray) -> np.ndarray | None:
        """Rows `columns` of what `backward` returned, on the host; None where it is left unsummed."""
        if not isinstance(gradient, RowSparse):
            return None if gradient is None else self._rows_of(gradient, columns)
        places = np.searchsorted(self.device.read(gradient.indices), columns)  # synchronize!
        return self._rows_of(gradient.values, places)

    def scores_of(self, x: Any) -> np.ndarray:
        """Scores [R, N] of a batch, on the host."""
        x = formats.to_format(x, "dense" if self.setup.format == "dense" else "csr")
        with self.session.beside() as work:
            batch = self._copied(x, np.zeros(0, self.dtype), work)
        self.session.join(work)
        scores = self.device.empty((x.shape[0], self.width), self.dtype)
        self.forward_of(batch.arrays, self.weights, scores)
        made = self.device.read(scores)  # synchronize!
        self.session.finish()
        return made

    def predict(self, x: Any) -> np.ndarray:
        """Scores [rows, N] of X, in chunks of the batch size, in the setup's format, on the host."""
        batches = data.Batches(x, None, self.setup.batch_rows)
        return np.concatenate([self.scores_of(batch.x) for batch in batches.epoch(0)])

    def quality(self, x: Any, y: np.ndarray) -> float:
        """The model's measure of quality on held-out X and y."""
        return self.model.quality(self.predict(x), y)


def _lap(laps: DeviceLaps | None, phase: str) -> None:
    if laps is not None:
        laps.lap(phase)
