"""The Op record: meaning on dense arrays, a table of rules by format, shapes and types, gradients.

How to add an operator. Copy an entry of `unary.py`: state `dense`, the meaning on NumPy arrays; a `Rule` for every
combination of formats that has a kernel of its own; `shape`, which refuses what does not fit; a gradient, written with
the operators themselves. Registered, it works on arrays (computes now) and on symbols (adds a node to a graph), takes
part in the inference of formats, in `documentation()` and in the tests, which call it as its row in
`tests/op_examples.py` says, where the default of its family does not do.

Which rule holds is decided by formats, shapes and parameters alone, never by values, so that a graph knows before it
runs. What no rule covers is made dense, with a warning and an entry in the log (`fallback.py`).
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import numpy as np

from kernels import KernelError
from kernels.registry import Registry
from workbench import formats
from workbench.ops import fallback, parameters

Shape = tuple[int, ...]
ANY = "*"
"""In a rule: a format of any name."""


WHOLE = ("condition", "label", "labels", "ids", "indices", "rows")
"""Inputs that hold truth values, classes or numbers of rows: every type of whole numbers will do."""
COUNTED = 2**48
"""Elements beyond which a dense array is beyond every memory."""
LARGEST = 2**63
"""Bytes that no array has."""


class OpError(ValueError):
    """An operator is unknown, or called with what it does not take; the message says what came and what is allowed."""


class OpMemoryError(OpError, MemoryError):
    """An operator's result, or what it needs on the way, is larger than memory."""


class Required:
    """Stands for the default of a parameter that has none."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = Required()


class Symbolic(ABC):
    """Interface of a symbol to operators: it takes the call and adds a node, instead of computing a value."""

    attributes: Mapping[str, Any]
    """What a variable declares, its `format` among it."""
    op: "Op | None"
    """The operator of a node, None for variables and constants."""
    inputs: tuple["Symbolic", ...]
    params: Mapping[str, Any]

    @abstractmethod
    def apply(self, op: "Op", inputs: tuple, params: dict[str, Any], name: str | None) -> "Symbolic":
        """The symbol of `op` on `inputs`, of which at least one is symbolic; arrays among them become constants."""


def _refused(*arrays: Any, out: Any = None, **params: Any) -> Any:
    """Raise OpError: the call of a rule that states a refusal and computes nothing."""
    raise OpError("This rule refuses its inputs; it has no call.")


@dataclass(frozen=True)
class Rule:
    """One row of an operator's table: inputs held in these formats give `result`, computed by `kernel` through `call`.

    `inputs` has a format an input, `ANY` for every format; `(f, ...)` says any number of inputs in format f.
    `call(*arrays, out=None, **params)` computes; for a dense result it takes `out`, a C-contiguous array of the
    result's shape and type to write and return. `when(shapes, params)` narrows a rule, `condition` says it in words.
    A rule with a `refusal` says why there is no result and what to do, and raises. `plan`: the call takes `plan=`, the
    batch plan of its first input, and builds one where None is given. `needs`: the format that at least one input has.
    `bind(*arrays, out=out, **params)`, of rules for dense arrays, is for arrays that many calls share: it gives a call
    without arguments, which writes to `out`, or None where it has nothing better than `call`.
    """

    inputs: tuple[str | EllipsisType, ...]
    result: str
    call: Callable[..., Any] = _refused
    kernel: str = "numpy"
    when: Callable[[Sequence[Shape], Mapping[str, Any]], bool] | None = None
    condition: str = ""
    refusal: str = ""
    plan: bool = False
    needs: str = ""
    bind: Callable[..., Callable[[], Any] | None] | None = None
    densifies: bool = False
    """Whether this is no row of a table, but the way out where there is none."""

    def holds(self, held: Sequence[str]) -> bool:
        """Whether the rule is for inputs held so, whatever their shapes."""
        if len(self.inputs) == 2 and self.inputs[1] is ...:
            pattern: Sequence = self.inputs[:1] * len(held)
        else:
            pattern = self.inputs
        same = len(pattern) == len(held) and all(w in (ANY, h) for w, h in zip(pattern, held, strict=True))
        return same and (not self.needs or self.needs in held)

    def fits(self, held: Sequence[str], shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
        """Whether the rule is for inputs held so, of these shapes, with these parameters."""
        return self.holds(held) and (self.when is None or self.when(shapes, params))


@dataclass(frozen=True, eq=False)
class Op:
    """One operator. Called with arrays it computes now; with a symbol among its inputs it gives a symbol.

    `inputs` names the arrays, a last name with a star stands for any number of them; `params` has the other parameters
    with their defaults. `dense(*arrays, out=None, **params)` is the meaning, on NumPy arrays. `shape(shapes, params)`
    and `dtype(dtypes, params)` give the result's, and raise `OpError` for what does not fit. `gradient(head, output,
    inputs, params)` gives for every input the gradient, made with operators from symbols or arrays, or None where there
    is none; `head` is the gradient of `output`. `joint(*arrays, slope, **params)`, of losses, gives the output and
    writes the gradient towards the first input, as of a head of one, into `slope`, in one pass. `bind_joint`, with the
    same parameters, is to it what `bind` of a rule is to its call.
    `unread`, from and to, are the places of inputs whose values play no part, only shape, type or pattern: towards
    them no gradient is asked for. `no_gradient` says of an operator without a gradient what to do instead.
    `with_number` names the operators that take a Python number on the right and on the left instead of an array.
    """

    name: str
    inputs: tuple[str, ...]
    dense: Callable[..., np.ndarray]
    shape: Callable[[Sequence[Shape], Mapping[str, Any]], Shape]
    doc: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    dtype: Callable[[Sequence[np.dtype], Mapping[str, Any]], np.dtype] | None = None
    gradient: Callable[..., tuple] | None = None
    joint: Callable[..., Any] | None = None
    bind_joint: Callable[..., Callable[[], Any] | None] | None = None
    unread: tuple[int, int | None] = (0, 0)
    no_gradient: str = ""
    with_number: tuple[str, str] | None = None
    family: str = ""

    @property
    def __doc__(self) -> str:  # type: ignore[override]  # help(ops.add) shows the operator, not the class
        return self.doc

    @property
    def many(self) -> bool:
        """Whether it takes any number of arrays."""
        return bool(self.inputs) and self.inputs[-1].startswith("*")

    def reads(self, place: int, count: int) -> bool:
        """Whether the values of that one of `count` inputs play a part."""
        return place not in range(count)[slice(*self.unread)]

    def __call__(self, *inputs: Any, name: str | None = None, **params: Any) -> Any:
        """The result on arrays, in the format that the table says; or a symbol where one is among the inputs."""
        if self.with_number and len(inputs) == 2:
            for side, number in enumerate(reversed(inputs)):
                if _is_number(number):
                    return get(self.with_number[side])(inputs[side], name=name, scalar=number, **params)
        params = self.resolve(params)
        self.check_count(len(inputs))
        for value in inputs:
            if isinstance(value, Symbolic):
                return value.apply(self, inputs, params, name)
        return self.compute(inputs, params)

    def compute(self, inputs: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """The result on arrays; `params` complete. NaN and infinities are results, of which nothing warns."""
        forms, arrays = [], []
        for value in inputs:
            if type(value) is np.ndarray:  # what admit would find in 1.3 us
                forms.append("dense")
                arrays.append(value)
                continue
            format, array = formats.enter(value)
            forms.append(format.name)
            arrays.append(array)
        shapes = [array.shape for array in arrays]
        shape = self.shape(shapes, params)
        dtype = self.dtype_of([array.dtype for array in arrays], params)
        rule = self.choose(forms, shapes, params)
        if rule.result == "dense" and math.prod(shape) * dtype.itemsize >= LARGEST:
            raise self._too_large(shapes, f"the dense result {tuple(shape)} would take")
        try:
            with np.errstate(all="ignore"):
                result = rule.call(*arrays, out=None, **params)
        except (OpError, formats.FormatError, KernelError):
            raise
        except (MemoryError, OverflowError) as error:
            raise self._too_large(shapes, f"{error}:") from error
        except ValueError as error:  # NumPy and SciPy say so of arrays beyond what an index counts
            if max(math.prod(shape) for shape in (*shapes, shape)) < COUNTED:
                raise
            raise self._too_large(shapes, f"{error}:") from error
        return np.asarray(result) if isinstance(result, np.generic) else result

    def _too_large(self, shapes: Sequence[Shape], why: str) -> "OpMemoryError":
        listed = ", ".join(str(tuple(shape)) for shape in shapes)
        return OpMemoryError(
            f"{self.name} of {listed}: {why} more memory than there is. Reduce or slice it first, or keep it sparse."
        )

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters, defaults where not given; an unknown or missing one is an `OpError` that lists the known.

        So is one of another kind than its name says: text for a number.
        """
        if unknown := sorted(set(given) - set(self.params)):
            raise OpError(f"{self.name} has no parameter {unknown}; its parameters are {sorted(self.params)}.")
        for name, value in given.items():
            if allowed := parameters.fault(name, value):
                raise OpError(f"{self.name}: {name} is {value!r:.80}; it is {allowed}.")
        params = {**self.params, **given}
        if missing := [name for name, value in params.items() if value is REQUIRED]:
            raise OpError(f"{self.name} needs the parameter {', '.join(missing)}.")
        return params

    def check_count(self, count: int) -> None:
        """Refuse another number of arrays than it takes (`OpError`)."""
        least = len(self.inputs)
        if count < least or (count > least and not self.many):
            word = "at least " if self.many else ""
            raise OpError(f"{self.name} takes {word}{least} array(s), {', '.join(self.inputs)}; {count} came.")

    def dtype_of(self, dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
        """Type of the result. Where the operator says nothing, all inputs have one type, which the result has too.

        Types that no format holds are refused, but of conditions, labels and numbers of rows.
        """
        for place, dtype in enumerate(dtypes):
            name = self.inputs[min(place, len(self.inputs) - 1)]
            if dtype not in formats.VALUES and not (name in WHOLE and dtype.kind in "biu"):
                allowed = ", ".join(map(str, formats.VALUES))
                raise OpError(f"{self.name}: {name} is {dtype}; allowed are {allowed}. Convert it with astype.")
        if self.dtype is not None:
            return np.dtype(self.dtype(dtypes, params))
        if len(set(dtypes)) > 1:
            types = ", ".join(map(str, dtypes))
            raise OpError(f"{self.name} takes arrays of one type; {types} came. Convert with astype.")
        return np.dtype(dtypes[0])

    def choose(self, held: Sequence[str], shapes: Sequence[Shape], params: Mapping[str, Any]) -> Rule:
        """The rule for inputs held in these formats; one that densifies where the table has none.

        Raises `OpError` where the table refuses. O(rules).
        """
        held = tuple(held)
        rules = self._by_formats.get(held)
        if rules is None:
            rules = self._by_formats[held] = self._rules_for(held)
        for rule in rules:
            if rule.when is None or rule.when(shapes, params):
                if rule.refusal:
                    raise OpError(f"{self.name}({', '.join(held)}): {rule.refusal}")
                return rule
        raise AssertionError("the last rule always holds")

    @functools.cached_property
    def _by_formats(self) -> dict[tuple[str, ...], list[Rule]]:
        return {}

    def _rules_for(self, held: tuple[str, ...]) -> list[Rule]:
        """The rules for these formats, in order; the last is the dense meaning, with or without densifying."""
        dense = all(format == "dense" for format in held)
        last = Rule(held, "dense", self.dense) if dense else fallback.rule(self, held)
        return [*(rule for rule in self.rules if rule.holds(held)), last]


def same_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """The shape of operators that change none: that of the inputs, which must all have the same (`OpError`)."""
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            raise OpError(f"The shapes differ: {', '.join(map(str, shapes))}. They must be the same.")
    return first


def broadcast_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """The shape that the inputs have together by NumPy's rules of broadcasting (`OpError`)."""
    if shapes[0] == shapes[-1] and len(shapes) == 2:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise OpError(f"The shapes {', '.join(map(str, shapes))} cannot be broadcast together.") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, np.ndarray)


_ops: Registry[Op] = Registry("operator", ("workbench.ops",), OpError)
register, names, get, unavailable = _ops.register, _ops.names, _ops.get, _ops.unavailable
