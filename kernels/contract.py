"""The Kernel record, and the validation of kernels when they are registered and of their operands when they are called.

How to add a kernel. Write one file in the folder of its kind (`products`, `gradients`, `updates`, `rows`, `convert`,
`losses`, `factors`, `vendor`); `products/csr_dense.py` is the one to copy. In this order:

1. the module docstring: the formula, then the headings of `HEADINGS`, and no other prose;
2. `reference`: plain Python loops, the definition, never optimised;
3. `cpu`: the same parameters in the same order, Numba;
4. `gpu`: the launcher of the `.cu` file of the same name, which tests run on the host (`tests/support/emulator`);
5. `cost`: flops and bytes as a formula of `Sizes`;
6. `register_kernel(__name__, name, operands)`, which takes these functions by their names.

The tests find it in the registry and run every implementation on the same adversarial inputs, built by its `arguments`
from a `Case`.
"""

import functools
import inspect
import linecache
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import aligned, bounds, devices, structure
from kernels.operands import (
    KINDS,
    NO_LIMIT,
    KernelError,
    check_operands,
    order_error,
    range_error,
    refuse_values,
    repeated_error,
    starts_error,
    values_check,
)
from kernels.registry import register
from kernels.structure import plain

# Contents of operands of a kernel, by its declaration: checked where it is called by name from outside, and reported.
#
# A declaration `indices:i[z]<D` says that indices count from 0 to D - 1; `rows:l[U]<!D` that none is repeated
# besides; `stored:l[U]<<D` that they rise; `indptr:i[R+1]^z` that row starts rise from 0 to z. What follows the sign
# is the letter of an axis, or the name of a number among the operands, and one may be added to it; without it there
# is no upper limit.


SIGN = r"(\^|<<|<!|<)(\w*)(?:\+(\d+))?"
"""The end of an operand's declaration."""


@dataclass(frozen=True)
class Content:
    """Declared contents of the operand at position `place`: a `sign` (see `SIGN`) and where its limit is found.

    The limit is the length of `axis` of the operand `source` (or the scalar `source` itself if `axis` is None) plus
    `more`.
    """

    place: int
    name: str
    sign: str
    source: int | None
    axis: int | None
    more: int

    def limit(self, args: Sequence[Any]) -> int:
        """Return the exclusive upper bound of the indices in a call with operands `args`.

        2**63 - 1 if none is declared.
        """
        if self.source is None:
            return NO_LIMIT
        operand = args[self.source]
        return self.more + int(operand if self.axis is None else operand.shape[self.axis])

    def problem(self, args: Sequence[Any]) -> str:
        """Return a message about the first invalid element of this operand in `args`; "" if its contents are valid."""
        array, limit = args[self.place], self.limit(args)
        if self.sign == "^":
            anywhere = self.source is None and array.size
            entries = int(array[-1]) if anywhere else limit
            return "" if structure.rises(array, entries) else starts_error(self.name, array, max(entries, 0))
        if self.sign == "<":
            return "" if structure.in_range(array, limit) else range_error(self.name, array, limit)
        if structure.is_rising(array, limit):
            return ""
        if not structure.in_range(array, limit):
            return range_error(self.name, array, limit)
        return repeated_error(self.name, array) if self.sign == "<!" else order_error(self.name, array)


def contents(operands: Sequence[tuple[str, str, tuple, str]]) -> tuple[Content, ...]:
    """Return the declared contents of operands given as (name, kind, axes, end of the declaration such as "<D").

    Operands without an end are skipped. Raises ValueError for an invalid one.
    """
    names = [name for name, _, _, _ in operands]
    letters: dict[str, tuple[int, int, int]] = {}
    for place, (_, _, axes, _) in enumerate(operands):
        for axis, (letter, more) in enumerate(axes):
            letters.setdefault(letter, (place, axis, more))
    declared = []
    for place, (name, _, _, end) in enumerate(operands):
        if not end:
            continue
        match = re.fullmatch(SIGN, end)
        if match is None:
            raise ValueError(end)
        sign, of, plus = match.groups()
        limit: tuple[int | None, int | None, int]
        limit = letters[of] if of in letters else (names.index(of) if of else None, None, 0)
        declared.append(Content(place, name, sign, limit[0], limit[1], int(plus or 0) - limit[2]))
    return tuple(declared)


def checker(declared: Sequence[Content]) -> Callable[[Sequence[Any]], str]:
    """Return a function that validates the contents of operands and returns a message, "" if they are valid."""
    first = {content.sign: content for content in reversed(declared)}
    starts, indices = first.get("^"), first.get("<")
    if starts is None or indices is None or (starts.source, starts.axis, starts.more) != (indices.place, 0, 0):
        return functools.partial(_first_problem, declared)
    others = [content for content in declared if content not in (starts, indices)]
    places, limit = (starts.place, indices.place), indices.limit

    def problem(args: Sequence[Any]) -> str:
        """Return a message about the first invalid content of the operands `args`; "" if all are valid."""
        is_right = structure.is_compressed(args[places[0]], args[places[1]], limit(args))
        return _first_problem(others if is_right else declared, args)

    return problem


def _first_problem(declared: Sequence[Content], args: Sequence[Any]) -> str:
    """Return the message of the first invalid operand among the `declared` contents; "" if all are valid."""
    for content in declared:
        if wrong := content.problem(args):
            return wrong
    return ""


# The check of a kernel's operands that every call pays for: half a microsecond, so that small batches stay cheap.
#
# It is written out for each kernel and compiled, as `dataclasses` makes methods: loops over operands and their axes
# take three times as long, and so does a function for the check next to that of the call. What is wrong, and how to
# say so, is left to `contract.check_operands`, which is slower still.


def guarded(parsed: tuple, right: Callable[..., Any], otherwise: Callable[[tuple], Any]) -> Callable[..., Any]:
    """Return a function that calls `right(*args)` for valid plain operands, else `otherwise(args)`.

    Compiled from source. Plain arrays are C-contiguous, aligned and writable. `parsed` are the operands (name, kind,
    axes). The source is kept in `linecache` for tracebacks.
    """
    names: dict[str, Any] = {_type(kind, n): dtype for kind, types in KINDS.items() for n, dtype in enumerate(types)}
    names |= {"ndarray": np.ndarray, "right": right, "otherwise": otherwise}
    source = _source(parsed)
    file = f"<check of {' '.join(name for name, _, _ in parsed)}>"
    exec(compile(source, file, "exec"), names)  # nothing but what is written below: operands give numbers and kinds
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # a traceback shows it
    return names["call"]


def _type(kind: str, number: int) -> str:
    """Return the variable name of dtype `number` allowed for `kind` in generated source, such as "f_type_0"."""
    return f"{kind}_type_{number}"


def _source(parsed: tuple) -> str:
    """Return the Python source of the check of these operands: a function `call(*args)`."""
    arrays = [(place, kind, axes) for place, (_, kind, axes) in enumerate(parsed) if kind != "s"]
    plain = [f"type(array_{place}) is ndarray and array_{place}.flags.carray" for place, _, _ in arrays]
    first = {axes: place for place, _, axes in reversed(arrays)}
    equal_shapes = [f"array_{p}.shape == array_{first[axes]}.shape" for p, _, axes in arrays if p != first[axes]]
    types = {kind: place for place, kind, _ in reversed(arrays)}
    operands = "".join(f"array_{place}, " for place in range(len(parsed)))
    lines = [
        "def call(*args):",
        f"    if len(args) != {len(parsed)}:",
        "        return otherwise(args)",
        f"    {operands} = args",
        f"    if not ({_all(plain)}):",
        "        return otherwise(args)",
        *(f"    type_{kind} = array_{place}.dtype" for kind, place in types.items()),
        "    try:",
        *(
            f"        ({''.join(f'{_length(place, axis)}, ' for axis in range(len(axes)))}) = array_{place}.shape"
            for axes, place in first.items()
        ),
        "    except ValueError:  # another number of axes",
        "        return otherwise(args)",
        f"    if {_all([*_types(arrays), *_lengths(first), *equal_shapes])}:",
        f"        return right({operands})",
        "    return otherwise(args)",
    ]
    return "\n".join(lines)


def _length(place: int, axis: int) -> str:
    """Return the variable name of the length of `axis` of operand `place` in generated source, such as "length_2_0"."""
    return f"length_{place}_{axis}"


def _all(tests: Iterable[str]) -> str:
    """Return Python source that joins conditions, each Python source, by "and"; "True" for none."""
    return " and ".join(tests) or "True"


def _types(arrays: list[tuple]) -> list[str]:
    """Return source conditions on dtypes of `arrays`, (position, kind, axes): allowed by `kinds`, equal in a kind."""
    first: set[str] = set()
    tests = []
    for place, kind, _ in arrays:
        if kind in first:
            tests.append(f"array_{place}.dtype is type_{kind}")
            continue
        first.add(kind)
        allowed = [f"type_{kind} is {_type(kind, number)}" for number in range(len(KINDS[kind]))]
        tests.append(f"({' or '.join(allowed)})")
    return tests


def _lengths(arrays: dict[tuple, int]) -> list[str]:
    """Return conditions as Python source: axes with the same letter have equal lengths, up to an offset as in R+1.

    `arrays` maps each distinct tuple of axes to the position of the first array that has it.
    """
    seen: dict[str, tuple[str, int]] = {}
    tests = []
    for axes, place in arrays.items():
        for axis, (letter, more) in enumerate(axes):
            length = _length(place, axis)
            if letter in seen:
                other, other_more = seen[letter]
                tests.append(f"{length} == {other}{f' + {more - other_more}' if more != other_more else ''}")
                continue
            seen[letter] = length, more
            if more:
                tests.append(f"{length} >= {more}")
    return tests


HEADINGS = ("Arguments", "Writes", "Assumes", "Cost", "Parallel", "Limits", "Source")


@dataclass(frozen=True)
class Sizes:
    """Sizes in cost formulas: R rows, z stored entries, D features, N dense width, U active columns."""

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
        """Return the number of 64-byte vectors in a row of N values, rounded up."""
        return -(-self.N * self.value // 64)


@dataclass(frozen=True)
class Cost:
    """Work of one call: floating-point operations, and bytes if every distinct dense row is moved once.

    `bytes_gather` counts a dense row once per stored entry: what the cache must deliver. `work` are pairs (kind,
    amount) of work that keeps a core busy with all data in cache: values through exp and log, values passed over,
    entries of a sum and rows begun, entries placed by a counter (names as in `workbench.measure.bandwidth`).
    """

    flops: int
    bytes_compulsory: int
    bytes_gather: int = 0
    work: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of two calls: flops, bytes and work added up."""
        work = Counter(dict(self.work)) + Counter(dict(other.work))
        return Cost(
            self.flops + other.flops,
            self.bytes_compulsory + other.bytes_compulsory,
            self.bytes_gather + other.bytes_gather,
            tuple(work.items()),
        )

    def over(self, count: int) -> "Cost":
        """Return the cost of one of `count` equal calls that together have this cost; amounts are rounded down."""
        work = tuple((kind, amount // count) for kind, amount in self.work)
        return Cost(self.flops // count, self.bytes_compulsory // count, self.bytes_gather // count, work)


@dataclass(frozen=True)
class Case:
    """A CSR matrix A [R, D] and a width N, from which each kernel builds its operands in tests and benchmarks."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    D: int
    N: int
    seed: int = 0

    @property
    def R(self) -> int:  # noqa: N802
        """Return the number of rows of A."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the values: float32 or float64."""
        return self.data.dtype

    def dense(self, *shape: int, salt: int = 0) -> np.ndarray:
        """Return an array of this shape and the case's dtype with standard normal values, fixed by seed and `salt`."""
        return aligned.copy(np.random.default_rng((self.seed, salt)).standard_normal(shape), self.dtype)

    def garbage(self, *shape: int) -> np.ndarray:
        """Return an array of this shape filled with 7.25, to reveal elements that are not overwritten."""
        return aligned.copy(np.broadcast_to(7.25, shape), self.dtype)


@dataclass(frozen=True)
class Kernel:
    """One operation: its definition, its implementations, its cost and how to build its operands.

    `operands` names every parameter in order with its kind and shape, for example `"indptr:i[R+1] indices:i[z]
    data:f[z] x:f[D,N] out:f[R,N]"`: kind f is float32 or float64, the same for all; i is int32 or int64, the same for
    all; d is float64; l is int64; b is uint8; h is uint16; s a scalar; `indices:i[z]<D` declares the contents (signs as
    in `SIGN`). `cpu` validates all of it; `trusted`, the same implementation, validates dtypes and shapes only: it is
    for arrays whose contents were validated before. `writes` names the parameters that a call may change.
    `competitor_of` names the kernel that this one competes with. `prepare`, of competitors with data structures of
    their own, takes the operands and returns a call without arguments, which a benchmark times: it returns the result,
    or None if `out` has it.
    """

    name: str
    operands: str
    reference: Callable
    cpu: Callable | None
    gpu: Callable | None
    cost: Callable[[Sizes], Cost]
    arguments: Callable[[Case], tuple]
    writes: tuple[str, ...] = ("out",)
    competitor_of: str | None = None
    unavailable: str = ""
    prepare: Callable[..., Callable[[], Any]] | None = None
    cpu_few: Callable[..., bool] | None = None
    """Check of the contents and CPU implementation in one call, for little work; returns whether it did both."""
    parsed: tuple = field(init=False, repr=False, default=())
    _raw: tuple[Callable | None, Callable[[tuple], str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Parse and validate the declaration; wrap `cpu`, `prepare` and `gpu` by the validation of their operands.

        Raises KernelError for an invalid declaration.
        """
        operands = [_parse(text, self.name) for text in self.operands.split()]
        object.__setattr__(self, "parsed", tuple(operand[:3] for operand in operands))
        check_declaration(self)
        try:
            declared = contents(operands)
        except ValueError:
            raise KernelError(f"{self.name}: a limit in {self.operands!r} is no axis and no operand.") from None
        problem = checker(declared)
        object.__setattr__(self, "_raw", (self.cpu, problem))
        if self.cpu is not None:
            object.__setattr__(self, "cpu", functools.wraps(self.cpu)(lambda *args: self._checked(*args)))
        if self.prepare is not None:
            object.__setattr__(self, "prepare", _checked_before(self, problem))
        if self.gpu is not None:
            object.__setattr__(self, "gpu", gpu_checked(self))

    @functools.cached_property
    def trusted(self) -> Callable[..., Any]:
        """Return the CPU implementation with checks of dtypes and shapes but not of contents (index ranges).

        Generated on first access, which takes as long as many calls. Raises KernelError without a CPU implementation.
        """
        if (raw := self._raw[0]) is None:
            raise KernelError(f"{self.name} has no CPU implementation.")
        return _with_checks(self, raw)

    @property
    def cuda(self) -> Callable[..., Any]:
        """Return the CUDA implementation. Raises KernelError without one."""
        if self.gpu is None:
            raise KernelError(f"{self.name} has no CUDA implementation.")
        return self.gpu

    @functools.cached_property
    def are_plain(self) -> Callable[..., bool]:
        """Return the generated function that tells whether operands are plain arrays of valid dtypes and shapes."""
        return guarded(self.parsed, lambda *_: True, lambda _: False)

    @functools.cached_property
    def _checked(self) -> Callable:
        """Return the CPU implementation behind the validation of all operands, contents included.

        It raises KernelError.
        """
        (raw, problem), check_values = self._raw, values_check(self)
        few = None if self.competitor_of else self.cpu_few  # a competitor takes over the fields
        if raw is None:
            raise KernelError(f"{self.name} has no CPU implementation.")

        def with_contents(*args: Any) -> Any:
            """Validate the contents of the operands and run the CPU implementation; KernelError if they are invalid."""
            check_values(args)
            if few is not None and few(*args):
                return None
            if wrong := problem(args):
                raise KernelError(f"{self.name}: {wrong}")
            return raw(*args)

        return _with_checks(self, functools.wraps(raw)(with_contents))


PARTS = ("reference", "cpu", "gpu", "cost", "arguments")
"""Functions that the file of a kernel defines, by these names."""


def register_kernel(module: str, name: str, operands: str, **fields: Any) -> None:
    """Register the kernel whose functions (`PARTS`) are those of the file that calls; `module` is its `__name__`.

    `fields` are further fields of `Kernel`. Raises KernelError for an invalid declaration.
    """
    functions = vars(sys.modules[module])
    register(Kernel(name, operands, *(functions[part] for part in PARTS), **fields))


def _parse(text: str, kernel: str) -> tuple[str, str, tuple[tuple[str, int], ...], str]:
    """Split a declaration such as "indptr:i[R+1]^z" into ("indptr", "i", (("R", 1),), "^z").

    Raises KernelError if invalid.
    """
    match = re.fullmatch(rf"(\w+):([bdfhils])(?:\[([^\]]*)\])?((?:{SIGN})?)", text)
    if match is None:
        raise KernelError(f"{kernel}: operand {text!r} is not of the form name:kind[shape], as in 'indptr:i[R+1]'.")
    name, kind, shape, end = match.groups()[:4]
    axes = [axis.partition("+") for axis in (shape or "").split(",") if axis]
    return name, kind, tuple((letter, int(more or 0)) for letter, _, more in axes), end


def check_declaration(kernel: Kernel) -> None:
    """Raise KernelError if parameters differ, `writes` is wrong, or the module docstring lacks a heading."""
    names = [name for name, _, _ in kernel.parsed]
    for implementation in ("reference", "cpu", "gpu"):
        function = getattr(kernel, implementation)
        if function is not None and (parameters := list(inspect.signature(function).parameters)) != names:
            raise KernelError(
                f"{kernel.name}.{implementation} has the parameters {parameters}; its operands say {names}."
            )
    if unknown := [name for name in kernel.writes if name not in names]:
        raise KernelError(f"{kernel.name} writes {unknown}, which are no parameters; the parameters are {names}.")
    # a competitor takes its reference from the kernel it competes with
    module = (kernel.cpu or kernel.reference).__module__
    header = sys.modules[module].__doc__ or ""
    missing = [heading for heading in HEADINGS if not re.search(rf"^{heading}\b", header, re.MULTILINE)]
    if missing and not sys.flags.optimize > 1:
        raise KernelError(f"{kernel.name}: the docstring of {module} lacks {', '.join(missing)}.")


def _with_checks(kernel: Kernel, raw: Callable) -> Callable:
    """Return `raw` behind the validation of its operands' dtypes and shapes.

    It receives only writable C-contiguous arrays. Read-only inputs are passed as an alias and non-contiguous ones as a
    copy, so that a kernel compiles once for each pair of dtypes. A non-contiguous output is written through a copy.
    """
    parsed = kernel.parsed
    written = tuple(name in kernel.writes for name, _, _ in parsed)

    def otherwise(args: tuple) -> Any:
        """Run `raw` on copies of operands that are not plain, and copy written ones back.

        Raises KernelError for invalid ones.
        """
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

    return bounds.with_bounds_check(functools.wraps(raw)(guarded(parsed, raw, otherwise)), kernel.name)


def _checked_before(kernel: Kernel, problem: Callable[[tuple], str]) -> Callable:
    """Return the preparation of a competitor behind the validation of NumPy operands; other operands are not checked.

    `problem` returns a message about invalid contents, "" if valid.
    """
    raw = kernel.prepare
    if raw is None:
        raise KernelError(f"{kernel.name} has no preparation.")

    @functools.wraps(raw)
    def call(*args: Any) -> Any:
        """Validate operands if all arrays are NumPy arrays, KernelError if invalid; run the preparation."""
        arrays = [arg for arg, (_, kind, _) in zip(args, kernel.parsed, strict=True) if kind != "s"]
        if all(type(array) is np.ndarray for array in arrays):
            check_operands(kernel, args)
            refuse_values(kernel, args)
            if wrong := problem(args):
                raise KernelError(f"{kernel.name}: {wrong}")
        return raw(*args)

    return call


def _plain(arg: Any, written: bool) -> Any:
    """Return `arg` as a writable C-contiguous array: itself, a copy, or an alias of a read-only input.

    Other objects are returned unchanged. Raises KernelError for a read-only array that the kernel writes.
    """
    if not isinstance(arg, np.ndarray):
        return arg
    if written and not arg.flags.writeable:
        raise KernelError("An array that the kernel writes is read-only; pass a writable one.")
    return plain(arg)


# Validation of operands of CUDA implementations, as for the CPU; launchers receive contiguous arrays only.


def gpu_checked(kernel: "Kernel") -> Callable:
    """Return the CUDA implementation behind the validation of its operands, which must be on one device.

    Non-contiguous arrays are copied, outputs back again. Contents are not checked. Calls raise KernelError, and
    TypeError for host arrays.
    """
    raw, parsed = kernel.gpu, kernel.parsed
    make_check = functools.cache(lambda: values_check(kernel, is_host=False))  # at the first call: it is compiled
    if raw is None:
        raise KernelError(f"{kernel.name} has no CUDA implementation.")
    arrays = [place for place, (_, kind, _) in enumerate(parsed) if kind != "s"]
    written = [place for place in arrays if parsed[place][0] in kernel.writes]

    @functools.wraps(raw)
    def call(*args: Any) -> Any:
        """Validate operands, make them contiguous on their device, run the implementation, copy outputs back."""
        if len(args) != len(parsed):
            raise KernelError(f"{kernel.name} takes {len(parsed)} arguments ({kernel.operands}), not {len(args)}.")
        device = devices.device_of(args[arrays[0]])
        check_operands(kernel, args, type(args[arrays[0]]))
        make_check()(args)
        ready = list(args)
        for place in arrays:
            ready[place] = device.contiguous(args[place])
        result = raw(*ready)
        for place in written:
            if ready[place] is not args[place]:
                device.assign(args[place], ready[place])
        return result

    return call
