"""The columns of the chosen table: the first rows, and the kind of each column, which is guessed or chosen here.

A choice is written to a file of column kinds, as `workbench data columns` writes it, and that file becomes the field
"Columns file": the same kinds are then used by a command, too.
"""

import html
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench import data
from workbench.data import contract
from workbench.data.errors import DataError
from workbench.data.files.opened import read_head
from workbench.data.tables.blocks import joined, table_of
from workbench.data.tables.columns import LAYOUT, Columns, columns_of, load
from workbench.data.tables.guessing import nested_of
from workbench.panels.guard import Guard
from workbench.panels.widget_trees import close_tree, send_less
from workbench.sweeps import run_folder

KINDS: dict[str, dict[str, str]] = {
    "number": {"kind": "number"},
    "category": {"kind": "category"},
    "values a|b|c": {"kind": "category", "encoding": "multi-hot"},
    "text": {"kind": "text"},
    "label": {"kind": "label"},
    "ignore": {"kind": "ignored"},
}
"""What a column may be made, in words, and how a file of column kinds says it."""
BYTES = 1 << 20
"""Bytes of the beginning of a text file that kinds are guessed from here; training looks at all rows."""
BYTES_BINARY = 64 << 20
"""Size up to which files that are no text are looked at."""
ROWS, MOST = 4, 60
"""Rows and columns that are shown."""


@dataclass(frozen=True)
class Preview:
    """Columns of the beginning of a table with their kinds, and the texts of its first rows by column."""

    columns: Columns
    values: dict[str, list[str]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.columns.names

    def kind(self, name: str) -> str:
        """Return a key of `KINDS` for a column."""
        column = next(column for column in self.columns if column.name == name)
        if column.encoding == "multi-hot":
            return "values a|b|c"
        return {"ignored": "ignore"}.get(column.kind, column.kind)


def preview(path: Path, columns: str = "", reading: str = "") -> Preview | None:
    """Return the columns and first rows of a table; None if the file is no table, or too large to be looked at.

    `columns` is a file of column kinds, "" for none; `reading` has reader options. DataError if they are wrong.
    """
    if not path.is_file() or data.guess(path)[0] != "table":
        return None
    first = read_head(path, BYTES)
    is_binary = first.startswith((b"PAR1", b"ARROW1"))
    if is_binary and path.stat().st_size > BYTES_BINARY:
        return None
    options: dict[str, Any] = contract.reader_options(reading)
    layout = {name: options[name] for name in LAYOUT if name in options}
    with tempfile.TemporaryDirectory() as folder:
        sample = path
        if not is_binary:
            sample = Path(folder, "sample.txt")
            sample.write_bytes(first if len(first) < BYTES else first[: first.rindex(b"\n") + 1])
        found = data.guess_columns(sample, columns=columns or None, label=options.get("label"), **layout)
        table = table_of(sample, **layout | dict(found.layout))
        shown = [name for name in found.names if name not in nested_of(table)][:MOST]
        block = joined(table, shown)
    values = {
        name: [texts.text(int(code)) if code >= 0 else "" for code in texts.codes[:ROWS]]
        for name, texts in block.items()
    }
    return Preview(found, values)


def write_kinds(path: Path, columns: str, changed: dict[str, str]) -> Path:
    """Write a file of column kinds for the table `path` below `runs`, and return its path.

    It has what the file `columns` ("" for none) says, and the columns in `changed`, {name: key of `KINDS`}; a column
    that was the label is guessed again if another one becomes it.
    """
    mapping = load(columns or None).mapping()
    known = mapping.setdefault("columns", {})
    if "label" in changed.values():
        known = {name: said for name, said in known.items() if said.get("kind") != "label"}
    mapping["columns"] = known | {name: dict(KINDS[kind]) for name, kind in changed.items()}
    out = run_folder.ROOT / "columns" / f"{path.name}.toml"
    out.parent.mkdir(parents=True, exist_ok=True)
    columns_of(mapping, str(out)).save(out)
    return out


class ColumnsView:
    """Cards of the columns of a table: name, kind to choose, first values. Hidden for what is no table."""

    def __init__(self, guard: Guard, chosen: Callable[[str], Any], named: Callable[[tuple[str, ...]], Any]) -> None:
        """Make the widgets; `chosen(file)` takes a new file of column kinds, `named(names)` the columns there are."""
        self.guard, self.chosen, self.named = guard, chosen, named
        self.asked: tuple[str, str, str] | None = None
        self.kinds: dict[str, widgets.Dropdown] = {}
        self.note, self.cards = widgets.HTML(), widgets.HBox()
        self.cards.add_class("wb-columns")
        self.box = widgets.VBox([self.note, self.cards])
        self.box.layout.display = "none"

    def show(self, path: str, columns: str, reading: str) -> None:
        """Show the columns of the table `path`; nothing if it is the same as before or no table.

        What is wrong with a path or a file of kinds is told elsewhere.
        """
        if (path, columns, reading) == self.asked:
            return
        self.asked = path, columns, reading
        try:
            found = preview(Path(path).expanduser(), columns, reading) if path else None
        except (DataError, OSError, ValueError):
            found = None
        self.named(found.names if found else ())
        self.box.layout.display = None if found else "none"
        before, self.kinds = self.cards.children, {}
        self.cards.children = [self._card(found, name) for name in found.values] if found else []
        for card in before:
            close_tree(card)
        send_less(self.box)
        if found:
            more = f"; {len(found.names) - len(found.values)} more are not shown" if len(found.names) > MOST else ""
            self.note.value = (
                f"<strong>Columns</strong> of the first rows. A kind that is wrong can be changed{more}. "
                "Marked with *: chosen, not guessed."
            )

    def _card(self, found: Preview, name: str) -> widgets.Widget:
        """Return the widgets of a column: name, kind, first values."""
        column = next(column for column in found.columns if column.name == name)
        mark = "" if column.found else " *"
        title = widgets.HTML(f'<strong title="{html.escape(column.why)}">{html.escape(name)}{mark}</strong>')
        kind = widgets.Dropdown(
            options=list(KINDS), value=found.kind(name), description=f"Kind of {name}", tooltip="What the column holds"
        )
        kind.observe(self.guard("Changing the kind", partial(self._change, name)), names=["value"])
        self.kinds[name] = kind
        values = "".join(f"<div>{html.escape(value) or '&nbsp;'}</div>" for value in found.values[name])
        return widgets.VBox([title, kind, widgets.HTML(f'<div class="wb-values">{values}</div>')])

    def _change(self, name: str) -> None:
        """Write the chosen kind of a column to a file of column kinds, and pass that on."""
        assert self.asked is not None
        path, columns, _ = self.asked
        self.chosen(str(write_kinds(Path(path).expanduser(), columns, {name: self.kinds[name].value})))
