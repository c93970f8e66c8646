"""Best answer of all: the candidate that is as fast as the fastest, within 10 %, and needs the least memory.

Verdicts compare training on sparse batches with training on dense ones. Data held as CSR may be trained on in dense
batches: then the memory is about that of sparse training, and the time that of dense. Where that is the best answer it
is said, with what a dense array would have needed.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.intervals import values_of
from workbench.analysis.worse import trained_worse
from workbench.measure.racing import least_expected
from workbench.measure.rounds import Ratio, Rounds, ratio_of

Row = Mapping[str, Any]
TIME, MEMORY = "seconds_step", "bytes_peak"


def leader(rows: Sequence[Row], accept: Callable[[Row], bool] = lambda row: True) -> Row | None:
    """The accepted row of the least expected time; of those level with it the one of least memory; None if none ran."""
    able = {row["key"]: row for row in rows if row["status"] == "ok" and accept(row)}
    seconds: dict[Hashable, Rounds] = {key: own for key, row in able.items() if (own := times(row))}
    first = least_expected(seconds)
    if first is None:
        return None
    alike = [able[key] for key in able if key in seconds and _is_level(ratio_of(seconds[key], seconds[first]))]
    return min([able[first], *alike], key=lambda row: (row[MEMORY] or 0, row["key"] != first))


def times(row: Row) -> Rounds:
    """Seconds of a step by run and round."""
    return {place: value for place, value in values_of(row, TIME).items() if value > 0}


def _is_level(ratio: Ratio | None) -> bool:
    return ratio is not None and ratio.verdict == "level"


def is_held_apart(row: Row) -> bool:
    """Whether a row trains on dense batches of data that are not held as a dense array."""
    return cells.is_dense(row) and cells.held(row) != cells.HELD


def beside_array(row: Row, rows: Iterable[Row]) -> str:
    """Comparison of a dense row, its data not held as a dense array, with the fastest that is; empty if there is none.

    `rows` are those of its density; arrays that did not fit are said to.
    """
    if not is_held_apart(row):
        return ""
    arrays = [other for other in cells.dense_rows(rows) if not is_held_apart(other)]
    array = leader(arrays)
    if array is None:
        unfit = next((other for other in arrays if other["status"] == "memory"), None)
        return f"a dense array did not fit: it needs {words.bytes_(unfit['bytes_needed'])}" if _needs(unfit) else ""
    ratio, sizes = ratio_of(times(array), times(row)), [words.measured_quantity(one, MEMORY) for one in (row, array)]
    memory = f"it needs {sizes[0]} where a dense array needs {sizes[1]}" if all(sizes) else ""
    return ", and ".join(filter(None, (memory, f"the array takes {words.times(ratio)} as long" if ratio else "")))


def _needs(row: Row | None) -> bool:
    return row is not None and bool(row["bytes_needed"])


def sentences(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Tell at which densities a dense training of data that are not held as a dense array is the best answer of all."""
    for group in groups:
        head = f"{group.label[:1].upper()}{group.label[1:]}: " if len(groups) > 1 else ""
        for best, stretch in groupby(_by_density(group), key=lambda one: _name(one[1])):
            if best:
                text = _sentence(best, list(stretch), group)
                yield f"{head}{text[:1].lower()}{text[1:]}" if head else text


def _by_density(group: cells.Group) -> list[tuple[float | None, Row | None]]:
    """Density and best row of all, rising."""
    worse = {id(row) for row, _ in trained_worse(group.rows)}
    able = [row for row in group.rows if id(row) not in worse]
    found = [(at, leader(rows)) for at, rows in cells.by_density(able).items()]
    return sorted(found, key=lambda one: (cells.density_of(one[1]) if one[1] else one[0]) or 0.0)


def _name(row: Row | None) -> str:
    return words.line(row) if row is not None and is_held_apart(row) else ""


def _sentence(name: str, stretch: Sequence[tuple[float | None, Row | None]], group: cells.Group) -> str:
    rows = [row for _, row in stretch if row is not None]
    ends = [cells.density_of(row) or 0.0 for row in (rows[0], rows[-1])]
    where = f"At {words.density(ends[0])}" if len(rows) == 1 else f"From {words.span(*ends, words.density)}"
    compared = beside_array(rows[0], [row for row in group.rows if row["density"] == rows[0]["density"]])
    at = f" at {words.density(ends[0])}" if len(rows) > 1 and compared else ""
    more = f": {compared}{at}" if compared else ""
    return f"{where} density {name} is the best answer of all, no slower than any other within 10 %{more}."
