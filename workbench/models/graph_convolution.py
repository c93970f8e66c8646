"""Graph convolutional network of two layers: classes of nodes from their features and neighbours (Kipf, Welling 2017).

scores = A relu(A (X @ w) + c) @ out + b, with A = D^-1/2 (edges + I) D^-1/2, the normalised adjacency, and X, the
features of all nodes; `hidden` units. The loss is of the rows trained on, the graph and the features are those of all
rows, held out or not (transductive). Weight decay is for w alone, as in the paper.

A step reads what its batch depends on: rows within two edges, all of them or as many `neighbors` of each node as are
drawn (GraphSAGE, Hamilton et al. 2017); with a batch of all rows and all neighbours it is the paper's full batch.
Predictions read all neighbours. `dropout` leaves that share of the entries of X and of the hidden units out of a step.
The paper has rows_of_x=sum_1, dropout=0.5, adam with rate 0.01 and decay 0.0005, and 200 epochs. Shuffled, as by
default, batches are completed anew each epoch, but for a full batch in which nothing is drawn; in order they repeat,
with what was drawn for the first one.

A batch of R rows with f neighbours a node reads R f^2 rows at most, and no more than there are: with z entries each a
step takes O(R f^2 (z + 1) hidden) time and O(R f^2 (z + hidden)) memory, whatever the size of the graph.
"""

from typing import Any

import numpy as np

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.models import Complete, Given, Input, Option, Parameter, glorot, of_classes, register
from workbench.models.nodes import Around, nodes_of, reach


def aggregate_neighbours(name: str, hidden: Symbol, engine: str) -> Symbol:
    """Return the symbol of weighted sums over neighbours of `hidden`; the variable `name` is the transposed adjacency.

    It is transposed so that the gradient is in stored order.
    """
    return ops.get("dot")(variable(name), hidden, transpose_a=True, engine=engine, result="dense")


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, N] of two graph convolutions with a rectifier between them."""
    hidden = aggregate_neighbours("inner", ops.get("dot")(x, variable("w"), engine=engine), engine)
    hidden = ops.get("relu")(ops.get("add")(hidden, variable("c")))
    if given.options["dropout"]:
        hidden = ops.get("multiply")(hidden, variable("kept"))
    return aggregate_neighbours("outer", ops.get("dot")(hidden, variable("out")), engine)


def parameters(given: Given) -> tuple[Parameter, ...]:
    """Return the parameters: weights w [D, H], bias c [H], and output weights out [H, N]."""
    hidden = given.options["hidden"]
    return (
        Parameter("w", (given.features, hidden), touched=True, product=True, deviation=glorot(given.features, hidden)),
        Parameter("c", (hidden,), decays=False),
        Parameter("out", (hidden, given.width), deviation=glorot(hidden, given.width), decays=False),
    )


def inputs(given: Given, rows: int) -> tuple[Input, ...]:
    """Return the inputs for batches of `rows` rows: the adjacency of each layer, and the dropout mask if used."""
    neighbours, second, first = reach(given.facts["graph"], rows, given.options["neighbors"])
    inner = Input("inner", (first, second), "csr", int(second * (1 + neighbours)))
    outer = Input("outer", (second, rows), "csr", int(rows * (1 + neighbours)))
    units = Input("kept", (second, given.options["hidden"]))
    return (inner, outer, units) if given.options["dropout"] else (inner, outer)


def reads(given: Given, rows: int) -> int:
    """Return an upper estimate of the rows of X within two edges of `rows` rows."""
    return reach(given.facts["graph"], rows, given.options["neighbors"])[2]


def sampler(given: Given, x: Any) -> Complete:
    """Return complete(batch, generator), which adds the rows around a batch, with dropout if set.

    Raises ModelError if X [rows, features] does not fit the graph.
    """
    nodes = nodes_of(given.facts, *x.shape)
    around = Around(nodes, np.dtype(x.dtype), given.options["neighbors"], given.options["rows_of_x"] == "sum_1")
    rate, hidden = given.options["dropout"], given.options["hidden"]
    if not rate:
        return around

    def complete(batch: Any, generator: np.random.Generator | None) -> Any:
        """Return the batch with the rows around it, after dropout of entries of X and hidden units.

        None without a generator.
        """
        completed = around(batch, generator)
        x, others = completed.x, dict(completed.others)
        others["kept"] = kept((others["outer"].shape[0], hidden), rate, generator).astype(x.dtype)
        x.data[...] *= kept(x.data.shape, rate, generator)
        return completed.with_x(x, others)

    return complete


def kept(shape: tuple[int, ...], rate: float, generator: np.random.Generator | None) -> np.ndarray:
    """Return a dropout mask, float64 [shape]: 0 with probability `rate`, else 1 / (1 - rate).

    All ones if `generator` is None.
    """
    return np.ones(shape) if generator is None else (generator.random(shape) >= rate) / (1 - rate)


register(
    of_classes(
        "graph_convolution",
        predicts="classes of the nodes of a graph",
        usual_for="graph",
        scores=scores,
        parameters=parameters,
        options={
            "hidden": Option(16, "units of the hidden layer", least=1, most=65_536),
            "neighbors": Option(0, "neighbours of each node that a step reads, drawn anew; 0 for all", least=0),
            "rows_of_x": Option("given", "as given, or divided by their sums: sum_1", allowed=("given", "sum_1")),
            "dropout": Option(0.0, "share of entries and hidden units that a step leaves out", least=0, most=0.99),
        },
        needs=("graph",),
        rows_apart=False,
        has_kinks=True,
        sampler=sampler,
        draws=lambda given: bool(given.options["neighbors"] or given.options["dropout"]),
        inputs=inputs,
        reads=reads,
    )
)
