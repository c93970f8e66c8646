"""What tests of the panel share: run folders as a supervisor leaves them, and what a panel shows."""

import json
import os
from pathlib import Path

import ipywidgets as widgets

from workbench import store
from workbench.panels import lab
from workbench.panels.panel import Panel
from workbench.sweeps import run_folder

INPUTS = (widgets.Button, widgets.ToggleButton, widgets.ToggleButtons, widgets.Dropdown, widgets.Text, widgets.Checkbox)


def write_run(folder: Path, rows: list[dict], state: str = "running", name: str = lab.NAME, **known) -> None:
    """A run folder of the notebook's name, or another, with these rows; what is at work there is this process."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / store.FILE).unlink(missing_ok=True)
    for row in rows:
        store.append(folder / store.FILE, row)
    (folder / run_folder.PLAN).write_text(json.dumps({"keys": [row["key"] for row in rows], "dropped": {}}))
    found = run_folder.Progress(name, state, pid=os.getpid(), total=48, done=len(rows), **known)
    run_folder.write_progress(folder, found)


def tree(widget: widgets.Widget) -> list[widgets.Widget]:
    """A widget and all below it."""
    return [widget, *(found for child in getattr(widget, "children", ()) for found in tree(child))]


def inputs(panel: Panel) -> list[widgets.Widget]:
    """Everything a user can change or press."""
    return [widget for widget in tree(panel.root) if isinstance(widget, INPUTS)]


def text(panel: Panel) -> str:
    """All that the panel says, its style sheet left out."""
    return "\n".join(widget.value for widget in tree(panel.root)[2:] if isinstance(widget, widgets.HTML))
