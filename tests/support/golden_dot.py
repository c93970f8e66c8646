"""Recorded products: values, formats, patterns and gradients of `dot`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.support.golden_cases import STYPES, Differs, agree, read
from workbench import ops


def run(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], differs: Differs) -> None:
    """The product, and the gradients where they were recorded."""
    inputs = [read(arrays, reference) for reference in case["inputs"]]
    given = dict(case["params"])
    asked = {"result": STYPES[given.pop("forward_stype")]} if "forward_stype" in given else {}
    params = ops.dot.resolve({**given, **asked})
    with ops.recording() as densified:
        came = ops.dot(*inputs, **params)
    if bool(densified) != bool(case["fallback"]):
        differs("fallback", densified)
    agree(came, read(arrays, case["out"]), case, differs)
    if "grads" in case:
        _gradients(case, arrays, differs, inputs, came, params)


def _gradients(case, arrays, differs, inputs, output, params) -> None:
    with ops.recording() as densified:
        grads = ops.dot.gradient(read(arrays, case["head_grad"]), output, inputs, params)
    assert not densified
    for x, grad, recorded in zip(inputs, grads, case["grads"], strict=True):
        assert grad.shape == x.shape
        if recorded is not None:
            agree(grad, read(arrays, recorded), case, differs, "grad_")
