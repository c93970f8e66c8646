"""The profile of a data set in words: its numbers as lines, and whether it is sparse enough to be worth measuring.

A profile is the nested mapping that `workbench.data.profile` returns and JSON stores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kernels.registry import format_count
from workbench.analysis import configurations
from workbench.analysis.breakeven import locate_crossing
from workbench.analysis.compare import contests_of_group
from workbench.analysis.formatting import format_bytes, format_density, format_number, join_items
from workbench.measure.posterior import Ratio

# Shift of the ratio of dense to sparse at one density, with the structure of the data and with their size.
#
# Groups that are alike but for the data set, or but for the number of rows, tell it. A verdict is about data like those
# measured; this says how much others may differ.


MEASURE = "seconds_step"
NAME = "structure"
"""The sweep that measures it, by which its rows are found."""
COMMAND = "workbench sweep workbench/specs/structure.toml"
FOLLOWING = ("rows_trained",)
"""Settings of a group that follow from the number of its rows."""


@dataclass(frozen=True)
class RatiosBySetting:
    """Ratios dense / sparse at one density of groups alike but for one setting, by its value, rising by ratio."""

    setting: str
    density: float
    ratios: Mapping[Any, Ratio]

    @property
    def factor(self) -> float:
        """The largest ratio divided by the smallest; `ratios` must be ascending."""
        values = [ratio.value for ratio in self.ratios.values()]
        return values[-1] / values[0]


def structure_sentence(frame: pd.DataFrame, measured: pd.DataFrame | None = None) -> str:
    """Return how far the answer depends on the structure and size of the data; "" for a frame without records.

    It is inferred from the frame's own records if these have several data sets, else from those `measured` by the sweep
    `NAME` on the same machine; without either it says that it was not measured. O(groups * rows).
    """
    groups = configurations.groups(frame)
    if not groups:
        return ""
    if own := _several_data_sets_sentence(groups):
        return own
    machine = groups[0].settings["machine"]
    others = [] if measured is None else configurations.groups(measured)
    others = [group for group in others if group.settings["machine"] == machine]
    if found := _several_data_sets_sentence(others):
        names = ("model", "width", "features", "batch_rows")
        alike = configurations.describe(others[0].settings | {"machine": None}, names)
        return f"{found} (From the sweep {NAME} on this machine: {alike}.)"
    return (
        "How far this moves with the structure of the data was not measured on this machine; at the same density other "
        f"data may have another answer. `{COMMAND}` measures it in about five minutes."
    )


def ratios_by_setting(groups: Sequence[configurations.Group], setting: str) -> Iterator[RatiosBySetting]:
    """Yield dense / sparse ratios at each requested density, for groups equal in all but `setting`.

    Each holds {value of the setting: ratio}, ascending in ratio; densities with fewer than two values are left out.
    `groups` hold pooled records of comparable configurations.
    """
    alike: dict[tuple, dict[Any, configurations.Group]] = {}
    for group in groups:
        rest = tuple(value for name, value in group.settings.items() if name not in (setting, *FOLLOWING))
        alike.setdefault(rest, {})[group.settings[setting]] = group
    for by_value in alike.values():
        ratios: dict[float, dict[Any, Ratio]] = {}
        for value, group in by_value.items():
            for density, ratio in _ratios(group).items():
                ratios.setdefault(density, {})[value] = ratio
        for density, each in ratios.items():
            if len(each) > 1:
                yield RatiosBySetting(setting, density, dict(sorted(each.items(), key=lambda item: item[1].value)))


def _ratios(group: configurations.Group) -> dict[float, Ratio]:
    """Return {requested density: ratio dense / sparse of the step time} of a group.

    Densities without a ratio are left out.
    """
    return {
        contest.dense["density"]: contest.ratio
        for contest in contests_of_group(group, MEASURE)
        if contest.ratio and contest.dense and contest.dense["density"]
    }


def _several_data_sets_sentence(groups: Sequence[configurations.Group]) -> str:
    """Return sentences on the spread of dense / sparse between data sets, breakeven and rows; "" without several.

    `groups` hold pooled records of comparable configurations.
    """
    most = max(ratios_by_setting(groups, "dataset"), key=lambda one: one.factor, default=None)
    if most is None:
        return ""
    (low, least), *_, (high, highest) = most.ratios.items()
    factor, first, last = (format_number(value, 2) for value in (most.factor, least.value, highest.value))
    text = (
        f"At the same density the ratio of dense to sparse differs by up to {factor} times between data sets: at "
        f"{format_density(most.density, 2)} density dense takes {first} times as long as sparse on "
        f"{low} data, and "
        f"{last} times on {high} data"
    )
    return (
        f"{text}{_breakevens(groups)}.{_size_sentence(groups)} So a verdict holds for data like those it was "
        f"measured on."
    )


def _breakevens(groups: Sequence[configurations.Group]) -> str:
    """Return a clause on the lowest and the highest break-even in time among the data sets.

    "" if fewer than two have one. Only groups with the most rows count. `groups` hold pooled records of comparable
    configurations.
    """
    sizes = [group.settings["rows_total"] or 0 for group in groups]
    found = []
    for group in groups:
        compared = [
            contest for contest in contests_of_group(group, MEASURE) if contest.ratio is not None and contest.density
        ]
        status, (density, *_) = (
            locate_crossing(compared, MEASURE) if len(compared) > 1 else ("too_few", (None, None, None))
        )
        if status == "crossing" and density and (group.settings["rows_total"] or 0) == max(sizes):
            found.append((density, group.settings["dataset"]))
    if len({name for _, name in found}) < 2:
        return ""
    ends = [min(found), max(found)]
    return f"; the break-even is at {join_items(f'{format_density(at, 2)} on {name}' for at, name in ends)}"


def _size_sentence(groups: Sequence[configurations.Group]) -> str:
    """Return a sentence on how the ratio changes with fewer rows of data; "" if one number of rows was measured.

    `groups` hold pooled records of comparable configurations.
    """
    by_rows = max(ratios_by_setting(groups, "rows_total"), key=lambda one: one.factor, default=None)
    if by_rows is None:
        return ""
    few, many = min(by_rows.ratios), max(by_rows.ratios)
    times = by_rows.ratios[few].value / by_rows.ratios[many].value
    favours = "sparse" if times > 1 else "dense"
    return (
        f" With {few:,} rows, which fit a cache sooner, instead of {many:,} the ratio is up to "
        f"{format_number(max(times, 1 / times), 2)} times better for {favours}."
    )


WORTH = 2.0
"""Times the bytes of CSR that dense takes from which on a measurement is worth while for the memory alone."""

Fact = tuple[str, tuple[str, ...]]
"""What is told, and its lines."""


def profile_sentence(profile: Mapping[str, Any], bytes_free: int | None = None) -> str:
    """Return what dense would cost in bytes against CSR, and whether that is worth measuring; speed is not predicted.

    `profile` is the mapping of `workbench.data.profile`; `bytes_free` the memory available to dense, None to skip that.
    """
    said, dense = _is_worth_measuring(profile), profile["bytes_format"]["dense"]
    if bytes_free is None or dense <= bytes_free:
        return said
    return f"{said} Dense does not fit here: {format_bytes(bytes_free)} are free."


def top_columns_sentence(profile: Mapping[str, Any]) -> str:
    """Return the share of the entries in the most frequent columns (1 % of those used) of a profile, as a clause."""
    count, share = profile["columns"]["top"], _percent(profile["columns"]["top_share"])
    if count == 1:
        return f"the most frequent column holds {share} of the entries"
    return f"the most frequent {count:,} columns (1 % of those used) hold {share} of the entries"


def _is_worth_measuring(profile: Mapping[str, Any]) -> str:
    """Return the sentence on whether dense takes enough bytes (twice those of CSR) to be worth measuring."""
    sizes = profile["bytes_format"]
    dense, sparse = sizes["dense"], sizes["csr"]
    stored = f"{format_density(profile['density'])} of the elements are stored: dense takes {format_bytes(dense)}"
    against = f"CSR {format_bytes(sparse)}"
    if dense <= sparse:
        return f"{stored} and {against}, so sparse saves no memory here, and there is little to measure."
    times = f"{format_number(dense / sparse, 2)} times the {format_bytes(sparse)} of CSR"
    if dense < WORTH * sparse:
        return f"{stored}, {times}: little memory to save. Only a measurement shows whether a step is faster."
    return (
        f"{stored}, {times}, so it is sparse enough to be worth measuring. Only a measurement shows how fast a step is."
    )


def profile_facts(profile: Mapping[str, Any]) -> list[Fact]:
    """Return (title, lines of text) per section of a profile, in reading order; empty sections are left out."""
    sections = [(what, tuple(lines(profile))) for what, lines in SECTIONS.items()]
    return [(what, lines) for what, lines in sections if lines]


def _size(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield rows, columns, entries, density and types of a profile."""
    yield f"{format_count(profile['rows'], 'row')} x {format_count(profile['features'], 'column')}"
    yield f"{format_count(profile['entries'], 'entry')}, density {format_density(profile['density'])}"
    yield f"values {profile['dtype']}, indices {profile['index_dtype']}"


def _lengths(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield mean, median, 99th percentile, largest, variation and empty rows."""
    known = profile["lengths"]
    numbers = [f"{name} {format_number(known[key])}" for name, key in (("mean", "mean"), ("median", "median"))]
    numbers += [f"99th percentile {format_number(known['p99'])}", f"largest {known['most']:,}"]
    yield ", ".join(numbers)
    yield (f"standard deviation / mean {format_number(known['cv'], 2)}; {_count(known['empty'], 'empty row')}")


def _columns(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield share of the most frequent columns, Zipf exponent and unused columns."""
    known = profile["columns"]
    yield top_columns_sentence(profile)
    yield f"the most frequent one is stored in {_percent(known['most_rows'])} of the rows"
    if known["zipf"]:
        yield f"rows by rank fall as rank to the power of {-known['zipf']['slope']:.2f} (Zipf)"
    yield f"{known['unused']:,} never used"


def _active(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield active columns of random batches, one line per batch size."""
    for batch in profile["touched"]:
        share = batch["columns"] / batch["entries"] if batch["entries"] else 0.0
        counts = f"{batch['columns']:,.0f} of {profile['features']:,}, U/z {format_number(share)}"
        yield f"{_count(batch['batch_rows'], 'random row')}: {counts}"


def _values(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield range of the stored values and number of explicit zeros; no lines if unknown."""
    known = profile["values"]
    if known is None:
        return
    least, most = format_number(known["least"]), format_number(known["most"])
    yield f"all {least}" if known["least"] == known["most"] else f"{least} to {most}"
    if known["zeros"]:
        yield f"{_count(known['zeros'], 'stored zero')}, which take memory and change nothing"


def _bytes(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the bytes of the data in each storage format, such as "csr 12 MB"."""
    for name, size in profile["bytes_format"].items():
        yield f"{name} {format_bytes(size)}"


def _preparations(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield which preparations make the data dense and which keep it sparse, with bytes."""
    for makes_dense, verb in ((True, "made dense by"), (False, "kept sparse by")):
        names = [known["name"] for known in profile["preparations"] if known["is_dense"] == makes_dense]
        sizes = {known["bytes_"] for known in profile["preparations"] if known["is_dense"] == makes_dense}
        yield (f"{verb} {join_items(names)} ({join_items(map(format_bytes, sizes))})")


def _duplicates(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield entries summed on reading (if counted) and rows equal to an earlier one."""
    if profile["duplicate_entries"] is not None:
        yield f"{_count(profile['duplicate_entries'], 'entry', 'entries')} summed with another when it was read"
    share = profile["duplicate_rows"] / max(profile["rows"], 1)
    yield f"{_count(profile['duplicate_rows'], 'row')} equal to an earlier one, {_percent(share)}"


def _labels(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield quartiles of regression targets, or classes with their shares of the rows."""
    known, rows = profile["labels"], max(profile["rows"], 1)
    if known["kind"] == "numbers":
        named = zip(("least", "quartile", "median", "quartile", "largest"), known["quartiles"], strict=False)
        yield f"numbers: {', '.join(f'{name} {format_number(value)}' for name, value in named)}"
        return
    several = f", {format_number(known['labels_a_row'])} a row" if known["kind"] == "multilabel" else ""
    yield f"{_count(known['classes'], 'class', 'classes')}{several}"
    shown = [f"{name} {_percent(count / rows)}" for name, count in known["shown"]]
    rest = [f"{known['others']:,} others {_percent(known['rows_others'] / rows)}"] if known["others"] else []
    yield ", ".join(shown + rest)


def _groups(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of groups of rows and the largest; nothing without groups."""
    if known := profile["groups"]:
        yield f"{known[0]:,}, the largest of {_count(known[1], 'row')}"


SECTIONS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "size": _size,
    "entries a row": _lengths,
    "columns": _columns,
    "active columns, mean": _active,
    "values": _values,
    "memory": _bytes,
    "preparation": _preparations,
    "duplicates": _duplicates,
    "labels": _labels,
    "groups": _groups,
}
"""What yields the lines of each section of a profile, in reading order."""


def _count(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, such as "1 row" or "3 rows"; `several` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def _percent(share: float) -> str:
    """Return a fraction as per cent with three significant digits, such as "12.5 %"."""
    return format_density(share)
