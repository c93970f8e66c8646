"""Edges among the nodes of a graph: from pairs of ends to the matrix that a data set holds."""

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.formats.compressed import index_dtype


def graph_of(
    ends: tuple[np.ndarray, np.ndarray], weights: np.ndarray, nodes: int, directed: bool
) -> scipy.sparse.csr_array:
    """Return the csr matrix [nodes, nodes] float32 of edges from ends[0] to ends[1]; symmetric unless `directed`.

    Of repeated edges, in an undirected graph also of opposite ones, the largest weight counts. Loops and weights of 0
    are kept. O(edges * log(edges)). Refused (`FormatError`): weights that are not finite, ends out of range.

    >>> ends = np.array([0, 1, 0]), np.array([1, 0, 0])
    >>> graph_of(ends, np.array([1, 3, 1]), 2, directed=False).toarray()
    array([[1., 3.],
           [3., 0.]], dtype=float32)
    """
    rows, columns = (part.astype(np.int64, copy=False) for part in ends)
    if not directed:
        rows, columns, weights = np.append(rows, columns), np.append(columns, rows), np.append(weights, weights)
    order = np.argsort(rows * nodes + columns) if nodes < 2**31 else np.lexsort((columns, rows))
    rows, columns, weights = rows[order], columns[order], weights[order]
    first = np.flatnonzero((np.diff(rows, prepend=-1) != 0) | (np.diff(columns, prepend=-1) != 0))
    largest = np.maximum.reduceat(weights, first) if len(first) else weights
    dtype = index_dtype(nodes, len(first))
    indptr = np.searchsorted(rows[first], np.arange(nodes + 1)).astype(dtype)
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused below
        parts = {"indptr": indptr, "indices": columns[first].astype(dtype), "data": largest.astype(np.float32)}
    return formats.check(formats.get("csr").build(parts, (nodes, nodes)), full=True)
