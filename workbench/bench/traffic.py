"""Memory traffic of a call beyond its kernel's formula: lines instead of narrow rows, and rows no cache can keep.

A row narrower than a line moves a whole line where its neighbours are not touched. Of the rows that are gathered, the
most frequent are served by the last cache as far as they fit it, at best; the others come from memory each time.
"""

from dataclasses import dataclass

import numpy as np

from kernels import Kernel, Sizes
from workbench.bench.shapes import Batch
from workbench.measure import bandwidth
from workbench.measure.roofs import table_bytes, touched_bytes


@dataclass(frozen=True)
class Traffic:
    """`bytes_row` is 0 where nothing is known; `cold` is the share of gathered rows that no cache can keep."""

    bytes_row: int = 0
    bytes_table: int = 0
    bytes_lines: int = 0
    cold: float = 0.0


UNKNOWN = Traffic()


def traffic_of(kernel: Kernel, sizes: Sizes, batch: Batch) -> Traffic:
    """The traffic of a kernel on a batch: a gradient gathers the rows of g, the others those of x."""
    if "g" in (name for name, _, _ in kernel.parsed):
        counts = np.diff(batch.indptr)
    else:
        counts = np.bincount(np.unique(batch.indices, return_inverse=True)[1])
    table = table_bytes(kernel, sizes)
    return Traffic(sizes.N * sizes.value, table, lines(kernel, sizes), cold(counts, table))


def lines(kernel: Kernel, sizes: Sizes) -> int:
    """Bytes beside the touched rows of all [D, N] tables, in the lines that are read, and written where they change."""
    beside = max(touched_bytes(sizes) - sizes.U * sizes.N * sizes.value, 0)
    shape = (("D", 0), ("N", 0))
    tables = (name for name, kind, axes in kernel.parsed if kind == "f" and axes == shape and name != "out")
    return beside * sum(2 if name in kernel.writes else 1 for name in tables)


def cold(counts: np.ndarray, bytes_table: int) -> float:
    """Share of accesses to rows beyond those most frequent ones that fit the last cache; `counts` are of each row.

    >>> cold(np.array([5, 3, 1, 1]), 0)
    0.0
    """
    kept = int(len(counts) * min(1.0, bandwidth.last_cache_bytes() / max(bytes_table, 1)))
    return float(np.sort(counts)[: len(counts) - kept].sum() / max(counts.sum(), 1))
