"""Best answer of all: of the candidates that take at most 10 % longer than the fastest the one of least memory.

Verdicts compare training on sparse batches with training on dense ones. Data held as CSR may be trained on in dense
batches: then the memory is about that of sparse training, and the time that of dense. Where that is the best answer it
is said, with what a dense array would have needed.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import posterior_of, ratio_between, trained_worse
from workbench.measure.posterior import EQUIVALENCE_MARGIN

Record = Mapping[str, Any]
TIME, MEMORY = "seconds_step", "bytes_peak"


def best_record(rows: Sequence[Record], accept: Callable[[Record], bool] = lambda row: True) -> Record | None:
    """Return the accepted record of least expected loss, the one of least memory among equivalent ones.

    None if none ran.
    """
    able = [row for row in rows if accept(row)]
    found = posterior_of(able, TIME)
    first = found.best()
    if first is None:
        return None
    alike = [able[k] for k in found.names if k == first or found.ratio(k, first).verdict == "level"]
    return min(alike, key=lambda row: row[MEMORY] or 0, default=None)


def smallest_record(rows: Sequence[Record]) -> Record | None:
    """Return the record of least memory among those at most 10 % slower than the fastest; None if none ran."""
    first = best_record(rows)
    if first is None:
        return None
    ratios = [(row, ratio_between(row, first, TIME)) for row in rows if row is not first]
    near = [row for row, ratio in ratios if ratio and ratio.high <= EQUIVALENCE_MARGIN]
    return min([first, *near], key=lambda row: row[MEMORY] or math.inf)


def is_dense_batch_of_compact_data(row: Record) -> bool:
    """Return whether a row trains on dense batches of data that are not held as a dense array."""
    return configurations.is_dense(row) and configurations.storage_of(row) != configurations.HELD


def compare_with_dense_array(row: Record, rows: Iterable[Record]) -> str:
    """Return the comparison of a dense row, its data not held as a dense array, with the fastest that is; empty if
    there is none.

    `rows` are those of its density; arrays that did not fit are said to.
    """
    if not is_dense_batch_of_compact_data(row):
        return ""
    arrays = [other for other in configurations.dense_rows(rows) if not is_dense_batch_of_compact_data(other)]
    array = best_record(arrays)
    if array is None:
        unfit = next((other for other in arrays if other["status"] == "memory" and other["bytes_needed"]), None)
        return f"a dense array did not fit: it needs {formatting.format_bytes(unfit['bytes_needed'])}" if unfit else ""
    return _compare_memory_and_time(row, array, "a dense array")


def fastest_smaller_than_array(row: Record, rows: Iterable[Record]) -> Record | None:
    """Return the fastest dense row whose data are held in less memory than this dense array; None if there is none."""
    if not configurations.is_dense(row) or is_dense_batch_of_compact_data(row) or not row[MEMORY]:
        return None
    apart = [
        other
        for other in rows
        if is_dense_batch_of_compact_data(other) and EQUIVALENCE_MARGIN * (other[MEMORY] or math.inf) < row[MEMORY]
    ]
    return best_record(apart)


def _compare_memory_and_time(row: Record, other: Record, name: str) -> str:
    """Return the memory of two rows, and how many times as long the other takes."""
    ratio, sizes = (
        ratio_between(other, row, TIME),
        [formatting.format_measured_quantity(one, MEMORY) for one in (row, other)],
    )
    memory = f"it needs {sizes[0]} where {name} needs {sizes[1]}" if all(sizes) else ""
    return ", and ".join(
        filter(None, (memory, f"that takes {formatting.format_times(ratio)} as long" if ratio else ""))
    )


def best_of_all_sentences(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Tell at which densities a dense training of data that are not held as a dense array is the best answer of all."""
    for group in groups:
        head = f"{group.label[:1].upper()}{group.label[1:]}: " if len(groups) > 1 else ""
        for best, stretch in groupby(_best_by_density(group), key=lambda one: _name(one[1])):
            if best:
                text = _sentence(best, list(stretch), group)
                yield f"{head}{text[:1].lower()}{text[1:]}" if head else text


def compact_storage_sentences(groups: Sequence[configurations.Group]) -> Iterator[str]:
    """Tell of each group how much of what sparse saves a dense training saves that holds its data in less memory.

    At the lowest density at which a dense array, another way to hold the data and sparse have a memory.
    """
    for group in groups:
        head = f"{group.label[:1].upper()}{group.label[1:]}: " if len(groups) > 1 else ""
        for rows in configurations.by_density(
            sorted(group.rows, key=lambda row: configurations.density_of(row) or 0.0)
        ).values():
            known = [row for row in rows if row["status"] in configurations.NUMBERED and row[MEMORY]]
            sides = (
                [row for row in known if configurations.is_dense(row) and not is_dense_batch_of_compact_data(row)],
                [row for row in known if is_dense_batch_of_compact_data(row)],
                [row for row in known if not configurations.is_dense(row)],
            )
            if all(sides):
                array, apart, sparse = (min(side, key=lambda row: row[MEMORY]) for side in sides)
                sizes = [formatting.format_measured_quantity(row, MEMORY) for row in (array, apart, sparse)]
                where = (
                    f"{'at' if head else 'At'} "
                    f"{formatting.format_density(configurations.density_of(array) or 0.0)} density"
                )
                others = (
                    f"{formatting.name_configuration(apart)} {sizes[1]}, "
                    f"{formatting.name_configuration(sparse)} {sizes[2]}"
                )
                yield f"{head}{where} a dense array needs {sizes[0]}, {others}."
                break


def _best_by_density(group: configurations.Group) -> list[tuple[float | None, Record | None]]:
    """Return density and best row of all, rising."""
    worse = {id(row) for row, _ in trained_worse(group.rows)}
    able = [row for row in group.rows if id(row) not in worse]
    found = [(at, smallest_record(rows)) for at, rows in configurations.by_density(able).items()]
    return sorted(found, key=lambda one: (configurations.density_of(one[1]) if one[1] else one[0]) or 0.0)


def _name(row: Record | None) -> str:
    """Return the name of a configuration whose dense batches come from compact storage; "" for others and None."""
    return formatting.name_configuration(row) if row is not None and is_dense_batch_of_compact_data(row) else ""


def _sentence(name: str, stretch: Sequence[tuple[float | None, Record | None]], group: configurations.Group) -> str:
    """Return the sentence that `name` is the best answer of all over a range of densities, with its gain."""
    rows = [row for _, row in stretch if row is not None]
    ends = [configurations.density_of(row) or 0.0 for row in (rows[0], rows[-1])]
    where = (
        f"At {formatting.format_density(ends[0])}"
        if len(rows) == 1
        else f"From {formatting.format_span(ends[0], ends[1], formatting.format_density)}"
    )
    compared = compare_with_dense_array(rows[0], [row for row in group.rows if row["density"] == rows[0]["density"]])
    at = f" at {formatting.format_density(ends[0])}" if len(rows) > 1 and compared else ""
    more = f": {compared}{at}" if compared else ""
    return f"{where} density {name} is the best answer of all, at most 10 % slower than the fastest{more}."
