"""Contenders on a CUDA device: our GPU twins, and rivals that run there, on the same arguments, judged the same."""

import functools
import importlib.util
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from kernels import Kernel, devices
from kernels.devices import Device
from kernels.gpu import plan as plan_on_device
from kernels.rivals import cusparse
from workbench.bench import contenders as of_kernels
from workbench.bench import variants
from workbench.bench.contenders import BYTES_DENSE, Contender, Ready, Setting, operand_bytes
from workbench.bench.definition import error, judge
from workbench.bench.shapes import BenchError, Shape
from workbench.bench.traffic import Traffic

DENSE = ("cublas", "cublas_tf32")


def refuse_without_gpu() -> devices.Gpu:
    """The CUDA device of this machine; `BenchError` where there is none."""
    gpu = devices.probe()
    if not gpu.present:
        reason = gpu.reason.removeprefix("no CUDA device: ")
        raise BenchError(f"This benchmark needs a CUDA device; there is none: {reason}. Take --device cpu.")
    return gpu


def tasks() -> list[str]:
    """Kernels of ours with a GPU twin whose cost is of the batch, and the batch plan."""
    return [name for name in of_kernels.tasks() if name == "plan" or kernels.get(name).gpu is not None]


def contenders(task: str, shape: Shape, on: Device | None) -> list[Contender]:
    """All that compute `task` on the device `on`, the first of ours first; None where only their names are asked for.

    `BenchError` lists the known tasks.
    """
    if task not in (known := tasks()):
        raise BenchError(f"There is no task {task!r} on cuda; there is: {', '.join(known)}.")
    if task == "plan":
        return [Contender("plan.build", "ours", functools.partial(_plan, on))]
    entries = [_of_kernel(kernels.get(task), on)]
    if shape.values == "ones" and f"{task}_ones" in kernels.names():
        ones = f"{task}_ones"
        entries += [_of_kernel(kernels.get(ones), on), *(_of_kernel(each, on, "rival") for each in _rivals(ones))]
    entries += [_of_kernel(rival, on, "rival") for rival in _rivals(task)]
    if task == "csr_t_dense":
        entries += [_of_kernel(rival, on, "rival") for rival in _rivals("csr_t_dense_full")]
    if task == "csr_dense":
        entries += [*variants.contenders(on), *(_dense(library, on) for library in DENSE)]
    return [*entries, _two_kernels(task, on)] if task.endswith("_fused") else entries


def _rivals(task: str) -> Sequence[Kernel]:
    return [rival for rival in kernels.rivals_of(task) if rival.gpu is not None]


def _of_kernel(kernel: Kernel, on: Device | None, side: str = "ours") -> Contender:
    make, needed = functools.partial(_ready, kernel, on), functools.partial(operand_bytes, kernel)
    return Contender(kernel.name, side, make, needed, unavailable=_unavailable(kernel))


def _unavailable(kernel: Kernel) -> str:
    """Reason why a rival is not there; that it runs on devices alone is none here."""
    is_there = importlib.util.find_spec("cupy") and kernel.unavailable == cusparse.UNAVAILABLE
    return "" if is_there else kernel.unavailable


def _put(on: Device, args: Sequence) -> list:
    return [on.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def _take_back(on: Device, kernel: Kernel, args: Sequence, there: Sequence) -> None:
    """Arrays that the call wrote, into those of the host, where they are judged."""
    for arg, one, (name, _, _) in zip(args, there, kernel.parsed, strict=True):
        if name in kernel.writes:
            arg[...] = on.read(one)  # synchronize!


def _on_host(on: Device, returned: Any) -> Any:
    if isinstance(returned, tuple):
        return tuple(_on_host(on, part) for part in returned)
    return on.read(returned) if hasattr(returned, "shape") and np.ndim(returned) else returned


def _ready(kernel: Kernel, on: Device, setting: Setting) -> Ready:
    args = setting.arguments(kernel)
    judged, there = judge(kernel, args), _put(on, args)
    start = perf_counter()
    call = kernel.prepare(*there) if kernel.prepare else functools.partial(kernel.gpu, *there)
    once = perf_counter() - start if kernel.prepare else 0.0

    def judge_on_host(returned: Any) -> float:
        _take_back(on, kernel, args, there)
        return judged(_on_host(on, returned))

    return Ready(call, judge_on_host, kernel.cost(setting.sizes), _traffic(setting), once)


def _traffic(setting: Setting) -> Traffic:
    """Traffic by which a bound is known: of copies alone, without what caches do."""
    return Traffic(bytes_row=setting.sizes.N * setting.sizes.value)


def _plan(on: Device, setting: Setting) -> Ready:
    batch = setting.batch
    indptr, indices = _put(on, (batch.indptr, batch.indices))
    call = functools.partial(plan_on_device.build, indptr, indices, batch.D)
    columns, counts = np.unique(batch.indices, return_counts=True)
    desired = [columns, np.concatenate([[0], np.cumsum(counts)])]
    judged = lambda result: error([on.read(result.columns), on.read(result.segments)], desired)  # noqa: E731
    return Ready(call, judged, of_kernels.plan_cost(setting.sizes), _traffic(setting))


def _dense(library: str, on: Device | None) -> Contender:
    """The product of the batch made dense; TF32 keeps 10 bits of a factor, and is judged by that."""
    kernel = kernels.get(f"{library}.dense_dense")

    def make(setting: Setting) -> Ready:
        ours = kernels.get("csr_dense")
        *matrix, x, out = args = setting.arguments(ours)
        judged, dense = judge(ours, args), np.zeros((setting.sizes.R, setting.sizes.D), x.dtype)
        dense[np.repeat(np.arange(setting.sizes.R), np.diff(matrix[0])), matrix[1]] = matrix[2]
        there = _put(on, (dense, x, out))

        def judge_on_host(_: Any) -> float:
            out[...] = on.read(there[2])  # synchronize!
            return judged(None) * (TF32_FACTOR if library == "cublas_tf32" else 1.0)

        return Ready(functools.partial(kernel.gpu, *there), judge_on_host, kernel.cost(setting.sizes))

    needed = lambda s: s.R * s.D * s.value  # noqa: E731
    return Contender(kernel.name, "rival", make, needed, BYTES_DENSE, _unavailable(kernel))


TF32_FACTOR = 2.0**-4
"""TF32 is allowed sixteen times the error of float32; what its row tells is a sixteenth of its error."""


def _two_kernels(task: str, on: Device | None) -> Contender:
    """Contender that does what a fused kernel does by the gradient and then the lazy update."""
    lazy, gradient = kernels.get(task.replace("_fused", "_lazy")), kernels.get("csr_t_dense")

    def make(setting: Setting) -> Ready:
        first, second = setting.arguments(gradient), list(setting.arguments(lazy))
        place = [name for name, _, _ in lazy.parsed].index("gradient")
        there_first = _put(on, first)
        gradient.gpu(*there_first)
        second[place] = on.read(there_first[-1])
        judged, there = judge(lazy, second), _put(on, second)
        there[place] = there_first[-1]

        def call() -> None:
            gradient.gpu(*there_first)
            lazy.gpu(*there)

        def judge_on_host(_: Any) -> float:
            _take_back(on, lazy, second, there)
            return judged(None)

        both = gradient.cost(setting.sizes) + lazy.cost(setting.sizes)
        return Ready(call, judge_on_host, both, _traffic(setting))

    both: Callable[[Any], int] = lambda sizes: operand_bytes(lazy, sizes) + operand_bytes(gradient, sizes)  # noqa: E731
    return Contender(f"csr_t_dense + {lazy.name}", "ours", make, both)
