"""The report of a benchmark: what was to be reached and what was, the charts, what has no time, the machine.

HTML is one self-contained file; Markdown has the tables alone, for a pull request.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks import plots, tables
from benchmarks.analysis import bench, performance_targets
from benchmarks.pages import suites
from benchmarks.plots import style
from workbench import atomic_files, store
from workbench.reports import page
from workbench.reports.page import written_frame

FIGURE_INCHES = (9.0, 6.5)
MOST_ROWS = 400
"""Rows of a table in the Markdown form."""
TITLES = {
    "kernels": "Sparse kernels against their competitors",
    "step": "Training steps against those of other libraries",
    "pytorch": "Training loops of PyTorch, and the same with two lines changed",
}
SEVERAL = "Sparse kernels and training steps against their competitors"
PAGES: dict[str, Callable[[Path], Path]] = {
    tables.CLUSTER.file: suites.write_cluster,
    tables.END.file: suites.write_end,
    tables.EPOCHS.file: suites.write_epochs,
    tables.FAIR.file: suites.write_fair,
    tables.FIT.file: suites.write_fit,
    tables.SELF.file: suites.write_self_trial,
    tables.WAITS.file: suites.write_waits,
}
"""The function that writes the page of a suite with a separate table, by the name of the file of its records."""


def write_pages(folder: str | Path) -> list[Path]:
    """Write the page of each suite that has records in a folder of results, next to them.

    Parameters
    ----------
    folder
        Such as ``results/MACHINE``, or one file of records in it, packed (``.gz``) or not.

    Returns
    -------
    list of Path
        The Markdown pages written, charts not counted; empty if there are no such records. The page of the suite of
        advice is left as it is: it also says what only the trials of its sweeps hold.
    """
    folder = Path(folder)
    parent, only = (folder, "") if folder.is_dir() else (folder.parent, folder.name.removesuffix(".gz"))
    own = [f"bench-{suite}.jsonl" for suite in TITLES]
    known = [name for name in (*own, *PAGES) if only in ("", name) and store.is_stored(parent / name)]
    return [
        PAGES[name](parent) if name in PAGES else write(parent / name, (parent / name).with_suffix(".md"))
        for name in known
    ]


def write(folder: str | Path, out: str | Path | None = None, *, markdown: bool = False, command: str = "") -> Path:
    """Write the report of a benchmark's records, next to them unless `out` is given; return its path.

    `folder` is a run folder or a file of records. HTML, unless `markdown` or `out` ends in .md. Raises RowError for the
    records of a suite with a separate table, which has a page in Markdown alone.
    """
    if (name := Path(folder).name.removesuffix(".gz")) in PAGES:
        raise store.RowError(
            f"{name} has the records of a suite whose page is written next to them, in Markdown; --out and --markdown "
            f"are for runs of kernels, steps and PyTorch.\nType python -m benchmarks report {folder}"
        )
    source, markdown = Path(folder), markdown or Path(out or "").suffix == ".md"
    frame = written_frame(tables.BENCH.frame(tables.BENCH.read(source)))
    folder = source if source.is_dir() else source.parent
    content = _content(
        frame, folder, command or f"python -m benchmarks report {source}", MOST_ROWS if markdown else None
    )
    kind = "md.jinja" if markdown else "html"
    path = Path(out) if out else folder / ("report.md" if markdown else "report.html")
    charts = [] if markdown else _charts(frame)
    text = page.templates().get_template(f"bench.{kind}").render(content | {"charts": charts})
    atomic_files.write(path, text)
    return path


def _content(frame: pd.DataFrame, folder: Path, command: str, most: int | None) -> dict[str, Any]:
    """Return the values for the template of a benchmark's report; tables have at most `most` rows (None: all)."""
    reached = performance_targets.list_targets(frame)
    without = (
        "No performance target was measured." if reached else "There are no performance targets for these records."
    )
    newest = bench.records(bench.newest_records(frame))
    lost = Counter((row["candidate"], row["task"], row["reason"]) for row in newest if row["status"] != "ok")
    return {
        "title": TITLES.get(" ".join(set(frame["suite"])), SEVERAL),
        "verdict": bench.met_sentence(reached, without),
        "targets": page.targets_table(reached, "not measured"),
        "tables": [(task, _cut(plots.table("competitor_ratio", frame, task=task), most)) for task in _tasks(frame)],
        "shares": page.table_of(
            ("kernel", "share of the bound", "bound by", "configurations", "why it is below"),
            performance_targets.share_lines(frame),
        ),
        "lost": page.table_of(
            ("candidate", "task", "configurations", "why"),
            ([candidate, task, str(n), reason] for (candidate, task, reason), n in lost.items()),
        ),
        "machine": page.machine_table(folder, newest),
        "command": command,
        "rows": len(frame),
    }


def _cut(table: pd.DataFrame, most: int | None) -> page.Table:
    """Return the table for the template with at most `most` rows (None: all), and how many are left out."""
    rows = table.to_numpy().tolist()[:most]
    return page.table_of(table.columns, rows) | {"left": len(table) - len(rows)}


def _tasks(frame: pd.DataFrame) -> list[str]:
    """Return the tasks that have both a time of the project and of a competitor."""
    return [task for task in style.tasks(frame) if bench.ratios(frame, task)]


def _charts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the charts of each task for the template: ratios (of steps by kind of batches), rooflines of kernels."""
    charts = []
    for task in _tasks(frame):
        known = {row["batches"] for row in style.measured(frame, task)} - {None}
        charts += [
            _chart("competitor_ratio", frame, task, batches) for batches in sorted(known, reverse=True) or [None]
        ]
        if not known:
            charts.append(_chart("roofline", frame, task))
    return charts


def _chart(name: str, frame: pd.DataFrame, task: str, batches: str | None = None) -> dict[str, Any]:
    """Return the chart `name` of a task as inline SVG with heading and sentence; `batches` None for all."""
    figure, controls = Figure(figsize=FIGURE_INCHES), {"batches": batches} if batches else {}
    sentence = plots.draw(name, frame, figure, task=task, **controls)
    heading = ", ".join(filter(None, (f"{plots.get(name).title}: {task}", batches and f"{batches} batches")))
    svg = page.inline(figure, re.sub(r"\W+", "-", f"{name} {task} {batches or ''}").strip("-"), heading, sentence)
    return {"heading": heading, "sentence": sentence, "svg": svg}
