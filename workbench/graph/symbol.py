"""Symbols: nodes that say what is to be computed, and groups of them. They are never changed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats as known_formats
from workbench import ops
from workbench.graph import explanation, inference, writing
from workbench.graph.nodes import GraphError, merged, named, ordered
from workbench.ops.contract import Op, Symbolic

# Python's operators on symbols: each adds the node of the operator of that meaning.


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


Shape = tuple[int | None, ...]
NOTHING: Mapping[str, Any] = MappingProxyType({})
_scope: ContextVar[Mapping[str, Any]] = ContextVar("scope", default=NOTHING)


class Graph(ABC):
    """Base of a symbol and a group: some heads, and all the nodes that these need."""

    @property
    @abstractmethod
    def heads(self) -> tuple["Symbol", ...]:
        """The nodes whose values are the outputs."""

    def nodes(self) -> list["Symbol"]:
        """All nodes, inputs before their users, depth first in order of first use."""
        return ordered(self.heads)

    def names(self) -> dict["Symbol", str]:
        """The name of every node in this graph; automatic ones are numbered in the order of `nodes`."""
        return named(self.nodes())

    def variables(self) -> dict[str, "Symbol"]:
        """Variables by name, in depth-first order of first use."""
        return {node.name: node for node in self.nodes() if node.kind == "variable"}

    def arguments(self) -> list[str]:
        """Names of the variables, in depth-first order of first use."""
        return list(self.variables())

    def outputs(self) -> list[str]:
        """Names of the heads."""
        names = self.names()
        return [names[head] for head in self.heads]

    def infer(
        self,
        shapes: Mapping[str, Shape] | None = None,
        dtypes: Mapping[str, DTypeLike] | None = None,
        formats: Mapping[str, str] | None = None,
        *,
        densities: Mapping[str, float] | None = None,
        partial: bool = False,
    ) -> inference.Inference:
        """Shape, dtype, format and rule of every node, before anything runs; no values are read. `GraphError`.

        What is given by the name of a variable completes what it declares, formats and dtypes take its place. With
        `partial` what cannot be known is None; else missing shapes are an error that names the variables. `densities`
        are for the prediction of bytes alone.
        """
        return inference.infer(self, shapes, dtypes, formats, densities=densities, partial=partial)

    def explain(
        self,
        shapes: Mapping[str, Shape] | None = None,
        dtypes: Mapping[str, DTypeLike] | None = None,
        formats: Mapping[str, str] | None = None,
        *,
        densities: Mapping[str, float] | None = None,
    ) -> explanation.Explanation:
        """Explain every node: its result, formats, kernel and bytes, and what it makes dense.

        Takes what `infer` takes. The result prints as text, shows itself in notebooks, and has `svg()`.
        """
        return explanation.Explanation(self.infer(shapes, dtypes, formats, densities=densities))

    def to_json(self) -> str:
        """The graph as text, which `from_json` reads; the same graph always gives the same text (`GraphError`)."""
        return writing.text(self)


@final
class Symbol(Graph, Arithmetic, Symbolic):
    """A node: a variable, a constant, or an operator on other nodes.

    `given` is its name where one was given; `kind` is variable, constant or the operator's name; `op` the operator or
    None; `params` all parameters of the operator; `value` that of a constant; `attributes` of a variable are format,
    shape, dtype, init, rate_multiplier and decay_multiplier.
    """

    __slots__ = ("attributes", "given", "inputs", "op", "own_name", "params", "taken", "value")

    given: str | None
    op: Op | None
    inputs: tuple["Symbol", ...]
    params: Mapping[str, Any]
    attributes: Mapping[str, Any]
    value: Any
    own_name: str | None
    """Name given, or the automatic one once `name` was read."""
    taken: dict[str, "Symbol"]
    """Named nodes among this one and all that it depends on, by name."""

    def __init__(
        self,
        given: str | None = None,
        op: Op | None = None,
        inputs: tuple["Symbol", ...] = (),
        params: Mapping[str, Any] = NOTHING,
        attributes: Mapping[str, Any] = NOTHING,
        value: Any = None,
    ) -> None:
        put = object.__setattr__
        put(self, "given", _checked_name(given))
        put(self, "op", op)
        put(self, "inputs", inputs)
        put(self, "params", MappingProxyType(dict(params)))
        put(self, "attributes", MappingProxyType(dict(attributes)))
        put(self, "value", value)
        put(self, "own_name", given)
        put(self, "taken", merged(inputs))
        if given is not None:
            if given in self.taken:
                raise GraphError(
                    f"The name {given!r} was given to {self.described}, but an input of it has it already: "
                    f"{self.taken[given].described}. Give another name."
                )
            put(self, "taken", self.taken | {given: self})

    @property
    def heads(self) -> tuple["Symbol", ...]:
        """The symbol itself, alone, as a group has its symbols."""
        return (self,)

    @property
    def kind(self) -> str:
        """`variable`, `constant`, or the name of the operator."""
        if self.op is not None:
            return self.op.name
        return "variable" if self.value is None else "constant"

    @property
    def name(self) -> str:
        """The name given, or the automatic one in the graph of which this is the only head."""
        if self.own_name is not None:
            return self.own_name
        name = self.names()[self]
        object.__setattr__(self, "own_name", name)
        return name

    @property
    def operator(self) -> Op:
        """The operator of a node. Raises GraphError for a variable or a constant."""
        if self.op is None:
            raise GraphError(f"{self.name} is {self.described}, which has no operator.")
        return self.op

    @property
    def described(self) -> str:
        """Name of the symbol in a few words, for messages."""
        if self.kind == "variable":
            shown = {key: value for key, value in self.attributes.items() if key in ("format", "shape", "dtype")}
            return f"a variable ({', '.join(f'{key} {value}' for key, value in shown.items())})"
        return "a constant" if self.kind == "constant" else f"a node of {self.kind}"

    def apply(self, op: Op, inputs: tuple, params: dict[str, Any], name: str | None) -> "Symbol":
        """The symbol of `op` on `inputs`; arrays among them become constants."""
        nodes = tuple(_as_symbol(value, op) for value in inputs)
        params = {key: canonical(value, f"{op.name}: {key}") for key, value in params.items()}
        return Symbol(name, op, nodes, params, _scope.get())

    def __repr__(self) -> str:
        names = self.names()
        inner = ", ".join(names[entry] for entry in self.inputs)
        return f"<Symbol {names[self]}: {self.kind}({inner})>" if self.op else f"<Symbol {names[self]}: {self.kind}>"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Symbol.{name} cannot be set; symbols are never changed. Build a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Symbol.{name} cannot be deleted.")

    def __bool__(self) -> NoReturn:
        raise TypeError("A symbol is neither true nor false: it has no value before it is bound and run.")


@contextmanager
def scope(**attributes: str) -> Iterator[None]:
    """Nodes added within the block get these attributes."""
    token = _scope.set(MappingProxyType({**_scope.get(), **attributes}))
    try:
        yield
    finally:
        _scope.reset(token)


def variable(
    name: str,
    format: str = "dense",
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    init: Any = None,
    rate_multiplier: float = 1.0,
    decay_multiplier: float = 1.0,
) -> Symbol:
    """A symbol whose value comes from outside. In `shape` None is a length that is not known yet.

    `init` says how a module fills it at the start, the multipliers what an optimizer multiplies its rate and weight
    decay by. A format, shape or multiplier that cannot be is refused.
    """
    if name is None:
        raise GraphError("A variable needs a name, by which its value is given; None came.")
    attributes = {
        "format": known_formats.get(format).name,
        "shape": None if shape is None else _checked_shape(name, shape),
        "dtype": None if dtype is None else np.dtype(dtype).name,
        "init": init,
        "rate_multiplier": _checked_multiplier(name, "rate_multiplier", rate_multiplier),
        "decay_multiplier": _checked_multiplier(name, "decay_multiplier", decay_multiplier),
    }
    return Symbol(name, attributes=attributes)


def constant(value: Any, name: str | None = None) -> Symbol:
    """A symbol whose value is this array, in the format it is held in; lists become float32."""
    _, value = known_formats.enter(np.array(value, np.float32) if isinstance(value, list) else value)
    return Symbol(name, value=value)


def canonical(value: Any, what: str) -> Any:
    """A parameter in the one form that graphs hold: no lists, no NumPy scalars, types by name."""
    if isinstance(value, list | tuple):
        return tuple(canonical(entry, what) for entry in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise GraphError(
        f"{what} is a {type(value).__name__}. Parameters are numbers, strings, None, types and tuples of them; "
        "an array belongs among the inputs."
    )


def _as_symbol(value: Any, op: Op) -> Symbol:
    if isinstance(value, Symbol):
        return value
    if isinstance(value, int | float):
        raise GraphError(f"{op.name} takes arrays and symbols; the number {value} came. Give np.float32([{value}]).")
    return constant(value)


def _checked_name(name: str | None) -> str | None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"A name is a string; {name!r} came.")
    if name == "":
        raise GraphError("A name is empty; give at least one character.")
    return name


def _checked_shape(name: str, shape: Any) -> Shape:
    if not isinstance(shape, tuple | list) or any(not _is_length(length) for length in shape):
        raise GraphError(
            f"The shape of {name} is {shape!r}. Allowed: a tuple of whole numbers from 0, None where the length is "
            "not known yet."
        )
    return tuple(None if length is None else int(length) for length in shape)


def _is_length(length: Any) -> bool:
    if length is None:
        return True
    return isinstance(length, int | np.integer) and not isinstance(length, bool) and int(length) >= 0


def _checked_multiplier(name: str, what: str, value: Any) -> float:
    if not isinstance(value, int | float | np.integer | np.floating) or not 0 <= value < 1e300:  # it has a float
        raise GraphError(f"{what} of {name} is {value!r}. Allowed: a finite number from 0.")
    return float(value)
