"""How each operator is called in tests: shapes of its inputs, what they hold, parameters. One table for all tests.

An operator that is registered and not named here is called by the default of its family, or of the number of its
inputs; one that cannot be called so fails the tests, and gets a row.
"""

import numpy as np

from tests.support.op_calls import (
    Call,
    any_axes,
    any_axis,
    any_scalar,
    cut,
    cuts,
    filled,
    first_of,
    given_back,
    held_by,
    joined,
    looked_up,
    looked_up_sums,
    made_dense,
    norms,
    orders,
    pairs,
    parts,
    products,
    put_back,
    reduced,
    reduced_times,
    retained,
    sampled,
    seeded,
    shapes_of_as_many,
    spread_where,
    taken,
)
from workbench import ops

REDUCED = Call(params=any_axes)
DEFAULTS = {
    "unary": Call(),
    "scalars": Call(params=any_scalar),
    "binary": Call(pairs),
    "fill": Call(lambda base: [[]], filled, meaning=made_dense("zeros")),
    "reductions": REDUCED,
}
UNIT, POSITIVE, ABOVE, APART = (Call(kinds=(kind,)) for kind in ("unit", "positive", "above", "apart"))
TWINS = Call(lambda base: [[base, base]])
LABELLED = Call(lambda base: [[base, base]], ranks=(2,))
CLASSED = Call(lambda base: [[base, base[:1]]], kinds=("real", "classes"), ranks=(2,))
FACTORS = {1: ("dense",), 2: ("dense",)}
"""Formats of factors and heads, which are dense alone."""
AT = {1: ("dense",)}
CALLS: dict[str, Call] = {
    **dict.fromkeys(("arcsin", "arctanh", "arccos"), UNIT),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "rsqrt"), POSITIVE),
    "arccosh": ABOVE,
    "reciprocal": APART,
    **dict.fromkeys(("softmax", "log_softmax"), Call(params=any_axis)),
    "power": Call(pairs, kinds=("positive", "above")),
    "power_scalar": Call(params=any_scalar, kinds=("positive",)),
    "scalar_power": Call(params=lambda base: [{"scalar": 1.5}, {"scalar": 0.5}]),
    **dict.fromkeys(("divide", "mod"), Call(pairs, kinds=("real", "apart"))),
    **dict.fromkeys(("divide_scalar", "mod_scalar"), Call(params=lambda base: [{"scalar": 1.5}, {"scalar": -2.0}])),
    **dict.fromkeys(("divide_into_scalar", "scalar_mod"), Call(params=any_scalar, kinds=("apart",))),
    **dict.fromkeys(
        ("stored_add_scalar", "stored_subtract_scalar"), Call(params=any_scalar, differs="the pattern", pattern=0)
    ),
    "add_n": Call(lambda base: [[base] * count for count in (1, 2, 3, 5)]),
    "sum_to_shape_of": Call(lambda base: [[base, base], [base, base[1:]], [base, (1,) * len(base)]]),
    "stored_divide": Call(lambda base: [[base, base]], kinds=("real", "apart"), pattern=0),
    **{name: Call(lambda base: [[]], seeded, meaning=made_dense(name)) for name in ("random_uniform", "random_normal")},
    "norm": Call(params=norms),
    "count_stored": Call(params=any_axes, differs="what is stored"),
    "product_of_others": Call(params=lambda base: [{"axis": None}, {"axis": 0}, {"axis": -1}]),
    "slope_of_others": Call(lambda base: [[base, base]], lambda base: [{"axis": None}, {"axis": 0}, {"axis": -1}]),
    **dict.fromkeys(("keep_axes", "spread", "slope_of_square_sum"), Call(cases=reduced)),
    "spread_times": Call(cases=reduced_times),
    "dense_unless_alike": TWINS,
    "at_places_of": Call(
        lambda base: [[base, base]],
        lambda base: [{}, {"rows": True}],
        differs="the pattern",
        meaning=first_of,
        pattern=1,
    ),
    "places_wanted": Call(lambda base: [[base, base, base]], differs="what is stored"),
    "spread_at": Call(cases=spread_where, differs="the pattern", pattern=2),
    "dot": Call(cases=products, ranks=(2,)),
    "sampled_dot": Call(cases=sampled, ranks=(2,), differs="the pattern", pattern=0),
    "where": Call(lambda base: [[base] * 3, [base, base[-1:], base], [(*base[:-1], 1), base, base]]),
    "concat": Call(parts, lambda base: [{"axis": 0}], ranks=(1, 2, 3)),
    "part_of_concat": Call(cases=joined, ranks=(1, 2, 3)),
    **dict.fromkeys(
        ("clip", "is_within"), Call(params=lambda base: [{"low": -1.0, "high": 1.5}, {"low": 0.5, "high": 1.0}])
    ),
    "slice": Call(params=cuts, ranks=(1, 2, 3)),
    "slice_gradient": Call(cases=cut, ranks=(1, 2, 3)),
    "take": Call(cases=taken, kinds=("real", "rows"), held=AT, ranks=(1, 2, 3)),
    "take_gradient": Call(cases=given_back, kinds=("real", "rows", "real"), of=2, held=AT, ranks=(1, 2, 3)),
    "retain": Call(
        lambda base: [[base, (2,)]],
        kinds=("real", "rows"),
        held={0: ("row_sparse",)} | AT,
        ranks=(1, 2, 3),
        meaning=retained,
    ),
    "rows_of": Call(
        lambda base: [[base, (2,)]],
        kinds=("real", "rows"),
        held={0: ("dense", "row_sparse")} | AT,
        ranks=(1, 2, 3),
        meaning=retained,
        differs="the rows asked for",
    ),
    "embedding": Call(cases=looked_up, kinds=("rows", "real"), of=1, ranks=(2, 3)),
    "embedding_gradient": Call(
        cases=put_back, kinds=("real", "rows", "real"), of=2, ranks=(2, 3), held=AT, meaning=looked_up_sums
    ),
    "interactions": Call(lambda base: [[base, (base[1], 2)]], ranks=(2,), held=FACTORS),
    "interactions_gradient": Call(
        lambda base: [[base, (base[1], 2), (base[0], 1)]],
        lambda base: [{}, {"sparse_grad": False}],
        ranks=(2,),
        held=FACTORS,
    ),
    "field_sums": Call(
        lambda base: [[base, (base[1], 2)]], lambda base: [{"fields": (1, base[1] - 1)}], ranks=(2,), held=FACTORS
    ),
    "field_sums_gradient": Call(
        lambda base: [[base, (base[1], 2), (base[0], 4)]],
        lambda base: [{"fields": (1, base[1] - 1)}, {"fields": [base[1] - 1, 1], "sparse_grad": False}],
        ranks=(2,),
        held={1: ("dense",), 2: ("dense",)},
    ),
    "fully_connected": Call(lambda base: [[base, (2, base[1])], [base, (2, base[1]), (2,)]], ranks=(2,)),
    "cast": Call(params=lambda base: [{"dtype": "float64"}]),
    "cast_like": TWINS,
    "to_format": Call(params=lambda base: [{"format": name} for name in held_by(base)], meaning=lambda x, format: x),
    "transpose": Call(params=orders),
    "reshape": Call(params=shapes_of_as_many),
    "reshape_like": Call(lambda base: [[base, base[::-1]], [base, base]]),
    **dict.fromkeys(("squared_loss", "logistic_loss"), LABELLED),
    "softmax_loss": CLASSED,
    "softmax_output": CLASSED,
    "slope_of_softmax": CLASSED,
    **{f"{name}_output": LABELLED for name in ("linear_regression", "logistic_regression", "mae_regression")},
    "slope_of_output": LABELLED,
    "slope_of_loss": Call(
        LABELLED.shapes, lambda base: [{"loss": "squared_loss"}, {"loss": "logistic_loss"}], ranks=(2,)
    ),
}


def call_of(op: ops.Op) -> Call:
    """How to call the operator."""
    return CALLS.get(op.name) or DEFAULTS.get(op.family) or Call()


def formats_for(call: Call, place: int, x: np.ndarray) -> tuple[str, ...]:
    """The formats that the input may be held in."""
    possible = held_by(x.shape) if x.dtype.kind == "f" else ("dense",)
    return tuple(name for name in possible if name in call.held.get(place, possible))


def maps_stored_values(name: str) -> bool:
    op = ops.get(name)
    return op.family in ("unary", "scalars") and any(
        rule.inputs == ("coo",) and rule.result == "coo" for rule in op.rules
    )


def targets_of_paths(name: str, form: str) -> set[tuple[str, str]]:
    """What a case of an operator with its first input in a format must show, for tests marked `covering`.

    Each operator is tested dense and in the formats for which it has a rule of its own; formats that it makes dense
    are tested with one operator of each family.
    """
    op = ops.get(name)
    has_path = form == "dense" or any(rule.inputs[:1] == (form,) for rule in op.rules)
    return {(name, form)} if has_path else {(op.family, form)}
