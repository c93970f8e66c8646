"""Generated rows of the shape of click logs, to train more of them than a process may hold.

A row has an entry, 1, in each of 39 fields; the fields share D columns by sizes that double, and within a field small
numbers are frequent. Labels, 0 or 1, are drawn from a logistic model whose weights are fixed by the seed. A block
depends on the seed and its number alone.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from workbench import data
from workbench.formats.compressed import assemble
from workbench.kvstore import Drawn

FIELDS = 39
BLOCK_ROWS = 50_000
SKEW = 4
"""A uniform number to this power is where in its field a value stands: a quarter of all are in the first 1 / 256."""


def borders(features: int) -> np.ndarray:
    """The first column of each field, and the end of the last: int64 [FIELDS + 1]."""
    shares = 2.0 ** np.linspace(0, 12, FIELDS)
    ends = np.floor(np.cumsum(shares / shares.sum()) * (features - FIELDS)).astype(np.int64) + np.arange(1, FIELDS + 1)
    return np.concatenate([[0], ends])


def blocks(rows: int, features: int, seed: int) -> Iterator[data.RowBlock]:
    """The rows, block by block."""
    starts = borders(features)
    weights = Drawn((features, 1), "float32", "normal", 0.5, seed, "click weights")
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        count, made = min(BLOCK_ROWS, rows - first), np.random.default_rng((seed, number))
        places = np.floor(made.random((count, FIELDS)) ** SKEW * np.diff(starts)).astype(np.int64)
        columns = (starts[:-1] + places).reshape(-1)
        unique, inverse = np.unique(columns, return_inverse=True)
        scores = weights.rows(unique)[inverse, 0].reshape(count, FIELDS).sum(axis=1)
        labels = (made.random(count) < 1 / (1 + np.exp(-(scores - 1)))).astype(np.int64)
        indptr = np.arange(0, count * FIELDS + 1, FIELDS, dtype=np.int32)
        values = np.ones(columns.size, np.float32)
        x = assemble("csr", indptr, columns.astype(np.int32), values, (count, features))
        yield data.RowBlock(x, labels)


def write(folder: Path, rows: int, features: int = 10**6, seed: int = 0) -> int:
    """Make them into a folder of shards, unless it is there; the bytes of its files.

    Values are all 1, which files do not have, and column numbers have the bytes they need: in memory rows take more.
    """
    if not folder.exists():
        named = data.RowBlocks(blocks(rows, features, seed), "clicks", "generated", "none", features)
        data.convert(named, folder, kind="classes", shard_bytes=1 << 26)
    return sum(path.stat().st_size for path in folder.rglob("*.npy"))
