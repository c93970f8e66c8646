"""Factorization machine of second order: linear terms and all pairwise interactions of features (Rendle 2010).

score = x @ w + sum over i < j of x_i x_j <v_i, v_j>; the width is the number of factors, the length of each v_i.
"""

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.metrics import r2
from workbench.models import Given, Model, Parameter, register


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, 1]: linear terms and interactions, O(z K) for z entries, K factors.

    `given` is unused.
    """
    linear = ops.get("dot")(x, variable("w"), engine=engine)
    return ops.get("add")(linear, ops.get("interactions")(x, variable("v")))


def parameters(given: Given) -> tuple[Parameter, ...]:
    """Return the parameters w [D, 1], weights, and v [D, K], factors."""
    return (
        Parameter("w", (given.features, 1), touched=True, product=True),
        Parameter("v", (given.features, given.width), touched=True, deviation=0.01),
    )


register(
    Model(
        "factorization_machine",
        loss="squared",
        target="numbers",
        quality_name="r2",
        quality=r2,
        scores=scores,
        parameters=parameters,
        widths="any number of factors from 1",
        outputs=1,
        width=8,
        predicts="numbers, by pairs of features",
    )
)
