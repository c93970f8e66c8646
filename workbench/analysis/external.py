"""Compare records of other tools with this project's fastest sparse and dense configurations of equal settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.changes import (
    DRIFT,
    Change,
    Drift,
    compare_step_times,
    format_change,
    minimum_detectable_slowdown,
)
from workbench.analysis.pairs import CompareError, Pair
from workbench.analysis.pool import COMPARISON
from workbench.measure.posterior import EQUIVALENCE_MARGIN
from workbench.store import external

Record = Mapping[str, Any]
NEAR = 0.02
"""How far a measured density may be from the one stated, as a share."""
COLUMNS = ("who", "against", "verdict", "theirs / ours", "could have shown from")


class ExternalComparison(NamedTuple):
    """A row of theirs against a configuration of ours; the ratio of `change` is theirs / ours."""

    who: str
    against: str
    change: Change
    is_one_machine: bool


def compare_external(
    frame: pd.DataFrame, theirs: Iterable[Record], within: float = EQUIVALENCE_MARGIN
) -> list[ExternalComparison]:
    """Compare each external record with the fastest sparse and dense configuration of the settings that it states.

    The drift between both sources is unknown, so the intervals include the differences between whole runs.
    Raises CompareError if no configuration agrees, or those of several comparisons do. O(rows * configurations).
    """
    rows = [row for row in configurations.records(configurations.pool_rounds(frame)) if row["status"] == "ok"]
    pairs, labels = [], []
    for their in theirs:
        for row in _best_of(_matching_cells(rows, their)):
            name = f"{formatting.name_configuration(row)} at {configurations.density_label(row)} density"
            seconds = {("theirs", number): value for number, value in enumerate(their["seconds"])}
            pairs.append(Pair(name, row, dict(their) | {"round_values": {"seconds_step": seconds}}))
            labels.append((their["who"], name, bool(their["machine"]) and their["machine"] == row["machine"]))
    changes = compare_step_times(pairs, Drift(0.0, DRIFT, "none"), within)
    return [
        ExternalComparison(who, name, change, is_one)
        for (who, name, is_one), change in zip(labels, changes, strict=True)
    ]


def _matching_cells(rows: Sequence[Record], their: Record) -> list[Record]:
    """Return the records that have the settings an external record states; CompareError, with those there are, if
    none.
    """
    stated = {name: their[name] for name in external.SETTINGS if their[name] is not None}
    found = [row for row in rows if all(_is_alike(row, name, value) for name, value in stated.items())]
    if not found:
        known = {name: sorted({str(row[name]) for row in rows if row[name] is not None}) for name in stated}
        have = "; ".join(f"{name} {', '.join(values) or 'of the data'}" for name, values in known.items())
        asked = ", ".join(f"{name} {value}" for name, value in stated.items())
        raise CompareError(f"No cell of the run is as {their['who']} states ({asked}). The run has: {have}.")
    varied = [name for name in COMPARISON if len({row[name] for row in found}) > 1]
    if varied:
        raise CompareError(
            f"Cells of several comparisons are as {their['who']} states; state {formatting.join_items(varied)} as well."
        )
    return found


def _is_alike(row: Record, name: str, value: Any) -> bool:
    """Return whether a record has a value of a setting; densities may differ by the share `NEAR`."""
    if name != "density":
        return row[name] == value
    return row[name] == value or abs((row["density_measured"] or 0.0) / value - 1) <= NEAR


def _best_of(rows: Sequence[Record]) -> list[Record]:
    """Return the fastest sparse and the fastest dense record, without a side that has none."""
    sides = ([row for row in rows if not configurations.is_dense(row)], configurations.dense_rows(rows))
    return [min(side, key=lambda row: row["seconds_step"]) for side in sides if side]


def table(held: Iterable[ExternalComparison]) -> list[list[str]]:
    """Return a row each, as COLUMNS; the verdict is that of theirs."""
    return [
        [one.who, one.against, one.change.verdict, format_change(one.change), minimum_detectable_slowdown(one.change)]
        for one in held
    ]


def external_notes(held: Sequence[ExternalComparison]) -> list[str]:
    """Return the sentences that hold for all of the table."""
    lines = ["Verdicts are those of theirs. Their times and ours are no neighbours, so intervals are wider."]
    if not all(one.is_one_machine for one in held):
        lines.append("Some of theirs are of another machine, or name none: what is compared is both, machine and code.")
    return lines
