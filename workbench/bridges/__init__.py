"""Bridges: how data and models of the workbench go to other frameworks and back, with a contract at each hand-over.

One file a framework, loaded when it is asked for; `import workbench.bridges` loads none of them. `contracts` says what
must hold where a matrix is handed over, `codes` what must hold of codes of categories; `dense` makes a matrix dense
where that is meant.
"""

from workbench.bridges.contracts import (
    ContractError,
    Violation,
    check,
    densify,
    require,
)
from workbench.bridges.validation_rules import FRAMEWORKS
from workbench.formats.parts import Parts, parts_of

__all__ = [
    "FRAMEWORKS",
    "ContractError",
    "Parts",
    "Violation",
    "check",
    "densify",
    "parts_of",
    "require",
]
