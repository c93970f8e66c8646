"""Columns of a table in words, for people: what each is, and what was seen of it."""

from collections.abc import Iterable

from workbench.data.tables.schema import Column

HEADINGS = ("column", "kind", "encoding", "distinct", "missing", "why")


def table_lines(columns: Iterable[Column]) -> list[str]:
    """A line of aligned cells for each column, below their headings."""
    rows = [HEADINGS, *map(_cells, columns)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    rows.insert(1, tuple("-" * width for width in widths))
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cells(column: Column) -> tuple[str, ...]:
    found = column.found
    distinct = f"{'over ' if found.is_least else ''}{found.distinct:,}" if found else ""
    missing = f"{found.missing_share:.1%}" if found else ""
    return shown(column.name), column.kind, encoding_text(column), distinct, missing, shown(column.why)


def encoding_text(column: Column) -> str:
    """The encoding and what it takes, in a few words.

    >>> encoding_text(Column("age", "number", bins=8)), encoding_text(Column("site", "category", buckets=1024))
    ('binned, 8 bins', 'hashed, 1,024 buckets')
    """
    counts = {"buckets": column.buckets, "bins": column.bins}
    if column.encoding == "binned" and column.edges is not None:
        counts["bins"] = len(column.edges) + 1
    told = [f"{count:,} {name}" for name, count in counts.items() if count is not None]
    told += [f"{len(column.values):,} values"] if column.values is not None else []
    if column.divisor is not None:
        told.append(f"divided by {column.divisor:.4g}")
    elif column.scaling not in (None, "none"):
        told.append(f"divided by the {'standard deviation' if column.scaling == 'deviation' else 'largest magnitude'}")
    return ", ".join([column.encoding, *told]) if column.encoding else ""


def seen_text(column: Column) -> str:
    """Statistics of the column in one line; "" where there are none."""
    if (found := column.found) is None:
        return ""
    least = "more than " if found.is_least else ""
    why = f"; {column.why}" if column.why else ""
    return shown(f"{least}{found.distinct:,} distinct, {found.missing_share:.1%} missing{why}")


def shown(text: str) -> str:
    """Text on one line, without signs that steer a terminal."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
