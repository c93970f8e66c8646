"""Shift of the ratio of dense to sparse at one density, with the structure of the data and with their size.

Groups that are alike but for the data set, or but for the number of rows, tell it. A verdict is about data like those
measured; this says how much others may differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven import locate_crossing
from workbench.analysis.compare import contests
from workbench.measure.posterior import Ratio

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
        """The largest ratio over the smallest."""
        values = [ratio.value for ratio in self.ratios.values()]
        return values[-1] / values[0]


def structure_sentence(frame: pd.DataFrame, measured: pd.DataFrame | None = None) -> str:
    """Describe how far the answer depends on the structure and size of the data; "" for an empty frame.

    It is inferred from the frame's own rows if these have several data sets, else from those `measured` by the sweep
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
    """Yield the ratios at each density that was asked for of groups alike but for a setting, if two or more decide."""
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
    """Return the ratio of the best of both sides at each density asked for."""
    return {
        contest.dense["density"]: contest.ratio
        for contest in contests(group.rows, MEASURE)
        if contest.ratio and contest.dense and contest.dense["density"]
    }


def _several_data_sets_sentence(groups: Sequence[configurations.Group]) -> str:
    """Return the sentences from groups of several data sets; "" from groups of one."""
    most = max(ratios_by_setting(groups, "dataset"), key=lambda one: one.factor, default=None)
    if most is None:
        return ""
    (low, least), *_, (high, highest) = most.ratios.items()
    factor, first, last = (formatting.format_number(value, 2) for value in (most.factor, least.value, highest.value))
    text = (
        f"At the same density the ratio of dense to sparse differs by up to {factor} times between data sets: at "
        f"{formatting.format_density(most.density, 2)} density dense takes {first} times as long as sparse on "
        f"{low} data, and "
        f"{last} times on {high} data"
    )
    return (
        f"{text}{_breakevens(groups)}.{_size_sentence(groups)} So a verdict holds for data like those it was "
        f"measured on."
    )


def _breakevens(groups: Sequence[configurations.Group]) -> str:
    """Return the clause on the lowest and the highest break-even of data sets alike in all else, if two have one."""
    sizes = [group.settings["rows_total"] or 0 for group in groups]
    found = []
    for group in groups:
        compared = [
            contest for contest in contests(group.rows, MEASURE) if contest.ratio is not None and contest.density
        ]
        status, (density, *_) = locate_crossing(compared) if len(compared) > 1 else ("too_few", (None, None, None))
        if status == "crossing" and density and (group.settings["rows_total"] or 0) == max(sizes):
            found.append((density, group.settings["dataset"]))
    if len({name for _, name in found}) < 2:
        return ""
    ends = [min(found), max(found)]
    return (
        f"; the break-even is at "
        f"{formatting.join_items(f'{formatting.format_density(at, 2)} on {name}' for at, name in ends)}"
    )


def _size_sentence(groups: Sequence[configurations.Group]) -> str:
    """Return the sentence on data of fewer rows, which may fit the cache.

    "" if only one number of rows was measured.
    """
    by_rows = max(ratios_by_setting(groups, "rows_total"), key=lambda one: one.factor, default=None)
    if by_rows is None:
        return ""
    few, many = min(by_rows.ratios), max(by_rows.ratios)
    times = by_rows.ratios[few].value / by_rows.ratios[many].value
    favours = "sparse" if times > 1 else "dense"
    return (
        f" With {few:,} rows, which fit a cache sooner, instead of {many:,} the ratio is up to "
        f"{formatting.format_number(max(times, 1 / times), 2)} times better for {favours}."
    )
