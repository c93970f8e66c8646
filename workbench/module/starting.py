"""First values of the parameters of a module. A method of `Module`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats
from workbench.formats import RowSparse
from workbench.kvstore import Drawn
from workbench.module import initialisers
from workbench.module.initialisers import ModuleError, Spec

if TYPE_CHECKING:
    from workbench.module.core import Module


def initialise(
    self: "Module", default: Spec = "uniform", seed: int = 0, values: Mapping[str, Any] | None = None
) -> "Module":
    """Give the parameters their first values; returns the module.

    In this order: `values` by name, arrays of any format; the `init` that its variable declares; `default`. Specs
    and their numbers are in `workbench.module.initialisers`. Each parameter is drawn from the seed and its name
    alone. Row_sparse parameters get all their rows, but for those in `values`. A value that is `kvstore.Drawn` is
    given to the store as it is, which may draw each row when it is first touched.
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
        if self.store is None or not isinstance(start, Drawn):
            _put(name, weight, start.whole() if isinstance(start, Drawn) else start)
    if self.store is not None:
        for name, weight in self.workers[0].weights.items():
            self.store.init(name, values[name] if isinstance(values.get(name), Drawn) else weight)
        self.version += 1
    self.initialised = True
    return self


def _put(name: str, weight: Any, value: Any) -> None:
    if tuple(value.shape) != weight.shape:
        raise ModuleError(f"The value of {name} has the shape {tuple(value.shape)}; the parameter's is {weight.shape}.")
    formats.assign(weight, value)


def _drawn(spec: Spec, name: str, weight: Any, seed: int) -> Any:
    values = initialisers.draw(spec, name, weight.shape, weight.dtype, seed)
    return RowSparse(values, np.arange(len(values)), weight.shape) if isinstance(weight, RowSparse) else values
