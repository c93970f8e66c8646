"""The Dataset record and the form of its matrix, rows block by block, and edges of a graph as a matrix."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from kernels.registry import format_count
from workbench import formats
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.formats.compressed import assemble, index_dtype, with_native_order

# Rows of a data set that stay on disk and are read when they are asked for.


class StoredRows(ABC):
    """Rows of a matrix [rows, features] that is never held whole; `read` and `read_runs` make CSR arrays of some.

    It has no `indptr`, `indices` and `data`: what needs them says so by `DataError`.
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """Path at which the rows are stored, for messages."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix: (rows, features)."""

    @property
    @abstractmethod
    def nnz(self) -> int:
        """Number of stored entries of these rows."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the values that reading returns."""

    @property
    @abstractmethod
    def is_shuffled(self) -> bool:
        """Whether the rows were stored in random order, so that consecutive ones are a sample of all."""

    @abstractmethod
    def astype(self, dtype: np.dtype) -> "StoredRows":
        """Return the same rows with values converted to `dtype` when they are read; nothing is read now."""

    @abstractmethod
    def between(self, start: int, stop: int) -> "StoredRows":
        """Return the rows `start` to `stop` (exclusive) as stored rows; nothing is read."""

    @abstractmethod
    def read_runs(self, runs: Sequence[tuple[int, int]]) -> Any:
        """Read rows `start` to `stop` (exclusive) of each (start, stop) in `runs`, in order, as one CSR array.

        Raises DataError if the files are damaged.
        """

    @abstractmethod
    def row_lengths(self) -> np.ndarray:
        """Return the number of stored entries of each row, int64 [rows]."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise DataError if files were truncated, removed, or replaced by others of another size."""

    def read(self, start: int, stop: int) -> Any:
        """Read rows `start` to `stop` (exclusive) as a CSR array; raises DataError if the files are damaged."""
        return self.read_runs([(start, stop)])

    def _refuse(self) -> NoReturn:
        """Raise DataError: the operation needs the whole matrix in memory."""
        advice = "Load it with whole=True (reading: whole=true) where it fits in memory"
        raise DataError(f"{self.place} is read row by row as it is trained on, and this needs it in memory. {advice}.")

    @property
    def indptr(self) -> np.ndarray:
        """Raise DataError: stored rows have no `indptr` in memory."""
        self._refuse()

    @property
    def indices(self) -> np.ndarray:
        """Raise DataError: stored rows have no `indices` in memory."""
        self._refuse()

    @property
    def data(self) -> np.ndarray:
        """Raise DataError: stored rows have no `data` in memory."""
        self._refuse()

    def __repr__(self) -> str:
        """Return class, path, shape, number of entries and dtype as text."""
        return f"<{type(self).__name__} {self.place}: csr {list(self.shape)}, {self.nnz:,} entries, {self.dtype}>"


def row_lengths(x: Any) -> np.ndarray:
    """Return the number of stored entries of each row of a CSR array or of stored rows, int64 [rows]."""
    return x.row_lengths() if isinstance(x, StoredRows) else np.diff(x.indptr).astype(np.int64)


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

    Examples
    --------
    >>> import workbench as wb
    >>> made = wb.load(([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]], ["yes", "no", "yes"]))
    >>> made.x.shape, made.y.tolist(), made.classes
    ((3, 2), [1, 0, 1], ('no', 'yes'))
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
        """Validate all fields: CSR of float, one label per row of the type its kind has, a square graph over the rows.

        Raises DataError, or FormatError for arrays that are not a valid CSR matrix.
        """
        if not isinstance(self.x, StoredRows):
            if formats.format_of(self.x) != "csr":
                format = formats.format_of(self.x)
                raise DataError(f"x is {format}; a data set holds csr: formats.to_format(x, 'csr').")
            x = formats.check(formats.validate(self.x)[1], dtypes=formats.FLOATS)
            object.__setattr__(self, "x", x)
        if not isinstance(self.labels, Labels):
            advice = "give data.Labels('classes', names) or data.Labels('numbers')"
            raise DataError(f"labels is a {type(self.labels).__name__}; {advice}.")
        if not isinstance(self.y, np.ndarray):
            raise DataError(f"y is a {type(self.y).__name__}; it is an array: np.array(y).")
        for name in ("y", "groups"):
            array = getattr(self, name)
            if array is not None and len(array) != self.rows:
                raise DataError(
                    f"{name} has {format_count(len(array), 'entry')} for {format_count(self.rows, 'row')} of x; "
                    "it needs one for each."
                )
        self._check_y()
        self._check_graph()

    def _check_graph(self) -> None:
        """Validate `graph`: CSR of float, [rows, rows].

        DataError for another format or shape, FormatError if it is invalid.
        """
        if self.graph is None:
            return
        if formats.format_of(self.graph) != "csr":
            raise DataError(
                f"graph is {formats.format_of(self.graph)}; edges are csr: formats.to_format(graph, 'csr')."
            )
        if self.graph.shape != (self.rows, self.rows):
            shape = " x ".join(map(str, self.graph.shape))
            raise DataError(
                f"graph is {shape} for {format_count(self.rows, 'row')} of x; "
                "it has a row and a column for each of them."
            )
        object.__setattr__(self, "graph", formats.check(formats.validate(self.graph)[1], dtypes=formats.FLOATS))

    def _check_y(self) -> None:
        """Raise DataError unless dtype, dimensions and range of `y` fit the kind of the labels."""
        dtypes, dimensions, allowed = HELD[self.kind]
        if self.y.dtype.name not in dtypes or self.y.ndim not in dimensions:
            raise DataError(f"y is {self.y.dtype} {list(self.y.shape)}; {allowed}: y.astype(np.{dtypes[0]}).")
        if self.kind == "classes" and self.rows and not 0 <= self.y.min() <= self.y.max() < len(self.classes):
            own = f"y holds the class numbers {self.y.min()} to {self.y.max()}"
            raise DataError(f"{own}; with {format_count(len(self.classes), 'class')} they start at 0.")
        if self.kind == "multilabel" and (self.y.shape[1] != len(self.classes) or self.y.max(initial=0) > 1):
            own = f"y holds {format_count(self.y.shape[1], 'column')} up to {self.y.max(initial=0)}"
            raise DataError(f"{own}; each class of {len(self.classes)} has a column of 0 and 1.")

    @property
    def kind(self) -> str:
        """The kind of the labels: `classes`, `numbers` or `multilabel`."""
        return self.labels.kind

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their indices; () for numbers."""
        return self.labels.classes

    @property
    def rows(self) -> int:
        """Number of samples."""
        return self.x.shape[0]

    @property
    def features(self) -> int:
        """Number of columns D of x."""
        return self.x.shape[1]

    @property
    def density(self) -> float:
        """Stored entries / (rows * features); 0 for a matrix without elements."""
        return self.x.nnz / (self.rows * self.features) if self.rows and self.features else 0.0

    def __repr__(self) -> str:
        """Return name, shape, density, number of classes or targets, and edges as one line."""
        width = 1 if self.y.ndim == 1 else self.y.shape[1]
        counted = format_count(len(self.classes), "class") if self.classes else format_count(width, "target")
        size = f"{format_count(self.rows, 'row')} x {format_count(self.features, 'feature')}"
        size = f"{size}, {self.x.nnz / max(self.rows, 1):.3g} entries a row"
        edges = "" if self.graph is None else f", {format_count(self.graph.nnz, 'edge')} stored"
        return f"Dataset {self.name}: {size}, density {self.density:.3g}, {counted}{edges}"


def canonical(x: Any) -> scipy.sparse.csr_array:
    """Return any matrix as a data set holds it: float32, columns sorted and unique, int32 indices where they suffice.

    `x` is a NumPy array or a SciPy sparse array or matrix of any format, of truth values, whole or real numbers of any
    size; it is never changed. Duplicates are summed; components of the other byte order are converted. Values that are
    not real and finite are refused (`DataError`, `FormatError`), and whole numbers that float64 rounds.
    """
    x = compressed(with_native_order(x))
    if x.dtype.kind not in "biuf":
        raise DataError(f"The values are {x.dtype}; a data set holds real numbers: x.astype(np.float32).")
    refuse_rounded(x.data if scipy.sparse.issparse(x) else x)
    are_bool = x.dtype == np.bool_
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused below
        # SciPy's own astype sorts the indices, and follows those of a invalid matrix out of its arrays
        x = formats.astype(with_known_values(x), np.float32, copy=False)
    x = formats.to_format(x, "csr")
    dtype = index_dtype(*x.shape, x.nnz)
    x = assemble("csr", x.indptr.astype(dtype, copy=False), x.indices.astype(dtype, copy=False), x.data, x.shape)
    summed = formats.arrays.canonical(x)
    if are_bool and summed.nnz < x.nnz:  # true and true is true
        summed.data = np.minimum(summed.data, 1)
    return formats.check(summed, full=True)


def compressed(x: Any) -> Any:
    """Return a sparse matrix in csr, csc or coo; other formats become csr, other objects are returned unchanged.

    Raises ValueError for a damaged bsr matrix.
    """
    if not scipy.sparse.issparse(x) or x.format in ("csr", "csc", "coo"):
        return x
    if x.format == "bsr":
        x.check_format(full_check=True)  # tocsr follows its indices wherever they lead
    return x.tocsr()


def with_known_values(x: Any, dtype: DTypeLike = np.float32) -> Any:
    """Return an array or csr, csc or coo matrix whose dtype is one of `formats`, unchanged or with values as `dtype`.

    Indices are shared and not checked.
    """
    if x.dtype in (*formats.FLOATS, np.int32, np.int64, np.uint8):
        return x
    if not scipy.sparse.issparse(x):
        return np.asarray(x, dtype)
    values = x.data.astype(dtype)
    if x.format == "coo":
        return scipy.sparse.coo_array((values, x.coords), shape=x.shape)
    return assemble(x.format, x.indptr, x.indices, values, x.shape)


EXACT = 1 << 53
"""Whole numbers up to this one are exact in float64."""


def refuse_rounded(values: Any) -> None:
    """Raise DataError for an int64 or uint64 value that float64 does not hold exactly, such as an id or a hash."""
    if not isinstance(values, np.ndarray) or values.dtype not in (np.int64, np.uint64) or not values.size:
        return
    if values.min() >= -EXACT and values.max() <= EXACT:
        return
    large = np.unique(values[(values > EXACT) | (values < -EXACT)])
    if rounded := next((value for value in large.tolist() if int(float(value)) != value), None):
        raise DataError(
            f"The matrix has the whole number {rounded}, beyond 2**53 and not exact as float64; expected numbers that "
            "training can hold, and an id or a hash as a category.\n"
            "Type x.astype(np.float64) to round such numbers, or leave the column out."
        )


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


class RowBlock(NamedTuple):
    """Some rows: `x` csr [R, D], columns sorted and unique in each row; a label for each; groups int64 [R] or None.

    Labels are as they stand in the file, numbers or text [R] or columns of numbers [R, N], of one kind in all blocks.
    """

    x: Any
    labels: np.ndarray
    groups: np.ndarray | None = None


@final
@dataclass(frozen=True)
class RowBlocks:
    """The rows of a data set, block by block, once; `source` and `licence` say where they come from.

    A block is a `RowBlock`, or a plain pair of its x and labels. Blocks may differ in width: the set has `features`
    columns, and where that is None as many as its widest block. `labels` says what labels mean that are already as a
    data set holds them; None if they are as in a file. `facts` are those of the set; what is known only when all is
    read may be put into it while the blocks come.
    """

    blocks: Iterable[tuple[Any, ...]]
    name: str
    source: str
    licence: str
    features: int | None = None
    labels: Labels | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class StreamedBlock(NamedTuple):
    """Rows of a file that are needed once: `x` csr [R, D], float32, and `labels` as in `RowBlock`.

    Its memory is used again when the next block is asked for. D is the number of columns so far, which may grow.
    `position` says where to go on behind it.
    """

    x: Any
    labels: np.ndarray
    position: int


@final
@dataclass(frozen=True)
class Stream:
    """Rows of a file for one pass in constant memory: `blocks(position)` yields each `StreamedBlock` from there on.

    0 is the beginning, another position that of a block. `end` is the position behind the last one, None if unknown.
    `facts` are those of a data set; `place(row)` says where a row stands, for messages.
    """

    blocks: Callable[[int], Iterator[StreamedBlock]]
    end: int | None
    facts: Mapping[str, Any]
    place: Callable[[int], str]
