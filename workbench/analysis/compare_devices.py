"""Comparison of places where more than one was measured: devices, or one process and several trainers.

Devices are groups alike but for it; trainers are configurations of one group. Each place has its fastest, at the lowest
and the highest density that both have.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import REMEDY, Contest, compare_best, trained_worse

if TYPE_CHECKING:
    from workbench.analysis.changes import Change

# Rows of several machines: no group, ratio or break-even crosses them; here they are held next to each other.
#
# What tells how machines differ is the configurations that all of them measured, and the fixed work that every trial
# times in addition to its own (`seconds_sentinel`). Seconds of two machines are those of two runs, so intervals are as
# wide as between runs.

VERDICTS = {"slower": "slower", "faster": "faster", "same": "alike", "ambiguous": "not told apart"}


class Machine(NamedTuple):
    """A machine: how many `configurations` have numbers, the median seconds of the fixed work, None if no row has
    it.

    `common` are the configurations that the first machine measured, too: how many times as long they take here as
    there.
    """

    name: str
    configurations: int
    seconds_work: float | None
    common: "tuple[Change, ...]"


def machines(frame: pd.DataFrame) -> list[Machine]:
    """Return the machines of trial records, most configurations first; [] if all records are of one. O(rows)."""
    pooled = configurations.pool_rounds(frame)
    numbered = pooled[pooled["status"].isin(configurations.NUMBERED)]
    counts = Counter(numbered["machine"].dropna())
    if len(counts) < 2:
        return []
    names = sorted(counts, key=lambda name: (-counts[name], name))
    first = numbered[numbered["machine"] == names[0]]
    return [_machine(name, numbered[numbered["machine"] == name], first) for name in names]


def _machine(name: str, own: pd.DataFrame, first: pd.DataFrame) -> Machine:
    """Return the `Machine` of the pooled records `own`, with its changes against those of the `first` machine.

    There are no common changes if it is the first machine, or if no configuration is in both.
    """
    from workbench.analysis.changes import compare_runs  # late: most records are of one machine
    from workbench.analysis.pairs import CompareError

    works = own["seconds_sentinel"].dropna().tolist()
    try:
        common = () if name == first["machine"].iloc[0] else compare_runs(first, own).configurations
    except CompareError:
        common = ()
    return Machine(name, len(own), float(statistics.median(works)) if works else None, common)


def compare_machine_sentences(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence per further machine on how it compares with the first; nothing for a single machine.

    `frame` holds trial records of one or more machines.
    """
    found = machines(frame)
    for other in found[1:]:
        if not other.common:
            yield (f"Machine {other.name} shares no timed configuration with the first, so how they differ is unknown.")
            continue
        from workbench.analysis.changes import count_by_verdict

        counts = count_by_verdict(other.common)
        each = formatting.join_items(
            f"{counts[verdict]} {word}" for verdict, word in VERDICTS.items() if counts[verdict]
        )
        shared = formatting.format_count(len(other.common), "configuration")
        yield f"On machine {other.name} {shared} that {found[0].name} measured, too, are: {each}."


def table(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return (headings, rows of text) with a column per machine; ([], []) for a single machine.

    The rows are the configurations, the time of the fixed work, then each common configuration as times of the first
    machine's. `frame` holds trial records of one or more machines.
    """
    found = machines(frame)
    if not found:
        return [], []
    from workbench.analysis.changes import format_change

    works = ["" if one.seconds_work is None else formatting.format_seconds(one.seconds_work) for one in found]
    lines = [
        ["configurations with numbers", *(str(one.configurations) for one in found)],
        ["fixed work of NumPy", *works],
    ]
    for configuration in dict.fromkeys(change.name for one in found for change in one.common):
        others = [next((format_change(c) for c in one.common if c.name == configuration), "") for one in found[1:]]
        lines.append([configuration, "1", *others])
    return ["what", *(one.name for one in found)], lines


Record = Mapping[str, Any]
MEASURE = "seconds_step"


class _Location(NamedTuple):
    """Name of a place, alone and behind "the fastest", its rows with a time, and what ends their names."""

    name: str
    there: str
    rows: Sequence[Record]
    ending: str = ""
    verb: str = "is"


def compare_device_sentences(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Yield sentences that compare devices, and one process with several trainers, each at its fastest.

    They are compared at the lowest and the highest density that both have. `groups` hold pooled records of comparable
    configurations.
    """
    for one, other in combinations(groups, 2):
        if {name for name, value in one.settings.items() if other.settings[name] != value} == {"device"}:
            yield from _compare_locations(_device(one), _device(other))
    for group in groups:
        head = f"{formatting.capitalized(group.label)}: " if len(groups) > 1 else ""
        places = _trainers(group)
        for several in places[1:]:
            for sentence in _compare_locations(places[0], several):
                yield f"{head}{sentence[:1].lower()}{sentence[1:]}" if head else sentence


def _device(group: configurations.Group) -> _Location:
    """Return the usable records of a group as a location named by its device, such as "cuda"."""
    device = group.settings["device"]
    return _Location(device, f"on {device}", _comparable_records(group.rows), f" on {device}")


def _trainers(group: configurations.Group) -> list[_Location]:
    """Return the locations "one process", "2 trainers", ... of a group's sparse records; [] without one process."""
    sparse = [row for row in _comparable_records(group.rows) if not configurations.is_dense(row)]
    counts = sorted({row["trainers"] for row in sparse})
    if counts[:1] != [1]:
        return []
    by_count = {count: [row for row in sparse if row["trainers"] == count] for count in counts}
    alone = _Location("one process", "by one process", by_count.pop(1))
    return [alone, *(_multiple_trainers(f"{count} trainers", rows) for count, rows in by_count.items())]


def _multiple_trainers(name: str, rows: Sequence[Record]) -> _Location:
    """Return records of several trainers as a location to compare, with the name `name`."""
    return _Location(name, f"by {name}", rows, verb="are")


def _comparable_records(rows: Sequence[Record]) -> list[Record]:
    """Return the records that have a result and did not train a worse model than the dense update."""
    worse = {id(row) for row, _ in trained_worse(rows)}
    return [row for row in rows if row["status"] in configurations.NUMBERED and id(row) not in worse]


def _compare_locations(one: _Location, other: _Location) -> Iterator[str]:
    """Yield a sentence on two locations at the lowest and, if it is another, the highest density that both have.

    `one` and `other` hold the records of a device or of a number of trainers.
    """
    rows = [configurations.by_density(place.rows) for place in (one, other)]
    densities = sorted(set(rows[0]) & set(rows[1]), key=lambda density: density or 0.0)
    for density in dict.fromkeys(densities[:1] + densities[-1:]):
        found = compare_best(rows[0][density], rows[1][density], MEASURE)
        yield _sentence(density, one, other, found)


def _sentence(density: float | None, one: _Location, other: _Location, found: Contest) -> str:
    """Return the sentence on contest `found`, in which location `one` took the part of sparse, `other` of dense.

    It begins with `density`, a fraction; None is the data's own density.
    """
    where = f"At {formatting.format_density(density) if density is not None else configurations.NATURAL} density"
    both = f"the fastest {one.there} and the fastest {other.there}"
    if found.verdict == "level":
        return f"{where} {both} are equal (within 10 %)."
    if found.verdict == "inconclusive":
        return f"{where} {both} cannot be distinguished: {found.why} ({REMEDY[found.why]})."
    best, slower, ratio = found.known
    pairs = [(one, best), (other, slower)]
    (first, fast), (second, slow) = pairs if found.verdict == "sparse" else pairs[::-1]
    sides = " and ".join(f"{_name_without_device(row)}{place.ending}" for place, row in ((first, fast), (second, slow)))
    gain = f"{first.name} {first.verb} {formatting.format_gain(ratio)} faster than {second.name}"
    return f"{where} {gain}, each at its fastest: {sides}."


def _name_without_device(row: Record) -> str:
    """Return the name of a record's configuration without its device."""
    return formatting.name_configuration({**row, "device": "cpu"})
