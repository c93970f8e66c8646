"""Every operator, on arrays drawn by Hypothesis in any formats: the result is that of its dense meaning.

Shapes are empty, of one row, of rank 0 to 3; values may be NaN and infinite; sparse arrays hold zeros, duplicates and
unsorted entries, with int32 and int64 indices.
"""

import contextlib
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernels
from tests.support import op_arrays, op_examples
from workbench import formats, ops

BASES = ((), (0,), (1,), (5,), (0, 3), (3, 0), (1, 4), (4, 1), (4, 3), (1, 1), (3, 2, 2), (0, 2, 2), (2, 1, 3))
UNSTORED_IS_ZERO = {
    "multiply": "zero times NaN or infinity, where the zero is not stored",
    "multiply_scalar": "zero times NaN or infinity, where the zero is not stored",
    "spread_times": "zero times NaN or infinity, where the zero is not stored",
    "divide": "zero divided by zero, where the first is not stored",
    "divide_scalar": "zero divided by zero, where the first is not stored",
    "stored_divide": "zero divided by zero, where the first is not stored",
}
"""There the result may be zero instead of NaN, as the operator's documentation says."""
FINITE = {
    "dot": "sums over stored values alone",
    "sampled_dot": "sums over stored values alone",
    "fully_connected": "sums over stored values alone",
    "slope_of_square_sum": "multiplies stored values alone",
    "interactions": "sums over stored values alone",
    "interactions_gradient": "sums over stored values alone",
    "field_sums": "sums over stored values alone",
    "field_sums_gradient": "sums over stored values alone",
}
"""Called with finite numbers: zero times infinity is left out of their sums."""
REFUSALS = (ops.OpError, formats.FormatError, kernels.KernelError)


@st.composite
def calls(draw, name: str):
    """Inputs and parameters of a call, and the dense inputs that they stand for."""
    op = ops.get(name)
    call = op_examples.call_of(op)
    base = draw(st.sampled_from([base for base in BASES if len(base) in call.ranks]))
    listed = call.listed(base)
    if not listed:
        return op, [], [], None
    shapes, params = draw(st.sampled_from(listed))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    special = draw(st.booleans()) and name not in FINITE
    dense = [_values(call, place, shape, shapes, rng, dtype, special) for place, shape in enumerate(shapes)]
    held = [draw(st.sampled_from(op_examples.formats_for(call, place, x))) for place, x in enumerate(dense)]
    index = np.int64 if draw(st.booleans()) else np.int32
    given_ = [op_arrays.messy(x, form, rng, index) for x, form in zip(dense, held, strict=True)]
    return op, dense, given_, op.resolve(params)


def _values(call, place, shape, shapes, rng, dtype, special) -> np.ndarray:
    x = op_arrays.draw(call.kind(place), shape, rng, shapes[call.of])
    if x.dtype.kind != "f":
        return x
    x = x.astype(dtype)
    if special and x.size:
        x.ravel()[rng.integers(0, x.size, 2)] = rng.choice([np.nan, np.inf, -np.inf], 2)
    return x


def _check(op, dense, given_, params) -> None:
    before = [op_arrays.parts_of(x) for x in given_]
    held = [formats.format_of(x) for x in given_]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ops.DensifyWarning)
            came = op(*given_, **params)
    except REFUSALS:
        _refused_rightly(op, dense, held, params)
        return
    chosen = op.choose(held, [x.shape for x in given_], params)
    assert formats.format_of(came) == chosen.result
    assert tuple(came.shape) == tuple(op.shape([x.shape for x in given_], params))
    assert came.dtype == op.dtype_of([x.dtype for x in given_], params)
    for x, parts in zip(given_, before, strict=True):
        for key, part in op_arrays.parts_of(x).items():
            np.testing.assert_array_equal(part, parts[key])
            assert part.dtype == parts[key].dtype
    if isinstance(came, np.ndarray):
        _check_out(chosen, given_, params, came)
    else:
        formats.check(came, canonical=came.format != "coo")
        formats.get(came.format).check_indices(came)
    _compare(op, dense, given_, params, came)


def _check_out(chosen, given_, params, came) -> None:
    """A dense result can be had in an array that is given."""
    out = np.full(came.shape, 7, came.dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ops.DensifyWarning)
        assert chosen.call(*given_, out=out, **params) is out
    np.testing.assert_array_equal(out, came)


def _compare(op, dense, given_, params, came) -> None:
    """The values, where the operator's result depends on values alone."""
    call = op_examples.call_of(op)
    meaning = call.meaning or op.dense
    if call.differs and any(formats.format_of(x) != "dense" for x in given_):
        return
    with np.errstate(all="ignore"):
        wanted = np.asarray(meaning(*dense, **params))
    found = op_arrays.dense_of(came)
    if op.name in UNSTORED_IS_ZERO:
        whole = [op_arrays.stored_places(x) for x in given_ if x.shape == wanted.shape]  # no rule is for smaller ones
        stored = np.logical_and.reduce([np.ones(wanted.shape, bool), *whole])
        wanted = np.where(~stored & ~np.isfinite(wanted) & (found == 0), 0, wanted)
    double = found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12 if double else 3e-5, atol=1e-12 if double else 3e-5)


def _refused_rightly(op, dense, held, params) -> None:
    """A refusal is of the shapes or of the numbers, for which the dense call is refused too, or the table's own."""
    try:
        rule = op.choose(held, [x.shape for x in dense], params)
    except ops.OpError:
        assert any(rule.refusal for rule in op.rules)
        return
    assert rule is not None
    with pytest.raises(REFUSALS):
        op(*dense, **params)


@pytest.mark.parametrize("name", ops.names())
@settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_operator_has_its_dense_meaning(name, data):
    _draw_and_check(name, data)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ops.names())
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_operator_has_its_dense_meaning_in_more_draws(name, data):
    _draw_and_check(name, data)


def _draw_and_check(name, data) -> None:
    """Draw a call of the operator and compare it with its dense meaning."""
    op, dense, given_, params = data.draw(calls(name))
    if params is not None:
        _check(op, dense, given_, params)


def test_every_exception_is_in_the_documentation_of_its_operator():
    for name in UNSTORED_IS_ZERO:
        assert "stays zero" in ops.get(name).doc
    assert {*UNSTORED_IS_ZERO, *FINITE} <= set(ops.names())


@pytest.mark.parametrize("name", ops.names())
def test_the_table_of_calls_reaches_every_rule(name):
    op, call, reached = ops.get(name), op_examples.call_of(ops.get(name)), set()
    for base in ((4, 3), (3, 2, 2), (4,)):
        for shapes, params in call.listed(base) if len(base) in call.ranks else ():
            rng = np.random.default_rng(0)
            dense = [op_arrays.draw(call.kind(i), s, rng, shapes[call.of]) for i, s in enumerate(shapes)]
            possible = [op_examples.formats_for(call, place, x) for place, x in enumerate(dense)]
            for held in itertools.product(*possible):
                with contextlib.suppress(ops.OpError):
                    reached.add(id(op.choose(held, shapes, op.resolve(params))))
    missed = [rule for rule in op.rules if id(rule) not in reached and not rule.refusal]
    assert not missed, [(rule.inputs, rule.result, rule.condition) for rule in missed]
