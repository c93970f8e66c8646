"""Bind a graph to arrays and run it, forward and backward.

>>> import numpy as np
>>> from workbench import executor, graph
>>> x, w = graph.variable("x", shape=(2, 3)), graph.variable("w", shape=(3, 1))
>>> bound = executor.bind(x @ w, {"x": np.ones((2, 3), np.float32)}, grad_req={"w": "write"})
>>> bound.args["w"][:] = 2
>>> bound.forward(training=True)[0].tolist()
[[6.0], [6.0]]
>>> bound.backward(heads=np.ones((2, 1), np.float32))["w"].tolist()
[[2.0], [2.0], [2.0]]
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numpy.typing import DTypeLike

from workbench.executor.run import Executor
from workbench.executor.steps import BindError, Step
from workbench.graph import Graph

__all__ = ["BindError", "Executor", "Step", "bind"]


def bind(
    symbol: Graph,
    args: Mapping[str, Any] | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
    formats: Mapping[str, str] | None = None,
    grad_req: str | Mapping[str, str] = "null",
    grad_formats: Mapping[str, str] | None = None,
    convert: bool = False,
    resizable: Collection[str] = (),
) -> Executor:
    """An executor of the graph; its shapes, dtypes and formats are inferred, its memory allocated, here.

    `args` are held, not copied; arguments without an array are zeros. An array must have the declared format and dtype
    or is refused; with `convert`, here and in `forward`, it is converted. `shapes`, `dtypes` and `formats` are as in
    `infer`. `grad_req` is write, add (to what is there, sparse gradients too) or null for all float arguments that can
    have a gradient, or by argument, null where left out. `grad_formats` overrides the formats that gradients have by
    the operators' tables: a format, or "fused", which leaves a product X.T @ slope as its factors for an optimizer
    (`ops.products.Unsummed`). Of arguments the number of rows may change from call to call, of those named in
    `resizable` all lengths. Errors: `GraphError`, and `DensifyError` for what `ops.settings` forbid to make dense.

    A steady step allocates nothing but sparse results: dense ones have buffers for the largest batch so far, which
    smaller ones share, and which values of other times share as well.
    """
    return Executor(
        symbol,
        args or {},
        {"shapes": shapes or {}, "dtypes": dtypes or {}, "formats": formats or {}},
        grad_req,
        grad_formats or {},
        convert,
        resizable,
    )
