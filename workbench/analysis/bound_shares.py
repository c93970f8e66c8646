"""How near each kernel comes to what the machine allows, and why one that stays far from it does.

>>> why("merge_rows"), why("csr_dense")
('indices are sorted first, which the bound does not count', '')
"""

import re
from collections import Counter
from typing import NamedTuple

import pandas as pd

from workbench.analysis.bench import cells, geometric_mean

ROWS_LARGE = 4096
"""Rows of a batch from which on a call's own cost is small beside its work."""

WANTED = 0.6
"""The share that each kernel is to reach, or the page says why not."""

REASONS = {
    r"(add|merge)_rows": "indices are sorted first, which the bound does not count",
    r"csr_csr|sampled_csr": "each term is looked up by its column, which the bound does not count",
    r"coo_to_csr|csr_to_csc|slice_rows|csr_to_coo_rows": "the result is new memory, whose pages the system clears "
    "first; what places entries runs on one thread where there are many rows or columns to count",
    r"dense_csr(_t)?": "zeros of the dense operand are looked for, and rows of the result added to where they stand",
    r".*_(lazy|fused)|coast(_pair)?|(scatter|take|retain)_rows": "rows of one number are found one by one: what is "
    "waited for is the latency of a cache, which the bound does not count",
    r"csr_t_dense.*|csr_csr_dense": "columns have few entries and lengths that no processor guesses",
    r"softmax|logistic|squared|square_norm": "with N = 1 a call has 4,096 numbers, and entering it takes as long",
}
"""Why a kernel stays below, by a pattern of its name; the first that fits."""


class Share(NamedTuple):
    """The mean share of the bound that a kernel reaches in large batches, what binds most often, in how many cells."""

    kernel: str
    mean: float
    by: str
    cells: int


def shares(frame: pd.DataFrame) -> list[Share]:
    """Each kernel of ours with a bound, the lowest first; contenders of two kernels are left out."""
    found: dict[str, list[tuple[float, str]]] = {}
    for rows in cells(frame):
        for row in rows:
            alone = row["side"] == "ours" and "+" not in row["contender"]
            if alone and row["bound_share"] and row["rows"] >= ROWS_LARGE:
                found.setdefault(row["contender"], []).append((row["bound_share"], row["bound_by"]))
    named = []
    for name, each in found.items():
        (by, _), *_ = Counter(by for _, by in each).most_common(1)
        named.append(Share(name, geometric_mean(share for share, _ in each) or 0.0, by, len(each)))
    return sorted(named, key=lambda share: share.mean)


def why(kernel: str) -> str:
    """Why that kernel stays below `WANTED`, where that is known."""
    return next((reason for pattern, reason in REASONS.items() if re.fullmatch(pattern, kernel)), "")


def lines(frame: pd.DataFrame) -> list[tuple[str, str, str, str, str]]:
    """(kernel, share, what binds, cells, why it is below) for a page."""
    return [
        (each.kernel, f"{100 * each.mean:.0f} %", each.by, str(each.cells), why(each.kernel) * (each.mean < WANTED))
        for each in shares(frame)
    ]
