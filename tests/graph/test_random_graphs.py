"""Gradients of random graphs equal differences of their dense meaning, whatever formats, patterns and values.

Thousands more: `python -m tests.support.random_graphs --graphs 20000 --seed 7`.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import random_graphs
from workbench import ops

FEW = 250
"""Graphs in the suite: about five seconds."""


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@settings(max_examples=FEW, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_gradients_are_those_of_the_dense_meaning(data):
    case = random_graphs.grown(lambda options: data.draw(st.sampled_from(options)), data.draw(st.integers(0, 2**32)))
    random_graphs.check(case)


@pytest.mark.parametrize("wrong", ["negative", "multiply", "dot"])
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_a_wrong_gradient_is_noticed(wrong, monkeypatch):
    right = ops.get(wrong).gradient

    def halved(head, output, inputs, params):
        return tuple(
            None if part is None else ops.multiply_scalar(part, scalar=0.5)
            for part in right(head, output, inputs, params)
        )

    monkeypatch.setitem(vars(ops.get(wrong)), "gradient", halved)
    noticed = 0
    for seed in range(150):
        try:
            random_graphs.check(random_graphs.of_seed(seed))
        except AssertionError:
            noticed += 1
    assert noticed
