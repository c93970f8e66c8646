"""Symbols: immutable nodes of a graph that describe a computation, and groups of them."""

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
from workbench.formats.row_sparse import Arithmetic
from workbench.graph import explanation, inference
from workbench.graph.inference import GraphError, merge_nodes, name_nodes, order_nodes
from workbench.ops.contract import Op, Symbolic

Shape = tuple[int | None, ...]
NOTHING: Mapping[str, Any] = MappingProxyType({})
_scope: ContextVar[Mapping[str, Any]] = ContextVar("scope", default=NOTHING)


class Graph(ABC):
    """Base class of Symbol and Group: some output nodes (heads), and all nodes that these need."""

    @property
    @abstractmethod
    def heads(self) -> tuple["Symbol", ...]:
        """Return the nodes whose values are the outputs, in order."""

    def nodes(self) -> list["Symbol"]:
        """Return all nodes, inputs before their users, depth first in order of first use.

        Returns
        -------
        list of Symbol
            The nodes.

        Examples
        --------
        >>> [node.kind for node in (variable("x") + variable("y")).nodes()]
        ['variable', 'variable', 'add']
        """
        return order_nodes(self.heads)

    def names(self) -> dict["Symbol", str]:
        """Return {node: name} of all nodes in this graph; automatic names are counted in the order of `nodes`."""
        return name_nodes(self.nodes())

    def variables(self) -> dict[str, "Symbol"]:
        """Return {name: node} of the variables, in depth-first order of first use."""
        return {node.name: node for node in self.nodes() if node.kind == "variable"}

    def arguments(self) -> list[str]:
        """Return the names of the variables, in depth-first order of first use.

        Returns
        -------
        list of str
            Names.

        Examples
        --------
        >>> (variable("x") + variable("y")).arguments()
        ['x', 'y']
        """
        return list(self.variables())

    def outputs(self) -> list[str]:
        """Return the names of the heads.

        Returns
        -------
        list of str
            Names.

        Examples
        --------
        >>> (variable("x") + variable("y")).outputs()
        ['add0']
        """
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
        """Infer shape, dtype, format and rule of every node before anything runs.

        Parameters
        ----------
        shapes : mapping of str to tuple, optional
            Shapes by variable; they complete what is declared (None is an unknown length).
        dtypes, formats : mapping of str, optional
            dtypes and formats by variable; they replace what is declared.
        densities : mapping of str to float, optional
            Densities by variable, for the prediction of bytes.
        partial : bool, default False
            Return None for what cannot be known; else missing shapes are an error.

        Returns
        -------
        Inference
            Facts by node or name.

        Raises
        ------
        GraphError
            If something does not fit or is missing.

        Examples
        --------
        >>> (variable("x", shape=(2, 3)) + variable("y", shape=(2, 3))).infer()["add0"].shape
        (2, 3)
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
        """Explain every node: result, formats, kernel and bytes, and what it makes dense.

        Parameters
        ----------
        shapes, dtypes, formats, densities : mapping, optional
            As in `infer`.

        Returns
        -------
        Explanation
            Prints as a table, displays in notebooks, and has `svg()`.

        Raises
        ------
        GraphError
            If something does not fit or is missing.

        Examples
        --------
        >>> variable("x", shape=(2, 3)).explain().densified
        []
        """
        return explanation.Explanation(self.infer(shapes, dtypes, formats, densities=densities))

    def to_json(self) -> str:
        """Return the graph as JSON text; the same graph always gives the same text.

        Returns
        -------
        str
            Text for `from_json`.

        Raises
        ------
        GraphError
            If a constant cannot be written.

        Examples
        --------
        >>> variable("x").to_json() == variable("x").to_json()
        True
        """
        return inference.text(self)


@final
class Symbol(Graph, Arithmetic, Symbolic):
    """A node: a variable, a constant, or an operator on other nodes.

    Attributes
    ----------
    given : str or None
        Name given by the user.
    kind : str
        "variable", "constant" or the name of the operator.
    op : Op or None
        The operator.
    inputs : tuple of Symbol
        Inputs of the operator.
    params : mapping
        All parameters of the operator.
    value : array or None
        Value of a constant.
    attributes : mapping
        Of a variable: format, shape, dtype, init, rate_multiplier and decay_multiplier.

    Notes
    -----
    Python's operators add the node of the operator of that meaning: numbers become parameters, arrays constants; `==`
    compares elementwise.
    """

    __slots__ = ("attributes", "given", "inputs", "kind", "op", "own_name", "params", "taken", "value")

    given: str | None
    op: Op | None
    inputs: tuple["Symbol", ...]
    params: Mapping[str, Any]
    attributes: Mapping[str, Any]
    value: Any
    kind: str
    """"variable", "constant", or the name of the operator."""
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
        """Build an immutable node; `given` None: the name is automatic. Raises GraphError if names collide."""
        put = object.__setattr__
        put(self, "given", _checked_name(given))
        put(self, "op", op)
        put(self, "inputs", inputs)
        put(self, "params", MappingProxyType(dict(params)))
        put(self, "attributes", MappingProxyType(dict(attributes)))
        put(self, "value", value)
        put(self, "kind", op.name if op is not None else "variable" if value is None else "constant")
        put(self, "own_name", given)
        put(self, "taken", merge_nodes(inputs))
        if given is not None:
            if given in self.taken:
                raise GraphError(
                    f"The name {given!r} was given to {self.described}, but an input of it has it already: "
                    f"{self.taken[given].described}. Give another name."
                )
            put(self, "taken", self.taken | {given: self})

    __hash__ = object.__hash__  # == builds a node

    def __eq__(self, other):
        """Return the node self == other, elementwise as 0 and 1."""
        return ops.get("equal")(self, other)

    def __ne__(self, other):
        """Return the node self != other, elementwise as 0 and 1."""
        return ops.get("not_equal")(self, other)

    @property
    def heads(self) -> tuple["Symbol", ...]:
        """Return the symbol itself, as the only head."""
        return (self,)

    @property
    def name(self) -> str:
        """Return the given name, or the automatic one in the graph whose only head is this symbol; computed once."""
        if self.own_name is not None:
            return self.own_name
        name = self.names()[self]
        object.__setattr__(self, "own_name", name)
        return name

    @property
    def operator(self) -> Op:
        """Return the operator of a node. Raises GraphError for a variable or a constant."""
        if self.op is None:
            raise GraphError(f"{self.name} is {self.described}, which has no operator.")
        return self.op

    @property
    def described(self) -> str:
        """Return a description of the node for messages, such as "a variable (format csr, ...)" or "a node of dot"."""
        if self.kind == "variable":
            shown = {key: value for key, value in self.attributes.items() if key in ("format", "shape", "dtype")}
            return f"a variable ({', '.join(f'{key} {value}' for key, value in shown.items())})"
        return "a constant" if self.kind == "constant" else f"a node of {self.kind}"

    def apply(self, op: Op, inputs: tuple, params: dict[str, Any], name: str | None) -> "Symbol":
        """Return the new node of operator `op` on `inputs` with `params`; `name` None is automatic.

        Arrays among the inputs become constants; attributes are those of the enclosing `scope`. Raises GraphError.
        """
        nodes = tuple(_as_symbol(value, op) for value in inputs)
        params = {key: canonical(value, f"{op.name}: {key}") for key, value in params.items()}
        return Symbol(name, op, nodes, params, _scope.get())

    def __repr__(self) -> str:
        """Return name, kind and the names of the inputs: "<Symbol dot0: dot(x, w)>"."""
        names = self.names()
        inner = ", ".join(names[entry] for entry in self.inputs)
        return f"<Symbol {names[self]}: {self.kind}({inner})>" if self.op else f"<Symbol {names[self]}: {self.kind}>"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        """Raise AttributeError: symbols cannot be changed."""
        raise AttributeError(f"Symbol.{name} cannot be set; symbols are never changed. Build a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        """Raise AttributeError: attributes cannot be deleted."""
        raise AttributeError(f"Symbol.{name} cannot be deleted.")

    def __bool__(self) -> NoReturn:
        """Raise TypeError: a symbol has no truth value."""
        raise TypeError("A symbol is neither true nor false: it has no value before it is bound and run.")


@contextmanager
def scope(**attributes: str) -> Iterator[None]:
    """Attach attributes to all nodes that are added within the block.

    Parameters
    ----------
    **attributes : str
        Attributes by name.

    Examples
    --------
    >>> with scope(backward_of="loss"):
    ...     node = -variable("x")
    >>> node.attributes["backward_of"]
    'loss'
    """
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
    """Create a symbol whose value is passed in when the graph is bound.

    Parameters
    ----------
    name : str
        Name of the argument.
    format : str, default "dense"
        Format of its arrays.
    shape : tuple of int or None, optional
        Shape; None is an unknown length.
    dtype : dtype_like, optional
        Type of the values.
    init : str, tuple or float, optional
        Initialiser, if a module trains it.
    rate_multiplier, decay_multiplier : float, default 1.0
        Factors of the optimizer's learning rate and decay.

    Returns
    -------
    Symbol
        The variable.

    Raises
    ------
    GraphError, FormatError
        If an argument is invalid.

    Examples
    --------
    >>> variable("x", format="csr", shape=(None, 10)).attributes["format"]
    'csr'
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
    """Create a symbol with a fixed value.

    Parameters
    ----------
    value : array_like
        Array in any format; lists become float32.
    name : str, optional
        Name of the node.

    Returns
    -------
    Symbol
        The constant.

    Raises
    ------
    FormatError
        If the array is invalid.

    Examples
    --------
    >>> constant([1.0, 2.0]).kind
    'constant'
    """
    _, value = known_formats.validate(np.array(value, np.float32) if isinstance(value, list) else value)
    return Symbol(name, value=value)


def canonical(value: Any, what: str) -> Any:
    """Return a parameter's value as graphs store it: tuples, Python scalars, dtypes by name, None.

    Raises GraphError, which calls it `what`, for other types.
    """
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
    """Return `value` if it is a Symbol, else a constant. Raises GraphError for a Python number as input of `op`."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, int | float):
        raise GraphError(f"{op.name} takes arrays and symbols; the number {value} came. Give np.float32([{value}]).")
    return constant(value)


def _checked_name(name: str | None) -> str | None:
    """Return the name unchanged. Raises TypeError unless it is a string or None, GraphError if it is empty."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"A name is a string; {name!r} came.")
    if name == "":
        raise GraphError("A name is empty; give at least one character.")
    return name


def _checked_shape(name: str, shape: Any) -> Shape:
    """Return the shape of variable `name` as a tuple of int or None. Raises GraphError for other values."""
    if not isinstance(shape, tuple | list) or any(not _is_length(length) for length in shape):
        raise GraphError(
            f"The shape of {name} is {shape!r}. Allowed: a tuple of whole numbers from 0, None where the length is "
            "not known yet."
        )
    return tuple(None if length is None else int(length) for length in shape)


def _is_length(length: Any) -> bool:
    """Return whether `length` is None or a non-negative integer."""
    if length is None:
        return True
    return isinstance(length, int | np.integer) and not isinstance(length, bool) and int(length) >= 0


def _checked_multiplier(name: str, what: str, value: Any) -> float:
    """Return a multiplier as float; GraphError unless it is a finite number >= 0.

    `what` of variable `name` describes it in the message.
    """
    if not isinstance(value, int | float | np.integer | np.floating) or not 0 <= value < 1e300:  # it has a float
        raise GraphError(f"{what} of {name} is {value!r}. Allowed: a finite number from 0.")
    return float(value)
