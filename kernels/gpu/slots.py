"""Batches on a device for training steps: slots of arrays, filled from pinned memory on the second stream.

A slot may be refilled while a step that reads it is queued, and a step may be queued while its slot is being filled:
the
streams wait for each other. The host waits for pinned memory only, which is used in turns: until the copies of the
batch
before the last one are done.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import DTypeLike

from kernels.contract import KernelError
from kernels.gpu import losses, updates
from kernels.gpu.losses import LOSSES
from kernels.gpu.rounding import NEAREST, Rounding, next_step
from kernels.gpu.row_sums import UNKNOWN, Lengths, pieces_of, row_sums
from kernels.gpu.source import NARROW
from kernels.loss_blocks import wrong_label
from kernels.losses import logistic, softmax, squared
from kernels.plan import BatchPlan, index_type
from kernels.products import csr_dense
from kernels.registry import unknown_name
from kernels.rules.rule import get_rule
from kernels.sessions import Mark, SecondStream, Session


@dataclass(frozen=True)
class Capacity:
    """Sizes of the largest batch: rows R, entries z, active columns U, and known lengths of rows."""

    rows: int
    entries: int
    touched: int
    lengths: Lengths = UNKNOWN


class Turns:
    """Pieces of pinned memory used in turns, each again once its copies are done."""

    def __init__(self, session: Session, pieces: list[Any]) -> None:
        """Keep the session and the pieces of pinned memory; none has copies in flight."""
        self.session, self.pieces, self.turn = session, pieces, 0
        self.marks: list[Mark] = [None] * len(pieces)

    def take(self) -> Any:
        """Return the current piece, which may be overwritten; blocks the host while copies from it are running."""
        if (mark := self.marks[self.turn]) is not None:
            self.session.until(mark)  # synchronize!
        return self.pieces[self.turn]

    def copied_by(self, mark: Mark) -> None:
        """Record that copies from the current piece are done when `mark` is passed; move to the next piece."""
        self.marks[self.turn] = mark
        self.turn = (self.turn + 1) % len(self.pieces)


Kinds = dict[str, tuple[tuple[int, ...], np.dtype]]
"""Shape and type of each array of a slot, by name."""


@dataclass(frozen=True)
class Targets:
    """Targets of batches: class labels int64 [R], or values [R, N] of the dtype of the weights."""

    width: int
    dtype: np.dtype
    has_labels: bool

    def kind(self, rows: int) -> tuple[tuple[int, ...], np.dtype]:
        """Return (shape, dtype) of the targets of `rows` rows: int64 [rows] or values [rows, width]."""
        return ((rows,), np.dtype(np.int64)) if self.has_labels else ((rows, self.width), self.dtype)

    def refuse(self, rows: int, targets: np.ndarray) -> None:
        """Raise KernelError for targets of the wrong shape for `rows` rows, or with labels outside [0, width)."""
        shape, _ = self.kind(rows)
        if targets.shape != shape:
            raise KernelError(f"Targets of shape {list(targets.shape)} came; this batch takes {list(shape)}.")
        if self.has_labels and targets.size and not 0 <= targets.min() <= targets.max() < self.width:
            row = int(np.flatnonzero((targets < 0) | (targets >= self.width))[0])
            raise wrong_label(row, int(targets[row]), self.width)


@dataclass(frozen=True)
class Layout:
    """Arrays of a slot for CSR batches, their targets and their plan."""

    capacity: Capacity
    features: int
    targets: Targets

    def arrays(self) -> Kinds:
        """Return {name: (shape, dtype)} of a slot's arrays; "counted" has the numbers of active columns and of rows."""
        rows, entries, touched = self.capacity.rows, self.capacity.entries, self.capacity.touched
        of_csr, of_plan = index_type(max(entries, self.features)), index_type(max(entries, rows))
        value = self.targets.dtype
        kinds: dict[str, tuple[tuple[int, ...], DTypeLike]]
        kinds = {"indptr": ((rows + 1,), of_csr), "indices": ((entries,), of_csr), "data": ((entries,), value)}
        kinds |= {"columns": ((touched,), np.int64), "segments": ((touched + 1,), of_plan)}
        kinds |= {"rows": ((entries,), of_plan), "values": ((entries,), value)}
        kinds |= {"targets": self.targets.kind(rows), "counted": ((2,), np.int64)}
        return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in kinds.items()}

    def refuse(self, batch: tuple[int, int, int], targets: np.ndarray) -> None:
        """Raise KernelError for a `batch` (rows, entries, active columns) above the capacity or invalid targets."""
        capacity = self.capacity.rows, self.capacity.entries, self.capacity.touched
        if any(size > most for size, most in zip(batch, capacity, strict=True)):
            raise KernelError(
                f"A batch with {batch[0]} rows, {batch[1]} entries and {batch[2]} active columns came; there is room "
                f"for {capacity[0]}, {capacity[1]} and {capacity[2]}. Make the step with more room."
            )
        self.targets.refuse(batch[0], targets)


@dataclass(frozen=True)
class DenseLayout:
    """Arrays of a slot for dense batches: values `x` [R, D] and targets."""

    rows: int
    features: int
    targets: Targets

    def arrays(self) -> Kinds:
        """Return {name: (shape, dtype)} of a slot's arrays: "x" [rows, features] and "targets"."""
        return {"x": ((self.rows, self.features), self.targets.dtype), "targets": self.targets.kind(self.rows)}

    def refuse(self, x: np.ndarray, targets: np.ndarray) -> None:
        """Raise KernelError for a batch `x` with too many rows or other columns, or for invalid targets."""
        if x.ndim != 2 or x.shape[0] > self.rows or x.shape[1] != self.features:
            raise KernelError(
                f"A dense batch of shape {list(x.shape)} came; there is room for {self.rows} rows of {self.features} "
                "columns. Make the step with more room."
            )
        self.targets.refuse(x.shape[0], targets)


class Slot:
    """Arrays of one batch on a device, as a layout declares them; initially without rows."""

    def __init__(self, session: Session, layout: Any, buffers: Turns) -> None:
        """Allocate zeroed device arrays as the layout declares them; the slot has no batch yet.

        `layout.arrays()` gives names, shapes and dtypes; `buffers` are the pinned host memory that batches are copied
        through.
        """
        self.session, self.layout, self.buffers = session, layout, buffers
        self.arrays = {name: session.device.zeros(*kind) for name, kind in layout.arrays().items()}
        self.arrived: Mark = None
        """Passed when the batch is there; None where there never was one."""
        self.used: Mark = session.mark()
        """Passed when the last step that reads it is done; at first, when the arrays are zeros."""
        self.count = 0
        """Rows of the batch."""

    @property
    def nbytes(self) -> int:
        """Return the bytes that the arrays of the slot take on the device."""
        return sum(array.nbytes for array in self.arrays.values())

    def copy(self, count: int, make: Callable[[], dict[str, np.ndarray]]) -> SecondStream:
        """Queue copies of the host arrays `make()` returns, by name, as a batch of `count` rows.

        Return the queued work. Through pinned memory, so the host may change its arrays at once. Steps queued before
        still read the previous batch. The marks `start` and `copied` enclose the copies and `make`. Raises TypeError
        for values of another dtype.
        """
        host = self.buffers.take()
        with self.session.second_stream() as work:
            self.session.wait_for(self.used)
            work.marks["start"] = self.session.mark()
            arrays = make()
            for name, array in arrays.items():
                np.copyto(host[name][: len(array)], array, casting="same_kind")
            for name, array in arrays.items():
                self.session.fill(self.arrays[name], host[name][: len(array)])
            work.marks["copied"] = self.session.mark()
        self.arrived, self.count = work.marks["end"], count
        self.buffers.copied_by(self.arrived)
        return work


@final
class CsrSlot(Slot):
    """A slot for CSR batches, with a `Layout`."""

    @property
    def touched(self) -> Any:
        """Return the number of active columns, int64 [1] on the device."""
        return self.arrays["counted"][:1]

    @property
    def counted(self) -> Any:
        """Return the number of rows, int64 [1] on the device."""
        return self.arrays["counted"][1:]

    def load(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, targets: np.ndarray, plan: BatchPlan
    ) -> SecondStream:
        """Queue the copies of a CSR batch of the host and of its plan to the device.

        Return the queued work, as `Slot.copy`. `indptr` [R + 1] may start above zero, as in a slice of rows; indices
        [z] are converted to the dtypes of the slot; data [z]; targets has R rows. Raises KernelError for a batch that
        is too large and for labels out of range, TypeError for values of another dtype.
        """
        count = indptr.size - 1
        self.layout.refuse((count, indices.size, plan.touched), targets)

        def arrays() -> dict[str, np.ndarray]:
            """Return the arrays to copy, by name; row starts are padded to the slot's rows by the count of entries."""
            starts = np.append(indptr - indptr[0], np.full(self.layout.capacity.rows - count, indices.size))
            arrays = {"indptr": starts, "indices": indices, "data": data, "targets": targets}
            arrays |= {"columns": plan.columns, "segments": plan.segments, "rows": plan.rows}
            return arrays | {"values": plan.in_order(data), "counted": np.array([plan.touched, count])}

        return self.copy(count, arrays)


@final
class DenseSlot(Slot):
    """A slot for dense batches, with a `DenseLayout`."""

    def load(self, x: np.ndarray, targets: np.ndarray) -> SecondStream:
        """Queue the copies of a dense batch of the host, as `Slot.copy`: its rows are one copy.

        Raises KernelError for a batch that is too large or has other columns, and for labels out of range.
        """
        self.layout.refuse(x, targets)
        return self.copy(len(x), lambda: {"x": x, "targets": targets})


def make_buffers(session: Session, layout: Layout | DenseLayout) -> Turns:
    """Return two sets of pinned arrays {name: array}, used in turns, from which all slots of this layout are filled."""
    kinds = layout.arrays()
    return Turns(session, [{name: session.pinned(*kind) for name, kind in kinds.items()} for _ in range(2)])


# Shared part of training steps of a linear model on a device, on batches in slots, each launched as one CUDA graph.
#
# All memory is allocated once, for the largest batch; steps neither allocate nor wait. With two slots the next batch
# is copied during a step. Settings of a step, such as its learning rate, are read on the device, so that one graph
# serves all.


STEPS_QUEUED = 16
"""Steps that the host may be ahead of the device by where each has settings of its own: they are in pinned memory."""


S = TypeVar("S", bound=Slot)


class InSlots(ABC, Generic[S]):
    """Steps that update `arrays`, weights [D, N] and states on the session's device, by a rule of `kernels.rules`.

    Scores and their gradient [R, N] are allocated for up to `rows` rows, in `dtype`. Wait for queued loads by
    `session.until` before releasing this object, which owns their memory. Raises KernelError for a loss that is not
    among `LOSSES`.
    """

    slots: Sequence[S]

    def __init__(
        self, session: Session, rule: str, arrays: Sequence[Any], loss: str, rows: int, dtype: np.dtype
    ) -> None:
        """Allocate scores, their gradient and sums for up to `rows` rows on the session's device; `arrays` are on it.

        Raises KernelError for an unknown loss or rule.
        """
        if loss not in LOSSES:
            raise KernelError(unknown_name("loss", loss, LOSSES))
        self.session, self.device, self.arrays = session, session.device, tuple(arrays)
        self.rule, self.loss_name, self.count = get_rule(rule), loss, 0
        empty, width = self.device.empty, arrays[0].shape[1]
        self.scores, self.grad_scores = (empty((rows, width), dtype) for _ in range(2))  # [R, N]
        self.sums, self.parts, self.result = losses.room_for(self.device, self._sums_of(rows))
        self.wrong, self.live = self.device.zeros(1, np.int64), empty(updates.MOST_SETTINGS, dtype)
        self.settings = Turns(session, list(session.pinned((STEPS_QUEUED, updates.MOST_SETTINGS), dtype)))
        self.sent: tuple[float, ...] = ()

    @abstractmethod
    def launch(self, number: int) -> None:
        """Queue a step on the batch in slot `number`."""

    @abstractmethod
    def launch_forward(self, slot: S) -> None:
        """Queue the kernels of the first part of a step: scores, their gradient, and the loss."""

    @property
    def bytes_shared(self) -> int:
        """Return the bytes on the device of slots and intermediates, without weights and states."""
        own = self.scores, self.grad_scores, self.sums, self.parts, self.result, self.wrong, self.live
        return sum(each.nbytes for each in (*own, *self.slots))

    def run(self, slot: int, *numbers: float) -> None:
        """Queue a step on the batch in the slot; `numbers` are the scalars of the rule, such as its learning rate.

        The host waits if it is `STEPS_QUEUED` changes of these ahead. Raises KernelError if the slot has no batch.
        """
        loaded, settings = self.loaded(slot), tuple(self.rule.settings(*numbers))
        if settings != self.sent:
            self._send(settings)
        self.queue(loaded, lambda _: self.launch(slot))

    def _send(self, settings: tuple[float, ...]) -> None:
        """Queue a copy of the settings to the device, `self.live`, and remember them."""
        pinned = self.settings.take()[: len(settings)]
        pinned[:] = settings
        self.session.fill(self.live, pinned)
        self.settings.copied_by(self.session.mark())
        self.sent = settings

    def forward(self, slot: int) -> None:
        """Queue scores, their gradient and the loss of the batch in slot number `slot`.

        KernelError if it has no batch.
        """
        self.queue(self.loaded(slot), self.launch_forward)

    def loaded(self, slot: int) -> S:
        """Return slot number `slot` after making the current stream wait for its batch.

        Raises KernelError if it has none.
        """
        chosen = self.slots[slot]
        if chosen.arrived is None:
            raise KernelError(f"Slot {slot} has no batch; load one.")
        self.session.wait_for(chosen.arrived)
        return chosen

    def queue(self, slot: S, work: Callable[[S], None]) -> None:
        """Call `work(slot)`, which queues work that reads the slot; the slot is not refilled before that is done."""
        work(slot)
        slot.used, self.count = self.session.mark(), slot.count

    def _sums_of(self, rows: int) -> int:
        """Return the number of partial sums of the loss of `rows` rows: one per row or per block of elements."""
        return rows if self.loss_name == "softmax" else -(-rows * self.arrays[0].shape[1] // losses.ELEMENTS)

    def launch_loss(self, targets: Any, counted: Any = None) -> None:
        """Queue the loss and the gradient of the scores for `targets` [R] or [R, N], or only `counted` rows of them.

        `counted` is int64 [1] on the device. Results are in `grad_scores` and `result`.
        """
        rows = targets.shape[0]
        sums = self.sums[: self._sums_of(rows)]
        arguments = self.scores[:rows], targets, self.grad_scores[:rows], sums
        if self.loss_name == "softmax":
            softmax.on_device(*arguments, self.wrong, counted)
        else:
            code = {"logistic": logistic.CUDA, "squared": squared.CUDA}[self.loss_name]
            losses.each_element(code, self.loss_name, *arguments, counted)
        losses.add_up(sums, self.parts, self.result)

    def loss(self) -> float:
        """Return the mean loss of the last queued batch before its step; 0.0 without rows. Waits for the device."""
        return float(self.device.read(self.result)[0]) / max(self.count, 1)  # synchronize!

    def read(self) -> list[np.ndarray]:
        """Return copies of weights and states on the host; waits for the device."""
        return [self.device.read(array) for array in self.arrays]  # synchronize!


# A training step of a linear model on a device: product, loss and fused update, launched as one CUDA graph.
#
# Numbers of rows and of active columns are read on the device, so that one graph serves all batches of a slot.


@final
class Step(InSlots[CsrSlot]):
    """A step on CSR batches; it updates the active rows of `arrays`.

    Weights may be float16, or bfloat16 as uint16: states and computation are float32 then, and new weights are rounded
    to nearest, or stochastically with a `seed`.
    """

    def __init__(
        self,
        session: Session,
        rule: str,
        arrays: list[Any],
        capacity: Capacity,
        loss: str = "softmax",
        slots: int = 2,
        seed: int | None = None,
    ) -> None:
        """Allocate `slots` slots for batches of at most `capacity`, compile all kernels, prepare one CUDA graph each.

        `arrays` are weights [D, N] and states on the device; `seed` None rounds narrow weights to nearest. Raises
        KernelError for an unknown loss or rule.
        """
        features, width = arrays[0].shape
        dtype = np.dtype(np.float32) if arrays[0].dtype.name in NARROW else arrays[0].dtype
        super().__init__(session, rule, arrays, loss, capacity.rows, dtype)
        self.rounding = NEAREST if seed is None else Rounding(seed, self.device.zeros(1, np.int64))
        self.partial = self.device.empty((2 * pieces_of(capacity.entries), width), dtype)  # for both sums, one by one
        layout = Layout(capacity, features, Targets(width, dtype, loss == "softmax"))
        buffers = make_buffers(session, layout)
        self.slots = [CsrSlot(session, layout, buffers) for _ in range(slots)]
        self.queue(self.slots[0], self._whole)  # of no rows: it changes nothing, and compiles what no graph can hold
        self.graphs = [self.device.recorded(functools.partial(self._whole, slot)) for slot in self.slots]

    @property
    def nbytes(self) -> int:
        """Return the bytes on the device besides `arrays`: slots and intermediates."""
        return self.bytes_shared + self.partial.nbytes

    def launch(self, number: int) -> None:
        """Launch the CUDA graph of a step on the batch in slot `number`."""
        self.graphs[number]()

    def _whole(self, slot: CsrSlot) -> None:
        """Queue all kernels of a step on the batch in a slot: product, loss and fused update, in place."""
        self.launch_forward(slot)
        of = slot.arrays
        batch = of["columns"], of["segments"], of["rows"], of["values"], self.grad_scores
        live = {"counted": slot.touched, "live": self.live, "partial": self.partial}
        updates.fused(self.rule, self.arrays, batch, (), rounding=self.rounding, **live)
        if self.rounding.seed is not None:
            next_step(self.rounding.step)

    def launch_forward(self, slot: CsrSlot) -> None:
        """Queue the product and the loss of the batch in a slot."""
        of = slot.arrays
        entries = of["indices"], of["data"]
        sums = of["indptr"], entries, self.arrays[0], self.scores, self.partial
        row_sums(csr_dense.CUDA, "csr_dense", *sums, lengths=slot.layout.capacity.lengths, counted=slot.counted)
        self.launch_loss(of["targets"], slot.counted)


# A training step of a linear model on dense batches: two BLAS products, loss and update, as one CUDA graph.
#
# A product's shape is part of a graph: each slot has one graph for every number of rows of its batches, which are
# two per epoch: full batches and the last one.


@final
class DenseStep(InSlots[DenseSlot]):
    """A step on dense batches of up to `rows` rows; it updates all rows of `arrays`, float32 or float64, on the device.

    It computes the same bits as its kernels one by one. The first step with a number of rows runs so, since a graph can
    neither compile a kernel nor load BLAS.
    """

    def __init__(
        self, session: Session, rule: str, arrays: Sequence[Any], rows: int, loss: str = "softmax", slots: int = 2
    ) -> None:
        """Allocate `slots` slots for dense batches of up to `rows` rows, and the gradient [D, N].

        `arrays` are weights and states on the device. Raises KernelError for weights other than float32 or float64, an
        unknown loss or rule.
        """
        weights = arrays[0]
        if weights.dtype.name not in ("float32", "float64"):
            raise KernelError(f"Weights of {weights.dtype.name} came; dense steps take float32 and float64.")
        super().__init__(session, rule, arrays, loss, rows, weights.dtype)
        self.gradient = self.device.empty(weights.shape, weights.dtype)  # [D, N]
        layout = DenseLayout(rows, weights.shape[0], Targets(weights.shape[1], weights.dtype, loss == "softmax"))
        buffers = make_buffers(session, layout)
        self.slots = [DenseSlot(session, layout, buffers) for _ in range(slots)]
        self.graphs: dict[tuple[int, int], Callable[[], None]] = {}
        """By the number of a slot and the number of rows."""
        self.known: set[int] = set()
        """Numbers of rows by which a step has run."""

    @property
    def nbytes(self) -> int:
        """Return the bytes on the device besides `arrays`: slots and intermediates."""
        return self.bytes_shared + self.gradient.nbytes

    def launch(self, number: int) -> None:
        """Launch the CUDA graph of slot `number` for its count of rows.

        The first step with a count runs kernel by kernel.
        """
        slot, rows = self.slots[number], self.slots[number].count
        if rows not in self.known:
            self.known.add(rows)
            self._whole(slot, rows)
            return
        if (number, rows) not in self.graphs:
            self.graphs[number, rows] = self.device.recorded(lambda: self._whole(slot, rows))
        self.graphs[number, rows]()

    def _whole(self, slot: DenseSlot, rows: int) -> None:
        """Queue all kernels of a step on the first `rows` rows of a slot: forward, gradient and update, in place."""
        self._forward(slot, rows)
        self._backward(slot, rows)
        updates.live_dense(self.rule, self.arrays, self.gradient, self.live)

    def launch_forward(self, slot: DenseSlot) -> None:
        """Queue the product and the loss of the batch in a slot."""
        self._forward(slot, slot.count)

    def backward(self, slot: int) -> Any:
        """Queue the gradient of the weights from the scores of `forward` and return it, [D, N] on the device."""
        self.queue(self.loaded(slot), lambda loaded: self._backward(loaded, loaded.count))
        return self.gradient

    def _forward(self, slot: DenseSlot, rows: int) -> None:
        """Queue the product and the loss of the first `rows` rows; clears the loss without rows."""
        if not rows:
            self.device.clear(self.result)
            return
        self.session.matmul(slot.arrays["x"][:rows], self.arrays[0], self.scores[:rows])
        self.launch_loss(slot.arrays["targets"][:rows])

    def _backward(self, slot: DenseSlot, rows: int) -> None:
        """Queue gradient = x.T @ grad_scores over the first `rows` rows of a slot."""
        self.session.matmul(slot.arrays["x"][:rows], self.grad_scores[:rows], self.gradient, transposed=True)
