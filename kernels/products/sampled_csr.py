"""out[k] = a[row of k] . b[indices[k]] for the entries of a CSR pattern, a in CSR form: a @ b.T where the pattern is.

Arguments  indptr int32|int64 [R+1] - row starts of the pattern; indices same type [z]; a_indptr, a_indices the same of
           a [R, M] with y entries; a_data float32|float64 [y]; b same [D, M]
Writes     out [z], overwritten; nothing else changes
Assumes    0 <= indices < D, 0 <= a_indices < M; duplicates of a are summed; columns may be unsorted and repeated
Cost       2*z*N flops where rows of a have N entries; reads z*index + 2*(R+1)*index + y*(index+value) + U*M*value
           bytes, writes z*value
Parallel   over rows, in parts of equal cost; an entry's terms are added in the order of a's entries: same bits always
Limits     z < 2**63, D*M < 2**63
Source     Sampled dense-dense product; differs: of a, too, only the entries are read
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.threads import compiled, compiled_parallel, equal_cost, is_serial, parts

TERM_COST = 4
"""What a term costs, in multiply-adds of `threads.is_serial`, and what an entry costs in addition to its terms."""


def reference(indptr, indices, a_indptr, a_indices, a_data, b, out):
    """Compute out[k] = a[r] . b[indices[k]] in plain loops.

    For each entry k of row r of a CSR pattern: indptr [R+1], indices [z] int32|int64. a [R, M] in CSR form (a_indptr
    [R+1], a_indices, a_data [y]), b [D, M] dense; out [z], float32|float64 as a_data and b, is overwritten.
    """
    out[...] = 0
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for j in range(a_indptr[r], a_indptr[r + 1]):
                out[k] += a_data[j] * b[indices[k], a_indices[j]]


@compiled
def _count_terms(indptr, a_indptr, starts):
    """Write to starts [R + 1] the cumulated work of the rows: entries of the pattern times (entries of a + 1).

    Threads share the work by it. indptr are the row pointers of the pattern, a_indptr those of a.
    """
    starts[0] = 0
    for r in range(indptr.size - 1):
        starts[r + 1] = starts[r] + (indptr[r + 1] - indptr[r]) * (a_indptr[r + 1] - a_indptr[r] + 1)


@compiled
def _rows(indptr, indices, a_indptr, a_indices, a_data, b, out, first, last):
    """Write out[k] = a[r] . b[indices[k]] for the entries k of rows first to last - 1 of the pattern.

    B [D, M] is dense. The pattern is in CSR form (indptr, indices), and so is a (a_indptr, a_indices, a_data).
    """
    for r in range(first, last):
        start, end = np.uint64(a_indptr[r]), np.uint64(a_indptr[r + 1])
        for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            row, total = b[np.uint64(indices[k])], out.dtype.type(0)
            for j in range(start, end):
                total += a_data[j] * row[np.uint64(a_indices[j])]
            out[k] = total


@compiled_parallel
def _parallel(indptr, indices, a_indptr, a_indices, a_data, b, out, bounds):
    """Write out [z] on several threads, as `_rows`; part p does rows bounds[p] to bounds[p + 1] - 1.

    The pattern is in CSR form (indptr, indices), and so is a (a_indptr, a_indices, a_data); b [D, M] is dense.
    """
    for part in prange(bounds.size - 1):
        _rows(indptr, indices, a_indptr, a_indices, a_data, b, out, bounds[part], bounds[part + 1])


def cpu(indptr, indices, a_indptr, a_indices, a_data, b, out):
    """Compute out[k] = a[r] . b[indices[k]] on the CPU.

    For each entry k of row r of a CSR pattern: indptr [R+1], indices [z] int32|int64. a [R, M] in CSR form (a_indptr
    [R+1], a_indices, a_data [y]), b [D, M] dense; out [z], float32|float64 as a_data and b, is overwritten.
    """
    terms = np.empty(indptr.size, np.int64)
    _count_terms(indptr, a_indptr, terms)
    operands = indptr, indices, a_indptr, a_indices, a_data, b, out
    if is_serial(int(terms[-1]) * TERM_COST):
        _rows(*operands, 0, indptr.size - 1)
    else:
        _parallel(*operands, equal_cost(terms, parts()))


_CUDA = source(__file__, [f"sampled_csr<{value}>" for value in FLOATS])


def gpu(indptr, indices, a_indptr, a_indices, a_data, b, out):
    """Compute out[k] = a[r] . b[indices[k]] on a CUDA device.

    For each entry k of row r of a CSR pattern: indptr [R+1], indices [z] int32|int64. a [R, M] in CSR form (a_indptr
    [R+1], a_indices, a_data [y]), b [D, M] dense; out [z], float32|float64 as a_data and b, is overwritten.
    """
    name, wide, sizes = f"sampled_csr<{c_name(out.dtype)}>", indptr.dtype.itemsize == 8, (indptr.size - 1, out.size)
    operands = indptr, indices, a_indptr, a_indices, wide, a_data, b, out
    devices.device_of(out).launch(_CUDA, name, blocks(out.size), *operands, *sizes, b.shape[1])


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: rows of a have N entries each, in 2*N+3 columns.

    Each distinct row of b moves once.
    """
    entry = s.index + s.value
    fixed = s.z * (s.index + s.value) + 2 * (s.R + 1) * s.index + s.R * s.N * entry
    return Cost(2 * s.z * s.N, fixed + s.U * (2 * s.N + 3) * s.value, s.z * s.N * entry)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: A's pattern, an a [R, 2*N+3] with N entries a row, a dense b, and a result."""
    random, width = np.random.default_rng((case.seed, case.R)), 2 * case.N + 3
    indices, index = random.integers(0, width, case.R * case.N), case.indices.dtype
    a = (np.arange(case.R + 1) * case.N).astype(index), indices.astype(index), case.dense(case.R * case.N)
    return case.indptr, case.indices, *a, case.dense(case.D, width, salt=1), case.garbage(case.indices.size)


register_kernel(
    __name__,
    "sampled_csr",
    "indptr:i[R+1]^z indices:i[z]<D a_indptr:i[R+1]^y a_indices:i[y]<M a_data:f[y] b:f[D,M] out:f[z]",
)
