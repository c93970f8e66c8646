"""Damaged graph JSON: a graph, or the project's own errors; what is read can be inferred and written again."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.mutations import damaged_bytes, damaged_json, draws, tried
from workbench import executor, formats, graph, ops
from workbench.formats import FormatError
from workbench.graph import GraphError
from workbench.ops import OpError

MUTATIONS = 120
WORDS = (FormatError, GraphError, OpError)


def whole():
    x, w = graph.variable("x", "csr", (4, 3)), graph.variable("w", shape=(3, 2), init=("normal", 0.1))
    scores = ops.dot(x, w, name="scores") * 2.5
    held = [formats.to_format(np.eye(2, 3), name) for name in ("dense", "csr", "csc", "coo", "row_sparse")]
    constants = [graph.constant(value, f"c{number}") for number, value in enumerate(held)]
    parts = [ops.sum(scores, axis=0), ops.slice(scores, begin=[0, 1], end=[None, 2]), ops.reshape(scores, shape=(2, 4))]
    parts += [ops.clip(scores, low=-1, high=np.inf), ops.transpose(scores, axes=(1, 0)), ops.cast(w, dtype="float64")]
    parts += [ops.take(scores, graph.variable("i"))]
    return graph.group([*parts, *(ops.dot(constant, ops.cast(w, dtype="float64")) for constant in constants)])


def used(text) -> bool:
    try:
        made = graph.from_json(text)
        made.infer({"x": (4, 3), "i": (2,)})
        graph.from_json(made.to_json())
    except WORDS:
        return False
    return True


def test_damaged_values():
    document, taken = json.loads(whole().to_json()), 0
    for _, source in draws(MUTATIONS):
        taken += used(json.dumps(damaged_json(source, document)))
    assert taken < tried(MUTATIONS)


def test_damaged_text():
    text = whole().to_json().encode()
    for _, source in draws(MUTATIONS):
        used(damaged_bytes(source, text))


@pytest.mark.filterwarnings("ignore")
def test_damaged_graphs_that_are_run():
    document = json.loads(whole().to_json())
    x = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    values = {"x": x, "w": np.ones((3, 2), np.float32), "i": np.int64([1, 2])}
    for _, source in draws(MUTATIONS // 4):
        try:
            made = graph.from_json(json.dumps(damaged_json(source, document)))
            bound = executor.bind(made, {name: values[name] for name in made.arguments() if name in values})
            bound.forward()
        except (*WORDS, executor.BindError):
            pass


def test_what_is_whole_is_taken_so_that_the_tests_above_can_fail():
    assert used(whole().to_json())
