"""The project's command line: `workbench train --save`, then `workbench apply`; first as they are, then with passes."""

import sys
from collections.abc import Mapping
from typing import Any

from workbench.bench.end.contract import PASSES, Candidate, Commands, Paths, register


def commands(paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the two commands that a user types."""
    workbench, model = [sys.executable, "-m", "workbench"], str(paths.folder / "model")
    train = [*workbench, "train", str(paths.train), "--save", model]
    train += ["--epochs", str(setting["passes"])] if "passes" in setting else []
    apply = [*workbench, "apply", model, str(paths.held_out), "--out", str(paths.predictions)]
    return [("train", train), ("apply", apply)]


register(Candidate("project", "project", commands, ({}, *PASSES)))
