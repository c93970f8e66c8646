"""out = A @ x, A in CSC form, x dense.

Arguments  indptr int32|int64 [D+1] - column starts; indices same type [z]; data float32|float64 [z]; x same [D, N]
Writes     out [R, N], overwritten; nothing else changes
Assumes    0 <= indices < R; duplicates are summed; rows of a column may be unsorted
Cost       2*z*N flops; reads z*(index+value) + (D+1)*index + U*N*value bytes, writes R*N*value; grows with D
Parallel   over ranges of rows of the result, each with one thread; serial where rows of a column are unsorted and
           those of x shorter than a cache line. An element is summed in the order of the entries: same bits on every
           run and thread count
Limits     z < 2**63, R*N < 2**63
Source     Gustavson 1978, column-wise form; every thread looks at what is its own, as in Kalamkar et al. 2020
"""

import numpy as np

from kernels import ranges
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.convert import csr_to_csc
from kernels.products import csr_dense
from kernels.registry import register
from kernels.threads import clear, get_threads, is_serial
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import LINE, cache_bytes

AHEAD = 8
"""Entries between a prefetch and its use, within a column and range: a row beyond may be at work on another core."""


def reference(indptr, indices, data, x, out):
    """Compute in plain loops: out = A @ x, A in CSC form, x dense.

    Writes out [R, N], overwritten; nothing else changes.
    """
    out[...] = 0
    for c in range(indptr.size - 1):
        for k in range(indptr[c], indptr[c + 1]):
            for n in range(out.shape[1]):
                out[indices[k], n] += data[k] * x[c, n]


def _column(lane, u, starts, stops, columns, indices, data, x, out):
    """Emit vector code for one column: out[indices[k]] += data[k] * x[columns[u]] for its entries starts[u] to
    stops[u].
    """

    def block(j, _):
        vectors = x.row(columns[u], j).load()

        def entry(k, _):
            if lane.cut.far_state:
                out.row(indices[(k + AHEAD).least(stops[u] - 1)], j).prefetch()
            place, scale = out.row(indices[k], j), lane.numbers.spread(data[k])
            place.store([scale.times_plus(*pair) for pair in zip(vectors, place.load(), strict=True)])

        lane.loop(starts[u], stops[u], 1, [], entry)

    lane.blocks(block)


_columns = RowLoop(_column)


def _by_range(indptr, indices, data, count: int, is_wide: bool) -> tuple | None:
    """Return the entries by range of rows of the result: (first rows of all ranges but the first, places, indices,
    data).

    Returns None if that needs a copy of the entries and rows are not wide.
    """
    edges = ranges.edges_of(indices, count)
    places, in_order = ranges.split(indptr, indices, edges)
    if not in_order:
        if not is_wide:
            return None
        indices, data = ranges.group(places, indices, data, edges)
    return edges, places, indices, data


def _add_by_range(edges, places, indices, data, x, out) -> None:
    """Compute out = A @ x with a range of rows (between two `edges`) for each thread; places [ranges + 1, columns]."""
    (rows, width), (more, count) = out.shape, places.shape
    # what the caches hold stays in that of the thread that adds to it; else equal parts are cleared sooner
    own = np.concatenate(([0], edges, [rows])) * width
    clear(out, own if out.nbytes <= cache_bytes(3) else None)
    columns = np.empty((more - 1, count), places.dtype)
    columns[:] = np.arange(count)
    far = width * x.itemsize >= LINE and out.nbytes >= cache_bytes(2)
    starts, stops = places[:-1].reshape(-1), places[1:].reshape(-1)
    shape = width, x.itemsize, False, far
    parts = more - 1
    _columns[shape](parts, parts * count, width, starts, stops, columns.reshape(-1), indices, data, x, out)


def cpu(indptr, indices, data, x, out):
    """Run on the CPU: out = A @ x, A in CSC form, x dense.

    Writes out [R, N], overwritten; nothing else changes.
    """
    columns, width = x.shape
    count = min(get_threads(), indices.size // (ranges.RANGE * max(columns, 1)))
    if count > 1 and not is_serial(work_of(indices.size, width)):
        entries = _by_range(indptr, indices, data, count, width * x.itemsize >= LINE)
        if entries is not None:
            _add_by_range(*entries, x, out)
            return
    clear(out)
    every = np.arange(columns, dtype=indptr.dtype)
    _columns[width, x.itemsize](1, columns, width, indptr[:-1], indptr[1:], every, indices, data, x, out)


def gpu(indptr, indices, data, x, out):
    """Run on a CUDA device: A.T in CSR form has its columns for rows, so that its CSC form is A in CSR form."""
    csr_dense.gpu(*csr_to_csc.gpu(indptr, indices, data, out.shape[0]), x, out)


def cost(s: Sizes) -> Cost:
    """Return the cost: each row of x moves once; out is filled with zeros, and its active rows are read and written
    again.

    `arguments` takes A.T: the sizes are those of its transpose, so that R and D have changed places.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (s.D + 2 * s.U) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands: A.T has the columns of A for rows: the case's own arrays are taken for a matrix [D, R] in CSC
    form.
    """
    return case.indptr, case.indices, case.data, case.dense(case.R, case.N), case.garbage(case.D, case.N)


register(
    Kernel(
        name="csc_dense",
        operands="indptr:i[D+1]^z indices:i[z]<R data:f[z] x:f[D,N] out:f[R,N]",
        reference=reference,
        cpu=cpu,
        gpu=gpu,
        cost=cost,
        arguments=arguments,
    )
)
