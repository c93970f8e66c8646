"""A training step of a linear model on dense batches: two BLAS products, loss and update, as one CUDA graph.

A product's shape is part of a graph: each slot has one graph for every number of rows of its batches, which are two per
epoch: full batches and the last one.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

from kernels.contract import KernelError
from kernels.gpu import updates
from kernels.gpu.in_slots import InSlots
from kernels.gpu.slots import DenseLayout, DenseSlot, Targets, make_buffers
from kernels.sessions import Session


@final
class DenseStep(InSlots[DenseSlot]):
    """A step on dense batches of up to `rows` rows; it updates all rows of `arrays`, float32 or float64, on the device.

    It computes the same bits as its kernels one by one. The first step with a number of rows runs so, since a graph can
    neither compile a kernel nor load BLAS.
    """

    def __init__(
        self, session: Session, rule: str, arrays: Sequence[Any], rows: int, loss: str = "softmax", slots: int = 2
    ) -> None:
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
        """Bytes on the device besides `arrays`: slots and intermediates."""
        return self.bytes_shared + self.gradient.nbytes

    def launch(self, number: int) -> None:
        """Queue the graph of the slot for its number of rows, or the kernels of the first such step."""
        slot, rows = self.slots[number], self.slots[number].count
        if rows not in self.known:
            self.known.add(rows)
            self._whole(slot, rows)
            return
        if (number, rows) not in self.graphs:
            self.graphs[number, rows] = self.device.recorded(lambda: self._whole(slot, rows))
        self.graphs[number, rows]()

    def _whole(self, slot: DenseSlot, rows: int) -> None:
        """Queue all kernels of a step on the first `rows` rows of a slot: forward, gradient and update."""
        self._forward(slot, rows)
        self._backward(slot, rows)
        updates.live_dense(self.rule, self.arrays, self.gradient, self.live)

    def launch_forward(self, slot: DenseSlot) -> None:
        """Queue product and loss."""
        self._forward(slot, slot.count)

    def backward(self, slot: int) -> Any:
        """Queue the part of `run` after `forward` and return the gradient of the weights [D, N]."""
        self.queue(self.loaded(slot), lambda loaded: self._backward(loaded, loaded.count))
        return self.gradient

    def _forward(self, slot: DenseSlot, rows: int) -> None:
        """Queue product and loss of the first `rows` rows."""
        if not rows:
            self.device.clear(self.result)
            return
        self.session.matmul(slot.arrays["x"][:rows], self.arrays[0], self.scores[:rows])
        self.launch_loss(slot.arrays["targets"][:rows])

    def _backward(self, slot: DenseSlot, rows: int) -> None:
        """Queue the gradient of the first `rows` rows."""
        self.session.matmul(slot.arrays["x"][:rows], self.grad_scores[:rows], self.gradient, transposed=True)
