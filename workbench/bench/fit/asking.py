"""Requests to the processes of a case: settings of a contender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.bench.fit.cases import Case
from workbench.bench.fit.contract import Contender


@dataclass(frozen=True)
class Asked:
    """Request to a process: a contender of a case, settings by number, and where there is one the target.

    `before` are the points that are known of a setting, by number, where a training is begun anew for each.
    """

    case: Case
    contender: Contender
    values: Sequence[tuple[int, dict[str, float]]]
    seconds: float
    target: float | None = None
    ladder: Sequence[int] = ()
    before: Mapping[int, Sequence[Sequence[float]]] = field(default_factory=dict)
