"""(indptr, indices, data) of A @ B in CSR form, A and B in CSR form.

Arguments  a_indptr int32|int64 [R+1] - row starts; a_indices same type [z]; a_data float32|float64 [z]; b_indptr,
           b_indices, b_data the same of B [D+1], [y], [y]
Writes     nothing; returns new arrays indptr [R+1], indices, data; index type of a_indptr, int64 if the result needs it
Assumes    0 <= a_indices < D, 0 <= b_indices; duplicates are summed; columns may be unsorted
Cost       2*z*N flops where rows of B have N entries; reads z*(1+N)*(index+value) + (R+1+2*U)*index bytes, writes
           z*N*(index+value) + (R+1)*index where no columns meet
Parallel   over rows, in parts of equal cost; an element's terms are added in the order of A's entries: same bits always
Limits     entries of the result < 2**63; a thread's marks and sums have an element for each column of B, or for each
           that has an entry where those are fewer than the columns: nothing grows with the columns of B
Source     Gustavson 1978: one pass counts, one computes. Differs: columns come out sorted; the pattern depends on
           indices alone, so that terms which cancel leave a stored zero
"""

import numpy as np
from numba import prange
from numba.cpython.unsafe.numbers import trailing_zeros

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu import indices as on_device
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.plan import index_type, largest, sort_segments
from kernels.threads import compiled, compiled_parallel, compiled_part, equal_cost, get_threads, is_serial

ENTRY_COST = 32
"""What finding a column's sum costs, in multiply-adds of `threads.is_serial`."""

WORDS = 16
"""Words of bits that are looked through in the time in which an entry is sorted."""


def reference(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data):
    """Compute A @ B in CSR form in plain loops.

    A [R, D] is (a_indptr, a_indices, a_data), B (b_indptr, b_indices, b_data): indices int32|int64, data
    float32|float64. Returns new arrays (indptr [R+1], indices, data); columns ascend, terms that cancel stay as stored
    zeros. Indices have A's dtype, or int64 if the result needs it.
    """
    rows = []
    for r in range(a_indptr.size - 1):
        sums = {}
        for k in range(a_indptr[r], a_indptr[r + 1]):
            for j in range(b_indptr[a_indices[k]], b_indptr[a_indices[k] + 1]):
                before = sums.get(b_indices[j], a_data.dtype.type(0))
                sums[b_indices[j]] = before + a_data[k] * b_data[j]
        rows.append(sorted(sums.items()))
    entries = [entry for row in rows for entry in row]
    kind = index_type(len(entries), a_indptr.dtype)
    indptr = np.zeros(len(rows) + 1, kind)
    for r in range(len(rows)):
        indptr[r + 1] = indptr[r] + len(rows[r])
    return indptr, np.array([c for c, _ in entries], kind), np.array([value for _, value in entries], a_data.dtype)


@compiled
def count_terms(a_indptr, a_indices, b_indptr, starts):
    """Write to starts [R + 1] the cumulated numbers of multiplications of the rows of A @ B.

    a_indptr, a_indices are the pattern of A, b_indptr [D + 1] the row pointers of B.
    """
    starts[0] = 0
    for r in range(a_indptr.size - 1):
        count = 0
        for k in range(a_indptr[r], a_indptr[r + 1]):
            row = np.uint64(a_indices[k])
            count += b_indptr[row + np.uint64(1)] - b_indptr[row]
        starts[r + 1] = starts[r] + count


@compiled
def _number_columns(segments, permutation, numbers):
    """Write to numbers [z] the position of each entry's column among the active columns of a plan.

    segments [U + 1] and permutation [z] are those of the plan.
    """
    for u in range(segments.size - 1):
        for k in range(segments[u], segments[u + 1]):
            numbers[np.uint64(permutation[k])] = u


@compiled
def _count(a_indptr, a_indices, b_indptr, b_indices, marks, counts, first, last):
    """Write the number of distinct columns of row r of A @ B to counts[r + 1], for first <= r < last.

    The patterns are in CSR form: a_indptr, a_indices and b_indptr, b_indices. `marks` [columns] is scratch memory, -1
    before.
    """
    for r in range(first, last):
        count = 0
        for k in range(a_indptr[r], a_indptr[r + 1]):
            row = np.uint64(a_indices[k])
            for j in range(np.uint64(b_indptr[row]), np.uint64(b_indptr[row + np.uint64(1)])):
                column = np.uint64(b_indices[j])
                count += marks[column] != r
                marks[column] = r
        counts[r + 1] = count


@compiled_part
def _fill_row(r, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, marks, sums, columns):
    """Write the sums of row r of A @ B to sums [columns], and its distinct columns, unsorted, to `columns`.

    A and B are in CSR form: a_indptr, a_indices, a_data and b_indptr, b_indices, b_data. `marks` [columns] is scratch
    memory that has no r before; other elements of sums are left as they are.
    """
    count = 0
    for k in range(a_indptr[r], a_indptr[r + 1]):
        row, value = np.uint64(a_indices[k]), a_data[k]
        for j in range(np.uint64(b_indptr[row]), np.uint64(b_indptr[row + np.uint64(1)])):
            column = np.uint64(b_indices[j])
            if marks[column] != r:
                marks[column] = r
                sums[column] = 0
                columns[count] = column
                count += 1
            sums[column] += value * b_data[j]


@compiled_part
def _sort_few(columns):
    """Sort the 1-d `columns` in place as Shell (1959), with the steps of Knuth (1973).

    Numba's own sort takes 2 s to compile.
    """
    step = 1
    while 3 * step < columns.size:
        step = 3 * step + 1
    while step > 0:
        for k in range(step, columns.size):
            column, place = columns[k], k
            while place >= step and columns[place - step] > column:
                columns[place] = columns[place - step]
                place -= step
            columns[place] = column
        step //= 3


@compiled_part
def _sort(columns, bits):
    """Sort the columns of a row in place, by a bit for each possible column unless these are too many.

    `bits` uint64, 64 columns a word, are zero before and after.
    """
    if bits.size > WORDS * columns.size:
        _sort_few(columns)
        return
    six, low = np.uint64(6), np.uint64(63)
    for k in range(columns.size):
        column = np.uint64(columns[k])
        bits[column >> six] |= np.uint64(1) << (column & low)
    place = np.uint64(0)
    for w in range(np.uint64(bits.size)):
        word = bits[w]
        while word != 0:
            columns[place] = (w << six) + np.uint64(trailing_zeros(word))
            word &= word - np.uint64(1)
            place += np.uint64(1)
        bits[w] = 0


@compiled
def _fill(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, marks, sums, indptr, indices, data, first, last):
    """Write indices (sorted) and data of rows first to last - 1 of A @ B, from the row pointers `indptr` of the result.

    A and B are in CSR form: a_indptr, a_indices, a_data and b_indptr, b_indices, b_data. `marks` [columns], -1 before,
    and `sums` [columns] are scratch memory.
    """
    bits = np.zeros(marks.size // 64 + 1, np.uint64)
    for r in range(first, last):
        columns, values = indices[indptr[r] : indptr[r + 1]], data[indptr[r] : indptr[r + 1]]
        _fill_row(r, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, marks, sums, columns)
        _sort(columns, bits)
        for k in range(columns.size):
            values[k] = sums[np.uint64(columns[k])]


@compiled_parallel
def _count_parts(a_indptr, a_indices, b_indptr, b_indices, width, counts, bounds):
    """Write the number of stored entries of row r of A @ B to counts[r + 1], on several threads.

    The patterns are in CSR form: a_indptr, a_indices and b_indptr, b_indices; `width` is the number of columns; part p
    does rows bounds[p] to bounds[p + 1] - 1.
    """
    for part in prange(bounds.size - 1):
        marks = np.full(width, -1, np.int64)
        _count(a_indptr, a_indices, b_indptr, b_indices, marks, counts, bounds[part], bounds[part + 1])


@compiled_parallel
def _fill_parts(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, width, indptr, indices, data, bounds):
    """Write indices and data of A @ B on several threads, as `_fill`; part p does rows bounds[p] to bounds[p + 1] - 1.

    A and B are in CSR form: a_indptr, a_indices, a_data and b_indptr, b_indices, b_data; `width` is the number of
    columns of B, indptr [R + 1] the row pointers of the result.
    """
    for part in prange(bounds.size - 1):
        marks, sums = np.full(width, -1, np.int64), np.empty(width, data.dtype)
        first, last = bounds[part], bounds[part + 1]
        _fill(
            *(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data),
            *(marks, sums, indptr, indices, data, first, last),
        )


def _numbered(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return (columns, names, width): B's columns renumbered without gaps if that makes them fewer, else unchanged.

    names[c] is the original column of c, None if unchanged; `width` bounds the returned columns.
    """
    width = int(largest(indices)) + 1 if indices.size else 0
    if width <= indices.size:
        return indices, None, width
    names, segments, permutation = sort_segments(indices, width)
    numbers = np.empty_like(indices)
    _number_columns(segments, permutation, numbers)
    return numbers, names, names.size


def cpu(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data):
    """Compute A @ B in CSR form on the CPU.

    A [R, D] is (a_indptr, a_indices, a_data), B (b_indptr, b_indices, b_data): indices int32|int64, data
    float32|float64. Returns new arrays (indptr [R+1], indices, data); columns ascend, terms that cancel stay as stored
    zeros. Indices have A's dtype, or int64 if the result needs it.
    """
    rows = a_indptr.size - 1
    columns, names, width = _numbered(b_indices)
    terms = np.empty(rows + 1, np.int64)
    count_terms(a_indptr, a_indices, b_indptr, terms)
    serial = is_serial(int(terms[-1]) * ENTRY_COST)
    bounds = np.array((0, rows)) if serial else equal_cost(terms, get_threads())
    counts = np.zeros(rows + 1, np.int64)
    a, b = (a_indptr, a_indices, a_data), (b_indptr, columns, b_data)
    if serial:
        marks = np.full(width, -1, np.int64)
        _count(*a[:2], *b[:2], marks, counts, 0, rows)
    else:
        _count_parts(*a[:2], *b[:2], width, counts, bounds)
    stored = int(counts.sum())
    kind = index_type(stored, a_indptr.dtype)
    indptr, indices, data = counts.cumsum(dtype=kind), np.empty(stored, kind), np.empty(stored, a_data.dtype)
    if serial:
        marks[:] = -1
        _fill(*a, *b, marks, np.empty(width, data.dtype), indptr, indices, data, 0, rows)
    else:
        _fill_parts(*a, *b, width, indptr, indices, data, bounds)
    return indptr, indices if names is None else names[indices].astype(kind, copy=False), data


_KERNELS = [f"{name}<{value}>" for name in ("expand_terms", "add_terms") for value in FLOATS]
_CUDA = source(__file__, ["count_terms", "mark_elements", *_KERNELS])


def gpu(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data):
    """Compute A @ B in CSR form on a CUDA device; waits for it.

    A is (a_indptr, a_indices, a_data), B (b_indptr, b_indices, b_data), on the device; results as of `cpu`. Memory
    grows with the products of two entries, about 50 bytes for each.
    """
    device, entries, wide, rows = (
        devices.device_of(a_data),
        a_indices.size,
        on_device.is_wide(a_indices),
        a_indptr.size - 1,
    )
    i64, value = np.dtype(np.int64), c_name(a_data.dtype)
    counts = device.empty(entries, i64)
    device.launch(_CUDA, "count_terms", blocks(entries), a_indices, b_indptr, wide, entries, counts)
    starts, of_entry = on_device.scan(counts, i64), on_device.rows_of(a_indptr, entries, i64)
    terms = int(device.read(starts[entries:])[0])  # synchronize!
    row, column, values = device.empty(terms, i64), device.empty(terms, i64), device.empty(terms, a_data.dtype)
    operands = starts, of_entry, a_indices, b_indptr, b_indices, wide, a_data, b_data, entries, terms
    device.launch(_CUDA, f"expand_terms<{value}>", blocks(terms), *operands, row, column, values)
    _, by_column = on_device.sort(column, on_device.survey(column, 0)[2] + 1, i64)
    ordered, turn = on_device.sort(on_device.gathered(row, by_column), max(rows, 1), i64)
    places, flags = on_device.gathered(by_column, turn), device.empty(terms, i64)
    device.launch(_CUDA, "mark_elements", blocks(terms), ordered, column, places, terms, flags)
    ranks = on_device.scan(flags, i64)
    stored = int(device.read(ranks[terms:])[0])  # synchronize!
    kind = index_type(stored, a_indptr.dtype)
    out_row, indices, data = device.empty(stored, i64), device.empty(stored, kind), device.empty(stored, a_data.dtype)
    results = ranks, terms, out_row, indices, on_device.is_wide(indices), data
    device.launch(_CUDA, f"add_terms<{value}>", blocks(terms), ordered, column, places, values, *results)
    return on_device.starts_of(out_row, rows, kind), indices, data


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: rows of B have N entries each.

    Each distinct one moves once, and no two products meet.
    """
    entry = s.index + s.value
    fixed = s.z * (1 + s.N) * entry + 2 * (s.R + 1) * s.index
    return Cost(2 * s.z * s.N, fixed + s.U * (2 * s.index + s.N * entry), s.z * s.N * entry)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: A, and a B [D, 2*N+3] with N unsorted entries a row, some twice.

    If the seed is odd, the columns of B are far apart.
    """
    random = np.random.default_rng((case.seed, case.D))
    indices = random.integers(0, 2 * case.N + 3, case.D * case.N) * (1 + case.seed % 2 * 99_991)
    index = case.indices.dtype
    b = (np.arange(case.D + 1) * case.N).astype(index), indices.astype(index), case.dense(case.D * case.N)
    return case.indptr, case.indices, case.data, *b


register_kernel(
    __name__,
    "csr_csr",
    "a_indptr:i[R+1]^z a_indices:i[z]<D a_data:f[z] b_indptr:i[D+1]^y b_indices:i[y]< b_data:f[y]",
    writes=(),
)
