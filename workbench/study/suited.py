"""Choices that follow the data set until the user types others: densities, widths and features.

A synthetic set has any requested size. A file has its own: a width meant for another set would merge its classes, a
number of features would drop columns.

>>> complete_with_suggestions({"dataset": "svmlight",
... "width": 4})["density"], describe_following({"dataset": "svmlight", "width": 4})
('natural', 'Densities and Features follow the data set. Widths 4 instead of natural: as you asked.')
"""

import contextlib
import difflib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import data, models
from workbench.analysis.formatting import join_items
from workbench.data import contract
from workbench.settings import CHOICES
from workbench.study import complete_choices, make_spec, parse_numbers, reduce_choices
from workbench.sweeps.spec import FILES, InvalidOption, Spec, SpecError

OF_FILES = {"density": "natural", "width": "natural", "features": ""}
OF_TEXT = {"width": "natural"}
"""What a set that is read, but from no file of the user's, has of its own; it is large enough to be cut."""
MOST_ABOVE = 3
"""Densities above the natural one that are measured of a file."""
APART = 1.5
"""A point nearer to the natural density than this factor would say the same."""


def files_of(dataset: Any) -> tuple[str, ...]:
    """Return the names of the choices ("path", "labels", ...) that locate files of the data set.

    () if it reads none or is unknown.
    """
    known = data.get(dataset).parameters if dataset in data.names() else {}
    return tuple(name for name in FILES if name in known)


def suggest_choices(dataset: Any) -> dict[str, str]:
    """Return {choice: value} for the choices that follow the data set: densities, widths and features."""
    defaults = complete_choices({})
    return {name: defaults[name] for name in OF_FILES} | _choices_of_data_set(dataset)


def _choices_of_data_set(dataset: Any) -> dict[str, str]:
    """Return {choice: value} that a real data set determines; {} for a synthetic or unknown one."""
    if dataset not in data.names() or "density" in data.get(dataset).parameters:
        return {}
    return OF_FILES if files_of(dataset) else OF_TEXT


def complete_with_suggestions(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return {name: value} for every choice: from `given`, else suggested by the data set, else the default.

    Raises SpecError for an unknown name.
    """
    return complete_choices({**suggest_choices(given.get("dataset", CHOICES["dataset"].usual)), **given})


def apply_change(before: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete choices after a change; choices that followed the old data set follow the new one.

    `before` has every choice by name, `chosen` the changed ones alone.
    """
    after = complete_choices({**before, **chosen})
    old, new = suggest_choices(before["dataset"]), suggest_choices(after["dataset"])
    if old == new:
        return after
    return after | {name: new[name] for name in new if before[name] == after[name] == old[name]}


def follow_file(before: Mapping[str, Any], chosen: Mapping[str, Any], filled: Mapping[str, str]) -> dict[str, Any]:
    """Return the choices after a change of the file: its reader is guessed anew unless it was chosen by hand.

    By hand means that it differs from the guess for the file before. Choices that were `filled` in from the profile of
    that file get their defaults again. Files that cannot be read change nothing.
    """
    after = dict(chosen)
    path, old = str(after["path"]), str(before["path"])
    if path in ("", old) or after["dataset"] != before["dataset"]:
        return after
    defaults = complete_with_suggestions({"dataset": after["dataset"]})
    after |= {name: defaults[name] for name, value in filled.items() if after[name] == value == before[name]}
    try:
        known, _ = guess_reader(old)
        found, _ = guess_reader(path)
    except SpecError:  # the one is gone; what is wrong with the other one is told
        return after
    if known["dataset"] != after["dataset"]:
        return after
    after["dataset"] = found["dataset"]
    with contextlib.suppress(data.DataError):  # what cannot be read of these parameters is told
        if replace_label(after["reading"], "") == known["reading"]:
            after["reading"] = replace_label(found["reading"], label_of(after["reading"]))
    return after


def label_of(reading: str) -> str:
    """Return the label in the choice `reading`; "" if it has none or cannot be parsed.

    >>> label_of("label=clicked, hashed=65536")
    'clicked'
    """
    try:
        return str(contract.reader_options(reading).get("label") or "")
    except data.DataError:  # whoever reads the file with it says so
        return ""


def replace_label(reading: str, label: str) -> str:
    """Return the choice `reading` with the label replaced by `label`, or removed if that is empty.

    Raises DataError if it cannot be parsed.

    >>> replace_label("hashed=65536, label=clicked", "")
    'hashed=65536'
    """
    options = {name: value for name, value in contract.reader_options(reading).items() if name != "label"}
    return str(contract.with_label(options, label.strip()))


def choices_of_profile(choices: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, str]:
    """Return {choice: value} for model and densities that follow from a file's profile, if still at their defaults.

    A width that was typed stays, and with it a model that has it.

    >>> found = {"density": 0.0036, "labels": {"kind": "classes", "classes": 2}}
    >>> choices_of_profile(complete_with_suggestions({"dataset": "svmlight"}), found)
    {'model': 'logistic', 'density': '0.001, natural, 0.01, 0.03, 0.1'}
    """
    asked: dict[str, str] = {}
    labels = profile["labels"]
    if labels and choices["model"] == CHOICES["model"].usual:
        is_binary = labels["classes"] == 2 and labels["kind"] == "classes"
        plain = models.default_model(profile.get("task") or ("binary" if is_binary else labels["kind"]))
        if _has_widths(plain, choices):
            asked["model"] = plain
    if choices["density"] == OF_FILES["density"] and profile["density"]:
        asked["density"] = densities_around(profile["density"])
    return {name: value for name, value in asked.items() if choices[name] != value}


def _has_widths(model: str, choices: Mapping[str, Any]) -> bool:
    """Return whether the model allows all chosen widths ("natural" is always allowed); False if they are invalid."""
    try:
        widths = parse_numbers(CHOICES["width"], choices["width"])
    except SpecError:
        return False
    return all(width is None or models.get(model).allows(int(width)) for width in widths)


def densities_around(density: float) -> str:
    """Return the natural density and measured points around it as text: one below, up to three above (at most 0.3).

    >>> densities_around(0.11), densities_around(0.5)
    ('0.03, natural, 0.3', '0.3, natural')
    """
    points = [10.0**power * first for power in range(-7, 0) for first in (1, 3)]
    below = [f"{point:g}" for point in points if point < density / APART]
    above = [f"{point:g}" for point in points if point > APART * density]
    return ", ".join([*below[-1:], "natural", *above[:MOST_ABOVE]])


def reduce_for_file(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices reduced to take seconds (`reduce_choices`), but a user's file is used whole."""
    whole = ("rows", "features") if files_of(values["dataset"]) else ()
    return reduce_choices(values) | {name: "" for name in whole if _is_natural(values[name])}


def drop_unread_files(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the choices with "" for files that the data set does not read."""
    files = files_of(choices["dataset"])
    return {name: "" if name in FILES and name not in files else value for name, value in choices.items()}


def describe_following(given: Mapping[str, Any], filled: Mapping[str, str] | None = None) -> str:
    """Return sentences on which choices follow the data set and which do not; "" for a synthetic data set.

    `filled` has choices that were filled in from the profile of its file.
    """
    choices = complete_with_suggestions(given)
    own = _choices_of_data_set(choices["dataset"])
    of_file = [name for name, value in (filled or {}).items() if choices[name] == value]
    kept = [name for name in own if _is_natural(choices[name])]
    others = [name for name in own if name not in (*kept, *of_file)]
    follow = (
        f"{join_items(CHOICES[name].label for name in kept)} {_follow_or_follows(kept)} the data set." if kept else ""
    )
    found = ""
    if of_file:
        found = (
            f"{join_items(_join_choices(name, choices[name]) for name in of_file)} "
            f"{_follow_or_follows(of_file)} the profile."
        )
    instead = [f"{_join_choices(name, choices[name])} instead of {_format_choice(name, own[name])}" for name in others]
    return " ".join(filter(None, [found, follow, f"{join_items(instead)}: as you asked." if instead else ""]))


def _follow_or_follows(names: Sequence[str]) -> str:
    """Return "follow" for several names or a label in the plural, such as Densities, else "follows"."""
    return "follow" if len(names) > 1 or CHOICES[names[0]].label.endswith("s") else "follows"


def _is_natural(value: str) -> bool:
    """Return whether a value leaves the choice to the data: "" or "natural"."""
    return value in ("", "natural")


def _join_choices(name: str, value: str) -> str:
    """Return the label of a choice with its value, such as "Widths natural"."""
    return f"{CHOICES[name].label} {_format_choice(name, value)}"


def _format_choice(name: str, value: str) -> str:
    """Return a choice's value as text; if left to the data "all" for features, else "natural"."""
    return value if not _is_natural(value) else "all" if name == "features" else "natural"


# The command that measures what was chosen: every choice that does not follow from the data set is an option of it.

COMMAND = "workbench sweep"


def command_text(choices: Mapping[str, Any], run: str = "") -> str:
    """Return the `workbench sweep` command line for complete choices, quoted for a shell; defaults are left out.

    `run` is the run folder, already quoted; "" leaves it to the command.

    >>> command_text(complete_with_suggestions({"dataset": "uniform", "width": 4}))
    'workbench sweep --dataset uniform --width 4'
    """
    expected = complete_with_suggestions({"dataset": choices["dataset"]})
    asked = drop_unread_files(choices)
    words = [COMMAND, "--dataset", shlex.quote(asked["dataset"])]
    for name, choice in CHOICES.items():
        value = asked[name]
        if name != "dataset" and value != expected[name]:
            words += [choice.option, shlex.quote(value if isinstance(value, str) else ", ".join(value))]
    return " ".join([*words, *(["--run", run] if run else [])])


# The user's files, looked at when they are named: are they there, of the right kind, readable, not empty.

MOST_NAMED = 5


def find_file_errors(choices: Mapping[str, Any]) -> dict[str, str]:
    """Return {choice: message} for named files of the data set that are missing or unusable; {} if all are fine."""
    named = {name: choices[name] for name in files_of(choices["dataset"]) if choices[name]}
    takes = {"path": data.get(choices["dataset"]).takes_folder} if named else {}
    errors = {name: file_error(Path(path).expanduser(), takes.get(name, False)) for name, path in named.items()}
    return {name: text for name, text in errors.items() if text}


def guess_reader(path: str, reading: str = "") -> tuple[dict[str, str], str]:
    """Return ({"dataset": name, "reading": parameters as text}, reason) for a file or folder.

    Parameters in `reading` take precedence. Raises SpecError if the path does not exist or no reader recognizes it.
    """
    try:
        dataset, options, why = contract.guess_reader_options(Path(path).expanduser(), contract.reader_options(reading))
    except data.DataError as error:
        raise SpecError(InvalidOption(str(error), "path", path)) from None
    return {"dataset": dataset, "reading": str(options)}, why


def refuse_unread(given: Mapping[str, Any], dataset: str) -> None:
    """Raise SpecError if `given` names a file that the data set does not read."""
    for name in FILES:
        if given.get(name) and name not in files_of(dataset):
            text = f"the data set {dataset} reads none; leave it out, or choose another."
            raise SpecError(InvalidOption(text, name, given[name]))


def file_stamps(choices: Mapping[str, Any]) -> tuple[tuple[int, int] | None, ...]:
    """Return (bytes, modification time in ns) of each named file that the data set reads; None for a missing one."""
    return tuple(
        _file_stamp(Path(choices[name]).expanduser()) for name in files_of(choices["dataset"]) if choices[name]
    )


def _file_stamp(path: Path) -> tuple[int, int] | None:
    """Return (bytes, modification time in ns) of a file, or None if it cannot be read."""
    try:
        known = path.stat()
    except (OSError, ValueError):
        return None
    return known.st_size, known.st_mtime_ns


def file_error(path: Path, may_be_folder: bool = False) -> str:
    """Return why a path is not a readable, non-empty file (or folder, if allowed) and what to do; "" if it is."""
    try:
        return _file_error(path, may_be_folder)
    except (OSError, ValueError) as error:  # a name that no file can have, a folder that must not be entered
        return f"{str(path)!r} cannot be looked at: {error}."


def _file_error(path: Path, may_be_folder: bool) -> str:
    """Return what is wrong with a path that the user named, "" if nothing; may raise OSError or ValueError."""
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
    """Return the message for a path that does not exist, with the nearest name in its folder, or what is there."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"there is no {path.absolute()}, and no folder {folder} either."
    known = os.listdir(folder)
    if close := difflib.get_close_matches(path.name, known, n=1):
        return f"there is no {path.name!r} in {folder}. Did you mean {close[0]!r}?"
    return f"there is no {path.name!r} in {folder}{_list_names(known)}."


def _list_names(known: list[str]) -> str:
    """Return "; it holds a, b and 3 more" for file names, at most five, hidden ones left out; "; it holds nothing"."""
    names = sorted(name for name in known if not name.startswith("."))
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return f"; it holds {join_items([*names[:MOST_NAMED], *more])}" if names else "; it holds nothing"


# Sweeps from complete choices, the user's files looked at.

QUESTION = "Can sparse reduce training time?"
UNREAD = "unread"


def spec_of(choices: Mapping[str, Any], name: str) -> Spec:
    """Return the sweep spec of complete choices; SpecError with all problems, unusable files included."""
    errors = find_file_errors(choices)
    wrong = [InvalidOption(text, option, choices[option]) for option, text in errors.items()]
    try:
        spec = make_spec(drop_unread_files(choices) | dict.fromkeys(errors, UNREAD), name, QUESTION)
    except SpecError as error:
        raise SpecError(*wrong, *error.problems) from None
    if wrong:
        raise SpecError(*wrong)
    return spec


def name_of(choices: Mapping[str, Any]) -> str:
    """Return a name for the sweep and its run folder: that of the user's file, else of the data set.

    >>> name_of({"dataset": "svmlight", "path": "~/my news.svm.gz"}), name_of({"dataset": "stdlib", "path": ""})
    ('my_news', 'stdlib')
    """
    stem = Path(drop_unread_files(choices)["path"]).name.partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-") or choices["dataset"]
