"""Where we mean to differ from the recorded program, and why: the one table.

A row is a rule, never a list of cases: it holds for recorded sets of other seeds and shapes too. Fields are those that
the modules `golden_<group>.py` report: stype, dtype, shape, pattern, value, fallback, raises, each of a gradient with
`grad_` in front, and what else a group names. Each row must be used by the committed cases.
"""

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


_ZERO_STAYS = {
    "_rminus_scalar": lambda s: s == 0,
    "_power_scalar": lambda s: s > 0,
    "_mod_scalar": lambda s: s != 0,
    "_maximum_scalar": lambda s: s <= 0,
    "_minimum_scalar": lambda s: s >= 0,
    "_hypot_scalar": lambda s: s == 0,
    "_logical_and_scalar": lambda s: True,
    "_logical_or_scalar": lambda s: s == 0,
    "_logical_xor_scalar": lambda s: s == 0,
}
_ADDING = ("broadcast_add", "broadcast_sub", "broadcast_plus", "broadcast_minus")
_BOTH = "elemwise stype"

DIFFERENCES = {
    # storage
    "csr sliced with a step, and row_sparse, keep their format: what is stored is all that is read.": Difference(
        "storage", ("slice",), "stype fallback"
    ),
    "Every format converts into every other, so csr and row_sparse are assigned to each other too.": Difference(
        "storage",
        ("tostype", "copyto"),
        "raises",
        lambda case: {params(case).get("source"), params(case).get("target")} == {"csr", "row_sparse"},
    ),
    "A row_sparse weight need not hold every row: a touched one that is missing is zero, and stored then.": Difference(
        "storage", ("optimizer",), "raises", lambda case: "weight_rows" in params(case)
    ),
    "The lazy rule of AdaGrad has weight decay, of the active rows.": Difference(
        "storage",
        ("optimizer",),
        "raises",
        lambda case: params(case).get("optimizer") == "AdaGrad" and "wd" in params(case),
    ),
    # element-wise operators
    "With this number zero stays zero, so the format is kept as multiplication keeps it.": Difference(
        _BOTH,
        tuple(_ZERO_STAYS),
        "stype fallback",
        lambda case: any_sparse(case) and _ZERO_STAYS[case["op"]](params(case)["scalar"]),
    ),
    "False where nothing is stored: the result keeps the format, as the comparisons with a number do.": Difference(
        _BOTH,
        named("not_equal", "greater", "lesser", "logical_and", "logical_or", "logical_xor"),
        "stype fallback",
        two_of_a_kind,
    ),
    "One operator for equal and broadcast shapes: equal ones have the rule of the element-wise operator.": Difference(
        "stype",
        (*_ADDING, *named("mul", "maximum", "minimum", "hypot", prefixes=("broadcast_",))),
        "stype fallback",
        two_of_a_kind,
    ),
    "A product with a dense array keeps the format, from either side, row_sparse as well as csr.": Difference(
        _BOTH, ("broadcast_mul",), "stype fallback", lambda case: one_dense(case) and whole(case)
    ),
    "The sum of a row_sparse and a broadcast dense array is made without a dense copy of the former.": Difference(
        _BOTH, _ADDING, "fallback", lambda case: one_dense(case) and whole(case)
    ),
    "The recorded program makes arrays dense without a word; we warn.": Difference(
        _BOTH, ("elemwise_div", "_power"), "fallback", any_sparse, warns=True
    ),
    "Where the recorded program refuses or crashes, as csr would be broadcast, the dense meaning is given.": Difference(
        "stype", (*_ADDING, "broadcast_mul", "broadcast_div"), "raises", one_dense
    ),
    "A csr operand that is broadcast is made dense, with a warning.": Difference(
        "stype", ("broadcast_mul",), "stype fallback", lambda case: one_dense(case) and not whole(case), warns=True
    ),
    "The sum of csr arrays is csr.": Difference(_BOTH, ("add_n",), "stype fallback", two_of_a_kind),
    "Gradients have the format of the output, csr.": Difference("elemwise", ("add_n",), "grad_stype", two_of_a_kind),
    "The gradient of a sparse factor keeps its format: head times the other factor stores nothing else.": Difference(
        "elemwise", named("mul", prefixes=("elemwise_", "broadcast_")), "grad_stype", any_sparse
    ),
    "Sparse arrays are added to a dense one without dense copies of them, in any number and order.": Difference(
        _BOTH, ("add_n", "_grad_add"), "fallback", one_dense
    ),
    "A csr array is divided where it is stored, like a row_sparse one; two dense ones need no conversion.": Difference(
        "stype", ("_scatter_elemwise_div",), "stype fallback"
    ),
    "The result comes in the operator's own format; formats.assign writes it to an array of any other.": Difference(
        "stype", (), "fallback", writes_to
    ),
    "A vector may be on the right, every hint is followed, and formats.assign writes to any format.": Difference(
        "stype", ("dot",), "raises"
    ),
    # dot
    "Every pair of formats has a product of what is stored; no operand is made dense.": Difference(
        "dot stype", ("dot",), "fallback", any_sparse
    ),
    "A sparse result asked of two dense matrices makes nothing dense that was not.": Difference(
        "dot stype", ("dot",), "fallback", lambda case: not any_sparse(case) and "forward_stype" in params(case)
    ),
    "The product of two csr matrices is csr.": Difference("dot stype", ("dot",), "stype", held_in("csr", "csr")),
    # reductions
    "Every axis, keepdims and order of norm is reduced over what is stored, of csr and of row_sparse.": Difference(
        _BOTH, ("sum", "mean", "norm", "max", "min", "prod"), "fallback", any_sparse
    ),
    "Reduced over all elements the result has no dimension, as in NumPy; theirs has shape (1,).": Difference(
        "elemwise", ("sum", "mean", "norm", "contrib.getnnz"), "shape", lambda case: params(case).get("axis") is None
    ),
    "There is no parameter exclude: axis takes a tuple of what is meant.": Difference(
        "stype", ("sum", "mean", "_square_sum"), "refused", lambda case: "exclude" in params(case)
    ),
    "Takes every format and axis.": Difference("stype", ("_square_sum", "contrib.getnnz"), "raises"),
    # layout
    "Every format is converted to every other.": Difference("stype", ("cast_storage",), "raises"),
    "What moves or casts stored values keeps a sparse format: csr turned round is csc.": Difference(
        _BOTH,
        ("cast", "Cast", "transpose", "reshape", "slice", "concat", "Concat", "take"),
        "stype fallback",
        any_sparse,
    ),
    "A row_sparse condition is read where it is stored, as a csr one is.": Difference(
        _BOTH, ("where",), "fallback", lambda case: held(case) == ("row_sparse", "default", "default")
    ),
    "A condition broadcasts by NumPy's rules; one number a row has shape (rows, 1).": Difference(
        "stype", ("where",), "refused", lambda case: len(shapes(case)[0]) == 1
    ),
    # layers
    "Labels are read in every format.": Difference(
        _BOTH,
        ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"),
        "fallback",
        lambda case: held(case)[0] == "default" and held(case)[1] != "default",
    ),
    "The product of what is stored, as dot has it.": Difference(_BOTH, ("FullyConnected",), "fallback", any_sparse),
    "A row_sparse weight may lack rows, which read as zeros.": Difference(
        "stype", ("FullyConnected",), "raises", lambda case: held(case)[1] == "row_sparse"
    ),
    "The gradient of a csr operand has the pattern of the operand, and is not computed elsewhere.": Difference(
        "elemwise", ("FullyConnected",), "grad_stype grad_value", lambda case: held(case)[0] == "csr"
    ),
    # optimizers
    "States have the format of the weights, whether rows absent from a gradient are touched or not.": Difference(
        "optim", ("SGD", "NAG", "Adam"), "state_stypes", lambda case: case["weight_stype"] == "row_sparse"
    ),
    "Every rule takes row_sparse gradients: lazily, exactly, or as here with zeros in the other rows.": Difference(
        "optim", ("Ftrl", "RMSProp", "Signum", "NAG"), "fallback", lambda case: case["grad_stype"] == "row_sparse"
    ),
}
