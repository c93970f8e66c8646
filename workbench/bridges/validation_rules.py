"""The table of contracts: a row a contract, with the frameworks for which a violation is an error or a warning.

How to add a contract: write its function in `validation_checks`, and a row here. How to add a framework: a row in
`FRAMEWORKS`, and its name in the rows that count for it. `effects` tell what was seen of a framework where a contract
was broken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workbench.bridges import validation_checks
from workbench.bridges.validation_checks import Requirements
from workbench.formats.parts import COMPRESSED, Parts

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
class ValidationRule:
    """One rule: `fault(parts, asked)` raises FormatError; `errors` and `warnings` list the frameworks it applies to."""

    name: str
    fault: Callable[[Parts, Requirements], None]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    formats: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    of_labels: bool = False
    effects: Mapping[str, str] = field(default_factory=dict)

    def severity(self, framework: str) -> str | None:
        """Severity of a violation for the framework; None if the contract does not count for it."""
        return ERROR if framework in self.errors else WARNING if framework in self.warnings else None


STRUCTURE = ("shape", "index type", "lengths", "pointers", "range")
OUTSIDE = "PyTorch multiplies what stands outside of the array, without a word"
NO_ERROR = "no error comes, and the result is wrong"

CONTRACTS = (
    ValidationRule(
        "sparse", validation_checks.sparse, EVERY, effects={"keras": "the layer computes densely, without a word"}
    ),
    ValidationRule(
        "format",
        validation_checks.held,
        EVERY,
        effects=dict.fromkeys(("tensorflow", "keras"), "fit says: do not form a valid RowPartition"),
    ),
    ValidationRule("shape", validation_checks.shape, EVERY),
    ValidationRule(
        "width",
        validation_checks.width,
        EVERY,
        after=("shape",),
        effects={"keras": "Keras, once traced, runs on it without a word", "pytorch": OUTSIDE},
    ),
    ValidationRule("index type", validation_checks.index_types, EVERY, formats=INDEXED),
    ValidationRule("index widths", validation_checks.index_widths, EVERY, formats=PLACED, after=("index type",)),
    ValidationRule("index dtype", validation_checks.index_dtype, EVERY, formats=INDEXED, after=("index type",)),
    ValidationRule(
        "narrow indices",
        validation_checks.narrow_indices,
        warnings=("sklearn",),
        formats=PLACED,
        after=("index type",),
        effects={"sklearn": "SGDClassifier, liblinear, Lasso, SVC and trees refuse it"},
    ),
    ValidationRule(
        "lengths",
        validation_checks.lengths,
        EVERY,
        formats=INDEXED,
        after=("index type",),
        effects={"pytorch": NO_ERROR},
    ),
    ValidationRule(
        "pointers",
        validation_checks.pointers,
        EVERY,
        formats=COMPRESSED,
        after=("shape", "index type", "lengths"),
        effects={"pytorch": NO_ERROR},
    ),
    ValidationRule(
        "range",
        validation_checks.ranges,
        EVERY,
        formats=INDEXED,
        after=("shape", "index type"),
        effects={"pytorch": OUTSIDE},
    ),
    ValidationRule("numbers", validation_checks.numbers, EVERY),
    ValidationRule(
        "floats",
        validation_checks.floats,
        ("tensorflow", "pytorch", "implicit"),
        ("keras", "sklearn"),
        after=("numbers",),
    ),
    ValidationRule("float32", validation_checks.single, warnings=EVERY),
    ValidationRule("dtype", validation_checks.dtype, EVERY),
    ValidationRule(
        "finite",
        validation_checks.finite,
        EVERY,
        effects=dict.fromkeys(("tensorflow", "keras", "pytorch", "vw"), "the loss becomes NaN without a word"),
    ),
    ValidationRule(
        "row order",
        validation_checks.row_order,
        ("tensorflow", "keras"),
        formats=("coo",),
        after=("shape", "index type", "lengths"),
        effects={
            "tensorflow": "from_generator passes it on, and to_dense says: out of order",
            "keras": "fit says: do not form a valid RowPartition",
        },
    ),
    ValidationRule(
        "column order",
        validation_checks.column_order,
        warnings=("tensorflow", "pytorch"),
        formats=PLACED,
        after=STRUCTURE,
        effects={
            "tensorflow": "tf.sparse.to_dense refuses it",
            "pytorch": "check_invariants refuses it",
        },
    ),
    ValidationRule(
        "duplicates",
        validation_checks.duplicates,
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
    ValidationRule(
        "unique rows",
        validation_checks.unique_rows,
        EVERY,
        formats=("row_sparse",),
        after=("index type", "range"),
        effects={"keras": "Adagrad, Adam, Ftrl and RMSprop step wrongly, without a word"},
    ),
    ValidationRule(
        "rows", validation_checks.rows, warnings=EVERY, effects={"keras": "fit and predict fail with KeyError"}
    ),
    ValidationRule("label count", validation_checks.label_count, EVERY, of_labels=True),
    ValidationRule(
        "label values",
        validation_checks.label_values,
        EVERY,
        of_labels=True,
        effects={"vw": "it takes labels such as 0, 7 and abc without a word"},
    ),
)
