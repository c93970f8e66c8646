"""Every gradient equals finite differences of the operator's dense meaning, in float64, for inputs in every format."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.support import op_arrays, op_calls, op_examples
from tests.support.covering import cover
from workbench import formats, ops

STEP = 1e-6
NOT_THE_DERIVATIVE = {
    "stop_gradient": "lets none through, which is what it is for",
    "make_loss": "gives ones whatever the head",
    "linear_regression_output": "ignores the head",
    "logistic_regression_output": "ignores the head",
    "mae_regression_output": "ignores the head",
    "softmax_output": "ignores the head",
}
NONE = {
    "zeros": "has no inputs",
    "random_uniform": "has no inputs",
    "random_normal": "has no inputs",
    **dict.fromkeys(("slope_of_output", "slope_of_softmax"), "is the gradient of what ignores its head"),
}
SAMPLED = ("interactions", "interactions_gradient", "field_sums", "field_sums_gradient", "dot", "fully_connected")
"""The gradient towards a csr, csc or coo matrix is computed where that stores something, and nowhere else."""


def examples(name: str):
    """Dense inputs and parameters, for each shape and each parameters of the operator's row in the table of calls."""
    op, rng = ops.get(name), np.random.default_rng(len(name))
    call = op_examples.call_of(op)
    for base in ((4, 3), (3, 2, 2)):
        if len(base) not in call.ranks:
            continue
        for shapes, params in call.listed(base):
            inputs = [op_arrays.draw(call.kind(i), s, rng, shapes[call.of]) for i, s in enumerate(shapes)]
            yield op, inputs, op.resolve(params)


def numeric(
    meaning: Callable, inputs: list, params: dict, place: int, head: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of sum(head * output) towards one input, by central differences, and where it exists.

    It does not where the differences to both sides are far from each other: at kinks, jumps and poles.
    """
    found, exists = np.zeros(inputs[place].shape), np.zeros(inputs[place].shape, bool)
    for index in np.ndindex(found.shape):
        outputs = []
        for step in (-STEP, 0, STEP):
            moved = [x.copy() for x in inputs]
            moved[place][index] += step
            outputs.append(np.asarray(meaning(*moved, **params)))
        before, after = (_slope(head, *pair) for pair in itertools.pairwise(outputs))
        found[index] = (before + after) / 2
        exists[index] = abs(after - before) < 1e-3 * (1 + abs(before)) and abs(before) < 1e3
    return found, exists


def _slope(head: np.ndarray, one: np.ndarray, two: np.ndarray) -> float:
    """Of two outputs, those elements that stay as they are not counted, be they infinite."""
    return float(np.sum(np.where((one == two) | (np.isnan(one) & np.isnan(two)), 0, head * (two - one)))) / STEP


def formats_together(each: list, is_whole: bool) -> list[tuple]:
    """Formats of the inputs, of those of each: every pair of them somewhere, or every combination if `is_whole`."""
    combinations = list(itertools.product(*each))
    chosen = cover([{str(place): form for place, form in enumerate(held)} for held in combinations])
    return combinations if is_whole else [combinations[number] for number in chosen]


def test_every_operator_has_a_gradient_or_a_reason():
    without = {name for name in ops.names() if ops.get(name).gradient is None}
    assert without == set(NONE) & set(ops.names())
    assert set(NOT_THE_DERIVATIVE) <= set(ops.names())


@pytest.mark.parametrize("name", [name for name in ops.names() if name not in {*NONE, *NOT_THE_DERIVATIVE}])
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_gradient(name, pytestconfig):
    compared, call, is_whole = 0, op_examples.call_of(ops.get(name)), pytestconfig.getoption("--exhaustive")
    for op, inputs, params in examples(name):
        meaning = call.meaning or op.dense
        with np.errstate(all="ignore"):
            output = np.asarray(meaning(*inputs, **params))
        head = np.random.default_rng(5).uniform(0.5, 1.5, output.shape)

        @functools.cache
        def wanted(stored: bytes, inputs=inputs, params=params, head=head, meaning=meaning) -> dict:
            kept = np.frombuffer(stored, bool).reshape(head.shape) * head
            places = [place for place, x in enumerate(inputs) if x.dtype.kind == "f"]
            with np.errstate(all="ignore"):
                return {place: numeric(meaning, inputs, params, place, kept) for place in places}

        for held in formats_together([op_examples.formats_for(call, *pair) for pair in enumerate(inputs)], is_whole):
            compared += _compare(op, inputs, params, held, head, wanted)
    assert compared > 20, f"{name} was compared at {compared} places"


def _read_from(op, given, params, head) -> np.ndarray:
    """Where the head is read: everywhere, but of operators that compute at the places of a pattern alone."""
    pattern = op_examples.call_of(op).pattern
    if pattern is None or given[pattern].shape != head.shape:
        return np.ones(head.shape, bool)
    by_rows = op.name.startswith("stored_") or params.get("rows")
    if formats.format_of(given[pattern]) == "row_sparse" and not by_rows:
        return np.ones(head.shape, bool)
    return op_arrays.stored_places(given[pattern])


def _compare(op, inputs, params, held, head, wanted) -> int:
    """The number of elements that were compared."""
    given = [op_arrays.messy(x, form, np.random.default_rng(1)) for x, form in zip(inputs, held, strict=True)]
    try:
        output = op(*given, **params)
    except ops.OpError:
        assert any(rule.refusal for rule in op.rules), f"{op.name}({', '.join(held)}) is refused by no rule"
        return 0
    came = op.gradient(formats.to_format(head, formats.format_of(output)), output, tuple(given), params)
    assert len(came) == len(inputs)
    compared = 0
    for place, (expected, exists) in wanted(_read_from(op, given, params, head).tobytes()).items():
        if came[place] is not None:
            found = op_arrays.dense_of(came[place])
            where = f"{op.name}({', '.join(held)}), {params}, input {place}"
            assert found.shape == expected.shape, where
            if op.name in SAMPLED and {held[place], formats.format_of(came[place])} <= set(op_calls.MATRICES):
                stored = op_arrays.stored_places(given[place])
                assert not found[~stored].any(), where
                exists = exists & stored
            np.testing.assert_allclose(found[exists], expected[exists], rtol=2e-4, atol=1e-7, err_msg=where)
            compared += int(exists.sum())
    return compared
