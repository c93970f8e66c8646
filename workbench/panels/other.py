"""Whether the results in a run folder are those of the present choices, and in which choices they differ."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.analysis import words
from workbench.study.choices import BY_NAME
from workbench.sweep import homes, run_folder
from workbench.sweep.spec import Spec

CHOSEN = "choices.json"
"""In the run folder: the choices that a study was opened with, and those that the run was started with."""


def differences(folder: Path, spec: Spec | None, choices: Mapping[str, Any]) -> str:
    """Choices in which the run in the folder differs from these, in words; "" where it is of these.

    `spec` is the sweep of the choices, None where they cannot be measured. A run without a readable spec is not judged.
    """
    try:
        of_run = run_folder.read_spec(folder)
    except run_folder.RunError:
        return ""
    if spec is not None and homes.measured(of_run) == homes.measured(spec):
        return ""
    changes = _changes(_started_with(folder), choices)
    return words.join(changes) if changes else "another spec"


def _started_with(folder: Path) -> Mapping[str, Any]:
    """The choices that the run was started with; none where something else than a panel started it."""
    kept = folder / CHOSEN
    return json.loads(kept.read_text(encoding="utf-8"))["chosen"] if kept.exists() else {}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The choices of the run that are others now."""
    names = [name for name in before if name in BY_NAME and _unordered(before[name]) != _unordered(now[name])]
    return [f"{BY_NAME[name].label} {_shown(before[name])} (now {_shown(now[name])})" for name in names]


def _unordered(value: Any) -> Any:
    return value if isinstance(value, str) else frozenset(value)


def _shown(value: Any) -> str:
    return (value if isinstance(value, str) else ", ".join(value)) or "empty"
