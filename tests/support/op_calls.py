"""What a row of the table in `op_examples.py` says of an operator, and the shapes and parameters that rows share."""

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
    that is none. `differs` says of an operator that its result depends on what is stored, not on values alone;
    `pattern` numbers the input at whose places alone it computes.
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
    pattern: int | None = None

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


def spread_where(base: Shape) -> Cases:
    """The result of a reduction, the array, and an array of its shape or one that is broadcast to it."""
    small = [base[-1:]] if base else []
    return [([*shapes, like], params) for shapes, params in reduced(base) for like in (base, *small)]


def first_of(x: np.ndarray, like: np.ndarray, rows: bool) -> np.ndarray:
    return x


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
