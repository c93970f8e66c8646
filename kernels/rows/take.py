"""out[i] = source[index[i]], whole rows.

Arguments  source float32|float64 [D, N]; index int32|int64 [U]
Writes     out [U, N], overwritten; nothing else changes
Assumes    0 <= index < D; rows in any order, repeated or not
Cost       no flops; reads U*index + U*N*value bytes, writes U*N*value
Parallel   over rows, in parts of equal height; the result is unique
Limits     D*N < 2**63
Source     Definition
"""

from numba import prange

from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.registry import register
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts


def reference(source, index, out):
    """The definition, in plain loops."""
    for i in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[i, n] = source[index[i], n]


@compiled
def _rows(source, index, out, first, last):
    for i in range(first, last):
        row = index[i]
        for n in range(out.shape[1]):
            out[i, n] = source[row, n]


@compiled_parallel
def _parallel(source, index, out, bounds):
    for part in prange(bounds.size - 1):
        _rows(source, index, out, bounds[part], bounds[part + 1])


def cpu(source, index, out):
    """On the cores of this machine."""
    if is_serial(out.size):
        _rows(source, index, out, 0, out.shape[0])
    else:
        _parallel(source, index, out, equal_count(out.shape[0], parts()))


gpu = None


def cost(s: Sizes) -> Cost:
    """Each row is read and written once."""
    return Cost(0, s.U * s.index + 2 * s.U * s.N * s.value, s.U * s.N * s.value)


def arguments(case: Case) -> tuple:
    """A table, and an index with a row for every entry of A."""
    return case.dense(case.D, case.N), case.indices, case.garbage(case.indices.size, case.N)


register(
    Kernel(
        name="take_rows",
        operands="source:f[D,N] index:i[U] out:f[U,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
