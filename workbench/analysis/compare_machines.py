"""Rows of several machines: no group, ratio or break-even crosses them; here they are held beside each other.

What tells how machines differ is the configurations that all of them measured, and the fixed work that every trial
times beside its own (`seconds_sentinel`). Seconds of two machines are those of two runs, so intervals are as wide as
between runs.
"""

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.changes import Change, compare_runs, count_by_verdict, format_change
from workbench.analysis.pairs import CompareError

VERDICTS = {"slower": "slower", "faster": "faster", "same": "alike", "ambiguous": "not told apart"}


class Machine(NamedTuple):
    """A machine: how many `configurations` have numbers, the median seconds of the fixed work, None if no row has
    it.

    `common` are the configurations that the first machine measured, too: how many times as long they take here as
    there.
    """

    name: str
    cells: int
    seconds_work: float | None
    common: tuple[Change, ...]


def machines(frame: pd.DataFrame) -> list[Machine]:
    """Return the machines of trial rows, that with most configurations first; empty if all rows are of one. O(rows)."""
    pooled = configurations.pool_rounds(frame)
    numbered = pooled[pooled["status"].isin(configurations.NUMBERED)]
    counts = Counter(numbered["machine"].dropna())
    if len(counts) < 2:
        return []
    names = sorted(counts, key=lambda name: (-counts[name], name))
    first = numbered[numbered["machine"] == names[0]]
    return [_machine(name, numbered[numbered["machine"] == name], first) for name in names]


def _machine(name: str, own: pd.DataFrame, first: pd.DataFrame) -> Machine:
    """Return a machine's records summarised: count, time of the reference workload, and changes against the first
    machine.
    """
    works = own["seconds_sentinel"].dropna().tolist()
    try:
        common = () if name == first["machine"].iloc[0] else compare_runs(first, own).cells
    except CompareError:
        common = ()
    return Machine(name, len(own), float(statistics.median(works)) if works else None, common)


def compare_machine_sentences(frame: pd.DataFrame) -> Iterator[str]:
    """Compare each machine with the first, in a sentence each; none if there is one machine."""
    found = machines(frame)
    for other in found[1:]:
        if not other.common:
            yield f"Machine {other.name} shares no timed cell with the first, so nothing says how the two differ."
            continue
        counts = count_by_verdict(other.common)
        each = formatting.join_items(
            f"{counts[verdict]} {word}" for verdict, word in VERDICTS.items() if counts[verdict]
        )
        shared = formatting.format_count(len(other.common), "cell")
        yield f"On machine {other.name} {shared} that {found[0].name} measured, too, are: {each}."


def table(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: configurations, the fixed work, each common configuration as times of the first machine's.

    By machine.
    """
    found = machines(frame)
    if not found:
        return [], []
    works = ["" if one.seconds_work is None else formatting.format_seconds(one.seconds_work) for one in found]
    lines = [["cells with numbers", *(str(one.cells) for one in found)], ["fixed work of NumPy", *works]]
    for cell in dict.fromkeys(change.name for one in found for change in one.common):
        others = [next((format_change(c) for c in one.common if c.name == cell), "") for one in found[1:]]
        lines.append([cell, "1", *others])
    return ["what", *(one.name for one in found)], lines
