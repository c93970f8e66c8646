"""The table of contracts: a row a contract, with the frameworks for which a violation is an error or a warning.

How to add a contract: write its function in `validation_checks`, and a row here. How to add a framework: a row in
`FRAMEWORKS`, and its name in the rows that count for it. `facts` has what was seen of a framework where a contract was
broken, tested against the installed release.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from kernels import structure
from workbench.bridges import facts
from workbench.formats import contract
from workbench.formats.contract import refuse
from workbench.formats.parts import COMPRESSED, Parts

# Faults of a matrix or its labels where one library hands it to another: a function for each contract.
#
# Each takes `Parts` and `Requirements`, and raises `FormatError` with what came, what is allowed and what to do.
# None follows an index outside of its array; which must hold before which is said by the table in `contracts`.


@dataclass(frozen=True)
class Requirements:
    """Requirements of the side that takes: None if it does not matter.

    `formats` that the framework takes, `width` of the model, `dtype` of values, `index_dtype`, whether the matrix must
    be `sparse`, and of labels `y` their kind (classes, signs, numbers) and how many classes there are. `origin` is the
    object that came, for rules of what its arrays do not show.
    """

    framework: str
    formats: tuple[str, ...]
    width: int | None = None
    dtype: Any = None
    index_dtype: Any = None
    sparse: bool = False
    y: Any = None
    labels: str | None = None
    classes: int | None = None
    origin: Any = None


def sparse(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError, with the bytes that came, for a dense array where a sparse one is asked for."""
    if asked.sparse and parts.format == "dense":
        came = f"A dense array {parts.shape} of {parts.values.nbytes:,} bytes came"
        raise refuse(came, "a sparse array", "Find what made it dense, or call densify with a budget where it is meant")


def held(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a format that the framework does not take, by the object that came.

    Keras takes bsr as rows alone, so with blocks of one row.
    """
    came = asked.origin.format if scipy.sparse.issparse(asked.origin) else parts.format  # lil and dok have other parts
    if came not in asked.formats or (asked.framework == "keras" and parts.block[0] > 1):
        advice = "Call x.tocsr()" if came != "row_sparse" else 'Call formats.to_format(x, "csr")'
        raise refuse(f"A {came} matrix came", ", ".join(asked.formats), advice)


def shape(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for other than [rows, columns]; a row_sparse gradient may have one dimension or more.

    `asked` is unused.
    """
    if parts.format != "row_sparse":
        contract.check_two_dimensions(parts.shape, parts.format)


def rows(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a matrix without rows; `asked` is unused."""
    if parts.shape[0] == 0:
        raise refuse(f"The matrix has shape {parts.shape}", "one row or more", "Leave empty batches out")


def width(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for another number of columns, or rows of a gradient, than `asked.width`; None allows any."""
    columns = parts.shape[-1] if parts.format != "row_sparse" else parts.shape[0]
    if asked.width is not None and columns != asked.width:
        what = "columns" if parts.format != "row_sparse" else "rows in all"
        advice = "Read it like the training data: data.load(..., like=train)"
        raise refuse(f"It has {columns} {what}", f"{asked.width}, as the model has", advice)


def index_types(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for an index array that is not a vector of int32 or int64; `asked` is unused."""
    for name, array in parts.indices.items():
        contract.check_index_types(**{name: array})


def index_widths(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError if some index arrays are int32 and some int64; `asked` is unused."""
    contract.check_index_types(**parts.indices)


def index_dtype(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for indices of another type than `asked.index_dtype`; None allows any."""
    for name, array in parts.indices.items():
        if asked.index_dtype is not None and array.dtype != asked.index_dtype:
            wanted = np.dtype(asked.index_dtype)
            raise refuse(f"{name} has dtype {array.dtype}", str(wanted), f"Call {name}.astype(np.{wanted})")


def narrow_indices(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for int64 indices, with the cast to type if the matrix is small enough for int32.

    `asked` is unused.
    """
    for name, array in parts.indices.items():
        if array.dtype == np.int64:
            fits = max((*parts.shape, len(parts.values))) <= np.iinfo(np.int32).max
            cast = "x.indices = x.indices.astype(np.int32); x.indptr = x.indptr.astype(np.int32)"
            cast = "x.coords = tuple(axis.astype(np.int32) for axis in x.coords)" if parts.format == "coo" else cast
            advice = f"Type {cast}" if fits else "It needs 64 bits; use an estimator that takes them"
            raise refuse(f"{name} has dtype int64", "int32", advice)


def index_limit(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a matrix with more rows, columns or entries than int32 counts; `asked` is unused."""
    if max((*parts.shape, len(parts.values))) > np.iinfo(np.int32).max:
        problem = f"The matrix has shape {parts.shape} and {len(parts.values):,} entries"
        raise refuse(problem, "at most 2**31 - 1 of each", "Fold its columns into fewer, or leave out those not used")


def lengths(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError if values and indices differ in number, or values are no vector where the format has one.

    The values [U, ...] of a gradient must have rows of its shape. `asked` is unused.
    """
    names = tuple(name for name in parts.indices if name != "indptr")
    if parts.format == "row_sparse" and parts.values.shape[1:] != parts.shape[1:]:
        problem = f"The values have shape {parts.values.shape} in a gradient of shape {parts.shape}"
        raise refuse(problem, f"rows of {parts.shape[1:]}", "Build the gradient again from its parts")
    if parts.format not in ("bsr", "row_sparse"):
        contract.check_one_dimension(parts.values)
    for name in names:
        contract.check_same_length(parts.values, parts.indices[name], ("data", name))


def pointers(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for starts of rows that do not rise from 0 to the number of entries. O(rows).

    `asked` is unused.
    """
    entries, count = len(parts.values), parts.lengths[0]
    if len(parts.starts) == count + 1 and structure.rises(parts.starts, entries):
        return
    contract.check_pointers(parts.starts, count, entries, "columns" if parts.format == "csc" else "rows")


def ranges(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for an index outside of the shape. O(nnz). `asked` is unused."""
    if parts.format in COMPRESSED:
        limits = {"indices": (parts.lengths[1], "rows" if parts.format == "csc" else "columns")}
    else:
        columns = parts.shape[-1], "columns"
        limits = {name: columns if name == "col" else (parts.shape[0], "rows") for name in parts.indices}
    for name, (limit, axis) in limits.items():
        contract.check_range(parts.indices[name], limit, name, axis)


def numbers(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for values that are no real numbers, or in the byte order of other machines.

    `asked` is unused.
    """
    kind = parts.values.dtype
    if kind.kind not in "biuf" or not kind.isnative:
        raise refuse(f"The values are {kind}", "real numbers, best float32", "Call x.astype(np.float32)")


def floats(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for values that are whole numbers, truth values or wider than 64 bits; `asked` is unused."""
    kind = parts.values.dtype
    if kind.kind in "biu" or kind.itemsize > 8:
        raise refuse(f"The values are {kind}", "float32", "Call x.astype(np.float32)")


def single(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for float64, unless `asked.dtype` is given."""
    if parts.values.dtype == np.float64 and asked.dtype is None:
        advice = "Call x.astype(np.float32), and write x * 0.5 for x / 2, which makes float64 of float32"
        raise refuse("The values are float64", "float32, of half the bytes", advice)


def dtype(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for values of another type than `asked.dtype`; None allows any."""
    if asked.dtype is not None and parts.values.dtype != asked.dtype:
        wanted = np.dtype(asked.dtype)
        raise refuse(f"The values are {parts.values.dtype}", str(wanted), f"Call x.astype(np.{wanted})")


def finite(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for NaN and infinite values, with their count and the first one's place. O(nnz).

    `asked` is unused.
    """
    if parts.values.dtype.kind != "f":
        return
    wrong = parts.values.size - int(np.count_nonzero(np.isfinite(parts.values)))
    if wrong:
        at = np.unravel_index(int(np.argmin(np.isfinite(parts.values))), parts.values.shape)
        first = f"the first is {parts.values[at]} at {', '.join(map(str, at))}"
        problem = f"{wrong:,} of {parts.values.size:,} stored values are not finite, {first}"
        raise refuse(problem, "finite values", "Find where they come from; np.nan_to_num(x.data) replaces them")


def row_order(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for coo entries whose rows are not in ascending order; equal ones may follow. O(nnz).

    `asked` is unused.
    """
    row = parts.arrays["row"]
    falls = row[1:] < row[:-1]
    if falls.any():
        at = int(np.argmax(falls)) + 1
        problem = f"The rows are unsorted: row[{at}] is {row[at]}, after {row[at - 1]}"
        raise refuse(problem, "rows in ascending order", "Call x.tocsr().tocoo()")


def column_order(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError, with their count, for entries after a larger index of their row, or of their column in csc.

    `asked` is unused.
    """
    if parts.order.falls:
        problem = f"{parts.order.falls:,} entries stand after a larger index of their {_line(parts)}"
        raise refuse(problem, "ascending order", "Call x.sort_indices(); a coo matrix x.tocsr() first")


def duplicates(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError if two entries, or blocks, have the same row and column, with the count and the first one.

    `asked` is unused.
    """
    if parts.order.first is not None:
        one, more = ("block", "blocks") if parts.format == "bsr" else ("entry", "entries")
        row, column = parts.order.first
        count = f"1 {one} stands" if parts.order.repeats == 1 else f"{parts.order.repeats:,} {more} stand"
        problem = f"{count} where another does, first at row {row}, column {column}"
        raise refuse(problem, "each place once", "Call x.sum_duplicates(); a coo matrix x.tocsr() first")


def unique_rows(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a gradient that names a row twice. O(U), O(U log U) where rows are unsorted.

    `asked` is unused.
    """
    indices = parts.arrays["indices"]
    if structure.is_rising(indices, parts.shape[0]):
        return
    unique, counts = np.unique(indices, return_counts=True)
    if len(unique) < len(indices):
        problem = f"Row {unique[np.argmax(counts > 1)]} is there {counts.max()} times"
        raise refuse(problem, "each row once", "Sum what belongs together: RowSparse.from_rows(indices, values, shape)")


def gradient_of_values(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a sparse tensor that requires a gradient, which most products make dense."""
    if parts.format != "dense" and getattr(asked.origin, "requires_grad", False):
        advice = "Write torch.sparse.mm(x, weight), or call x.detach() if its values are not trained"
        raise refuse("The sparse tensor requires a gradient", "one that does not", advice)


def padding(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a BCOO matrix with more padding, entries outside of its shape, than other entries."""
    stored = int(getattr(asked.origin, "nse", 0))
    padded = stored - len(parts.values)
    if padded > len(parts.values):
        advice = "Cut the rows out of the SciPy matrix, and call BCOO.from_scipy_sparse(x[start:stop])"
        raise refuse(f"{padded:,} of {stored:,} stored entries are padding", "fewer than half", advice)


def zeros_are_missing(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a sparse matrix, whose places without an entry count as missing; `asked` is unused."""
    if parts.format != "dense":
        advice = "Give fit and predict the same type; for a dense array write xgboost.DMatrix(x, missing=0.0)"
        raise refuse(f"A {parts.format} matrix came", "one meaning of what is not stored, in all calls", advice)


def stored_zeros(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError, with their count, for zeros among the entries of a matrix; O(nnz). `asked` is unused."""
    zeros = parts.values.size - int(np.count_nonzero(parts.values))
    if zeros:
        raise refuse(f"{zeros:,} stored values are 0", "values other than 0", "Call x.eliminate_zeros()")


def frame(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a sparse frame of pandas, whose zeros count as values; `parts` is unused."""
    if type(asked.origin).__name__ == "DataFrame":
        advice = "Call scipy.sparse.csr_array(frame.sparse.to_coo()) before fit and before predict"
        raise refuse("A sparse frame came", "the same type for fit and predict", advice)


def sparse_array(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for a SciPy sparse array where a sparse matrix is taken; `parts` is unused."""
    if isinstance(asked.origin, scipy.sparse.sparray):
        advice = f"Call scipy.sparse.{asked.origin.format}_matrix(x)"
        raise refuse(f"A {type(asked.origin).__name__} came", "a sparse matrix", advice)


def label_count(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for another number of labels than of rows; a label without dimensions counts as none."""
    count = asked.y.shape[0] if asked.y.ndim else 0
    if count != parts.shape[0]:
        raise refuse(f"There are {count} labels for {parts.shape[0]} rows", "one for each row", "Cut both alike")


def label_values(parts: Parts, asked: Requirements) -> None:
    """Raise FormatError for labels that are not finite, or not of the kind `asked.labels`; None allows any kind.

    Of sparse labels only stored values are looked at. Classes must be below `asked.classes`, None for no limit. `parts`
    is unused.
    """
    y = asked.y.data if scipy.sparse.issparse(asked.y) else asked.y
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise refuse(f"A label is {y[~np.isfinite(y)].flat[0]}", "finite numbers", "Leave these rows out")
    if asked.labels is None:
        return
    allowed, is_right, advice = KINDS_OF_LABELS[asked.labels]
    right = is_right(y, asked.classes) if y.dtype.kind in "biuf" else np.zeros(y.shape, bool)
    if not right.all():
        allowed = allowed if asked.classes is None else f"{allowed} below {asked.classes}"
        raise refuse(f"A label is {y[~right].flat[0]!s}", allowed, advice)


def _line(parts: Parts) -> str:
    """Return "column" for csc, which is stored by columns, else "row"."""
    return "column" if parts.format == "csc" else "row"


def _is_class(y: np.ndarray, classes: int | None) -> np.ndarray:
    """Return bool [rows]: which labels are whole, from 0, and below `classes`, None for no limit."""
    return (y >= 0) & (y == np.floor(y)) & (y < (np.inf if classes is None else classes))


KINDS_OF_LABELS: dict[str, tuple[str, Callable[[np.ndarray, int | None], np.ndarray], str]] = {
    "classes": ("whole numbers from 0 on", _is_class, "Number them: np.unique(y, return_inverse=True)[1]"),
    "signs": ("-1 and 1", lambda y, classes: np.abs(y) == 1, "Write np.where(y == positive, 1, -1)"),
    "numbers": ("numbers", lambda y, classes: np.ones(y.shape, bool), "Turn them into numbers"),
}
"""Kinds of labels: (what is allowed, which labels are, what to do)."""


ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Framework:
    """A framework that takes a matrix: its name in sentences, the formats that it takes, and the kind of labels.

    With `counts_classes` classes are integers from 0, else names.
    """

    title: str
    formats: tuple[str, ...]
    labels: str | None = None
    counts_classes: bool = False


_SCIPY = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
FRAMEWORKS: dict[str, Framework] = {
    "tensorflow": Framework("TensorFlow", ("dense", "csr", "coo", "row_sparse"), counts_classes=True),
    "keras": Framework("Keras", ("dense", "csr", "coo", "bsr", "dia", "dok", "lil", "row_sparse"), counts_classes=True),
    "pytorch": Framework("PyTorch", ("dense", "csr", "csc", "coo", "row_sparse"), counts_classes=True),
    "sklearn": Framework("scikit-learn", ("dense", *_SCIPY)),
    "scipy": Framework("SciPy", ("dense", *_SCIPY)),
    "xgboost": Framework("XGBoost", ("dense", *_SCIPY), counts_classes=True),
    "lightgbm": Framework("LightGBM", ("dense", "csr", "csc", "coo", "lil"), counts_classes=True),
    "catboost": Framework("CatBoost", ("dense", "csr", "csc", "coo", "bsr", "lil", "dok")),
    "jax": Framework("JAX", ("dense", "csr", "coo"), counts_classes=True),
    "implicit": Framework("implicit", ("csr",)),
    "vw": Framework("Vowpal Wabbit", ("csr", "coo"), "signs"),
}
EVERY = tuple(FRAMEWORKS)
NOT_TREES = tuple(name for name in EVERY if name not in ("xgboost", "lightgbm", "catboost"))
INDEXED = (*COMPRESSED, "coo", "row_sparse")
PLACED = (*COMPRESSED, "coo")


@dataclass(frozen=True)
class ValidationRule:
    """One rule: `fault(parts, asked)` raises FormatError; `errors` and `warnings` list the frameworks it applies to."""

    name: str
    check: Callable[[Parts, Requirements], None]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    formats: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    of_labels: bool = False

    @property
    def effects(self) -> Mapping[str, str]:
        """What was seen where the rule was violated, by framework; {} if nothing was."""
        return facts.effects(self.name)

    def severity(self, framework: str) -> str | None:
        """Return "error" or "warning", what a violation is for the framework.

        None if the rule does not count for it.
        """
        return ERROR if framework in self.errors else WARNING if framework in self.warnings else None


STRUCTURE = ("shape", "index type", "lengths", "pointers", "range")

CONTRACTS = (
    ValidationRule("sparse", sparse, EVERY),
    ValidationRule("format", held, EVERY),
    ValidationRule("shape", shape, EVERY),
    ValidationRule("width", width, EVERY, after=("shape",)),
    ValidationRule("index type", index_types, EVERY, formats=INDEXED),
    ValidationRule("index widths", index_widths, EVERY, formats=PLACED, after=("index type",)),
    ValidationRule("index dtype", index_dtype, EVERY, formats=INDEXED, after=("index type",)),
    ValidationRule(
        "narrow indices", narrow_indices, ("catboost",), ("sklearn",), formats=PLACED, after=("index type",)
    ),
    ValidationRule("index limit", index_limit, ("jax",), after=("shape",)),
    ValidationRule("lengths", lengths, EVERY, formats=INDEXED, after=("index type",)),
    ValidationRule("pointers", pointers, EVERY, formats=COMPRESSED, after=("shape", "index type", "lengths")),
    ValidationRule("range", ranges, EVERY, formats=INDEXED, after=("shape", "index type")),
    ValidationRule("numbers", numbers, EVERY),
    ValidationRule("floats", floats, ("tensorflow", "pytorch", "implicit"), ("keras", "sklearn"), after=("numbers",)),
    ValidationRule("integers", floats, ("lightgbm",), formats=INDEXED, after=("numbers",)),
    ValidationRule("float32", single, warnings=EVERY),
    ValidationRule("dtype", dtype, EVERY),
    ValidationRule("finite", finite, NOT_TREES),  # to trees NaN is a missing value
    ValidationRule(
        "row order", row_order, ("tensorflow", "keras"), formats=("coo",), after=("shape", "index type", "lengths")
    ),
    ValidationRule(
        "column order", column_order, warnings=("tensorflow", "pytorch", "sklearn"), formats=PLACED, after=STRUCTURE
    ),
    ValidationRule(
        "duplicates",
        duplicates,
        ("sklearn", "implicit", "xgboost", "lightgbm", "catboost"),
        ("tensorflow", "keras", "pytorch", "vw", "scipy", "jax"),
        formats=PLACED,
        after=STRUCTURE,
    ),
    ValidationRule("unique rows", unique_rows, EVERY, formats=("row_sparse",), after=("index type", "range")),
    ValidationRule("gradient of values", gradient_of_values, warnings=("pytorch",)),
    ValidationRule("padding", padding, warnings=("jax",)),
    ValidationRule("zeros are missing", zeros_are_missing, warnings=("xgboost",)),
    ValidationRule("stored zeros", stored_zeros, warnings=("xgboost", "implicit"), formats=INDEXED, after=STRUCTURE),
    ValidationRule("frame", frame, warnings=("xgboost",)),
    ValidationRule("sparse array", sparse_array, ("catboost",)),
    ValidationRule("rows", rows, warnings=EVERY),
    ValidationRule("label count", label_count, EVERY, of_labels=True),
    ValidationRule("label values", label_values, EVERY, of_labels=True),
)
