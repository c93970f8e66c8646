"""Text files of Vowpal Wabbit: a line a row, `label [importance] [tag]|namespace[:weight] name[:value] ...`."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.data import vw_text
from workbench.data.contract import Source, register
from workbench.data.dataset import Dataset
from workbench.data.errors import DataError
from workbench.data.files import check_features, dataset_of, fingerprint, reading
from workbench.data.labels import Wanted
from workbench.data.opened import place_in
from workbench.formats.compressed import assemble

LICENCE = "that of the file"
IMPORTANCE = ("refused", "ignored")
COLUMNS = ("auto", "numbered", "hashed")
MOST_BITS = 30


def make(
    path: str | os.PathLike,
    bits: int = 18,
    columns: str = "auto",
    features: int | None = None,
    importance: str = "refused",
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """The rows of the file, packed or not; its names hashed to 2**bits columns as that program does.

    `columns` are `hashed`; `numbered` as the names say, from 0 on, where all are whole numbers; or `auto`, which is
    numbered where all names are whole numbers below 2**31 in one namespace. `features` is the number of columns of
    numbered ones, None the highest there is and one more. Names that meet in a column are summed. `importance` other
    than 1 is `refused` or `ignored`; tags are passed over. `kind`, `positive`, `classes` and `unseen` are as those of
    `svmlight`. Refused (`DataError`): rows without a label and malformed ones, with the line.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    _check(bits, columns, importance)
    check_features(features)
    with reading(path, "Vowpal Wabbit text (each line: label | name:value name:value ...)"):
        rows = vw_text.read(path, columns == "hashed", importance == "ignored")
        place = place_in(path)
        if rows.are_numbers:
            indices, width = rows.columns, _width(rows, features, place)
        elif columns == "numbered":
            raise DataError(f"{path} has names other than whole numbers below 2**31, or several namespaces: hash them.")
        elif features not in (None, 2**bits):
            raise DataError(
                f"features is {features} and names are hashed to 2**{bits} columns; leave it out, or set bits."
            )
        else:
            indices, width = (rows.columns & (2**bits - 1)).astype(np.int64), 2**bits
        x = assemble("csr", rows.indptr, indices, rows.values, (len(rows.labels), width))
        dataset = dataset_of("vw", x, rows.labels, wanted, path, LICENCE, place)
    taken = "numbered" if rows.are_numbers else "hashed"
    return dataclasses.replace(dataset, facts={**dataset.facts, "reread": {"bits": bits, "columns": taken}})


def _check(bits: int, columns: str, importance: str) -> None:
    if not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
        raise DataError(f"bits is {bits!r}; names are hashed to 2**bits columns, of 1 to {MOST_BITS} bits.")
    if columns not in COLUMNS:
        raise DataError(f"columns is {columns!r}; it is one of {', '.join(COLUMNS)}.")
    if importance not in IMPORTANCE:
        raise DataError(f"importance is {importance!r}; it is one of {', '.join(IMPORTANCE)}.")


def _width(rows: vw_text.Rows, features: int | None, place: Callable[[int], str]) -> int:
    """The number of columns; a number beyond those asked for is refused with its line (`DataError`)."""
    numbers = rows.columns
    if features is None:
        return int(numbers.max(initial=0)) + 1
    if numbers.max(initial=0) >= features:
        entry = int(np.argmax(numbers >= features))
        row = int(np.searchsorted(rows.indptr, entry, "right")) - 1
        allowed = f"with features={features} they are 0 to {features - 1}"
        raise DataError(f"{place(row)}: column {numbers[entry]} is out of range; {allowed}.")
    return features


register(Source("vw", make, "a file of yours", LICENCE, lambda path, **rest: fingerprint(path)))
