"""Initial values of the parameters of a module. A method of `Module`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows
from workbench.module import initialisers
from workbench.module.initialisers import ModuleError, Spec

if TYPE_CHECKING:
    from workbench.module.core import Module


def initialise(
    self: "Module", default: Spec = "uniform", seed: int = 0, values: Mapping[str, Any] | None = None
) -> "Module":
    """Set the initial values of all parameters: `values`, else the `init` of the variable, else `default`.

    Parameters
    ----------
    default : str, tuple or float, default "uniform"
        Initialiser, as in `workbench.module.initialisers`.
    seed : int, default 0
        Seed; each parameter is drawn from the seed and its name alone.
    values : mapping of str to array, optional
        Values of some parameters, of any format. A `kvstore.Drawn` is passed to the store, which may generate rows when
        they are first used. row_sparse parameters that are not in `values` store all rows.

    Returns
    -------
    Module
        The module itself.

    Raises
    ------
    ModuleError
        If the module is not bound or a value does not fit.
    """
    self._need("bound", "bind(batches)")
    if self.initialised:
        raise ModuleError("The module is initialised already; make another one to start over.")
    values = dict(values or {})
    if unknown := sorted(set(values) - set(self.layout.parameters)):
        known = ", ".join(self.layout.parameters)
        raise ModuleError(f"values has {', '.join(unknown)}; the parameters are {known}.")
    variables = self.layout.symbol.variables()
    specs = {name: variables[name].attributes["init"] for name in self.layout.parameters}
    specs = {name: default if spec is None else spec for name, spec in specs.items() if name not in values}
    initialisers.checked(specs)
    for name, weight in self.workers[0].weights.items():
        start = values[name] if name in values else _drawn(specs[name], name, weight, seed)
        if self.store is None or not isinstance(start, LazyRandomRows):
            _put(name, weight, start.whole() if isinstance(start, LazyRandomRows) else start)
    if self.store is not None:
        for name, weight in self.workers[0].weights.items():
            self.store.init(name, values[name] if isinstance(values.get(name), LazyRandomRows) else weight)
        self.version += 1
    self.initialised = True
    return self


def _put(name: str, weight: Any, value: Any) -> None:
    """Copy a given value into the weight `name`. Raises ModuleError if the shape differs."""
    if tuple(value.shape) != weight.shape:
        raise ModuleError(f"The value of {name} has the shape {tuple(value.shape)}; the parameter's is {weight.shape}.")
    formats.assign(weight, value)


def _drawn(spec: Spec, name: str, weight: Any, seed: int) -> Any:
    """Return initial values of the weight `name` from an initialiser."""
    values = initialisers.draw(spec, name, weight.shape, weight.dtype, seed)
    return RowSparse(values, np.arange(len(values)), weight.shape) if isinstance(weight, RowSparse) else values
