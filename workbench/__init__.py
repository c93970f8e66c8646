"""Would sparse tensors reduce my training time and memory: in which format, from which density on, and by how much?

Sparse Workbench answers by measuring real training on real kernels. Import the part that is needed: `workbench.formats`
and `workbench.data` hold the matrices, `workbench.sweeps` measures, `workbench.analysis` and `workbench.reports`
answer.
"""

import importlib.util
import sys

__version__ = "0.2.0"

_OURS = "from kernels.registry import"
"""In the text of our `kernels/__init__.py`, and of no other package of that name."""


def _other_kernels() -> str:
    """Place of a package `kernels` that is not ours but would be imported in its place; empty for ours.

    It is looked for and read, not imported: that takes a second, which help on the command line does not need.
    """
    spec = getattr(sys.modules.get("kernels"), "__spec__", None) or importlib.util.find_spec("kernels")
    if spec is None:
        return "nowhere"
    get_source = getattr(spec.loader, "get_source", None)
    source = get_source("kernels") if get_source is not None else None
    return "" if _OURS in (source or "") else str(spec.origin or list(spec.submodule_search_locations or ()))


if _place := _other_kernels():
    raise ImportError(
        f"Sparse Workbench has a package named `kernels`; another one stands in its place: {_place}. There is one of "
        "that name on PyPI, and a file kernels.py beside a script would do the same. Install into an environment of "
        "its own: python -m venv fresh && fresh/bin/pip install sparse-workbench; or rename the file. Where both were "
        "installed into one environment: pip uninstall kernels, then pip install --force-reinstall --no-deps "
        "sparse-workbench."
    )
