"""The page of whole processes from a file to predictions: ratios, a chart of stages and the candidates of each case."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots, store
from workbench.analysis import end, formatting
from workbench.analysis.end import Record
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written

FILE = "bench-end.md"
FIGURE_INCHES = (9.0, 4.5)
COLUMNS = ("case", "start", "project", "soonest competitor", "its seconds", "competitor / project")


def write(folder: str | Path, command: str = "") -> Path:
    """Write the page and its charts beside the records of a folder; returns its path."""
    folder = Path(folder)
    records = [written(record) for record in store.END.read(folder)]
    frame = store.END.frame(records)
    cases = end.cases_of(records)
    content = {
        "verdict": end.summary(records),
        "tolerance": f"{100 * end.TOLERANCE:g} %",
        "ratios": page.table_of(
            COLUMNS, [line(name, own, start) for name, own in cases.items() for start in end.STARTS]
        ),
        "parts": [_part(name, own, frame, folder) for name, own in cases.items()],
        "machine": page.table_of(("what", "value"), page.flat(written(page.record(folder / "machine.json")))),
        "command": command or f"workbench bench end --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(page.templates().get_template("end.md.jinja").render(content), "utf-8")
    return path


def line(case: str, records: Sequence[Record], start: str) -> list[str]:
    """Return the seconds of the project and of the soonest competitor in a case from a start, and their ratio."""
    found = end.taken(records, start)
    others = [name for name, one in found.items() if one.record["side"] == "competitor"]
    own = _seconds(found["project"]) if "project" in found else "not reached"
    value = end.ratio(records, start)
    best = [others[0], _seconds(found[others[0]])] if others else ["none reached it", ""]
    return [case, start, own, *best, "" if value is None else formatting.format_number(value)]


def _seconds(one: end.Taken) -> str:
    """Return the median seconds, with least and most if there are several runs."""
    text = formatting.format_seconds(one.record["seconds"])
    if one.runs == 1:
        return text
    return f"{text} ({formatting.format_seconds(one.low)} to {formatting.format_seconds(one.high)})"


def _part(case: str, records: Sequence[Record], frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Return a case's section: table, candidates left out, and the chart, which is saved in `folder`."""
    figure = Figure(figsize=FIGURE_INCHES)
    sentence = plots.draw("end_stages", frame, figure, case=case)
    file = f"end-{re.sub(r'[^a-z0-9]+', '-', case.lower()).strip('-')}.svg"
    page.save(figure, folder / file)
    shown = plots.table("end_stages", frame, case=case)
    there = {name for start in end.STARTS for name in end.taken(records, start)}
    absent = [name for name in dict.fromkeys(record["candidate"] for record in records) if name not in there]
    return {
        "title": case,
        "file": file,
        "sentence": sentence,
        "table": page.table_of(shown.columns, shown.to_numpy().tolist()),
        "absent": [f"{name}: {end.reason_left_out(records, name)}" for name in absent],
    }
