"""Matrix factorization of ratings from factors of user and item (Koren, Bell, Volinsky 2009).

score = x @ w + <p, q>, where x @ w adds the biases of user and item, p is the factors of the user and q of the item:
the sums of x v over the two fields of columns. The width is the number of factors. Weight decay is the regularisation.
"""

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.metrics import mae, r2, rmse
from workbench.models import Given, Model, Parameter, register


def affinity(x: Symbol, given: Given) -> Symbol:
    """Return the symbol of <p, q>, [R, 1], products of the factors of user and item, in O(z K)."""
    sums = ops.get("field_sums")(x, variable("v"), fields=tuple(given.facts["fields"]))
    users = ops.get("slice")(sums, begin=[None, 0], end=[None, given.width])
    items = ops.get("slice")(sums, begin=[None, given.width], end=[None, 2 * given.width])
    return ops.get("sum")(ops.get("multiply")(users, items), axis=1, keepdims=True)


def factors(given: Given) -> Parameter:
    """Return the parameter v [D, K]: factors of users and, below them, of items."""
    return Parameter("v", (given.features, given.width), touched=True, deviation=0.1)


def scores(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores [R, 1]: biases of user and item plus the product of their factors."""
    return ops.get("add")(ops.get("dot")(x, variable("w"), engine=engine), affinity(x, given))


def parameters(given: Given) -> tuple[Parameter, ...]:
    """Return the parameters w [D, 1], biases, and v [D, K], factors."""
    return Parameter("w", (given.features, 1), touched=True, product=True), factors(given)


register(
    Model(
        "matrix_factorization",
        loss="squared",
        target="numbers",
        quality_name="r2",
        quality=r2,
        measures={"RMSE": rmse, "MAE": mae},
        scores=scores,
        parameters=parameters,
        widths="any number of factors from 1",
        outputs=1,
        width=16,
        needs=("fields",),
        predicts="numbers of users and items, by factors of both",
        usual_for="fields",
    )
)
