"""Configurations of rows: which rows measure the same thing, and which configurations may be compared."""

import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import pandas as pd

from workbench import settings
from workbench.analysis import formatting
from workbench.analysis.intervals import number_or_none
from workbench.analysis.pool import (
    configuration_of,
    configurations_of,
    group_by,
    on_its_device,
    once_per_frame,
    part_of,
    pool_rounds,
    records,
)

__all__ = ["configuration_of", "configurations_of", "group_by", "on_its_device", "part_of", "pool_rounds", "records"]

Record = Mapping[str, Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")

LINE = (*settings.columns("line"), "index_dtype")
BEST = settings.columns("best")
"""Settings of which the best stands for all."""
GROUP = (*settings.columns("group"), "rows_trained", "machine")
"""Rows that differ in one of these are never compared, nor drawn as one line; how many rows are left is among them."""
FROM_DATA = ("rows_total", "features", "width", "rows_trained")
"""What a row that failed before its data was read does not know."""
_values_of_group = operator.itemgetter(*GROUP)
HELD = "same"
"""The setting `storage` of data that are held in the format of their batches: of a dense training a dense array."""
NATURAL = "the data's own"
NUMBERED = ("ok", "disturbed")
"""Statuses of rows with numbers; those of disturbed rows are of memory."""


@dataclass(frozen=True, eq=False)
class Group:
    """Configurations alike but for density and configuration: what one chart shows.

    `label` tells it from the other groups. `derived` has the results of functions of the group, by function and
    arguments (`once_per_group`), so `rows` must not change.
    """

    settings: dict[str, Any]
    label: str
    rows: list[dict[str, Any]]
    derived: dict[tuple, Any] = field(default_factory=dict, init=False, repr=False)


def once_per_group(
    function: Callable[Concatenate[Group, Given], Result],
) -> Callable[Concatenate[Group, Given], Result]:
    """Return `function` of a group and further arguments, such that it computes each result once per group.

    All that shows the group then shares the result, which must not be changed.
    """

    @functools.wraps(function)
    def recall(group: Group, /, *given: Given.args, **named: Given.kwargs) -> Result:
        """Return the result for these arguments, computed at the first call."""
        key = (function, given, *named.items())
        if key not in group.derived:
            group.derived[key] = function(group, *given, **named)
        return cast("Result", group.derived[key])

    return recall


def groups(frame: pd.DataFrame) -> list[Group]:
    """Return the groups of comparable configurations in a frame of trial records, largest first.

    Records are pooled (`pool_rounds`); groups of equal size keep the order written. The groups of a frame that was
    pooled before are the same objects each time.
    """
    return list(once_per_frame(_groups, pool_rounds(frame)))


def _groups(pooled: pd.DataFrame) -> list[Group]:
    """Return the groups of a frame of pooled records, largest first."""
    by_key: dict[tuple, list[dict[str, Any]]] = {}
    # Whole rows first: one that failed early may not know the sizes of its data; it joins a group that agrees so far.
    for row in sorted(records(pooled), key=lambda row: row["status"] not in NUMBERED):
        by_key.setdefault(_group_of(row, by_key), []).append(row)
    columns = zip(*by_key, strict=True)  # the values of each setting of GROUP
    varying = [name for name, values in zip(GROUP, columns, strict=False) if len(set(values)) > 1]
    ordered = sorted(by_key.items(), key=lambda item: -len(item[1]))
    named = [(dict(zip(GROUP, key, strict=True)), rows) for key, rows in ordered]
    return [Group(group, describe(group, varying or GROUP) or "without an intercept", rows) for group, rows in named]


def _group_of(row: Record, by_key: Mapping[tuple, list[dict[str, Any]]]) -> tuple:
    """Return the key of a record's group: the values of its GROUP settings.

    A record without a result may not know its data's sizes; it gets the key of the one compatible group in `by_key`, if
    there is exactly one (at its density).
    """
    key = _values_of_group(row)
    if row["status"] in NUMBERED:
        return key
    agreeing = [other for other in by_key if _is_compatible(key, other)]
    if len(agreeing) > 1:
        agreeing = [other for other in agreeing if any(one["density"] == row["density"] for one in by_key[other])]
    return agreeing[0] if len(agreeing) == 1 else key


def _is_compatible(key: tuple, other: tuple) -> bool:
    """Return whether two group keys differ at most in data sizes that are None in the first."""
    for name, mine, theirs in zip(GROUP, key, other, strict=True):  # not all(): it is asked for each pair of rows
        if mine != theirs and not (mine is None and name in FROM_DATA):
            return False
    return True


def describe(group: Record, names: Sequence[str] = GROUP) -> str:
    """Return the settings `names` of a group as text; unknown (None) ones are left out.

    >>> describe({"width": 16, "batch_rows": 256, "threads": 1}, ("width", "batch_rows", "threads"))
    'width 16, 256 rows a batch, 1 thread'
    """
    say = {setting.column or setting.name: setting.say for setting in settings.SETTINGS}
    say["machine"] = lambda machine: f"machine {machine}"
    of_all = group.get("rows_trained") == group.get("rows_total")
    say["rows_trained"] = lambda rows: "" if of_all and "rows_total" in names else f"{rows:,} rows trained on"
    return ", ".join(filter(None, (say[name](group[name]) for name in names if group.get(name) is not None)))


def names_of(rows: Sequence[Record], names: Sequence[str] = GROUP) -> list[str]:
    """Return a name per record: configuration, density, and those settings of `names` in which the records differ."""
    varied = [name for name in names if len(set(map(operator.itemgetter(name), rows)) - {None}) > 1]
    best = [name for name in BEST if len(set(map(operator.itemgetter(name), rows))) > 1]
    return [_name(row, varied, best) for row in rows]


def _name(row: Record, varied: Sequence[str], best: Sequence[str]) -> str:
    """Return the name of a record's configuration, its density, the settings `varied`, and the parameters `best`."""
    own = [f"{name.replace('_', ' ')} {row[name]:g}" for name in best if row[name] is not None]
    at = f"{formatting.name_configuration(row)} at {density_label(row)} density"
    return ", ".join(filter(None, (at, describe(row, varied), *own)))


line_key: Callable[[Record], tuple] = operator.itemgetter(*LINE)
"""Returns the values of the settings that identify a record's configuration at any density, as a hashable tuple."""


def line_of(row: Record) -> dict[str, Any]:
    """Return {setting: value} of the settings that identify a record's configuration at any density."""
    return dict(zip(LINE, line_key(row), strict=True))


def sparse_lines(rows: Iterable[Record]) -> dict[tuple, list[Record]]:
    """Return {configuration: its records}, in the order met; records of dense candidates are left out."""
    return group_by((row for row in rows if not is_dense(row)), line_key)


def dense_lines(rows: Iterable[Record]) -> dict[tuple, list[Record]]:
    """Return {dense configuration: its records}; dense arrays first, per-step execution first, all threads first."""
    return group_by(sorted(dense_rows(rows), key=_dense_order), line_key)


def _dense_order(row: Record) -> tuple[bool, str, bool, bool]:
    """Return the sort key of a dense configuration: dense arrays, per-step execution, and all threads come first."""
    storage = storage_of(row)
    return storage != HELD, storage, (row.get("execution") or "step") != "step", bool(row.get("serial"))


def storage_of(row: Record) -> str:
    """Return how a record's data are stored between batches (setting `storage`); "same", the default, if unset."""
    return row.get("storage") or HELD


def dense_rows(rows: Iterable[Record]) -> list[Record]:
    """Return the records of dense candidates, in their order; the best of them is the baseline."""
    return [row for row in rows if is_dense(row)]


def is_dense(row: Record) -> bool:
    """Return whether a record trained on dense batches by dense kernels, however its data are stored."""
    return row["format"] == "dense"


def density_of(row: Record) -> float | None:
    """Return the measured density of a record, else the requested one; None if neither is known."""
    measured = number_or_none(row["density_measured"])
    return number_or_none(row["density"]) if measured is None else measured


def density_label(row: Record) -> str:
    """Return the requested density in per cent, such as "1 %"; "the data's own" if none was requested."""
    return NATURAL if row["density"] is None else formatting.format_density(row["density"])


def by_density(rows: Iterable[Record]) -> dict[float | None, list[Record]]:
    """Return {requested density: records}, in the order met; None is the data's own density."""
    return group_by(rows, operator.itemgetter("density"))


UNMEASURED = "skipped"
"""Status of records for which there was no time; they may have predictions."""


def status_text(status: str) -> str:
    """Return a status as texts name it: "not measured" for `UNMEASURED`, others as they are."""
    return "not measured" if status == UNMEASURED else status


def failures(rows: Iterable[Record]) -> Counter:
    """Return a Counter of (status, reason) over the records without a result."""
    return Counter((row["status"], row["reason"] or "") for row in rows if row["status"] not in NUMBERED)
