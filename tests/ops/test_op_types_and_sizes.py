"""Every operator on every type of whole numbers, and on shapes that pass 2**63: right, or refused in words."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import kernels
from tests.support import op_arrays, op_examples
from workbench import formats, ops

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16")
REFUSALS = (ops.OpError, ops.DensifyError, formats.FormatError, kernels.KernelError)
BASE = (4, 3)
MOST, WAYS = 3, 10
"""Calls of the table for each operator."""
pytestmark = pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")


def whole(call, shapes, dtype):
    """Inputs of whole numbers of that type; numbers of rows and classes as they are."""
    rng = np.random.default_rng(0)
    drawn = [op_arrays.draw(call.kind(place), shape, rng, shapes[call.of]) for place, shape in enumerate(shapes)]
    return [x if x.dtype.kind == "i" else np.asarray(rng.integers(0, 4, x.shape)).astype(dtype) for x in drawn]


def held_in(call, inputs):
    """Ways to hold them, `WAYS` from everywhere among them; numbers of rows and classes are dense."""
    rows = [call.kind(place) in ("rows", "classes") for place in range(len(inputs))]
    formats_of = (
        ("dense",) if fixed else op_examples.formats_for(call, place, np.empty(x.shape))
        for place, (x, fixed) in enumerate(zip(inputs, rows, strict=True))
    )
    ways = list(itertools.product(*formats_of))
    return ways[:: max(1, len(ways) // WAYS)]


ONLY_FLOATS = {"dot", "logistic_loss", "sampled_dot", "slope_of_loss", "softmax_loss", "squared_loss"}
"""Operators that refuse whole numbers, of every type."""


@pytest.mark.parametrize("name", ops.names())
def test_whole_numbers_of_every_type(name):
    op, call, are_taken = ops.get(name), op_examples.call_of(ops.get(name)), False
    base = BASE if 2 in call.ranks else BASE[:1]
    for (shapes, params), dtype in itertools.product(call.listed(base)[:MOST], TYPES):
        params, inputs = op.resolve(params), whole(call, shapes, dtype)
        for held in held_in(call, inputs):
            if dtype in ("float16", "bool") and {*held} != {"dense"}:
                continue  # SciPy holds no float16, and no format of ours bool
            try:
                given = [
                    op_arrays.messy(x, form, np.random.default_rng(1)) for x, form in zip(inputs, held, strict=True)
                ]
                result = op(*given, **params)
            except REFUSALS:
                continue
            are_taken = True
            assert result.dtype == op.dtype_of([x.dtype for x in given], params)
            if not call.differs:
                with np.errstate(all="ignore"):
                    wanted = (call.meaning or op.dense)(*map(op_arrays.dense_of, given), **params)
                np.testing.assert_allclose(op_arrays.dense_of(result), wanted, rtol=1e-2, atol=1e-2)
    assert are_taken == (name not in ONLY_FLOATS)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: ops.sum(np.full(300, 1, np.uint8)), np.int64(300)),
        (lambda: ops.sum(sp.csr_array(np.full((1, 300), 1, np.uint8)), axis=1), np.array([300])),
        (lambda: ops.prod(np.full(3, 100, np.uint8)), np.int64(10**6)),
        (
            lambda: ops.square_sum(formats.RowSparse(np.full((1, 2), 70_000, np.int32), [0], (2, 2))),
            np.int64(98 * 10**8),
        ),
        (
            lambda: ops.take(sp.csr_array(np.eye(3, dtype="i4")), np.array([2, 0])).toarray(),
            np.eye(3, dtype="i4")[[2, 0]],
        ),
        (lambda: ops.clip(np.array([0, 1, 5], np.uint8), low=-1, high=2), np.array([0, 1, 2], np.uint8)),
        (lambda: ops.clip(np.array([-4, 9], np.int64), low=-np.inf, high=3), np.array([-4, 3])),
    ],
)
def test_whole_numbers_do_not_wrap(call, wanted):
    result = call()
    assert np.asarray(result).dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"low": 0.5, "high": 1}, "low is 0.5, which int32 does not hold; give a whole number, or cast x"),
        ({"low": 2.0**40, "high": 2.0**41}, "int32 goes from -2147483648 to 2147483647"),
    ],
)
def test_bounds_that_whole_numbers_do_not_hold_are_refused(bounds, message):
    with pytest.raises(ops.OpError, match=message):
        ops.clip(np.zeros(2, np.int32), **bounds)


def test_types_that_no_format_holds_are_refused_but_as_labels_and_rows():
    with pytest.raises(ops.OpError, match=r"add: x is uint64; allowed are float32, .* Convert it with astype"):
        ops.add(np.ones(2, np.uint64), np.ones(2, np.uint64))
    assert ops.take(np.arange(3.0), np.array([1], np.uint64)).tolist() == [1]
    assert ops.where(np.array([True, False]), np.ones(2), np.zeros(2)).tolist() == [1, 0]


def test_duplicates_are_summed_before_they_are_mapped():
    twice = sp.coo_array((np.array([2.0, -1.0]), ([0, 0], [0, 0])), shape=(1, 1))
    assert ops.multiply(twice, -np.inf).toarray().tolist() == [[-np.inf]]
    halves = sp.coo_array((np.array([0.5, 0.5]), ([0, 0], [0, 0])), shape=(1, 1))
    assert ops.cast(halves, dtype="int32").toarray().tolist() == [[1]]


@pytest.mark.parametrize("name", [name for name in ops.names() if op_examples.maps_stored_values(name)])
def test_operators_that_map_values_sum_duplicates_first(name):
    op, call = ops.get(name), op_examples.call_of(ops.get(name))
    for params in call.params((1, 1)):
        for form in ("csr", "csc", "coo"):
            index = {"data": np.array([3.0, -2.25])} | dict.fromkeys(("row", "col"), np.zeros(2, np.int32))
            if form != "coo":
                index = {"data": index["data"], "indices": index["row"], "indptr": np.array([0, 2], np.int32)}
            once = formats.to_format(np.array([[0.75]]), form)
            with np.errstate(all="ignore"):
                one, two = (op(x, **params) for x in (formats.get(form).build(index, (1, 1)), once))
            np.testing.assert_array_equal(op_arrays.dense_of(one), op_arrays.dense_of(two))


HUGE = {
    "coo": sp.coo_array((np.ones(2), (np.array([1, 2**39]), np.array([0, 2**39]))), shape=(2**40, 2**40)),
    "tall coo": sp.coo_array((np.ones(1), (np.array([2**61]), np.array([0]))), shape=(2**62, 3)),
    "csr": sp.csr_array((np.ones(1), np.array([2**61]), np.array([0, 1, 1])), shape=(2, 2**62)),
    "csc": sp.csc_array((np.ones(1), np.array([2**61]), np.array([0, 1, 1])), shape=(2**62, 2)),
    "row_sparse": formats.RowSparse(np.ones((1, 3)), [2**61], (2**62, 3)),
}
GIVEN = {
    "shape": (3, 2**62), "format": "csr", "dtype": "float32", "scalar": 2.0, "axes": None, "begin": [1], "end": [2],
    "low": -1.0, "high": 1.0, "place": 0, "seed": 0, "loss": "squared_loss", "fields": (2**61, 2**61),
}  # fmt: skip


@pytest.mark.covering(targets=lambda case: op_examples.targets_of_paths(case["name"], case["held"].split()[-1]))
@pytest.mark.parametrize("held", HUGE)
@pytest.mark.parametrize("name", [name for name in ops.names() if ops.get(name).inputs])
def test_shapes_past_two_to_the_63(name, held):
    op, x = ops.get(name), HUGE[held]
    required = {key: GIVEN[key] for key, value in op.params.items() if value is ops.REQUIRED}
    small = np.ones((2, 2)), np.array([0, 1]), np.ones(2)
    axes = [{"axis": axis} for axis in (None, 0, 1)] if "axis" in op.params else [{}]
    for inputs in itertools.product((x, *small), repeat=len(op.inputs)):
        if inputs[0] is x:
            for axis in axes:
                given = {**required, **axis}
                try:
                    came = op(*inputs, **given)
                except REFUSALS as error:
                    assert len(str(error)) > 20  # noqa: PT017 - any of several errors, or none, is right
                else:
                    shape = op.shape([each.shape for each in inputs], op.resolve(given))
                    assert formats.check(came).shape == shape


def test_the_mean_of_what_int64_cannot_count():
    assert float(ops.mean(HUGE["row_sparse"])) == pytest.approx(3 / (2**62 * 3))
    assert float(ops.mean(HUGE["coo"])) == pytest.approx(2 / 2.0**80)
    assert ops.count_stored(HUGE["coo"]) == 2
