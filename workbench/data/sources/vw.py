"""Text files of Vowpal Wabbit: a line a row, `label [importance] [tag]|namespace[:weight] name[:value] ...`."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import DataError
from workbench.data.files.labels import lacks_vw_label, read_unlabelled, require_labels
from workbench.data.files.opened import place_in
from workbench.data.files.reading import blocks_of_file, check_features, dataset_of, reading
from workbench.data.labels import GUESSED, NONE, Wanted
from workbench.data.text import vowpal_wabbit
from workbench.data.text.stacking import stack_with_labels
from workbench.formats.compressed import assemble, index_dtype

IMPORTANCE = ("refused", "ignored")
COLUMNS = ("auto", "numbered", "hashed")
MOST_BITS = 30
WHAT = "Vowpal Wabbit text (each line: label | name:value name:value ...)"


def make(
    path: str | os.PathLike,
    bits: int = 18,
    columns: str = "auto",
    features: int | None = None,
    importance: str = "refused",
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the rows of the file, packed or not; its names hashed to 2**bits columns as that program does.

    `columns` are `hashed`; `numbered` as the names say, from 0 on, where all are whole numbers; or `auto`, which is
    numbered where all names are whole numbers below 2**31 in one namespace. `features` is the number of columns of
    numbered ones, None the highest there is and one more. Names that meet in a column are summed. `importance` other
    than 1 is `refused` or `ignored`; tags are passed over. `kind`, `positive`, `classes` and `unseen` are as those of
    `svmlight`. Refused (`DataError`): rows without a label and invalid ones, with the line.
    """
    if wanted.kind == NONE:
        with reading(path, WHAT):
            return read_unlabelled(path, lacks_vw_label, lambda copy: make(copy, bits, columns, features, importance))
    _check(bits, columns, importance, features)
    with reading(path, WHAT):
        require_labels(path, lacks_vw_label)
        parts = list(vowpal_wabbit.read(path, columns == "hashed", importance == "ignored"))
        if columns != "hashed" and not all(part.are_numbers for part in parts):
            _refuse_names(path, columns)
            parts = list(vowpal_wabbit.read(path, True, importance == "ignored"))
        rows = [(_matrix(part, bits), part.labels) for part in _check_columns(parts, bits, features, path)]
        x, labels = stack_with_labels(rows, path)
        x = assemble("csr", x.indptr, x.indices, x.data, (x.shape[0], max(x.shape[1], features or 0)))
        reread = _reread(bits, parts[0].are_numbers)
        return dataset_of("vw", x, labels, wanted, path, place_in(path), reread=reread)


def blocks(
    path: str | os.PathLike,
    bits: int = 18,
    columns: str = "auto",
    features: int | None = None,
    importance: str = "refused",
    wanted: Wanted = GUESSED,
) -> RowBlocks:
    """Return the rows of the file in blocks of some MB of lines, parameters as for `make`.

    Unless `columns` is "hashed", the file is read before until a name that is no number. Raises DataError with the
    line.
    """
    _check(bits, columns, importance, features)
    ignored = importance == "ignored"
    with reading(path, WHAT):
        numbered = columns != "hashed" and all(part.are_numbers for part in vowpal_wabbit.read(path, False, ignored))
        if columns != "hashed" and not numbered:
            _refuse_names(path, columns)
    facts: dict[str, Any] = {"duplicate_entries": 0, "reread": _reread(bits, numbered)}

    def made() -> Iterator[RowBlock]:
        """Yield the rows in blocks, and count duplicate entries in `facts`.

        DataError with the line for invalid text.
        """
        with reading(path, WHAT):
            for part in _check_columns(vowpal_wabbit.read(path, not numbered, ignored), bits, features, path):
                x = canonical(_matrix(part, bits))
                facts["duplicate_entries"] += len(part.columns) - x.nnz
                yield RowBlock(x, part.labels)

    return blocks_of_file("vw", made(), path, features, facts)


def _reread(bits: int, numbered: bool) -> dict[str, Any]:
    """Return the parameters by which later files are read into the same columns."""
    return {"bits": bits, "columns": "numbered" if numbered else "hashed"}


def _check(bits: int, columns: str, importance: str, features: int | None) -> None:
    """Raise DataError unless `features` is None or a count, and bits, columns and importance have an allowed value.

    `bits` is from 1 to `MOST_BITS`, the others are in `COLUMNS` and `IMPORTANCE`.
    """
    check_features(features)
    if not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
        raise DataError(f"bits is {bits!r}; names are hashed to 2**bits columns, of 1 to {MOST_BITS} bits.")
    if columns not in COLUMNS:
        raise DataError(f"columns is {columns!r}; it is one of {', '.join(COLUMNS)}.")
    if importance not in IMPORTANCE:
        raise DataError(f"importance is {importance!r}; it is one of {', '.join(IMPORTANCE)}.")


def _refuse_names(path: str | os.PathLike, columns: str) -> None:
    """Raise DataError if `columns` is "numbered", as the file has names that have to be hashed."""
    if columns == "numbered":
        raise DataError(f"{path} has names other than whole numbers below 2**31, or several namespaces: hash them.")


def _matrix(rows: vowpal_wabbit.Rows, bits: int) -> Any:
    """Return rows as CSR float32, unsorted: as wide as the highest column number, or 2**bits for hashes."""
    if rows.are_numbers:
        indices, width = rows.columns, int(rows.columns.max(initial=0)) + 1
    else:
        indices, width = rows.columns & (2**bits - 1), 2**bits
    dtype, values = index_dtype(len(rows.labels), width, len(indices)), rows.values.astype(np.float32)
    return assemble("csr", rows.indptr.astype(dtype), indices.astype(dtype), values, (len(rows.labels), width))


def _check_columns(
    parts: Iterable[vowpal_wabbit.Rows], bits: int, features: int | None, path: str | os.PathLike
) -> Iterator[vowpal_wabbit.Rows]:
    """Yield the parts unchanged; DataError, with the line, for a column number not below `features`.

    For hashed names `features` must be None or 2**bits.
    """
    before = 0
    for part in parts:
        if features is not None and not part.are_numbers and features != 2**bits:
            said = f"features is {features} and names are hashed to 2**{bits} columns"
            raise DataError(f"{said}; leave it out, or set bits.")
        if features is not None and part.are_numbers and part.columns.max(initial=0) >= features:
            entry = int(np.argmax(part.columns >= features))
            row = before + int(np.searchsorted(part.indptr, entry, "right")) - 1
            allowed = f"with features={features} they are 0 to {features - 1}"
            raise DataError(f"{place_in(path)(row)}: column {part.columns[entry]} is out of range; {allowed}.")
        yield part
        before += len(part.labels)


register(Source("vw", make, blocks=blocks))
