"""A run put into a folder of results: its rows, its report as HTML and Markdown, its charts as SVG, the machine."""

import glob
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import atomic_files, plots, store
from workbench.analysis import configurations
from workbench.reports import chart_svg, export, private_paths, report
from workbench.reports.export import ExportError
from workbench.sweeps import run_folder

# The charts of a data set's profile as files.


PROFILE_INCHES = (9.0, 5.4)
FORMATS = ("svg", "png")


def write_charts(profile: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Draw the charts of a data set's profile into a folder, created if needed; return the SVG and PNG files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame, written = pd.DataFrame([profile]), []
    for name in plots.names("profile"):
        figure = Figure(figsize=PROFILE_INCHES, facecolor="white")
        plots.draw(name, frame, figure)
        for kind in FORMATS:
            written.append(folder / f"{name.replace('_', '-')}.{kind}")
            chart_svg.save(figure, written[-1])
    return written


def put(run: str | Path, folder: str | Path) -> list[Path]:
    """Write records, report and charts of a run into a folder of results, named after the run; return the files.

    Files of the same run are replaced, and its charts that are no more are removed. ExportError if the folder is
    another machine's, or `run` is no run folder.
    """
    run, folder = Path(run), Path(folder)
    if not (run / run_folder.SPEC).exists():
        raise ExportError(f"{run} is no run folder; there is no spec.json in it.")
    folder.mkdir(parents=True, exist_ok=True)
    name, machine = run_folder.read_spec(run).name, export.machine_of(run)
    _refuse_other_machine(folder, machine)
    files = [folder / f"{name}.jsonl", folder / run_folder.MACHINE]
    records = run_folder.read_current_records(run)
    names = private_paths.file_names(private_paths.paths_of(records))
    atomic_files.write(files[0], "".join(map(_line, private_paths.hide_folders(records, names))))
    store.packed_path(files[0]).unlink(missing_ok=True)
    atomic_files.write(files[1], json.dumps(machine, indent=1))
    files += [export.write_report(run, folder / f"{name}-report{kind}") for kind in (".html", ".md")]
    files += _charts(run, folder, name)
    for old in _all_charts(folder, name) - set(files):
        old.unlink()
    return files


def _line(record: dict[str, Any]) -> str:
    """Return a record as a line of JSON without its None values, ending with a newline."""
    return (
        json.dumps({name: value for name, value in record.items() if value is not None}, separators=(",", ":")) + "\n"
    )


def _all_charts(folder: Path, name: str) -> set[Path]:
    """Return the SVG files in the folder that are charts of the run `name`."""
    start = glob.escape(name)
    return {file for chart in plots.names() for end in ("", "-*") for file in folder.glob(f"{start}-{chart}{end}.svg")}


def _refuse_other_machine(folder: Path, machine: dict[str, Any]) -> None:
    """Raise ExportError if the folder has results of a machine with another id."""
    known = export.machine_of(folder).get("id")
    if known not in (None, machine.get("id")):
        raise ExportError(f"{folder} has results of the machine {known}; this run is of {machine.get('id')}.")


def _charts(run: Path, folder: Path, name: str) -> list[Path]:
    """Save the charts of a run as SVG in the folder; return their paths. Charts with only a message are left out."""
    files, rows = [], export.frame_of(run)
    are_several = len(configurations.groups(rows)) > 1
    for chart, frame, controls in report.charts_of(rows):
        figure = Figure(figsize=report.FIGURE_INCHES, facecolor="white")
        plots.draw(chart, frame, figure, **controls)
        if chart_svg.is_drawn(figure):
            group = re.sub(r"\W+", "-", controls.get("group", "")).strip("-").lower() if are_several else ""
            files.append(folder / ("-".join(filter(None, (name, chart, group))) + ".svg"))
            chart_svg.save(figure, files[-1])
    return files
