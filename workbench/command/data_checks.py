"""`workbench check`: whether a framework can be handed a data set, a line a violation."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from kernels.registry import unknown_name
from workbench import data
from workbench.analysis.formatting import format_count
from workbench.bridges import FRAMEWORKS, Violation, check
from workbench.command import data_source
from workbench.command.exit_codes import FAILURE
from workbench.command.output import echo

NAMES = tuple(name for name in FRAMEWORKS if name not in ("implicit", "vw"))
"""What may be asked for: the frameworks that take any matrix."""


@dataclass(frozen=True)
class Checked:
    """Violations found for a framework, in the file as it is or as corrected by the reader."""

    source: str
    framework: str
    as_stored: bool
    violations: tuple[Violation, ...]
    summed: int = 0
    """Entries that the reader summed with another of their place."""

    @property
    def errors(self) -> int:
        """Number of violations with severity "error"."""
        return sum(violation.severity == "error" for violation in self.violations)

    @property
    def summary(self) -> str:
        """Line with source, framework, how the data was read, and the counts of errors and warnings."""
        what = "as it stands in the file" if self.as_stored else "as it is read"
        what += f", {format_count(self.summed, 'duplicate')} summed" if self.summed else ""
        found = f"{format_count(self.errors, 'error')}, {format_count(len(self.violations) - self.errors, 'warning')}"
        return f"{self.source} for {FRAMEWORKS[self.framework].title}, {what}: {found}."

    def as_json(self) -> dict[str, Any]:
        """Return source, framework, how it was read, counts and violations as a dict for JSON."""
        known = {"source": self.source, "for": self.framework, "as_stored": self.as_stored, "summed": self.summed}
        known["errors"] = self.errors
        return known | {"breaches": [violation.as_row() for violation in self.violations]}


def check_source(source: str, framework: str, width: int = 0, like: str = "", **options: str) -> Checked:
    """Check whether a framework accepts the data of `source`, as it is in the file if the reader can show that.

    `options` say how it is read: dataset, labels, columns, kind and reading. If kind is classes and the framework takes
    class numbers, these must be 0 to their count - 1. `like` is the file that the model was trained on: its columns and
    values are expected. `width` 0 is that of the data. data.DataError for what cannot be read, and
    for a framework that is not in `NAMES`.
    """
    if framework not in NAMES:
        raise data.DataError(unknown_name("framework", framework, NAMES))
    trained = _read(*data_source.named_source(like, **{**options, "labels": ""})) if like else None
    read = _read(*data_source.named_source(source, **options), like=trained)
    asked: dict[str, Any] = {"for_": framework, "boundary": f"data -> {framework}"}
    asked["width"] = width or (trained.x.shape[1] if trained else None)
    if read.y is not None and options.get("kind") == "classes" and FRAMEWORKS[framework].counts_classes:
        asked |= {"labels": "classes", "classes": len(np.unique(read.y))}
    found = check(read.x, read.y, **asked)
    return Checked(source, framework, read.made is None, tuple(found), read.summed)


@dataclass(frozen=True)
class _Held:
    """A matrix and its labels (None without labels), and their data set if the reader corrected it."""

    x: Any
    y: Any
    made: data.Dataset | None = None

    @property
    def summed(self) -> int:
        """Number of duplicate entries that the reader summed."""
        return int(self.made.facts.get("duplicate_entries", 0)) if self.made else 0


def _read(name: str, parameters: dict[str, Any], like: _Held | None = None) -> _Held:
    """Return matrix and labels as they are in the file if the reader `name` can give that, else as a data set.

    The latter has the columns of `like`, unless that is None. Raises DataError.
    """
    stored = data.get(name).stored
    if stored is not None and Path(parameters.get("path", ".")).is_file():
        return _Held(*stored(**{key: parameters[key] for key in ("path", "labels") if key in parameters}))
    made = data.load(name, like=like.made if like else None, **parameters)
    return _Held(made.x, made.y, made)


def show(checked: Checked, as_json: bool) -> None:
    """Print a line for each violation and a summary, or JSON; exit with status 1 if there are errors."""
    if as_json:
        echo(json.dumps(checked.as_json(), indent=1))
    else:
        for line in (*checked.violations, checked.summary):
            echo(line)
    if checked.errors:
        raise typer.Exit(FAILURE)
