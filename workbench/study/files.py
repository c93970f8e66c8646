"""The user's files, looked at when they are named: are they there, of the right kind, readable, not empty."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench import data
from workbench.analysis import formatting
from workbench.data import reader_options
from workbench.study.choices import BY_NAME, ChoiceError
from workbench.study.suited import files_of
from workbench.sweeps.spec import FILES

MOST_NAMED = 5


def find_file_errors(choices: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors of the data set's files by choice; files that are not named are no errors."""
    named = {name: choices[name] for name in files_of(choices["dataset"]) if choices[name]}
    takes = {"path": data.get(choices["dataset"]).takes_folder} if named else {}
    faults = {name: file_error(Path(path).expanduser(), takes.get(name, False)) for name, path in named.items()}
    return {name: f"{BY_NAME[name].label}: {text}" for name, text in faults.items() if text}


def guess_reader(path: str, reading: str = "") -> tuple[dict[str, str], str]:
    """Return (choices that read the file or folder: data set and reader parameters; the reason).

    What `reading` says counts before what is guessed. `ChoiceError` if there is no such file, or nothing reads it.
    """
    try:
        dataset, reading, why = reader_options.guess_reader_options(Path(path).expanduser(), reading)
    except data.DataError as error:
        raise ChoiceError(f"{BY_NAME['path'].label}: {error}") from None
    return {"dataset": dataset, "reading": reading}, why


def refuse_unread(given: Mapping[str, Any], dataset: str) -> None:
    """Refuse files that were named and that the data set does not read (`ChoiceError`)."""
    for name in FILES:
        if given.get(name) and name not in files_of(dataset):
            raise ChoiceError(
                f"{BY_NAME[name].label}: the data set {dataset} reads none; leave it out, or choose another."
            )


def file_stamps(choices: Mapping[str, Any]) -> tuple[tuple[int, int] | None, ...]:
    """Return size and time of the files that the data set reads; None for a missing file."""
    return tuple(
        _file_stamp(Path(choices[name]).expanduser()) for name in files_of(choices["dataset"]) if choices[name]
    )


def _file_stamp(path: Path) -> tuple[int, int] | None:
    """Return (size, modification time in ns) of a file, or None if it cannot be read."""
    try:
        known = path.stat()
    except (OSError, ValueError):
        return None
    return known.st_size, known.st_mtime_ns


def file_error(path: Path, may_be_folder: bool = False) -> str:
    """Return why a path is not a readable file or folder and what to do; "" if it is one."""
    try:
        return _file_error(path, may_be_folder)
    except (OSError, ValueError) as error:  # a name that no file can have, a folder that must not be entered
        return f"{str(path)!r} cannot be looked at: {error}."


def _file_error(path: Path, may_be_folder: bool) -> str:
    """Return what is wrong with a path that the user named, or ""."""
    if path.is_dir() and may_be_folder:
        return "" if any(path.iterdir()) else f"{path} is an empty folder; name the one that holds the data."
    if path.is_dir():
        return f"{path} is a folder; name a file in it{_list_names(os.listdir(path))}."
    if not path.exists():
        return _missing_file_message(path)
    if not path.is_file():
        return f"{path} is a device or a pipe; name a regular file."
    if not os.access(path, os.R_OK):
        return f"{path} may not be read by you; change its permissions (chmod u+r) or name another."
    return "" if path.stat().st_size else f"{path} is empty; name the file that holds the data."


def _missing_file_message(path: Path) -> str:
    """Return the message for a path that does not exist, with the nearest name in its folder."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"there is no {path.absolute()}, and no folder {folder} either."
    known = os.listdir(folder)
    if close := difflib.get_close_matches(path.name, known, n=1):
        return f"there is no {path.name!r} in {folder}. Did you mean {close[0]!r}?"
    return f"there is no {path.name!r} in {folder}{_list_names(known)}."


def _list_names(known: list[str]) -> str:
    """Return some names that do not begin with a dot, for the end of a sentence."""
    names = sorted(name for name in known if not name.startswith("."))
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return f"; it holds {formatting.join_items([*names[:MOST_NAMED], *more])}" if names else "; it holds nothing"
