"""Configurations of a suite, a task on a shape at a width, and their candidates: kernels, and steps on cpu and cuda."""

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from benchmarks import candidates as of_kernels
from benchmarks import competitors, steps, steps_tensorflow
from benchmarks import device as of_device
from benchmarks.candidates import ALLOWED, Ready, Setting
from benchmarks.competitors.torch_sparse import UNAVAILABLE, pytorch
from benchmarks.shapes import Batch, BenchError, Shape, draw_batch
from benchmarks.steps import Learner, Ours, Phases, Problem, StepCandidate
from benchmarks.steps_pytorch import SharedLoop, list_pytorch_candidates, list_torch_candidates, shared_pytorch
from kernels import devices, plan
from kernels.devices import Device
from kernels.gpu import indices as on_device
from kernels.gpu.slots import Capacity, Step
from kernels.plan import BatchPlan
from kernels.sessions import CudaSession, Session
from workbench import executor, formats, graph, ops, optimizers
from workbench.formats import compressed
from workbench.measure.closure import registering_modules
from workbench.ops.products import plan_of


def _numbers(problem: Problem, step: int) -> tuple[float, ...]:
    """Return the scalars that an update kernel takes after its arrays: optimizer options, for Adam also the step."""
    return (*problem.options.values(), *((step,) if problem.optimizer == "adam" else ()))


class _OnDevice:
    """Weights and states on the device; what both of ours share."""

    def __init__(self, problem: Problem, on: Device) -> None:
        """Store problem and device `on`; the step count is 0 and no arrays are on the device yet."""
        self.problem, self.on, self.t = problem, on, 0
        self.arrays: Sequence[Any] = ()

    def start(self) -> None:
        """Reset the problem, the step count and the device arrays to the initial weights and states."""
        self.problem.reset()
        self.t = 0
        for array, table in zip(self.arrays, self.problem.tables, strict=True):
            self.on.assign(array, self.on.put(table))

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows copied to the host, float32 [U, N]; waits for the device."""
        active, width = self.problem.active, self.problem.weights.shape[1]
        out = self.on.empty((active.size, width), np.float32)
        kernels.get("take_rows").cuda(self.arrays[0], self.on.put(active.astype(np.int64)), out)
        return self.on.read(out)  # synchronize!


class CudaGraph(_OnDevice):
    """The step as one CUDA graph. A batch has a slot of its own, which `prepare` fills from the host while the queued
    steps run: nothing waits for the end of a step, so that copies of the next batch overlap it, as in training.
    """

    def __init__(self, problem: Problem, session: Session) -> None:
        """Copy the tables to the device and record the step as a CUDA graph with one slot per batch."""
        super().__init__(problem, session.device)
        batches = problem.batches
        most = max(batch.indices.size for batch in batches), max(np.unique(batch.indices).size for batch in batches)
        self.arrays = [session.device.put(table) for table in problem.tables]
        capacity = Capacity(batches[0].R, *most)
        self.made = Step(session, problem.optimizer, self.arrays, capacity, "squared", slots=len(batches))

    def prepare(self, number: int) -> int:
        """Plan batch `number` on the host, queue the copies into its slot, and return `number`."""
        batch = self.problem.batches[number]
        batch_plan = plan.build(batch.indptr, batch.indices, batch.D)
        slot = self.made.slots[number]
        slot.load(batch.indptr, batch.indices, batch.data, self.problem.targets[number], batch_plan)
        return number

    def step(self, prepared: int) -> None:
        """Launch the graph on the slot `prepared`, which updates the device tables in place; does not wait for it."""
        self.t += 1
        self.made.run(prepared, *_numbers(self.problem, self.t))


class CudaKernels(_OnDevice):
    """Product, loss, and the fused update, launched one after the other; the plan is built on the device."""

    def __init__(self, problem: Problem, on: Device) -> None:
        """Copy the tables to the device `on`, allocate scores [R, N] and their gradient, and look up the kernels."""
        super().__init__(problem, on)
        self.arrays = [on.put(table) for table in problem.tables]
        shape = problem.targets[0].shape
        self.scores, self.grad_scores = (on.empty(shape, np.float32) for _ in range(2))
        self.product, self.loss = kernels.get("csr_dense").cuda, kernels.get("squared").cuda
        self.update = kernels.get(f"{problem.optimizer}_fused").cuda

    def prepare(self, number: int) -> tuple:
        """Return (CSR arrays, targets, plan arrays) of batch `number`, all on the device."""
        batch = self.problem.batches[number]
        arrays = [self.on.put(array) for array in (batch.indptr, batch.indices, batch.data)]
        batch_plan = on_device.build(arrays[0], arrays[1], batch.D)
        entries = batch_plan.columns, batch_plan.segments, batch_plan.rows, on_device.in_order(batch_plan, arrays[2])
        return arrays, self.on.put(self.problem.targets[number]), entries

    def step(self, prepared: tuple) -> None:
        """Do one training step on a prepared batch: writes scores, their gradient and, in place, the device tables."""
        arrays, targets, entries = prepared
        self.t += 1
        self.product(*arrays, self.arrays[0], self.scores)
        self.loss(self.scores, targets, self.grad_scores)
        self.update(*self.arrays, *entries, self.grad_scores, *_numbers(self.problem, self.t))


class CudaTorch(SharedLoop):
    """EmbeddingBag(mode="sum", sparse=True) on the device, with the optimizers that take sparse gradients."""

    def __init__(self, problem: Problem) -> None:
        """Raise BenchError if PyTorch has no CUDA device; nothing is copied yet."""
        torch = pytorch()
        if not torch.cuda.is_available():
            raise BenchError(f"PyTorch {torch.__version__} sees no CUDA device; install a build of it for CUDA.")
        super().__init__(problem, functools.partial(shared_pytorch, place="cuda"))

    def prepare(self, number: int) -> tuple:
        """Return (indices, indptr, data, targets) of batch `number` as CUDA tensors, copied through pinned memory."""
        return tuple(array.pin_memory().to("cuda", non_blocking=True) for array in super().prepare(number))

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows copied to the host, float32 [U, N]."""
        active = pytorch().from_numpy(self.problem.active).to("cuda")
        return self.model.weight.detach()[active].cpu().numpy()


def list_device_step_candidates(on: Device | None = None) -> list[StepCandidate]:
    """Return all step candidates on a CUDA device, this project's first; nothing is allocated.

    Without `on` a candidate opens the current device when it is made.
    """
    here = lambda: on or devices.CupyDevice()  # noqa: E731
    return [
        StepCandidate("ours, graph", "project", lambda problem: CudaGraph(problem, CudaSession()), shares=False),
        StepCandidate("ours, kernels", "project", lambda problem: CudaKernels(problem, here()), shares=False),
        StepCandidate("torch_cuda EmbeddingBag", "competitor", CudaTorch, UNAVAILABLE, shares=False),
    ]


# Our own step as users run it: a graph bound to its tables, with an updater; what the graph costs beyond its kernels.
#
# The graph is that of linear regression, `squared_loss(dot(x, w), y)`; its gradient is left to the fused update.


@dataclass
class Graph:
    """Executor and updater on the problem's tables. Its phase forward has the loss in it."""

    problem: Problem
    phases: Phases = field(default_factory=Phases)

    def __post_init__(self) -> None:
        """Bind the executor to the problem's tables for batches of CSR rows and make a new updater."""
        problem, batch = self.problem, self.problem.batches[0]
        scores = ops.dot(graph.variable("x"), graph.variable("w"), name="scores")
        self.executor = executor.bind(
            ops.squared_loss(scores, graph.variable("y")),
            {"w": problem.tables[0]},
            shapes={"x": (batch.R, batch.D), "y": problem.targets[0].shape},
            dtypes={"x": np.float32, "y": np.float32},
            formats={"x": "csr"},
            grad_req={"w": "write"},
            grad_formats={"w": "fused"},
        )
        self.start()

    def prepare(self, number: int) -> tuple[Any, ...]:
        """Return (SciPy CSR batch, its plan or None, targets) of batch `number`; the plan as a loader would make it."""
        return self._prepare_batch(number, functools.partial(self.executor.new_plan, "x"))

    def keep(self, number: int) -> tuple[Any, ...]:
        """Return (SciPy CSR batch, its plan, targets) of batch `number`, to be used for many steps."""
        return self._prepare_batch(number, plan_of)

    def _prepare_batch(self, number: int, plan_of_batch: Callable[[Any], BatchPlan | None]) -> tuple[Any, ...]:
        """Return (X as CSR, its plan or None, targets) of batch `number`; adds the seconds to the phase "plan"."""
        batch, start = self.problem.batches[number], perf_counter()
        x = compressed.assemble("csr", batch.indptr, batch.indices, batch.data, (batch.R, batch.D))
        batch_plan = plan_of_batch(x)
        if batch_plan is not None:
            batch_plan.in_order(x.data)
        self.phases.split("plan", start)
        return x, batch_plan, self.problem.targets[number]

    def step(self, prepared: tuple[Any, ...]) -> None:
        """Run forward, backward and update on a prepared batch; updates the tables in place and adds up phase times."""
        x, batch_plan, targets = prepared
        self.phases.steps += 1
        now = perf_counter()
        plans = {} if batch_plan is None else {"x": batch_plan}
        self.executor.forward(training=True, plans=plans, x=x, y=targets)
        now = self.phases.split("forward", now)
        gradients = self.executor.backward()
        self.updater.update({"w": self.problem.tables[0]}, gradients)
        self.executor.release()
        self.phases.split("update", now)

    def start(self) -> None:
        """Reset the problem's tables and make a new updater without state."""
        self.problem.reset()
        options: dict[str, Any] = {**self.problem.options}
        self.updater = optimizers.Updater(self.problem.optimizer, **options)

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.problem.tables[0][self.problem.active]


USERS = {"training": "Training", "module": "Fitted"}
"""Our steps as users take them, by what they use: classes of `steps_users`."""

OF_USERS = "benchmarks.steps_of_user_code"
"""Imported by its name: its imports are a part of the steps' hash, and of no kernel's (`configurations.roots_of`)."""


def _learner(name: str, problem: Problem) -> Learner:
    """Return the learner of class USERS[name], imported from `steps_of_user_code`: a loop as users write it."""
    return getattr(importlib.import_module(OF_USERS), USERS[name])(problem)


def list_step_candidates(problem_size: int, optimizer: str) -> Sequence[StepCandidate]:
    """Return the CPU candidates of a step, own ones first, then PyTorch's and TensorFlow's; `problem_size` is D * N."""
    two = functools.partial(Ours, fused=False)
    ours = [StepCandidate("ours", "project", Ours), StepCandidate("ours, two kernels", "project", two)]
    ours.append(StepCandidate("ours, graph", "project", Graph, shares=False))
    ours += [
        StepCandidate(f"ours, {name}", "project", functools.partial(_learner, name), shares=False) for name in USERS
    ]
    return [*ours, *list_torch_candidates(), *steps_tensorflow.list_tensorflow_candidates(problem_size, optimizer)]


ELEMENTS_ALONE = 2**27
"""D * N from which a step has a separate process."""
MEASURED = frozenset({"benchmarks.kernel_contest", "benchmarks.contest", "workbench.measure.child"})
"""What the process of a configuration runs; all that is not looked up by the name of a task follows from it."""

LIBRARIES = ("torch", "tensorflow", "tensorflow-cpu")
"""Packages that competitors are of, by the names they are installed by."""


@dataclass(frozen=True)
class BenchmarkConfiguration:
    """Configuration of a benchmark: all candidates of a task. `optimizer` and `batches` are of steps alone; `cache`,
    warm or cold, of kernels on cuda."""

    suite: str
    task: str
    shape: Shape
    width: int = 1
    optimizer: str | None = None
    batches: str | None = None
    seed: int = 0
    device: str = "cpu"
    cache: str | None = None

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "BenchmarkConfiguration":
        """Return the configuration from the dict of `dataclasses.asdict`, as it comes out of JSON."""
        return cls(**{**settings, "shape": Shape(**settings["shape"])})

    @property
    def is_large(self) -> bool:
        """Whether it is a step on large tables, which has a separate process: not every library frees their memory."""
        return self.is_step and self.shape.features * self.width >= ELEMENTS_ALONE

    @property
    def is_step(self) -> bool:
        """Whether whole training steps are measured (an optimizer is set), not single kernels."""
        return self.optimizer is not None

    @property
    def of_step(self) -> tuple[str, str]:
        """(optimizer, "repeat" or "new") of a step; BenchError for a configuration of kernels."""
        if self.optimizer is None or self.batches is None:
            raise BenchError(f"The task {self.task} is no step: it has no optimizer and batches.")
        return self.optimizer, self.batches

    @property
    def name(self) -> str:
        """The configuration in one line: task, optimizer, batches, device, cache, shape, rows R and width N."""
        place = "" if self.device == "cpu" else f"on {self.device}"
        more = " ".join(filter(None, (self.optimizer, self.batches, place, self.cache)))
        return f"{self.task} {more + ' ' if more else ''}{self.shape.name}, R {self.shape.rows:,}, N {self.width}"

    def columns(self) -> dict[str, Any]:
        """Return {record column: value} for all columns that the configuration determines."""
        return {
            "suite": self.suite,
            "task": self.task,
            "shape": self.shape.name,
            "rows": self.shape.rows,
            "features": self.shape.features,
            "width": self.width,
            "optimizer": self.optimizer,
            "batches": self.batches,
            "dtype": "float32",
            "index_dtype": "int32",
            "seed": self.seed,
            "device": self.device,
            "cache": self.cache,
        }


@dataclass(frozen=True)
class Entry:
    """One candidate of a configuration: its name and side, how it makes itself ready, and why it cannot take part.

    It needs `bytes_needed` while it is made ready, and keeps `bytes_kept` of its own while the others run.
    """

    name: str
    side: str
    make: Callable[[], Ready]
    bytes_needed: int = 0
    bytes_kept: int = 0
    bytes_most: int | None = None
    unavailable: str = ""


@dataclass(frozen=True)
class Field:
    """The candidates of a configuration, the first of ours first, sizes for the row, and the error that is allowed."""

    entries: Sequence[Entry]
    sizes: dict[str, int]
    allowed: float


def names_of(configuration: BenchmarkConfiguration) -> list[tuple[str, str, str]]:
    """Return (name, side, reason why unavailable or "") of each candidate; nothing is prepared."""
    candidates = _step_candidates(configuration) if configuration.is_step else _candidates(configuration)
    return [(candidate.name, candidate.side, candidate.unavailable) for candidate in candidates]


def _candidates(configuration: BenchmarkConfiguration, on: Device | None = None) -> Sequence[of_kernels.Candidate]:
    """Return the kernel candidates of a configuration, for its device; `on` is needed only to run those of CUDA."""
    if configuration.device == "cpu":
        return of_kernels.list_candidates(configuration.task, configuration.shape)
    return of_device.list_device_candidates(configuration.task, configuration.shape, on)


def _step_candidates(configuration: BenchmarkConfiguration, on: Device | None = None) -> Sequence[steps.StepCandidate]:
    """Return the training-step candidates of a configuration, for its device; `on` as in `_candidates`."""
    if configuration.task == "pytorch":
        return list_pytorch_candidates()
    if configuration.device == "cpu":
        return list_step_candidates(configuration.shape.features * configuration.width, configuration.of_step[0])
    return list_device_step_candidates(on)


def field_of(configuration: BenchmarkConfiguration, on: Device | None = None) -> Field:
    """Return the candidates of a configuration with sizes and allowed error; draws the batch and a step's tables.

    Candidates are prepared later, by `Entry.make`. Configurations of CUDA use the device `on`.
    """
    return _steps(configuration, on) if configuration.is_step else _kernels(configuration, on)


def _kernels(configuration: BenchmarkConfiguration, on: Device | None) -> Field:
    """Return the kernel candidates of a configuration as entries, with `nnz`, `touched` and the allowed error.

    Draws the batch (cached); `on` is the device of a CUDA configuration, else None.
    """
    setting = Setting.of(_draw_batch(configuration.shape, configuration.seed).wide(configuration.width))
    entries = [
        Entry(
            each.name,
            each.side,
            functools.partial(each.make, setting),
            each.bytes_needed(setting.sizes),
            bytes_most=each.bytes_most,
            unavailable=each.unavailable,
        )
        for each in _candidates(configuration, on)
    ]
    return Field(entries, {"nnz": setting.sizes.z, "touched": setting.sizes.U}, ALLOWED["float32"])


@functools.lru_cache(1)
def _draw_batch(shape: Shape, seed: int) -> Batch:
    """Return the batch of a shape and seed.

    The last one is cached, since configurations of a shape follow each other.
    """
    return draw_batch(shape, seed)


def _steps(configuration: BenchmarkConfiguration, on: Device | None) -> Field:
    """Return the step candidates of a configuration as entries, with mean `nnz` and `touched`, and the error.

    Allocates the problem's tables; `on` is the device of a CUDA configuration, else None.
    """
    loss = "logistic" if configuration.task == "pytorch" else "squared"
    optimizer, batches = configuration.of_step
    problem = steps.make_problem(configuration.shape, configuration.width, optimizer, configuration.seed, loss)
    expected = functools.cache(lambda every: steps.expected_weights(problem, every))
    needed = sum(table.nbytes for table in problem.tables)

    def make(each: steps.StepCandidate) -> Ready:
        """Return the steps of a candidate on the configuration's problem, ready to be timed and checked."""
        return steps.ready(each.make(problem), problem, batches, expected(each.every))

    candidates = _step_candidates(configuration, on)
    entries = [
        Entry(
            each.name,
            each.side,
            functools.partial(make, each),
            needed if each.shares else 3 * needed,  # the problem's tables, its own, and what it makes them from
            0 if each.shares else needed,
            unavailable=each.unavailable,
        )
        for each in candidates
    ]
    sizes = [(batch.indices.size, np.unique(batch.indices).size) for batch in problem.batches]
    nnz, active = (int(np.mean(each)) for each in zip(*sizes, strict=True))
    return Field(entries, {"nnz": nnz, "touched": active}, steps.ALLOWED)


def roots_of(configuration: BenchmarkConfiguration) -> frozenset[str]:
    """Return the names of the modules whose code a configuration's records depend on, candidates' modules included."""
    named = {part for name, _, _ in names_of(configuration) for part in name.split(" + ")}
    named |= {configuration.task, f"{configuration.optimizer}_dense"}
    modules = registering_modules("kernel", named.intersection(kernels.names()))
    modules |= registering_modules(competitors.KIND, named.intersection(competitors.names()))
    if configuration.optimizer:  # a step, which is made of operators, too
        modules |= registering_modules("optimizer", [configuration.optimizer])
        modules |= registering_modules("format", formats.names()) | registering_modules("operator", ops.names())
    if (configuration.suite, configuration.device) == ("step", "cpu"):
        modules |= {OF_USERS}
    return MEASURED | modules
