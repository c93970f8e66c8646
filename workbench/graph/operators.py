"""Python's operators on symbols: each adds the node of the operator of that meaning."""

from workbench import ops


class Arithmetic:
    """Numbers on either side become parameters, arrays become constants; `==` is a comparison by element."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays on the left leave the operation to the symbol

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __add__(self, other):
        return ops.get("add")(self, other)

    def __radd__(self, other):
        return ops.get("add")(other, self)

    def __sub__(self, other):
        return ops.get("subtract")(self, other)

    def __rsub__(self, other):
        return ops.get("subtract")(other, self)

    def __mul__(self, other):
        return ops.get("multiply")(self, other)

    def __rmul__(self, other):
        return ops.get("multiply")(other, self)

    def __truediv__(self, other):
        return ops.get("divide")(self, other)

    def __rtruediv__(self, other):
        return ops.get("divide")(other, self)

    def __mod__(self, other):
        return ops.get("mod")(self, other)

    def __rmod__(self, other):
        return ops.get("mod")(other, self)

    def __pow__(self, other):
        return ops.get("power")(self, other)

    def __rpow__(self, other):
        return ops.get("power")(other, self)

    def __matmul__(self, other):
        return ops.get("dot")(self, other)

    def __rmatmul__(self, other):
        return ops.get("dot")(other, self)

    def __neg__(self):
        return ops.get("negative")(self)

    def __abs__(self):
        return ops.get("abs")(self)

    def __eq__(self, other):
        return ops.get("equal")(self, other)

    def __ne__(self, other):
        return ops.get("not_equal")(self, other)

    def __gt__(self, other):
        return ops.get("greater")(self, other)

    def __ge__(self, other):
        return ops.get("greater_equal")(self, other)

    def __lt__(self, other):
        return ops.get("less")(self, other)

    def __le__(self, other):
        return ops.get("less_equal")(self, other)
