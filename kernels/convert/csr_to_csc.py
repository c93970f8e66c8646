"""(indptr, indices, data) of A in CSC form from A in CSR form.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]; n_columns D
Writes     nothing; returns new indptr [D+1], indices [z], data [z]; index type of indptr, int64 if R or z needs it
Assumes    indptr starts at 0 and ends at z; columns are checked; rows ascend in a column, duplicates keep their order
Cost       no flops; reads z*(4*index+value) + (R+1)*index bytes, writes z*(2*index+value) + (D+1)*index
Parallel   over entries where there are few columns against them: one counter a column and thread; the result is unique
Limits     z < 2**63; the pointer of D+1 makes the cost grow with D whatever the batch
Source     Gustavson 1978, permuted transposition; here A in CSC is A.T in CSR, grouped by column from coordinates
"""

import numpy as np

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.convert import csr_to_coo_rows
from kernels.convert.coo_to_csr import group
from kernels.gpu import indices as on_device
from kernels.plan import index_type


def reference(indptr, indices, data, n_columns):
    """Convert CSR to CSC in plain loops.

    indptr [R+1], indices [z] int32|int64, data float32|float64 [z]; `n_columns` columns. Returns new arrays (indptr
    [n_columns+1], row indices [z], data [z]); rows ascend in a column, duplicates keep their order.
    """
    kind = index_type(max(indices.size, indptr.size), indptr.dtype)
    out_indptr, out_indices, out_data = np.zeros(n_columns + 1, kind), np.empty(indices.size, kind), data.copy()
    count = 0
    for c in range(n_columns):
        for r in range(indptr.size - 1):
            for k in range(indptr[r], indptr[r + 1]):
                if indices[k] == c:
                    out_indices[count], out_data[count] = r, data[k]
                    count += 1
        out_indptr[c + 1] = count
    return out_indptr, out_indices, out_data


def cpu(indptr, indices, data, n_columns):
    """Convert CSR to CSC on the CPU.

    indptr [R+1], indices [z] int32|int64, data float32|float64 [z]; `n_columns` columns. Returns new arrays (indptr
    [n_columns+1], row indices [z], data [z]); rows ascend in a column, duplicates keep their order. Indices have the
    dtype of indptr, or int64 if R or z needs it. Raises KernelError for a column out of range.
    """
    kind = index_type(max(indices.size, indptr.size), indptr.dtype)
    row = csr_to_coo_rows.cpu(indptr.astype(kind, copy=False))
    return group(indices.astype(kind, copy=False), row, data, n_columns, "column")


def gpu(indptr, indices, data, n_columns):
    """Convert CSR to CSC on a CUDA device.

    indptr [R+1], indices [z] int32|int64, data float32|float64 [z]; `n_columns` columns. Returns new arrays (indptr
    [n_columns+1], row indices [z], data [z]); rows ascend in a column, duplicates keep their order. Indices have the
    dtype of indptr, or int64 if R or z needs it. Raises KernelError for a column out of range.
    """
    kind = index_type(max(indices.size, indptr.size), indptr.dtype)
    row = on_device.rows_of(indptr, indices.size, kind)
    return on_device.group(on_device.as_kind(indices, kind), row, data, n_columns, "column")


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: row indices are written and read back.

    Columns are read twice, to count and to place.
    """
    work = ("row", s.R), ("pass", s.z), ("place", 2 * s.z), ("scan", s.D)
    return Cost(0, s.z * (6 * s.index + 2 * s.value) + (s.R + s.D + 2) * s.index, work=work)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A and its number of columns."""
    return case.indptr, case.indices, case.data, case.D


register_kernel(
    __name__,
    "csr_to_csc",
    "indptr:i[R+1]^z indices:i[z]<n_columns data:f[z] n_columns:s",
    writes=(),
)
