"""Rows of data as nodes of a graph: normalised adjacency, and what two layers read around the rows of a batch."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse

import kernels
from workbench import formats, option_text
from workbench.formats.compressed import assemble, index_dtype, transposed

# Options of a model: a table of its numbers and choices, such as the width of a hidden layer.
#
# >>> of_model("m", {"hidden": Option(64, "units of a hidden layer", least=1)}, "hidden=16")
# {'hidden': 16}


class ModelError(ValueError):
    """A model is unknown or does not fit its arguments; the message says what is allowed."""


@dataclass(frozen=True)
class Option:
    """One option: its `default` (which gives its type), its meaning, and the allowed values.

    Numbers are between `least` and `most`; text is one of `allowed`, or matches the regular expression `form`, of which
    `like` is an example. Text of digits may be given as a number.
    """

    default: int | float | str
    meaning: str
    least: float | None = None
    most: float | None = None
    allowed: tuple[str, ...] = ()
    form: str = ""
    like: str = ""

    @property
    def values(self) -> str:
        """The allowed values in words, such as "a whole number from 1", for messages and help."""
        if self.allowed:
            return f"one of {', '.join(self.allowed)}"
        if self.form:
            return f"text such as {self.like}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        bounds = [("from", self.least), ("to", self.most)]
        return " ".join([kind, *(f"{word} {bound:g}" for word, bound in bounds if bound is not None)])

    def holds(self, value: Any) -> bool:
        """Return whether the value is allowed: type, bounds, choices or form."""
        if self.allowed:
            return value in self.allowed
        if self.form:
            return type(value) in (int, str) and re.fullmatch(self.form, str(value)) is not None
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def of_model(name: str, table: Mapping[str, Option], options: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return all options of the model `name` from those given, such as {"hidden": 16}, others at their defaults.

    A line of text such as "hidden=16" is parsed. Raises ModelError for an invalid one, an unknown name or a value that
    is not allowed.
    """
    try:
        given = option_text.read_options(options, "model_options")
    except ValueError as error:
        raise ModelError(str(error)) from None
    for option, value in given.items():
        if option not in table:
            known = f"its options are {', '.join(table)}" if table else "it has none"
            raise ModelError(f"The {name} model has no option {option!r}; {known}.")
        if not table[option].holds(value):
            raise ModelError(f"The option {option} of {name} is {value!r}; it is {table[option].values}.")
    return {option: given.get(option, entry.default) for option, entry in table.items()}


SHARE_MARKED = 32
"""From one entry for so many nodes on it is quicker to mark the nodes that are read than to sort the entries."""


@final
@dataclass(frozen=True, eq=False)
class Nodes:
    """All rows of the data, held-out ones too: `x` csr [n, D] the features, `edges` csr [n, n] the edges.

    Training row i is node i; held-out rows follow. Graph and features of all rows are used while the loss covers
    training labels only (transductive learning).
    """

    x: scipy.sparse.csr_array
    edges: scipy.sparse.csr_array

    @property
    def count(self) -> int:
        """Number of nodes n."""
        return self.x.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of features, edges and (predicted) normalised adjacency."""
        entries = self.edges.nnz + self.count
        normalised = formats.predicted_bytes("csr", self.count, self.count, entries, "float32", "int32")
        return formats.nbytes(self.x) + formats.nbytes(self.edges) + normalised

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """D^-1/2 (A + I) D^-1/2 as csr [n, n], float32, D the row sums of A + I (Kipf and Welling 2017, eq. 2); cached.

        Columns of a directed graph are divided by the roots of their own sums. O(edges). Raises ModelError for negative
        weights.
        """
        if self.edges.data.min(initial=0) < 0:
            raise ModelError(f"An edge has the weight {self.edges.data.min():g}; weights are 0 or more.")
        whole = (self.edges.astype(np.float64) + scipy.sparse.eye_array(self.count, format="csr")).tocsr()
        whole.sort_indices()
        roots = np.sqrt(whole.sum(axis=1)), np.sqrt(whole.sum(axis=0))
        rows = np.repeat(np.arange(self.count), np.diff(whole.indptr))
        values = (whole.data / (roots[0][rows] * roots[1][whole.indices])).astype(np.float32)
        dtype = index_dtype(*whole.shape, whole.nnz)
        indptr, indices = whole.indptr.astype(dtype, copy=False), whole.indices.astype(dtype, copy=False)
        return assemble("csr", indptr, indices, values, whole.shape)

    @cached_property
    def own_places(self) -> np.ndarray:
        """Index into the adjacency's entries of the diagonal entry of each node, int64 [n]; cached."""
        rows = np.repeat(np.arange(self.count), np.diff(self.adjacency.indptr))
        return np.flatnonzero(self.adjacency.indices == rows)


@final
@dataclass(frozen=True, eq=False)
class Around:
    """Rows that two layers read around those of a batch: all neighbours of each node, or `drawn` sampled ones if not 0.

    Called with a batch and a generator, it returns X of the rows read, and the transposed adjacency of each layer:
    `inner`
    [read by layer 1, read by layer 2] and `outer` [read by layer 2, R]. Lengths are rounded up by less than an eighth,
    with
    empty rows and columns, so that few different ones occur. Without a generator all neighbours are read. O(entries
    read).
    """

    nodes: Nodes
    dtype: np.dtype
    drawn: int = 0
    is_scaled: bool = False
    """Whether rows of X are divided by the sums of their absolute values."""

    def __call__(self, batch: Any, generator: np.random.Generator | None) -> Any:
        """Return the batch with X of the nodes that both layers read, and {"inner", "outer"} adjacencies.

        Neighbours are sampled if `drawn` is set and there is a generator.
        """
        outer, second = self._layer(batch.rows_index, len(batch.rows_index), generator)
        is_whole = not self.drawn and np.array_equal(second, batch.rows_index)  # then both layers read the same
        inner, first = (outer, second) if is_whole else self._layer(second, outer.shape[0], generator)
        return batch.with_x(self._features(first, inner.shape[0]), {"inner": inner, "outer": outer})

    def _layer(self, rows: np.ndarray, room: int, generator: np.random.Generator | None) -> tuple[Any, np.ndarray]:
        """Return (transposed adjacency rows as csr [nodes read, `room`], sorted nodes read int64) for the nodes `rows`.

        Without a generator, or with `drawn` 0, all neighbours are read.
        """
        if self.drawn and generator is not None:
            indptr, indices, values = self._draw_neighbours(rows, generator)
        else:
            indptr, indices, values = rows_of(self.nodes.adjacency, rows)
        read, columns = number_nodes(indices, self.nodes.count)
        shape = room, rounded(len(read), self.nodes.count)
        indptr = with_empty_rows(indptr, room)
        layer = assemble("csr", indptr, columns.astype(indptr.dtype), values.astype(self.dtype, copy=False), shape)
        return assemble("csr", *transposed(layer), shape[::-1]), read

    def _draw_neighbours(self, rows: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return rows of the adjacency with at most `drawn` neighbours each, as indptr, indices, values.

        The diagonal entry is kept. Of d others, c are drawn, one from each of c equal parts of a random rotation: each
        with probability c / d, none twice. Their values are multiplied by d / c, which keeps the expected sum (Hamilton
        et al. 2017 draw uniformly and take the mean). O(entries drawn).
        """
        adjacency, own = self.nodes.adjacency, self.nodes.own_places[rows]
        start = adjacency.indptr[rows].astype(np.int64)
        others = adjacency.indptr[rows + 1] - start - 1
        counts = np.minimum(others, self.drawn)
        of_row = np.repeat(np.arange(len(rows)), counts)
        part = np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts)
        d, c = others[of_row], counts[of_row]
        turn = generator.integers(0, np.maximum(others, 1))[of_row]
        place = (turn + generator.integers(part * d // c, (part + 1) * d // c)) % d
        place += start[of_row] + (place >= (own - start)[of_row])
        keys = np.concatenate([of_row, np.arange(len(rows))]), np.concatenate([place, own])
        order = np.lexsort(keys[::-1])
        scale = np.concatenate([d / c, np.ones(len(rows))])[order]
        places = keys[1][order]
        dtype = adjacency.indptr.dtype
        indptr = np.concatenate([[0], np.cumsum(counts + 1)]).astype(dtype)
        return indptr, adjacency.indices[places], adjacency.data[places] * scale

    def _features(self, rows: np.ndarray, room: int) -> scipy.sparse.csr_array:
        """Return the features of these rows as csr with `room` rows, the last ones empty, rows scaled if set."""
        indptr, indices, values = rows_of(self.nodes.x, rows)
        values = values.astype(self.dtype, copy=False)
        if self.is_scaled:
            sums = np.diff(np.concatenate([[0], np.cumsum(np.abs(values), dtype=np.float64)])[indptr])
            values /= np.repeat(np.where(sums > 0, sums, 1), np.diff(indptr))
        return assemble("csr", with_empty_rows(indptr, room), indices, values, (room, self.nodes.x.shape[1]))


def rows_of(x: scipy.sparse.csr_array, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr, indices, values) of the rows int [R] of a csr array, as new arrays."""
    slice_rows: Any = kernels.get("slice_rows")
    return slice_rows.trusted(x.indptr, x.indices, x.data, np.asarray(rows, np.int64))


def reach(nodes: Nodes, rows: int, drawn: int) -> tuple[float, int, int]:
    """Return upper estimates (mean neighbours of a node, rows that layer 2 reads for `rows` rows, rows of layer 1).

    `drawn` limits the neighbours, 0 for all.
    """
    neighbours = nodes.edges.nnz / max(nodes.count, 1)
    neighbours = min(neighbours, drawn) if drawn else neighbours
    second = min(math.ceil(rows * (1 + neighbours)), nodes.count)
    return neighbours, second, min(math.ceil(second * (1 + neighbours)), nodes.count)


def number_nodes(indices: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (distinct nodes in `indices`, sorted int64, position of each index among them); nodes are below `count`.

    >>> [part.tolist() for part in number_nodes(np.array([7, 2, 7]), 9)]
    [[2, 7], [1, 0, 1]]
    """
    if len(indices) * SHARE_MARKED < count:
        nodes, places = np.unique(indices, return_inverse=True)
        return nodes.astype(np.int64), places
    marked = np.zeros(count, bool)
    marked[indices] = True
    return np.flatnonzero(marked), (np.cumsum(marked) - 1)[indices]


def rounded(length: int, most: int) -> int:
    """Return `length` rounded up by less than an eighth, but at most `most`.

    >>> rounded(1000, 5000), rounded(9, 5000), rounded(4999, 5000)
    (1024, 9, 5000)
    """
    step = 2 ** max(length.bit_length() - 4, 0)
    return min(math.ceil(length / step) * step, most)


def with_empty_rows(indptr: np.ndarray, rows: int) -> np.ndarray:
    """Return row pointers extended to `rows` rows by empty rows; same dtype."""
    return np.pad(indptr, (0, rows + 1 - len(indptr)), mode="edge")


def nodes_of(facts: Mapping[str, Any], rows: int, features: int) -> Nodes:
    """Return the nodes among the facts; ModelError unless features match and there are at least `rows` nodes."""
    nodes = facts["graph"]
    if nodes.x.shape[1] != features or rows > nodes.count:
        of_nodes = f"{nodes.count:,} nodes of {nodes.x.shape[1]:,} features"
        raise ModelError(f"The graph has {of_nodes}; {rows:,} rows of {features:,} features came, no nodes of it.")
    return nodes
