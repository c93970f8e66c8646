"""Steps that rows have missed: products of small matrices over ranges of steps.

For some rules a step without gradient multiplies a row and its state by a 2 x 2 matrix. A row that was inactive needs
the product of the matrices between, another one for every row. `Spans` keeps products over blocks of 2, 4, 8, ... steps
in a tree: a product over n steps takes at most 2 log2 n of them. For many rows the products from every step to the last
are computed in one pass. No product is divided by another, so that singular matrices, as with a decay of one, are
handled, and nothing underflows early.
"""

from collections.abc import Sequence

import numpy as np
from numba import prange

from kernels.code_cache import inlined
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_count, parts

STEPS = 2**16
"""Steps that `Spans` has room for."""

ONE = np.uint64(1)


@compiled
def _times(left, right, out):
    """Write left @ right, 2 x 2 matrices as arrays (a, b, c, d) by rows, to `out`, which may be either operand."""
    a, b = left[0] * right[0] + left[1] * right[2], left[0] * right[1] + left[1] * right[3]
    c, d = left[2] * right[0] + left[3] * right[2], left[2] * right[1] + left[3] * right[3]
    out[0], out[1], out[2], out[3] = a, b, c, d


@compiled
def _append(tree, count, matrices):
    """Write matrices [n, 4] as the leaves of steps count, count + 1, ...

    Of the tree, and the products that they complete. `tree` [2 * S, 4] is changed in place: leaf of step s at S + s,
    node k the product of nodes 2k + 1 and 2k.
    """
    for number in range(matrices.shape[0]):
        node = tree.shape[0] // 2 + count + number
        for k in range(4):
            tree[node, k] = matrices[number, k]
        while node & 1:
            node >>= 1
            _times(tree[2 * node + 1], tree[2 * node], tree[node])


@inlined
def number_between(tree, start, stop):
    """Return the product of the scalars a of the steps start to stop - 1, from a tree [2 * S, 4]; O(log S).

    1.0 for none.
    """
    leaves, product = tree.shape[0] // 2, 1.0
    low, high = np.uint64(leaves + start), np.uint64(leaves + stop)
    while low < high:
        if low & ONE:
            product *= tree[low, 0]
            low += ONE
        if high & ONE:
            high -= ONE
            product *= tree[high, 0]
        low >>= ONE
        high >>= ONE
    return product


@inlined
def pair_between(tree, start, stop):
    """Return the product of the matrices of steps start to stop - 1, later ones on the left, as (a, b, c, d).

    O(log S).
    """
    leaves = tree.shape[0] // 2
    a, b, c, d = 1.0, 0.0, 0.0, 1.0  # of the earlier steps
    e, f, g, h = 1.0, 0.0, 0.0, 1.0  # of the later ones
    low, high = np.uint64(leaves + start), np.uint64(leaves + stop)
    while low < high:
        if low & ONE:
            w, x, y, z = tree[low, 0], tree[low, 1], tree[low, 2], tree[low, 3]
            a, b, c, d = w * a + x * c, w * b + x * d, y * a + z * c, y * b + z * d
            low += ONE
        if high & ONE:
            high -= ONE
            w, x, y, z = tree[high, 0], tree[high, 1], tree[high, 2], tree[high, 3]
            e, f, g, h = e * w + f * y, e * x + f * z, g * w + h * y, g * x + h * z
        low >>= ONE
        high >>= ONE
    return e * a + f * c, e * b + f * d, g * a + h * c, g * b + h * d


@compiled
def _numbers(tree, count, since, out):
    """Write to out[u, 0] the product of the factors of steps since[u] to count - 1, from a tree [2 * S, 4]."""
    for u in range(since.size):
        out[u, 0] = number_between(tree, since[u], count)


@compiled
def _pairs(tree, count, since, out):
    """Write to out[u] [4] the product of the matrices of steps since[u] to count - 1, from a tree [2 * S, 4]."""
    for u in range(since.size):
        out[u, 0], out[u, 1], out[u, 2], out[u, 3] = pair_between(tree, since[u], count)


@compiled_parallel
def _products(tree, count, since, bounds, out):
    """Write the products of steps since[u] to count - 1 to out [U, 1] (factors) or [U, 4] (matrices), in parallel.

    Part p does the rows bounds[p] to bounds[p + 1] - 1.
    """
    for part in prange(bounds.size - 1):
        here = slice(bounds[part], bounds[part + 1])
        if out.shape[1] == 1:
            _numbers(tree, count, since[here], out[here])
        else:
            _pairs(tree, count, since[here], out[here])


@compiled
def _to_last(tree, first, count, out):
    """Write to out[n] [4] the product of the matrices of steps first + n to count - 1; the last row is the identity.

    `out` has count - first + 1 rows; O(count - first).
    """
    leaf, steps = tree.shape[0] // 2 + first, count - first
    a, b, c, d = 1.0, 0.0, 0.0, 1.0
    for back in range(steps + 1):
        if back > 0:
            node = leaf + steps - back
            w, x, y, z = tree[node, 0], tree[node, 1], tree[node, 2], tree[node, 3]
            a, b, c, d = a * w + b * y, a * x + b * z, c * w + d * y, c * x + d * z
        place = steps - back
        out[place, 0], out[place, 1], out[place, 2], out[place, 3] = a, b, c, d


class Spans:
    """The matrices of up to `steps` steps (a power of two), appended one by one; float64."""

    def __init__(self, steps: int = STEPS) -> None:
        """Allocate an empty tree for `steps` steps, a power of two; memory pages are taken as they are written."""
        self.tree = np.zeros((2 * steps, 4))  # room is taken as it is written
        self.count = 0

    @property
    def leaves(self) -> np.ndarray:
        """Return the matrices of all steps so far, [count, 4], a view."""
        return self.tree[len(self.tree) // 2 :][: self.count]

    def append(self, matrix: tuple[float, ...]) -> None:
        """Append the matrix of the next step: (a, b, c, d) by rows, or (a,) for a scalar factor."""
        self.foresee([matrix], 1)
        self.count += 1

    def foresee(self, matrices: Sequence[tuple[float, ...]], steps: int) -> None:
        """Write the matrices of the next `steps` steps, one each or one for all, to the tree; `count` is unchanged."""
        whole = [matrix if len(matrix) == 4 else (*matrix, 0.0, 0.0, 1.0) for matrix in matrices]
        _append(self.tree, self.count, np.array(np.broadcast_to(whole, (steps, 4)), order="C"))  # writable

    def products(self, since: np.ndarray, columns: int) -> np.ndarray:
        """Return the product of the matrices from each step in `since` int64 [U] to the last, later ones on the left.

        float64 [U, columns], with `columns` 1 (scalar a) or 4. O(U + steps) in one pass if there are more rows than
        steps, else O(log STEPS) per row by the tree.
        """
        first = int(since.min()) if since.size else self.count
        if self.count - first <= since.size:
            every = np.empty((self.count - first + 1, 4))
            _to_last(self.tree, first, self.count, every)
            return every[:, :columns].take(since - first, axis=0)
        out = np.empty((since.size, columns))
        work = 32 * since.size * max(self.count, 1).bit_length()
        call_parallel(_products, work, self.tree, self.count, since, equal_count(since.size, parts()), out)
        return out


@compiled
def mark_not_zero(array, rows, marks):
    """Set marks[u], bool [U], to True if array[rows[u]] of [D, N] has an element that is not zero; others stay."""
    for u in range(rows.size):
        for value in array[rows[u]]:
            if value != 0:
                marks[u] = True
                break


@compiled
def _take_stale(last, rows, now, mark, stale, since):
    """Write the rows with last[row] < now to `stale` and their last[row] to `since`; return their count.

    Sets last[row] = mark for all of `rows`.
    """
    count = 0
    for u in range(rows.size):
        row = np.uint64(rows[u])
        if last[row] < now:
            stale[count], since[count] = rows[u], last[row]
            count += 1
        last[row] = mark
    return count


def take_stale(last: np.ndarray, rows: np.ndarray, now: int, mark: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows among `rows` int64 [U] whose `last` step is before `now`, and that step of each; O(U).

    `last` int64 [D] is set to `mark` (not before `now`) for all of `rows`, which must be in range: this is not checked.
    """
    stale, since = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
    count = _take_stale(last, rows, now, mark, stale, since)
    return stale[:count], since[:count]
