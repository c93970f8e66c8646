"""Contracts: what must hold where one library hands a matrix to another, and what each framework makes of a violation.

`check` gives the violations of a matrix and its labels by the rows of `table.CONTRACTS`, `require` raises them.

Both are O(nnz) in time and memory, O(nnz log nnz) where indices are unsorted, and follow no index outside of its array:
what builds on a broken contract is not looked at. What holds before and after is the caller's: each hand-over checks
what comes to it, and says by `boundary` where that was.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array((np.float32([1, 2]), np.int32([1, 1]), np.int32([0, 2])), shape=(1, 4))
>>> for violation in check(x, for_="sklearn", width=5):
...     print(violation)
error, data -> batch, width: It has 4 columns. Expected: 5, as the model has. Read it like the training data: \
data.load(..., like=train).
error, data -> batch, duplicates: 1 entry stands where another does, first at row 0, column 1. Expected: each place \
once. Call x.sum_duplicates(); a coo matrix x.tocsr() first. Otherwise: StandardScaler, RobustScaler, Normalizer, \
Binarizer, TfidfTransformer and PolynomialFeatures take each entry of a place alone, and no error comes; SVC, NuSVC, \
OneClassSVM, LinearSVR, saga, KMeans, k nearest neighbours and BernoulliNB fit another model.

>>> x = scipy.sparse.csr_array((3, 2))
>>> densify(x, budget_bytes=48, why="to print it").shape
(3, 2)
>>> densify(x, budget_bytes=40, why="to print it")
Traceback (most recent call last):
    ...
workbench.ops.fallback.DensifyError: densify, to print it: making (3, 2) of csr dense takes \
48 bytes, and budget_bytes is 40. Give it more, or take fewer rows.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from kernels.registry import format_count, unknown_name
from workbench import data, formats, optimizers
from workbench.bridges import validation_rules
from workbench.bridges.validation_rules import (
    CONTRACTS,
    ERROR,
    FRAMEWORKS,
    STRUCTURE,
    Requirements,
    ValidationRule,
)
from workbench.data import Dataset, Feed
from workbench.formats import RowSparse, arrays
from workbench.formats.contract import FormatError, is_sound_compressed
from workbench.formats.parts import Parts, parts_of
from workbench.ops import fallback

Source = Feed | Dataset | str | os.PathLike
"""What batches come from."""

COMPRESSED = (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.csc_matrix)
"""Types of matrices whose index arrays one compiled function checks; the rules find the fault of what does not pass."""


def feed_of(source: Source, taker: str, *, rows: int, shuffle: bool, seed: int, last: str) -> Feed:
    """Return a `Feed` unchanged; of a data set, a file or a folder a feed with batches of `rows` rows.

    A path is read by the data set that `data.guess` names. A folder of stored rows, `X.sparse`, is read during
    training and may be larger than memory, as may the rows of a data set that are stored. Raises DataError for anything
    else; `taker` names who asks in its message.
    """
    if isinstance(source, str | os.PathLike):
        reader, options, _ = data.guess(source)
        source = data.load(reader, path=source, **options)
    if isinstance(source, Dataset):
        return data.batches_of(source.x, source.y, rows, shuffle=shuffle, seed=seed, last=last)
    if isinstance(source, Feed):
        return source
    raise data.DataError(
        f"A {type(source).__name__} came; {taker} takes a data.Feed, such as data.Batches(x, y), a data.Dataset, or "
        "the path of a file or of a folder X.sparse."
    )


# Making a matrix dense on the way to a framework: asked for with a budget, or reported, never silently.


def densify(x: Any, budget_bytes: int, why: str) -> np.ndarray:
    """Return x as a dense array [rows, columns]: itself if it is dense, else a copy. O(size).

    Explicit, so `ops.settings(strict=True)` does not refuse it; `ops.recording` records it with `why`. Raises
    DensifyError above `budget_bytes`, before any memory is taken, and FormatError for invalid arrays.
    """
    found, x = formats.get(formats.format_of(x)), formats.check(x, canonical=False)
    if found.name == "dense":
        return x
    fallback.allow(f"densify, {why}", found.name, x, budget_bytes)
    return formats.to_format(x, "dense")


class ContractError(ValueError):
    """A hand-over was refused; `violations` are all that were found, errors and warnings.

    A worker process passes on the text alone: then there are none.
    """

    def __init__(self, violations: Sequence["Violation"] | str) -> None:
        """Make the message of the violations, a line each, and keep them; of a text keep none."""
        is_text = isinstance(violations, str)
        super().__init__(violations if is_text else "\n".join(map(str, violations)))
        self.violations = () if is_text else tuple(violations)


@dataclass(frozen=True)
class Violation:
    """A violated requirement: the boundary, what came, what was expected, and what to do."""

    contract: str
    boundary: str
    severity: str
    came: str
    expected: str
    advice: str
    effect: str = ""

    def __str__(self) -> str:
        """Return the violation as one line: severity, boundary, contract, what came, what to do and the effect."""
        effect = f" Otherwise: {self.effect}." if self.effect else ""
        text = f"{self.came}. Expected: {self.expected}. {self.advice}.{effect}"
        return f"{self.severity}, {self.boundary}, {self.contract}: {text}"

    def as_row(self) -> dict[str, str]:
        """Return the fields, all str, by name, for JSON."""
        return asdict(self)


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
) -> list[Violation]:
    """Return the violations, errors and warnings, of passing x [rows, columns] and labels y [rows] to a framework.

    x is also a tensor or a sparse array of another library, or a pandas frame with sparse columns: `host_array`.
    `width`, `dtype`, `index_dtype` and `classes` are what is required, None for any; `labels` names their kind, None
    for the framework's usual one. An x that is no matrix is one violation. Raises ValueError for an unknown framework
    or kind of labels. O(nnz).
    """
    framework = _look_up(for_, FRAMEWORKS, "framework")
    labels = labels or framework.labels
    if labels is not None:
        _look_up(labels, validation_rules.KINDS_OF_LABELS, "kind of labels")
    y = y if y is None or scipy.sparse.issparse(y) else np.asarray(y)
    asked = Requirements(for_, framework.formats, width, dtype, index_dtype, sparse, y, labels, classes, origin=x)
    try:
        parts = parts_of(x if isinstance(x, Parts | RowSparse) else arrays.host_array(x))
    except FormatError as error:
        return [Violation("container", boundary, ERROR, *_violation_of(error))]
    return list(_find_violations(parts, asked, boundary))


def require_sound(x: Any, boundary: str) -> None:
    """Raise ContractError if the arrays of x are invalid, or its values are no real numbers. O(nnz).

    Whoever follows its indices afterwards stays within its arrays. `boundary` says in the message where x was handed
    over.
    """
    if type(x) in COMPRESSED and is_sound_compressed(x):
        return
    asked = Requirements("", (), labels=None)
    try:
        parts = parts_of(x)
    except FormatError as error:
        raise ContractError([Violation("container", boundary, ERROR, *_violation_of(error))]) from None
    broken: set[str] = set()
    for contract in (contract for contract in CONTRACTS if contract.name in (*STRUCTURE, "numbers")):
        if invalid := _error_of_parts(contract, parts, asked, broken):
            raise ContractError([Violation(contract.name, boundary, ERROR, *_violation_of(invalid))])


def require(x: Any, y: Any = None, **asked: Any) -> list[Violation]:
    """Check as `check` does and return its warnings. Raises ContractError, with all violations, if one is an error."""
    violations = check(x, y, **asked)
    if any(violation.severity == ERROR for violation in violations):
        raise ContractError(violations)
    return violations


def _find_violations(parts: Parts, asked: Requirements, boundary: str) -> Iterator[Violation]:
    """Yield the violations of all contracts by the arrays `parts`, errors and warnings in the order of the table.

    `asked` has the requirements of the framework; `boundary` names the call in each violation. A contract that rests on
    a broken one is skipped.
    """
    broken: set[str] = set()
    for contract in CONTRACTS:
        error = _error_of_parts(contract, parts, asked, broken)
        if error is None:
            continue
        broken.add(contract.name)
        if severity := contract.severity(asked.framework):
            effect = contract.effects.get(asked.framework, "")
            yield Violation(contract.name, boundary, severity, *_violation_of(error), effect)


def _error_of_parts(
    contract: ValidationRule, parts: Parts, asked: Requirements, broken: set[str]
) -> FormatError | None:
    """Return the error of the parts by one contract; None if there is none, or if it does not apply.

    It does not apply to other formats, without labels if it is of labels, or after a broken contract that it rests on.
    """
    if contract.formats is not None and parts.format not in contract.formats:
        return None
    if broken & set(contract.after) or (contract.of_labels and asked.y is None):
        return None
    if contract.severity(asked.framework) is None and not any(contract.name in other.after for other in CONTRACTS):
        return None
    try:
        contract.check(parts, asked)
    except FormatError as error:
        return error
    return None


def _violation_of(error: FormatError) -> tuple[str, str, str]:
    """Return (what came, what is expected, what to do) of an error; common words where it does not say them."""
    return error.sentences or (str(error), "a matrix", "Build it again from its parts")


def _look_up(name: str, table: Mapping[str, Any], kind: str) -> Any:
    """Return table[name]. Raises ValueError, with the known names, for an unknown one; `kind` is what a name is of."""
    if name not in table:
        raise ValueError(unknown_name(kind, name, table))
    return table[name]


# Contract of a row-sparse gradient on its way to an optimizer, whatever framework made it.

GRADIENT_BOUNDARY = "gradient -> optimizer"


class Framework(NamedTuple):
    """Words of a framework: the name of a row-sparse gradient, what sums repeated rows, what it makes of wrong ones."""

    kind: str
    sums: str
    repeated: str
    outside: str


def require_row_gradients(
    gradients: Iterable[Any],
    names: Iterable[str],
    framework: Framework,
    rows_of: Callable[[Any], tuple[np.ndarray, int | None] | None],
) -> None:
    """Raise ContractError for gradients that are dense, repeat a row or have an index out of range. O(U log U).

    `rows_of` returns the row indices, int [U], of a gradient and the count of rows of its weight, None if that is
    unknown; it returns None for a dense gradient. `names` are as many as gradients, else ValueError.
    """
    found: list[Violation] = []
    for gradient, name in zip(gradients, names, strict=True):
        rows = rows_of(gradient)
        found += [_dense_gradient(name, framework)] if rows is None else _find_row_violations(name, *rows, framework)
    if found:
        raise ContractError(found)


def _dense_gradient(name: str, framework: Framework) -> Violation:
    """Return the violation, an error, of the gradient of the weight `name` that holds every row."""
    came, advice = f"The gradient of {name} is dense", "Take regularizers and dense terms off this weight"
    effect = "every row is stepped, or the optimizer is not lazy, without a word"
    return Violation("sparse", GRADIENT_BOUNDARY, ERROR, came, f"{framework.kind}, the active rows", advice, effect)


def _find_row_violations(name: str, rows: np.ndarray, count: int | None, framework: Framework) -> list[Violation]:
    """Return the violations of a gradient [count, ...] that holds `rows`, int [U]: rows twice, outside, or no count.

    A count of None is a violation itself. O(U log U).
    """
    found = []
    repeated = rows.size - np.unique(rows).size
    if repeated:
        came = f"The gradient of {name} repeats {format_count(repeated, 'row')}"
        found.append(
            Violation("duplicates", GRADIENT_BOUNDARY, ERROR, came, "each row once", framework.sums, framework.repeated)
        )
    if count is None:
        came = f"The gradient of {name} does not say how many rows there are"
        found.append(
            Violation("shape", GRADIENT_BOUNDARY, ERROR, came, "a dense_shape", "Give IndexedSlices one; Adam needs it")
        )
    elif rows.size and not 0 <= rows.min() <= rows.max() < count:
        came, advice = f"The gradient of {name} names rows outside of the weight", "Check the columns of the batch"
        found.append(Violation("range", GRADIENT_BOUNDARY, ERROR, came, f"0 to {count - 1}", advice, framework.outside))
    return found


# Names of optimizer classes that bridges make, one for each optimizer that is registered: `LazyAdam` and its like.

SPELLED = {"sgd": "SGD", "adamw": "AdamW", "rmsprop": "RMSprop", "centered_rmsprop": "CenteredRMSprop"}
"""Names of rules that frameworks spell in a way of their own."""


def class_name(rule: str) -> str:
    """Return the name of the class that a bridge makes of a rule of `workbench.optimizers`.

    >>> class_name("centered_rmsprop")
    'LazyCenteredRMSprop'
    """
    return "Lazy" + SPELLED.get(rule, "".join(word.capitalize() for word in rule.split("_")))


def class_names() -> list[str]:
    """Return the names of all such classes, one for each registered optimizer, in the registry's order."""
    return [class_name(rule) for rule in optimizers.names()]


def rule_of(name: str) -> str:
    """Return the rule of a class by the class's name.

    Raises AttributeError, with the known classes, for another name.
    """
    rules = {class_name(rule): rule for rule in optimizers.names()}
    if name not in rules:
        raise AttributeError(unknown_name("name", name, rules))
    return rules[name]


def described(rule: str) -> str:
    """Return the docstring of a class: the rule's name and its formulas, dense and lazy."""
    return f"{rule}, lazily.\n\n{optimizers.get(rule).formulas}"
