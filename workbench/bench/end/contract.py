"""The Candidate record of `bench end`: the commands that lead from a file to predictions.

How to add one: a file in `candidates` that calls `register`.
"""

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernels.registry import Registry
from workbench.bench.shapes import BenchError

PASSES = ({"passes": 1}, {"passes": 2}, {"passes": 4}, {"passes": 8}, {"passes": 16})
"""Settings of what goes over the rows again and again."""


class Paths(NamedTuple):
    """Files of one run: `train` and `held_out` are read; `predictions` and what is in `folder` are written."""

    format: str
    train: Path
    held_out: Path
    folder: Path

    @property
    def predictions(self) -> Path:
        """File with a line for each row held out, whose last field is the probability of the label 1."""
        return self.folder / "predictions.csv"

    @property
    def stages(self) -> Path:
        """File of seconds by stage, JSON, if a process measures them."""
        return self.folder / "stages.json"


Commands = list[tuple[str, list[str]]]
"""Processes that run one after the other: the stage that each is, and its command line."""


@dataclass(frozen=True)
class Candidate:
    """A way from the file to predictions: `commands(paths, setting)` are its processes, `settings` what is tried.

    `formats` lists what it reads. `program` has to be on the path, `package` to be installed; `install` says how.
    """

    name: str
    side: str
    commands: Callable[[Paths, Mapping[str, Any]], Commands]
    settings: Sequence[Mapping[str, Any]]
    formats: tuple[str, ...] = ("svmlight", "clicks")
    package: str = ""
    program: str = ""
    install: str = ""

    def unavailable(self, format: str) -> str:
        """Return the reason why it does not take part, "" if it does; nothing is imported."""
        if format not in self.formats:
            return f"It reads {' and '.join(self.formats)} only."
        if self.package and not importlib.util.find_spec(self.package):
            return f"{self.package} is not installed: {self.install}."
        if self.program and not shutil.which(self.program):
            return f"The program {self.program} is not installed: {self.install}."
        return ""


_candidates: Registry[Candidate] = Registry("candidate", ("workbench.bench.end.candidates",), BenchError)
register, names, get = _candidates.register, _candidates.names, _candidates.get
