"""Notes and tags of a run, kept in its folder, and what a list of runs says of it."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from workbench import atomic_files
from workbench.json_text import parsed
from workbench.sweeps import run_folder

FILE = "note.json"
"""In the run folder: what a person has written about the run."""


class Note(NamedTuple):
    """What a person has written about a run."""

    note: str = ""
    tags: tuple[str, ...] = ()


class Described(NamedTuple):
    """A run in a list: its name, when its records were last written (s, and as text), trials done, state, note."""

    name: str
    time: float
    date: str
    trials: int
    state: str
    note: Note


def read(folder: Path) -> Note:
    """Return the note of a run; an empty one if there is none or its file is damaged."""
    try:
        kept: Any = parsed((folder / FILE).read_text(encoding="utf-8"))
        return Note(str(kept["note"]), tuple(map(str, kept["tags"])))
    except (OSError, ValueError, KeyError, TypeError):  # the run is listed without it
        return Note()


def write(folder: Path, note: str, tags: str) -> None:
    """Keep a note and tags, words between commas, in the run folder."""
    words = sorted({word.strip() for word in tags.split(",")} - {""})
    atomic_files.write(folder / FILE, json.dumps({"note": note.strip(), "tags": words}, indent=1))


def describe(folder: Path) -> Described:
    """Return what a list of runs says of the run in a folder."""
    progress = run_folder.read_progress_or_failure(folder)
    changed = max((path.stat().st_mtime for path in folder.iterdir() if path.name != FILE), default=0.0)
    date = datetime.fromtimestamp(changed).strftime("%Y-%m-%d %H:%M")
    return Described(folder.name, changed, date, progress.done, progress.state, read(folder))
