"""Gradients of the active rows against dense ones, by the size of a model's tables: from which size on they win.

A table has a row for each feature: weights, embeddings, factors. With a dense gradient and a standard update a step
updates all of its rows; with a row-sparse or fused gradient and a lazy or exact update only the active rows of the
batch. Verdicts are those of `compare.compare_best`; here its "dense" side is the former.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from workbench import option_text
from workbench.analysis import configurations, formatting
from workbench.analysis.compare import Contest, compare_best, trained_worse
from workbench.analysis.verdict_text import MEASURES, contest_clause, verdict_of

Record = Mapping[str, Any]

SIZES = ("hashed", "items", "users", "values", "features")
"""Parameters of data sets that set the size of the tables; rows that differ in these alone make one line."""
ROWS = "table_rows"
"""The column, added here, of the rows of a table."""


class AtSize(NamedTuple):
    """The contest at one size: the rows of each table, and who wins there."""

    rows: int
    contest: Contest


def groups(frame: pd.DataFrame) -> list[configurations.Group]:
    """Return groups of configurations that differ in table size and configuration only, largest first.

    Their records have the added column `table_rows`, the features of the data. `frame` holds trial records.
    """
    pooled = configurations.pool_rounds(frame).copy()
    pooled[ROWS] = pooled["features"]
    pooled["features"] = pd.NA
    pooled["reading"] = pooled["reading"].map(_without_sizes)
    return configurations.groups(pooled)


def _without_sizes(reading: Any) -> str | None:
    """Return the option text of a data set without options that set table sizes; None if none remains.

    Text that cannot be parsed is returned unchanged.
    """
    if not isinstance(reading, str):
        return None
    try:
        options = option_text.parsed(reading)
    except ValueError:  # rows may come from anywhere
        return reading
    return str(option_text.Options({name: value for name, value in options.items() if name not in SIZES})) or None


def takes_all(row: Record) -> bool:
    """Return whether a step reads or updates all rows of the tables: a dense gradient or the "standard" update."""
    return bool(row["gradient"] == "dense" or row["update"] == "standard")


def records_by_size(group: configurations.Group) -> list[list[Record]]:
    """Return one list of records per configuration, ascending in table rows, those with `takes_all` first.

    Records of unknown size are left out.
    """
    by_line = configurations.group_by(group.rows, configurations.line_key)
    sized: list[list[Record]] = [[row for row in rows if row[ROWS]] for rows in by_line.values()]
    ordered = [sorted(rows, key=lambda row: row[ROWS]) for rows in sized if rows]
    return sorted(ordered, key=lambda rows: not takes_all(rows[0]))


def contests(group: configurations.Group, measure: str) -> list[AtSize]:
    """Return the contest of the best active-row with the best all-row configuration at each table size, ascending.

    A lazy update that trained a worse model may not win. O(rows * rounds). `measure` is a key of MEASURES; in each
    contest the active-row side is called sparse.
    """
    return [AtSize(size, _contest_at(rows, measure)) for size, rows in _by_size(group)]


def _by_size(group: configurations.Group) -> Iterator[tuple[int, list[Record]]]:
    """Yield (table rows, records) for each known table size, ascending."""
    for size in sorted({row[ROWS] for row in group.rows if row[ROWS]}):
        rows: list[Record] = [row for row in group.rows if row[ROWS] == size]
        yield int(size), rows


def _contest_at(rows: Sequence[Record], measure: str) -> Contest:
    """Return the contest of active-row updates (as "sparse") with all-row updates (as "dense") at one table size.

    `rows` are the records of that size, `measure` is a key of MEASURES.
    """
    worse = {id(row) for row, _ in trained_worse(rows)}
    active = [row for row in rows if not takes_all(row) and id(row) not in worse]
    whole = [row for row in rows if takes_all(row)]
    return compare_best(active, whole, measure)


def table_size_sentences(frame: pd.DataFrame) -> list[str]:
    """Return a sentence per measure and group with a dense gradient or several table sizes: where active rows win.

    `frame` holds trial records.
    """
    found = [group for group in groups(frame) if _has_dense_gradient(group) or len(list(_by_size(group))) > 1]
    heads = {group.label: f"{group.label}: " if len(found) > 1 else "" for group in found}
    return [heads[group.label] + headline(group, measure)[1] for group in found for measure in MEASURES]


def _has_dense_gradient(group: configurations.Group) -> bool:
    """Return whether dense gradients of a table of known size are compared with gradients of the active rows."""
    sized = [row for row in group.rows if row[ROWS]]
    return any(row["gradient"] == "dense" for row in sized) and not all(takes_all(row) for row in sized)


def headline(group: configurations.Group, measure: str) -> tuple[str, str]:
    """Return (title, sentence) on at which table sizes active rows win in a measure.

    `group` is one of `groups`; `measure` is a key of MEASURES.
    """
    name, _, better = MEASURES[measure]
    found = contests(group, measure)
    ranges = [(who, list(some)) for who, some in groupby(found, key=lambda one: _winner(one.contest))]
    if not any(one.contest.ratio for one in found):
        why = next((one.contest.why for one in found if one.contest.why), "nothing was compared")
        return f"No comparison of {name}: {why}", f"There is no answer for {name}: {why}."
    each = ", ".join(f"{who} {_sizes(some)}" for who, some in ranges)
    last = next((one for one in reversed(found) if one.contest.ratio), None)
    factor = f" At {last.rows:,} rows {contest_clause(last.contest, better)}." if last else ""
    return f"{formatting.capitalized(better)}: {each}", f"Rows of a table, {better}: {each}.{factor}"


def _winner(contest: Contest) -> str:
    """Return the verdict of a contest of active rows ("sparse") with all rows ("dense") as text."""
    return verdict_of(contest).partition(" (")[0].replace("sparse", "active rows").replace("dense", "all rows")


def _sizes(some: Sequence[AtSize]) -> str:
    """Return consecutive table sizes as text, such as "from 1,000 to 10,000 rows"."""
    first, last = some[0].rows, some[-1].rows
    return f"at {first:,} rows" if first == last else f"from {first:,} to {last:,} rows"
