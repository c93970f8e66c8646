"""Every operator on symbols, bound and run forwards and backwards, gives what it gives on arrays."""

import itertools

import numpy as np
import pytest

from tests.ops.test_op_gradients import NONE, examples
from tests.support import op_arrays, op_calls, op_examples
from workbench import executor, formats, graph, ops

FEW = 4
"""Calls of each operator, and formats of each call."""


def few(found) -> list:
    """Some of them from everywhere in the list."""
    listed = list(found)
    return listed[:: max(1, len(listed) // FEW)]


@pytest.mark.parametrize("name", [name for name in ops.names() if name not in NONE])
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_symbols_give_what_arrays_give(name):
    call, run = op_examples.call_of(ops.get(name)), 0
    for op, inputs, params in few(examples(name)):
        for held in few(itertools.product(*(op_examples.formats_for(call, i, x) for i, x in enumerate(inputs)))):
            given = [op_arrays.messy(x, form, np.random.default_rng(1)) for x, form in zip(inputs, held, strict=True)]
            try:
                output = op(*given, **params)
            except ops.OpError:
                continue
            _compare(op, given, params, output)
            run += 1
    assert run


def _compare(op, given, params, output) -> None:
    form = formats.format_of(output)
    head = formats.to_format(np.random.default_rng(5).uniform(0.5, 1.5, output.shape), form)
    wanted = op.gradient(head, output, tuple(given), params)
    named = {f"v{i}": x for i, x in enumerate(given)}
    asked = {
        name: "write" if x.dtype.kind == "f" and wanted[i] is not None else "null"
        for i, (name, x) in enumerate(named.items())
    }
    variables = [graph.variable(name, format=formats.format_of(x)) for name, x in named.items()]
    bound = executor.bind(op(*variables, **params), named, grad_req=asked)
    (came,) = bound.forward(training=True)
    assert formats.format_of(came) == form
    np.testing.assert_allclose(op_arrays.dense_of(came), op_arrays.dense_of(output), rtol=1e-9, atol=1e-12)
    bound.backward([head])
    for i, name in enumerate(named):
        if asked[name] == "write":
            expected, places = op_arrays.dense_of(wanted[i]), op_arrays.stored_places(given[i])
            if formats.format_of(given[i]) in op_calls.MATRICES:  # the places of the gradient are those of the array
                assert formats.format_of(bound.grads[name]) == formats.format_of(given[i])
                np.testing.assert_array_equal(op_arrays.stored_places(bound.grads[name]), places)
                expected = np.where(places, expected, 0)
            np.testing.assert_allclose(op_arrays.dense_of(bound.grads[name]), expected, rtol=1e-9, atol=1e-12)
