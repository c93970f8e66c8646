"""A comparison of two runs, or of a run with rows of another tool, as Markdown for a pull request."""

from collections.abc import Sequence

from workbench.analysis import changes_told, others
from workbench.analysis.changes import Changes
from workbench.analysis.others import Held
from workbench.reports import page

MOST = 200
"""Rows of a table."""


def of_runs(found: Changes, before: str, after: str) -> str:
    """The answer, its grounds, every kernel, and the cells, what is slower first."""
    tables = [("Kernels", ("kernel", *changes_told.COLUMNS[1:]), changes_told.table(found.kernels))]
    tables += [("Cells", changes_told.COLUMNS, changes_told.table(found.cells))]
    tables += [("Peak memory", changes_told.COLUMNS, changes_told.table(found.memory))]
    return _page(f"{before} and {after}", changes_told.headline(found), list(changes_told.sentences(found)), tables)


def of_others(held: Sequence[Held], theirs: str, run: str) -> str:
    """Rows of another tool beside a run."""
    tables = [("Theirs and ours", others.COLUMNS, others.table(held))]
    return _page(f"{theirs} beside {run}", "", others.sentences(held), tables)


def _page(title: str, headline: str, sentences: Sequence[str], tables: Sequence[tuple]) -> str:
    cut = [(name, page.table_of(columns, rows[:MOST]) | {"left": len(rows[MOST:])}) for name, columns, rows in tables]
    content = {"title": title, "headline": headline, "sentences": sentences, "tables": cut}
    return page.templates().get_template("changes.md.jinja").render(content)
