"""Conditions that would change a recommendation: other batches, other devices, other densities.

A side wins there against all that may win, as in the verdict: a configuration that was not measured there counts as
beaten only where the other side, or another sparse one, beats it on the data as they are.
"""

from collections.abc import Callable, Iterable, Sequence

from workbench.analysis import cells, words
from workbench.analysis.breakeven import of_group
from workbench.analysis.cells import Row
from workbench.analysis.compare import Contest, contest, front
from workbench.analysis.grades import Said, gain, keys_of

TIME = "seconds_step"


def elsewhere(
    rows: Sequence[Row], groups: Sequence[cells.Group], accept: Callable[[Row], bool], verdict: str
) -> Iterable[Said]:
    """The verdict at every other density and batch that was measured, against that of `rows`, the data as they are."""
    for group in groups:
        for _, at in sorted(cells.by_density(group.rows).items(), key=lambda one: one[0] or 0.0):
            if not any(row is one for row in at for one in rows):
                yield from _at(at, rows, accept, verdict)


def _at(at: Sequence[Row], rows: Sequence[Row], accept: Callable[[Row], bool], verdict: str) -> Iterable[Said]:
    """Winner at one place, and whether it is the same side."""
    sparse, dense = _sides(at, accept)
    found = contest(sparse, dense, TIME)
    if found.verdict == "undecided" or found.sparse is None or found.dense is None:
        return
    keys = keys_of(found.sparse, found.dense)
    lead = f", {gain(found)} faster" if found.ratio and found.verdict != "level" else ""
    if missing := _missing(found, at, rows, accept):
        named = words.join(sorted({words.line(row) for row in missing}), "or")
        winner, loser = (found.dense, found.sparse) if found.verdict == "dense" else (found.sparse, found.dense)
        beats = "is level with" if found.verdict == "level" else "beats"
        text = (
            f"{words.line(winner)} {beats} {words.line(loser)}{lead}; {named} may be faster, and was not measured there"
        )
        yield Said(f"With {_where(at, rows, found)} {text}.", keys)
        return
    same = "still" if found.verdict == verdict else "instead"
    text = "they are level" if found.verdict == "level" else f"{found.verdict} wins {same}"
    yield Said(f"With {_where(at, rows, found)} {text}{lead}.", keys)


def _sides(rows: Sequence[Row], accept: Callable[[Row], bool]) -> tuple[list[Row], list[Row]]:
    """The sparse rows that may be recommended, and the dense ones."""
    return [row for row in rows if not cells.is_dense(row) and accept(row)], cells.dense_rows(rows)


def _where(at: Sequence[Row], rows: Sequence[Row], found: Contest) -> str:
    batch = f"{at[0]['batch_rows']:,} rows a batch{words.on_device(at[0])}"
    is_denser = at[0]["density"] != rows[0]["density"] and found.density
    return f"{batch} at {words.density(found.density, 2)} density" if is_denser and found.density else batch


def _missing(found: Contest, at: Sequence[Row], rows: Sequence[Row], accept: Callable[[Row], bool]) -> list[Row]:
    """Rows of the side that does not win, not measured there, that nothing else beats in `rows`."""
    measured = {_line(row) for row in at}
    sparse, dense = _sides(rows, accept)
    absent = [row for row in front(sparse, TIME) if _line(row) not in measured]
    missing = [] if found.verdict == "sparse" else [row for row in absent if _winner([row], dense) != "dense"]
    if found.verdict != "dense":
        absent = [row for row in front(dense, TIME, "dense") if _line(row) not in measured]
        missing += [row for row in absent if _winner(sparse, [row]) != "sparse"]
    return [row for row in missing if row["status"] in cells.NUMBERED]


def _winner(sparse: Sequence[Row], dense: Sequence[Row]) -> str:
    return contest(sparse, dense, TIME).verdict


def _line(row: Row) -> tuple:
    return tuple(cells.line_of(row).values())


def break_even(time: Contest, groups: Sequence[cells.Group]) -> Iterable[Said]:
    """Density at which the sparse side of a contest stops winning, if those on both sides of it were measured."""
    if time.sparse is None:
        return
    group = next(one for one in groups if any(row is time.sparse for row in one.rows))
    same = [even for even in of_group(group, TIME) if even.line == cells.line_of(time.sparse)]
    at = [row for row in group.rows if _line(row) == _line(time.sparse) or cells.is_dense(row)]
    for even in same:
        if even.status == "crossing":
            yield Said(f"The break-even of {words.line(time.sparse)} is {even.place}.", keys_of(*at))
