"""A chooser of files and folders below a text field, of widgets that a keyboard reaches: a list and three buttons."""

import html
import os
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.analysis import formatting
from workbench.panels.guard import Guard

MOST = 500
"""Entries of a folder that are listed."""
PARENT = ".. (the folder above)"


class FileChooser:
    """A button that opens a list of the folders and readable files; what is chosen is written into the text field.

    Files are read from `text`'s folder, else from the current one. Arrow keys choose in the list, and a button opens
    the entry: a folder is listed in its place, a file is taken.
    """

    def __init__(self, text: widgets.Text, guard: Guard, takes_folder: bool = False) -> None:
        name = text.description.lower()
        self.text, self.folder = text, Path.cwd()
        self.browse = widgets.ToggleButton(description="Browse", tooltip=f"Choose {name} from a list")
        self.place = widgets.HTML()
        self.list = widgets.Select(
            options=[], rows=8, description="Folders and files", tooltip=f"Entries to choose {name} from"
        )
        self.list.add_class("wb-files")
        self.open = widgets.Button(description="Open", tooltip="Take the file, or list the folder, that is marked")
        self.take = widgets.Button(description="Use folder", tooltip="Take the folder that is listed")
        self.take.layout.display = None if takes_folder else "none"
        buttons = widgets.HBox([self.open, self.take])
        buttons.add_class("wb-row")
        self.shown = widgets.VBox([self.place, self.list, buttons])
        self.shown.layout.display = "none"
        self.box = widgets.VBox([text, self.browse, self.shown])
        self.box.add_class("wb-field")
        self.browse.observe(guard("Listing files", self._toggle), names=["value"])
        self.open.on_click(guard("Opening the entry", self._open))
        self.take.on_click(guard("Taking the folder", lambda: self._choose(self.folder)))

    def enable(self, on: bool) -> None:
        """Let the user choose, or not."""
        self.text.disabled = self.browse.disabled = not on
        if not on:
            self.browse.value = False

    def _toggle(self) -> None:
        """Show the list, beginning at what the text field names, or hide it."""
        self.shown.layout.display = None if self.browse.value else "none"
        if self.browse.value:
            named = Path(self.text.value or ".").expanduser()
            folder = named if named.is_dir() else named.parent
            self._list(folder if folder.is_dir() else Path.cwd())

    def _list(self, folder: Path) -> None:
        """List a folder; OSError if it cannot be read."""
        options, left_out = entries(folder)
        self.folder = folder.resolve()
        more = f" {left_out:,} more are not listed; type the name." if left_out else ""
        self.place.value = f'<div class="wb-now" role="status">{html.escape(str(self.folder))}{more}</div>'
        self.list.options = options
        self.list.value = options[0][1]

    def _open(self) -> None:
        """Take the marked file, or list the marked folder."""
        chosen = self.folder / (self.list.value or ".")
        if chosen.is_dir():
            self._list(chosen)
        else:
            self._choose(chosen)

    def _choose(self, path: Path) -> None:
        """Write a path into the text field, from the current folder if it is below it, and close the list."""
        here = Path.cwd()
        self.text.value = str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)
        self.browse.value = False


def entries(folder: Path) -> tuple[list[tuple[str, str]], int]:
    """Return (label, name) of each folder and readable file, folders first, and the count of those beyond `MOST`.

    The folder above is the first entry; hidden files are left out.
    """
    folders, files = [], []
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda entry: entry.name.casefold()):
            if entry.name.startswith(".") or not os.access(entry.path, os.R_OK):
                continue
            if entry.is_dir():
                folders.append((f"{entry.name}/", entry.name))
            elif entry.is_file():
                files.append((f"{entry.name}   {formatting.format_bytes(entry.stat().st_size)}", entry.name))
    known: list[Any] = [*folders, *files]
    return [(PARENT, ".."), *known[:MOST]], max(len(known) - MOST, 0)
