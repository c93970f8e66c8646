"""The Kernel record, and the checks made when one is registered and when one is called.

How to add a kernel. Write one file in the folder of its kind (`products`, `gradients`, `updates`, `rows`, `convert`,
`losses`, `rivals`); `products/csr_dense.py` is the one to copy. In this order:

1. the module docstring: the formula, then the headings of `HEADINGS`, and no other prose;
2. `reference`: plain Python loops, the definition, never optimised;
3. `cpu`: the same parameters in the same order, Numba;
4. `gpu`: the launcher of the `.cu` file of the same name, which tests run on the host (`tests/support/emulator`);
5. `cost`: flops and bytes as a formula of `Sizes`;
6. `register(Kernel(...))`.

The tests find it in the registry and run every twin on the same hostile inputs, built by its `arguments` from a `Case`.
"""

import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import aligned, bounds, contents
from kernels.checks import guarded
from kernels.gpu.calls import checked as gpu_checked
from kernels.operands import KINDS, KernelError, check_operands
from kernels.plain import plain

HEADINGS = ("Arguments", "Writes", "Assumes", "Cost", "Parallel", "Limits", "Source")


@dataclass(frozen=True)
class Sizes:
    """Sizes in the formula of a cost: R rows, z stored entries, D features, N dense width, U touched columns."""

    R: int
    z: int
    D: int
    N: int
    U: int
    value: int = 4
    """Bytes of one value."""
    index: int = 4
    """Bytes of one index."""

    @property
    def lines(self) -> int:
        """Vectors of 64 bytes of a row of N values."""
        return -(-self.N * self.value // 64)


@dataclass(frozen=True)
class Cost:
    """Work of one call: floating-point operations, and bytes when every distinct dense row moves once.

    `bytes_gather` counts the dense rows once for every stored entry: what the cache must serve. `work` is pairs (kind,
    how much) of what keeps a core busy with all data at hand, by the words of `workbench.measure.instructions`: numbers
    through exp and log, numbers passed over, entries of a sum and rows begun, entries placed by a counter.
    """

    flops: int
    bytes_compulsory: int
    bytes_gather: int = 0
    work: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of two calls."""
        work = Counter(dict(self.work)) + Counter(dict(other.work))
        sums = (getattr(self, name) + getattr(other, name) for name in ("flops", "bytes_compulsory", "bytes_gather"))
        return Cost(*sums, tuple(work.items()))

    def over(self, count: int) -> "Cost":
        """The cost of one of so many calls that together have this."""
        parts = (number // count for number in (self.flops, self.bytes_compulsory, self.bytes_gather))
        return Cost(*parts, tuple((kind, much // count) for kind, much in self.work))


@dataclass(frozen=True)
class Case:
    """A CSR matrix A [R, D] and a width N, from which each kernel makes its own arguments (tests and benchmarks)."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    D: int
    N: int
    seed: int = 0

    @property
    def R(self) -> int:  # noqa: N802
        """Rows of A."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self.data.dtype

    def dense(self, *shape: int, salt: int = 0) -> np.ndarray:
        """A dense array of normal values, the same for the same seed and salt."""
        return aligned.copy(np.random.default_rng((self.seed, salt)).standard_normal(shape), self.dtype)

    def garbage(self, *shape: int) -> np.ndarray:
        """An array to be overwritten, filled with a value that shows where it was not."""
        return aligned.copy(np.broadcast_to(7.25, shape), self.dtype)


@dataclass(frozen=True)
class Kernel:
    """One operation: its definition, its twins, its cost and how to make its arguments.

    `operands` names every parameter in order with its kind and shape, for example
    `"indptr:i[R+1] indices:i[z] data:f[z] x:f[D,N] out:f[R,N]"`: kind f is float32 or float64, the same for all; i is
    int32 or int64, the same for all; d is float64; l is int64; b is uint8; h is uint16; s a scalar;
    `indices:i[z]<D` says what indices hold (the signs are those of `kernels.contents`). A call of `cpu` is checked
    against all of it; a call of `trusted`, the same twin, for types and shapes alone: it is for arrays whose contents
    were checked where they came in, or that kernels made.
    `writes` names the parameters that a call may change. `rival_of` names the kernel that this one is a rival of.
    `prepare`, of rivals with data structures of their own, takes the operands and returns a call without arguments,
    which a benchmark times: its result is what was computed, or None where `out` holds it.
    `bound` takes the arrays of a call and returns the cpu twin on them, as `bind` gives it, where there is more to it
    than filling them in.
    `why_below` says what keeps calls from the bound that follows from `cost`, where it is known, for a page of results.
    """

    name: str
    operands: str
    reference: Callable
    cpu: Callable | None
    gpu: Callable | None
    cost: Callable[[Sizes], Cost]
    arguments: Callable[[Case], tuple]
    writes: tuple[str, ...] = ("out",)
    rival_of: str | None = None
    unavailable: str = ""
    prepare: Callable[..., Callable[[], Any]] | None = None
    bound: Callable[..., Callable[..., Any]] | None = None
    why_below: str = ""
    parsed: tuple = field(init=False, repr=False, default=())
    _raw: tuple[Callable | None, Callable[[tuple], str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        operands = [_parse(text, self.name) for text in self.operands.split()]
        object.__setattr__(self, "parsed", tuple(operand[:3] for operand in operands))
        check_declaration(self)
        try:
            declared = contents.contents(operands)
        except ValueError:
            raise KernelError(f"{self.name}: a limit in {self.operands!r} is no axis and no operand.") from None
        fault = contents.checker(declared)
        object.__setattr__(self, "_raw", (self.cpu, fault))
        if self.cpu is not None:
            by_name = functools.wraps(self.cpu)(lambda *args: self._checked(*args))
            object.__setattr__(self, "cpu", by_name)
        if self.prepare is not None:
            object.__setattr__(self, "prepare", _checked_before(self, fault))
        if self.gpu is not None:
            object.__setattr__(self, "gpu", gpu_checked(self))

    @functools.cached_property
    def trusted(self) -> Callable | None:
        """The cpu twin without a check of what operands hold; made when it is asked for, which takes as long as many
        calls."""
        raw, _ = self._raw
        return raw and _behind_checks(self, raw)

    def bind(self, *arrays: np.ndarray) -> Callable[..., Any] | None:
        """The trusted twin on these very arrays, checked once: a function of the numbers that follow them in a call.

        None for arrays that a call would copy, or refuse.
        """
        raw, _ = self._raw
        numbers = (0.0,) * (len(self.parsed) - len(arrays))
        if raw is None or not self._are_plain(*arrays, *numbers):
            return None
        call = self.bound(*arrays) if self.bound else functools.partial(raw, *arrays)
        return bounds.watched(call, self.name)

    @functools.cached_property
    def _are_plain(self) -> Callable[..., bool]:
        """Whether operands are all right and plain."""
        return guarded(self.parsed, KINDS, lambda *_: True, lambda _: False)

    @functools.cached_property
    def _checked(self) -> Callable:
        """The cpu twin with all checks."""
        raw, fault = self._raw

        def with_contents(*args: Any) -> Any:
            if wrong := fault(args):
                raise KernelError(f"{self.name}: {wrong}")
            return raw(*args)

        return _behind_checks(self, functools.wraps(raw)(with_contents))


def _parse(text: str, kernel: str) -> tuple[str, str, tuple[tuple[str, int], ...], str]:
    """`"indptr:i[R+1]^z"` -> `("indptr", "i", (("R", 1),), "^z")`."""
    match = re.fullmatch(rf"(\w+):([bdfhils])(?:\[([^\]]*)\])?((?:{contents.SIGN})?)", text)
    if match is None:
        raise KernelError(f"{kernel}: operand {text!r} is not of the form name:kind[shape], as in 'indptr:i[R+1]'.")
    name, kind, shape, end = match.groups()[:4]
    axes = [axis.partition("+") for axis in (shape or "").split(",") if axis]
    return name, kind, tuple((letter, int(more or 0)) for letter, _, more in axes), end


def check_declaration(kernel: Kernel) -> None:
    """Refuse a kernel whose twins differ in their parameters or whose header is incomplete (`KernelError`)."""
    names = [name for name, _, _ in kernel.parsed]
    for twin in ("reference", "cpu", "gpu"):
        function = getattr(kernel, twin)
        if function is not None and (parameters := list(inspect.signature(function).parameters)) != names:
            raise KernelError(f"{kernel.name}.{twin} has the parameters {parameters}; its operands say {names}.")
    if unknown := [name for name in kernel.writes if name not in names]:
        raise KernelError(f"{kernel.name} writes {unknown}, which are no parameters; the parameters are {names}.")
    module = (kernel.cpu or kernel.reference).__module__  # a rival takes its reference from the kernel it rivals
    header = sys.modules[module].__doc__ or ""
    missing = [heading for heading in HEADINGS if not re.search(rf"^{heading}\b", header, re.M)]
    if missing and not sys.flags.optimize > 1:
        raise KernelError(f"{kernel.name}: the docstring of {module} lacks {', '.join(missing)}.")


def _behind_checks(kernel: Kernel, raw: Callable) -> Callable:
    """`raw` behind a check of the operands of the kernel; compiled code then sees only writable C-contiguous arrays.

    Read-only inputs are seen through an alias and non-contiguous ones through a copy, so that each kernel compiles once
    for each pair of value and index type. A non-contiguous output is written through a copy.
    """
    parsed = kernel.parsed
    written = tuple(name in kernel.writes for name, _, _ in parsed)

    def otherwise(args: tuple) -> Any:
        if len(args) != len(parsed):
            raise KernelError(f"{kernel.name} takes {len(parsed)} arguments ({kernel.operands}), not {len(args)}.")
        if check_operands(kernel, args):
            return raw(*args)
        ready = [_plain(arg, writes) for arg, writes in zip(args, written, strict=True)]
        result = raw(*ready)
        for arg, used, writes in zip(args, ready, written, strict=True):
            if writes and used is not arg:
                arg[...] = used
        return result

    return bounds.watched(functools.wraps(raw)(guarded(parsed, KINDS, raw, otherwise)), kernel.name)


def _checked_before(kernel: Kernel, fault: Callable[[tuple], str]) -> Callable:
    """The preparation of a rival behind the same checks, where its arrays are NumPy's."""
    raw = kernel.prepare

    @functools.wraps(raw)
    def call(*args: Any) -> Any:
        arrays = [arg for arg, (_, kind, _) in zip(args, kernel.parsed, strict=True) if kind != "s"]
        if all(type(array) is np.ndarray for array in arrays):
            check_operands(kernel, args)
            if wrong := fault(args):
                raise KernelError(f"{kernel.name}: {wrong}")
        return raw(*args)

    return call


def _plain(arg: Any, written: bool) -> Any:
    """`arg` as a writable C-contiguous array: itself, a copy, or for a read-only input an alias that is only read."""
    if not isinstance(arg, np.ndarray):
        return arg
    if written and not arg.flags.writeable:
        raise KernelError("An array that the kernel writes is read-only; pass a writable one.")
    return plain(arg)
