"""The data set that a command's words name: a file or folder whose reader is guessed, or a data set by its name."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import data
from workbench.command.console import console
from workbench.command.output import echo
from workbench.data import content, contract, part_files
from workbench.data.errors import MissingLabelsError
from workbench.data.files.reading import path_exists
from workbench.option_text import worded

if TYPE_CHECKING:
    from workbench.data.tables import Columns

# A bar while a large file is read: bytes done, MB/s and the time left.


BYTES_SHOWN = 1 << 24
"""Size of the smallest file that has a bar: a smaller one is read before a bar is seen."""


@contextmanager
def show_reading() -> Iterator[None]:
    """Show a progress bar while large data files are read within the block, if there is a terminal; it disappears."""
    if not console.is_terminal:
        yield
        return
    bars: dict[str, Any] = {}

    def watch(name: str, done: int, size: int) -> None:
        """Show that `done` of `size` bytes of the file `name` are read.

        Smaller files than `BYTES_SHOWN` have no bar.
        """
        if size < BYTES_SHOWN:
            return
        if not bars:
            bars[""] = _new_progress()
        if name not in bars:
            bars[name] = bars[""].add_task(Path(name).name, total=size)
        bars[""].update(bars[name], completed=done)

    try:
        with content.watching(watch):
            yield
    finally:
        if bars:
            bars[""].stop()


def _new_progress() -> Any:
    """Return a progress display with bytes, speed and time left, which has been started."""
    from rich import progress

    columns = (progress.TextColumn("reading {task.description}", markup=False), progress.BarColumn())
    speed = progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()
    made = progress.Progress(*columns, *speed, console=console, transient=True)
    made.start()
    return made


def load(source: str, **files: str) -> data.Dataset:
    """Return the data set that SOURCE (a file, folder or name) and the options mean; "" for an option not given.

    `files` are options of `data_commands.FILES`. A guessed reader is printed. data.DataError if there is no such data,
    or a setting does not fit.
    """
    name, parameters = named_source(source, **files)
    with show_reading():
        return data.load(name, **parameters)


def load_with_or_without_labels(source: str, **files: str) -> data.Dataset:
    """Return the data set as `load` does with these arguments; if it has no labels, read it without and print that."""
    try:
        read = load(source, **files)
    except MissingLabelsError as error:
        echo(f"{str(error).splitlines()[0]} It is read without labels.", err=True)
        return load(source, **files | {"kind": "none"})
    for line in read.facts.get("guesses", ()):
        echo(worded(line), err=True)
    return read


def named_source(source: str, **files: str) -> tuple[str, dict[str, Any]]:
    """Return (name, parameters) of the data set that is meant, from the arguments of `load`.

    Only the beginning of a file is read. A guessed reader is printed to standard error with the reason. Raises
    data.DataError.
    """
    from workbench.sweeps.problem import parameters_of_file

    settings = settings_with_notice(source, **files)
    return settings["dataset"], parameters_of_file(settings)


def settings_with_notice(
    source: str, dataset: str = "", reading: str = "", label: str = "", **given: str
) -> dict[str, Any]:
    """Return the settings that say which data SOURCE means, such as {"dataset": ..., "path": ...}.

    `label` is the column of labels, which `reading` can name as well; "" for an option not given. A guessed reader is
    printed to standard error with the reason. Raises data.DataError.
    """
    from workbench.advising.source import settings_of

    settings, why = settings_of(source, dataset, contract.with_label(contract.reader_options(reading), label), **given)
    print_reader(source, settings["dataset"], why)
    return settings


def with_source(settings: Mapping[str, Any], source: str, label: str, is_guessed: bool) -> dict[str, Any]:
    """Return a copy of the settings with what SOURCE and --label say; "" for neither.

    With `is_guessed` the reader of a file is guessed and printed. DataError if SOURCE and the path are both given.
    """
    settings = dict(settings)
    if source:
        if "path" in settings:
            raise data.DataError(f"SOURCE is {source!r} and --path is {settings['path']!r}; give one of the two.")
        if not path_exists(source) and source in data.names():
            settings, is_guessed = settings | {"dataset": source}, False
        else:
            settings["path"] = source
    if "path" in settings:
        settings["path"] = str(Path(settings["path"]).expanduser())
    settings["reading"] = contract.with_label(contract.reader_options(settings.get("reading")), label)
    settings = with_reader(settings) if is_guessed else settings
    return settings if settings["reading"] else {name: settings[name] for name in settings.keys() - {"reading"}}


def with_model(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the settings with the model that suits the labels of a file, which is printed.

    Unchanged for data that is not read from a file. Raises data.DataError if it cannot be read.
    """
    from workbench.advising.source import model_for, model_note
    from workbench.sweeps.problem import parameters_of_file

    if "path" not in settings or "path" not in data.get(settings["dataset"]).parameters:  # which is refused later
        return dict(settings)
    with show_reading():
        read = data.describe(settings["dataset"], **parameters_of_file(settings))
    model = model_for(read)
    for line in (*read.facts.get("guesses", ()), model_note(read, model)):
        echo(worded(line), err=True)
    return {**settings, "model": model}


def with_reader(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the settings with the reader of the file that they name, guessed and printed.

    Unchanged if they name no file.
    """
    if "path" not in settings:
        return dict(settings)
    dataset, reading, why = contract.guess_reader_options(settings["path"], settings["reading"])
    print_reader(settings["path"], dataset, why)
    return {**settings, "dataset": dataset, "reading": reading}


def print_reader(source: str, dataset: str, why: str) -> None:
    """Print to standard error that the data set `dataset` reads `source`, and `why`; nothing if `why` is ""."""
    if why:
        echo(f"{source} is read by the data set {dataset}: {why}.", err=True)


def columns(source: str, columns: str = "", reading: str = "", label: str = "") -> "Columns":
    """Return the types of the columns of a table; data.DataError if it cannot be read or `reading` is invalid.

    `columns` is a file of column types, "" for a guess.
    """
    options: dict[str, Any] = contract.with_label(contract.reader_options(reading), label)
    data.get("table").refuse_unknown(options)
    known = inspect.signature(data.guess_columns).parameters
    if others := [name for name in options if name not in known]:
        raise data.DataError(f"reading names {others[0]!r}, on which columns do not depend; leave it out.")
    if columns:
        options["columns"] = Path(columns).expanduser()
    path = Path(source).expanduser()
    if path.exists() and (guess := data.guess(path))[0] != "table":
        echo(f"{path} is shown as a table; {guess[2]}, which the data set {guess[0]} reads.", err=True)
    with part_files.as_one_file(path, "table", data.get("table").head, options) as (file, given):
        return data.guess_columns(file, **given)
