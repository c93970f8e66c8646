"""A training on a CUDA device: batches are cut on the host and copied, weights and states never leave the device.

With `ahead` the next batch is cut on a thread and copied on a second stream during the step, from pinned memory; its
batch plan is built there, too, or on that thread. Every step ends by waiting for the device, for its loss is a number
of the host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar, final

import numpy as np

import kernels
from kernels import plan
from kernels.gpu import indices, updates
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.gpu.slots import Capacity, DenseStep, Step
from kernels.plan import BatchPlan, row_length
from kernels.products import csr_dense
from kernels.sessions import CudaSession, SecondStream, Session
from workbench import data, formats, optimizers
from workbench.data.batches import feed
from workbench.formats import RowSparse
from workbench.optimizers import Optimizer
from workbench.optimizers.contract import numbers_of
from workbench.training.setup import Setup, SetupError, not_on_cuda
from workbench.training.training import PhaseTimer, StepEvent, Training

# The steps of a training on a device, launched kernel by kernel (`ByKernel`) or as one CUDA graph each (`InGraph`).
#
# A step in a graph reads its batch from a slot, filled while an earlier step runs. Batches that repeat have a slot
# each, for good, while they are at most `MOST_KEPT`. All others are cut, planned on the host if they are CSR, and
# copied anew in every epoch, into two slots in turn: with `ahead` one is filled while the other's step runs.


def arrays_of(x: Any) -> tuple[np.ndarray, ...]:
    """Return the host arrays of X to copy: (x,) if dense, else (indptr shifted to begin at 0, indices, data) of CSR."""
    return (x,) if isinstance(x, np.ndarray) else (x.indptr - x.indptr[0], x.indices, x.data)


@dataclass
class DeviceBatch:
    """A batch on the device: its arrays in the setup's format, targets, its plan and its values in the plan's order."""

    rows: int
    arrays: tuple[Any, ...]
    y: Any
    plan: BatchPlan | None
    values: Any
    work: SecondStream | None
    """What must have arrived before the first step reads it; None once it has."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of the host: convert, plan, and all that is inside of `work`."""

    @property
    def row_lengths(self) -> Lengths:
        """Bounds on the row lengths known from the plan; unknown without one."""
        return UNKNOWN if self.plan is None else Lengths.of_rows(self.plan)

    @property
    def nbytes(self) -> int:
        """Bytes that the batch, its targets and its plan take on the device."""
        planned = 0 if self.plan is None else self.plan.nbytes + self.values.nbytes
        return planned + sum(array.nbytes for array in (*self.arrays, self.y))


@dataclass
class SlotBatch:
    """A batch in a slot of a step that is one graph; `work` and `seconds` as those of `DeviceBatch`."""

    rows: int
    slot: int
    work: SecondStream | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Always 0: the memory of a slot belongs to the step."""
        return 0


class DevicePhaseTimer:
    """Marks of the device at the ends of the phases of a step; `seconds()` is asked for when all are passed."""

    def __init__(self, session: Session) -> None:
        """Record the first mark (a CUDA event) in the session's stream."""
        self.session, self.marks = session, [("", session.mark())]

    def split(self, phase: str) -> None:
        """Record a mark: work queued since the last one counts to `phase`."""
        self.marks.append((phase, self.session.mark()))

    def seconds(self) -> dict[str, float]:
        """Return {phase: seconds on the device}; all work before the last mark must be complete."""
        totals: dict[str, float] = {}
        for (_, start), (phase, end) in zip(self.marks, self.marks[1:], strict=False):
            totals[phase] = totals.get(phase, 0.0) + self.session.seconds(start, end)
        return totals


Batch = DeviceBatch | SlotBatch
"""A batch on the device, or on its way there."""

AnyBatch = TypeVar("AnyBatch", bound=Batch)


class DeviceExecution(ABC, Generic[AnyBatch]):
    """Steps that change the weights [D, N] and states that it was made with, in place, where they are."""

    keeps: bool
    """Whether the batches of an epoch stay on the device, for those after it."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes on the device in addition to weights, states and what `prepare` returned."""

    @abstractmethod
    def prepare(self, x: Any, y: np.ndarray, timer: PhaseTimer) -> AnyBatch:
        """Queue copies of a host batch and its plan on the second stream; host plans are timed in `timer`."""

    @abstractmethod
    def step(self, batch: AnyBatch, numbers: Sequence[float], timer: DevicePhaseTimer) -> float:
        """Do a step on an arrived batch with the rule's numbers; return the mean loss before it."""

    # The same in parts, by which a step is checked before it is timed

    @abstractmethod
    def forward(self, batch: AnyBatch) -> float:
        """Compute scores and loss of an arrived batch, and return the mean loss."""

    @abstractmethod
    def slope(self, rows: int) -> Any:
        """Return the gradient of the scores after `forward`, on the device [rows, N], not a copy."""

    @abstractmethod
    def backward(self, batch: AnyBatch) -> Any:
        """Return the weight gradient after `forward`: dense [D, N], `RowSparse`, or None if never formed."""

    @abstractmethod
    def update(self, batch: AnyBatch, gradient: Any, numbers: Sequence[float]) -> None:
        """Change weights and states in place by the gradient that `backward` returned."""


Product = Callable[[tuple, Any, Any, Lengths], None]
"""`product(arrays of X, other, out, what is known of the entries of rows of X)`."""

CUSPARSE = {"scipy.csr_dense": "cusparse.csr_dense", "scipy.csr_t_dense_full": "cusparse.csr_t_dense_full"}
"""The vendor's kernels on a CUDA device in the place of those on the CPU."""


def choose_products(setup: Setup, session: Session) -> tuple[Product, Product]:
    """Return (forward product, product for a dense gradient), each as product(x arrays, other, out, lengths)."""
    if setup.format == "dense":
        return _by_blas(session, False), _by_blas(session, True)
    forward, backward = _kernel_by_name(setup.forward_rule.kernel), _kernel_by_name(setup.gradient_rule.kernel)
    if setup.format == "coo":
        return lambda x, w, out, _: forward(*x, w, out), lambda x, g, out, _: backward(x[1], x[0], x[2], g, out)
    if setup.forward_rule.kernel == "csr_dense":
        return _csr_dense, _of_csr(backward)
    return _of_csr(forward), _of_csr(backward)


def _csr_dense(x: tuple, w: Any, out: Any, lengths: Lengths) -> None:
    """Write x @ w to `out` [R, N], x = (indptr, indices, data) of CSR with row lengths in `lengths`."""
    indptr, columns, values = x
    csr_dense.on_device(indptr, columns, values, w, out, lengths)


def _of_csr(product: Callable[..., None]) -> Product:
    """Return a product (x, other, out, lengths) that calls a CSR kernel and ignores `lengths`."""
    return lambda x, other, out, _: product(*x, other, out)


def _by_blas(session: Session, transposed: bool) -> Product:
    """Return a product (x, other, out, lengths) of dense x by the session's BLAS, of x.T if `transposed`."""
    return lambda x, other, out, _: session.matmul(x[0], other, out, transposed)


def _kernel_by_name(kernel: str) -> Callable[..., None]:
    """Return the CUDA implementation of a kernel; of a SciPy kernel, that of cuSPARSE."""
    return kernels.get(CUSPARSE.get(kernel, kernel)).cuda


def coordinates(indptr: Any, columns: Any, values: Any) -> tuple[Any, Any, Any]:
    """Return (row, col, data) of a CSR batch on the device; only the row indices are new."""
    return indices.rows_of(indptr, columns.size, np.dtype(columns.dtype)), columns, values


@final
class ByKernel(DeviceExecution[DeviceBatch]):
    """A step as single kernel launches; buffers hold `rows` rows, the batch plan is built on the second stream.

    Of batches that are kept it also has rows and columns in the order of their entries, where that may pay.
    """

    def __init__(
        self, setup: Setup, session: Session, optimizer: Optimizer, tables: Sequence[Any], loss: str, rows: int
    ) -> None:
        """Store setup and tables (weights, states); allocate scores and their gradient [rows, N] on the device."""
        self.setup, self.session, self.device, self.optimizer = setup, session, session.device, optimizer
        self.tables, self.keeps = tables, not setup.shuffle
        self.shape, self.dtype = tables[0].shape, np.dtype(setup.dtype)
        self.scores, self.slopes = (self.device.empty((rows, self.shape[1]), self.dtype) for _ in range(2))  # [R, N]
        self.forward_of, self.gradient_of = choose_products(setup, session)
        self.loss_of = kernels.get(loss).cuda

    @property
    def nbytes(self) -> int:
        """Bytes of the scores and their gradient."""
        return self.scores.nbytes + self.slopes.nbytes

    def prepare(self, x: Any, y: np.ndarray, timer: PhaseTimer) -> DeviceBatch:
        """Queue copies of a batch to new device arrays, with its column index if the gradient needs one.

        `timer` is unused.
        """
        with self.session.second_stream() as work:
            arrays = tuple(self.session.copy(array, work) for array in arrays_of(x))
            y = self.session.copy(y, work)
            work.marks["copied"] = self.session.mark()
            plan, values = None, None
            if self.setup.gradient_rule.plan:
                plan = indices.build(arrays[0], arrays[1], x.shape[1], in_order_of_length=self.keeps)
                values = indices.in_order(plan, arrays[2])
            if self.setup.format == "coo":
                arrays = coordinates(*arrays)
        return DeviceBatch(x.shape[0], arrays, y, plan, values, work)

    def step(self, batch: DeviceBatch, numbers: Sequence[float], timer: DevicePhaseTimer) -> float:
        """Do forward, loss, gradient and update, timed in `timer`; return the loss, read before the gradient."""
        loss = self._forward(batch, timer)
        self.update(batch, self._backward(batch, timer), numbers)
        timer.split("update")
        return loss

    def forward(self, batch: DeviceBatch) -> float:
        """Launch the product and the loss kernel, and return the mean loss."""
        return self._forward(batch, None)

    def _forward(self, batch: DeviceBatch, timer: DevicePhaseTimer | None) -> float:
        """Compute scores and loss of a batch and write the gradient of the scores; return the loss."""
        scores, slope = self.scores[: batch.rows], self.slope(batch.rows)
        self.forward_of(batch.arrays, self.tables[0], scores, batch.row_lengths)
        _split(timer, "forward")
        loss = self.loss_of(scores, batch.y, slope)
        _split(timer, "loss")
        return float(loss)

    def slope(self, rows: int) -> Any:
        """Return the gradient of the scores of the last batch of `rows` rows, a view [rows, N] of the buffer."""
        return self.slopes[:rows]

    def backward(self, batch: DeviceBatch) -> Any:
        """Return the weight gradient after `forward`: dense [D, N], `RowSparse`, or None if fused with the update."""
        return self._backward(batch, None)

    def _backward(self, batch: DeviceBatch, timer: DevicePhaseTimer | None) -> Any:
        """Return the weight gradient, dense or `RowSparse`, timed in `timer`; None if it is fused with the update."""
        if self.setup.gradient == "fused":
            return None
        slope = self.slope(batch.rows)
        if self.setup.gradient == "row_sparse":
            plan = batch.plan
            assert plan is not None
            values = self.device.empty((plan.columns.size, self.shape[1]), self.dtype)  # [U, N]
            lengths = Lengths.of_columns(plan)
            csr_dense.on_device(plan.segments, plan.rows, batch.values, slope, values, lengths)
            gradient = RowSparse.assemble(values, plan.columns, self.shape)
        else:
            gradient = self.device.empty(self.shape, self.dtype)
            self.gradient_of(batch.arrays, slope, gradient, batch.row_lengths)
        _split(timer, "gradient")
        return gradient

    def update(self, batch: DeviceBatch, gradient: Any, numbers: Sequence[float]) -> None:
        """Update the tables in place by the kernel for a fused (None), dense or row-sparse gradient."""
        operands: tuple[Any, ...]
        if gradient is None:
            plan, slope, rule = batch.plan, self.slope(batch.rows), self.optimizer.rule
            assert plan is not None
            operands = plan.columns, plan.segments, plan.rows, batch.values, slope
            updates.fused(rule, tuple(self.tables), operands, rule.settings(*numbers), Lengths.of_columns(plan))
            return
        if not isinstance(gradient, RowSparse):
            kind, operands = "dense", (gradient,)
        elif self.setup.update == "lazy":
            kind, operands = "lazy", (gradient.indices, gradient.values)
        else:
            full = self.device.zeros(gradient.shape, self.dtype)
            kernels.get("scatter_rows").cuda(gradient.values, gradient.indices, full)
            kind, operands = "dense", (full,)
        kernels.get(f"{self.optimizer.name}_{kind}").cuda(*self.tables, *operands, *numbers)


def _split(timer: DevicePhaseTimer | None, phase: str) -> None:
    """Record the end of `phase`; does nothing if `timer` is None."""
    if timer is not None:
        timer.split(phase)


MOST_KEPT = 256
"""Batches that have a slot each. A slot has a graph of its own, which takes memory of the driver and time to make."""


def most_entries(lengths: np.ndarray, batches: data.Batches | data.StoredBatches) -> int:
    """Return the most stored entries of a batch, by row lengths; if shuffled, of the longest rows together."""
    if not batches.shuffle and batches.last in ("keep", "discard"):
        return int(np.add.reduceat(lengths, np.arange(0, lengths.size, batches.rows)).max())
    times = 1 if batches.last in ("keep", "discard") else 2 + batches.rows // batches.total  # that a row is in a batch
    longest = np.sort(lengths)[::-1][: batches.rows]
    return int(np.repeat(longest, times)[: batches.rows].sum())


def capacity_of(batches: data.Batches | data.StoredBatches, rows: int) -> Capacity:
    """Return the buffer sizes that fit every batch of CSR data, or of stored rows, of up to `rows` rows."""
    x = batches.x if isinstance(batches.x, data.StoredRows) else formats.to_format(batches.x, "csr")
    lengths = data.row_lengths(x)
    entries, longest = most_entries(lengths, batches), int(lengths.max(initial=0))
    known = Lengths(row_length(lengths.size, x.nnz, longest), longest)
    return Capacity(rows, entries, min(entries, x.shape[1]), known)


@final
class InGraph(DeviceExecution[SlotBatch]):
    """A step as one CUDA graph, with slots and buffers allocated for the largest of `batches`."""

    def __init__(
        self,
        setup: Setup,
        session: Session,
        optimizer: Optimizer,
        tables: Sequence[Any],
        loss: str,
        rows: int,
        batches: data.Batches | data.StoredBatches,
    ) -> None:
        """Allocate slots for the largest of `batches`: one per batch if they are kept, else two.

        `tables` are weights and states on the device, `loss` is the name of a loss, `rows` the rows of a batch.
        """
        self.keeps = not setup.shuffle and len(batches) <= MOST_KEPT
        slots = len(batches) if self.keeps else 2
        arguments = session, optimizer.rule.name, list(tables)
        self.made: Step | DenseStep = (
            DenseStep(*arguments, rows, loss, slots)
            if setup.format == "dense"
            else Step(*arguments, capacity_of(batches, rows), loss, slots)
        )
        self.turn = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all slots, and of the step's intermediate results."""
        return self.made.nbytes

    def prepare(self, x: Any, y: np.ndarray, timer: PhaseTimer) -> SlotBatch:
        """Queue loading a batch into the next slot in turn, and return it; a CSR plan is built here, on the host."""
        slot = self.turn % len(self.made.slots)
        self.turn += 1
        if isinstance(self.made, DenseStep):
            return SlotBatch(x.shape[0], slot, self.made.slots[slot].load(x, y))
        built = plan.build(x.indptr, x.indices, x.shape[1])
        built.in_order(x.data)
        timer.split("plan")
        return SlotBatch(x.shape[0], slot, self.made.slots[slot].load(x.indptr, x.indices, x.data, y, built))

    def step(self, batch: SlotBatch, numbers: Sequence[float], timer: DevicePhaseTimer) -> float:
        """Launch the step's graph, which updates the tables, and return the loss, read afterwards."""
        self.update(batch, None, numbers)
        timer.split("graph")
        return self.made.loss()

    def forward(self, batch: SlotBatch) -> float:
        """Launch the first kernels of the graph one by one, and return the mean loss."""
        self.made.forward(batch.slot)
        return self.made.loss()

    def slope(self, rows: int) -> Any:
        """Return the gradient of the scores of the last batch, a view [rows, N] of the buffer."""
        return self.made.grad_scores[:rows]

    def backward(self, batch: SlotBatch) -> Any:
        """Return the gradient [D, N] of a dense batch; None for CSR, which never forms it."""
        return self.made.backward(batch.slot) if isinstance(self.made, DenseStep) else None

    def update(self, batch: SlotBatch, gradient: Any, numbers: Sequence[float]) -> None:
        """Launch the whole step on the batch's slot; `gradient` is ignored and computed again."""
        self.made.run(batch.slot, *numbers)


STEPS_WATCHED = 3
"""Steps on new batches after which no further one takes more memory."""


@final
class DeviceRun(Training):
    """A training on a device of a model X @ W, whose weights [D, N] start at zero.

    X is on the host. `session` is the device, by default the CUDA device through CuPy (`ImportError` without it).
    `MemoryError` if the device has too little.
    """

    def __init__(self, setup: Setup, x: Any, y: np.ndarray, width: int, session: Session | None = None) -> None:
        """Create zero weights and states on the device and the step executor; SetupError if not on cuda."""
        super().__init__(setup, x, y, width)
        if not self.model.is_product:
            raise SetupError(f"{not_on_cuda(self.model)} Take device cpu.")
        self.session = session or CudaSession()
        self.device = self.session.device
        self.optimizer = optimizers.get(setup.optimizer)
        self.options = self.optimizer.resolve(setup.options)
        self.forward_of, _ = choose_products(setup, self.session)
        self.weights = self.device.zeros((self.features, self.width), self.dtype)
        shape = self.features if self.optimizer.states_by_row else (self.features, self.width)
        self.states = [self.device.zeros(shape, self.dtype) for _ in self.optimizer.states]
        self.launching = self._new_launching()
        self.last: Batch | None = None
        self.rows = 0

    def _new_launching(self) -> DeviceExecution[Any]:
        """Return the execution that the setup requests, sized for the largest batch."""
        is_full = self.setup.last == "pad"  # also where the data has fewer rows than a batch
        rows = self.setup.batch_rows if is_full else min(self.setup.batch_rows, self.batches.total)
        arguments = self.setup, self.session, self.optimizer, (self.weights, *self.states), self.model.loss, rows
        return InGraph(*arguments, self.batches) if self.setup.execution == "cuda_graph" else ByKernel(*arguments)

    def reset(self) -> None:
        """Set weights, states and the step count to zero, in place; copied batches are kept."""
        self.step, self.rows = 0, 0
        for table in (self.weights, *self.states):
            self.device.clear(table)

    # Batches

    def _in_format(self, x: Any) -> Any:
        """Return x on the host, dense or as CSR, as the setup's format needs it."""
        return formats.to_format(x, "dense" if self.setup.format == "dense" else "csr")

    def prepare(self, batch: data.Batch) -> Batch:
        """Convert a batch, and queue its copies and plan on the second stream; it stores the host's seconds."""
        timer = PhaseTimer()
        x = self._in_format(batch.x)
        timer.split("convert")
        prepared = self.launching.prepare(x, batch.y, timer)
        timer.split("transfer")
        prepared.seconds = {phase: timer.seconds[phase] for phase in ("convert", "plan")}
        prepared.seconds["inside"] = timer.seconds["transfer"]
        return prepared

    def _arrive(self, batch: Batch) -> None:
        """Make the device stream wait until a batch is copied; the host does not wait."""
        if batch.work is not None:
            self.session.wait_for(batch.work.marks["end"])

    # Steps

    def forward(self, batch: Batch) -> float:
        """Return the mean loss of a batch and keep it as the last, to which `slope` and `backward` refer."""
        self._arrive(batch)
        self.last, self.rows = batch, batch.rows
        return self.launching.forward(batch)

    def backward(self) -> dict[str, Any]:
        """Return {"w": gradient} of the last `forward`: dense, `RowSparse`, or None if it is never formed."""
        assert self.last is not None
        return {"w": self.launching.backward(self.last)}

    def update(self, gradients: dict[str, Any]) -> None:
        """Queue the optimizer's kernels for the last batch's gradient; weights and states change in place."""
        assert self.last is not None
        self.launching.update(self.last, gradients["w"], self._numbers())

    def _numbers(self) -> list[float]:
        """Advance the step count, and return the rule's numbers for that step (learning rate, ...)."""
        self.step += 1
        return numbers_of(self.optimizer.rule, self.options, self.step)

    def phases_before(self, ready: feed.Ready) -> tuple[dict[str, float], float]:
        """Return ({phase: seconds} on the host, seconds of preparing), without copies on the device."""
        of = ready.value.seconds
        host = ready.seconds_prepare - of["inside"]
        here = {"slice": host - of["convert"] - of["plan"], "convert": of["convert"], "plan": of["plan"]}
        return {"wait": ready.seconds_wait} if self.setup.ahead else here, host

    def do_step(self, batch: Batch, epoch: int, phases: dict[str, float], seconds_prepare: float) -> StepEvent:
        """Train on one batch, possibly still being copied, and wait for the device; return the event."""
        timer, work = DevicePhaseTimer(self.session), batch.work
        self._arrive(batch)
        timer.split("transfer")
        loss = self.launching.step(batch, self._numbers(), timer)
        self.session.finish()  # synchronize!
        batch.work = self.last = None  # what copies read, and arrays of the second stream, may go only now
        seconds = PhaseTimer(phases | timer.seconds()).seconds
        if work is not None:
            seconds, seconds_prepare = self._with_copies(work, seconds, seconds_prepare)
        return StepEvent(self.step, epoch, batch.rows, loss, seconds, seconds_prepare)

    def _with_copies(
        self, work: SecondStream, seconds: dict[str, float], host: float
    ) -> tuple[dict[str, float], float]:
        """Return (phases with copies and plan, if inside the step, seconds that making the batch took in all)."""
        of = work.marks
        copies, plan = (self.session.seconds(of[a], of[b]) for a, b in (("start", "copied"), ("copied", "end")))
        if not self.setup.ahead:
            seconds = seconds | {"transfer": copies, "plan": seconds["plan"] + plan}
        return seconds, host + copies + plan

    @property
    def keeps(self) -> bool:
        """Whether batches stay on the device for later epochs; never those of stored rows."""
        return self.launching.keeps and not isinstance(self.batches.x, data.StoredRows)

    def settle(self) -> None:
        """Wait until the second stream is idle, so that memory which pending copies use can be freed."""
        with self.session.second_stream() as work:
            pass
        self.session.until(work.marks["end"])  # synchronize!

    # What is asked of a training

    def densified(self) -> list[dict]:
        """Return {"op", "shape", "bytes"} of each array that these settings make dense in a step; [] for most."""
        conversions, value = [], self.dtype.itemsize
        if self.setup.update == "standard" and self.setup.gradient == "row_sparse":
            conversions.append(("gradient for the dense update", (self.features, self.width)))
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
        """Return the peak bytes on the device over untimed steps (an epoch if batches are kept), then reset."""
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
        """Overwrite the rows (indices) of the weights by the host array `values` [rows, N]; `name` is unused."""
        places = self.device.put(np.asarray(rows, np.int64))
        kernels.get("scatter_rows").cuda(self.device.put(values), places, self.weights)

    def read_rows(self, rows: np.ndarray, name: str = "w") -> np.ndarray:
        """Return the rows (indices) of the weights as a host array [rows, N]; `name` is unused."""
        return self._rows_of(self.weights, rows)

    def _rows_of(self, table: Any, rows: np.ndarray) -> np.ndarray:
        """Return the given rows of a table on the device as a host array [rows, width]."""
        out = self.device.empty((rows.size, self.width), self.dtype)
        kernels.get("take_rows").cuda(table, self.device.put(np.asarray(rows, np.int64)), out)
        return self.device.read(out)  # synchronize!

    def slope(self) -> np.ndarray:
        """Return the gradient of the scores of the last `forward`, copied to the host, [R, N]."""
        return self.device.read(self.launching.slope(self.rows))  # synchronize!

    def gradient_rows(self, gradient: Any, rows: np.ndarray, name: str = "w") -> np.ndarray | None:
        """Return rows (indices) of a gradient of `backward` as a host array; None for None. `name` is unused."""
        if not isinstance(gradient, RowSparse):
            return None if gradient is None else self._rows_of(gradient, rows)
        places = np.searchsorted(self.device.read(gradient.indices), rows)  # synchronize!
        return self._rows_of(gradient.values, places)

    def scores_of(self, batch: data.Batch) -> np.ndarray:
        """Return the scores [R, N] of a batch as a host array; waits for the device."""
        x = self._in_format(batch.x)
        with self.session.second_stream() as work:
            arrays = tuple(self.session.copy(array, work) for array in arrays_of(x))
            if self.setup.format == "coo":
                arrays = coordinates(*arrays)
        self.session.wait_for(work.marks["end"])
        scores = self.device.empty((x.shape[0], self.width), self.dtype)
        self.forward_of(arrays, self.weights, scores, UNKNOWN)
        host_scores = self.device.read(scores)  # synchronize!
        self.session.finish()
        return host_scores
