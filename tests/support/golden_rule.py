"""A row of the table of differences, and what the rows ask of a case, be it one of arrays or one of inference alone."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """In `group`, for the operators (or optimizers, models) `ops`, none meaning all, `field` may differ.

    `group` and `field` may be several, with spaces between; each field must be needed by a case of each group.
    `when(case)` narrows the row to some cases. Where fallback or stype differ, ours densifies nothing and gives a
    sparse format, or with `warns` the other way round.
    """

    group: str
    ops: tuple[str, ...]
    field: str
    reason: str
    when: Callable[[Mapping[str, Any]], bool] | None = None
    warns: bool = False

    def matches(self, group: str, case: Mapping[str, Any]) -> bool:
        """Whether the row is about this case."""
        name = next((case[key] for key in ("op", "optimizer", "model") if key in case), "")
        about = group in self.group.split() and (not self.ops or name in self.ops)
        return about and (self.when is None or self.when(case))

    def allows(self, field: str, came: Any) -> bool:
        """Whether the field may differ so, in a case that the row is about."""
        if field not in self.field.split():
            return False
        if field == "fallback":
            return bool(came) == self.warns
        return field != "stype" or (came in ("dense", "default")) == self.warns


def held(case: Mapping[str, Any]) -> tuple[str, ...]:
    """The formats that the inputs were recorded in."""
    if "inputs" in case:
        return tuple(reference["stype"] for reference in case["inputs"])
    return tuple(filter(None, case["input_stypes"].split("|")))


def shapes(case: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    if "inputs" in case:
        return tuple(tuple(reference["shape"]) for reference in case["inputs"])
    return tuple(tuple(map(int, word.split("x"))) for word in case["input_shapes"].split("|"))


def params(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters, which the table of inference has as text."""
    return json.loads(case["params"] or "{}") if isinstance(case["params"], str) else case["params"]


def held_in(*wanted: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether the inputs of a case were recorded in these formats."""
    return lambda case: held(case) == wanted


def any_sparse(case: Mapping[str, Any]) -> bool:
    return any(word != "default" for word in held(case))


def writes_to(case: Mapping[str, Any]) -> bool:
    return bool(case.get("out_arg"))


def whole(case: Mapping[str, Any]) -> bool:
    """Whether no sparse input is broadcast: the others have at most its shape."""
    result = np.broadcast_shapes(*shapes(case))
    return all(shape == result for shape, word in zip(shapes(case), held(case), strict=True) if word != "default")


def two_of_a_kind(case: Mapping[str, Any]) -> bool:
    """Two of one sparse format, with one shape."""
    return len(set(held(case))) == 1 and any_sparse(case) and len(set(shapes(case))) == 1


def one_dense(case: Mapping[str, Any]) -> bool:
    return any_sparse(case) and "default" in held(case)


def named(*names: str, prefixes: tuple[str, ...] = ("_", "broadcast_")) -> tuple[str, ...]:
    return tuple(prefix + name for prefix in prefixes for name in names)
