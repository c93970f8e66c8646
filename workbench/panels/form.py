"""The form: a field for each choice, linked with the state both ways. Labels stand above their fields."""

import html
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench import data
from workbench.analysis import formatting
from workbench.panels.columns import ColumnsView
from workbench.panels.guard import Guard, nothing
from workbench.panels.state import LabState
from workbench.settings import CHOICES, LABEL, Setting
from workbench.study import help_of, options_of, suited
from workbench.study.suited import file_error, files_of
from workbench.sweeps import run_folder
from workbench.sweeps.spec import FILES

# A drop-down of existing runs, updated as new runs appear.


def runs() -> list[str]:
    """Return the paths of the run folders below `runs`, most recently updated first."""
    return [str(path) for path in run_folder.list_runs()]


class RunPicker:
    """Offers the runs, `named` ones first; `chosen` is called when the user takes another."""

    def __init__(self, label: str, help: str, named: Sequence[str], chosen: Callable[[], Any] = nothing) -> None:
        """Make the drop-down of runs, `named` ones first ("" is ignored).

        `chosen()` is called when the user selects one.
        """
        self.named, self._is_filling = [name for name in named if name], False
        self.widget = widgets.Dropdown(description=label, tooltip=help, style=LABELLED)
        self.widget.observe(lambda _: None if self._is_filling else chosen(), names=["value"])
        self.refresh()

    @property
    def value(self) -> str:
        """Path of the selected run; "" if there is none."""
        return self.widget.value or ""

    @property
    def known(self) -> tuple[str, ...]:
        """Paths of the runs that the list offers."""
        return tuple(self.widget.options)

    def show(self, run: str) -> None:
        """Select a run, adding it to the list if needed, without calling `chosen`."""
        if run not in self.known:
            self.named = [run, *self.named]
            self.refresh()
        self._is_filling = True
        try:
            self.widget.value = run
        finally:
            self._is_filling = False

    def refresh(self) -> bool:
        """Offer the runs that exist now; return whether the list changed. The selection stays if it still exists."""
        known = tuple(dict.fromkeys([*self.named, *runs()]))
        if known == self.known:
            return False
        self._is_filling, before = True, self.value
        try:
            self.widget.options = known
            self.widget.value = before if before in known else next(iter(known), None)
        finally:
            self._is_filling = False
        return True


# A chooser of files and folders below a text field, of widgets that a keyboard reaches: a list of buttons.


MOST = 500
"""Entries of a folder that are listed."""
PARENT = ".. (the folder above)"
data_file = re.compile(
    r"\.(csv|tsv|parquet|svm|svmlight|libsvm|vw|npz|mtx|mat|jsonl|arff|h5ad|data)(\.(gz|zst|bz2|xz))?$"
)
"""Names of files that hold data; others are listed too."""


class FileChooser:
    """A button that opens a list of the folders and readable files, and a line that says what is wrong with a path.

    Each entry of the list is a button itself: a click or Enter lists a folder in its place, or writes a file into the
    text field. What is typed is looked at with each key.
    """

    def __init__(self, text: widgets.Text, guard: Guard, takes_folder: bool = False) -> None:
        """Make a button and a list for the text field; `takes_folder` lets the user choose a folder itself.

        `guard` wraps the callbacks. Nothing is listed before the button is pressed.
        """
        name = text.description.lower()
        self.text, self.folder, self.takes_folder = text, Path.cwd(), takes_folder
        self.browse = widgets.ToggleButton(description="Browse", tooltip=f"Choose {name} from a list")
        self.place, self.wrong = widgets.HTML(), widgets.HTML()
        self.list = widgets.ToggleButtons(
            options=[], description="Folders and files", tooltip=f"Entries to choose {name} from", style=LABELLED
        )
        self.list.add_class("wb-files")
        self.take = widgets.Button(description="Use folder", tooltip="Take the folder that is listed")
        self.take.layout.display = None if takes_folder else "none"
        self.shown = widgets.VBox([self.place, self.list, self.take])
        self.shown.layout.display = "none"
        self.box = widgets.VBox([text, self.wrong, self.browse, self.shown])
        self.box.add_class("wb-field")
        text.continuous_update = True
        text.observe(guard("Looking at the path", self._look), names=["value"])
        self.browse.observe(guard("Listing files", self._toggle), names=["value"])
        self.list.observe(guard("Opening the entry", self._open), names=["value"])
        self.take.on_click(guard("Taking the folder", lambda: self._choose(self.folder)))

    def enable(self, on: bool) -> None:
        """Enable or disable text field and button; disabling closes the list."""
        self.text.disabled = self.browse.disabled = not on
        if not on:
            self.browse.value = False

    def _look(self) -> None:
        """Say what is wrong with the typed path, with the nearest file; nothing of the name of a data set."""
        typed = self.text.value.strip()
        wrong = file_error(Path(typed).expanduser(), self.takes_folder) if typed and typed not in data.names() else ""
        self.wrong.value = f'<div class="wb-problem" role="status">{html.escape(wrong)}</div>' if wrong else ""

    def _toggle(self) -> None:
        """Show the list, starting at the folder that the text field names, else where data are, or hide it."""
        self.shown.layout.display = None if self.browse.value else "none"
        if self.browse.value:
            named = Path(self.text.value or ".").expanduser()
            folder = named if named.is_dir() and self.text.value else named.parent
            is_named = bool(self.text.value) and folder.is_dir() and folder != Path()
            self._list(folder if is_named else data_folder(Path.cwd()))

    def _list(self, folder: Path) -> None:
        """Fill the list with the entries of `folder`; OSError if it cannot be read."""
        options, left_out = entries(folder)
        self.folder = folder.resolve()
        more = f" {left_out:,} more are not listed; type the name." if left_out else ""
        self.place.value = f'<div class="wb-now" role="status">{html.escape(str(self.folder))}{more}</div>'
        self.list.set_trait("options", ())
        self.list.options = options
        self.list.value = None

    def _open(self) -> None:
        """List the pressed folder, or write the pressed file into the text field."""
        if self.list.value is None:
            return
        chosen = self.folder / self.list.value
        if chosen.is_dir():
            self._list(chosen)
        else:
            self._choose(chosen)

    def _choose(self, path: Path) -> None:
        """Write the path into the text field, relative if below the current folder, and close the list."""
        here = Path.cwd()
        self.text.value = str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)
        self.browse.value = False


def data_folder(here: Path) -> Path:
    """Return the folder to look for data in: `here` if it has a file with the suffix of one, else the first folder in
    it that has; else `here`.
    """
    below = sorted(path for path in here.iterdir() if path.is_dir() and not path.name.startswith("."))
    for folder in (here, *below):
        try:
            if any(data_file.search(path.name.lower()) for path in folder.iterdir() if path.is_file()):
                return folder
        except PermissionError:
            continue
    return here


def entries(folder: Path) -> tuple[list[tuple[str, str]], int]:
    """Return [(label, name) of each folder, then of each readable file], and the number left out beyond `MOST`.

    The first entry is (..., ".."), the folder above. Hidden and unreadable entries are left out. OSError if the folder
    cannot be read.
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


LABELLED = {"description_width": "initial"}


class Field:
    """The widgets of one choice; `changed()` is called when the user changed one of them. A file has a chooser."""

    def __init__(self, choice: Setting, changed: Callable[[], None], guard: Guard) -> None:
        """Make the input widgets of a choice; `changed()` is called when the value of one changes."""
        self.choice = choice
        self.inputs = _inputs(choice)
        self.chooser = FileChooser(self.inputs[0], guard, choice.name == "path") if choice.name in FILES else None
        label = [widgets.Label(choice.label, tooltip=help_of(choice))] if choice.widget == "many" else []
        row = [widgets.HBox(self.inputs)] if choice.widget == "many" else self.inputs
        self.box = self.chooser.box if self.chooser else widgets.VBox([*label, *row])
        self.box.add_class("wb-field")
        for one in self.inputs:
            one.observe(lambda _: changed(), names=["value"])

    @property
    def value(self) -> tuple[str, ...] | str:
        """The widgets' value as the state keeps it: a tuple of options if several may be chosen, else a string."""
        if self.choice.widget == "many":
            return tuple(one.description for one in self.inputs if one.value)
        return self.inputs[0].value

    def show(self, value: Any) -> None:
        """Set the widgets to a value of the state; an unknown option leaves a drop-down as it is."""
        if self.choice.widget == "many":
            for one in self.inputs:
                one.value = one.description in value
        elif self.choice.widget != "one" or value in options_of(self.choice):
            self.inputs[0].value = value

    def enable(self, on: bool) -> None:
        """Enable (`on`) or disable all widgets of the choice; disabling closes the file list."""
        for one in self.inputs:
            one.disabled = not on
        if self.chooser is not None:
            self.chooser.enable(on)


def _inputs(choice: Setting) -> list[widgets.Widget]:
    """Return the input widgets of a choice: checkboxes if several may be chosen, else a drop-down or a text field."""
    shared = {"tooltip": help_of(choice), "style": LABELLED}
    if choice.widget == "many":
        return [widgets.Checkbox(description=option, indent=False, **shared) for option in options_of(choice)]
    if choice.widget == "one":
        return [widgets.Dropdown(options=options_of(choice), description=choice.label, **shared)]
    return [widgets.Text(description=choice.label, continuous_update=False, **shared)]


GROUPS: tuple[tuple[str, str, Callable[[Setting], bool]], ...] = (
    ("Candidates", "What competes with dense: formats, kernels, how weights are updated and steps executed.",
     lambda setting: setting.role == "line"),
    ("Data", "The sizes of synthetic data, and how a file and its labels are read.",
     lambda setting: setting.goes_to[0] in ("data", "target") and setting.name != "width"),
    ("Training", "The model's own settings, its size, and the optimizer.",
     lambda setting: setting.goes_to[0] in ("data", "target", "model", "optimizer", "setup")),
    ("Measurement", "Where, on how many threads, how long and how often each candidate is timed.", lambda _: True),
)  # fmt: skip
"""Title, sentence and members of the groups of fields that are rarely used; a field is in the first that takes it."""


def _grid(boxes: Sequence[widgets.Widget]) -> widgets.Box:
    """Return a box in which fields stand in columns."""
    box = widgets.Box(boxes)
    box.add_class("wb-grid")
    return box


class Form:
    """All fields; rarely used ones are behind a button, file fields next to the data set that reads them."""

    def __init__(self, state: LabState, guard: Guard) -> None:
        """Make the fields of all choices, filled from `state` and writing to it; `guard` wraps the callbacks."""
        self.state = state
        choose = guard("Choosing", self._choose)
        self.fields = {name: Field(choice, choose, guard) for name, choice in CHOICES.items()}
        self.label = label_field()
        self.label.observe(guard("Choosing", self._choose_label), names=["value"])
        self._showing = False
        more = self._groups()
        more.layout.display = "none"
        self.more = widgets.ToggleButton(
            description="Change what is measured", tooltip="Formats, kernels, updates, widths, devices, rounds"
        )
        self.more.observe(lambda change: setattr(more.layout, "display", None if change["new"] else "none"), "value")
        main = [name for name, field in self.fields.items() if field.choice.is_main]
        boxes = [self.fields[name].box for name in main]
        boxes[1:1] = [*(self.fields[name].box for name in FILES), self.label]
        self.columns = ColumnsView(
            guard,
            lambda file: state.choose(columns=file),
            lambda names: self.label.set_trait("options", names),
        )
        self.box = widgets.VBox([_grid(boxes), self.columns.box, self.more, more])
        state.observe(lambda _: self._show(), names=["choices"])
        state.observe(lambda _: self._enable(), names=["progress"])
        self._show()
        self._enable()

    def _groups(self) -> widgets.Box:
        """Return a box with the other fields in groups, each with a sentence."""
        rest = {name: field for name, field in self.fields.items() if not field.choice.is_main and name not in FILES}
        parts = list[widgets.Widget]()
        for title, sentence, belongs in GROUPS:
            names = [name for name, field in rest.items() if belongs(field.choice)]
            heading = widgets.HTML(f"<strong>{title}.</strong> {sentence}")
            parts += [heading, _grid([rest.pop(name).box for name in names])]
        return widgets.VBox(parts)

    def _choose(self) -> None:
        """Write the values of all widgets to the state, unless they are being filled from it.

        If the file has changed, the choices that follow from it change too (`suited.follow_file`).
        """
        if not self._showing:
            chosen = {name: field.value for name, field in self.fields.items()}
            self.state.choose(**suited.follow_file(self.state.choices, chosen, self.state.filled))

    def _choose_label(self) -> None:
        """Set `label` in the state's choice `reading` to the text, unless fields are being filled."""
        if not self._showing:
            self.state.choose(reading=suited.replace_label(self.state.choices["reading"], self.label.value))

    def _show(self) -> None:
        """Fill the widgets from the state; hide the fields of files that the data set does not read."""
        self._showing = True  # what is shown is the state already
        try:
            for name, field in self.fields.items():
                field.show(self.state.choices[name])
            dataset = self.state.choices["dataset"]
            read = files_of(dataset)
            for name in FILES:
                self.fields[name].box.layout.display = None if name in read else "none"
            is_named = dataset in data.names() and "label" in data.get(dataset).parameters
            self.label.layout.display = None if is_named else "none"
            reading = self.state.choices["reading"]
            self.label.value = suited.label_of(reading)
            if not self.state.alive:
                is_table = dataset == "table"
                self.columns.show(self.state.choices["path"] * is_table, self.state.choices["columns"], reading)
        finally:
            self._showing = False

    def _enable(self) -> None:
        """Disable the fields while a run is alive, else enable them."""
        for field in self.fields.values():
            field.enable(not self.state.alive)
        self.label.disabled = self.state.alive


def label_field() -> widgets.Combobox:
    """Return a field for the name of the label column, which lists the columns of a table; empty means guessed."""
    return widgets.Combobox(
        description=LABEL.label, tooltip=LABEL.help, continuous_update=False, ensure_option=False, style=LABELLED
    )
