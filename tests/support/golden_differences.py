"""Where we mean to differ from the recorded program, and why: the one table.

A row is a rule, never a list of cases: it holds for recorded sets of other seeds and shapes too. Fields are those that
the modules `golden_<group>.py` report: stype, dtype, shape, pattern, value, fallback, raises, each of a gradient with
`grad_` in front, and what else a group names. Each row must be used by the committed cases.
"""

from tests.support.golden_rule import (
    Difference,
    any_sparse,
    held,
    held_in,
    named,
    one_dense,
    params,
    shapes,
    two_of_a_kind,
    whole,
    writes_to,
)

DOT = (
    Difference(
        "dot stype",
        ("dot",),
        "fallback",
        "Every pair of formats has a product of what is stored; no operand is made dense.",
        when=any_sparse,
    ),
    Difference(
        "dot stype",
        ("dot",),
        "fallback",
        "A sparse result asked of two dense matrices makes nothing dense that was not.",
        when=lambda case: not any_sparse(case) and "forward_stype" in params(case),
    ),
    Difference("dot stype", ("dot",), "stype", "The product of two csr matrices is csr.", when=held_in("csr", "csr")),
)

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

ELEMENT_WISE = (
    Difference(
        _BOTH,
        tuple(_ZERO_STAYS),
        "stype fallback",
        "With this number zero stays zero, so the format is kept as multiplication keeps it.",
        when=lambda case: any_sparse(case) and _ZERO_STAYS[case["op"]](params(case)["scalar"]),
    ),
    Difference(
        _BOTH,
        named("not_equal", "greater", "lesser", "logical_and", "logical_or", "logical_xor"),
        "stype fallback",
        "False where nothing is stored: the result keeps the format, as the comparisons with a number do.",
        when=two_of_a_kind,
    ),
    Difference(
        "stype",
        (*_ADDING, *named("mul", "maximum", "minimum", "hypot", prefixes=("broadcast_",))),
        "stype fallback",
        "One operator for equal and for broadcast shapes: equal ones have the rule of the element-wise operator.",
        when=two_of_a_kind,
    ),
    Difference(
        _BOTH,
        ("broadcast_mul",),
        "stype fallback",
        "A product with a dense array keeps the format, from either side, row_sparse as well as csr.",
        when=lambda case: one_dense(case) and whole(case),
    ),
    Difference(
        _BOTH,
        _ADDING,
        "fallback",
        "The sum of a row_sparse and a broadcast dense array is made without a dense copy of the former.",
        when=lambda case: one_dense(case) and whole(case),
    ),
    Difference(
        _BOTH,
        ("elemwise_div", "_power"),
        "fallback",
        "The recorded program makes arrays dense without a word; we warn.",
        when=any_sparse,
        warns=True,
    ),
    Difference(
        "stype",
        (*_ADDING, "broadcast_mul", "broadcast_div"),
        "raises",
        "Where the recorded program refuses or crashes, since csr would be broadcast, the dense meaning is given.",
        when=one_dense,
    ),
    Difference(
        "stype",
        ("broadcast_mul",),
        "stype fallback",
        "A csr operand that is broadcast is made dense, with a warning.",
        when=lambda case: one_dense(case) and not whole(case),
        warns=True,
    ),
    Difference(_BOTH, ("add_n",), "stype fallback", "The sum of csr arrays is csr.", when=two_of_a_kind),
    Difference(
        "elemwise", ("add_n",), "grad_stype", "Gradients have the format of the output, csr.", when=two_of_a_kind
    ),
    Difference(
        "elemwise",
        named("mul", prefixes=("elemwise_", "broadcast_")),
        "grad_stype",
        "The gradient of a sparse factor keeps its format: head times the other factor stores nothing else.",
        when=any_sparse,
    ),
    Difference(
        _BOTH,
        ("add_n", "_grad_add"),
        "fallback",
        "Sparse arrays are added to a dense one without dense copies of them, in any number and order.",
        when=one_dense,
    ),
    Difference(
        "stype",
        ("_scatter_elemwise_div",),
        "stype fallback",
        "A csr array is divided where it is stored, like a row_sparse one; two dense arrays need no conversion.",
    ),
    Difference(
        "stype",
        (),
        "fallback",
        "The result comes in the operator's own format, and formats.assign writes it to an array of any other.",
        when=writes_to,
    ),
    Difference(
        "stype",
        ("dot",),
        "raises",
        "A vector may be on the right, every hint is followed, and formats.assign writes to any format.",
    ),
)

STORAGE = (
    Difference(
        "storage",
        ("slice",),
        "stype fallback",
        "A csr array sliced with a step, and a row_sparse one, keep their format: what is stored is all that is read.",
    ),
    Difference(
        "storage",
        ("tostype", "copyto"),
        "raises",
        "Every format converts into every other, so csr and row_sparse arrays are assigned to each other too.",
        when=lambda case: {params(case).get("source"), params(case).get("target")} == {"csr", "row_sparse"},
    ),
    Difference(
        "storage",
        ("optimizer",),
        "raises",
        "A row_sparse weight need not hold every row: one that is touched and missing is zero, and is stored then.",
        when=lambda case: "weight_rows" in params(case),
    ),
    Difference(
        "storage",
        ("optimizer",),
        "raises",
        "The lazy rule of AdaGrad has weight decay, of the active rows.",
        when=lambda case: params(case).get("optimizer") == "AdaGrad" and "wd" in params(case),
    ),
)

REDUCTIONS = (
    Difference(
        _BOTH,
        ("sum", "mean", "norm", "max", "min", "prod"),
        "fallback",
        "Every axis, keepdims and order of norm is reduced over what is stored, of csr and of row_sparse.",
        when=any_sparse,
    ),
    Difference(
        "elemwise",
        ("sum", "mean", "norm", "contrib.getnnz"),
        "shape",
        "Reduced over all elements the result has no dimension, as in NumPy; theirs has shape (1,).",
        when=lambda case: params(case).get("axis") is None,
    ),
    Difference(
        "stype",
        ("sum", "mean", "_square_sum"),
        "refused",
        "There is no parameter exclude: axis takes a tuple of what is meant.",
        when=lambda case: "exclude" in params(case),
    ),
    Difference("stype", ("_square_sum", "contrib.getnnz"), "raises", "Takes every format and axis."),
)

LAYOUT = (
    Difference("stype", ("cast_storage",), "raises", "Every format is converted to every other."),
    Difference(
        _BOTH,
        ("cast", "Cast", "transpose", "reshape", "slice", "concat", "Concat", "take"),
        "stype fallback",
        "What moves or casts stored values keeps a sparse format: csr turned round is csc.",
        when=any_sparse,
    ),
    Difference(
        _BOTH,
        ("where",),
        "fallback",
        "A row_sparse condition is read where it is stored, as a csr one is.",
        when=lambda case: held(case) == ("row_sparse", "default", "default"),
    ),
    Difference(
        "stype",
        ("where",),
        "refused",
        "A condition broadcasts by NumPy's rules; one number a row has shape (rows, 1).",
        when=lambda case: len(shapes(case)[0]) == 1,
    ),
)

LAYERS = (
    Difference(
        _BOTH,
        ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"),
        "fallback",
        "Labels are read in every format.",
        when=lambda case: held(case)[0] == "default" and held(case)[1] != "default",
    ),
    Difference(
        _BOTH, ("FullyConnected",), "fallback", "The product of what is stored, as dot has it.", when=any_sparse
    ),
    Difference(
        "stype",
        ("FullyConnected",),
        "raises",
        "A row_sparse weight may lack rows, which read as zeros.",
        when=lambda case: held(case)[1] == "row_sparse",
    ),
    Difference(
        "elemwise",
        ("FullyConnected",),
        "grad_stype grad_value",
        "The gradient of a csr operand has the pattern of the operand, and is not computed elsewhere.",
        when=lambda case: held(case)[0] == "csr",
    ),
)

OPTIMIZERS = (
    Difference(
        "optim",
        ("SGD", "NAG", "Adam"),
        "state_stypes",
        "States have the format of the weights, whether rows that are absent from a gradient are touched or not.",
        when=lambda case: case["weight_stype"] == "row_sparse",
    ),
    Difference(
        "optim",
        ("Ftrl", "RMSProp", "Signum", "NAG"),
        "fallback",
        "Every rule takes row_sparse gradients: lazily, exactly, or as asked for here with zeros in the other rows.",
        when=lambda case: case["grad_stype"] == "row_sparse",
    ),
)

DIFFERENCES: tuple[Difference, ...] = (
    *STORAGE,
    *ELEMENT_WISE,
    *DOT,
    *REDUCTIONS,
    *LAYOUT,
    *LAYERS,
    *OPTIMIZERS,
)
