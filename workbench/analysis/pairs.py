"""Configurations of two runs, paired by their settings.

Which records can be compared, and which have no counterpart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from workbench import store
from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import values_of

Record = Mapping[str, Any]
SETTINGS = tuple(name for name in store.TRIALS.settings if name != "round")
SURE = tuple(name for name in SETTINGS if name not in configurations.FROM_DATA)
"""Settings that a row knows that failed before its data was read, too."""


class CompareError(ValueError):
    """Runs or rows that cannot be compared; the message says why, and what can."""


class Pair(NamedTuple):
    """A configuration in two runs, pooled in each; `name` tells it from the others."""

    name: str
    before: Record
    after: Record

    @property
    def is_same_code(self) -> bool:
        """Whether both records have one key and machine: equal settings, code and versions, so only time differs."""
        return self.before["key"] == self.after["key"] and self.before["machine"] == self.after["machine"]


@dataclass(frozen=True)
class Pairs:
    """The configurations of two runs: `timed` in both, `numbered` in both (disturbed ones have their memory), `lost`
    since.

    `again` are those whose rows are the same in both, so that nothing was measured anew; `only_before` and `only_after`
    count configurations without a partner, `machines` are the two machines.
    """

    timed: tuple[Pair, ...]
    numbered: tuple[Pair, ...]
    lost: tuple[Pair, ...]
    again: int
    only_before: int
    only_after: int
    machines: tuple[str, str]

    @property
    def is_one_machine(self) -> bool:
        """Whether both runs have the same machine name or names."""
        return self.machines[0] == self.machines[1]


def pair_runs(before: pd.DataFrame, after: pd.DataFrame) -> Pairs:
    """Return the pairs of configurations of two frames of trial records. O(rows).

    Raises CompareError if a frame is empty or no configuration is in both. `before` and `after` hold the trial records
    of the two runs, in the order written.
    """
    sides = [configurations.records(configurations.pool_rounds(frame)) for frame in (before, after)]
    for which, rows in zip(("first", "second"), sides, strict=True):
        if not rows:
            raise CompareError(f"The {which} run has no rows; give two runs that have measured something.")
    found, left = _match_records(*sides)
    if not found:
        varied = [name for name in SETTINGS if _values(sides[0], name) != _values(sides[1], name)]
        raise CompareError(
            f"No configuration is in both runs. They differ in "
            f"{formatting.join_items(varied) if varied else 'which settings go together'};"
            " compare runs of the same spec."
        )
    fresh = [pair for one in _with_names(found) if (pair := _without_repeated_rounds(one)) is not None]
    return Pairs(
        tuple(pair for pair in fresh if _have_value(pair, ("ok",))),
        tuple(pair for pair in fresh if _have_value(pair, configurations.NUMBERED)),
        tuple(pair for pair in fresh if _is_lost(pair)),
        len(found) - len(fresh),
        len(sides[0]) - len(found),
        left,
        (_machine(sides[0]), _machine(sides[1])),
    )


def _match_records(before: Sequence[Record], after: Sequence[Record]) -> tuple[list[tuple[Record, Record]], int]:
    """Return ((before, after) records that agree in all settings, number of `after` records without a partner).

    Data sizes that one of the two does not know are ignored.
    """
    waiting = configurations.group_by(after, itemgetter(*SURE))
    found: list[tuple[Record, Record]] = []
    for row in before:
        alike = waiting.get(itemgetter(*SURE)(row), [])
        other = next((other for other in alike if _settings_agree(row, other)), None)
        if other is not None:
            alike.remove(other)
            found.append((row, other))
    return found, sum(map(len, waiting.values()))


def _settings_agree(row: Record, other: Record) -> bool:
    """Return whether two records agree in the data sizes; an unknown (None) size agrees with any."""
    sizes = (name for name in configurations.FROM_DATA if name in SETTINGS)
    return all(row[name] == other[name] or None in (row[name], other[name]) for name in sizes)


def _with_names(found: Sequence[tuple[Record, Record]]) -> list[Pair]:
    """Return the (before, after) records as pairs, named by configuration and the settings that vary."""
    names = configurations.names_of(
        [row for row, _ in found], [name for name in configurations.GROUP if name in SETTINGS]
    )
    return [Pair(name, row, other) for name, (row, other) in zip(names, found, strict=True)]


def _without_repeated_rounds(pair: Pair) -> Pair | None:
    """Return the pair without rounds in `after` that are also in `before`; None if no round is left there."""
    known = {name: values_of(pair.before, name) for name in pair.after.get("round_values") or ()}
    values = {
        name: {place: value for place, value in own.items() if known[name].get(place) != value}
        for name, own in (pair.after.get("round_values") or {}).items()
    }
    if pair.after["status"] in configurations.NUMBERED and not any(map(len, values.values())):
        return None
    return pair._replace(after=dict(pair.after) | {"round_values": values})


def _have_value(pair: Pair, statuses: Sequence[str]) -> bool:
    """Return whether both records of a pair have one of `statuses`."""
    return pair.before["status"] in statuses and pair.after["status"] in statuses


def _is_lost(pair: Pair) -> bool:
    """Return whether the first record has a result and the second one failed; "stopped" is no failure."""
    return pair.before["status"] in configurations.NUMBERED and pair.after["status"] not in (
        *configurations.NUMBERED,
        "stopped",
    )


def _machine(rows: Iterable[Record]) -> str:
    """Return the distinct machine names of records, joined by commas and "and"; "an unnamed machine" without any."""
    return formatting.join_items(sorted({row["machine"] for row in rows if row["machine"]}) or ["an unnamed machine"])


def _values(rows: Iterable[Record], name: str) -> set[str]:
    """Return the distinct values of a column as their `repr`."""
    return {repr(row[name]) for row in rows}
