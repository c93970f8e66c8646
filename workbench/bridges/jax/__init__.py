"""JAX: sparse rows as BCOO and BCSR of a fixed size, batches that never compile a step anew, a product by segment sums.

A loop of logistic regression on sparse rows; `step` is compiled once.

>>> import jax, jax.numpy as jnp
>>> from workbench import data
>>> from workbench.bridges.jax import batches, sparse_product
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> @jax.jit
... def step(w, batch):
...     def loss(w):
...         scores = sparse_product(batch.matrix, w)[:, 0]
...         each = jnp.logaddexp(0, scores) - scores * batch.labels
...         return jnp.sum(each * batch.weights) / jnp.sum(batch.weights)
...     value, gradient = jax.value_and_grad(loss)(w)
...     return w - 0.5 * gradient, value
>>> w, losses = jnp.zeros((train.features, 1)), []
>>> for batch in batches(train, rows=64, shuffle=True):
...     w, value = step(w, batch)
...     losses.append(float(value))
>>> step._cache_size(), losses[-1] < losses[0]
(1, True)

JAX compiles a function again for every other shape, and the number of stored entries is part of the shape. So all
batches here have as many: what is missing is **padding**, entries of value 0 whose row and column are the lengths of
the matrix, as JAX's own `BCOO.fromdense(x, nse=...)` has them. They take time and memory like others; `Padded.padding`
and `Batch.padding` are their number. Indices are int32; matrices that need more are refused, which
`BCOO.from_scipy_sparse` hands on with other columns, without a word.

`sparse_product` gathers the rows of W that the entries need and sums them by segments: on a CPU faster than `BCOO @ W`.
With `gather` and `scatter_add` the step leaves all other rows of W alone, so that its time does not depend on their
number; that is plain gradient descent, and no other optimizer.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench import data, formats
from workbench.bridges.contracts import Source, feed_of, require, require_sound

try:
    import jax
    from jax.experimental import sparse
except ImportError as error:
    raise ImportError("workbench.bridges.jax needs JAX: pip install 'sparse-workbench[jax]'.") from error


class Padded(NamedTuple):
    """A matrix in a form of JAX, and how much of it is not padding: `rows` and stored `entries`."""

    matrix: Any
    rows: int
    entries: int

    @property
    def padding(self) -> int:
        """Number of stored entries that are padding."""
        return self.matrix.nse - self.entries


class Batch(NamedTuple):
    """A batch for a compiled function: BCOO [R, D], labels [R, ...] or None, weights float32 [R], rows and entries.

    Weights are 1, and 0 for rows that fill up the batch; the labels of those that are empty are 0. Multiply the loss of
    each row by them. `rows` and `entries` are those that are not padding.
    """

    matrix: Any
    labels: Any
    weights: Any
    rows: int
    entries: int

    @property
    def padding(self) -> int:
        """Number of stored entries that are padding."""
        return self.matrix.nse - self.entries


def to_bcoo(x: Any, *, rows: int | None = None, entries: int | None = None, width: int | None = None) -> Padded:
    """Return a matrix in any format as BCOO of a fixed size: int32 indices in row-major order, duplicates summed.

    Parameters
    ----------
    x : array or sparse matrix [R, D]
        float32; float64 with `jax_enable_x64` only, as JAX would round it without a word.
    rows, entries : int, optional
        Size of the result: rows [rows, D], and stored entries. Missing rows are empty. Missing entries are padding of
        value 0 at row `rows` and column D, outside of the matrix, which JAX leaves out. By default those of x.
    width : int, optional
        Number of columns that the model has; None allows any.

    Returns
    -------
    Padded
        The matrix, with the counts of rows and entries that are not padding. O(nnz + entries).

    Raises
    ------
    ContractError
        For what JAX would compute with in silence: NaN, an index out of range, more than 2**31 - 1 rows or columns.
    ValueError
        If x has more rows or entries than asked for.

    Examples
    --------
    >>> matrix, rows, entries = to_bcoo(scipy.sparse.csr_array(np.float32([[0, 2], [3, 0]])), rows=3, entries=4)
    >>> matrix.indices.tolist(), matrix.data.tolist(), rows, entries
    ([[0, 1], [1, 0], [3, 2], [3, 2]], [2.0, 3.0, 0.0, 0.0], 2, 2)
    """
    x, values, columns, shape = _padded_arrays(x, rows, entries, width)
    places = np.empty((len(values), 2), np.int32)
    places[:, 1] = columns
    places[: x.nnz, 0] = np.repeat(np.arange(x.shape[0], dtype=np.int32), np.diff(x.indptr))
    places[x.nnz :, 0] = shape[0]
    matrix = sparse.BCOO((values, places), shape=shape, indices_sorted=True, unique_indices=True)
    return Padded(jax.device_put(matrix), x.shape[0], x.nnz)


def to_bcsr(x: Any, *, rows: int | None = None, entries: int | None = None, width: int | None = None) -> Padded:
    """Return a matrix in any format as BCSR of a fixed size; parameters and errors are those of `to_bcoo`.

    Padding stands behind the last row: `indptr[-1]` is the count of entries without it. BCSR of JAX 0.10 multiplies
    from the left and little else.

    >>> padded = to_bcsr(scipy.sparse.csr_array(np.float32([[0, 2], [3, 0]])), entries=3)
    >>> padded.matrix.indptr.tolist(), padded.matrix.indices.tolist(), padded.padding
    ([0, 1, 2], [1, 0, 2], 1)
    """
    x, values, columns, shape = _padded_arrays(x, rows, entries, width)
    starts = np.full(shape[0] + 1, x.nnz, np.int32)
    starts[: x.shape[0] + 1] = x.indptr
    matrix = sparse.BCSR((values, columns, starts), shape=shape, indices_sorted=True, unique_indices=True)
    return Padded(jax.device_put(matrix), x.shape[0], x.nnz)


def _padded_arrays(
    x: Any, rows: int | None, entries: int | None, width: int | None
) -> tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray, tuple[int, int]]:
    """Return (canonical csr_array, values and columns int32 [entries] with padding, shape of the result)."""
    require_sound(x, "matrix -> BCOO")
    x = formats.to_format(x, "csr")
    require(x, for_="jax", boundary="matrix -> BCOO", width=width)
    x = formats.arrays.canonical(x)
    if x.dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ValueError(
            "The values are float64, which JAX would round to float32. Call x.astype(np.float32), or "
            "jax.config.update('jax_enable_x64', True)."
        )
    for name, came, size in (("rows", x.shape[0], rows), ("entries", x.nnz, entries)):
        if size is not None and came > size:
            raise ValueError(f"The matrix has {came:,} {name}; {name}={size:,} is less. Give {name}={came} or more.")
    shape = x.shape[0] if rows is None else rows, x.shape[1]
    size = x.nnz if entries is None else entries
    if max(*shape, size) > np.iinfo(np.int32).max:
        raise ValueError(f"A matrix {shape} with {size:,} entries needs indices of 64 bits; JAX has int32 here.")
    values, columns = np.zeros(size, x.dtype), np.full(size, shape[1], np.int32)
    values[: x.nnz], columns[: x.nnz] = x.data, x.indices
    return x, values, columns, shape


def from_jax(matrix: Any) -> scipy.sparse.csr_array:
    """Return the csr_array of a BCOO or BCSR of two dimensions, without its padding; duplicates are summed. O(nse).

    Raises TypeError for anything else.
    """
    if isinstance(matrix, sparse.BCSR):
        matrix = matrix.to_bcoo()
    if not isinstance(matrix, sparse.BCOO) or matrix.ndim != 2 or matrix.n_batch or matrix.n_dense:
        raise TypeError(f"A {type(matrix).__name__} came. Expected: a BCOO or BCSR [R, D] without batch dimensions.")
    places, values = np.asarray(matrix.indices), np.asarray(matrix.data)
    inside = (places < np.array(matrix.shape)).all(axis=1)
    row, col = places[inside].T
    return scipy.sparse.coo_array((values[inside], (row, col)), shape=matrix.shape).tocsr()


# X @ W of BCOO by gathered rows and segment sums. A step on gathered rows leaves all others of W alone.


def gather(matrix: Any, w: jax.Array) -> jax.Array:
    """Return the row of w [D, N] that each stored entry of a BCOO [R, D] needs, [nse, N]; 0 for padding."""
    return w.at[matrix.indices[:, 1]].get(mode="fill", fill_value=0)


def combine(matrix: Any, gathered: jax.Array) -> jax.Array:
    """Return X @ W [R, N] of a BCOO [R, D] and what `gather` returned, [nse, N].

    Its gradient towards `gathered` is that of each entry: pass it to `scatter_add`, which adds up those of a row of W.
    """
    products = matrix.data[:, None] * gathered
    return jax.ops.segment_sum(
        products, matrix.indices[:, 0], num_segments=matrix.shape[0], indices_are_sorted=matrix.indices_sorted
    )


def scatter_add(matrix: Any, w: jax.Array, values: jax.Array) -> jax.Array:
    """Return w [D, N] plus `values` [nse, N] at the columns of the stored entries of a BCOO; padding is left out.

    With w donated to a compiled function it is changed in place, in O(nse N) whatever D is.

    >>> matrix = to_bcoo(scipy.sparse.csr_array(np.float32([[0, 2], [3, 0]])), entries=3).matrix
    >>> scatter_add(matrix, jax.numpy.zeros((2, 1)), jax.numpy.ones((3, 1))).tolist()
    [[1.0], [1.0]]
    """
    return w.at[matrix.indices[:, 1]].add(values, mode="drop")


def sparse_product(matrix: Any, w: jax.Array) -> jax.Array:
    """Return X @ W [R, N] of a BCOO [R, D], padded or not, and w [D, N], with gradients towards both.

    The gradient of w is dense, [D, N]. O(nse N) time and memory. Raises TypeError for another kind of matrix.
    """
    if not isinstance(matrix, sparse.BCOO):
        raise TypeError(f"A {type(matrix).__name__} came; sparse_product takes a BCOO: to_bcoo(x).matrix.")
    return combine(matrix, gather(matrix, w))


# Batches of one size.


def entries_bound(feed: data.Feed, rows: int) -> int:
    """Return the stored entries that any batch of `rows` rows can have: those of the `rows` longest rows together.

    Reads the data of an epoch once. O(nnz).
    """
    lengths = np.concatenate([np.diff(formats.to_format(batch.x, "csr").indptr) for batch in feed.epoch(0)])
    return int(np.sort(lengths)[-rows:].sum())


def batches(
    source: Source,
    *,
    rows: int = 256,
    entries: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> Iterator[Batch]:
    """Yield the batches of an epoch, all of one size, so that a function compiled for the first takes each of them.

    Parameters
    ----------
    source : data.Feed, data.Dataset or path
        A data set or a file is cut into batches of `rows` rows here.
    rows : int, default 256
        Rows of a batch; the last one is filled up with empty rows of weight 0.
    entries : int, optional
        Stored entries of a batch. By default those of the longest rows together, which no batch can exceed; the data is
        read once more for that. Where some rows are far longer than others, that is mostly padding: give less.
    shuffle, seed : bool and int
        Whether rows are in random order, another one each epoch.
    epoch : int, default 0
        Number of the epoch.

    Yields
    ------
    Batch
        BCOO, labels and weights; `padding` says how many stored entries are padding.

    Raises
    ------
    ValueError
        If a batch has more rows or entries than that.
    """
    feed = feed_of(source, "batches", rows=rows, shuffle=shuffle, seed=seed, last="keep")
    entries = entries_bound(feed, rows) if entries is None else entries
    for batch in feed.epoch(epoch):
        matrix, count, stored = to_bcoo(batch.x, rows=rows, entries=entries)
        count -= batch.pad
        labels = None
        if batch.labels:
            labels = np.zeros((rows, *batch.y.shape[1:]), batch.y.dtype)
            labels[: batch.x.shape[0]] = batch.y
        weights = (np.arange(rows) < count).astype(np.float32)
        yield Batch(matrix, labels, weights, count, stored)


__all__ = [
    "Batch",
    "Padded",
    "batches",
    "combine",
    "entries_bound",
    "from_jax",
    "gather",
    "scatter_add",
    "sparse_product",
    "to_bcoo",
    "to_bcsr",
]
