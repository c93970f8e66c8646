"""Rows of a file block by block, for trainings of the user's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench.advising.source import settings_of
from workbench.data import contract
from workbench.data.errors import DataError
from workbench.data.files.reading import path_exists
from workbench.formats.compressed import assemble
from workbench.sweeps.problem import parameters_of_file
from workbench.training.streaming import USUAL_MEMORY, open_stream


def blocks(
    path: str | Path,
    *,
    label: str | None = None,
    features: int | None = None,
    bits: int | None = None,
    memory: int = USUAL_MEMORY,
    **reading: Any,
) -> Iterator[tuple[scipy.sparse.csr_array, np.ndarray]]:
    """Read the rows of a file once, block by block, for the `partial_fit` of an estimator.

    Parameters
    ----------
    path : path
        A file that `train` reads with `stream`.
    label : str, optional
        Name of the column of labels of a table.
    features : int, optional
        Number of columns of svmlight text, whose blocks are otherwise as wide as the rows so far.
    bits : int, optional
        Hash columns to 2**bits.
    memory : int
        Bytes for blocks that are read ahead.
    **reading
        Settings of the reader by name, as of `load`, but those of what labels mean.

    Yields
    ------
    x : scipy.sparse.csr_array
        Some rows `[rows, features]`, float32.
    y : ndarray
        Their labels as they stand in the file, numbers or text `[rows]`.

    Raises
    ------
    DataError
        If the file cannot be read block by block, or a row is invalid.

    Examples
    --------
    >>> import tempfile, workbench as wb
    >>> with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    ...     _ = file.write("1 1:1 3:2\\n-1 2:1\\n") and file.flush()
    ...     [(x.shape, y.tolist()) for x, y in wb.blocks(file.name, features=4)]
    [((2, 4), [1.0, -1.0])]
    """
    if not isinstance(path, str | Path) or not path_exists(path):
        raise DataError(f"blocks reads a file, and {type(path).__name__} {path!r:.80} came; expected its path.")
    reader = str(reading.pop("dataset", ""))
    settings, _ = settings_of(str(path), reader, contract.with_label(reading, label or ""))
    given = parameters_of_file(settings) | ({} if features is None else {"features": features})
    stream = open_stream(settings["dataset"], given, memory, bits)
    return (_copied(block.x, block.labels) for block in stream.blocks(0) if len(block.labels))


def _copied(x: Any, labels: np.ndarray) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return rows and labels in memory of their own."""
    return assemble("csr", x.indptr.copy(), x.indices.copy(), x.data.copy(), x.shape), labels.copy()
