"""Graphs of operators on variables: built first, inferred as a whole, then bound and run by `workbench.executor`.

>>> import numpy as np
>>> from workbench import graph
>>> x = graph.variable("x", format="csr", shape=(None, 1000))
>>> w = graph.variable("w", shape=(1000, 10))
>>> scores = x @ w
>>> scores.arguments(), scores.outputs()
(['x', 'w'], ['dot0'])
>>> found = scores.infer(shapes={"x": (32, 1000)})
>>> found["dot0"].format, found["dot0"].shape, found["dot0"].bytes
('dense', (32, 10), 1280)
"""

from workbench.graph.explanation import Explanation
from workbench.graph.inference import Facts, Inference
from workbench.graph.nodes import GraphError
from workbench.graph.reading import Group, from_json
from workbench.graph.symbol import Graph, Symbol, constant, scope, variable

group = Group

__all__ = [
    "Explanation",
    "Facts",
    "Graph",
    "GraphError",
    "Group",
    "Inference",
    "Symbol",
    "constant",
    "from_json",
    "group",
    "scope",
    "variable",
]
