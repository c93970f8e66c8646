"""Export of run folders, or files of rows, to a report or a table: what the command line and the panel both do."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import atomic_files, spreadsheets, store
from workbench.analysis import configurations, formatting, profiles
from workbench.analysis.advisor import Advice
from workbench.analysis.answers import answer_of, answered_groups
from workbench.analysis.compare import contests_of_group
from workbench.analysis.grades import comparison_facts
from workbench.reports import private_paths, report
from workbench.reports.page import record, written_frame
from workbench.sweeps import run_folder

# Answers of rows for programs: of each group, measure and density the better side, as sure as it is.


MEASURES = {"time": "seconds_step", "memory": "bytes_peak"}


def answers(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one dict for each group, measure and density with the fields of `grades.comparison_facts`, for JSON.

    `group` has the settings that its configurations share; `measure` is "time" or "memory"; `sparse` and `dense` name
    the best configuration of each side, None if a side has none; `is_answer` is true of the answer of all records.
    O(rows * rounds).
    """
    frame = configurations.pool_rounds(frame)
    answer = answer_of(frame)
    asked = (None, None) if answer is None else (answer.group, answer.asked)
    return [
        {
            "group": group.settings,
            "is_answer": (group, contest.asked_density) == asked,
            "measure": name,
            "density": contest.density,
            **comparison_facts(contest),
            "sparse": formatting.name_configuration(contest.sparse) if contest.sparse else None,
            "dense": formatting.name_configuration(contest.dense) if contest.dense else None,
        }
        for group in answered_groups(frame)
        for name, measure in MEASURES.items()
        for contest in contests_of_group(group, measure)
    ]


# A page printed as PDF by a headless Chromium, where the machine has one.


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120
OPTIONS = ("--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--no-pdf-header-footer")


class PrintError(RuntimeError):
    """Failure to print: there is no browser that prints, or it did not; the message says what to do."""


def browser() -> str:
    """Return the path of a Chromium on the PATH; PrintError if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise PrintError(
            f"PDF is printed by a browser; none of {', '.join(NAMES)} is on the PATH. Print the HTML report."
        )
    return found


def written(page: Path, path: Path) -> Path:
    """Print the HTML file `page` to the PDF file `path` by a headless browser, offline; return the path.

    PrintError if there is no browser, it fails or takes over `SECONDS`.
    """
    program = browser()
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="workbench-print-") as profile_folder:
        command = [program, *OPTIONS, *as_root, f"--user-data-dir={profile_folder}", f"--print-to-pdf={path.resolve()}"]
        command.append(page.resolve().as_uri())
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise PrintError(f"{program} did not print {page} within {SECONDS} s.") from None
    if done.returncode or not path.exists():
        why = done.stderr.decode(errors="replace").strip()[-300:]
        raise PrintError(f"{program} ended with status {done.returncode} and printed nothing: {why}")
    return path


Runs = str | Path | Sequence[str | Path]
"""A run folder or a file of rows, or several."""
TABLES = (".csv", ".parquet")
KINDS = (".html", ".md", ".pdf", *TABLES)
"""What is written, by the suffix of the file."""
FLAT = ("text", "integer", "number", "flag")
"""Kinds of columns that a table has as they are."""


class ExportError(ValueError):
    """Export that cannot be written; the message says what can, or what is missing."""


def frame_of(runs: Runs) -> pd.DataFrame:
    """Return the records of run folders (records that match their specs) and of .jsonl files, as one frame.

    Paths of data files are names, since what is made of the frame may be shared.
    """
    return _frame_of(runs, run_folder.read_current_records)


def answer_frame_of(runs: Runs) -> pd.DataFrame:
    """Return the records that the answer of runs is made of: as `frame_of`, with predictions if needed."""
    return _frame_of(runs, run_folder.read_answer_records)


def _frame_of(runs: Runs, read: Callable[[Path], list[dict[str, Any]]]) -> pd.DataFrame:
    """Return the records of runs, those of a run folder as `read` returns them, without the folders of files."""
    rows: list[dict[str, Any]] = []
    for run in _paths(runs):
        rows += read(run) if (run / run_folder.PLAN).exists() else store.read(run)
    return store.frame(private_paths.hide_folders(rows, private_paths.file_names(private_paths.paths_of(rows))))


def _paths(runs: Runs) -> list[Path]:
    """Return one or several run paths as a list of Path."""
    return [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]


def machine_of(run: str | Path) -> dict:
    """Return the machine.json of a run folder, or next to a file of records, as a dict; {} without one."""
    run = Path(run)
    path = (run if run.is_dir() else run.parent) / run_folder.MACHINE
    return record(path)


def title_of(run: str | Path) -> str:
    """Return the description or name of the run's spec, else the name of its folder or file."""
    run = Path(run)
    if not (run / run_folder.SPEC).exists():
        return run.name.removesuffix(".gz").removesuffix(".jsonl")
    return run_folder.read_title(run)


def spec_of(run: str | Path) -> str:
    """Return the text of a run's spec.json; "" without one, RunError if it is damaged."""
    path = Path(run) / run_folder.SPEC
    if not path.exists():
        return ""
    run_folder.read_title(run)
    text = path.read_text(encoding="utf-8")
    axes = json.loads(text).get("axes")
    values = (axes.get(name) for name in private_paths.FILES) if isinstance(axes, dict) else ()
    paths = [one for value in values for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    return private_paths.hide_folders(text, private_paths.file_names(paths))


def write_report(
    runs: Runs,
    out: str | Path | None = None,
    *,
    markdown: bool = False,
    predicted: Advice | None = None,
    quote_formulas: bool = False,
) -> Path:
    """Write the report of one or several runs and return its path, by default next to the first's records.

    HTML; Markdown with `markdown` or for .md; PDF for .pdf, printed by a Chromium; only the records for .csv and
    .parquet. `predicted` is the answer of a run without records, which is an error otherwise. Texts that a
    spreadsheet would run begin with an apostrophe in a .csv if `quote_formulas`; else a warning tells them. ExportError
    for another suffix or without pyarrow for Parquet; PrintError for PDF.
    """
    paths = _paths(runs)
    path = Path(out) if out is not None else _path_next_to(paths[0], "report.md" if markdown else "report.html")
    kind = ".md" if markdown else path.suffix.lower()
    if kind not in KINDS:
        raise ExportError(f"A report is not written as {path.name!r}; its name may end in {', '.join(KINDS)}.")
    is_empty = predicted is not None and not any(store.is_stored(run / store.FILE) for run in paths)
    if kind in TABLES:
        return _write_frame(store.frame() if is_empty else frame_of(paths), path, quote_formulas)
    frame = store.frame() if is_empty else answer_frame_of(paths)
    given = _given(paths) | {"structures": _structures([*paths, path]), "predicted": predicted}
    if kind == ".pdf":
        browser()  # first of all: without one there is no need to draw
        with tempfile.TemporaryDirectory(prefix="workbench-report-") as folder:
            return written(report.html(frame, Path(folder) / "report.html", **given), path)
    write = report.markdown if kind == ".md" else report.html
    return write(frame, path, **given)


def _structures(paths: Sequence[Path]) -> pd.DataFrame | None:
    """Return the records of the sweep of several data sets, from the first folder next to these paths that has them.

    None if there are none.
    """
    for path in paths:
        for place in (path.parent / profiles.NAME, path.parent / f"{profiles.NAME}.jsonl"):
            if (place / store.FILE).exists() or (place.suffix and store.is_stored(place)):
                return frame_of(place)
    return None


def refuse_options(out: Path | None, markdown: bool) -> None:
    """Raise ExportError if --out or --markdown is given together with a folder of results."""
    if out is not None or markdown:
        raise ExportError("--results writes all files of a run into a folder; leave out --out and --markdown.")


def _given(paths: Sequence[Path]) -> dict[str, Any]:
    """Return title, command, machine and (of a single run) spec of a report, as keyword arguments.

    Machines of several runs are keyed by id if they differ.
    """
    if len(paths) == 1:
        run, spec = paths[0], spec_of(paths[0])
        command = f"workbench sweep {run_folder.SPEC}" if spec else f"workbench report {run.name}"
        return {"title": title_of(run), "command": command, "machine": machine_of(run), "spec": spec}
    machines = {str(one.get("id", path)): one for path in paths if (one := machine_of(path))}
    machine = next(iter(machines.values()), {}) if len(machines) < 2 else machines
    names = private_paths.file_names(map(str, paths))
    command = " ".join(["workbench report", *(names.get(str(path), str(path)) for path in paths)])
    return {"title": "; ".join(dict.fromkeys(map(title_of, paths))), "command": command, "machine": machine}


def _path_next_to(run: Path, name: str) -> Path:
    """Return the path of a file `name` in the run's folder, or next to a file of records."""
    return (run if run.is_dir() else run.parent) / name


def write_table(runs: Runs, out: str | Path | None = None) -> Path:
    """Write the records of runs as CSV, or Parquet for a path .parquet, and return the path (default rows.csv).

    Parquet keeps lists and dicts as JSON text. ExportError if pyarrow is missing.
    """
    path = Path(out) if out is not None else _path_next_to(_paths(runs)[0], "rows.csv")
    return _write_frame(frame_of(runs), path)


def _write_frame(frame: pd.DataFrame, path: Path, quote_formulas: bool = False) -> Path:
    """Write the records of a frame as CSV or Parquet, by the suffix; return the path."""
    frame = written_frame(frame, None)
    if path.suffix.lower() == ".csv":
        texts = {name: frame[name].tolist() for name in frame.columns if frame[name].dtype == object}
        guarded = spreadsheets.guard_columns(texts, path, quote_formulas)
        frame = frame.assign(
            **{name: pd.Series(cells, dtype=object, index=frame.index) for name, cells in guarded.items()}
        )
    with atomic_files.replacing(path) as new:
        if path.suffix.lower() == ".parquet":
            _as_parquet(frame, new)
        else:
            frame.to_csv(new, index=False)
    return path


def _as_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write records to a Parquet file, nested columns as JSON text; ExportError if pyarrow is missing."""
    nested = [name for name, column in store.TRIALS.columns.items() if column.kind not in FLAT]
    texts = {name: [None if value is None else json.dumps(value) for value in frame[name]] for name in nested}
    flat = frame.assign(**{name: pd.Series(values, dtype=object) for name, values in texts.items()})
    try:
        flat.to_parquet(path, index=False)
    except ImportError as error:
        needed = "Parquet needs pyarrow: pip install 'sparse-workbench[tables]', or write a .csv"
        raise ExportError(f"{needed} ({error}).") from None
