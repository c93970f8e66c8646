"""Export of run folders, or files of rows, to a report or a table: what the command line and the panel both do."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import atomic_files, spreadsheets, store
from workbench.analysis import configurations, formatting
from workbench.analysis.answer_text import AnswerText
from workbench.analysis.answers import answer_of, answered_groups
from workbench.analysis.compare import contests_of_group
from workbench.analysis.verdict_text import comparison_facts
from workbench.reports import private_paths
from workbench.reports.page import ExportError, record, written_frame
from workbench.sweeps import run_folder

# Answers of rows for programs: of each group, measure and density the better side, as sure as it is.


MEASURES = {"time": "seconds_step", "memory": "bytes_peak"}


def answers(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one dict for each group, measure and density with the fields of `verdict_text.comparison_facts`, for JSON.

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


Runs = str | Path | Sequence[str | Path]
"""A run folder or a file of rows, or several."""
TABLES = (".csv", ".parquet")
KINDS = (".html", ".md", *TABLES)
"""What is written, by the suffix of the file."""
FLAT = ("text", "integer", "number", "flag")
"""Kinds of columns that a table has as they are."""


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
    predicted: AnswerText | None = None,
    quote_formulas: bool = False,
    interactive: bool = False,
) -> Path:
    """Write the report of one or several runs and return its path, by default next to the first's records.

    HTML; Markdown with `markdown` or for .md; only the records for .csv and .parquet. `predicted` is the answer of a
    run without records, which is an error otherwise. Texts that a spreadsheet would run begin with an apostrophe in a
    .csv if `quote_formulas`; else a warning names them. ExportError for another suffix.
    """
    from workbench.reports import report  # imports Matplotlib, which reading a run does not need

    paths = _paths(runs)
    path = Path(out) if out is not None else _path_next_to(paths[0], "report.md" if markdown else "report.html")
    kind = ".md" if markdown else path.suffix.lower()
    if kind not in KINDS:
        raise ExportError(f"A report is not written as {path.name!r}; its name may end in {', '.join(KINDS)}.")
    is_empty = predicted is not None and not any(store.is_stored(run / store.FILE) for run in paths)
    if kind in TABLES:
        return _write_frame(store.frame() if is_empty else frame_of(paths), path, quote_formulas)
    frame = store.frame() if is_empty else answer_frame_of(paths)
    given = _given(paths) | {"predicted": predicted}
    if kind == ".md":
        return report.markdown(frame, path, **given)
    return report.html(frame, path, interactive=interactive, **given)


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

    Parquet keeps lists and dicts as JSON text.
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
    """Write records to a Parquet file, nested columns as JSON text."""
    nested = [name for name, column in store.TRIALS.columns.items() if column.kind not in FLAT]
    texts = {name: [None if value is None else json.dumps(value) for value in frame[name]] for name in nested}
    frame.assign(**{name: pd.Series(values, dtype=object) for name, values in texts.items()}).to_parquet(
        path, index=False
    )
