"""Products, gradients and row copies with tables of two bytes per value, which halve memory and traffic.

A table is float16, or bfloat16 stored as uint16, which NumPy and CuPy lack. Sums are computed in float32. Index arrays
are int32 or int64, all of a call the same. Arrays are on a device; non-contiguous ones are copied. Raises KernelError
for invalid operands, and TypeError for host arrays. Updates are below; `rounding.rounded` converts a
table from float32, and `take_rows` reads it back.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu import updates
from kernels.gpu.rounding import NEAREST, Rounding
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.gpu.source import NARROW
from kernels.products import coo_dense as coo_dense_of
from kernels.products import csc_dense as csc_dense_of
from kernels.products import csr_dense as csr_dense_of
from kernels.products import csr_dense_ones as csr_dense_ones_of
from kernels.products import sddmm as sddmm_of
from kernels.rows import retain, scatter, take
from kernels.rules.rule import BATCH, Rule, get_rule

# Validation of calls with tables of two bytes per value.
#
# Operands are declared as in `kernels.contract`, for example `"indptr:i[R+1] indices:i[z] x:h[D,N] out:f[R,N]"`: i
# is int32 or int64, l is int64, f is float32, h a table of two bytes per value, m either f or h; each the same for
# all operands of its kind.

_TABLE = "float16, or uint16, which holds bfloat16"
_ALLOWED = {
    "i": (("int32", "int64"), "int32 or int64, the same for all indices"),
    "l": (("int64",), "int64"),
    "f": (("float32",), "float32"),
    "h": (tuple(NARROW), f"{_TABLE}, the same for all"),
    "m": (("float32", *NARROW), f"float32, or the type of the table: {_TABLE}"),
}
"""Types of each kind, by name, and what to say of them."""

_OPERAND = re.compile(r"(\w+):([ilfhm])\[([^\]]*)\](?:[<^]\S*)?")  # what an operand holds is not read on a device


def checked(operands: str, writes: tuple[str, ...] = ("out",)) -> Callable:
    """Return a decorator that validates a function's arrays by the declaration `operands` and makes them contiguous.

    Non-contiguous arrays named in `writes` are copied back. Keyword arguments are passed on. Calls raise KernelError,
    and TypeError for host arrays.
    """

    def decorate(function: Callable) -> Callable:
        """Return `function` behind the validation of its operands."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            """Validate the operands, and call `function` with contiguous ones and the unchanged keyword arguments."""
            return launch(function.__name__, operands, writes, args, functools.partial(function, **options))

        return call

    return decorate


def _parse(operand: str) -> tuple[str, str, str]:
    """Split an operand's declaration such as "g:f[U,N]" into (name, kind, axes); KernelError if it has another form."""
    match = _OPERAND.fullmatch(operand)
    if match is None:
        raise KernelError(f"Invalid operand {operand!r}; expected name:kind[axes], as in 'g:f[U,N]'.")
    name, kind, axes = match.groups()
    return name, kind, axes


def launch(name: str, operands: str, writes: tuple[str, ...], args: tuple, function: Callable) -> Any:
    """Call `function` with the validated device arrays `args`, copied if not contiguous; return its result.

    Copies of operands in `writes` are copied back. Raises KernelError for a wrong count, type, dtype or shape.
    """
    parsed = [_parse(text) for text in operands.split()]
    if len(args) != len(parsed):
        raise KernelError(f"{name} takes {len(parsed)} arrays ({operands}), not {len(args)}.")
    device = devices.device_of(args[0])
    sizes: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for arg, (operand, kind, axes) in zip(args, parsed, strict=True):
        if type(arg) is not type(args[0]):
            raise KernelError(f"{name}: {operand} must be a {type(args[0]).__name__}, not {type(arg).__name__}.")
        _check_type(name, operand, kind, arg.dtype.name, kinds)
        _check_shape(name, operand, axes.split(","), arg.shape, sizes, operands)
    ready = [device.contiguous(arg) for arg in args]
    result = function(*ready)
    for arg, used, (operand, _, _) in zip(args, ready, parsed, strict=True):
        if operand in writes and used is not arg:
            device.assign(arg, used)
    return result


def _check_type(name: str, operand: str, kind: str, dtype: str, kinds: dict[str, str]) -> None:
    """Raise KernelError unless `dtype` is allowed for `kind` and equal to that of earlier operands, kept in `kinds`.

    `kinds` gets the first dtype of a kind.
    """
    allowed, words = _ALLOWED[kind]
    of_table = "h" if kind == "m" and dtype != "float32" else kind
    if dtype not in allowed or kinds.setdefault(of_table, dtype) != dtype:
        first = f"; the first is {kinds[of_table]}" if of_table in kinds else ""
        raise KernelError(f"{name}: {operand} is {dtype}; allowed is {words}{first}.")


def _check_shape(name: str, operand: str, axes: list[str], shape: tuple, sizes: dict[str, int], operands: str) -> None:
    """Raise KernelError unless `shape` fits `axes` and the lengths of earlier operands, kept in `sizes` by letter.

    `sizes` gets the first length of a letter.
    """
    if len(shape) != len(axes):
        raise KernelError(f"{name}: {operand} has {len(shape)} axes; it needs {len(axes)} ({operands}).")
    for length, (letter, _, more) in zip(shape, [axis.partition("+") for axis in axes], strict=True):
        size = length - int(more or 0)
        if size < 0 or sizes.setdefault(letter, size) != size:
            expected = f"{letter} is {sizes[letter]} by the operands before it" if size >= 0 else "it is too short"
            raise KernelError(f"{name}: {operand} has shape {list(shape)}, but {expected} ({operands}).")


_CSR = "indptr:i[R+1] indices:i[z]"


@checked(f"{_CSR} data:f[z] x:h[D,N] out:f[R,N]")
def csr_dense(indptr: Any, indices: Any, data: Any, x: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [R, N] float32 = A @ x, A in CSR form with `data` [z] float32, x [D, N] a table.

    `lengths` is what is known of the row lengths of A.
    """
    csr_dense_of.on_device(indptr, indices, data, x, out, lengths)


@checked(f"{_CSR} x:h[D,N] out:f[R,N]")
def csr_dense_ones(indptr: Any, indices: Any, x: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [R, N] float32 = A @ x, A in CSR form with every stored value 1, x [D, N] a narrow table.

    A is given by indptr [R+1] and indices [z]; `lengths` is what is known of its row lengths.
    """
    csr_dense_ones_of.on_device(indptr, indices, x, out, lengths)


@checked("indptr:i[D+1] indices:i[z] data:f[z] x:h[D,N] out:f[R,N]")
def csc_dense(indptr: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    """Compute out [R, N] float32 = A @ x, A in CSC form with `data` [z] float32, x [D, N] a table."""
    csc_dense_of.gpu(indptr, indices, data, x, out)


@checked("row:i[z] col:i[z] data:f[z] x:h[D,N] out:f[R,N]")
def coo_dense(row: Any, col: Any, data: Any, x: Any, out: Any) -> None:
    """Compute out [R, N] float32 = A @ x, A in COO form with `data` [z] float32, x [D, N] a table."""
    coo_dense_of.gpu(row, col, data, x, out)


@checked("segments:i[U+1] rows:i[z] values:f[z] g:h[R,N] out:f[U,N]")
def csr_t_dense(segments: Any, rows: Any, values: Any, g: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [U, N] float32 = (A.T @ g)[columns], A in the column order of its batch plan, g [R, N] a table.

    `lengths` is what is known of the column lengths.
    """
    csr_dense_of.on_device(segments, rows, values, g, out, lengths)


@checked("segments:i[U+1] rows:i[z] g:h[R,N] out:f[U,N]")
def csr_t_dense_ones(segments: Any, rows: Any, g: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [U, N] float32 = (A.T @ g)[columns], every stored value of A being 1, g [R, N] a table.

    segments [U+1] and rows [z] are those of the batch plan; `lengths` is what is known of the column lengths.
    """
    csr_dense_ones_of.on_device(segments, rows, g, out, lengths)


@checked(f"{_CSR} data:f[z] g:h[R,N] out:f[D,N]")
def csr_t_dense_full(indptr: Any, indices: Any, data: Any, g: Any, out: Any) -> None:
    """Compute out [D, N] float32 = A.T @ g, A in CSR form with `data` [z] float32, g [R, N] a table."""
    csc_dense_of.gpu(indptr, indices, data, g, out)


@checked(f"{_CSR} a:m[R,N] b:h[D,N] out:f[z]")
def sddmm(indptr: Any, indices: Any, a: Any, b: Any, out: Any) -> None:
    """Compute out[k] float32 = a[r] . b[indices[k]] for each entry k of row r of a CSR pattern.

    b [D, N] is a table, a [R, N] of its dtype or float32.
    """
    sddmm_of.gpu(indptr, indices, a, b, out)


@checked("source:h[D,N] index:i[z] out:m[z,N]")
def take_rows(source: Any, index: Any, out: Any) -> None:
    """Copy rows: out[i] = source[index[i]], widened if `out` is float32."""
    take.gpu(source, index, out)


@checked("values:h[U,N] index:i[U] out:h[D,N]")
def scatter_rows(values: Any, index: Any, out: Any) -> None:
    """Write rows: out[index[i]] = values[i], of one dtype, indices unique; other rows are not changed."""
    scatter.gpu(values, index, out)


@checked("indices:i[U] values:h[U,N] wanted:i[V]", writes=())
def retain_rows(indices: Any, values: Any, wanted: Any) -> tuple[Any, Any]:
    """Return (the indices that are among `wanted`, their rows of `values`), in the order of `indices`.

    Waits for the device.
    """
    return retain.gpu(indices, values, wanted)


# Updates of weights of two bytes per value: computed in float32 from float32 states and gradients, rounded once.
#
# Arguments are those of the kernels `<rule>_dense`, `<rule>_lazy`, `<rule>_fused`, `<rule>_step_by_step`, with weights
# that are float16, or bfloat16 as uint16. Arrays are on a device; non-contiguous ones are copied. Raises KernelError
# for invalid operands, and TypeError for host arrays.


def dense(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Update all rows in place: `args` are weights [D, N], states, gradient [D, N], then the rule's scalars.

    Raises KernelError for invalid operands or an unknown rule.
    """

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        """Launch the update of all rows of `arrays` (weights, states) by the one array of `gradient`."""
        (gradients,) = gradient
        updates.lazy(update_rule, arrays, None, gradients, settings, rounding)

    _call("dense", rule, "gradient:f[D,N]", args, step)


def lazy(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Update given rows in place: `args` are weights [D, N], states, rows int64 [U], gradient [U, N], then scalars.

    Raises KernelError for invalid operands or an unknown rule.
    """

    def step(update_rule: Rule, arrays: tuple, gradient: tuple, settings: tuple) -> None:
        """Launch the update of rows of `arrays` (weights, states); `gradient` is (rows, their gradients)."""
        rows, gradients = gradient
        updates.lazy(update_rule, arrays, rows, gradients, settings, rounding)

    _call("lazy", rule, "rows:l[U] gradient:f[U,N]", args, step)


def fused(rule: str, *args: Any, rounding: Rounding = NEAREST, lengths: Lengths = UNKNOWN) -> None:
    """Update the active rows of a batch in place: `args` are weights, states, the batch in column order, then scalars.

    The batch is (columns, segments, rows, values, g). Each row is read and written once. `lengths` is what is known of
    the column lengths. Raises KernelError for invalid operands or an unknown rule.
    """

    def step(update_rule: Rule, arrays: tuple, batch: tuple, settings: tuple) -> None:
        """Launch the update of the active rows of `arrays` (weights, states) by `batch`, in column order."""
        updates.fused(update_rule, arrays, batch, settings, lengths, rounding=rounding)

    _call("fused", rule, BATCH, args, step)


def step_by_step(rule: str, *args: Any, rounding: Rounding = NEAREST) -> None:
    """Apply missed zero-gradient steps in place: `args` are weights [D, N], states, rows, since, table [S, numbers].

    rows and since are int64 [U]. Weights are rounded once, after the last step. Raises KernelError for a rule without
    this kernel.
    """

    def step(update_rule: Rule, arrays: tuple, missed: tuple, _: tuple) -> None:
        """Launch the zero-gradient steps `missed` (rows, since, table) of `arrays` (weights, states)."""
        updates.step_by_step(update_rule, arrays, missed, rounding)

    if not get_rule(rule).step_by_step:
        raise KernelError(f"There is no {rule}_step_by_step: a step of {rule} without a gradient is not repeated.")
    _call("step_by_step", rule, "rows:l[U] since:l[U] table:f[S,K]", args, step)


def _call(kind: str, rule: str, gradient: str, args: tuple, step: Callable) -> None:
    """Validate the update `<rule>_<kind>` of narrow weights and call `step(rule, arrays, gradient arrays, settings)`.

    `gradient` declares the operands after the states. Raises KernelError for invalid operands.
    """
    update_rule = get_rule(rule)
    numbers = update_rule.numbers if kind != "step_by_step" else ()
    operands = [text for text in update_rule.operands(gradient).split() if "[" in text]
    operands[0] = operands[0].replace(":f", ":h")
    count, name, first = len(operands), f"{rule}_{kind}", len(update_rule.written)
    if len(args) != count + len(numbers):
        signature = " ".join((*operands, *numbers))
        raise KernelError(f"{name} takes {count + len(numbers)} arguments ({signature}), not {len(args)}.")
    settings = tuple(map(float, update_rule.settings(*args[count:]))) if numbers else ()
    launch(
        name,
        " ".join(operands),
        update_rule.written,
        args[:count],
        lambda *ready: step(update_rule, ready[:first], ready[first:], settings),
    )
