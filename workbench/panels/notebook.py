"""Runner of a notebook: a person at a front end, or papermill; and which parameters it was given."""

import ast
from collections.abc import Iterable, Mapping
from typing import Any

INJECTED = "# Parameters"
"""First line of the cell that papermill adds."""


def has_front_end() -> bool:
    """Whether somebody may click: front ends offer to be asked for input, papermill and nbclient do not."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))  # ipykernel keeps it for the cell that runs


def injected(sources: Iterable[str]) -> list[str]:
    """Names that papermill set, from the sources of the cells that ran.

    >>> injected(["densities = [0.1]", "# Parameters\\nwidths = [4]\\n"])
    ['widths']
    """
    cells = [ast.parse(source) for source in sources if source.startswith(INJECTED)]
    assigned = [node for cell in cells for node in cell.body if isinstance(node, ast.Assign)]
    return [target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)]


def sources(namespace: Mapping[str, Any]) -> list[str]:
    """The sources of the cells that ran in a notebook's namespace; IPython keeps them as `In`."""
    return [source for source in namespace.get("In", ()) if isinstance(source, str)]
