"""Would sparse tensors reduce my training time and memory: in which format, from which density on, and by how much?

Sparse Workbench answers by measuring real training on real kernels::

    import workbench as wb

    advice = wb.advise(X, y)     # sparse or dense, how, and how sure that is
    result = wb.sweep(X, y, density=[0.01, 0.1])
    model = wb.train(X, y)

Everything in `dir(workbench)` is imported when it is first used. The packages below do the work: `workbench.data` holds
the matrices, `workbench.sweeps` measures, `workbench.analysis` and `workbench.reports` answer.
"""

import importlib.util
import os
import sys

if os.name != "posix":
    raise ImportError(
        f"Sparse Workbench needs a POSIX system, Linux or macOS; this one is {os.name!r}. On Windows install it inside "
        "WSL 2: wsl --install, then in its shell: pip install sparse-workbench."
    )

__version__ = "1.0.0"

_PUBLIC = {
    "advise": "workbench.api.advice",
    "blocks": "workbench.api.blocks",
    "compare": "workbench.api.results",
    "lab": "workbench.api.panel",
    "load": "workbench.api.loading",
    "load_model": "workbench.training.trained",
    "open": "workbench.api.results",
    "path": "workbench.api.alpha_path",
    "profile": "workbench.api.profiling",
    "race": "workbench.advising.racing",
    "runs": "workbench.api.results",
    "sweep": "workbench.api.sweeping",
    "train": "workbench.api.training",
    "Advice": "workbench.api.advice",
    "Comparison": "workbench.api.results",
    "DataError": "workbench.data",
    "Dataset": "workbench.data",
    "FactorizationMachineClassifier": "workbench.bridges.sklearn",
    "FactorizationMachineRegressor": "workbench.bridges.sklearn",
    "Race": "workbench.advising.racing",
    "Recommender": "workbench.recommend.recommender",
    "Result": "workbench.api.results",
    "SparseClassifier": "workbench.bridges.sklearn",
    "SparseClassifierCV": "workbench.bridges.sklearn",
    "SparseRegressor": "workbench.bridges.sklearn",
}
"""Public names, and the module that each is imported from when it is first used."""
__all__ = ["__version__", *_PUBLIC]

_OURS = b"from kernels.registry import"
"""In the text of our `kernels/__init__.py`, and of no other package of that name."""


def _other_kernels() -> str:
    """Return the path of a package `kernels` that is not ours but would be imported in its place; "" for ours.

    "nowhere" if there is none. The package's source is read, not imported: that takes a second, which help on the
    command line does not need.
    """
    spec = getattr(sys.modules.get("kernels"), "__spec__", None) or importlib.util.find_spec("kernels")
    if spec is None:
        return "nowhere"
    get_data = getattr(spec.loader, "get_data", None)  # not get_source, which loads tokenize and re
    source = get_data(spec.origin) if get_data is not None and spec.origin else b""
    return "" if _OURS in source else str(spec.origin or list(spec.submodule_search_locations or ()))


if _place := _other_kernels():
    raise ImportError(
        f"Sparse Workbench has a package named `kernels`; another one stands in its place: {_place}. There is one of "
        "that name on PyPI, and a file kernels.py next to a script would do the same. Install into an environment of "
        "its own: python -m venv fresh && fresh/bin/pip install sparse-workbench; or rename the file. Where both were "
        "installed into one environment: pip uninstall kernels, then pip install --force-reinstall --no-deps "
        "sparse-workbench."
    )


def __getattr__(name: str):  # no type of the result: typing takes longer to import than all of this module
    """Return a public name, imported on first use and kept in the module; AttributeError for others."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; expected one of: {', '.join(_PUBLIC)}")
    value = globals()[name] = getattr(importlib.import_module(_PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    """Return the sorted public names, without importing them."""
    return sorted([*_PUBLIC, "__version__", "__doc__"])
