"""out[k] = a[row of k] . b[indices[k]] for the entries of a CSR pattern: the product a @ b.T where the pattern is.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; a float32|float64 [R, N]; b same [D, N]
Writes     out [z], overwritten; nothing else changes
Assumes    0 <= indices < D; columns may be unsorted and repeated
Cost       2*z*N flops; reads z*index + (R+1)*index + R*N*value + U*N*value bytes, writes z*value
Parallel   over rows, in parts of equal cost; an entry's terms are added in one order: same bits always
Limits     z < 2**63, D*N < 2**63
Source     Sampled dense-dense product; differs: only the pattern's entries are computed, its values play no part
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.row_sums import KEPT_BYTES, names_of, tile_of, tiles
from kernels.gpu.source import NARROW, blocks, c_name, source
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.lanes import AHEAD
from kernels.vector.tiles import is_far


def reference(indptr, indices, a, b, out):
    """Compute out[k] = a[r] . b[indices[k]] in plain loops.

    For each entry k of row r of a CSR pattern: indptr [R+1], indices [z] int32|int64. a [R, N], b [D, N] dense; out
    [z], float32|float64 as a and b, is overwritten. The product a @ b.T at the pattern.
    """
    out[...] = 0
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for n in range(a.shape[1]):
                out[k] += a[r, n] * b[indices[k], n]


def _row(lane, u, indptr, indices, a, b, out):
    """Emit vector code for row u: out[k] = a[u] . b[indices[k]] for the entries k of row u.

    indptr [R + 1], indices [z]; a [R, N], b [D, N]; out [z] is overwritten.
    """

    def entry(k, _):
        """Emit the product at stored entry k; `_` is unused."""
        column = indices[k]
        if lane.cut.far_rows:
            b.row(indices[(k + AHEAD).least(indices.last)], lane.integer(0)).prefetch()

        def block(j, sums):
            """Return the one-element list `sums` plus the products of the columns of one tile, from column j on."""
            products = [x * y for x, y in zip(a.row(u, j).load(), b.row(column, j).load(), strict=True)]
            return [sums[0] + lane.total(products)]

        out[k] = lane.blocks(block, [lane.number(0)])[0]

    lane.loop(indptr[u], indptr[u + 1], 1, [], entry)


_rows = RowLoop(_row, starts=0)


def cpu(indptr, indices, a, b, out):
    """Compute out[k] = a[r] . b[indices[k]] on the CPU.

    For each entry k of row r of a CSR pattern: indptr [R+1], indices [z] int32|int64. a [R, N], b [D, N] dense; out
    [z], float32|float64 as a and b, is overwritten. The product a @ b.T at the pattern.
    """
    rows, width = a.shape
    if width == 0:
        out[...] = 0
    shape = width, a.itemsize, is_far(b.nbytes)
    _rows.run(shape, rows, work_of(indices.size, width, rows), indptr, indices, a, b, out)


_PAIRS = [(a, b) for b in NARROW.values() for a in ("float", b)]
"""Types of `a` and of `b` where that is of half the memory."""

_NARROW = [f"sddmm<{tile.name('float')}, {a}, {b}>" for a, b in _PAIRS for tile in tiles("float")]
_CUDA = source(__file__, names_of("sddmm") + _NARROW)
_RUN = 16
"""Entries that a group of lanes takes one after the other, as in `sddmm.cu`."""


def gpu(indptr, indices, a, b, out):
    """Compute out[k] = a[r] . b[indices[k]] on a CUDA device.

    Operands as `cpu`, on the device; `b`, or `a` and `b`, may have two bytes per value if out [z] is float32. out is
    overwritten.
    """
    (rows, width), entries = a.shape, indices.size
    if entries == 0:
        return
    device, value = devices.device_of(out), c_name(out.dtype)
    tile = tile_of(width, value, device.is_aligned(a) and device.is_aligned(b))
    sizes = rows, entries, np.int32(width), b.nbytes <= KEPT_BYTES
    grid = blocks(-(-entries // _RUN) * tile.lanes)
    args = indptr, indptr.dtype == np.int64, indices, a, b, out
    types = "" if b.dtype == out.dtype else f", {c_name(a.dtype)}, {c_name(b.dtype)}"
    device.launch(_CUDA, f"sddmm<{tile.name(value)}{types}>", grid, *args, *sizes)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each distinct row of b moves once."""
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + s.U * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the pattern of A, two dense matrices, and a result to overwrite."""
    a, b = case.dense(case.R, case.N), case.dense(case.D, case.N, salt=1)
    return case.indptr, case.indices, a, b, case.garbage(case.indices.size)


register_kernel(__name__, "sddmm", "indptr:i[R+1]^z indices:i[z]<D a:f[R,N] b:f[D,N] out:f[z]")
