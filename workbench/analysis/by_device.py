"""Which device is faster where more than one was measured: groups alike but for it, at the densities of both."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.compare import ratio, verdict
from workbench.analysis.intervals import known

Row = Mapping[str, Any]
MEASURE = "seconds_step"


def sentences(groups: Sequence[cells.Group]) -> Iterator[str]:
    """For each two groups alike but for the device the fastest of each, at the lowest and highest density of both."""
    for one, other in combinations(groups, 2):
        if {name for name, value in one.settings.items() if other.settings[name] != value} != {"device"}:
            continue
        fastest = [_fastest(group) for group in (one, other)]
        densities = sorted(set(fastest[0]) & set(fastest[1]), key=lambda density: density or 0.0)
        for density in dict.fromkeys(densities[:1] + densities[-1:]):
            yield _sentence(density, *(by_density[density] for by_density in fastest))


def _fastest(group: cells.Group) -> dict[float | None, Row]:
    """The row of the least time by density."""
    fastest: dict[float | None, Row] = {}
    for row in group.rows:
        seconds = known(row[MEASURE])
        if row["status"] == "ok" and seconds is not None:
            before = fastest.setdefault(row["density"], row)
            fastest[row["density"]] = row if seconds < before[MEASURE] else before
    return fastest


def _sentence(density: float | None, one: Row, other: Row) -> str:
    where = f"At {words.density(density) if density is not None else cells.NATURAL} density"
    won = verdict(one, other, MEASURE)
    if won == "undecided":
        both = f"the fastest on {one['device']} and the fastest on {other['device']}"
        return f"{where} {both} cannot be told apart."
    first, second = (one, other) if won == "sparse" else (other, one)
    gain = ratio(first, second, MEASURE).gain()
    named = [words.line({**row, "device": "cpu"}) for row in (first, second)]
    sides = " and ".join(f"{name} on {row['device']}" for name, row in zip(named, (first, second), strict=True))
    return f"{where} {first['device']} is {gain} faster than {second['device']}, each at its fastest: {sides}."
