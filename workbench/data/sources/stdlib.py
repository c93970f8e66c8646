"""The source text of the running Python's own standard library: real, skewed text that is on every machine.

Its `.py` files are cut into pieces of 16 lines. A piece is a sample, identifiers are features, and the label is the
top-level module or package that the piece is from; the most frequent one is the positive class. Installed packages are
left out. The standard library's own tests are half of its text and, mostly, one class named test; installations that
lack them give a smaller set.

Features come in descending frequency. Values are 1 + log(count), and each row is scaled to 2-norm `ROW_NORM`.
Neighbouring pieces resemble each other, so eight of them, 128 lines, make a group that a split never parts. Splitting
by whole files would leave a module that is one file without any example to learn from.
"""

import os
import re
import sys
import sysconfig
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import ROW_NORM, Dataset
from workbench.data.errors import DataError
from workbench.data.files.labels import Numbers
from workbench.data.labels import Labels, class_numbers
from workbench.formats.compressed import assemble, index_dtype

INSTALLED = frozenset({"site-packages", "dist-packages", "__pycache__"})
TESTS = frozenset({"test", "tests", "idle_test"})
PIECES_OF_GROUP = 8
IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")  # of bytes, so that no file fails for its encoding

ORIGIN = "the standard library of the running Python, https://github.com/python/cpython"
LICENCE = "PSF-2.0; nothing is copied out of the installation"


class _Text(NamedTuple):
    """Words of all pieces: for each word the number of its identifier, for each piece its words, label and group."""

    words: np.ndarray
    lengths: np.ndarray
    labels: list[str]
    groups: np.ndarray
    names: list[bytes]
    facts: dict[str, int]


def make(lines: int = 16, tests: bool = True, counts: bool = False) -> Dataset:
    """Return the source text of Python's standard library: `lines` lines a row, identifiers as features.

    About 54,000 pieces x 113,000 identifiers, 33 a piece, 202 classes with Python 3.11; made in about 2.5 s.
    `tests=False` leaves the tests out, which gives 21,000 pieces x 50,000 identifiers of 201 classes, the largest 9.5 %
    of them; `counts=True` gives the plain counts as values. Files that cannot be read are left out, counted in
    `facts["unreadable"]`, and reported in a warning.
    """
    return of_folder(Path(sysconfig.get_path("stdlib")), lines, tests, counts)


def of_folder(folder: Path, lines: int = 16, tests: bool = True, counts: bool = False) -> Dataset:
    """Return a data set like that of `make` from the .py files in a folder.

    DataError if there are none or `lines` < 1.
    """
    if lines < 1:
        raise DataError(f"lines is {lines}; it is the number of lines of a piece, 1 or more.")
    text = _read(folder, lines, INSTALLED if tests else INSTALLED | TESTS)
    if not text.labels:
        raise DataError(f"{folder} holds no Python source; use the data set 'power_law' instead.")
    rows, columns, values = _count_identifiers(text)
    if not counts:
        values = 1 + np.log(values)
        values *= ROW_NORM / np.sqrt(np.bincount(rows, values**2, minlength=len(text.labels)))[rows]
    shape = (len(text.labels), len(text.names))
    dtype = index_dtype(*shape, len(values))
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(dtype)
    x = assemble("csr", indptr, columns.astype(dtype), values.astype(np.float32), shape)
    classes, y = class_numbers(np.array(text.labels))
    most_frequent = classes[int(np.bincount(y).argmax())]
    labels = Labels("classes", classes, most_frequent)
    return Dataset("stdlib", x, y, labels, ORIGIN, LICENCE, text.groups, text.facts)


def _files(folder: Path, skipped: frozenset[str]) -> Iterator[Path]:
    """Yield all .py files below `folder` in sorted order, without the folders named in `skipped`."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped)
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))


def _read(folder: Path, lines: int, skipped: frozenset[str]) -> _Text:
    """Return the words of the source files under `folder`, one row per piece of `lines` lines, with labels and counts.

    Pieces without identifiers are left out. Warns if files cannot be read.
    """
    numbers, words, lengths, labels, groups = Numbers(), array("q"), array("q"), [], array("q")
    facts = {"files": 0, "unreadable": 0, "bytes": 0}
    for file in _files(folder, skipped):
        try:
            content = file.read_bytes()
        except OSError:
            facts["unreadable"] += 1
            continue
        facts["files"] += 1
        facts["bytes"] += len(content)
        label = file.relative_to(folder).parts[0].removesuffix(".py")
        for piece, identifiers in enumerate(_pieces(content, lines)):
            if identifiers:
                words.extend(map(numbers.__getitem__, identifiers))
                lengths.append(len(identifiers))
                labels.append(label)
                groups.append(facts["files"] << 32 | piece // PIECES_OF_GROUP)
    if facts["unreadable"]:
        warnings.warn(f"{facts['unreadable']} files in {folder} could not be read and are left out.", stacklevel=4)
    group_numbers = np.unique(np.array(groups, np.int64), return_inverse=True)[1].astype(np.int64)
    return _Text(np.array(words), np.array(lengths), labels, group_numbers, list(numbers), facts)


def _pieces(content: bytes, lines: int) -> Iterator[list[bytes]]:
    """Yield the identifiers in each `lines` lines of a file's content."""
    content_lines = content.splitlines()
    for start in range(0, len(content_lines), lines):
        yield IDENTIFIER.findall(b"\n".join(content_lines[start : start + lines]))


def _count_identifiers(text: _Text) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, columns, counts) of the distinct identifiers of each piece, int64, sorted by row and column.

    Columns are in descending frequency of the identifiers, ties alphabetical.
    """
    features = len(text.names)
    rows = np.repeat(np.arange(len(text.lengths)), text.lengths)
    keys = np.unique(rows * features + text.words)
    frequency = np.bincount(keys % features, minlength=features)
    alphabetical = sorted(range(features), key=text.names.__getitem__)
    column = np.empty(features, np.int64)
    column[np.array(alphabetical)[np.argsort(-frequency[alphabetical], kind="stable")]] = np.arange(features)
    keys, counts = np.unique(rows * features + column[text.words], return_counts=True)
    return keys // features, keys % features, counts


register(Source("stdlib", make, ORIGIN, LICENCE, fingerprint=lambda **parameters: sys.version))
