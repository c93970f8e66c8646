"""Values of the operators: ties, numbers on either side, what is refused, what is made of nothing, the table."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.support import op_arrays
from workbench import formats, ops

DENSE = np.float32([[0, 0.5, 0, 0], [0, 0, 0, 0], [0.25, 0, 0.75, 0]])


def test_ties_are_rounded_as_recorded():
    x = np.float64([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    assert ops.round(x).tolist() == [-3, -2, -1, 1, 2, 3]
    assert ops.rint(x).tolist() == [-3, -2, -1, 0, 1, 2]
    assert ops.fix(x).tolist() == ops.trunc(x).tolist() == [-2, -1, 0, 0, 1, 2]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_is_right_next_to_ties_and_for_large_numbers(dtype):
    below = np.nextafter(dtype(0.5), dtype(0))
    odd = dtype(2 ** np.finfo(dtype).nmant + 1)
    x = np.array([below, -below, odd, -odd, np.inf, -np.inf], dtype)
    wanted = [0, 0, odd, -odd, np.inf, -np.inf]
    for name in ("round", "rint"):
        came = getattr(ops, name)(x)
        assert came.dtype == dtype
        np.testing.assert_array_equal(came, wanted)
        assert np.isnan(getattr(ops, name)(np.array([np.nan], dtype))).all()


def test_numbers_stand_on_either_side():
    x = np.float32([[1, -2]])
    for name, wanted in {
        "add": (x + 3, 3 + x), "subtract": (x - 3, 3 - x), "multiply": (x * 3, 3 * x), "divide": (x / 3, 3 / x),
        "power": (x**3, 3**x), "mod": (x % 3, 3 % x), "maximum": (np.maximum(x, 3),) * 2, "greater": (x > 3, x < 3),
        "less_equal": (x <= 3, x >= 3), "hypot": (np.hypot(x, 3),) * 2, "equal": (x == 3, x == 3),
    }.items():  # fmt: skip
        op = getattr(ops, name)
        for came, expected in ((op(x, 3), wanted[0]), (op(3, x), wanted[1]), (op(x, np.float64(3)), wanted[0])):
            assert came.dtype == np.float32, name
            np.testing.assert_allclose(came, expected, rtol=1e-6)


def test_results_without_dimensions_are_arrays():
    assert isinstance(ops.add(np.array(1.0), np.array(2.0)), np.ndarray)
    assert isinstance(ops.square(np.array(1.0)), np.ndarray)


def test_nothing_warns_of_nan_and_infinity():
    x = np.array([0.0, -1.0, np.inf, np.nan])
    for name in ("log", "sqrt", "reciprocal", "arccosh", "exp", "rsqrt", "softmax", "tan"):
        getattr(ops, name)(x)
    ops.divide(x, x)
    ops.multiply(x, np.array([np.inf]))


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.add(DENSE, DENSE.astype(np.float64)), r"types differ: float32, float64. They must be the same"),
        (lambda: ops.sin(np.arange(3)), r"An array of int64 came; allowed are float32, float64, float16. Convert with"),
        (lambda: ops.add(DENSE, DENSE[:, :3]), r"The shapes \(3, 4\), \(3, 3\) cannot be broadcast together"),
        (lambda: ops.add_n(DENSE, DENSE[:1]), r"The shapes differ: \(3, 4\), \(1, 4\). They must be the same"),
        (
            lambda: ops.stored_divide(DENSE[:1], DENSE),
            r"shape \(1, 4\) cannot be divided where it is stored by a larger",
        ),
        (lambda: ops.sum_to_shape_of(DENSE, DENSE[:2]), r"shape \(3, 4\) cannot be summed to \(2, 4\)"),
        (lambda: ops.sum_to_shape_of(DENSE[0], DENSE), r"shape \(4,\) cannot be summed to \(3, 4\)"),
        (lambda: ops.add_scalar(DENSE), r"add_scalar needs the parameter scalar"),
        (lambda: ops.abs(DENSE, scale=2), r"abs has no parameter \['scale'\]; its parameters are \[\]"),
        (lambda: ops.add(DENSE), r"add takes 2 array\(s\), x, y; 1 came"),
        (ops.add_n, r"add_n takes at least 1 array\(s\), \*arrays; 0 came"),
        (lambda: ops.get("cosine"), r"Unknown operator 'cosine'.*Expected one of: abs, add"),
        (lambda: ops.random_normal(shape=(2,), seed=-1), r"seed is -1; a whole number from 0 on or a numpy.random.Gen"),
        (lambda: ops.random_normal(shape=(2,), seed=1, dtype="int64"), r"An array of int64 came"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ops.OpError, match=message):
        call()


def test_invalid_arrays_are_refused_before_anything_reads_them():
    with pytest.raises(formats.FormatError, match="indptr has 3 entries for 3 rows"):
        ops.abs(op_arrays.csr([1, 2], [0, 1], [0, 1, 2], (3, 4)))
    with pytest.raises(formats.FormatError, match="out of range"):
        ops.multiply(op_arrays.csr([1], [7], [0, 1], (1, 4)), np.ones((1, 4), np.float32))
    with pytest.raises(formats.FormatError, match="negative index"):
        ops.add(op_arrays.csr([1], [-1], [0, 1], (1, 4)), np.ones((1, 4), np.float32))
    with pytest.raises(formats.FormatError, match="none of the formats"):
        ops.abs([1.0, 2.0])


def test_an_unknown_operator_is_no_attribute():
    with pytest.raises(AttributeError, match=r"workbench.ops has no attribute 'cosine'; the operators are: abs, add"):
        ops.cosine  # noqa: B018
    assert not hasattr(ops, "__wrapped__")
    assert {"abs", "dot", "get", "settings"} <= set(dir(ops))


# Made of nothing, and the printed table


@pytest.mark.parametrize("form", formats.names())
def test_the_same_seed_gives_the_same_numbers_in_every_format(form):
    for name in ("random_uniform", "random_normal"):
        made = getattr(ops, name)
        came = made(shape=(5, 3), format=form, seed=4, dtype="float64")
        assert formats.format_of(came) == form
        np.testing.assert_array_equal(formats.to_format(came, "dense"), made(shape=(5, 3), seed=4, dtype="float64"))
        assert form == "dense" or came.nnz == 15
    drawn = ops.random_uniform(shape=(1000,), low=2.0, high=3.0, seed=np.random.default_rng(1))
    assert 2 <= drawn.min() < 2.1
    assert 2.9 < drawn.max() < 3
    assert drawn.dtype == np.float32
    normal = ops.random_normal(shape=(4000,), mean=5.0, deviation=0.1, seed=7)
    assert abs(normal.mean() - 5) < 0.01
    assert abs(normal.std() - 0.1) < 0.01


def test_a_generator_goes_on_where_it_was():
    source = np.random.default_rng(1)
    one, two = (ops.random_normal(shape=(3,), seed=source) for _ in range(2))
    assert not np.array_equal(one, two)


def test_a_row_sparse_of_random_numbers_has_all_rows_of_any_rank():
    came = ops.random_normal(shape=(4, 2, 3), format="row_sparse", seed=0)
    assert came.indices.tolist() == [0, 1, 2, 3]
    assert ops.zeros(shape=(4, 2, 3), format="row_sparse").nnz == 0


def test_the_printed_table_has_every_operator_and_every_rule():
    text = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "operators.py"))["describe_operators"]()
    for name in ops.names():
        op = ops.get(name)
        start = text.index(f"### {name}(")
        entry = text[start : text.find("\n### ", start + 1)]
        assert op.doc, f"{name} has no documentation"
        assert op.family, f"{name} has no family"
        assert ("with a gradient" if op.gradient else "without a gradient") in entry
        for param in op.params:
            assert param in entry
        for rule in op.rules:
            held = ", ".join("..." if word is ... else word for word in rule.inputs) or "-"
            assert any(held in line and (rule.condition or "-") in line for line in entry.splitlines()), (name, held)
    assert all(line.count("|") == 5 for line in text.splitlines() if line.startswith("| ") and "\\|" not in line)
