"""Products, gradients and row copies with tables of two bytes per value, which halve memory and traffic.

A table is float16, or bfloat16 stored as uint16, which NumPy and CuPy lack. Sums are computed in float32. Index arrays
are int32 or int64, all of a call the same. Arrays are on a device; non-contiguous ones are copied. Raises KernelError
for invalid operands, and TypeError for host arrays. Updates are in `narrow_updates`; `rounding.rounded` converts a
table from float32, and `take_rows` reads it back.
"""

from typing import Any

from kernels.gpu.narrow_calls import checked
from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.products import coo_dense as coo_dense_of
from kernels.products import csc_dense as csc_dense_of
from kernels.products import csr_dense as csr_dense_of
from kernels.products import csr_dense_ones as csr_dense_ones_of
from kernels.products import sddmm as sddmm_of
from kernels.rows import retain, scatter, take

_CSR = "indptr:i[R+1] indices:i[z]"


@checked(f"{_CSR} data:f[z] x:h[D,N] out:f[R,N]")
def csr_dense(indptr: Any, indices: Any, data: Any, x: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [R, N] float32 = A @ x, A in CSR form with `data` [z] float32, x [D, N] a table.

    `lengths` is what is known of the row lengths of A.
    """
    csr_dense_of.on_device(indptr, indices, data, x, out, lengths)


@checked(f"{_CSR} x:h[D,N] out:f[R,N]")
def csr_dense_ones(indptr: Any, indices: Any, x: Any, out: Any, lengths: Lengths = UNKNOWN) -> None:
    """Compute out [R, N] float32 = A @ x, where every stored value of A is one."""
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
    """Compute out [U, N] float32 = (A.T @ g)[columns], where every stored value of A is one."""
    csr_dense_ones_of.on_device(segments, rows, g, out, lengths)


@checked(f"{_CSR} data:f[z] g:h[R,N] out:f[D,N]")
def csr_t_dense_full(indptr: Any, indices: Any, data: Any, g: Any, out: Any) -> None:
    """Compute out [D, N] float32 = A.T @ g, A in CSR form with `data` [z] float32, g [R, N] a table."""
    csc_dense_of.gpu(indptr, indices, data, g, out)


@checked(f"{_CSR} a:m[R,N] b:h[D,N] out:f[z]")
def sddmm(indptr: Any, indices: Any, a: Any, b: Any, out: Any) -> None:
    """Compute out[k] float32 = a[row of k] . b[indices[k]], b [D, N] a table, a [R, N] of its dtype or float32."""
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
    """Return the indices that are among `wanted` and their rows of `values`, in the order of `indices`; waits for
    the device.
    """
    return retain.gpu(indices, values, wanted)
