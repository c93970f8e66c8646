"""The Op record: meaning on dense arrays, a table of rules by format, shape and dtype, gradients.

How to add an operator. Copy an entry of `unary.py`: `dense`, the meaning on NumPy arrays; a `Rule` for every
combination of formats with its own implementation; `shape`, which raises for inputs that do not fit; a gradient,
written with operators. Registered, it works on arrays (computes) and on symbols (adds a node), and takes part in the
inference of formats, in the reference and in the tests.

Rules are selected by formats, shapes and parameters, never by values, so a graph is known before it runs. Inputs
without a rule are made dense, with a warning and an entry in the log (`fallback.py`).
"""

import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

import numpy as np

from kernels import KernelError
from kernels.registry import Registry
from workbench import formats
from workbench.ops import fallback

# Types of operator parameters by name: the same for all operators that have a parameter of that name.
#
# Whether a value then suits the operator and its arrays is checked by its shape, dtype and rules.

LARGEST_INTEGER = 2**63 - 1
"""Lengths and places are kept in 64 bits."""


def _is_scalar(value: Any) -> bool:
    """Return whether the value is a Python or NumPy number, bool included."""
    return isinstance(value, int | float | np.number | np.bool_)


def _is_flag(value: Any) -> bool:
    """Return whether the value is a bool, or the integer 0 or 1."""
    return isinstance(value, bool | np.bool_) or (_is_whole(value) and value in (0, 1))


def _is_whole(value: Any) -> bool:
    """Return whether the value is a Python or NumPy integer within 64 bits, and not bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and abs(int(value)) <= LARGEST_INTEGER


def _is_whole_or_none(value: Any) -> bool:
    """Return whether the value is an integer within 64 bits, or None."""
    return value is None or _is_whole(value)


def _are(value: Any, check: Callable[[Any], bool]) -> bool:
    """Return whether the value is a list or tuple whose items all pass `check`."""
    return isinstance(value, tuple | list) and all(map(check, value))


def _is_dtype(value: Any) -> bool:
    """Return whether `np.dtype(value)` is a dtype of bool, integers or floats."""
    try:
        return np.dtype(value).kind in "biuf"
    except (TypeError, ValueError, SyntaxError):
        return False


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "number": (_is_scalar, "a number; an array belongs among the inputs"),
    "flag": (_is_flag, "True or False"),
    "text": (lambda value: isinstance(value, str), "text"),
    "text or none": (lambda value: value is None or isinstance(value, str), "text or None"),
    "whole": (_is_whole, "a whole number"),
    "axes": (lambda value: _is_whole_or_none(value) or _are(value, _is_whole), "a whole number, several, or None"),
    "lengths": (lambda value: _is_whole(value) or _are(value, _is_whole), "whole numbers, as a tuple or list"),
    "order": (lambda value: value is None or _are(value, _is_whole), "a list of whole numbers, or None"),
    "places": (lambda value: value is None or _are(value, _is_whole_or_none), "a list of whole numbers and None"),
    "dtype": (_is_dtype, "a type of numbers"),
}

OF = {
    "number": ("scalar", "low", "high", "grad_scale", "ignore_label", "deviation", "ord"),
    "flag": ("keepdims", "transpose_a", "transpose_b", "sparse_grad", "use_ignore"),
    "text": ("engine", "mode", "kind", "loss", "normalization", "format"),
    "text or none": ("result",),
    "whole": ("place",),
    "axes": ("axis",),
    "order": ("axes",),
    "places": ("begin", "end", "step"),
    "lengths": ("shape", "fields"),
    "dtype": ("dtype",),
}
_KIND = {name: KINDS[kind] for kind, names in OF.items() for name in names}


def fault(name: str, value: Any) -> str:
    """Return what the parameter `name` should be, such as "a whole number", if `value` has the wrong type; else "".

    "" also for an unknown name.
    """
    is_right, allowed = _KIND.get(name, (None, ""))
    return "" if is_right is None or is_right(value) else allowed


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
    """An operator is unknown or its inputs are invalid; the message says what was given and what is allowed."""


class OpMemoryError(OpError, MemoryError):
    """The result of an operator, or an intermediate, is larger than memory."""


class Required:
    """Default of parameters that have no default value."""

    def __repr__(self) -> str:
        """Return "required", for signatures in the documentation."""
        return "required"


REQUIRED = Required()


class Symbolic(ABC):
    """Interface of symbols to operators: a call on a symbol adds a node instead of computing."""

    attributes: Mapping[str, Any]
    """What a variable declares, its `format` among it."""
    op: "Op | None"
    """The operator of a node, None for variables and constants."""
    inputs: tuple["Symbolic", ...]
    params: Mapping[str, Any]

    @abstractmethod
    def apply(self, op: "Op", inputs: tuple, params: dict[str, Any], name: str | None) -> "Symbolic":
        """Return the symbol called `name` (None: a new name) of `op` on `inputs`, at least one of which is symbolic.

        Arrays among them become constants.
        """


def _raise_refusal(*arrays: Any, out: Any = None, **params: Any) -> Any:
    """Raise OpError: the call of a rule that states a refusal and computes nothing; `out` is unused."""
    raise OpError("This rule refuses its inputs; it has no call.")


@dataclass(frozen=True)
class Rule:
    """One row of an operator's table: the implementation for inputs in certain formats.

    Parameters
    ----------
    inputs : tuple of str
        Format of each input; `ANY` for every format; `(f, ...)` for any number of inputs in format f.
    result : str
        Format of the result.
    call : callable
        `call(*arrays, out=None, **params)` computes. For a dense result it accepts `out`, a C-contiguous array of the
        result's shape and dtype, writes to it and returns it.
    kernel : str
        Name of the kernel, for documentation.
    when : callable, optional
        `when(shapes, params) -> bool` restricts the rule.
    condition : str
        Description of `when`, for documentation.
    refusal : str
        If not empty, the rule raises OpError with this text.
    plan : bool
        Whether `call` accepts `plan=`, the batch plan (column index) of its first input, and builds one if it is None.
    needs : str
        Format that at least one input must have.
    densifies : bool
        Whether this is the fallback that makes inputs dense.

    Examples
    --------
    >>> from workbench import ops
    >>> ops.get("abs").choose(["csr"], [(3, 2)], {}).result
    'csr'
    """

    inputs: tuple[str | EllipsisType, ...]
    result: str
    call: Callable[..., Any] = _raise_refusal
    kernel: str = "numpy"
    when: Callable[[Sequence[Shape], Mapping[str, Any]], bool] | None = None
    condition: str = ""
    refusal: str = ""
    plan: bool = False
    needs: str = ""
    densifies: bool = False
    """Whether this is no row of a table, but the way out where there is none."""

    def holds(self, held: Sequence[str]) -> bool:
        """Return whether the rule applies to inputs in the formats `held`, disregarding shapes and parameters."""
        if len(self.inputs) == 2 and self.inputs[1] is ...:
            pattern: Sequence = self.inputs[:1] * len(held)
        else:
            pattern = self.inputs
        if len(pattern) != len(held) or (self.needs and self.needs not in held):
            return False
        for wanted, form in zip(pattern, held, strict=True):  # noqa: SIM110 - in a tenth of the calls of all()
            if wanted not in (ANY, form):
                return False
        return True

    def fits(self, held: Sequence[str], shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
        """Return whether the rule applies to inputs in the formats `held`, with these shapes and parameters."""
        return self.holds(held) and (self.when is None or self.when(shapes, params))


def rules_with_plan(call: Callable[..., Any], heads: int, result: str, kernel: str, flag: str = "") -> list[Rule]:
    """Return rules of `call` for a sparse x and `heads` dense inputs; for csr it is given the batch plan of x.

    `flag` names the parameter that must be true, "" for none.
    """
    dense = ("dense",) * heads
    known: dict[str, Any] = {"when": lambda shapes, params: bool(params[flag]), "condition": flag} if flag else {}
    rules = [Rule((form, *dense), result, call, kernel, **known) for form in ("csr", "coo", "csc", "row_sparse")]
    return [replace(rules[0], plan=True), *rules[1:]]


@dataclass(frozen=True, eq=False)
class Op:
    """An operator. Called with arrays it computes; with a symbol among its inputs it returns a symbol.

    Parameters
    ----------
    name : str
        Name of the operator, also its attribute in `workbench.ops`.
    inputs : tuple of str
        Names of the array inputs; a last name with a star stands for any number of them.
    dense : callable
        `dense(*arrays, out=None, **params)`: the meaning, on NumPy arrays.
    shape, dtype : callable
        `shape(shapes, params)` and `dtype(dtypes, params)` of the result; raise OpError for inputs that do not fit.
    doc, family : str
        Documentation and section of it.
    params : mapping
        Other parameters with their defaults.
    rules : tuple of Rule
        Implementations by format.
    gradient : callable, optional
        `gradient(head, output, inputs, params)` returns a gradient per input, or None; made with operators. `head` is
        the
        gradient of `output`.
    joint : callable, optional
        Of losses: `joint(*arrays, slope, **params)` returns the output and writes the gradient of the first input (for
        a
        head of 1) to `slope`.
    unread : tuple
        Range of the inputs of which only shape, dtype or pattern is read; they get no gradient.
    no_gradient : str
        For operators without a gradient: what to do instead.
    with_number : tuple of str, optional
        Names of the operators for a Python number on the right and on the left.

    Examples
    --------
    >>> from workbench import ops
    >>> ops.abs(np.float32([-1, 2])).tolist()
    [1.0, 2.0]
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
    unread: tuple[int, int | None] = (0, 0)
    no_gradient: str = ""
    with_number: tuple[str, str] | None = None
    family: str = ""

    @property
    def __doc__(self) -> str:  # type: ignore[override]  # help(ops.add) shows the operator, not the class
        """Return the operator's documentation, so that help() shows it instead of the class's."""
        return self.doc

    @property
    def many(self) -> bool:
        """Return whether the operator takes any number of arrays: the last input name has a star."""
        return bool(self.inputs) and self.inputs[-1].startswith("*")

    def reads(self, place: int, count: int) -> bool:
        """Return whether the values of input `place` of `count` inputs affect the result.

        If not, only shape or pattern does.
        """
        return place not in range(count)[slice(*self.unread)]

    def __call__(self, *inputs: Any, name: str | None = None, **params: Any) -> Any:
        """Return the result for arrays, in the format that the table states, or a new symbol if an input is a symbol.

        `name` is that of the new symbol; `params` are the operator's. Raises OpError for invalid inputs.
        """
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
        """Compute the result on arrays; `params` must be complete. NaN and infinities give no warning.

        Raises OpError or FormatError for invalid inputs and OpMemoryError if the result is too large.
        """
        forms, arrays = [], []
        for value in inputs:
            if type(value) is np.ndarray:  # what admit would find in 1.3 us
                forms.append("dense")
                arrays.append(value)
                continue
            format, array = formats.validate(value)
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
        """Return, without raising it, the OpMemoryError for inputs of these shapes; `why` continues the message."""
        listed = ", ".join(str(tuple(shape)) for shape in shapes)
        return OpMemoryError(
            f"{self.name} of {listed}: {why} more memory than there is. Reduce or slice it first, or keep it sparse."
        )

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return {name: value} of the parameters `given`, completed by the defaults. Raises OpError.

        That is for unknown, missing or invalid ones.
        """
        if unknown := sorted(set(given) - set(self.params)):
            raise OpError(f"{self.name} has no parameter {unknown}; its parameters are {sorted(self.params)}.")
        for name, value in given.items():
            if allowed := fault(name, value):
                raise OpError(f"{self.name}: {name} is {value!r:.80}; it is {allowed}.")
        params = {**self.params, **given}
        if missing := [name for name, value in params.items() if value is REQUIRED]:
            raise OpError(f"{self.name} needs the parameter {', '.join(missing)}.")
        return params

    def check_count(self, count: int) -> None:
        """Raise OpError unless the operator takes `count` arrays."""
        least = len(self.inputs)
        if count < least or (count > least and not self.many):
            word = "at least " if self.many else ""
            raise OpError(f"{self.name} takes {word}{least} array(s), {', '.join(self.inputs)}; {count} came.")

    def dtype_of(self, dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
        """Return the dtype of the result; by default that of the inputs, which must be equal.

        Raises OpError for dtypes that no format supports, except for conditions, labels and row indices.
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
        """Return the rule for inputs in the formats `held`, of these shapes, with these parameters; O(rules).

        The rules for `held` are cached. The densifying fallback if there is none. Raises OpError if the table refuses.
        """
        held = tuple(held)
        rules = self._rules_by_formats.get(held)
        if rules is None:
            rules = self._rules_by_formats[held] = self._rules_for(held)
        for rule in rules:
            if rule.when is None or rule.when(shapes, params):
                if rule.refusal:
                    raise OpError(f"{self.name}({', '.join(held)}): {rule.refusal}")
                return rule
        raise AssertionError("the last rule always holds")

    @functools.cached_property
    def _rules_by_formats(self) -> dict[tuple[str, ...], list[Rule]]:
        """Return the cache of the rules by the formats of the inputs, empty at first."""
        return {}

    def _rules_for(self, held: tuple[str, ...]) -> list[Rule]:
        """Return the rules for inputs in the formats `held`, in order; the last one computes on dense arrays.

        That reports its conversion unless all inputs are dense.
        """
        dense = all(format == "dense" for format in held)
        last = Rule(held, "dense", self.dense) if dense else _densifying_rule(self, held)
        return [*(rule for rule in self.rules if rule.holds(held)), last]


def same_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the common shape of all inputs. Raises OpError if shapes differ. `params` is unused."""
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            raise OpError(f"The shapes differ: {', '.join(map(str, shapes))}. They must be the same.")
    return first


def broadcast_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the inputs broadcast together. Raises OpError if that is impossible. `params` is unused."""
    if shapes[0] == shapes[-1] and len(shapes) == 2:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise OpError(f"The shapes {', '.join(map(str, shapes))} cannot be broadcast together.") from None


def _is_number(value: Any) -> bool:
    """Return whether `value` is a Python or NumPy scalar and not an array."""
    return isinstance(value, int | float | np.number) and not isinstance(value, np.ndarray)


_ops: Registry[Op] = Registry("operator", ("workbench.ops",), OpError)
register, names, get, unavailable = _ops.register, _ops.names, _ops.get, _ops.unavailable


def operator(name: str, dense: Callable[..., Any], shape: Callable[..., Any], doc: str = "", **fields: Any) -> Op:
    """Register the operator `name`, whose meaning on NumPy arrays is `dense`, and return it.

    `shape`, `doc` and `fields` are those of `Op`. Unless `inputs` are among the fields, they are the parameters of
    `dense` without a default, and `params` those with one, `out` left out.
    """
    if "inputs" not in fields:
        given = [one for one in inspect.signature(dense).parameters.values() if one.name != "out"]
        stars = ("*" if one.kind is one.VAR_POSITIONAL else "" for one in given)
        inputs = tuple(star + one.name for star, one in zip(stars, given, strict=True) if one.default is one.empty)
        params = {one.name: one.default for one in given if one.default is not one.empty}
        fields |= {"inputs": inputs, "params": params}
    return register(Op(name=name, dense=dense, shape=shape, doc=doc, **fields))


# dtypes that the elementwise operators take; results have the dtype of the inputs.

REAL = tuple(map(np.dtype, (np.float32, np.float64, np.float16)))


def one_type(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the common dtype of the inputs. Raises OpError if they differ. `params` is unused."""
    first = dtypes[0]
    for dtype in dtypes:
        if dtype != first:
            raise OpError(
                f"The types differ: {', '.join(map(str, dtypes))}. They must be the same; convert with astype."
            )
    return first


def real(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the common dtype of the inputs. Raises OpError unless it is float16, float32 or float64."""
    dtype = one_type(dtypes, params)
    if dtype not in REAL:
        raise OpError(f"An array of {dtype} came; allowed are {', '.join(map(str, REAL))}. Convert with astype.")
    return dtype


def _densifying_rule(op: Op, held: Sequence[str]) -> Rule:
    """Return the rule that makes inputs in the formats `held` dense, reports that, and computes `op` on them."""

    def call(*arrays: Any, out: np.ndarray | None = None, **params: Any) -> np.ndarray:
        """Report the conversion, then return `op` on dense copies of the arrays, in `out` if given.

        Raises DensifyError.
        """
        fallback.report(op.name, held, arrays)
        dense = [formats.to_format(array, "dense") for array in arrays]
        return op.dense(*dense, out=out, **params)

    return Rule(tuple(held), "dense", call, kernel="dense after to_format", densifies=True)
