"""Bridges: how data and models of the workbench go to other frameworks and back, with a contract at each hand-over.

One file a framework, loaded when it is asked for; `import workbench.bridges` loads none of them. `contracts` says what
must hold where a matrix is handed over, `codes` what must hold of codes of categories; `dense` makes a matrix dense
where that is meant.
"""

from workbench.bridges.codes import check_codes
from workbench.bridges.contracts import Breach, ContractError, check, check_saved, densify, made_dense, require
from workbench.bridges.table import FRAMEWORKS
from workbench.formats.parts import Parts, parts_of

__all__ = [
    "FRAMEWORKS",
    "Breach",
    "ContractError",
    "Parts",
    "check",
    "check_codes",
    "check_saved",
    "densify",
    "made_dense",
    "parts_of",
    "require",
]
