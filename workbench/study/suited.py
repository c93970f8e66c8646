"""Choices that follow the data set until the user types others: densities, widths and features.

A synthetic set has any requested size. A file has its own: a width meant for another set would merge its classes, a
number of features would drop columns.

>>> complete_with_suggestions({"dataset": "svmlight",
... "widths": 4})["densities"], describe_following({"dataset": "svmlight", "widths": 4})
('natural', 'Densities natural and Features all follow the data set. Widths 4 instead of natural: as you asked.')
"""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench import data, models
from workbench.analysis import formatting
from workbench.study.choices import BY_NAME, ChoiceError, complete_choices, parse_numbers, reduce_choices
from workbench.sweeps.spec import FILES

OF_FILES = {"densities": "natural", "widths": "natural", "features": ""}
OF_TEXT = {"widths": "natural"}
"""What a set that is read, but from no file of the user's, has of its own; it is large enough to be cut."""
MOST_ABOVE = 3
"""Densities above the natural one that are measured of a file."""
APART = 1.5
"""A point nearer to the natural density than this factor would say the same."""


def files_of(dataset: Any) -> tuple[str, ...]:
    """Return the names of the choices that locate the data set's files; empty if it reads none."""
    known = data.get(dataset).parameters if dataset in data.names() else {}
    return tuple(name for name in FILES if name in known)


def suggest_choices(dataset: Any) -> dict[str, str]:
    """Return the values of the choices that follow the data set."""
    drawn = complete_choices({})
    return {name: drawn[name] for name in OF_FILES} | _choices_of_data_set(dataset)


def _choices_of_data_set(dataset: Any) -> dict[str, str]:
    """Return the choices that a data set determines; empty for a synthetic or unknown one."""
    if dataset not in data.names() or "density" in data.get(dataset).parameters:
        return {}
    return OF_FILES if files_of(dataset) else OF_TEXT


def complete_with_suggestions(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every choice: given ones, ones that follow the data set, defaults; raises ChoiceError."""
    return complete_choices({**suggest_choices(given.get("dataset", BY_NAME["dataset"].default)), **given})


def apply_change(before: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices after a change; choices that followed the old data set follow the new one."""
    after = complete_choices({**before, **chosen})
    old, new = suggest_choices(before["dataset"]), suggest_choices(after["dataset"])
    if old == new:
        return after
    return after | {name: new[name] for name in new if before[name] == after[name] == old[name]}


def choices_of_profile(choices: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, str]:
    """Return the choices that follow from what is in a file, by its profile: model, densities. None that a person
    changed.

    A width that was typed stays, and with it a model that has it.

    >>> found = {"density": 0.0036, "labels": {"kind": "classes", "classes": 2}}
    >>> choices_of_profile(complete_with_suggestions({"dataset": "svmlight"}), found)
    {'model': 'logistic', 'densities': '0.001, natural, 0.01, 0.03, 0.1'}
    """
    asked: dict[str, str] = {}
    labels = profile["labels"]
    if labels and choices["model"] == BY_NAME["model"].default:
        plain = models.usual("binary" if labels["classes"] == 2 and labels["kind"] == "classes" else labels["kind"])
        if _has_widths(plain, choices):
            asked["model"] = plain
    if choices["densities"] == OF_FILES["densities"] and profile["density"]:
        asked["densities"] = densities_around(profile["density"])
    return {name: value for name, value in asked.items() if choices[name] != value}


def _has_widths(model: str, choices: Mapping[str, Any]) -> bool:
    """Return whether the model has the widths that were chosen; the natural one it has."""
    try:
        widths = parse_numbers(BY_NAME["widths"], choices["widths"])
    except ChoiceError:
        return False
    return all(width is None or models.get(model).allows(int(width)) for width in widths)


def densities_around(density: float) -> str:
    """Return the natural density and points around it, a third below and threefold and more above, to 0.3.

    >>> densities_around(0.11), densities_around(0.5)
    ('0.03, natural, 0.3', '0.3, natural')
    """
    points = [10.0**power * first for power in range(-7, 0) for first in (1, 3)]
    below = [f"{point:g}" for point in points if point < density / APART]
    above = [f"{point:g}" for point in points if point > APART * density]
    return ", ".join([*below[-1:], "natural", *above[:MOST_ABOVE]])


def reduce_for_file(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices made small (`choices.reduce_choices`).

    A file of the user's, which may be small itself, is used whole.
    """
    whole = ("rows", "features") if files_of(values["dataset"]) else ()
    return reduce_choices(values) | {name: "" for name in whole if _is_natural(values[name])}


def drop_unread_files(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices without the files that the data set does not read."""
    files = files_of(choices["dataset"])
    return {name: "" if name in FILES and name not in files else value for name, value in choices.items()}


def describe_following(given: Mapping[str, Any], filled: Mapping[str, str] | None = None) -> str:
    """Describe which choices follow the data set and which do not; "" for a synthetic data set.

    `filled` names choices that were filled in from the profile of its file.
    """
    choices = complete_with_suggestions(given)
    own = _choices_of_data_set(choices["dataset"])
    of_file = [name for name, value in (filled or {}).items() if choices[name] == value]
    kept = [name for name in own if _is_natural(choices[name])]
    others = [name for name in own if name not in (*kept, *of_file)]
    follow = (
        (
            f"{formatting.join_items(_join_choices(name, own[name]) for name in kept)} {_follow_or_follows(kept)} "
            f"the data set."
        )
        if kept
        else ""
    )
    found = ""
    if of_file:
        found = (
            f"{formatting.join_items(_join_choices(name, choices[name]) for name in of_file)} "
            f"{_follow_or_follows(of_file)} the profile."
        )
    instead = [f"{_join_choices(name, choices[name])} instead of {_format_choice(name, own[name])}" for name in others]
    return " ".join(
        filter(None, [found, follow, f"{formatting.join_items(instead)}: as you asked." if instead else ""])
    )


def _follow_or_follows(names: Sequence[str]) -> str:
    """Return the verb in the number of the names."""
    return "follow" if len(names) > 1 else "follows"


def _is_natural(value: str) -> bool:
    """Return whether a choice is left to the data."""
    return value in ("", "natural")


def _join_choices(name: str, value: str) -> str:
    """Return the label of a choice with its value."""
    return f"{BY_NAME[name].label} {_format_choice(name, value)}"


def _format_choice(name: str, value: str) -> str:
    """Return a choice's value as text, "all" or "natural" if left to the data."""
    return value if not _is_natural(value) else "all" if name == "features" else "natural"
