"""The executor at work: gradients in every format, calling order, heads, requests, plans, batches that change."""

import numpy as np
import pytest
import scipy.sparse

from kernels.plan import build
from tests.support.executor_case import batch, bound, expected_gradient, model
from tests.support.toy_losses import joint_loss, plain_loss
from workbench import executor, formats, graph, ops, optimizers
from workbench.autodiff import AutodiffError
from workbench.executor import BindError


@pytest.mark.parametrize("loss", [joint_loss, plain_loss], ids=["joint", "apart"])
@pytest.mark.parametrize(
    "grad_format", [None, "dense", "row_sparse", "csr", "fused"], ids=lambda value: value or "natural"
)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_gradient_in_every_format(loss, grad_format, index):
    x, y = batch(index=index)
    made = bound(loss=loss, grad_formats={"w": grad_format} if grad_format else None)
    made.forward(training=True, x=x, y=y)
    gradient = made.backward()["w"]
    if grad_format == "fused":
        assert isinstance(gradient, ops.products.Unsummed)
        gradient = gradient.compute()
    else:
        assert formats.format_of(gradient) == (grad_format or "row_sparse")
    expected = expected_gradient(x, y, made.args["w"])
    np.testing.assert_allclose(formats.to_format(gradient, "dense"), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_small_batches(rows):
    x, y = batch(rows)
    made = bound()
    made.forward(training=True, x=x, y=y)
    gradient = formats.to_format(made.backward()["w"], "dense")
    np.testing.assert_allclose(gradient, expected_gradient(x, y, made.args["w"]), rtol=1e-4, atol=1e-6)
    scores = executor.bind(ops.dot(*model().inputs[0].inputs), shapes={"x": (6, 20)})
    assert scores.forward(x=x)[0].shape == (rows, 3)


def test_read_only_and_non_contiguous_arrays():
    x, y = batch()
    frozen = np.ones((20, 3), np.float32)
    frozen.flags.writeable = False
    for w in (frozen, np.asfortranarray(frozen), np.ones((40, 3), np.float32)[::2]):
        made = executor.bind(model(), {"x": x, "y": y, "w": w}, grad_req={"w": "write"})
        made.forward(training=True)
        found = formats.to_format(made.backward()["w"], "dense")
        np.testing.assert_allclose(found, expected_gradient(x, y, w), rtol=1e-4, atol=1e-6)


def test_not_a_number_goes_through():
    made = bound()
    made.args["w"][:] = np.nan
    made.forward(training=True)
    assert np.isnan(made.outputs["loss"])
    assert np.isnan(made.backward()["w"].values).any()


def test_float64_throughout():
    x, y = batch(dtype=np.float64)
    made = executor.bind(model(dtype="float64"), {"x": x, "y": y}, grad_req={"w": "write"})
    made.args["w"][:] = 0.1
    made.forward(training=True)
    gradient = made.backward()["w"]
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient.toarray(), expected_gradient(x, y, made.args["w"]), rtol=1e-12, atol=1e-14)


def test_calls_in_the_wrong_order_are_refused():
    made = bound()
    for prepare in (lambda: None, made.forward, lambda: (made.forward(training=True), made.backward())):
        prepare()
        with pytest.raises(BindError, match=r"Call forward\(training=True\) first"):
            made.backward()


def test_training_and_not_give_the_same_outputs():
    made = bound()
    np.testing.assert_allclose(made.forward()[0], made.forward(training=True)[0], rtol=1e-6)


def test_an_error_while_running_names_the_step():
    made = bound()
    with pytest.raises(IndexError) as error:
        made.forward(y=np.full(6, 7))
    assert error.value.__notes__ == ["This happened in the step loss."]
    with pytest.raises(BindError, match="forward"):
        made.backward()


def test_only_a_product_can_be_fused():
    x, _ = batch()
    w = graph.variable("w", shape=(20, 3))
    made = ops.dot(graph.variable("x", "csr"), w)
    both = graph.group([made, ops.square(w)])
    with pytest.raises(AutodiffError, match="gradient of w cannot be fused: it is a sum of several"):
        executor.bind(both, {"x": x}, grad_req={"w": "write"}, grad_formats={"w": "fused"})
    with pytest.raises(AutodiffError, match="cannot be fused: it is made by multiply"):
        executor.bind(ops.square(w), grad_req={"w": "write"}, grad_formats={"w": "fused"})
    with pytest.raises(AutodiffError, match="reads no batch plan"):
        executor.bind(
            made, {"x": x.tocsc()}, formats={"x": "csc"}, grad_req={"w": "write"}, grad_formats={"w": "fused"}
        )


def test_plans_are_built_once_or_taken_as_given():
    made = bound(grad_formats={"w": "row_sparse"})
    assert made.reads_plan == ["x"]
    x = made.args["x"]
    steps = []
    plan = build(x.indptr, x.indices, x.shape[1])
    made.forward(training=True, plans={"x": plan})
    made.backward(on_step=steps.append)
    assert [step.part for step in steps] == ["plan", "backward"]
    assert made.grads["w"].indices is plan.columns
    with pytest.raises(BindError, match=r"plan of x is of a batch \(6, 20\); x is \(3, 20\)"):
        made.forward(plans={"x": plan}, **dict(zip("xy", batch(3), strict=True)))
    with pytest.raises(BindError, match="no argument 'z'"):
        made.forward(plans={"z": plan})


def test_a_plan_is_shared_by_all_that_read_it_and_forgotten_with_its_batch():
    x, _ = batch()
    held = graph.variable("x", "csr")
    made = graph.group([ops.dot(held, graph.variable(name, shape=(20, 2))) for name in ("v", "w")])
    ready = executor.bind(made, {"x": x}, grad_req={"v": "write", "w": "write"})
    head = np.ones((6, 2), np.float32)
    steps = []
    ready.forward(training=True)
    found = ready.backward([head, head], on_step=steps.append)
    assert [step.part for step in steps].count("plan") == 1
    assert found["v"].indices is found["w"].indices
    other = batch(seed=3)[0]
    ready.forward(training=True, x=other)
    np.testing.assert_allclose(ready.backward([head, head])["v"].toarray(), other.toarray().T @ head, rtol=1e-5)


def test_every_step_is_told_with_its_part():
    made, steps = bound(), []
    made.forward(training=True, on_step=steps.append)
    made.backward(on_step=steps.append)
    results = [(step.part, step.name, step.op and step.op.name) for step in steps]
    assert results == [
        ("forward", "scores", "dot"),
        ("loss", "loss", "toy_loss"),
        ("plan", "plan of x", None),
        ("backward", "dot0", "dot"),
    ]
    made.forward(training=True)
    made.backward(np.float32(2), on_step=(steps := []).append)
    assert [step.name for step in steps] == ["multiply0", "plan of x", "dot0"], "a head that is not one is multiplied"


def test_the_loss_is_passed_over_once_where_it_can_write_its_slope():
    for loss, kinds in ((joint_loss, ["toy_loss"]), (plain_loss, ["toy_loss_apart", "toy_slope"])):
        made, steps = bound(loss=loss), []
        made.forward(training=True, on_step=steps.append)
        made.backward(on_step=steps.append)
        assert [step.op.name for step in steps if step.op and step.op.name.startswith("toy")] == kinds


def test_rows_may_change_from_step_to_step():
    made = bound(6)
    for rows in (6, 2, 6, 9, 1, 9, 3):
        x, y = batch(rows, seed=rows)
        outputs = made.forward(training=True, x=x, y=y)
        assert outputs[0].shape == ()
        found = made.backward()["w"].toarray()
        np.testing.assert_allclose(found, expected_gradient(x, y, made.args["w"]), rtol=1e-4, atol=1e-6)
        assert made.inference["scores"].shape == (rows, 3)


def test_all_lengths_of_a_resizable_argument_may_change_and_of_others_the_rows():
    a, h = graph.variable("a", "csr"), graph.variable("h")
    made = executor.bind(ops.dot(a, h), shapes={"a": (2, 3), "h": (3, 2)}, resizable=["a"], grad_req={"h": "write"})
    for rows, columns in ((2, 3), (5, 1), (0, 4), (2, 3)):
        whole = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)
        y = np.ones((columns, 2), np.float32)
        output = made.forward(training=True, a=formats.to_format(whole, "csr"), h=y)[0]
        np.testing.assert_array_equal(output, whole @ y)
        gradient = made.backward(heads=np.ones((rows, 2), np.float32))["h"]
        np.testing.assert_array_equal(formats.to_format(gradient, "dense"), whole.T @ np.ones((rows, 2)))
    with pytest.raises(BindError, match="Only the number of rows may change"):
        made.forward(h=np.ones((3, 3), np.float32))
    with pytest.raises(BindError, match="resizable has b; the arguments are a, h"):
        executor.bind(ops.dot(a, h), shapes={"a": (2, 3), "h": (3, 2)}, resizable=["b"])


def test_a_densifying_node_warns_when_run_and_is_refused_at_bind_when_strict():
    x, _ = batch()
    made = executor.bind(ops.exp(graph.variable("x", "csr")), {"x": x})
    with ops.recording() as log, pytest.warns(ops.DensifyWarning, match="exp has no rule for csr") as caught:
        made.forward()
    assert log[0].bytes == 6 * 20 * 4
    assert caught[0].filename == __file__
    with ops.settings(strict=True), pytest.raises(ops.DensifyError, match=r"exp0 has no rule.*480 bytes dense"):
        executor.bind(ops.exp(graph.variable("x", "csr")), {"x": x})
    with ops.settings(fallback_budget_bytes=479), pytest.raises(ops.DensifyError, match="fallback_budget_bytes is 479"):
        executor.bind(ops.exp(graph.variable("x", "csr")), {"x": x})
    with ops.settings(fallback_budget_bytes=480):
        executor.bind(ops.exp(graph.variable("x", "csr")), {"x": x})


def test_constants_are_bound():
    x, _ = batch()
    made = executor.bind(ops.dot(x, graph.variable("w", shape=(20, 2))), grad_req="write")
    made.args["w"][:] = 1
    np.testing.assert_allclose(made.forward(training=True)[0], x.toarray().sum(1, keepdims=True) * [1, 1], rtol=1e-6)
    assert formats.format_of(made.backward(np.ones((6, 2), np.float32))["w"]) == "row_sparse"


def test_many_shapes_do_not_pile_up():
    made = bound()
    for rows in range(1, 150):
        made.forward(**dict(zip("xy", batch(rows), strict=True)))
    assert len(made.programs) <= 64


def csr(rows, columns, values, shape=(4, 20)):
    """A csr matrix with entries in just that order, in the rows given, which ascend."""
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    return scipy.sparse.csr_array((np.float32(values), columns, indptr), shape=shape)


ADVERSARIAL = {
    "duplicates": csr([0, 0, 0, 2], [3, 3, 1, 3], [1, 2, 3, 4]),
    "unsorted": csr([0, 0, 3, 3], [9, 1, 8, 0], [1, 2, 3, 4]),
    "explicit zeros": csr([0, 1], [3, 3], [0, 0]),
    "no entries": csr([], [], []),
    "a full row": csr([1] * 20, range(20), range(20)),
    "infinite": csr([0, 2], [3, 4], [np.inf, 1]),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("grad_format", ["dense", "row_sparse", "fused"])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_batches(name, grad_format):
    x = ADVERSARIAL[name]
    made = executor.bind(
        ops.dot(graph.variable("x", "csr"), graph.variable("w", shape=(20, 2))),
        {"x": x},
        grad_req={"w": "write"},
        grad_formats={"w": grad_format},
    )
    made.args["w"][:] = np.random.default_rng(0).random((20, 2))
    head = np.random.default_rng(1).random((4, 2)).astype(np.float32)
    np.testing.assert_allclose(made.forward(training=True)[0], x @ made.args["w"], rtol=1e-5)
    found = made.backward(head)["w"]
    found = found.compute() if grad_format == "fused" else found
    np.testing.assert_allclose(formats.to_format(found, "dense"), x.T @ head, rtol=1e-5)


def test_an_executor_and_an_inference_say_what_they_hold():
    x, w = graph.variable("x", shape=(2, 3)), graph.variable("w", format="row_sparse", shape=(3, 1))
    product = ops.dot(x, w, name="product")
    assert repr(executor.bind(product)) == "<Executor product: x [2, 3], w [3, 1]>"
    assert repr(product.infer()).splitlines() == [
        "x dense float32 [2, 3]",
        "w row_sparse float32 [3, 1]",
        "product dense float32 [2, 1]",
    ]


def test_row_numbers_that_cannot_be_written_to_are_checked_once_and_others_every_time(monkeypatch):
    checked = []
    monkeypatch.setattr(executor.run, "validate", lambda x: checked.append(formats.format_of(x)) or formats.validate(x))
    x, w = graph.variable("x", shape=(2, 3)), graph.variable("w", shape=(3, 1), format="row_sparse")
    weights = formats.RowSparse(np.ones((2, 1), np.float32), np.array([0, 2]), (3, 1))
    run = executor.bind(ops.dot(x, w), {"x": np.ones((2, 3), np.float32), "w": weights})
    run.forward()
    run.forward()
    assert checked == ["row_sparse"] * 2
    optimizers.Updater("sgd").update({"w": weights}, {"w": weights.copy()})
    run.forward()
    run.forward()
    assert checked == ["row_sparse"] * 3
    weights[:] = formats.RowSparse(np.ones((1, 1), np.float32), [1], (3, 1))
    run.forward()
    assert checked == ["row_sparse"] * 4
