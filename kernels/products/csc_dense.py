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
from numba import prange

from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.convert import csr_to_csc
from kernels.products import csr_dense
from kernels.threads import clear, compiled_parallel, equal_count, get_threads, is_serial, parts
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import LINE, cache_bytes

RANGE = 8
"""Entries that a row has in a range on average, at least: a loop over fewer takes longer to begin."""

SAMPLE = 1024
"""Entries that are looked at to cut the columns into ranges with as many entries each."""


def edges_of(indices: np.ndarray, ranges: int) -> np.ndarray:
    """Return the first rows of all ranges but the first [ranges - 1], so that ranges have about equally many `indices`.

    From a sample of 1024 indices.
    """
    sample = np.sort(indices[:: indices.size // SAMPLE + 1])
    return sample[np.arange(1, ranges) * sample.size // ranges]


@compiled_parallel
def _split(starts, indices, edges, places, falls, bounds):
    """Write to places [ranges + 1, n] the entry at which each compressed row enters each range, and its end.

    Range p covers indices from edges[p - 1] to edges[p] - 1. falls [parts] gets the count of descents within rows; part
    p does rows bounds[p] to bounds[p + 1] - 1.
    """
    for part in prange(bounds.size - 1):
        fallen = 0
        for r in range(bounds[part], bounds[part + 1]):
            start = starts[r]
            columns = indices[np.uint64(start) : np.uint64(starts[r + 1])]
            for k in range(columns.size - 1):
                fallen += columns[k + 1] < columns[k]
            places[0, r], places[edges.size + 1, r] = start, start + columns.size
            for number in range(edges.size):
                edge, below = edges[number], 0
                for k in range(columns.size):
                    below += columns[k] < edge
                places[number + 1, r] = start + below
        falls[part] = fallen


def split(starts: np.ndarray, indices: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return (first entry of each range in each row [ranges + 1, n], whether indices ascend in each row).

    The last line of the array has the ends of rows. If indices do not ascend, `group` must reorder the entries.
    """
    rows = starts.size - 1
    places, bounds = np.empty((edges.size + 2, rows), starts.dtype), equal_count(rows, parts())
    falls = np.empty(bounds.size - 1, np.int64)
    _split(starts, indices, edges, places, falls, bounds)
    return places, not falls.any()


@compiled_parallel
def _group(places, indices, values, edges, indices_out, values_out, bounds):
    """Write indices and values [z] grouped by range within each row to indices_out and values_out; stable.

    places [ranges + 1, n] has the first entry of each range; parts of rows between `bounds` run in parallel.
    """
    for part in prange(bounds.size - 1):
        cursors = np.empty(edges.size + 1, np.int64)  # [ranges]
        for r in range(bounds[part], bounds[part + 1]):
            cursors[:] = places[:-1, r]
            for k in range(np.uint64(places[0, r]), np.uint64(places[edges.size + 1, r])):
                range_number = 0
                for number in range(edges.size):
                    range_number += indices[k] >= edges[number]
                place = np.uint64(cursors[range_number])
                cursors[range_number] += 1
                indices_out[place] = indices[k]
                values_out[place] = values[k]


def group(
    places: np.ndarray, indices: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, values) [z] as new arrays in which the entries of each row are grouped by range. Stable.

    `places` [ranges + 1, n], as `split` returns them, say where each group goes; `edges` are the first indices of all
    ranges but the first.
    """
    grouped = np.empty_like(indices), np.empty_like(values)
    _group(places, indices, values, edges, *grouped, equal_count(places.shape[1], parts()))
    return grouped


AHEAD = 8
"""Entries between a prefetch and its use, within a column and range: a row beyond may be at work on another core."""


def reference(indptr, indices, data, x, out):
    """Compute out = A @ x in plain loops.

    A in CSC form: indptr [D+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    out[...] = 0
    for c in range(indptr.size - 1):
        for k in range(indptr[c], indptr[c + 1]):
            for n in range(out.shape[1]):
                out[indices[k], n] += data[k] * x[c, n]


def _column(lane, u, starts, stops, columns, indices, data, x, out):
    """Emit vector code for one column: out[indices[k]] += data[k] * x[columns[u]], starts[u] <= k < stops[u]."""

    def block(j, _):
        """Emit the loop over all entries of column u for the outputs of one tile, from output j on."""
        vectors = x.row(columns[u], j).load()

        def entry(k, _):
            """Emit the addition of entry k to its row of the result."""
            if lane.cut.far_state:
                out.row(indices[(k + AHEAD).least(stops[u] - 1)], j).prefetch()
            place, scale = out.row(indices[k], j), lane.numbers.spread(data[k])
            place.store([scale.times_plus(*pair) for pair in zip(vectors, place.load(), strict=True)])

        lane.loop(starts[u], stops[u], 1, [], entry)

    lane.blocks(block)


_columns = RowLoop(_column)


def _by_range(indptr, indices, data, count: int, is_wide: bool) -> tuple | None:
    """Return (edges, places, indices, data): the entries by `count` ranges of rows of the result.

    `edges` are the first rows of all ranges but the first. None if that needs a copy of the entries and rows are not
    wide.
    """
    edges = edges_of(indices, count)
    places, in_order = split(indptr, indices, edges)
    if not in_order:
        if not is_wide:
            return None
        indices, data = group(places, indices, data, edges)
    return edges, places, indices, data


def _add_by_range(edges, places, indices, data, x, out) -> None:
    """Overwrite out [R, N] by A @ x with one range of rows of the result for each thread.

    A is in CSC form with indices, data [z]; `edges` are the first rows of the ranges but the first, places [ranges + 1,
    columns] the first entry of each range in each column; see `split`.
    """
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
    """Compute out = A @ x on the CPU.

    A in CSC form: indptr [D+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    columns, width = x.shape
    count = min(get_threads(), indices.size // (RANGE * max(columns, 1)))
    if count > 1 and not is_serial(work_of(indices.size, width)):
        entries = _by_range(indptr, indices, data, count, width * x.itemsize >= LINE)
        if entries is not None:
            _add_by_range(*entries, x, out)
            return
    clear(out)
    every = np.arange(columns, dtype=indptr.dtype)
    _columns[width, x.itemsize](1, columns, width, indptr[:-1], indptr[1:], every, indices, data, x, out)


def gpu(indptr, indices, data, x, out):
    """Compute out = A @ x on a CUDA device.

    A in CSC form: indptr [D+1] and indices [z] int32|int64, data [z]. x [D, N], out [R, N] float32|float64 as data; out
    is overwritten. Duplicates are summed.
    """
    csr_dense.gpu(*csr_to_csc.gpu(indptr, indices, data, out.shape[0]), x, out)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each row of x moves once.

    Out is zeroed, and its active rows are read and written again. `arguments` takes A.T: the sizes are those of its
    transpose, so that R and D have changed places.
    """
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + s.R * s.N * s.value
    return Cost(2 * s.z * s.N, fixed + (s.D + 2 * s.U) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: the arrays of the case, A in CSR form, taken for A.T [D, R] in CSC form.

    X and a result.
    """
    return case.indptr, case.indices, case.data, case.dense(case.R, case.N), case.garbage(case.D, case.N)


register_kernel(__name__, "csc_dense", "indptr:i[D+1]^z indices:i[z]<R data:f[z] x:f[D,N] out:f[R,N]")
