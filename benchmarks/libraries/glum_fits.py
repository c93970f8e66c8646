"""glum: generalized linear models by CSC and by a dense array."""

from functools import partial
from typing import Any

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def fit(family: str, data: Data) -> Calls:
    """Return the coefficients of a regularized model."""
    from glum import GeneralizedLinearRegressor

    y = data.count if family == "poisson" else data.y.astype("float32")
    columns = data.csr.tocsc()

    def made(x: Any) -> Any:
        """Return the coefficients of rows in one form."""
        return GeneralizedLinearRegressor(family=family, alpha=0.01, l1_ratio=0.0, max_iter=5).fit(x, y).coef_

    return lambda: made(columns), lambda: made(data.dense)


for _family in ("poisson", "binomial"):
    _make = partial(fit, _family)
    OPERATIONS.append(Operation("glum", f"{_family} regression", _make, "glum", 1e-2, rows=4096, features=128))
