"""Contracts: what must hold where one library hands a matrix to another, and what each framework makes of a breach.

`CONTRACTS` is the table: a row a contract, with the frameworks for which a breach is an error or a warning and, where
it was seen, what the framework does. `check` gives the breaches of a matrix and its labels, `require` raises them.

Both are O(nnz) in time and memory, O(nnz log nnz) where indices are unsorted, and follow no index outside of its array:
what builds on a broken contract is not looked at. What holds before and after is the caller's: each hand-over checks
what comes to it, and says by `boundary` where that was.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array((np.float32([1, 2]), np.int32([1, 1]), np.int32([0, 2])), shape=(1, 4))
>>> for breach in check(x, for_="sklearn", width=5):
...     print(breach)
error, data -> batch, width: It has 4 columns. Expected: 5, as the model has. Read it like the training data: \
data.load(..., like=train).
error, data -> batch, duplicates: 1 entry stands where another does, first at row 0, column 1. Expected: each place \
once. Call x.sum_duplicates(); a coo matrix x.tocsr() first. Otherwise BernoulliNB, StandardScaler, Lasso, SVC, \
Normalizer and Binarizer compute something else without a word.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from workbench.bridges import faults
from workbench.bridges.faults import Asked
from workbench.formats.contract import FormatError
from workbench.formats.parts import COMPRESSED, Parts, parts_of

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Framework:
    """What takes a matrix: its name in sentences, the formats it takes, and the kind of labels if there is one only."""

    title: str
    formats: tuple[str, ...]
    labels: str | None = None


_SCIPY = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
FRAMEWORKS: dict[str, Framework] = {
    "tensorflow": Framework("TensorFlow", ("dense", "csr", "coo", "row_sparse")),
    "keras": Framework("Keras", ("dense", "csr", "coo", "bsr", "row_sparse")),
    "pytorch": Framework("PyTorch", ("dense", "csr", "csc", "coo", "row_sparse")),
    "sklearn": Framework("scikit-learn", ("dense", *_SCIPY)),
    "implicit": Framework("implicit", ("csr",)),
    "vw": Framework("Vowpal Wabbit", ("csr", "coo"), "signs"),
}
EVERY = tuple(FRAMEWORKS)
INDEXED = (*COMPRESSED, "coo", "row_sparse")
PLACED = (*COMPRESSED, "coo")


class ContractError(ValueError):
    """A hand-over was refused; `breaches` are all that were found, errors and warnings."""

    def __init__(self, breaches: Sequence["Breach"]) -> None:
        super().__init__("\n".join(map(str, breaches)))
        self.breaches = tuple(breaches)


@dataclass(frozen=True)
class Breach:
    """A contract that does not hold: at which boundary, what came, what was expected, what to do.

    `severity` is error or warning; `effect` what the framework makes of it, where that is known.
    """

    contract: str
    boundary: str
    severity: str
    came: str
    expected: str
    advice: str
    effect: str = ""

    def __str__(self) -> str:
        effect = f" Otherwise {self.effect}." if self.effect else ""
        told = f"{self.came}. Expected: {self.expected}. {self.advice}.{effect}"
        return f"{self.severity}, {self.boundary}, {self.contract}: {told}"

    def as_row(self) -> dict[str, str]:
        """The fields by name, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Contract:
    """One row: `fault(parts, asked)` raises `FormatError`; `errors` and `warnings` say for which frameworks it counts.

    It is asked for matrices in `formats` (None: in all), and only where the contracts in `after` hold. `effects` says
    what a framework makes of a breach.
    """

    name: str
    fault: Callable[[Parts, Asked], None]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    formats: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    of_labels: bool = False
    effects: Mapping[str, str] = field(default_factory=dict)

    def severity(self, framework: str) -> str | None:
        """What a breach is for the framework; None where the contract does not count for it."""
        return ERROR if framework in self.errors else WARNING if framework in self.warnings else None


STRUCTURE = ("shape", "index type", "lengths", "pointers", "range")
OUTSIDE = "PyTorch multiplies what stands outside of the array, without a word"
NO_ERROR = "no error comes, and the result is wrong"

CONTRACTS = (
    Contract("sparse", faults.sparse, EVERY, effects={"keras": "the layer computes densely, without a word"}),
    Contract(
        "format",
        faults.held,
        EVERY,
        effects=dict.fromkeys(("tensorflow", "keras"), "fit says: do not form a valid RowPartition"),
    ),
    Contract("shape", faults.shape, EVERY),
    Contract(
        "width",
        faults.width,
        EVERY,
        after=("shape",),
        effects={"keras": "Keras, once traced, runs on it without a word", "pytorch": OUTSIDE},
    ),
    Contract("index type", faults.index_types, EVERY, formats=INDEXED),
    Contract("index widths", faults.index_widths, EVERY, formats=PLACED, after=("index type",)),
    Contract("index dtype", faults.index_dtype, EVERY, formats=INDEXED, after=("index type",)),
    Contract(
        "narrow indices",
        faults.narrow_indices,
        warnings=("sklearn",),
        formats=PLACED,
        after=("index type",),
        effects={"sklearn": "SGDClassifier, liblinear, Lasso, SVC and trees refuse it"},
    ),
    Contract("lengths", faults.lengths, EVERY, formats=INDEXED, after=("index type",), effects={"pytorch": NO_ERROR}),
    Contract(
        "pointers",
        faults.pointers,
        EVERY,
        formats=COMPRESSED,
        after=("shape", "index type", "lengths"),
        effects={"pytorch": NO_ERROR},
    ),
    Contract(
        "range", faults.ranges, EVERY, formats=INDEXED, after=("shape", "index type"), effects={"pytorch": OUTSIDE}
    ),
    Contract("numbers", faults.numbers, EVERY),
    Contract("floats", faults.floats, ("tensorflow", "pytorch", "implicit"), ("keras", "sklearn"), after=("numbers",)),
    Contract("float32", faults.single, warnings=EVERY),
    Contract("dtype", faults.dtype, EVERY),
    Contract(
        "finite",
        faults.finite,
        EVERY,
        effects=dict.fromkeys(("tensorflow", "keras", "pytorch", "vw"), "the loss becomes NaN without a word"),
    ),
    Contract(
        "row order",
        faults.row_order,
        ("tensorflow", "keras"),
        formats=("coo",),
        after=("shape", "index type", "lengths"),
        effects={
            "tensorflow": "from_generator passes it on, and to_dense says: out of order",
            "keras": "fit says: do not form a valid RowPartition",
        },
    ),
    Contract(
        "column order",
        faults.column_order,
        warnings=("tensorflow", "pytorch"),
        formats=PLACED,
        after=STRUCTURE,
        effects={
            "tensorflow": "tf.sparse.to_dense refuses it",
            "pytorch": "check_invariants refuses it",
        },
    ),
    Contract(
        "duplicates",
        faults.duplicates,
        ("sklearn", "implicit"),
        ("tensorflow", "keras", "pytorch", "vw"),
        formats=PLACED,
        after=STRUCTURE,
        effects={
            "sklearn": "BernoulliNB, StandardScaler, Lasso, SVC, Normalizer and Binarizer compute something else "
            "without a word",
            "implicit": "its factors are wrong, without a word",
            "pytorch": "check_invariants refuses it, and x ** 2 of what is called coalesced is wrong",
            "tensorflow": "tf.sparse.to_dense refuses it",
        },
    ),
    Contract(
        "unique rows",
        faults.unique_rows,
        EVERY,
        formats=("row_sparse",),
        after=("index type", "range"),
        effects={"keras": "Adagrad, Adam, Ftrl and RMSprop step wrongly, without a word"},
    ),
    Contract("rows", faults.rows, warnings=EVERY, effects={"keras": "fit and predict fail with KeyError"}),
    Contract("label count", faults.label_count, EVERY, of_labels=True),
    Contract(
        "label values",
        faults.label_values,
        EVERY,
        of_labels=True,
        effects={"vw": "it takes labels such as 0, 7 and abc without a word"},
    ),
)


def check(
    x: Any,
    y: Any = None,
    *,
    for_: str,
    boundary: str = "data -> batch",
    width: int | None = None,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike | None = None,
    sparse: bool = False,
    labels: str | None = None,
    classes: int | None = None,
) -> list[Breach]:
    """The breaches of handing x [rows, columns], and its labels y [rows], to the framework `for_`. O(nnz).

    x is a NumPy array, a SciPy array or matrix, a `RowSparse` gradient, or `Parts`, of which nothing need be right.
    `width` is the model's number of columns, of a gradient its number of rows; `dtype` and `index_dtype` are types that
    must come exactly; `sparse` refuses dense arrays. `labels` is classes (whole numbers from 0 on, below `classes`),
    signs (-1 and 1) or numbers. Unknown names are refused (`ValueError`).
    """
    framework = _known(for_, FRAMEWORKS, "framework")
    labels = labels or framework.labels
    if labels is not None:
        _known(labels, faults.KINDS_OF_LABELS, "kind of labels")
    y = y if y is None or scipy.sparse.issparse(y) else np.asarray(y)
    asked = Asked(for_, framework.formats, width, dtype, index_dtype, sparse, y, labels, classes)
    try:
        parts = parts_of(x)
    except FormatError as error:
        return [Breach("container", boundary, ERROR, *_told(error))]
    broken: set[str] = set()
    breaches = []
    for contract in CONTRACTS:
        error = _fault(contract, parts, asked, broken)
        if error is None:
            continue
        broken.add(contract.name)
        if severity := contract.severity(for_):
            effect = contract.effects.get(for_, "")
            breaches.append(Breach(contract.name, boundary, severity, *_told(error), effect))
    return breaches


def require(x: Any, y: Any = None, **asked: Any) -> list[Breach]:
    """What `check` of the same arguments gives, where that is no more than warnings; `ContractError` at an error."""
    breaches = check(x, y, **asked)
    if any(breach.severity == ERROR for breach in breaches):
        raise ContractError(breaches)
    return breaches


def _fault(contract: Contract, parts: Parts, asked: Asked, broken: set[str]) -> FormatError | None:
    """What is wrong; None where nothing is, or where it cannot be asked."""
    if contract.formats is not None and parts.format not in contract.formats:
        return None
    if broken & set(contract.after) or (contract.of_labels and asked.y is None):
        return None
    if contract.severity(asked.framework) is None and not any(contract.name in other.after for other in CONTRACTS):
        return None
    try:
        contract.fault(parts, asked)
    except FormatError as error:
        return error
    return None


def _told(error: FormatError) -> tuple[str, str, str]:
    return error.told or (str(error), "a matrix", "Build it again from its parts")


def _known(name: str, table: Mapping[str, Any], kind: str) -> Any:
    if name not in table:
        raise ValueError(f"There is no {kind} {name!r}; there is: {', '.join(table)}.")
    return table[name]
