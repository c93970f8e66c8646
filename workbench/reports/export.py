"""From a run folder, or a file of rows, to a report or a table: what the command line and the panel both do."""

from pathlib import Path

import pandas as pd

from workbench import store
from workbench.reports import report
from workbench.reports.page import record
from workbench.reports.texts import written_frame
from workbench.sweep import run_folder


def frame_of(run: str | Path) -> pd.DataFrame:
    """The rows of a run folder that answer its spec, or all rows of a `.jsonl` file, as one frame."""
    run = Path(run)
    return store.frame(run_folder.rows(run) if (run / run_folder.PLAN).exists() else store.read(run))


def machine_of(run: str | Path) -> dict:
    """The machine record of a run: `machine.json` in its folder, or beside its file; empty where there is none."""
    run = Path(run)
    path = (run if run.is_dir() else run.parent) / run_folder.MACHINE
    return record(path)


def title_of(run: str | Path) -> str:
    """What the run's spec says it is about, else the run's name."""
    run = Path(run)
    if not (run / run_folder.SPEC).exists():
        return run.stem
    spec = run_folder.read_spec(run)
    return spec.description or spec.name


def spec_of(run: str | Path) -> str:
    """The spec that a run was started with, as `workbench sweep` takes it from a file; empty where there is none."""
    path = Path(run) / run_folder.SPEC
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write_report(run: str | Path, out: str | Path | None = None, *, markdown: bool = False, command: str = "") -> Path:
    """Write the report of a run, HTML unless `markdown` or a file .md, beside its rows unless `out` says where.

    Returns its path.
    """
    run = Path(run)
    markdown = markdown or Path(out or "").suffix == ".md"
    name = "report.md" if markdown else "report.html"
    path = Path(out) if out is not None else (run if run.is_dir() else run.parent) / name
    write = report.markdown if markdown else report.html
    spec = spec_of(run)
    command = command or (f"workbench sweep {run_folder.SPEC}" if spec else f"workbench report {run}")
    write(frame_of(run), path, title=title_of(run), command=command, machine=machine_of(run), spec=spec)
    return path


def write_table(run: str | Path, out: str | Path | None = None) -> Path:
    """Write the rows of a run as CSV, one column a key; returns its path."""
    run = Path(run)
    path = Path(out) if out is not None else (run if run.is_dir() else run.parent) / "rows.csv"
    written_frame(frame_of(run), None).to_csv(path, index=False)
    return path
