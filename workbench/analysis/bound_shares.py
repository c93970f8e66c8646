"""Share of the machine's bound that each kernel reaches, and why one that stays far from it does."""

from collections import Counter
from typing import NamedTuple

import pandas as pd

from workbench.analysis.bench import cells, geometric_mean

ROWS_LARGE = 4096
"""Rows of a batch from which on a call's own cost is small beside its work."""

WANTED = 0.6
"""The share that each kernel is to reach, or the page says why not."""


class Share(NamedTuple):
    """The mean share of the bound that a kernel reaches in large batches, what binds most often, in how many cells, and
    why calls stay below, as its rows say."""

    kernel: str
    mean: float
    by: str
    cells: int
    why: str


def shares(frame: pd.DataFrame) -> list[Share]:
    """Each kernel of ours with a bound, the lowest first; contenders of two kernels are left out."""
    found: dict[str, list[tuple[float, str, str]]] = {}
    for rows in cells(frame):
        for row in rows:
            alone = row["side"] == "ours" and "+" not in row["contender"]
            if alone and row["bound_share"] and row["rows"] >= ROWS_LARGE:
                told = row["bound_share"], row["bound_by"], row["why_below"] or ""
                found.setdefault(row["contender"], []).append(told)
    named = []
    for name, each in found.items():
        (by, _), *_ = Counter(by for _, by, _ in each).most_common(1)
        mean = geometric_mean(share for share, _, _ in each) or 0.0
        named.append(Share(name, mean, by, len(each), each[-1][2]))
    return sorted(named, key=lambda share: share.mean)


def lines(frame: pd.DataFrame) -> list[tuple[str, str, str, str, str]]:
    """(kernel, share, what binds, cells, why it is below) for a page."""
    return [
        (each.kernel, f"{100 * each.mean:.0f} %", each.by, str(each.cells), each.why * (each.mean < WANTED))
        for each in shares(frame)
    ]
