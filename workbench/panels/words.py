"""Messages in the words of a panel: an option or parameter that a message names becomes the field that sets it."""

import re

from workbench.study.choices import CHOICES

FIELDS = {choice.axis or choice.name: choice.label for choice in CHOICES} | {
    "label": "Label",
    "dataset": "Reader",
    "reading": "Read with",
}
"""Labels of the fields, by the names of the options that set the same."""
_IN_PYTHON = re.compile(r" \(in Python [^()]*\)")
_OPTION = re.compile(r"--([a-z][a-z-]*[a-z])(?:[ =]('[^']*'|\"[^\"]*\"|[\w./~:=<>-]*[\w/>]))?")
_PARAMETER = re.compile(r"\b(parameter|option) '(\w+)'")
_NEEDED = re.compile(r"\bthe axis (\w+)")
_SUBJECT = re.compile(r"\b(label|labels|columns|kind|reading)( is |= ?)(?=['\"])")
_NAMED = re.compile(r"\*([A-Z][\w ]*)\*")
_AXIS = re.compile(r"\baxis (\w+) = ")


def in_panel(text: str) -> str:
    """Return a message with each option named as the field of the panel.

    >>> in_panel('Type --label NAME for a column of it (in Python label="NAME").')
    'Type NAME in the field *Label* for a column of it.'
    >>> in_panel("--columns is missing; axis model = 'svm'")
    "the field *Columns file* is missing; *Model* = 'svm'"
    >>> in_panel("The data set npz needs the axis path, a file of yours.")
    'The data set npz needs the field *Your file*, a file of yours.'
    >>> in_panel("label is 'wrong'; the columns are a, b.")
    "*Label* is 'wrong'; the columns are a, b."
    """
    text = _IN_PYTHON.sub("", text)
    text = _OPTION.sub(lambda found: _field(found[1].replace("-", "_"), found[2] or "", found[0]), text)
    text = _NEEDED.sub(lambda found: _field(found[1], "", found[0]), text)
    text = _SUBJECT.sub(lambda found: f"*{FIELDS[found[1]]}*{found[2]}", text)
    text = _PARAMETER.sub(lambda found: _field(found[2], "", found[0]), text)
    return _AXIS.sub(lambda found: f"*{FIELDS[found[1]]}* = " if found[1] in FIELDS else found[0], text)


def _field(name: str, value: str, otherwise: str) -> str:
    """Return the words for a field and its value; `otherwise` if no field sets what has this name."""
    if name not in FIELDS:
        return otherwise
    if value in ("is", "was", "and", "or", "to", "names", "takes"):
        return f"the field *{FIELDS[name]}* {value}"
    return f"{value} in the field *{FIELDS[name]}*" if value else f"the field *{FIELDS[name]}*"


def emphasized(escaped: str) -> str:
    """Return HTML of a message with the names of fields emphasized and its lines kept; `escaped` is its escaped text.

    >>> emphasized("Fill the field *Label*.")
    'Fill the field <em>Label</em>.'
    """
    return _NAMED.sub(r"<em>\1</em>", escaped).replace("\n", "<br>")
