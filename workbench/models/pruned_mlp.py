"""Multilayer perceptron with sparse weight matrices: softmax of classes over rectified hidden units.

h_0 = x.T, h_l = relu(w_l.T @ h_(l-1) + c_l), scores = (w_(L+1).T @ h_L).T, with w_l [D, N] in CSR form, one row per
input, so that rows of the first one belong to features. Hidden values [units, R] have one row per unit: forward pass,
gradient of the input and gradient at the pattern all read rows, and nothing is transposed between layers.

The pattern is random and constant (`fixed`), or changes (`set`; `models.patterns`). `weights=masked` is the same
network with dense matrices and a mask, for comparison: equal up to rounding.
"""

import math

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.models import Given, Option, Parameter, glorot, he, of_classes, register
from workbench.models.patterns import RULES, Moves, counts


def shapes(given: Given) -> list[tuple[int, int]]:
    """Return the shape [D, N] of each weight matrix, from the option "hidden" such as "128x128"."""
    hidden = [int(size) for size in str(given.options["hidden"]).split("x")]
    return list(zip([given.features, *hidden], [*hidden, given.width], strict=True))


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, N] of a multilayer perceptron whose weight matrices are csr."""
    count, dot, turn = len(shapes(given)), ops.get("dot"), ops.get("transpose")
    weights = [variable(f"w{layer}", format="csr") for layer in range(1, count + 1)]
    if engine == "dense":  # x is dense
        hidden = dot(weights[0], turn(x), transpose_a=True, result="dense")
    else:
        hidden = turn(dot(x, weights[0], result="dense"))
    for layer in range(1, count):
        active = ops.get("relu")(ops.get("add")(hidden, variable(f"c{layer}")))
        hidden = dot(weights[layer], active, transpose_a=True, result="dense")
    return turn(hidden)


def parameters(given: Given) -> tuple[Parameter, ...]:
    """Return the parameters: values w at each matrix's pattern, [positions], and c [N, 1] of each hidden layer."""
    sizes, (density, spread) = shapes(given), (given.options[name] for name in ("density", "spread"))
    found = []
    for layer, (shape, count) in enumerate(zip(sizes, counts(sizes, density, spread), strict=True), start=1):
        of_one = count / (shape[0] * shape[1])
        deviation = glorot(*shape) if layer == len(sizes) else he(shape[0])
        found.append(
            Parameter(
                f"w{layer}", (count,), layer == 1, deviation=deviation / math.sqrt(of_one),
                matrix=shape, held=given.options["weights"],
            )
        )  # fmt: skip
    return (*found, *(Parameter(f"c{layer}", (n, 1), decays=False) for layer, (_, n) in enumerate(sizes[:-1], start=1)))


def moves(given: Given) -> Moves:
    """Return how the pattern changes, from the options pattern, fraction, every and until."""
    return Moves(*(given.options[name] for name in ("pattern", "fraction", "every", "until")))


register(
    of_classes(
        "pruned_mlp",
        predicts="classes, by layers of few weights",
        scores=scores,
        parameters=parameters,
        options={
            "hidden": Option(
                "128x128", "units of each hidden layer", form=r"[1-9]\d{0,5}(x[1-9]\d{0,5}){0,15}", like="1024x1024"
            ),
            "density": Option(0.1, "share of the weights that there are", least=1e-9, most=1),
            "spread": Option(
                "erdos_renyi", "how these are shared out among the layers", allowed=("erdos_renyi", "uniform")
            ),
            "weights": Option(
                "auto",
                "csr, dense with a mask, or auto: masked where X is dense, else csr",
                allowed=("auto", "csr", "masked"),
            ),
            "pattern": Option("fixed", "whether and how the pattern moves", allowed=RULES),
            "fraction": Option(0.3, "share of the weights that move at once, at the start", least=0, most=1),
            "every": Option(100, "steps from one move to the next", least=1),
            "until": Option(10_000, "the step from which on the pattern stays", least=1),
        },
        moves=moves,
        has_kinks=True,
    )
)
