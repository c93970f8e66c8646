"""The whole step on a CUDA device: as one CUDA graph, kernel by kernel, and PyTorch's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import kernels
from kernels import devices, plan
from kernels.competitors.torch_sparse import UNAVAILABLE, pytorch
from kernels.devices import Device
from kernels.gpu import indices as on_device
from kernels.gpu.slots import Room, Step
from kernels.sessions import CudaSession, Session
from workbench.bench.shapes import BenchError
from workbench.bench.steps import Problem, StepContender
from workbench.bench.steps_pytorch import bag_of, optimizer_of, take_step


def _numbers(problem: Problem, step: int) -> tuple[float, ...]:
    """Return the numbers that the kernels of the rule take after the arrays."""
    return (*problem.options.values(), *((step,) if problem.optimizer == "adam" else ()))


class _OnDevice:
    """Weights and states on the device; what both of ours share."""

    def __init__(self, problem: Problem, on: Device) -> None:
        self.problem, self.on, self.t = problem, on, 0
        self.arrays: Sequence[Any] = ()

    def start(self) -> None:
        """Set everything back to the start."""
        self.problem.reset()
        self.t = 0
        for array, table in zip(self.arrays, self.problem.tables, strict=True):
            self.on.assign(array, self.on.put(table))

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows."""
        touched, width = self.problem.touched, self.problem.weights.shape[1]
        out = self.on.empty((touched.size, width), np.float32)
        kernels.get("take_rows").cuda(self.arrays[0], self.on.put(touched.astype(np.int64)), out)
        return self.on.read(out)  # synchronize!


class Graph(_OnDevice):
    """The step as one CUDA graph. A batch has a slot of its own, which `prepare` fills from the host beside the steps
    that are queued: nothing waits for the end of a step, so that copies of the next batch overlap it, as in training.
    """

    def __init__(self, problem: Problem, session: Session) -> None:
        super().__init__(problem, session.device)
        batches = problem.batches
        most = max(batch.indices.size for batch in batches), max(np.unique(batch.indices).size for batch in batches)
        self.arrays = [session.device.put(table) for table in problem.tables]
        room = Room(batches[0].R, *most)
        self.made = Step(session, problem.optimizer, self.arrays, room, "squared", slots=len(batches))

    def prepare(self, number: int) -> int:
        """Plan the batch on the host, queue its copies into its slot."""
        batch = self.problem.batches[number]
        batch_plan = plan.build(batch.indptr, batch.indices, batch.D)
        slot = self.made.slots[number]
        slot.load(batch.indptr, batch.indices, batch.data, self.problem.targets[number], batch_plan)
        return number

    def step(self, prepared: int) -> None:
        """One step."""
        self.t += 1
        self.made.run(prepared, *_numbers(self.problem, self.t))


class Kernels(_OnDevice):
    """Product, loss, and the fused update, launched one after the other; the plan is built on the device."""

    def __init__(self, problem: Problem, on: Device) -> None:
        super().__init__(problem, on)
        self.arrays = [on.put(table) for table in problem.tables]
        shape = problem.targets[0].shape
        self.scores, self.slope = (on.empty(shape, np.float32) for _ in range(2))
        self.product, self.loss = kernels.get("csr_dense").cuda, kernels.get("squared").cuda
        self.update = kernels.get(f"{problem.optimizer}_fused").cuda

    def prepare(self, number: int) -> tuple:
        """Return the batch and its targets on the device, its plan, its values in the plan's order."""
        batch = self.problem.batches[number]
        arrays = [self.on.put(array) for array in (batch.indptr, batch.indices, batch.data)]
        batch_plan = on_device.build(arrays[0], arrays[1], batch.D)
        entries = batch_plan.columns, batch_plan.segments, batch_plan.rows, on_device.in_order(batch_plan, arrays[2])
        return arrays, self.on.put(self.problem.targets[number]), entries

    def step(self, prepared: tuple) -> None:
        """Do one training step on a prepared batch, in place, and read its loss, as a training loop does."""
        arrays, targets, entries = prepared
        self.t += 1
        self.product(*arrays, self.arrays[0], self.scores)
        self.loss(self.scores, targets, self.slope)
        self.update(*self.arrays, *entries, self.slope, *_numbers(self.problem, self.t))


class Torch:
    """EmbeddingBag(mode="sum", sparse=True) on the device, with the optimizers that take sparse gradients."""

    def __init__(self, problem: Problem) -> None:
        self.torch, self.problem = pytorch(), problem
        if not self.torch.cuda.is_available():
            raise BenchError(f"PyTorch {self.torch.__version__} sees no CUDA device; install a build of it for CUDA.")
        self.bag = bag_of(self.torch, self._there(problem.tables[0]))
        self.optimizer = optimizer_of(self.torch, problem, self.bag)

    def _there(self, array: np.ndarray) -> Any:
        """Return a PyTorch tensor on the device."""
        return self.torch.from_numpy(array).to("cuda")

    def prepare(self, number: int) -> tuple:
        """Return the tensors on the device, through pinned memory."""
        batch = self.problem.batches[number]
        arrays = batch.indices, batch.indptr, batch.data, self.problem.targets[number]
        return tuple(self.torch.from_numpy(array).pin_memory().to("cuda", non_blocking=True) for array in arrays)

    def step(self, prepared: tuple) -> None:
        """One step."""
        take_step(self.torch, self.bag, self.optimizer, prepared)

    def start(self) -> None:
        """Set everything back to the start."""
        self.problem.reset()
        with self.torch.no_grad():
            self.bag.weight.copy_(self._there(self.problem.tables[0]))
        self.optimizer = optimizer_of(self.torch, self.problem, self.bag)

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows."""
        return self.bag.weight.detach()[self._there(self.problem.touched)].cpu().numpy()


def list_device_step_candidates(on: Device | None = None) -> list[StepContender]:
    """Return all learners on a device, ours first; without `on` on the CUDA device, once one of them is made."""
    here = lambda: on or devices.CupyDevice()  # noqa: E731
    return [
        StepContender("ours, graph", "ours", lambda problem: Graph(problem, CudaSession()), shares=False),
        StepContender("ours, kernels", "ours", lambda problem: Kernels(problem, here()), shares=False),
        StepContender("torch_cuda EmbeddingBag", "rival", Torch, UNAVAILABLE, shares=False),
    ]
