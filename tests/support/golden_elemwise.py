"""Recorded cases of every operator but the matrix product: result, whether it made arrays dense, gradients."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.support import golden_cases
from workbench import formats, ops

TWO = {
    **{f"{kind}_{short}": ours for kind in ("elemwise", "broadcast") for short, ours in (
        ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("plus", "add"),
        ("minus", "subtract"))},
    **{f"{kind}{same}": same for kind in ("_", "broadcast_") for same in (
        "maximum", "minimum", "hypot", "power", "mod", "equal", "not_equal", "greater", "greater_equal", "logical_and",
        "logical_or", "logical_xor")},
    **{f"{kind}lesser{more}": f"less{more}" for kind in ("_", "broadcast_") for more in ("", "_equal")},
    "_scatter_elemwise_div": "stored_divide",
}  # fmt: skip
SCALAR = {
    "_plus": "add", "_minus": "subtract", "_rminus": "subtract_from", "_mul": "multiply", "_div": "divide",
    "_rdiv": "divide_into", "_power": "power", "_maximum": "maximum", "_minimum": "minimum", "_hypot": "hypot",
    "_mod": "mod", "_equal": "equal", "_not_equal": "not_equal", "_greater": "greater",
    "_greater_equal": "greater_equal", "_lesser": "less", "_lesser_equal": "less_equal",
    "_logical_and": "logical_and", "_logical_or": "logical_or", "_logical_xor": "logical_xor",
    "_scatter_plus": "stored_add", "_scatter_minus": "stored_subtract",
}  # fmt: skip
OTHERS = {
    "BlockGrad": "stop_gradient", "_copy": "identity", "_rpower_scalar": "scalar_power", "_rmod_scalar": "scalar_mod",
    "_square_sum": "square_sum", "contrib.getnnz": "count_stored", "Embedding": "embedding", "Cast": "cast",
    "Concat": "concat", "FullyConnected": "fully_connected", "LinearRegressionOutput": "linear_regression_output",
    "LogisticRegressionOutput": "logistic_regression_output", "MAERegressionOutput": "mae_regression_output",
    "SoftmaxOutput": "softmax_output", "_grad_add": "add", "cast_storage": "to_format", "sparse.retain": "retain",
}  # fmt: skip
NAMES = {**TWO, **{f"{theirs}_scalar": f"{ours}_scalar" for theirs, ours in SCALAR.items()}, **OTHERS}
"""Their names of operators -> ours, where they differ."""

OURS_OF_PARAMETERS = {"a_min": "low", "a_max": "high", "dim": "axis", "stype": "format"}
DROPPED = ("input_dim", "output_dim", "num_hidden", "no_bias")
"""Parameters that say again what the shapes of the inputs say."""
INDICES = {"take": 1, "Embedding": 0}
"""Which input holds row numbers: theirs are floats, ours whole numbers."""


def call_of(case: Mapping[str, Any]) -> tuple[ops.Op, dict[str, Any]]:
    """Our operator and its parameters."""
    given = {OURS_OF_PARAMETERS.get(name, name): value for name, value in case["params"].items() if name not in DROPPED}
    if "format" in given:
        given["format"] = golden_cases.STYPES[given["format"]]
    op = ops.get(NAMES.get(case["op"], case["op"]))
    return op, op.resolve(given)


def inputs_of(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """The inputs in our formats; row numbers as whole numbers."""
    inputs = [golden_cases.read(arrays, reference) for reference in case["inputs"]]
    if case["op"] in INDICES:
        place = INDICES[case["op"]]
        inputs[place] = inputs[place].astype(np.int64)
    return inputs


def run(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], differs: golden_cases.Differs) -> None:
    """Result and gradients of one case; `differs` is told of each deviation."""
    inputs = inputs_of(case, arrays)
    if case.get("raises"):
        _refused(case, inputs, differs)
        return
    op, params = call_of(case)
    with ops.recording() as log:
        came = op.compute(inputs, params)
    if bool(log) != bool(case["fallback"]):
        differs("fallback", [str(entry) for entry in log])
    golden_cases.agree(came, golden_cases.read(arrays, case["out"]), case, differs)
    if any(case.get("grads", ())):
        _gradients(case, arrays, differs, (op, params, inputs, came))


def _refused(case: Mapping[str, Any], inputs: list[Any], differs: golden_cases.Differs) -> None:
    try:
        op, params = call_of(case)
        came = op.compute(inputs, params)
    except ValueError:
        return
    differs("raises", formats.format_of(came))


def _gradients(
    case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], differs: golden_cases.Differs, done: tuple
) -> None:
    op, params, inputs, came = done
    given = case.get("head_grad")
    head = golden_cases.read(arrays, given) if given else np.ones(came.shape, came.dtype)
    head = formats.to_format(
        head.reshape(came.shape) if isinstance(head, np.ndarray) else head, formats.format_of(came)
    )
    found = op.gradient(head, came, inputs, params)
    for gradient, reference in zip(found, case["grads"], strict=True):
        if reference is not None:
            assert gradient is not None, f"{op.name} gives no gradient where one was recorded"
            golden_cases.agree(gradient, golden_cases.read(arrays, reference), case, differs, "grad_")
