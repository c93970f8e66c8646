"""Text files in the svmlight (LIBSVM) form: a line a row, `label index:value index:value ...`, packed or not."""

import dataclasses
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.dataset.row_blocks import RowBlock, RowBlocks
from workbench.data.errors import DataError
from workbench.data.files.opened import opened, place_in
from workbench.data.files.reading import check_features, dataset_of, reading
from workbench.data.files.types import otherwise, refuse_binary
from workbench.data.labels.meaning import Wanted
from workbench.data.shards.converting import blocks_of
from workbench.data.text.svmlight import first_fault, has_several_labels, holds_row, parse, query_numbers

LICENCE = "that of the file"
TEXT = "svmlight text (each line: label column:value ...)"
LINES_OF_BLOCK = 1 << 13


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
    that is none of them counts to the class `unseen`, or is refused. Rows with the same query (`qid:number` after the
    label) are one of the set's `groups`. Refused (`DataError`): a missing or malformed file; columns unsorted, twice in
    a row or beyond `features`, queries of some rows only, with the line; rows that all lack features.
    """
    _check(features, zero_based)
    wanted = Wanted(kind, positive, classes, unseen)
    from_zero = bool(zero_based)
    with reading(path, TEXT):
        try:
            rows = _read(path, wanted)
            if zero_based == "auto":
                from_zero = not rows.columns.nnz or int(rows.columns.indices.min()) == 0
            x = _counted_from(rows.columns, 0 if from_zero else 1, features)
            if rows.noticed[b"_"]:
                _refuse_fault(path, features, from_zero, isinstance(rows.labels, list))
            groups = query_numbers(path) if rows.noticed[b"qid"] else None
            place = place_in(path, holds_row)
            dataset = dataset_of("svmlight", x, rows.labels, wanted, path, LICENCE, place, groups)
        except DataError:
            raise
        except (ValueError, OverflowError):
            _refuse_fault(path, features, from_zero, kind == "multilabel" or (not kind and has_several_labels(path)))
            raise
    return dataclasses.replace(dataset, facts={**dataset.facts, "reread": {"zero_based": from_zero}})


def blocks(
    path: str | os.PathLike,
    features: int | None = None,
    zero_based: bool | str = "auto",
    kind: str | None = None,
    **labels: Any,
) -> RowBlocks:
    """The rows of the file, some thousand lines at a time; `auto` looks through it for a column 0 first.

    Rows with several labels (`multilabel`) are read whole, as `make` does.
    """
    _check(features, zero_based)
    if kind == "multilabel":
        return blocks_of(make(path, features, zero_based, kind, **labels))
    from_zero = _holds_column_zero(path) if zero_based == "auto" else bool(zero_based)
    facts = {"reread": {"zero_based": from_zero}}
    made = _blocks(path, features, from_zero)
    return RowBlocks(made, "svmlight", f"the file {Path(path).name}", LICENCE, features, facts=facts)


def _blocks(path: str | os.PathLike, features: int | None, zero_based: bool) -> Iterator[RowBlock]:
    with reading(path, TEXT), opened(path) as file:
        lines = ((number, text) for number, text in enumerate(file, 1) if holds_row(text))
        groups, row = None, 0
        while some := list(itertools.islice(lines, LINES_OF_BLOCK)):
            if groups is None and any(b"qid" in text for _, text in some):
                groups = query_numbers(path)
            part, row = None if groups is None else groups[row : row + len(some)], row + len(some)
            try:
                yield RowBlock(*parse(some, os.fspath(path), features, zero_based), part)
            except DataError:
                if has_several_labels(path):
                    raise DataError(f"{path} has rows with several labels; say kind = 'multilabel'.") from None
                raise


def _holds_column_zero(path: str | os.PathLike) -> bool:
    """Whether columns count from 0: a 0 occurs, or there is no column at all."""
    least = (int(block.x.indices.min()) for block in _blocks(path, None, zero_based=True) if block.x.nnz)
    first = next(least, 0)
    return first == 0 or any(column == 0 for column in least)


def _check(features: int | None, zero_based: bool | str) -> None:
    check_features(features)
    if zero_based not in (True, False, "auto"):
        raise DataError(f"zero_based is {zero_based!r}; it is True, False or 'auto'.")


class _Rows(NamedTuple):
    """Rows of a file: columns as numbered there; labels, or a tuple of them a row; whether words occur."""

    columns: scipy.sparse.csr_matrix
    labels: np.ndarray | list
    noticed: dict[bytes, bool]


def _read(path: str | os.PathLike, wanted: Wanted) -> _Rows:
    if wanted.kind == "multilabel":
        return _parsed(path, several=True)
    try:
        return _parsed(path, several=False)
    except DataError:
        raise
    except ValueError:
        if wanted.kind is None and has_several_labels(path):
            return _parsed(path, several=True)
        raise


def _parsed(path: str | os.PathLike, several: bool) -> _Rows:
    from sklearn.datasets import load_svmlight_file  # a second to import, and only these readers need it

    noticed = {b"_": False, b"qid": False}  # Python's numbers may hold underscores, svmlight's do not
    with opened(path, noticing=noticed) as file:
        columns, labels = load_svmlight_file(file, dtype=np.float64, zero_based=True, multilabel=several)
    return _Rows(columns, labels, noticed)


def _counted_from(x: scipy.sparse.csr_matrix, base: int, features: int | None) -> scipy.sparse.csr_matrix:
    """The matrix with columns that count from 0 where those of the file count from `base`; as wide as `features`."""
    width = features if features is not None else int(x.indices.max(initial=base)) + 1 - base
    if x.nnz and not base <= x.indices.min() <= x.indices.max() < width + base:
        raise ValueError(f"columns are {x.indices.min()} to {x.indices.max()}, with {width} features from {base} on")
    return scipy.sparse.csr_matrix((x.data, x.indices - base, x.indptr), shape=(x.shape[0], width))


def _refuse_fault(path: str | os.PathLike, features: int | None, zero_based: bool, several: bool) -> None:
    """Raise a `DataError` with the first line that is wrong, and what the file looks like if it is of another kind."""
    refuse_binary(path, "svmlight text")
    if fault := first_fault(path, features, zero_based, several):
        raise DataError(f"{fault}{otherwise(path, 'svmlight text')}")


register(Source("svmlight", make, "a file of yours", LICENCE, lambda path, **rest: (path,), blocks=blocks))
