"""One row a configuration: rounds pooled, failures and disturbed rounds counted, seconds of one run only."""

import operator
import statistics
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import pandas as pd

from workbench import settings, store
from workbench.analysis.estimates import Comparison, Member
from workbench.analysis.intervals import DISTURBED
from workbench.measure.posterior import Scatter, Trial, residuals, severity_of, usual_scatter
from workbench.measure.rounds import mean_interval

Record = Mapping[str, Any]
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Place = tuple[str, int]
"""Run and round: what may be paired."""

CONFIGURATION = (*(name for name in store.TRIALS.settings if name != "round"), "machine")
COMPARISON = tuple(
    name for name in CONFIGURATION if name not in (*settings.columns("line"), *settings.columns("best"), "index_dtype")
)
"""Settings in which the candidates of a comparison agree."""
_configuration_of, _comparison_of = operator.itemgetter(*CONFIGURATION), operator.itemgetter(*COMPARISON)
ADDED = ("storage", "device", "execution", "intercept", "serial", "trainers")
"""Settings that older rows do not have: they were measured with what is usual."""
MEMORY = ("bytes_predicted", "bytes_held", "bytes_peak")
BUSY = 0.1
"""Rows of schema 1 were not tried again next to other programs: with more than this share of the cores, disturbed."""
TRAINED = ("loss_first", "loss_last", "quality")
"""What a training came to belongs to its curve: that of the last round, never a mean over rounds."""
EXTRA = {"rounds": "int64", "rounds_failed": "int64", "rounds_disturbed": "int64", "round_values": "object"}
EXTRA |= {"deviation": "float64", "freedom": "float64", "member": "object"}
_NUMBERS = tuple(
    name
    for name, column in store.TRIALS.columns.items()
    if column.kind in ("number", "integer") and name not in TRAINED
)


class Rounds(NamedTuple):
    """The records of a configuration that count, by run and round; of a round measured twice the later one."""

    timed: dict[Place, dict[str, Any]]
    disturbed: dict[Place, dict[str, Any]]
    failed: int

    @property
    def best(self) -> dict[Place, dict[str, Any]]:
        """The records whose seconds are shown, by (run, round): undisturbed ones, else the disturbed ones."""
        return self.timed or self.disturbed


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return {key: items with it}; keys in the order of their first item, items in the order given.

    >>> group_by(["csr", "dense", "coo"], len)
    {3: ['csr', 'coo'], 5: ['dense']}
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries: nulls as None, NumPy scalars as Python numbers.

    Those of a frame that `pool_rounds` returned are made once; each call returns new dictionaries.
    """
    return list(map(dict, once_per_frame(_records, frame)))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries, missing values (NaN, NA) as None."""
    names = frame.columns.tolist()
    values = [_python_values(column) for _, column in frame.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _python_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as Python objects, missing ones (NaN, NA) as None. O(rows).

    Column by column this takes a quarter of the time of `frame.astype(object).where(frame.notna(), None)`.
    """
    values = column.tolist()
    if column.dtype == "float64":
        return [None if value != value else value for value in values]
    return [None if value is pd.NA or (isinstance(value, float) and value != value) else value for value in values]


_derived: dict[int, tuple[weakref.ref[pd.DataFrame], dict[Callable, Any]]] = {}
"""Results of functions of pooled frames that live, by the frame's id and the function."""


def _keep_results(frame: pd.DataFrame) -> None:
    """Have `once_per_frame` keep its results until `frame` is garbage collected; it must not be changed any more."""
    place = id(frame)
    _derived[place] = weakref.ref(frame, lambda _: _derived.pop(place, None)), {}


def once_per_frame(function: Callable[[pd.DataFrame], Item], frame: pd.DataFrame) -> Item:
    """Return `function(frame)`, of a frame that `pool_rounds` returned the same object each time: do not change it."""
    known = _derived.get(id(frame))
    if known is None or known[0]() is not frame:
        return function(frame)
    if function not in known[1]:
        known[1][function] = function(frame)
    return cast("Item", known[1][function])


def on_its_device(row: dict[str, Any]) -> dict[str, Any]:
    """Return the record with the memory columns of the device that it trained on; a new dict for CUDA.

    Columns that were not measured on the CUDA device keep the values of the host.
    """
    if row["device"] != "cuda":
        return row
    there = {name: row[f"bytes_device_{name.removeprefix('bytes_')}"] for name in MEMORY}
    return row | {name: value for name, value in there.items() if value is not None}


def is_disturbed(row: Record) -> bool:
    """Return whether other programs ran during a trial, so that its times are unreliable; its memory is valid.

    True for the status "disturbed" and, in records of schema 1, for a CPU share of others above 0.1.
    """
    older = row["schema"] is None or row["schema"] < 2
    return row["status"] == "disturbed" or (row["status"] == "ok" and older and (row["busy_others"] or 0.0) > BUSY)


def pool_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one record per configuration, pooled over its rounds; the rows of `frame` are in the order written.

    Parameters
    ----------
    frame : pandas.DataFrame
        Records of trials. A frame that was returned from here is returned as it is.

    Returns
    -------
    pandas.DataFrame
        One record for each configuration: records that agree in all settings but `round`, and in the machine. Added
        columns are `rounds`, `rounds_disturbed`, `rounds_failed`; `round_values`, which has for each number a
        dictionary of its values by (run, round), and under `disturbed` which of these rounds were; `deviation` and
        `freedom`, the noise of the comparison that the configuration belongs to, and `member`, its place in that.

    Notes
    -----
    Only records with the `key` of the newest successful one count, that is, those of the same code and versions; of a
    round measured twice the later one. `seconds_step` and its bounds are the mean of the rounds of one run with its
    95 % interval, since seconds of another run are not comparable: the run with most rounds, of equal ones the newest,
    is named in `run`. Other seconds are medians over those rounds, all other numbers medians over all rounds. Disturbed
    records count for all but seconds; a configuration with no others has the status disturbed, and their seconds
    without an interval. Losses, quality and the rest are those of the last round. If no record has numbers the last
    failure is returned. Bytes are those of the device that trained. O(records).
    """
    if "rounds" in frame.columns:
        return frame
    configurations = configurations_of(frame)
    counted = [_count_rounds(rows) for rows in configurations.values()]
    shown, noise = _runs_shown(counted), _noise(counted)
    pooled = [
        _pool(rows[-1], rounds, shown) | noise(_comparison(rows[-1]))._asdict()
        for rows, rounds in zip(configurations.values(), counted, strict=True)
    ]
    for rows in group_by(pooled, _comparison).values():
        comparison = Comparison(rows)
        for index, row in enumerate(rows):
            row["member"] = Member(comparison, index)
    result = store.frame({name: row[name] for name in store.TRIALS.columns} for row in pooled)
    for name, dtype in EXTRA.items():
        result[name] = pd.Series([row[name] for row in pooled], dtype=dtype)
    _keep_results(result)
    return result


def part_of(pooled: pd.DataFrame, keep: Callable[[Record], bool]) -> pd.DataFrame:
    """Return the pooled records that `keep` is true for, as a frame that is pooled, too; their estimates stay."""
    part = pooled[[keep(row) for row in records(pooled)]].reset_index(drop=True)
    _keep_results(part)
    return part


def configurations_of(frame: pd.DataFrame) -> dict[tuple, list[dict[str, Any]]]:
    """Return {settings of a configuration: its records in the order written}, as `pool_rounds` pools them.

    Records get the default of settings that older ones lack, and the memory of their device. O(rows).
    """
    rows = [on_its_device(row) for row in records(frame)]
    for row in rows:
        row |= {name: settings.value_or_default(name, row[name]) for name in ADDED}
    return group_by(rows, configuration_of)


def configuration_of(row: Record) -> tuple:
    """Return the identity of a record's configuration as a tuple: its settings without the round, and the machine."""
    return _configuration_of(row)


def _count_rounds(rows: list[dict[str, Any]]) -> Rounds:
    """Return the timed and disturbed rounds of one configuration, and the count of failed records.

    `rows` are in the order written; only those with the `key` of the newest good one count, the last of each round.
    """
    numbered = [row for row in rows if row["status"] in ("ok", "disturbed")]
    newest = next((row for row in reversed(numbered) if not is_disturbed(row)), numbered[-1] if numbered else None)
    same = [row for row in numbered if newest and row["key"] == newest["key"]]
    by_place = {(str(row["run"]), row["round"] or 0): row for row in same}
    timed = {place: row for place, row in by_place.items() if not is_disturbed(row)}
    disturbed = {place: row for place, row in by_place.items() if place not in timed}
    return Rounds(timed, disturbed, len(rows) - len(numbered))


def _runs_shown(configurations: Iterable[Rounds]) -> dict[tuple, str]:
    """Return {comparison: name of the run whose seconds are shown}: that with most rounds, of equal ones the newest."""
    rounds: dict[tuple, dict[str, set[int]]] = {}
    newest: dict[str, str] = {}
    for place, row in (item for configuration in configurations for item in configuration.best.items()):
        rounds.setdefault(_comparison(row), {}).setdefault(place[0], set()).add(place[1])
        newest[place[0]] = max(newest.get(place[0], ""), row["time"] or "")
    return {key: max(runs, key=lambda run: (len(runs[run]), newest[run])) for key, runs in rounds.items()}


def _noise(configurations: Iterable[Rounds]) -> Callable[[tuple], Scatter]:
    """Return a function of a comparison (tuple of settings) to the scatter of its rounds.

    Each is shrunk towards that of all comparisons on its machine; unknown comparisons get the default.
    """
    trials: dict[tuple, list[Trial]] = {}
    for number, configuration in enumerate(configurations):
        for place, row in (configuration.disturbed | configuration.timed).items():
            if row["seconds_step"]:
                own, is_beside_others = trials.setdefault(_comparison(row), []), place not in configuration.timed
                severity = severity_of(row.get("busy_others"))
                own.append(
                    Trial(number, row["seconds_step"], *place, is_beside_others, row.get("process"), severity=severity)
                )
    found = {comparison: residuals(own) for comparison, own in trials.items()}
    machine = COMPARISON.index("machine")
    machines = {comparison[machine] for comparison in found}
    usual = {name: usual_scatter(found[one] for one in found if one[machine] == name) for name in machines}
    known = {one: usual[one[machine]].shrunk(*found[one]) for one in found}
    return lambda comparison: known.get(comparison, Scatter())


def _comparison(row: Record) -> tuple:
    """Return the values of the settings that all candidates of a comparison share, as a hashable tuple."""
    return _comparison_of(row)


def _pool(last: dict[str, Any], rounds: Rounds, shown: Mapping[tuple, str]) -> dict[str, Any]:
    """Return the pooled record of a configuration; `last` is its last record, `shown` the run by comparison.

    Without a round that has numbers it is `last`, with the counts of rounds added.
    """
    counts = {"rounds": len(rounds.timed), "rounds_disturbed": len(rounds.disturbed), "rounds_failed": rounds.failed}
    everything = rounds.disturbed | rounds.timed
    if not everything:
        return last | counts | {"round_values": {}}
    runs = [run for run, _ in rounds.best]
    run = shown[_comparison(next(iter(rounds.best.values())))]
    run = run if run in runs else max(reversed(runs), key=runs.count)
    of_run = {place: row for place, row in rounds.best.items() if place[0] == run}
    values, here = _values(everything), _values(of_run)
    *_, newest = of_run.values()
    pooled = newest | counts
    for name in _NUMBERS:
        known = (here if name.startswith("seconds_") else values)[name]
        pooled[name] = _median(list(known.values())) if known else None
    pooled |= {"round_values": values | {DISTURBED: dict.fromkeys(rounds.disturbed, True)}}
    if not rounds.timed:
        return _as_disturbed(pooled)
    if steps := [value for value in here["seconds_step"].values() if value > 0]:
        value, low, high, *_ = mean_interval(steps)
        pooled |= {"seconds_step": value, "seconds_step_low": low, "seconds_step_high": high}
    return pooled | {
        "samples": [sample for row in of_run.values() for sample in row["samples"] or () if sample is not None]
    }


def _as_disturbed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a pooled record without undisturbed rounds: status "disturbed", a reason, no interval, no samples."""
    share = 100 * (row["busy_others"] or 0.0)
    reason = row["reason"] or f"Other programs took {share:.0f} % of the cores while it was measured."
    without = {"seconds_step_low": None, "seconds_step_high": None, "samples": None}
    return row | without | {"status": "disturbed", "reason": reason}


def _values(rows: Mapping[Place, Record]) -> dict[str, dict[Place, Any]]:
    """Return {column: {(run, round): value}} of the columns with numbers, without unknown values."""
    values: dict[str, dict[Place, Any]] = {name: {} for name in _NUMBERS}
    for place, row in rows.items():
        for name, by_place in values.items():
            if (value := row[name]) is not None:
                by_place[place] = value
    return values


def _median(values: list[Any]) -> Any:
    """Return the median of one value or more: an int if all values are ints, else a float."""
    median = float(statistics.median(values))  # NumPy's takes ten times as long for a few values, and charts wait
    return int(median) if {int, bool}.issuperset(map(type, values)) else median
