"""Memory of executors: no allocation in steady steps, buffers shared in time, values never overwritten too early."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
import scipy.sparse

import kernels
from tests.support.toy_losses import first_type
from workbench import autodiff, executor, formats, graph, ops
from workbench.executor import run
from workbench.executor.program import Shared, last_uses
from workbench.ops.contract import Op


def _joint(scores, labels, slope):
    return kernels.get("softmax").cpu(scores, labels, slope)


def _alone(scores, labels, out=None):
    return np.asarray(_joint(scores, labels, np.empty_like(scores)), scores.dtype)


loss = Op("kernel_loss", ("scores", "labels"), _alone, lambda s, p: (), dtype=first_type, joint=_joint)
loss = Op(**{**vars(loss), "gradient": lambda head, output, inputs, params: (None, None)})

D, N, R = 3000, 200, 200
LITTLE = 100_000
"""Bytes less than any buffer has (scores 160 000, gradient 2 400 000), more than the kernels' own index work."""


def batch(rows=R):
    random = np.random.default_rng(rows)
    x = scipy.sparse.random_array((rows, D), density=0.005, format="csr", dtype=np.float32, random_state=random)
    return {"x": x, "y": random.integers(0, N, rows)}


def trained(grad_formats):
    x, w = graph.variable("x", "csr", (None, D)), graph.variable("w", shape=(D, N))
    made = loss(ops.dot(x, w), graph.variable("y", shape=(None,), dtype="int64"))
    return executor.bind(made, batch(), grad_req={"w": "write"}, grad_formats={"w": grad_formats})


def step_with_plan(grad_formats):
    """The executor, a step of it whose plan is made beforehand, and that plan."""
    made, held = trained(grad_formats), batch()
    plan = kernels.plan.build(held["x"].indptr, held["x"].indices, D)

    def step():
        made.forward(training=True, plans={"x": plan}, **held)
        made.backward()

    return made, step, plan


def peak_of(step) -> int:
    """Bytes that a step had more at once than before it, as NumPy and Python tell."""
    step()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_steady_step_with_a_dense_gradient_allocates_nothing_of_size():
    made, held = trained("dense"), batch()

    def step():
        made.forward(training=True, **held)
        made.backward()

    step()
    grown = made.pool.grown
    assert peak_of(step) < LITTLE
    assert made.pool.grown == grown


def test_a_steady_fused_step_allocates_nothing_of_size_but_the_plan():
    _, step, _ = step_with_plan("fused")
    assert peak_of(step) < LITTLE


def test_a_row_sparse_step_allocates_no_more_than_the_touched_rows():
    made, step, plan = step_with_plan("row_sparse")
    made.grads.clear()
    assert peak_of(step) < 2 * plan.touched * N * 4 + LITTLE  # the gradient before is still held


def test_the_measure_of_allocations_can_fail():
    assert peak_of(lambda: np.empty(10_000)) >= 80_000


def test_smaller_batches_take_the_leading_part_and_larger_ones_grow_it_once():
    made = trained("dense")
    scores = executor.bind(made.graph.inputs[0], {"x": batch()["x"]}, grad_req={"w": "write"})
    first = scores.forward()[0]
    grown = scores.pool.grown
    small = scores.forward(x=batch(50)["x"])[0]
    assert small.shape == (50, N)
    assert small.flags.c_contiguous
    assert small.ctypes.data == first.ctypes.data
    assert scores.forward(x=batch()["x"])[0].ctypes.data == first.ctypes.data
    assert scores.pool.grown == grown
    scores.forward(x=batch(400)["x"])
    assert scores.pool.grown == grown + 1
    scores.forward(x=batch(300)["x"])
    scores.forward(x=batch(400)["x"])
    assert scores.pool.grown == grown + 1


def test_alternating_shapes_allocate_nothing():
    made, large, small = trained("dense"), batch(), batch(60)

    def both():
        for held in (large, small):
            made.forward(training=True, **held)
            made.backward()

    both()
    assert peak_of(both) < LITTLE


def test_dead_buffers_are_taken_again_and_outputs_are_not():
    node = graph.variable("v", shape=(1000,))
    middle = None
    for place in range(20):
        node = ops.negative(node)
        middle = node if place == 9 else middle
    made = executor.bind(graph.group([node, middle]), {"v": np.ones(1000, np.float32)})
    assert len(made.pool.blocks) == 2 + 2
    last, tenth = made.forward()
    assert (last == 1).all()
    assert (tenth == 1).all()
    assert not np.shares_memory(last, tenth)


def test_values_of_other_dtypes_do_not_share():
    v = graph.variable("v", shape=(100,))
    node = ops.negative(ops.negative(v))
    node = ops.cast(node, dtype="float64")
    made = executor.bind(ops.negative(ops.negative(node)), {"v": np.ones(100, np.float32)})
    assert made.forward()[0].dtype == np.float64
    assert (made.forward()[0] == 1).all()


def test_gradients_are_held_apart_from_what_later_steps_write():
    made = trained("dense")
    made.forward(training=True)
    found = made.backward()["w"].copy()
    kept = made.grads["w"]
    made.forward()
    np.testing.assert_array_equal(kept, found)


def test_last_uses_keep_what_a_sparse_result_may_share():
    steps = [("a", ["x"], False), ("s", ["a"], True), ("b", ["x"], False), ("c", ["s", "b"], False)]
    assert last_uses(steps, ["c"]) == {"c": 4, "s": 3, "b": 3, "a": 3, "x": 2}
    assert last_uses([("a", ["x"], False), ("s", ["a"], True)], ["s"])["a"] == 2


def test_the_smallest_free_block_that_is_large_enough_is_taken():
    shared, kind = Shared(), np.dtype(np.float32)
    keys = [shared.take(size, kind) for size in (10, 30, 20)]
    for key in keys:
        shared.give_back(key)
    assert shared.take(15, kind) == keys[2]
    assert shared.take(25, kind) == keys[1]
    assert shared.take(40, kind) == keys[0]
    assert shared.sizes[keys[0]] == 40
    assert shared.take(1, kind) not in keys
    assert shared.take(1, np.dtype(np.float64))[0] == "float64"


def evaluated(symbols, args):
    """Values by the operators on arrays, each in memory of its own."""
    values = {}
    for node in graph.group(symbols).nodes():
        if node.op is None:
            values[node] = args[node.name] if node.kind == "variable" else node.value
        else:
            values[node] = node.op(*(values[entry] for entry in node.inputs), **node.params)
    return [formats.to_format(values[symbol], "dense") for symbol in symbols]


def random_graph(seed):
    """A graph of twenty operators on dense and sparse square matrices, values reused at random."""
    random = np.random.default_rng(seed)
    nodes = [graph.variable("a"), graph.variable("b", "csr"), graph.variable("c", "row_sparse"), graph.variable("d")]
    one = [ops.negative, ops.sin, ops.tanh, ops.square, lambda v: ops.multiply_scalar(v, scalar=0.5)]
    two = [ops.add, ops.multiply, ops.subtract, ops.dot, ops.maximum]
    for _ in range(20):
        recent = nodes[-int(random.integers(1, len(nodes) + 1)) :]
        left, right = (recent[int(random.integers(len(recent)))] for _ in range(2))
        if random.random() < 0.4:
            nodes.append(one[int(random.integers(len(one)))](left))
        else:
            nodes.append(ops.tanh(two[int(random.integers(len(two)))](left, right)))
    heads = [nodes[-1], nodes[int(random.integers(4, len(nodes)))]]
    return graph.group([ops.sin(head) for head in heads])


@pytest.mark.parametrize("grad_format", ["fused", "row_sparse", "dense"])
def test_release_lets_go_of_the_plan_and_keeps_what_is_summed(grad_format):
    made, held = trained(grad_format), batch()
    plan = kernels.plan.build(held["x"].indptr, held["x"].indices, D)
    columns = weakref.ref(plan.columns)
    made.forward(training=True, plans={"x": plan}, **held)
    first = made.backward()["w"]
    wanted = formats.to_format(first.compute() if grad_format == "fused" else first, "dense").copy()
    made.release()
    assert ("w" in made.grads) == (grad_format != "fused")
    del plan, first
    made.grads.clear()
    made.values = [None if isinstance(value, formats.RowSparse) else value for value in made.values]
    gc.collect()
    assert columns() is None
    with pytest.raises(executor.BindError, match=r"Call forward\(training=True\) first"):
        made.backward()
    made.forward(training=True, **held)
    again = made.backward()["w"]
    again = formats.to_format(again.compute() if grad_format == "fused" else again, "dense")
    np.testing.assert_array_equal(again, wanted)


def test_arrays_that_were_let_go_of_are_asked_for_again():
    made, held = trained("fused"), batch()
    wanted = [output.copy() for output in made.forward(training=True, **held)]
    made.backward()
    values = weakref.ref(held["x"].data)
    made.release("x")
    assert made.args["x"].shape == (0, D)
    others = {name: array for name, array in held.items() if name != "x"}
    del held
    gc.collect()
    assert values() is None
    with pytest.raises(executor.BindError, match=r"x were freed by release\(\). Pass them to forward\(\) again"):
        made.forward(**others)
    for output, expected in zip(made.forward(training=True, **batch()), wanted, strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_compute_what_the_operators_compute_alone(seed):
    made = random_graph(seed)
    random = np.random.default_rng(seed + 100)
    size = 6
    dense = {name: random.standard_normal((size, size)) * (random.random((size, size)) < 0.5) for name in "abcd"}
    held = {"a": "dense", "b": "csr", "c": "row_sparse", "d": "dense"}
    args = {name: formats.to_format(dense[name], held[name]) for name in made.arguments()}
    bound = executor.bind(made, args, dtypes=dict.fromkeys(args, "float64"), grad_req="write")
    heads = [random.standard_normal((size, size)) for _ in made]
    heads = [formats.to_format(head, bound.inference[symbol].format) for head, symbol in zip(heads, made, strict=True)]
    for _ in range(2):  # the second time over what the first left
        outputs = [formats.to_format(value, "dense").copy() for value in bound.forward(training=True)]
        found = bound.backward(heads)
        for came, kept in zip(bound.outputs.values(), outputs, strict=True):
            np.testing.assert_array_equal(formats.to_format(came, "dense"), kept)
    gradients = autodiff.gradients(made, list(args), [graph.constant(head) for head in heads])
    expected = evaluated([*made, *gradients.values()], args)
    for came, right in zip([*outputs, *(found[name] for name in gradients)], expected, strict=True):
        np.testing.assert_allclose(formats.to_format(came, "dense"), right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("is_fixed", [True, False])
def test_a_pattern_of_weights_that_nobody_can_write_to_is_checked_once(is_fixed, monkeypatch):
    weights = scipy.sparse.csr_array(np.float32([[0, 2], [1, 0]]))
    weights.indptr, weights.indices = weights.indptr.copy(), weights.indices.copy()  # no views of other arrays
    for array in (weights.indptr, weights.indices):
        array.setflags(write=not is_fixed)
    bound = executor.bind(graph.variable("w", "csr") @ graph.variable("x"), {"w": weights, "x": np.ones((2, 3), "f4")})
    bound.forward()
    checked, real = [], run.validate_argument
    monkeypatch.setattr(run, "validate_argument", lambda value, name: checked.append(name) or real(value, name))
    weights.data[:] = 5
    assert bound.forward()[0].tolist() == [[5] * 3] * 2
    assert checked == ([] if is_fixed else ["w"])
    weights.indices = np.int32([0, 7])
    with pytest.raises(formats.FormatError):
        bound.forward()
