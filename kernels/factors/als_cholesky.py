"""x[r] solves (diag(diagonal + ridge[r]) + sum_k w_k y_k y_k') x[r] = sum_k v_k y_k, by a Cholesky factorization.

Arguments  as of als_conjugate without steps: indptr int32|int64 [R+1]; indices same type [z]; data float32|float64 [z];
           y same [D, N], y_k = y[indices[k]]; diagonal same [N]; ridge same [R]; numbers weight_scale, weight_shift,
           target_scale, target_shift: w_k = weight_scale*data[k] + weight_shift, v_k alike
Writes     x [R, N], overwritten; nothing else changes
Assumes    0 <= indices < D; duplicates count each; columns may be unsorted; the matrix of each row is positive definite
Cost       flops: z*N*(N+2) + R*N*N*N/3 + 2*R*N*N; reads z*(index+value) + U*N*value, writes R*N*value bytes
Parallel   over rows, in parts of equal cost; a row's sums have one order: same bits always
Limits     z < 2**63, D*N < 2**63; N*N*value bytes for each part, or block of a CUDA device
Source     Hu, Koren, Volinsky 2008; differs: the upper triangle alone, four entries at a time, eliminated row by row
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.factors import als_conjugate
from kernels.gpu.indices import is_wide
from kernels.gpu.source import FLOATS, c_name, grid, source
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_cost, parts

AT_ONCE = 4
"""Entries that are added to the matrix at a time: a row of it is then loaded and stored once for all."""


def reference(indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, x):
    """Solve for each row of x [R, N], in plain loops.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    width = x.shape[1]
    for r in range(x.shape[0]):
        matrix, x[r] = np.diag(diagonal + ridge[r]), 0
        for k in range(indptr[r], indptr[r + 1]):
            row = y[indices[k]]
            matrix = matrix + (weight_scale * data[k] + weight_shift) * np.outer(row, row)
            x[r] += (target_scale * data[k] + target_shift) * row
        for k in range(width):
            pivot = np.sqrt(matrix[k, k])
            matrix[k, k:] /= pivot
            x[r, k] /= pivot
            for i in range(k + 1, width):
                matrix[i, i:] -= matrix[k, i] * matrix[k, i:]
                x[r, i] -= matrix[k, i] * x[r, k]
        for k in reversed(range(width)):
            for i in range(k + 1, width):
                x[r, k] -= matrix[k, i] * x[r, i]
            x[r, k] /= matrix[k, k]


@compiled
def _rows(indptr, indices, data, y, diagonal, ridge, numbers, x, matrix, first, last):
    """Solve rows first to last - 1 of x [R, N]; `matrix` [N, N] is overwritten, `numbers` [4] are those of the call."""
    width = x.shape[1]
    for r in range(first, last):
        out, start, stop = x[r], np.uint64(indptr[r]), np.uint64(indptr[r + 1])
        for i in range(width):
            matrix[i, i:] = 0
            matrix[i, i] = diagonal[i] + ridge[r]
            out[i] = 0
        four = start + (stop - start) // np.uint64(AT_ONCE) * np.uint64(AT_ONCE)
        for k in range(start, four, np.uint64(AT_ONCE)):
            a, b = y[np.uint64(indices[k])], y[np.uint64(indices[k + np.uint64(1)])]
            c, d = y[np.uint64(indices[k + np.uint64(2)])], y[np.uint64(indices[k + np.uint64(3)])]
            value = data[k : k + np.uint64(AT_ONCE)]
            w, v = numbers[0] * value + numbers[1], numbers[2] * value + numbers[3]
            for i in range(width):
                row, e, f, g, h = matrix[i, i:], w[0] * a[i], w[1] * b[i], w[2] * c[i], w[3] * d[i]
                aa, bb, cc, dd = a[i:], b[i:], c[i:], d[i:]
                for j in range(row.size):
                    row[j] += e * aa[j] + f * bb[j] + g * cc[j] + h * dd[j]
                out[i] += v[0] * a[i] + v[1] * b[i] + v[2] * c[i] + v[3] * d[i]
        for k in range(four, stop):
            a = y[np.uint64(indices[k])]
            weight, target = numbers[0] * data[k] + numbers[1], numbers[2] * data[k] + numbers[3]
            for i in range(width):
                row, e, aa = matrix[i, i:], weight * a[i], a[i:]
                for j in range(row.size):
                    row[j] += e * aa[j]
                out[i] += target * a[i]
        _solve(matrix, out)


@compiled
def _solve(matrix, x):
    """Solve matrix @ solution = x, in place, from the upper triangle of a matrix [N, N], which becomes its factor."""
    width = x.size
    for k in range(width):
        pivot = np.sqrt(matrix[k, k])
        own = matrix[k, k:]
        own /= pivot
        x[k] /= pivot
        for i in range(k + 1, width):
            row, scale, rest = matrix[i, i:], matrix[k, i], matrix[k, i:]
            for j in range(row.size):
                row[j] -= scale * rest[j]
            x[i] -= scale * x[k]
    for k in range(width - 1, -1, -1):
        total = x[k]
        for i in range(k + 1, width):
            total -= matrix[k, i] * x[i]
        x[k] = total / matrix[k, k]


@compiled_parallel
def _parallel(indptr, indices, data, y, diagonal, ridge, numbers, x, matrices, bounds):
    """Solve all rows of x on several threads; part p does rows bounds[p] to bounds[p + 1] - 1 with matrices[p]."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        _rows(indptr, indices, data, y, diagonal, ridge, numbers, x, matrices[part], first, last)


def cpu(indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, x):
    """Solve for each row of x [R, N] on the CPU.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    rows, width = x.shape
    numbers = np.array([weight_scale, weight_shift, target_scale, target_shift], x.dtype)
    bounds = equal_cost(indptr, parts(), per_row=width // 3 + 1)
    matrices = np.empty((bounds.size - 1, width, width), x.dtype)
    work = (indices.size + rows * (width // 3 + 1)) * width * width // AT_ONCE
    call_parallel(_parallel, work, indptr, indices, data, y, diagonal, ridge, numbers, x, matrices, bounds)


_MOST_BYTES = 2**28
"""Bytes of the matrices on a CUDA device, one for each block; a block solves one row after the other."""

_CUDA = source(__file__, [f"als_cholesky<{value}>" for value in FLOATS])


def gpu(indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, x):
    """Solve for each row of x [R, N] on a CUDA device.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    if not x.size:
        return
    device, (rows, width), value = devices.device_of(x), x.shape, x.dtype.type
    count = grid(min(rows, _MOST_BYTES // (width * width * x.dtype.itemsize)))
    numbers = (value(each) for each in (weight_scale, weight_shift, target_scale, target_shift))
    operands = indptr, indices, is_wide(indices), data, y, diagonal, ridge, *numbers, x, rows, width
    matrices = device.empty((count, width, width), x.dtype)
    device.launch(_CUDA, f"als_cholesky<{c_name(x.dtype)}>", count, *operands, matrices)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each distinct row of y moves once."""
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    flops = s.z * s.N * (s.N + 2) + s.R * s.N**3 // 3 + 2 * s.R * s.N**2
    return Cost(flops, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case` as of als_conjugate, and factors to overwrite."""
    *operands, _, _ = als_conjugate.arguments(case)
    return (*operands, case.garbage(case.R, case.N))


register_kernel(
    __name__,
    "als_cholesky",
    "indptr:i[R+1]^z indices:i[z]<D data:f[z] y:f[D,N] diagonal:f[N] ridge:f[R] weight_scale:s weight_shift:s "
    "target_scale:s target_shift:s x:f[R,N]",
    writes=("x",),
)
