"""The page of the self-trial: what was wanted of the measuring, what came of it, and two charts, from rows alone."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from workbench import plots, store
from workbench.analysis import self_trial
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written, written_frame

FILE = "self.md"
FIGURE_INCHES = (9.0, 6.0)
COLUMNS = ("part", "what", "condition")
MET = {True: "met", False: "missed", None: "failed"}


def write(folder: str | Path, command: str = "") -> Path:
    """Write the page and its charts beside the outcomes of a folder; returns its path."""
    folder = Path(folder)
    frame = written_frame(store.SELF.frame(store.SELF.read(folder)))
    known = written(page.record(folder / "machine.json"))
    content = {
        "meaning": self_trial.meaning(frame),
        "verdict": _verdict(frame),
        "criteria": page.table_of(
            (*COLUMNS, "wanted", "measured", "outcome"),
            ([c.part, c.what, c.condition, c.wanted, c.measured, MET[c.met]] for c in self_trial.criteria(frame)),
        ),
        "others": page.table_of(
            (*COLUMNS, "measured"),
            ([c.part, c.what, c.condition, c.measured] for c in self_trial.other_outcomes(frame)),
        ),
        "charts": [_chart(name, frame, folder) for name in plots.names("self")],
        "machine": page.table_of(("what", "value"), page.flat(known)),
        "command": command or f"workbench bench self --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(
        page.templates().get_template(f"{FILE.replace('self', 'self_trial')}.jinja").render(content), "utf-8"
    )
    return path


def _verdict(frame: Any) -> str:
    """Return how many criteria are met, as a sentence."""
    found = [criterion.met for criterion in self_trial.criteria(frame)]
    return f"{sum(met is True for met in found)} of {len(found)} criteria are met."


def _chart(name: str, frame: Any, folder: Path) -> dict[str, str]:
    """Save a chart as SVG in the folder; return its title, file and sentence."""
    figure = Figure(figsize=FIGURE_INCHES)
    sentence = plots.draw(name, frame, figure)
    file = f"{name.replace('_', '-')}.svg"
    page.save(figure, folder / file)
    return {"title": plots.get(name).title, "file": file, "sentence": sentence}
