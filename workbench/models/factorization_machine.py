"""Factorization machine of second order: linear terms and all pairwise interactions of features (Rendle 2010).

score = x @ w + sum over i < j of x_i x_j <v_i, v_j>; the width is the number of factors, the length of each v_i.
"""

import math
from collections.abc import Mapping

import numpy as np

from workbench import ops
from workbench.graph import Symbol, variable
from workbench.metrics import r2
from workbench.models import Given, Model, Parameter, register
from workbench.models.scaling import Scaling


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


def leave_scaling(arrays: Mapping[str, np.ndarray], scaling: Scaling) -> None:
    """Overwrite parameters for scaled X and targets by those for X and targets as they are, in place.

    Terms of pairs of a moved column are part of the weights of the other columns and of the intercept, which are
    rounded: `scaling.held` has them as they were. The rest are products with powers of 2.
    """
    scales, factor = scaling.scales[:, None], scaling.target_scale
    w, v, b = arrays["w"], arrays["v"], arrays.get("b")
    moved = scaling.moved
    held = (["w"] if len(moved) else []) + ([] if b is None else ["b"])
    scaling.held = {name: arrays[name].copy() for name in held}
    if factor != 1 or (scales != 1).any():
        np.multiply(w, factor / scales, out=w, casting="same_kind")
        np.multiply(v, math.sqrt(factor) / scales, out=v, casting="same_kind")
    intercept = 0.0 if b is None else factor * float(b[0]) + scaling.target_center
    if len(moved) and scaling.center is not None:
        shift, factors, slopes = scaling.center[moved], v.astype(np.float64), scaling.held["w"] * (factor / scales)
        terms = shift[:, None] * factors[moved]
        sums = terms.sum(axis=0)
        slopes[:, 0] -= factors @ sums
        slopes[moved, 0] += (terms * factors[moved]).sum(axis=1)
        intercept -= shift @ (scaling.held["w"][moved, 0] * (factor / scales[moved, 0]))
        intercept += (sums @ sums - (terms**2).sum()) / 2
        w[...] = slopes
    if b is not None:
        b[0] = intercept


def enter_scaling(arrays: Mapping[str, np.ndarray], scaling: Scaling) -> None:
    """Overwrite parameters by those that `leave_scaling` has left, in place; before that they are scaled."""
    if scaling.held is None:
        return
    scales, factor = scaling.scales[:, None], scaling.target_scale
    if factor != 1 or (scales != 1).any():
        np.multiply(arrays["w"], scales / factor, out=arrays["w"], casting="same_kind")
        np.multiply(arrays["v"], scales / math.sqrt(factor), out=arrays["v"], casting="same_kind")
    for name, array in scaling.held.items():
        arrays[name][...] = array


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
        enter_scaling=enter_scaling,
        leave_scaling=leave_scaling,
    )
)
