"""What readers of files share: errors that name the file, labels into classes, when a cached copy is out of date."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from workbench.data.dataset import DataError, Dataset, canonical, class_numbers

LABELS = ("auto", "classes", "targets")
MOST_CLASSES = 1000
"""Whole-number labels with more distinct values than this are targets, unless classes are asked for."""


@contextmanager
def reading(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"There is no file {path}; give the path of {what}.") from None
    except (OSError, EOFError, ValueError, KeyError, OverflowError, BadZipFile) as error:
        raise DataError(f"{path} cannot be read as {what}: {error}") from error


def fingerprint(*paths: str | os.PathLike) -> str:
    """Full name, size and time of the files; of a missing one, that it is missing."""
    said = []
    for path in map(Path, paths):
        try:
            state = path.stat()
            said.append(f"{path.resolve()} {state.st_size} {state.st_mtime_ns}")
        except OSError:
            said.append(f"{path} missing")
    return "\n".join(said)


def dataset_of(name: str, x: Any, y: np.ndarray, kind: str, path: str | os.PathLike, licence: str) -> Dataset:
    """A data set of what was read. `kind` auto takes whole numbers and strings for classes."""
    if kind not in LABELS:
        raise DataError(f"kind is {kind!r}; it is one of {', '.join(LABELS)}.")
    x, y = canonical(x), np.asarray(y)
    if not x.shape[0]:
        raise DataError(f"{path} holds no rows; a data set has at least one.")
    if len(y) != x.shape[0]:
        raise DataError(f"{path} has {x.shape[0]} rows and {len(y)} labels; there must be one for each row.")
    classes: tuple[str, ...] = ()
    if kind == "classes" or (kind == "auto" and _are_classes(y)):
        classes, y = class_numbers(y if y.dtype.kind in "US" or not _whole(y) else y.astype(np.int64))
    else:
        y = y.astype(np.float32)
        if not np.isfinite(y).all():
            raise DataError(f"The label of row {int(np.argmin(np.isfinite(y)))} of {path} is no finite number.")
    return Dataset(name, x, y, classes, f"the file {Path(path).name}", licence)


def _whole(y: np.ndarray) -> bool:
    return y.dtype.kind in "biu" or bool(np.isfinite(y).all() and (y == np.round(y)).all())


def _are_classes(y: np.ndarray) -> bool:
    return y.ndim == 1 and (y.dtype.kind in "US" or (_whole(y) and len(np.unique(y)) <= MOST_CLASSES))
