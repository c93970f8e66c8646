"""Text files in the svmlight (LIBSVM) form: a line a row, `label index:value index:value ...`, plain, .gz or .bz2."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset import Dataset
from workbench.data.errors import DataError
from workbench.data.file_types import looks_like
from workbench.data.files import dataset_of, fingerprint, reading
from workbench.data.labels import Wanted
from workbench.data.svmlight_text import (
    OPENERS,
    first_fault,
    has_several_labels,
    holds_underscore,
    line_of,
    opened_text,
)

LICENCE = "that of the file"


def make(
    path: str | os.PathLike,
    features: int | None = None,
    zero_based: bool | str = "auto",
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """The rows of the file, columns as numbered in it.

    `features` is the number of columns, None the highest index there is: give it when a test file must fit a training
    file. `zero_based` says whether columns count from 0; `auto` takes them to do so when a 0 occurs. `kind` of labels
    is `classes`, `numbers` or `multilabel` (labels with commas between them); None guesses: up to 1,000 different whole
    numbers are classes. `positive` names the class that means yes. `classes` are all there may be, in order; a label
    that is none of them counts to the class `unseen`, or is refused. Refused (`DataError`): a missing or malformed
    file; columns unsorted, twice in a row or beyond `features`, with the line; rows that all lack features.
    """
    if zero_based not in (True, False, "auto"):
        raise DataError(f"zero_based is {zero_based!r}; it is True, False or 'auto'.")
    wanted = Wanted(kind, positive, classes, unseen)
    from_zero = bool(zero_based)
    with reading(path, "svmlight text (each line: label column:value ...)"):
        try:
            columns, labels = _read(path, wanted)
            if zero_based == "auto":
                from_zero = not columns.nnz or int(columns.indices.min()) == 0
            x = _counted_from(columns, 0 if from_zero else 1, features)
            if holds_underscore(path):
                _refuse_fault(path, features, from_zero, isinstance(labels, list))
            dataset = dataset_of(
                "svmlight", x, labels, wanted, path, LICENCE, lambda row: f"{path}:{line_of(path, row)}"
            )
        except DataError:
            raise
        except (ValueError, OverflowError):
            several = kind == "multilabel" or (kind is None and has_several_labels(path))
            _refuse_fault(path, features, from_zero, several)
            raise
    return dataclasses.replace(dataset, facts={**dataset.facts, "reread": {"zero_based": from_zero}})


def _read(path: str | os.PathLike, wanted: Wanted) -> tuple[scipy.sparse.csr_matrix, np.ndarray | list]:
    """Matrix, columns as numbered in the file, and labels: an array, or a tuple for each row if a row has several."""
    if wanted.kind == "multilabel":
        return _parsed(path, several=True)
    try:
        return _parsed(path, several=False)
    except ValueError:
        if wanted.kind is None and has_several_labels(path):
            return _parsed(path, several=True)
        raise


def _parsed(path: str | os.PathLike, several: bool) -> tuple[scipy.sparse.csr_matrix, np.ndarray | list]:
    from sklearn.datasets import load_svmlight_file  # a second to import, and only these readers need it

    with opened_text(path) as file:
        return load_svmlight_file(file, dtype=np.float64, zero_based=True, multilabel=several)


def _counted_from(x: scipy.sparse.csr_matrix, base: int, features: int | None) -> scipy.sparse.csr_matrix:
    """The matrix with columns that count from 0 where those of the file count from `base`; as wide as `features`."""
    width = features if features is not None else int(x.indices.max(initial=base)) + 1 - base
    if x.nnz and not base <= x.indices.min() <= x.indices.max() < width + base:
        raise ValueError(f"columns are {x.indices.min()} to {x.indices.max()}, with {width} features from {base} on")
    return scipy.sparse.csr_matrix((x.data, x.indices - base, x.indptr), shape=(x.shape[0], width))


def _refuse_fault(path: str | os.PathLike, features: int | None, zero_based: bool, several: bool) -> None:
    """Raise a `DataError` with the first line that is wrong, and what the file looks like if it is of another kind."""
    looks, advice = looks_like(path)
    packed = Path(path).suffix in OPENERS
    if not packed and not looks.endswith("text"):
        raise DataError(f"{path} cannot be read as svmlight text: it looks like {looks}. {advice}.")
    if fault := first_fault(path, features, zero_based, several):
        other = "" if packed or looks in ("svmlight text", "other text") else f" It looks like {looks}. {advice}."
        raise DataError(f"{fault}{other}")


register(Source("svmlight", make, "a file of yours", LICENCE, lambda path, **rest: fingerprint(path)))
