"""The recorded table of inference: from the formats of the inputs, the format of the result, and whether it densifies.

Our answer is that of the operator's table alone: nothing is computed.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.support import golden_cases, golden_elemwise
from workbench import ops

OUTSIDE = {
    "optimizers are no operators here; their combinations of formats are in the group optim": (
        "sgd_update sgd_mom_update signum_update signsgd_update nag_mom_update rmsprop_update adam_update ftml_update"
        " ftrl_update contrib.group_adagrad_update sparse.adagrad_update"
    ),
    "copies between formats are formats.assign and the operator to_format; tested in the group storage": (
        "_copyto _set_value _identity_with_attr_like_rhs"
    ),
    "no part of the sparse system: dense operators that densify whatever is sparse, in both programs": (
        "gamma gammaln rcbrt erfinv hard_sigmoid Flatten flatten logical_not argmax argmin shape_array size_array sort"
        " MakeLoss Activation slice_axis slice_like nansum nanprod topk amp_cast LeakyReLU smooth_l1 expand_dims repeat"
        " tile one_hot argsort flip reshape_like broadcast_like broadcast_to batch_dot stack pick gather_nd batch_take"
        " khatri_rao softmax_cross_entropy SVMOutput L2Normalization"
    ),
    "experimental ones, which the two tutorials do not use": (
        "_contrib_round_ste _contrib_sign_ste contrib.quadratic contrib.edge_id contrib.SparseEmbedding"
    ),
    "random fill is uniform and normal here": "_random_gamma _random_poisson _random_exponential",
    "filling with a number is formats.assign": "_full _ones",
}
"""Recorded operators that we do not have, by reason."""

NAMES = {"_zeros": "zeros", "_random_uniform": "random_uniform", "_random_normal": "random_normal"}
FILLS = tuple(NAMES)


def is_outside(name: str) -> bool:
    return any(name in names.split() for names in OUTSIDE.values())


def words(text: str) -> list[str]:
    return text.split("|") if text else []


def case_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row in the form of the other groups: parameters read, our name of the operator."""
    params = json.loads(row["params"]) if row["params"] else {}
    if row["op"] in FILLS:
        params |= {"stype": row["out_arg"] or "default"}
        params |= {} if row["op"] == "_zeros" else {"seed": 0}
    if "forward_stype" in params:
        params["result"] = golden_cases.STYPES[params.pop("forward_stype")]
    return {"op": NAMES.get(row["op"], row["op"]), "params": params}


def chosen(row: Mapping[str, Any]) -> ops.Rule:
    """The rule that our table has for the row; `ValueError` where it refuses."""
    op, params = golden_elemwise.call_of(case_of(row))
    held = [golden_cases.STYPES[word] for word in words(row["input_stypes"])]
    shapes = [tuple(map(int, word.split("x"))) for word in words(row["input_shapes"])]
    dtypes = [np.dtype(np.float32)] * len(held)
    if row["op"] in golden_elemwise.INDICES:
        dtypes[golden_elemwise.INDICES[row["op"]]] = np.dtype(np.int64)
    op.shape(shapes, params)
    op.dtype_of(dtypes, params)
    return op.choose(held, shapes, params)


def run(row: Mapping[str, Any], arrays: Mapping[str, Any], differs: golden_cases.Differs) -> None:
    """Compare the format of the result, and whether inputs are made dense, with the recorded row.

    Where the row has an array to write to, ours is `formats.assign(that, result)`, which any format takes.
    """
    if is_outside(row["op"]):
        return
    refused = row["output_stype"] in ("ERROR", "CRASH")
    try:
        rule = chosen(row)
    except ValueError as error:
        if not refused:
            differs("refused", str(error))
        return
    if refused:
        differs("raises", rule.result)
        return
    result = row["out_arg"] or {ours: theirs for theirs, ours in golden_cases.STYPES.items()}.get(rule.result)
    if result != row["output_stype"]:
        differs("stype", result)
    if rule.densifies != bool(int(row["fallback"])):
        differs("fallback", rule.densifies)
