"""out = A @ B, A and B in CSR form, the result dense.

Arguments  a_indptr int32|int64 [R+1] - row starts; a_indices same type [z]; a_data float32|float64 [z]; b_indptr,
           b_indices, b_data the same of B [D+1], [y], [y]
Writes     out [R, M], overwritten; nothing else changes
Assumes    0 <= a_indices < D, 0 <= b_indices < M; duplicates are summed; columns may be unsorted
Cost       2*z*N flops where rows of B have N entries; reads (z+U*N)*(index+value) + (R+1+2*U)*index bytes, writes
           R*M*value
Parallel   over rows, in parts of equal cost; an element's terms are added in the order of A's entries: same bits always
Limits     z < 2**63, R*M < 2**63
Source     Gustavson 1978, one pass; differs: the result is dense, so its columns are neither counted nor sorted
"""

import numpy as np
from numba import prange

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.convert import csr_to_dense
from kernels.products import csr_csr
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts

TERM_COST = 4
"""What adding a term at its column costs, in multiply-adds of `threads.is_serial`."""


def reference(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out):
    """Compute out = A @ B, A and B in CSR form, out dense, in plain loops.

    A [R, D] is (a_indptr, a_indices, a_data), B [D, M] (b_indptr, b_indices, b_data): indices int32|int64, data
    float32|float64. out [R, M] is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for r in range(out.shape[0]):
        for k in range(a_indptr[r], a_indptr[r + 1]):
            for j in range(b_indptr[a_indices[k]], b_indptr[a_indices[k] + 1]):
                out[r, b_indices[j]] += a_data[k] * b_data[j]


@compiled
def _rows(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out, first, last):
    """Overwrite rows first to last - 1 of out [R, M] by those of A @ B.

    A and B are in CSR form: a_indptr, a_indices, a_data and b_indptr, b_indices, b_data.
    """
    for r in range(first, last):
        row = out[r]
        row[:] = 0
        for k in range(np.uint64(a_indptr[r]), np.uint64(a_indptr[r + 1])):
            of_b, value = np.uint64(a_indices[k]), a_data[k]
            for j in range(np.uint64(b_indptr[of_b]), np.uint64(b_indptr[of_b + np.uint64(1)])):
                row[np.uint64(b_indices[j])] += value * b_data[j]


@compiled_parallel
def _parallel(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out, bounds):
    """Overwrite out [R, M] by A @ B on several threads; part p does rows bounds[p] to bounds[p + 1] - 1.

    A and B are in CSR form: a_indptr, a_indices, a_data and b_indptr, b_indices, b_data.
    """
    for part in prange(bounds.size - 1):
        _rows(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out, bounds[part], bounds[part + 1])


def cpu(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out):
    """Compute out = A @ B, A and B in CSR form, out dense, on the CPU.

    A [R, D] is (a_indptr, a_indices, a_data), B [D, M] (b_indptr, b_indices, b_data): indices int32|int64, data
    float32|float64. out [R, M] is overwritten. Duplicates are summed.
    """
    rows, width = out.shape
    terms = np.empty(rows + 1, np.int64)
    csr_csr.count_terms(a_indptr, a_indices, b_indptr, terms)
    operands = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out
    if is_serial(int(terms[-1]) * TERM_COST + out.size):
        _rows(*operands, 0, rows)
    else:
        _parallel(*operands, equal_cost(terms, parts(), per_row=width // TERM_COST))


def gpu(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, out):
    """Compute out = A @ B, A and B in CSR form, out dense, on a CUDA device.

    A [R, D] is (a_indptr, a_indices, a_data), B [D, M] (b_indptr, b_indices, b_data): indices int32|int64, data
    float32|float64. out [R, M] is overwritten. Duplicates are summed.
    """
    csr_to_dense.gpu(*csr_csr.gpu(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data), out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: rows of B have N entries each, in 2*N+3 columns.

    Each distinct one moves once.
    """
    entry = s.index + s.value
    fixed = s.z * entry + (s.R + 1) * s.index + s.R * (2 * s.N + 3) * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * (2 * s.index + s.N * entry), s.z * s.N * entry)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: A, a B [D, 2*N+3] with N unsorted entries a row, some twice, and a result."""
    random, width = np.random.default_rng((case.seed, case.D)), 2 * case.N + 3
    indices, index = random.integers(0, width, case.D * case.N), case.indices.dtype
    b = (np.arange(case.D + 1) * case.N).astype(index), indices.astype(index), case.dense(case.D * case.N)
    return case.indptr, case.indices, case.data, *b, case.garbage(case.R, width)


register_kernel(
    __name__,
    "csr_csr_dense",
    "a_indptr:i[R+1]^z a_indices:i[z]<D a_data:f[z] b_indptr:i[D+1]^y b_indices:i[y]<M b_data:f[y] out:f[R,M]",
)
