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

from workbench.executor.program import BindError, Step
from workbench.executor.run import Executor
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
    """Bind a graph to arrays: infer shapes, dtypes and formats, and allocate all memory.

    Parameters
    ----------
    symbol : Graph
        The graph.
    args : mapping of str to array, optional
        Arrays by argument; held, not copied. Arguments without an array are zeros.
    shapes, dtypes, formats : mapping, optional
        Declarations by argument, as in `Graph.infer`.
    grad_req : str or mapping of str to str, default "null"
        "write", "add" (to the current value, sparse gradients too) or "null", for all float arguments that can have a
        gradient or by argument ("null" for those left out).
    grad_formats : mapping of str to str, optional
        Formats of gradients: a format, or "fused", which keeps a product X.T @ g as its factors for an optimizer
        (`ops.products.Unsummed`). Default: the format that the operators' tables state.
    convert : bool, default False
        Convert arrays to the declared format and dtype, here and in `forward`; else others are refused.
    resizable : collection of str, optional
        Arguments all of whose lengths may change between calls; of the others only the number of rows.

    Returns
    -------
    Executor
        The bound graph.

    Raises
    ------
    GraphError
        If arguments do not fit the graph.
    DensifyError
        If the graph makes arrays dense that `ops.settings` forbids.

    Notes
    -----
    A steady step allocates sparse results only: dense ones have buffers for the largest batch so far, shared by smaller
    batches and by values whose lifetimes do not overlap.

    Examples
    --------
    See `workbench.executor`.
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
