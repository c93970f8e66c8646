"""Wide and deep network for binary labels: a linear score plus one of hidden layers over embeddings (Cheng et al.
2016).

score = x @ w + h_L @ out, with h_1 = relu(x @ e + c_1), the weighted sum of the embeddings of a row's features, and
h_l = relu(h_(l-1) @ m_l + c_l); `hidden` units in each of L = `layers`.
"""

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.metrics import auc, binary_accuracy, logit_loss
from workbench.models import Given, Model, Option, Parameter, glorot, he, register


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, 1]: a linear part plus a multilayer perceptron on sums of embeddings."""
    wide = ops.get("dot")(x, variable("w"), engine=engine)
    hidden = ops.get("dot")(x, variable("e"), engine=engine)
    for layer in range(1, given.options["layers"] + 1):
        if layer > 1:
            hidden = ops.get("dot")(hidden, variable(f"m{layer}"))
        hidden = ops.get("relu")(ops.get("add")(hidden, variable(f"c{layer}")))
    return ops.get("add")(wide, ops.get("dot")(hidden, variable("out")))


def parameters(given: Given) -> tuple[Parameter, ...]:
    """Return the parameters w [D, 1], e [D, H], m [H, H] and c [H] of the layers, and out [H, 1]."""
    hidden, layers = given.options["hidden"], range(1, given.options["layers"] + 1)
    return (
        Parameter("w", (given.features, 1), touched=True, product=True),
        Parameter("e", (given.features, hidden), touched=True, product=True, deviation=0.1),
        *(Parameter(f"m{layer}", (hidden, hidden), deviation=he(hidden)) for layer in layers[1:]),
        *(Parameter(f"c{layer}", (hidden,), decays=False) for layer in layers),
        Parameter("out", (hidden, 1), deviation=glorot(hidden, 1)),
    )


register(
    Model(
        "embedding_mlp",
        loss="logistic",
        target="binary",
        quality_name="AUC",
        quality=auc,
        measures={"accuracy": binary_accuracy, "log loss": logit_loss},
        scores=scores,
        parameters=parameters,
        widths="width 1",
        allows=lambda width: width == 1,
        options={
            "hidden": Option(64, "units of each hidden layer", least=1, most=65_536),
            "layers": Option(1, "hidden layers", least=1, most=16),
        },
        has_kinks=True,
        predicts="one of two classes, by embeddings and hidden layers",
    )
)
