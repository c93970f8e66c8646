"""Arithmetic signs of `RowSparse`: `+ - * / ** % @ < <= > >= .T`, `abs` and unary minus, computed by `workbench.ops`.

Operators are built on formats, so the arrows allow no import of them here. `workbench.ops`, when it is imported, puts
its functions in by `fill`; until then a sign raises a `TypeError` that says so.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

from workbench.formats import arrays
from workbench.formats.contract import FormatError

SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
    "mod": "%",
    "dot": "@",
    "negative": "unary -",
    "abs": "abs",
    "transpose": ".T",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""Names that `fill` knows, and the sign that each stands behind."""

_functions: dict[str, Callable] = {}


def fill(functions: Mapping[str, Callable]) -> None:
    """Have signs computed by these functions, named as in `SIGNS`; other names are refused (`FormatError`)."""
    if unknown := sorted(set(functions) - set(SIGNS)):
        raise FormatError(f"There is no sign for {', '.join(unknown)}; the names are {', '.join(SIGNS)}.")
    _functions.update(functions)


def apply(name: str, *operands: Any) -> Any:
    """Apply the function behind the sign to its operands; a `TypeError` where none was put in."""
    if name not in _functions:
        raise TypeError(f"{SIGNS[name]} of row_sparse arrays is computed by workbench.ops; write: import workbench.ops")
    return _functions[name](*operands)


class Arithmetic:
    """The signs, for a class to inherit.

    `x += y` and the like compute `x + y` and assign it to `x`, which keeps its format and type.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy then leaves `array + x` to `__radd__`

    def __add__(self, other: Any) -> Any:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return apply("add", other, self)

    def __iadd__(self, other: Any) -> Self:
        return arrays.assign(self, apply("add", self, other))

    def __sub__(self, other: Any) -> Any:
        return apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply("subtract", other, self)

    def __isub__(self, other: Any) -> Self:
        return arrays.assign(self, apply("subtract", self, other))

    def __mul__(self, other: Any) -> Any:
        return apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply("multiply", other, self)

    def __imul__(self, other: Any) -> Self:
        return arrays.assign(self, apply("multiply", self, other))

    def __truediv__(self, other: Any) -> Any:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply("divide", other, self)

    def __itruediv__(self, other: Any) -> Self:
        return arrays.assign(self, apply("divide", self, other))

    def __pow__(self, other: Any) -> Any:
        return apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return apply("power", other, self)

    def __mod__(self, other: Any) -> Any:
        return apply("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return apply("mod", other, self)

    def __matmul__(self, other: Any) -> Any:
        return apply("dot", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return apply("dot", other, self)

    def __neg__(self) -> Any:
        return apply("negative", self)

    def __abs__(self) -> Any:
        return apply("abs", self)

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy has it
        """The transpose, in the format that `ops.transpose` gives."""
        return apply("transpose", self)

    def __lt__(self, other: Any) -> Any:
        return apply("less", self, other)

    def __le__(self, other: Any) -> Any:
        return apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return apply("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return apply("greater_equal", self, other)
