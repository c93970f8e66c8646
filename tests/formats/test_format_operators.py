"""Signs between row_sparse arrays and others ask the functions that were put in, and say what is missing."""

import operator
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.processes import printed
from workbench import formats
from workbench.formats import FormatError, RowSparse, row_sparse

BOTH = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "mod": operator.mod,
    "dot": operator.matmul,
}
COMPARED = {
    "less": (operator.lt, "greater"),
    "less_equal": (operator.le, "greater_equal"),
    "greater": (operator.gt, "less"),
    "greater_equal": (operator.ge, "less_equal"),
}
ONE = {"negative": operator.neg, "abs": operator.abs, "transpose": operator.attrgetter("T")}
IN_PLACE = {"add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv}


@pytest.fixture
def asked(monkeypatch):
    """Functions put in that say what they were called with."""
    monkeypatch.setattr(row_sparse, "_functions", {})
    formats.row_sparse.fill({name: lambda *given, name=name: (name, *given) for name in row_sparse.SIGNS})


def rows():
    return RowSparse([[1, 2]], [1], (3, 2))


OTHERS = [2, 2.5, np.float32(2), np.ones((3, 2), np.float32), sp.csr_array((3, 2)), sp.coo_array((3, 2)), rows()]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("name", BOTH)
def test_either_side_may_be_the_row_sparse_one(asked, name, other):
    x = rows()
    came, first, second = BOTH[name](x, other)
    assert (came, first is x, second is other) == (name, True, True)
    if name == "power" and sp.issparse(other):
        return  # SciPy refuses exponents other than numbers before it asks them
    came, first, second = BOTH[name](other, x)
    assert (came, first is other, second is x) == (name, True, True)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_are_mirrored_where_the_other_side_knows_none(asked, name, other):
    x = rows()
    sign, mirrored = COMPARED[name]
    came, first, second = sign(x, other)
    assert (came, first is x, second is other) == (name, True, True)
    if not isinstance(other, RowSparse):
        came, first, second = sign(other, x)
        assert (came, first is x, second is other) == (mirrored, True, True)


@pytest.mark.parametrize("name", ONE)
def test_signs_of_one_operand(asked, name):
    x = rows()
    assert ONE[name](x) == (name, x)


def test_every_sign_is_tested_here():
    assert set(row_sparse.SIGNS) == {*BOTH, *COMPARED, *ONE}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_the_array_keeps_its_format_and_type(monkeypatch, name):
    monkeypatch.setattr(row_sparse, "_functions", {})
    formats.row_sparse.fill({name: lambda x, y: np.full(x.shape, 7.9, np.float64)})
    x = same = RowSparse(np.int64([[1, 2]]), [1], (3, 2))
    x = IN_PLACE[name](x, 2)
    assert x is same
    assert (x.dtype, x.format) == (np.int64, "row_sparse")
    assert x.toarray().tolist() == [[7, 7]] * 3


def test_without_the_operators_a_sign_says_what_to_import():
    script = """
from workbench.formats import RowSparse
for use in (lambda x: x + 1, lambda x: 2 @ x, lambda x: -x, lambda x: x > 0):
    try:
        use(RowSparse([[1, 2]], [1]))
    except TypeError as error:
        print(error)
"""
    rest = "of row_sparse arrays is computed by workbench.ops; write: import workbench.ops"
    assert printed(script).splitlines() == [f"{sign} {rest}" for sign in ("+", "@", "unary -", ">")]


def test_unknown_names_cannot_be_put_in():
    with pytest.raises(FormatError, match=r"There is no sign for plus; the names are add, subtract, "):
        formats.row_sparse.fill({"plus": operator.add})


KEPT = ["x add 0", "x subtract 0", "x multiply 3", "3 multiply x", "x divide 2", "x negative", "x abs", "x greater 0"]
KEPT += ["x less -1", "x greater_equal 1", "x add y", "x subtract y", "x multiply y", "x multiply d", "d multiply x"]
DENSE = ["x add 1", "1 add x", "1 subtract x", "x subtract 1", "x less 1", "x less_equal 0", "x greater_equal 0"]
DENSE += ["x add d", "d subtract x", "x dot w", "v dot x"]


def computed(expression, known):
    """What an expression such as "x add 1" gives, "x" being one of the known arrays."""
    left, name, *right = expression.split()
    sign = {**BOTH, **ONE, **{name: sign for name, (sign, _) in COMPARED.items()}}[name]
    return sign(*(known[word] if word in known else int(word) for word in (left, *right)))


@pytest.mark.parametrize("expression", KEPT + DENSE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_give_the_formats_and_values_of_the_tables(expression, dtype):
    from workbench import ops

    x = RowSparse(np.array([[1, -2], [0, 3]], dtype), [0, 2], (4, 2))
    y = RowSparse(np.array([[1, 5], [4, -3]], dtype), [1, 2], (4, 2))
    given = {"d": np.arange(8, dtype=dtype).reshape(4, 2), "w": np.ones((2, 3), dtype), "v": np.ones((3, 4), dtype)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ops.DensifyWarning)
        came = computed(expression, {"x": x, "y": y, **given})
    wanted = computed(expression, {"x": x.toarray(), "y": y.toarray(), **given})
    assert formats.format_of(came) == ("row_sparse" if expression in KEPT else "dense")
    assert came.dtype == dtype
    np.testing.assert_array_equal(formats.to_format(came, "dense"), wanted.astype(dtype))


def test_in_place_arithmetic_of_the_operators():
    from workbench import ops

    x = RowSparse(np.float32([[1, -2]]), [1], (3, 2))
    x *= 3
    x -= RowSparse(np.float32([[1, 1]]), [2], (3, 2))
    assert x == RowSparse(np.float32([[3, -6], [-1, -1]]), [1, 2], (3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ops.DensifyWarning)
        x += 1
    assert x.toarray().tolist() == [[1, 1], [4, -5], [0, 0]]


def test_equality_stays_that_of_the_whole(asked):
    assert rows() == rows()
    assert (rows() == 2) is False
    assert (rows() != np.ones((3, 2))) is True
