"""Batches on their way to a step on a device: slots of arrays there, filled from pinned memory on the second stream.

A slot may be filled anew while a step that reads it is still queued, and a step may be queued while its slot is still
being filled: the streams wait for each other, the host does not. It waits for pinned memory alone, which is used in
turns: until the copies of the batch before the last one are done.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.contract import KernelError
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.loss_blocks import wrong_label
from kernels.plan import BatchPlan, index_type
from kernels.sessions import Beside, Mark, Session


@dataclass(frozen=True)
class Room:
    """Sizes of the largest batch: rows R, entries z and touched columns U; and what is known of the rows of all."""

    rows: int
    entries: int
    touched: int
    lengths: Lengths = UNKNOWN


class Turns:
    """Pieces of pinned memory that are used in turns, each again once the copies from it are done."""

    def __init__(self, session: Session, pieces: list[Any]) -> None:
        self.session, self.pieces, self.turn = session, pieces, 0
        self.marks: list[Mark] = [None] * len(pieces)

    def take(self) -> Any:
        """The next piece, which may be overwritten: waits where copies from it may still be under way."""
        if (mark := self.marks[self.turn]) is not None:
            self.session.until(mark)  # synchronize!
        return self.pieces[self.turn]

    def copied_by(self, mark: Mark) -> None:
        """Note that what was taken is copied when `mark` is passed; the turn is the next one's."""
        self.marks[self.turn] = mark
        self.turn = (self.turn + 1) % len(self.pieces)


@dataclass(frozen=True)
class Layout:
    """Shape and type of each array of a slot."""

    room: Room
    features: int
    width: int
    dtype: np.dtype
    has_labels: bool
    """Whether targets are one label a row, int64 [R], and not numbers [R, N]."""

    def arrays(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Arrays by name. `counted` has the touched columns and the rows of the batch in the slot."""
        rows, entries, touched = self.room.rows, self.room.entries, self.room.touched
        of_csr, of_plan = index_type(max(entries, self.features)), index_type(max(entries, rows))
        targets = ((rows,), np.int64) if self.has_labels else ((rows, self.width), self.dtype)
        kinds = {"indptr": ((rows + 1,), of_csr), "indices": ((entries,), of_csr), "data": ((entries,), self.dtype)}
        kinds |= {"columns": ((touched,), np.int64), "segments": ((touched + 1,), of_plan)}
        kinds |= {"rows": ((entries,), of_plan), "values": ((entries,), self.dtype)}
        kinds |= {"targets": targets, "counted": ((2,), np.int64)}
        return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in kinds.items()}

    def refuse(self, batch: tuple[int, int, int], targets: np.ndarray) -> None:
        """`KernelError` for a batch of so many rows, entries and touched columns without room, and for wrong labels."""
        room = self.room.rows, self.room.entries, self.room.touched
        if any(size > most for size, most in zip(batch, room, strict=True)):
            raise KernelError(
                f"A batch with {batch[0]} rows, {batch[1]} entries and {batch[2]} touched columns came; there is room "
                f"for {room[0]}, {room[1]} and {room[2]}. Make the step with more room."
            )
        shape = (batch[0],) if self.has_labels else (batch[0], self.width)
        if targets.shape != shape:
            raise KernelError(f"Targets of shape {list(targets.shape)} came; this batch takes {list(shape)}.")
        if self.has_labels and targets.size and not 0 <= targets.min() <= targets.max() < self.width:
            row = int(np.flatnonzero((targets < 0) | (targets >= self.width))[0])
            raise wrong_label(row, int(targets[row]), self.width)


class Slot:
    """The arrays of a batch on a device; at first of one without rows."""

    def __init__(self, session: Session, layout: Layout, buffers: Turns) -> None:
        self.session, self.layout, self.buffers = session, layout, buffers
        self.arrays = {name: session.device.zeros(*kind) for name, kind in layout.arrays().items()}
        self.touched, self.counted = self.arrays["counted"][:1], self.arrays["counted"][1:]
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

    def load(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, targets: np.ndarray, plan: BatchPlan
    ) -> Beside:
        """Queue the copies of a CSR batch of the host, which may be changed at once, and its plan.

        `indptr` may start above zero, as a slice of rows does; other types are converted to those of the step. Steps
        that were queued before still see the batch before. Marks `start` and `copied` are around the copies. Raises
        `KernelError` where there is no room for the batch and for wrong labels, `TypeError` for values of another kind.
        """
        count = indptr.size - 1
        self.layout.refuse((count, indices.size, plan.touched), targets)
        host = self.buffers.take()
        with self.session.beside() as work:
            self.session.wait_for(self.used)
            work.marks["start"] = self.session.mark()
            starts = np.append(indptr - indptr[0], np.full(self.layout.room.rows - count, indices.size))
            arrays = {"indptr": starts, "indices": indices, "data": data, "targets": targets}
            arrays |= {"columns": plan.columns, "segments": plan.segments, "rows": plan.rows}
            arrays |= {"values": plan.in_order(data), "counted": np.array([plan.touched, count])}
            for name, array in arrays.items():
                np.copyto(host[name][: len(array)], array, casting="same_kind")
            for name, array in arrays.items():
                self.session.fill(self.arrays[name], host[name][: len(array)])
            work.marks["copied"] = self.session.mark()
        self.arrived, self.count = work.marks["end"], count
        self.buffers.copied_by(self.arrived)
        return work


def make_slots(session: Session, layout: Layout, count: int) -> list[Slot]:
    """Make `count` slots, with two sets of pinned buffers between them."""
    pinned = [{name: session.pinned(*kind) for name, kind in layout.arrays().items()} for _ in range(2)]
    buffers = Turns(session, pinned)
    return [Slot(session, layout, buffers) for _ in range(count)]
