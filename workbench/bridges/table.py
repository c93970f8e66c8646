"""The table of contracts: a row a contract, with the frameworks for which a breach is an error or a warning.

How to add a contract: write its function in `faults`, and a row here. How to add a framework: a row in `FRAMEWORKS`,
and its name in the rows that count for it. `effects` tell what was seen of a framework where a contract was broken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workbench.bridges import faults
from workbench.bridges.faults import Asked
from workbench.formats.parts import COMPRESSED, Parts

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Framework:
    """Framework that takes a matrix: its name in sentences, formats that it takes, and the kind of labels if one.

    One that `counts_classes` takes classes as numbers from 0 on, others by their names.
    """

    title: str
    formats: tuple[str, ...]
    labels: str | None = None
    counts_classes: bool = False


_SCIPY = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
FRAMEWORKS: dict[str, Framework] = {
    "tensorflow": Framework("TensorFlow", ("dense", "csr", "coo", "row_sparse"), counts_classes=True),
    "keras": Framework("Keras", ("dense", "csr", "coo", "bsr", "row_sparse"), counts_classes=True),
    "pytorch": Framework("PyTorch", ("dense", "csr", "csc", "coo", "row_sparse"), counts_classes=True),
    "sklearn": Framework("scikit-learn", ("dense", *_SCIPY)),
    "implicit": Framework("implicit", ("csr",)),
    "vw": Framework("Vowpal Wabbit", ("csr", "coo"), "signs"),
}
EVERY = tuple(FRAMEWORKS)
INDEXED = (*COMPRESSED, "coo", "row_sparse")
PLACED = (*COMPRESSED, "coo")


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
        """Severity of a breach for the framework; None where the contract does not count for it."""
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
