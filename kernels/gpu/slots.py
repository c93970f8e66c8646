"""Batches on a device for training steps: slots of arrays, filled from pinned memory on the second stream.

A slot may be refilled while a step that reads it is queued, and a step may be queued while its slot is being filled:
the
streams wait for each other. The host waits for pinned memory only, which is used in turns: until the copies of the
batch
before the last one are done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from kernels.contract import KernelError
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.loss_blocks import wrong_label
from kernels.plan import BatchPlan, index_type
from kernels.sessions import Beside, Mark, Session


@dataclass(frozen=True)
class Room:
    """Sizes of the largest batch: rows R, entries z, active columns U, and known lengths of rows."""

    rows: int
    entries: int
    touched: int
    lengths: Lengths = UNKNOWN


class Turns:
    """Pieces of pinned memory used in turns, each again once its copies are done."""

    def __init__(self, session: Session, pieces: list[Any]) -> None:
        self.session, self.pieces, self.turn = session, pieces, 0
        self.marks: list[Mark] = [None] * len(pieces)

    def take(self) -> Any:
        """Return the next piece, which may be overwritten; waits while copies from it are running."""
        if (mark := self.marks[self.turn]) is not None:
            self.session.until(mark)  # synchronize!
        return self.pieces[self.turn]

    def copied_by(self, mark: Mark) -> None:
        """Record that copies from the current piece are done when `mark` is passed, and move to the next piece."""
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
        """Return shape and dtype of the targets of `rows` rows."""
        return ((rows,), np.dtype(np.int64)) if self.has_labels else ((rows, self.width), self.dtype)

    def refuse(self, rows: int, targets: np.ndarray) -> None:
        """Raise KernelError for targets of the wrong shape for `rows` rows or with labels out of range."""
        shape, _ = self.kind(rows)
        if targets.shape != shape:
            raise KernelError(f"Targets of shape {list(targets.shape)} came; this batch takes {list(shape)}.")
        if self.has_labels and targets.size and not 0 <= targets.min() <= targets.max() < self.width:
            row = int(np.flatnonzero((targets < 0) | (targets >= self.width))[0])
            raise wrong_label(row, int(targets[row]), self.width)


@dataclass(frozen=True)
class Layout:
    """Arrays of a slot for CSR batches, their targets and their plan."""

    room: Room
    features: int
    targets: Targets

    def arrays(self) -> Kinds:
        """Return shape and dtype of each array by name. `counted` has the numbers of active columns and rows."""
        rows, entries, touched = self.room.rows, self.room.entries, self.room.touched
        of_csr, of_plan = index_type(max(entries, self.features)), index_type(max(entries, rows))
        value = self.targets.dtype
        kinds: dict[str, tuple[tuple[int, ...], DTypeLike]]
        kinds = {"indptr": ((rows + 1,), of_csr), "indices": ((entries,), of_csr), "data": ((entries,), value)}
        kinds |= {"columns": ((touched,), np.int64), "segments": ((touched + 1,), of_plan)}
        kinds |= {"rows": ((entries,), of_plan), "values": ((entries,), value)}
        kinds |= {"targets": self.targets.kind(rows), "counted": ((2,), np.int64)}
        return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in kinds.items()}

    def refuse(self, batch: tuple[int, int, int], targets: np.ndarray) -> None:
        """Raise KernelError for a batch (rows, entries, active columns) that is too large, or with labels out of
        range.
        """
        room = self.room.rows, self.room.entries, self.room.touched
        if any(size > most for size, most in zip(batch, room, strict=True)):
            raise KernelError(
                f"A batch with {batch[0]} rows, {batch[1]} entries and {batch[2]} touched columns came; there is room "
                f"for {room[0]}, {room[1]} and {room[2]}. Make the step with more room."
            )
        self.targets.refuse(batch[0], targets)


@dataclass(frozen=True)
class DenseLayout:
    """Arrays of a slot for dense batches: values `x` [R, D] and targets."""

    rows: int
    features: int
    targets: Targets

    def arrays(self) -> Kinds:
        """Return shape and dtype of each array by name."""
        return {"x": ((self.rows, self.features), self.targets.dtype), "targets": self.targets.kind(self.rows)}

    def refuse(self, x: np.ndarray, targets: np.ndarray) -> None:
        """Raise KernelError for a batch that is too large or has other columns, or with labels out of range."""
        if x.ndim != 2 or x.shape[0] > self.rows or x.shape[1] != self.features:
            raise KernelError(
                f"A dense batch of shape {list(x.shape)} came; there is room for {self.rows} rows of {self.features} "
                "columns. Make the step with more room."
            )
        self.targets.refuse(x.shape[0], targets)


class Slot:
    """Arrays of one batch on a device, as a layout declares them; initially without rows."""

    def __init__(self, session: Session, layout: Any, buffers: Turns) -> None:
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
        """Bytes on the device."""
        return sum(array.nbytes for array in self.arrays.values())

    def copy(self, count: int, make: Callable[[], dict[str, np.ndarray]]) -> Beside:
        """Queue copies of the arrays that `make` returns by name, of a batch of `count` rows; the host may change them
        at once.

        Steps queued before still read the previous batch. The marks `start` and `copied` enclose the copies and `make`.
        Raises TypeError for values of another dtype.
        """
        host = self.buffers.take()
        with self.session.beside() as work:
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
        """The number of active columns, int64 [1] on the device."""
        return self.arrays["counted"][:1]

    @property
    def counted(self) -> Any:
        """The number of rows, int64 [1] on the device."""
        return self.arrays["counted"][1:]

    def load(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, targets: np.ndarray, plan: BatchPlan
    ) -> Beside:
        """Queue the copies of a CSR batch of the host and of its plan, as `Slot.copy`.

        `indptr` may start above zero, as in a slice of rows; indices are converted to the dtypes of the slot. Raises
        KernelError for a batch that is too large and for labels out of range, TypeError for values of another dtype.
        """
        count = indptr.size - 1
        self.layout.refuse((count, indices.size, plan.touched), targets)

        def arrays() -> dict[str, np.ndarray]:
            starts = np.append(indptr - indptr[0], np.full(self.layout.room.rows - count, indices.size))
            arrays = {"indptr": starts, "indices": indices, "data": data, "targets": targets}
            arrays |= {"columns": plan.columns, "segments": plan.segments, "rows": plan.rows}
            return arrays | {"values": plan.in_order(data), "counted": np.array([plan.touched, count])}

        return self.copy(count, arrays)


@final
class DenseSlot(Slot):
    """A slot for dense batches, with a `DenseLayout`."""

    def load(self, x: np.ndarray, targets: np.ndarray) -> Beside:
        """Queue the copies of a dense batch of the host, as `Slot.copy`: its rows are one copy.

        Raises KernelError for a batch that is too large or has other columns, and for labels out of range.
        """
        self.layout.refuse(x, targets)
        return self.copy(len(x), lambda: {"x": x, "targets": targets})


def make_buffers(session: Session, layout: Layout | DenseLayout) -> Turns:
    """Return two sets of pinned arrays, from which all slots of this layout are filled."""
    kinds = layout.arrays()
    return Turns(session, [{name: session.pinned(*kind) for name, kind in kinds.items()} for _ in range(2)])
