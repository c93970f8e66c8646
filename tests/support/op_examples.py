"""How each operator is called in tests: shapes of its inputs, what they hold, parameters. One table for all tests.

An operator that is registered and not named here is called by the default of its family, or of the number of its
inputs; one that cannot be called so fails the tests, and gets a row.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import formats, ops

Shape = tuple[int, ...]
MATRICES = ("csr", "csc", "coo")
SCALARS = (0.0, 1.5, -0.75, 2.0, 3.0)
Cases = list[tuple[list[Shape], dict[str, Any]]]


@dataclass(frozen=True)
class Call:
    """How an operator is called: `cases(base)` lists shapes of the inputs with parameters; `kinds` says what they hold.

    Without `cases` every list of shapes in `shapes(base)` goes with all parameters in `params(base)`. Kinds: `real` are
    any numbers, `positive`, `unit` (within (-1, 1)), `above` (from one on), `apart` (away from zero), `rows` (numbers
    of rows, or of anything along the shortest axis, of the input that `of` numbers), `classes` (of its last axis).
    `ranks` are those of the base shape; `held` narrows the formats of an input; `meaning` stands for `Op.dense` where
    that is none. `differs` says of an operator that its result depends on what is stored, not on values alone.
    """

    shapes: Callable[[Shape], list[list[Shape]]] = lambda base: [[base]]
    params: Callable[[Shape], list[dict[str, Any]]] = lambda base: [{}]
    cases: Callable[[Shape], Cases] | None = None
    kinds: tuple[str, ...] = ("real",)
    of: int = 0
    ranks: tuple[int, ...] = (0, 1, 2, 3)
    held: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    meaning: Callable[..., np.ndarray] | None = None
    differs: str = ""

    def kind(self, place: int) -> str:
        return self.kinds[min(place, len(self.kinds) - 1)]

    def listed(self, base: Shape) -> Cases:
        if self.cases is not None:
            return self.cases(base)
        return [(shapes, params) for shapes in self.shapes(base) for params in self.params(base)]


def pairs(base: Shape) -> list[list[Shape]]:
    """Equal shapes, and those that are broadcast from either side."""
    small = [base[-1:], tuple(1 for _ in base), (*base[:-1], 1)] if base else []
    return [[base, base], *([base, other] for other in small), *([other, base] for other in small)]


def any_scalar(base: Shape) -> list[dict[str, Any]]:
    return [{"scalar": scalar} for scalar in SCALARS]


def any_axis(base: Shape) -> list[dict[str, Any]]:
    return [{"axis": axis} for axis in range(-len(base), len(base))]


def any_axes(base: Shape) -> list[dict[str, Any]]:
    axes = [None, *range(-1, len(base)), tuple(range(len(base)))]
    return [{"axis": axis, "keepdims": keep} for axis in axes for keep in (False, True)]


def norms(base: Shape) -> list[dict[str, Any]]:
    return [params | {"ord": order} for params in any_axes(base) for order in (1, 2)]


def held_by(base: Shape) -> tuple[str, ...]:
    """The formats that hold such an array."""
    if not base:
        return ("dense",)
    return formats.names() if len(base) == 2 else ("dense", "row_sparse")


def filled(base: Shape) -> list[dict[str, Any]]:
    return [{"shape": base, "format": name, "dtype": "float64"} for name in held_by(base)]


def seeded(base: Shape) -> list[dict[str, Any]]:
    return [params | {"seed": 3} for params in filled(base)]


def made_dense(name: str) -> Callable[..., np.ndarray]:
    """The operator that makes arrays, with dense for the format."""
    return lambda format, **params: ops.get(name)(format="dense", **params)


def looked_up_sums(head: np.ndarray, ids: np.ndarray, like: np.ndarray, sparse_grad: bool) -> np.ndarray:
    total = np.zeros_like(like)
    np.add.at(total, ids, head)
    return total


def reduced(base: Shape) -> Cases:
    """The result of a reduction, and the array."""
    return [([np.zeros(base).sum(**params).shape, base], params) for params in any_axes(base)]


def reduced_times(base: Shape) -> Cases:
    """The result of a reduction, a factor of the array's shape or one that is broadcast to it, and the array."""
    factors = [base, base[-1:]] if base else [base]
    asked = [params | {"mean": mean} for params in any_axes(base) for mean in (False, True)]
    return [
        ([np.zeros(base).sum(axis=params["axis"], keepdims=params["keepdims"]).shape, factor, base], params)
        for params in asked
        for factor in factors
    ]


def products(base: Shape) -> Cases:
    rows, columns = base
    asked = [{}, {"result": "csr"}, {"result": "row_sparse"}, {"result": "dense"}]
    sides = [(a, b) for a in (False, True) for b in (False, True)]
    engines = [{"engine": "vendor"}, {"engine": "dense"}, {"engine": "vendor", "result": "dense"}]
    return [
        *(([[base, base[::-1]][a], [(columns, 2), (2, columns)][b]], {"transpose_a": a, "transpose_b": b} | more)
          for a, b in sides for more in (*asked, *engines)),
        ([base, (columns,)], {}),
        ([base, (rows,)], {"transpose_a": True}),
    ]  # fmt: skip


def sampled(base: Shape) -> Cases:
    rows, columns = base
    return [
        ([base, [(rows, 2), (2, rows)][a], [(2, columns), (columns, 2)][b]], {"transpose_a": a, "transpose_b": b})
        for a in (False, True)
        for b in (False, True)
    ]


def parts(base: Shape) -> list[list[Shape]]:
    """The base and one that differs from it along the first axis."""
    return [[base], [base, (2, *base[1:]), base]]


def joined(base: Shape) -> Cases:
    return [([(base[0] + 2, *base[1:]), *parts(base)[1][:2]], {"axis": 0, "place": place}) for place in (0, 1)]


def cuts(base: Shape) -> list[dict[str, Any]]:
    whole = [None] * len(base)
    return [
        {"begin": [1], "end": [3]},
        {"begin": [0], "end": [0]},
        {"begin": whole, "end": whole, "step": [2] * len(base)},
    ]


def bounds(base: Shape) -> list[dict[str, Any]]:
    return [{"low": -1.0, "high": 1.5}, {"low": 0.5, "high": 1.0}]


def cut(base: Shape) -> Cases:
    return [([np.zeros(base)[1:3].shape, base], {"begin": [1], "end": [3]})]


def taken(base: Shape) -> Cases:
    return [([base, (3,)], {"axis": 0}), ([base, (2, 2)], {"axis": 0}), ([base, (3,)], {"axis": -1})]


def given_back(base: Shape) -> Cases:
    return [([(3, *base[1:]), (3,), base], {"axis": 0})]


def looked_up(base: Shape) -> Cases:
    return [([(3,), base], {"sparse_grad": sparse}) for sparse in (False, True)]


def put_back(base: Shape) -> Cases:
    return [([(3, *base[1:]), (3,), base], {"sparse_grad": sparse}) for sparse in (False, True)]


def orders(base: Shape) -> list[dict[str, Any]]:
    return [{}, *({"axes": axes} for axes in itertools.permutations(range(len(base))))]


def shapes_of_as_many(base: Shape) -> list[dict[str, Any]]:
    size = int(np.prod(base))
    return [{"shape": shape} for shape in ((size,), (size, 1), base[::-1], (*base, 1))]


def retained(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(np.isin(np.arange(len(x)), rows).reshape(-1, *(1 for _ in x.shape[1:])), x, 0)


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
    **dict.fromkeys(("stored_add_scalar", "stored_subtract_scalar"), Call(params=any_scalar, differs="the pattern")),
    "add_n": Call(lambda base: [[base] * count for count in (1, 2, 3, 5)]),
    "sum_to_shape_of": Call(lambda base: [[base, base], [base, base[1:]], [base, (1,) * len(base)]]),
    "stored_divide": Call(lambda base: [[base, base]], kinds=("real", "apart")),
    **{name: Call(lambda base: [[]], seeded, meaning=made_dense(name)) for name in ("random_uniform", "random_normal")},
    "norm": Call(params=norms),
    "count_stored": Call(params=any_axes, differs="what is stored"),
    "product_of_others": Call(params=lambda base: [{"axis": None}, {"axis": 0}, {"axis": -1}]),
    "slope_of_others": Call(lambda base: [[base, base]], lambda base: [{"axis": None}, {"axis": 0}, {"axis": -1}]),
    **dict.fromkeys(("keep_axes", "spread", "slope_of_square_sum"), Call(cases=reduced)),
    "spread_times": Call(cases=reduced_times),
    "dense_unless_alike": TWINS,
    "dot": Call(cases=products, ranks=(2,)),
    "sampled_dot": Call(cases=sampled, ranks=(2,), differs="the pattern"),
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
    "embedding": Call(cases=looked_up, kinds=("rows", "real"), of=1, ranks=(2, 3)),
    "embedding_gradient": Call(
        cases=put_back, kinds=("real", "rows", "real"), of=2, ranks=(2, 3), held=AT, meaning=looked_up_sums
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
