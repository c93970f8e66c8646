"""Candidates of `fair`, one a file: the project's trainings and independent ones at equal work.

How a candidate is made ready, trains some batches, and is checked is described by `Candidate` and `Trainer` of
`workbench.advising.frameworks.training`.
"""

from typing import Any

from benchmarks.shapes import BenchError
from kernels.registry import Registry
from workbench.advising.frameworks.training import Candidate

_competitors: Registry[Candidate] = Registry("competitor", ("benchmarks.fair.competitors",), BenchError)
register, names, get = _competitors.register, _competitors.names, _competitors.get


def list_competitors() -> list[Candidate]:
    """Return all candidates, the project's first; those compared with another one (`like`) come after it."""
    return sorted(map(get, names()), key=lambda one: (one.side != "project", one.like != "", one.kind, one.name))


def origin(name: str) -> str:
    """Return the name of the module that registered the candidate."""
    return _competitors.origin(name)


def settings_of(value: Any) -> str:
    """Return settings by name as text.

    >>> settings_of({"execution": "epoch", "update": "lazy"})
    'execution epoch, update lazy'
    """
    return ", ".join(f"{name} {one}" for name, one in value.items())
