"""Best answer of all: of the candidates that take at most 10 % longer than the fastest the one of least memory.

Verdicts compare training on sparse batches with training on dense ones. Data held as CSR may be trained on in dense
batches: then the memory is about that of sparse training, and the time that of dense. Where that is the best answer it
is said, with what a dense array would have needed.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import cells, words
from workbench.analysis.compare import posterior_of, ratio_between, trained_worse
from workbench.measure.posterior import LEVEL

Row = Mapping[str, Any]
TIME, MEMORY = "seconds_step", "bytes_peak"


def leader(rows: Sequence[Row], accept: Callable[[Row], bool] = lambda row: True) -> Row | None:
    """The accepted row of the least expected loss; of those level with it that of least memory; None if none ran."""
    able = dict[Hashable, Row](enumerate(row for row in rows if accept(row)))
    found = posterior_of([*able.values()], TIME)
    first = found.best()
    alike = [able[k] for k in found.names if k == first or found.ratio(k, first).verdict == "level"]
    return min(alike, key=lambda row: row[MEMORY] or 0, default=None)


def smallest(rows: Sequence[Row]) -> Row | None:
    """The row of least memory among those that surely take at most 10 % longer than the fastest; None if none ran."""
    first = leader(rows)
    if first is None:
        return None
    ratios = [(row, ratio_between(row, first, TIME)) for row in rows if row is not first]
    near = [row for row, ratio in ratios if ratio and ratio.high <= LEVEL]
    return min([first, *near], key=lambda row: row[MEMORY] or math.inf)


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
        unfit = next((other for other in arrays if other["status"] == "memory" and other["bytes_needed"]), None)
        return f"a dense array did not fit: it needs {words.bytes_(unfit['bytes_needed'])}" if unfit else ""
    return _compared(row, array, "a dense array")


def smaller_than_array(row: Row, rows: Iterable[Row]) -> Row | None:
    """The fastest dense row whose data are held in less memory than this dense array; None if there is none."""
    if not cells.is_dense(row) or is_held_apart(row) or not row[MEMORY]:
        return None
    apart = [other for other in rows if is_held_apart(other) and LEVEL * (other[MEMORY] or math.inf) < row[MEMORY]]
    return leader(apart)


def _compared(row: Row, other: Row, name: str) -> str:
    """Memory of two rows, and how many times as long the other takes."""
    ratio, sizes = ratio_between(other, row, TIME), [words.measured_quantity(one, MEMORY) for one in (row, other)]
    memory = f"it needs {sizes[0]} where {name} needs {sizes[1]}" if all(sizes) else ""
    return ", and ".join(filter(None, (memory, f"that takes {words.times(ratio)} as long" if ratio else "")))


def sentences(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Tell at which densities a dense training of data that are not held as a dense array is the best answer of all."""
    for group in groups:
        head = f"{group.label[:1].upper()}{group.label[1:]}: " if len(groups) > 1 else ""
        for best, stretch in groupby(_by_density(group), key=lambda one: _name(one[1])):
            if best:
                text = _sentence(best, list(stretch), group)
                yield f"{head}{text[:1].lower()}{text[1:]}" if head else text


def of_holding(groups: Sequence[cells.Group]) -> Iterator[str]:
    """Tell of each group how much of what sparse saves a dense training saves that holds its data in less memory.

    At the lowest density at which a dense array, another way to hold the data and sparse have a memory.
    """
    for group in groups:
        head = f"{group.label[:1].upper()}{group.label[1:]}: " if len(groups) > 1 else ""
        for rows in cells.by_density(sorted(group.rows, key=lambda row: cells.density_of(row) or 0.0)).values():
            known = [row for row in rows if row["status"] in cells.NUMBERED and row[MEMORY]]
            sides = (
                [row for row in known if cells.is_dense(row) and not is_held_apart(row)],
                [row for row in known if is_held_apart(row)],
                [row for row in known if not cells.is_dense(row)],
            )
            if all(sides):
                array, apart, sparse = (min(side, key=lambda row: row[MEMORY]) for side in sides)
                sizes = [words.measured_quantity(row, MEMORY) for row in (array, apart, sparse)]
                where = f"{'at' if head else 'At'} {words.density(cells.density_of(array) or 0.0)} density"
                others = f"{words.line(apart)} {sizes[1]}, {words.line(sparse)} {sizes[2]}"
                yield f"{head}{where} a dense array needs {sizes[0]}, {others}."
                break


def _by_density(group: cells.Group) -> list[tuple[float | None, Row | None]]:
    """Density and best row of all, rising."""
    worse = {id(row) for row, _ in trained_worse(group.rows)}
    able = [row for row in group.rows if id(row) not in worse]
    found = [(at, smallest(rows)) for at, rows in cells.by_density(able).items()]
    return sorted(found, key=lambda one: (cells.density_of(one[1]) if one[1] else one[0]) or 0.0)


def _name(row: Row | None) -> str:
    return words.line(row) if row is not None and is_held_apart(row) else ""


def _sentence(name: str, stretch: Sequence[tuple[float | None, Row | None]], group: cells.Group) -> str:
    rows = [row for _, row in stretch if row is not None]
    ends = [cells.density_of(row) or 0.0 for row in (rows[0], rows[-1])]
    where = f"At {words.density(ends[0])}" if len(rows) == 1 else f"From {words.span(ends[0], ends[1], words.density)}"
    compared = beside_array(rows[0], [row for row in group.rows if row["density"] == rows[0]["density"]])
    at = f" at {words.density(ends[0])}" if len(rows) > 1 and compared else ""
    more = f": {compared}{at}" if compared else ""
    return f"{where} density {name} is the best answer of all, at most 10 % slower than the fastest{more}."
