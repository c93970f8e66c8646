"""The Dataset record, and what can be done to one: fewer rows, fewer features, another order, a held-out part."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from workbench import formats
from workbench.data.dataset.stored import StoredRows
from workbench.data.errors import DataError
from workbench.data.labels.meaning import Labels
from workbench.data.labels.per_class import some_of_each_class
from workbench.formats.compressed import assemble
from workbench.formats.indices import index_dtype, kept_or_widened

ROW_NORM = 4.0
"""2-norm of the rows of the data sets made here: SGD on the squared loss is then stable at any rate below 2 / 4**2."""

HELD = {
    "classes": (("int64",), (1,), "class numbers are int64 [rows]"),
    "numbers": (("float32", "float64"), (1, 2), "numbers are float32 or float64, [rows] or [rows, N]"),
    "multilabel": (("uint8",), (2,), "columns of 0 and 1 are uint8 [rows, N]"),
}
"""Types and dimensions that `y` may have, by the kind of the labels, and that in words."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A matrix with its labels.

    `x` csr_array [rows, features], float32, int32 indices where they suffice, columns sorted and unique in each row; or
    `StoredRows`, of a set that is read from disk as it is trained on.
    `labels` says what `y` means; its kind says what `y` holds: of `classes` int64 [rows], their numbers; of `numbers`
    float32 or float64 [rows] or [rows, N]; of `multilabel` uint8 [rows, N], a column of 0 and 1 for each class.
    `groups` int64 [rows] or None: rows of one group resemble each other and are never parted by `split`.
    `facts` are figures about how it was made, for people; its `reread` holds the parameters, JSON values by name, with
    which its source reads another file into the same columns. `graph` csr_array [rows, rows], float32, or None: the
    edges among the rows, the entry (i, j) the weight of the one from i to j; stored both ways where edges have no
    direction. Fewer rows keep the edges among themselves.
    """

    name: str
    x: scipy.sparse.csr_array
    y: np.ndarray
    labels: Labels
    source: str
    licence: str
    groups: np.ndarray | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    graph: scipy.sparse.csr_array | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.x, StoredRows):
            object.__setattr__(self, "x", _checked(self.x))
        if not isinstance(self.labels, Labels):
            advice = "give data.Labels('classes', names) or data.Labels('numbers')"
            raise DataError(f"labels is a {type(self.labels).__name__}; {advice}.")
        if not isinstance(self.y, np.ndarray):
            raise DataError(f"y is a {type(self.y).__name__}; it is an array: np.array(y).")
        for name in ("y", "groups"):
            array = getattr(self, name)
            if array is not None and len(array) != self.rows:
                raise DataError(f"{name} has {len(array)} entries for {self.rows} rows of x; it needs one for each.")
        self._check_y()
        self._check_graph()

    def _check_graph(self) -> None:
        """Refuse edges that are not among the rows (`DataError`), or malformed (`FormatError`)."""
        if self.graph is None:
            return
        if formats.format_of(self.graph) != "csr":
            raise DataError(
                f"graph is {formats.format_of(self.graph)}; edges are csr: formats.to_format(graph, 'csr')."
            )
        if self.graph.shape != (self.rows, self.rows):
            shape = " x ".join(map(str, self.graph.shape))
            raise DataError(f"graph is {shape} for {self.rows} rows of x; it has a row and a column for each of them.")
        object.__setattr__(self, "graph", formats.check(formats.enter(self.graph)[1], dtypes=formats.FLOATS))

    def _check_y(self) -> None:
        """Refuse labels that do not hold what their kind says (`DataError`)."""
        dtypes, dimensions, allowed = HELD[self.kind]
        if self.y.dtype.name not in dtypes or self.y.ndim not in dimensions:
            raise DataError(f"y is {self.y.dtype} {list(self.y.shape)}; {allowed}: y.astype(np.{dtypes[0]}).")
        if self.kind == "classes" and self.rows and not 0 <= self.y.min() <= self.y.max() < len(self.classes):
            own = f"y holds the class numbers {self.y.min()} to {self.y.max()}"
            raise DataError(f"{own}; with {len(self.classes)} classes they start at 0.")
        if self.kind == "multilabel" and (self.y.shape[1] != len(self.classes) or self.y.max(initial=0) > 1):
            own = f"y holds {self.y.shape[1]} columns up to {self.y.max(initial=0)}"
            raise DataError(f"{own}; {len(self.classes)} classes have a column of 0 and 1 each.")

    @property
    def kind(self) -> str:
        """The kind of the labels: `classes`, `numbers` or `multilabel`."""
        return self.labels.kind

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their labels; none for numbers."""
        return self.labels.classes

    @property
    def rows(self) -> int:
        """Number of samples."""
        return self.x.shape[0]

    @property
    def features(self) -> int:
        """Number of columns."""
        return self.x.shape[1]

    @property
    def density(self) -> float:
        """Stored entries / (rows * features); 0 for a matrix without elements."""
        return self.x.nnz / (self.rows * self.features) if self.rows and self.features else 0.0

    def __repr__(self) -> str:
        width = 1 if self.y.ndim == 1 else self.y.shape[1]
        counted = f"{len(self.classes):,} classes" if self.classes else f"{width:,} targets"
        size = f"{self.rows:,} rows x {self.features:,} features, {self.x.nnz / max(self.rows, 1):.3g} entries a row"
        edges = "" if self.graph is None else f", {self.graph.nnz:,} edges stored"
        return f"Dataset {self.name}: {size}, density {self.density:.3g}, {counted}{edges}"


def _checked(x: Any) -> scipy.sparse.csr_array:
    """A matrix as a data set holds it, or `DataError` or `FormatError`."""
    if formats.format_of(x) != "csr":
        raise DataError(f"x is {formats.format_of(x)}; a data set holds csr: formats.to_format(x, 'csr').")
    return formats.check(formats.enter(x)[1], dtypes=formats.FLOATS)


def canonical(x: Any) -> scipy.sparse.csr_array:
    """Any matrix as a data set holds it: float32, columns sorted and unique, int32 indices where they suffice.

    Duplicates are summed; `x` is never changed. Values that are not real and finite are refused (`DataError`,
    `FormatError`).
    """
    if x.dtype.kind not in "biuf":
        raise DataError(f"The values are {x.dtype}; a data set holds real numbers: x.astype(np.float32).")
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused below
        # SciPy's own astype sorts the indices, and follows those of a malformed matrix out of its arrays
        x = formats.astype(x, np.float32, copy=False)
    x = formats.to_format(x, "csr")
    dtype = index_dtype(*x.shape, x.nnz)
    x = assemble("csr", x.indptr.astype(dtype, copy=False), x.indices.astype(dtype, copy=False), x.data, x.shape)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return formats.check(x, full=True)


def take(dataset: Dataset, rows: np.ndarray) -> Dataset:
    """The rows of those numbers, in that order, and the edges among them. O(entries taken).

    Of stored rows only some that follow each other can be taken; nothing is read.
    """
    x = dataset.x
    if isinstance(x, StoredRows) and len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return between(dataset, int(rows[0]), int(rows[0]) + len(rows))
    parts = kernels.get("slice_rows").trusted(x.indptr, x.indices, x.data, np.asarray(rows, np.int64))
    x = assemble("csr", *parts, (len(rows), dataset.features))
    groups = None if dataset.groups is None else dataset.groups[rows]
    graph = None if dataset.graph is None else subgraph(dataset.graph, rows)
    return dataclasses.replace(dataset, x=x, y=dataset.y[rows], groups=groups, graph=graph)


def subgraph(graph: scipy.sparse.csr_array, rows: np.ndarray) -> scipy.sparse.csr_array:
    """The edges among the nodes of those numbers, which are renumbered in that order: graph[rows][:, rows]."""
    part = graph[rows][:, rows]
    part.sort_indices()
    return part


def between(dataset: Dataset, start: int, stop: int) -> Dataset:
    """Rows `start` to `stop`; of stored rows nothing is read, and labels share memory."""
    if not isinstance(dataset.x, StoredRows):
        return take(dataset, np.arange(start, stop))
    groups = None if dataset.groups is None else dataset.groups[start:stop]
    return dataclasses.replace(dataset, x=dataset.x.between(start, stop), y=dataset.y[start:stop], groups=groups)


def keep_rows(dataset: Dataset, n: int, seed: int = 0) -> Dataset:
    """`n` rows drawn at random, in the order they had; of stored rows, which are shuffled, the first ones.

    More than there are is refused (`DataError`), and stored rows that were not shuffled.
    """
    _check_count("rows", n, dataset.rows)
    if isinstance(dataset.x, StoredRows):
        _refuse_stored_order(dataset.x)
        return between(dataset, 0, n)
    return take(dataset, np.sort(np.random.default_rng(seed).permutation(dataset.rows)[:n]))


def shuffled(dataset: Dataset, seed: int = 0) -> Dataset:
    """All rows in random order, so that contiguous mini-batches mix classes."""
    return take(dataset, np.random.default_rng(seed).permutation(dataset.rows))


def keep_features(dataset: Dataset, k: int) -> Dataset:
    """The `k` columns that are stored in the most rows, in the order they had; ties go to the earlier column.

    Rows may become empty, and stay. Do this before `split`, or the parts keep different columns. No second file
    can be read `like` the result, whose columns have other numbers. More columns than there are is refused
    (`DataError`). O(nnz + features).
    """
    _check_count("features", k, dataset.features)
    x = dataset.x
    counts = np.bincount(x.indices, minlength=dataset.features)
    kept = np.sort(np.argsort(-counts, kind="stable")[:k])
    number = np.full(dataset.features, -1, x.indices.dtype)
    number[kept] = np.arange(k)
    indices = number[x.indices]
    facts = dataset.facts if k == dataset.features else {**dataset.facts, "features_kept": k}
    if "fields" in facts:
        of_field = np.searchsorted(np.cumsum(facts["fields"]), kept, side="right")
        facts = {**facts, "fields": np.bincount(of_field, minlength=len(facts["fields"])).tolist()}
    return dataclasses.replace(dataset, x=with_entries(x, indices >= 0, indices, (dataset.rows, k)), facts=facts)


def with_entries(
    x: scipy.sparse.csr_array, mask: np.ndarray, indices: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """The entries of `x` where `mask` is true, with `indices` for its own."""
    before = np.concatenate([[0], np.cumsum(mask)])  # int64 [nnz + 1]
    dtype = kept_or_widened(x.indices.dtype, before[-1])
    return assemble("csr", before[x.indptr].astype(dtype), indices[mask].astype(dtype), x.data[mask], shape)


def split(dataset: Dataset, held_out: float = 0.2, seed: int = 0) -> tuple[Dataset, Dataset]:
    """`(train, test)`, both in random order; `held_out` is the share of rows in the second, to the nearest row.

    Rows of one group stay together, so that what is held out was not half seen; the share is then met to the nearest
    group. Edges from one part to the other are in neither; `split_rows` gives the rows for a training that sees them.
    Stored rows were shuffled when they were converted: the last share of them is held out, whatever the seed, and those
    that were not shuffled are refused, as is a part that would be empty (`DataError`). Where `facts` has
    `trained_per_class`, so many rows of each class are trained on, whatever the share: as many as nodes have labels.
    """
    train, test = split_rows(dataset, held_out, seed)
    return take(dataset, train), take(dataset, test)


def split_rows(dataset: Dataset, held_out: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows of both parts of `split`, int64."""
    if not 0 < held_out < 1:
        raise DataError(f"held_out is {held_out}; it is a share of the rows, above 0 and below 1, such as 0.2.")
    if (per_class := dataset.facts.get("trained_per_class")) is not None:
        return some_of_each_class(dataset.kind, dataset.y, per_class, seed)
    if isinstance(dataset.x, StoredRows):
        _refuse_stored_order(dataset.x)
        order = np.arange(dataset.rows)[::-1]
        cut = dataset.rows - _cut(dataset, order, held_out)
        return order[::-1][:cut], order[::-1][cut:]
    order = np.random.default_rng(seed).permutation(dataset.rows)
    if dataset.groups is not None:
        order = _by_group(dataset.groups, order)
    cut = _cut(dataset, order, held_out)
    test, train = order[:cut], order[cut:]
    if dataset.groups is not None:  # mix the rows of different groups again
        rng = np.random.default_rng((seed, 1))
        test, train = rng.permutation(test), rng.permutation(train)
    return train, test


def _cut(dataset: Dataset, order: np.ndarray, held_out: float) -> int:
    """Number of rows of the order that are held out: the share to the nearest row, or the nearest border of groups."""
    cut = round(held_out * dataset.rows)
    if dataset.groups is not None and dataset.rows:
        borders = np.flatnonzero(np.diff(dataset.groups[order])) + 1
        cut = int(borders[np.argmin(np.abs(borders - cut))]) if len(borders) else 0
    if not 0 < cut < dataset.rows:
        what = "rows" if dataset.groups is None else "groups of rows"
        raise DataError(f"{dataset.rows} rows cannot be split with held_out={held_out}: too few {what} for two parts.")
    return cut


def _refuse_stored_order(x: StoredRows) -> None:
    if not x.is_shuffled:
        advice = "Convert it with shuffle, a seed"
        raise DataError(f"{x.place} stands in the order it came in: a part of it may be unlike the rest. {advice}.")


def _by_group(groups: np.ndarray, order: np.ndarray) -> np.ndarray:
    """`order` rearranged so that rows of a group follow each other, groups in the order of their first row."""
    _, first, inverse = np.unique(groups[order], return_index=True, return_inverse=True)
    return order[np.argsort(first[inverse], kind="stable")]


def _check_count(what: str, count: int, total: int) -> None:
    if not 1 <= count <= total:
        raise DataError(f"{count} {what} are asked for; the data set has {total}, so 1 to {total} can be kept.")
