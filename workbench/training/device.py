"""A training on a CUDA device: batches are cut on the host and copied, weights and states never leave the device.

With `ahead` the next batch is cut on a thread and copied on a second stream beside the step, from pinned memory; its
batch plan is built there, too, or on that thread. Every step ends by waiting for the device, for its loss is a number
of the host.
"""

from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, final

import numpy as np

import kernels
from kernels.gpu.row_sums import UNKNOWN
from kernels.sessions import Beside, CudaSession, Session
from workbench import data, formats, optimizers
from workbench.data.batches import feed
from workbench.formats import RowSparse
from workbench.optimizers.contract import numbers_of
from workbench.training import device_execution
from workbench.training.device_execution import Batch, ByKernel, DeviceExecution, DevicePhaseTimer, InGraph, arrays_of
from workbench.training.setup import Setup, SetupError, not_on_cuda
from workbench.training.training import PhaseTimer, StepEvent, Training

STEPS_WATCHED = 3
"""Steps on new batches after which no further one takes more memory."""


@final
class DeviceRun(Training):
    """A training on a device of a model X @ W, whose weights [D, N] start at zero.

    X is on the host. `session` is the device, by default the CUDA device through CuPy (`ImportError` without it).
    `MemoryError` if the device has too little.
    """

    def __init__(self, setup: Setup, x: Any, y: np.ndarray, width: int, session: Session | None = None) -> None:
        super().__init__(setup, x, y, width)
        if not self.model.is_product:
            raise SetupError(f"{not_on_cuda(self.model)} Take device cpu.")
        self.session = session or CudaSession()
        self.device = self.session.device
        self.optimizer = optimizers.get(setup.optimizer)
        self.options = self.optimizer.resolve(setup.options)
        self.forward_of, _ = device_execution.choose_products(setup, self.session)
        self.weights = self.device.zeros((self.features, self.width), self.dtype)
        shape = self.features if self.optimizer.states_by_row else (self.features, self.width)
        self.states = [self.device.zeros(shape, self.dtype) for _ in self.optimizer.states]
        self.launching = self._new_launching()
        self.last: Batch | None = None
        self.rows = 0

    def _new_launching(self) -> DeviceExecution[Any]:
        """Return the execution that the setup requests, sized for the largest batch."""
        is_full = self.setup.last in ("pad", "roll_over")  # also where the data has fewer rows than a batch
        rows = self.setup.batch_rows if is_full else min(self.setup.batch_rows, self.batches.total)
        arguments = self.setup, self.session, self.optimizer, (self.weights, *self.states), self.model.loss, rows
        return InGraph(*arguments, self.batches) if self.setup.launch == "graph" else ByKernel(*arguments)

    def reset(self) -> None:
        """Weights and states of zero, step zero; copied batches are kept."""
        self.step, self.rows = 0, 0
        for table in (self.weights, *self.states):
            self.device.clear(table)

    # Batches

    def _in_format(self, x: Any) -> Any:
        """Return x dense or as CSR, whichever the setup's format needs on the host."""
        return formats.to_format(x, "dense" if self.setup.format == "dense" else "csr")

    def prepare(self, batch: data.Batch) -> Batch:
        """Queue the copies of a batch, and its plan, on the second stream."""
        laps = PhaseTimer()
        x = self._in_format(batch.x)
        laps.split("convert")
        prepared = self.launching.prepare(x, batch.y, laps)
        laps.split("transfer")
        prepared.seconds = {phase: laps.seconds[phase] for phase in ("convert", "plan")}
        prepared.seconds["inside"] = laps.seconds["transfer"]
        return prepared

    def _arrive(self, batch: Batch) -> None:
        """Make the device wait until the copy of a batch is complete."""
        if batch.work is not None:
            self.session.wait_for(batch.work.marks["end"])

    # Steps

    def forward(self, batch: Batch) -> float:
        """Return the mean loss of a batch; `slope` gives the gradient of its scores."""
        self._arrive(batch)
        self.last, self.rows = batch, batch.rows
        return self.launching.forward(batch)

    def backward(self) -> dict[str, Any]:
        """Return the gradient of w: dense, `RowSparse`, or None, left as its factors."""
        assert self.last is not None
        return {"w": self.launching.backward(self.last)}

    def update(self, gradients: dict[str, Any]) -> None:
        """Run the optimizer's kernels."""
        assert self.last is not None
        self.launching.update(self.last, gradients["w"], self._numbers())

    def _numbers(self) -> list[float]:
        """Return the numbers of the next step."""
        self.step += 1
        return numbers_of(self.optimizer.rule, self.options, self.step)

    def phases_before(self, ready: feed.Ready) -> tuple[dict[str, float], float]:
        """Return the phases of the host; copies, and a plan on the device, are known when the step is done."""
        of = ready.value.seconds
        host = ready.seconds_prepare - of["inside"]
        here = {"slice": host - of["convert"] - of["plan"], "convert": of["convert"], "plan": of["plan"]}
        return {"wait": ready.seconds_wait} if self.setup.ahead else here, host

    def do_step(self, batch: Batch, epoch: int, phases: dict[str, float], seconds_prepare: float) -> StepEvent:
        """Return one step on a batch that may still be under way."""
        laps, work = DevicePhaseTimer(self.session), batch.work
        self._arrive(batch)
        laps.split("transfer")
        loss = self.launching.step(batch, self._numbers(), laps)
        self.session.finish()  # synchronize!
        batch.work = self.last = None  # what copies read, and arrays of the second stream, may go only now
        seconds = PhaseTimer(phases | laps.seconds()).seconds
        if work is not None:
            seconds, seconds_prepare = self._with_copies(work, seconds, seconds_prepare)
        return StepEvent(self.step, epoch, batch.rows, loss, seconds, seconds_prepare)

    def _with_copies(self, work: Beside, seconds: dict[str, float], host: float) -> tuple[dict[str, float], float]:
        """Return the phases with copies and plan where they were in the step, and what making the batch took in all."""
        of = work.marks
        copies, plan = (self.session.seconds(of[a], of[b]) for a, b in (("start", "copied"), ("copied", "end")))
        if not self.setup.ahead:
            seconds = seconds | {"transfer": copies, "plan": seconds["plan"] + plan}
        return seconds, host + copies + plan

    @property
    def keeps(self) -> bool:
        """Whether the launching keeps the batches: a graph has slots for so many. Those of stored rows never are."""
        return self.launching.keeps and not isinstance(self.batches.x, data.StoredRows)

    def settle(self) -> None:
        """Wait for copies of a batch that no step came to: what they read and write may be given back after this."""
        with self.session.beside() as work:
            pass
        self.session.until(work.marks["end"])  # synchronize!

    # What is asked of a training

    def densified(self) -> list[dict]:
        """Return the arrays that these settings make dense on the way, of which shape and bytes: none for most."""
        conversions, value = [], self.dtype.itemsize
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            conversions.append(("gradient for the standard update", (self.features, self.width)))
        if self.setup.format == "dense" and not isinstance(self.batches.x, np.ndarray):
            conversions.append(("batch from csr", (self.setup.batch_rows, self.features)))
        return [{"op": op, "shape": list(shape), "bytes": shape[0] * shape[1] * value} for op, shape in conversions]

    @property
    def bytes_held(self) -> int:
        """Bytes of the arrays on the host: the data."""
        return self.batches.nbytes

    @property
    def bytes_device_held(self) -> int:
        """Bytes of the arrays on the device: weights, states, scores and their gradient, kept batches, slots."""
        own = (self.weights, *self.states, self.launching)
        return sum(each.nbytes for each in own) + sum(batch.nbytes for batch in self.kept.values())

    def watch(self) -> int:
        """Return the most bytes in use on the device at once, from untimed steps: of a whole epoch where batches are
        kept.

        The run is as new afterwards, but for the batches it keeps.
        """
        with self.watching():
            steps = self.epoch(0)
            for _ in steps if self.keeps else islice(steps, STEPS_WATCHED):
                pass
            steps.close()
        self.reset()
        return self.session.bytes_most

    def watching(self) -> AbstractContextManager[None]:
        """Return a context that records the peak device memory of the session while it is open."""
        return self.session.watching()

    def write_rows(self, rows: np.ndarray, values: np.ndarray, name: str = "w") -> None:
        """Copy rows to the device and scatter them there."""
        places = self.device.put(np.asarray(rows, np.int64))
        kernels.get("scatter_rows").cuda(self.device.put(values), places, self.weights)

    def read_rows(self, rows: np.ndarray, name: str = "w") -> np.ndarray:
        """Gather rows on the device and copy them."""
        return self._rows_of(self.weights, rows)

    def _rows_of(self, table: Any, rows: np.ndarray) -> np.ndarray:
        """Return the given rows of a table on the device as a host array [rows, width]."""
        out = self.device.empty((rows.size, self.width), self.dtype)
        kernels.get("take_rows").cuda(table, self.device.put(np.asarray(rows, np.int64)), out)
        return self.device.read(out)  # synchronize!

    def slope(self) -> np.ndarray:
        """Return the gradient of the scores of the last `forward`, copied to the host [R, N]."""
        return self.device.read(self.launching.slope(self.rows))  # synchronize!

    def gradient_rows(self, gradient: Any, rows: np.ndarray, name: str = "w") -> np.ndarray | None:
        """Gather rows of the gradient on the device and copy them."""
        if not isinstance(gradient, RowSparse):
            return None if gradient is None else self._rows_of(gradient, rows)
        places = np.searchsorted(self.device.read(gradient.indices), rows)  # synchronize!
        return self._rows_of(gradient.values, places)

    def scores_of(self, batch: data.Batch) -> np.ndarray:
        """Return scores [R, N] of a batch, on the host."""
        x = self._in_format(batch.x)
        with self.session.beside() as work:
            arrays = tuple(self.session.copy(array, work) for array in arrays_of(x))
            if self.setup.format == "coo":
                arrays = device_execution.coordinates(*arrays)
        self.session.wait_for(work.marks["end"])
        scores = self.device.empty((x.shape[0], self.width), self.dtype)
        self.forward_of(arrays, self.weights, scores, UNKNOWN)
        host_scores = self.device.read(scores)  # synchronize!
        self.session.finish()
        return host_scores
