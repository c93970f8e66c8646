"""Matrices whose order SciPy remembers wrongly, as after their owner has written to their arrays."""

import numpy as np
import scipy.sparse

KINDS = [f"{format}_{kind}" for format in ("csr", "csc", "coo") for kind in ("array", "matrix")]
FAULTS = ["folded", "reversed"]


def stale(kind, fault, dtype=np.float64):
    """Return (matrix whose flags say sorted and unique although it is not, the same as a canonical csr array).

    Columns are "folded", so that entries meet, or each row or column is "reversed". Its arrays are read-only.
    """
    x = scipy.sparse.random_array((240, 40), density=0.2, format="csr", rng=np.random.default_rng(0)).astype(dtype)
    x = getattr(scipy.sparse, kind)(x)
    x.sum_duplicates()
    assert x.has_canonical_format
    row, col = x.tocoo().coords
    row, col = (row.copy(), col % 16) if fault == "folded" else (row, col)
    if x.format == "coo":
        x.row[:], x.col[:] = row, col
        order = slice(None, None, -1 if fault == "reversed" else 1)
        x.coords, x.data = (x.row[order].copy(), x.col[order].copy()), x.data[order].copy()
        x.has_canonical_format = True
        places = x.coords
    else:
        if fault == "folded":
            x.indices %= 16
        else:
            for first, last in zip(x.indptr[:-1], x.indptr[1:], strict=True):
                x.indices[first:last], x.data[first:last] = x.indices[first:last][::-1], x.data[first:last][::-1]
        major = np.repeat(np.arange(len(x.indptr) - 1), np.diff(x.indptr))
        places = (major, x.indices) if x.format == "csr" else (x.indices, major)
    true = np.zeros(x.shape, dtype)
    np.add.at(true, tuple(places), x.data)
    for part in (x.data, *x.coords) if x.format == "coo" else (x.data, x.indices, x.indptr):
        part.flags.writeable = False
    assert x.has_canonical_format
    return x, scipy.sparse.csr_array(true)
