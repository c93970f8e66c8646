"""`workbench check`: whether a framework can be handed a data set, a line a breach."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer

from workbench import data
from workbench.bridges import FRAMEWORKS, Breach, check
from workbench.command import data_source
from workbench.command.exits import FAILURE

NAMES = ("tensorflow", "keras", "pytorch", "sklearn")
"""What may be asked for: the frameworks that take any matrix."""


@dataclass(frozen=True)
class Checked:
    """What was checked for which framework, whether as it stands in the file or as the reader mends it."""

    source: str
    framework: str
    as_stored: bool
    breaches: tuple[Breach, ...]
    summed: int = 0
    """Entries that the reader summed with another of their place."""

    @property
    def errors(self) -> int:
        """How many breaches are errors."""
        return sum(breach.severity == "error" for breach in self.breaches)

    @property
    def summary(self) -> str:
        """One line: what was looked at, and how it is."""
        what = "as it stands in the file" if self.as_stored else "as it is read"
        what += f", {_counted(self.summed, 'duplicate')} summed" if self.summed else ""
        found = f"{_counted(self.errors, 'error')}, {_counted(len(self.breaches) - self.errors, 'warning')}"
        return f"{self.source} for {FRAMEWORKS[self.framework].title}, {what}: {found}."

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        known = {"source": self.source, "for": self.framework, "as_stored": self.as_stored, "summed": self.summed}
        known["errors"] = self.errors
        return known | {"breaches": [breach.as_row() for breach in self.breaches]}


def examine(
    source: str, framework: str, dataset: str = "", labels: str = "", kind: str = "", reading: str = "", width: int = 0
) -> Checked:
    """Check what `source` names for the framework, where its reader can, as it stands in the file.

    With the `kind` classes a framework that takes them as numbers is asked for numbers from 0 to one below their count.
    `data.DataError` for what cannot be read; `ValueError` for a framework that is not among `NAMES`.
    """
    if framework not in NAMES:
        raise data.DataError(f"There is no framework {framework!r}; there is: {', '.join(NAMES)}.")
    name, parameters = data_source.named(source, dataset, labels, kind, reading)
    stored = data.get(name).stored
    summed = 0
    if stored is not None:
        x, y = stored(**{key: parameters[key] for key in ("path", "labels") if key in parameters})
    else:
        made = data.load(name, **parameters)
        x, y, summed = made.x, made.y, int(made.facts.get("duplicate_entries", 0))
    boundary, columns = f"data -> {framework}", width or None
    if y is not None and kind == "classes" and FRAMEWORKS[framework].counts_classes:
        count = len(np.unique(y))
        found = check(x, y, for_=framework, boundary=boundary, width=columns, labels="classes", classes=count)
    else:
        found = check(x, y, for_=framework, boundary=boundary, width=columns)
    return Checked(source, framework, stored is not None, tuple(found), summed)


def show(checked: Checked, as_json: bool) -> None:
    """A line a breach and one that sums up, or JSON; ends with status 1 where there is an error."""
    if as_json:
        typer.echo(json.dumps(checked.as_json(), indent=1))
    else:
        for line in (*checked.breaches, checked.summary):
            typer.echo(line)
    if checked.errors:
        raise typer.Exit(FAILURE)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
