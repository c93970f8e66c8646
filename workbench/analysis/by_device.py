"""Which device is faster where more than one was measured: groups alike but for it, at the densities of both."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.compare import REMEDY, Contest, contest
from workbench.analysis.worse import trained_worse

Row = Mapping[str, Any]
MEASURE = "seconds_step"


def sentences(groups: Sequence[cells.Group]) -> Iterator[str]:
    """For each two groups alike but for the device the fastest of each, at the lowest and highest density of both."""
    for one, other in combinations(groups, 2):
        if {name for name, value in one.settings.items() if other.settings[name] != value} != {"device"}:
            continue
        rows = [cells.by_density(_fair(group.rows)) for group in (one, other)]
        densities = sorted(set(rows[0]) & set(rows[1]), key=lambda density: density or 0.0)
        for density in dict.fromkeys(densities[:1] + densities[-1:]):
            yield _sentence(density, contest(*(by_density[density] for by_density in rows), MEASURE))


def _fair(rows: Sequence[Row]) -> list[Row]:
    """Rows with a time, without those that trained a worse model."""
    worse = {id(row) for row, _ in trained_worse(rows)}
    return [row for row in rows if row["status"] == "ok" and id(row) not in worse]


def _sentence(density: float | None, found: Contest) -> str:
    """Of a contest in which the rows of one device stand in the place of sparse, of the other in that of dense."""
    where = f"At {words.density(density) if density is not None else cells.NATURAL} density"
    one, other = found.sparse, found.dense
    both = f"the fastest on {one['device']} and the fastest on {other['device']}"
    if found.verdict == "level":
        return f"{where} {both} are level, within 10 %."
    if found.verdict == "undecided":
        return f"{where} {both} cannot be told apart: {found.why} ({REMEDY[found.why]})."
    first, second = (one, other) if found.verdict == "sparse" else (other, one)
    named = [words.line({**row, "device": "cpu"}) for row in (first, second)]
    sides = " and ".join(f"{name} on {row['device']}" for name, row in zip(named, (first, second), strict=True))
    gain = words.gain(found.ratio)
    return f"{where} {first['device']} is {gain} faster than {second['device']}, each at its fastest: {sides}."
