"""Conditions that would change a recommendation: other batches, other devices, other densities.

A side wins there against all that may win, as in the verdict: a configuration that was not measured there counts as
beaten only where the other side, or another sparse one, beats it on the data as they are.
"""

from collections.abc import Callable, Iterable, Sequence

from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven import breakevens_of_group
from workbench.analysis.compare import Contest, compare_best, undominated_records
from workbench.analysis.configurations import Record
from workbench.analysis.grades import Statement, format_factor, keys_of

TIME = "seconds_step"


def verdicts_at_other_densities(
    rows: Sequence[Record], groups: Sequence[configurations.Group], accept: Callable[[Record], bool], verdict: str
) -> Iterable[Statement]:
    """Yield the verdict at every other density and batch that was measured, against that of `rows`, the data as they
    are."""
    for group in groups:
        for _, at in sorted(configurations.by_density(group.rows).items(), key=lambda one: one[0] or 0.0):
            if not any(row is one for row in at for one in rows):
                yield from _winner_at(at, rows, accept, verdict)


def _winner_at(
    at: Sequence[Record], rows: Sequence[Record], accept: Callable[[Record], bool], verdict: str
) -> Iterable[Statement]:
    """Yield the winner at one place, and whether it is the same side."""
    sparse, dense = _split_by_side(at, accept)
    found = compare_best(sparse, dense, TIME)
    if found.verdict == "inconclusive" or found.sparse is None or found.dense is None:
        return
    keys = keys_of(found.sparse, found.dense)
    lead = f", {format_factor(found)} faster" if found.ratio and found.verdict != "level" else ""
    if missing := _unmeasured_rivals(found, at, rows, accept):
        named = formatting.join_items(sorted({formatting.name_configuration(row) for row in missing}), "or")
        winner, loser = (found.dense, found.sparse) if found.verdict == "dense" else (found.sparse, found.dense)
        beats = "is level with" if found.verdict == "level" else "beats"
        text = (
            f"{formatting.name_configuration(winner)} {beats} {formatting.name_configuration(loser)}{lead}; "
            f"{named} may be faster, and was not measured there"
        )
        yield Statement(f"With {_condition_text(at, rows, found)} {text}.", keys)
        return
    same = "still" if found.verdict == verdict else "instead"
    text = "they are level" if found.verdict == "level" else f"{found.verdict} wins {same}"
    yield Statement(f"With {_condition_text(at, rows, found)} {text}{lead}.", keys)


def _split_by_side(rows: Sequence[Record], accept: Callable[[Record], bool]) -> tuple[list[Record], list[Record]]:
    """Return the sparse rows that may be recommended, and the dense ones."""
    return [row for row in rows if not configurations.is_dense(row) and accept(row)], configurations.dense_rows(rows)


def _condition_text(at: Sequence[Record], rows: Sequence[Record], found: Contest) -> str:
    """Return the batch size, device and density at which another verdict holds."""
    batch = f"{at[0]['batch_rows']:,} rows a batch{formatting.device_suffix(at[0])}"
    is_denser = at[0]["density"] != rows[0]["density"] and found.density
    return f"{batch} at {formatting.format_density(found.density, 2)} density" if is_denser and found.density else batch


def _unmeasured_rivals(
    found: Contest, at: Sequence[Record], rows: Sequence[Record], accept: Callable[[Record], bool]
) -> list[Record]:
    """Return the rows of the side that does not win, not measured there, that nothing else beats in `rows`."""
    measured = {_line(row) for row in at}
    sparse, dense = _split_by_side(rows, accept)
    absent = [row for row in undominated_records(sparse, TIME) if _line(row) not in measured]
    missing = [] if found.verdict == "sparse" else [row for row in absent if _winner([row], dense) != "dense"]
    if found.verdict != "dense":
        absent = [row for row in undominated_records(dense, TIME, "dense") if _line(row) not in measured]
        missing += [row for row in absent if _winner(sparse, [row]) != "sparse"]
    return [row for row in missing if row["status"] in configurations.NUMBERED]


def _winner(sparse: Sequence[Record], dense: Sequence[Record]) -> str:
    """Return the verdict on time: "sparse", "dense", "level" or "inconclusive"."""
    return compare_best(sparse, dense, TIME).verdict


def _line(row: Record) -> tuple:
    """Return the settings that identify a configuration at any density, as a hashable tuple."""
    return tuple(configurations.line_of(row).values())


def break_even(time: Contest, groups: Sequence[configurations.Group]) -> Iterable[Statement]:
    """Yield the density at which the sparse side of a contest stops winning, if those on both sides of it were
    measured."""
    if time.sparse is None:
        return
    group = next(group for group in groups if any(row is time.sparse for row in group.rows))
    same = [even for even in breakevens_of_group(group, TIME) if even.line == configurations.line_of(time.sparse)]
    at = [row for row in group.rows if _line(row) == _line(time.sparse) or configurations.is_dense(row)]
    for even in same:
        if even.status == "crossing":
            yield Statement(
                f"The break-even of {formatting.name_configuration(time.sparse)} is {even.place}.", keys_of(*at)
            )
