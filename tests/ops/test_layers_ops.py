"""embedding and fully_connected, losses and output layers: values, gradients by hand, and what is refused."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from workbench import formats, ops

FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
RNG = np.random.default_rng(4)
IDS = np.array([[4, 1], [4, 0]])


def gradient(op, *inputs, head=None, **params):
    params = op.resolve(params)
    with ops.settings(strict=True):
        output = op.compute(inputs, params)
        head = np.ones(output.shape, output.dtype) if head is None else head
        return op.gradient(head, output, inputs, params)


def table(rows: int = 6, *more: int) -> np.ndarray:
    return RNG.standard_normal((rows, *(more or (3,)))).astype(np.float32)


@pytest.mark.parametrize("ids", [IDS, IDS[0], IDS[0, 0], IDS[:0], IDS.astype(np.int32), IDS.astype(np.float32)])
@pytest.mark.parametrize("shape", [(6, 3), (6,), (6, 2, 3)])
def test_an_embedding_looks_rows_up(ids, shape):
    weight = table(*shape)
    for held in (weight, formats.to_format(weight, "row_sparse")):
        came = ops.embedding(np.asarray(ids), held)
        np.testing.assert_array_equal(came, weight[np.asarray(ids).astype(int)])
        assert came.dtype == np.float32


def test_rows_that_a_weight_lacks_read_as_zeros():
    weight = formats.RowSparse(np.float32([[1, 2], [3, 4]]), [1, 4], (10**9, 2))
    assert ops.embedding(np.array([4, 0, 999_999_999]), weight).tolist() == [[3, 4], [0, 0], [0, 0]]
    empty = formats.zeros((5, 2), "row_sparse")
    assert not ops.embedding(IDS, empty).any()


@pytest.mark.parametrize("wrong", [-1, 6])
def test_ids_out_of_range_are_refused(wrong):
    ids = np.array([0, wrong])
    for held in ("dense", "row_sparse"):
        weight = formats.to_format(table(), held)
        with pytest.raises(ops.OpError, match=f"is {wrong}; allowed are 0 to 5"):
            ops.embedding(ids, weight)
        with pytest.raises(ops.OpError, match=f"is {wrong}; allowed are 0 to 5"):
            ops.embedding_gradient(np.ones((2, 3), np.float32), ids, weight)


@pytest.mark.parametrize("held", ["dense", "row_sparse"])
def test_sparse_grad_alone_decides_the_format_of_the_gradient(held):
    weight = formats.to_format(table(), held)
    head = RNG.standard_normal((2, 2, 3)).astype(np.float32)
    expected = np.zeros((6, 3), np.float32)
    np.add.at(expected, IDS, head)
    none, dense = gradient(ops.embedding, IDS, weight, head=head)
    assert none is None
    np.testing.assert_allclose(dense, expected, rtol=1e-6)
    rows = gradient(ops.embedding, IDS, weight, head=head, sparse_grad=True)[1]
    assert rows.indices.tolist() == [0, 1, 4]
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-6)


def test_the_gradient_of_a_table_of_a_thousand_million_rows_has_the_rows_of_the_batch():
    weight = formats.RowSparse(np.ones((1, 2), np.float32), [7], (10**9, 2))
    rows = gradient(ops.embedding, np.array([7, 10**9 - 1, 7]), weight, sparse_grad=True)[1]
    assert rows.indices.tolist() == [7, 10**9 - 1]
    assert rows.values[:, 0].tolist() == [2, 1]


def test_an_embedding_of_nothing_has_an_empty_gradient():
    rows = gradient(ops.embedding, np.zeros((0, 2), int), table(), sparse_grad=True)[1]
    assert rows.nnz == 0
    assert rows.shape == (6, 3)


def test_other_formats_of_an_embedding_are_refused():
    weight = formats.to_format(table(), "csr")
    with pytest.raises(ops.OpError, match=r"the weight is dense or row_sparse\. Convert it with to_format"):
        ops.embedding(IDS, weight)
    with pytest.raises(ops.OpError, match="ids are dense, the weight dense or row_sparse"):
        ops.embedding(weight, table())


@pytest.mark.parametrize("bias", [None, "dense", "row_sparse"])
@pytest.mark.parametrize(("x", "weight"), [*itertools.product(FORMATS, FORMATS)])
def test_a_layer_in_every_format(x, weight, bias):
    a, w, b = (
        np.where(RNG.random((5, 4)) < 0.5, table(5, 4), 0),
        np.where(RNG.random((3, 4)) < 0.6, table(3, 4), 0),
        table(3)[:, 0],
    )
    inputs = [formats.to_format(a, x), formats.to_format(w, weight)]
    inputs += [] if bias is None else [formats.to_format(b, bias)]
    with ops.settings(strict=True):
        came = ops.fully_connected(*inputs)
    np.testing.assert_allclose(came, a @ w.T + (0 if bias is None else b), atol=1e-5)
    head = table(5, 3)
    grads = gradient(ops.fully_connected, *inputs, head=head)
    assert len(grads) == len(inputs)
    np.testing.assert_allclose(grads[1], head.T @ a, atol=1e-5)
    by_x = head @ w
    if x in ("csr", "csc", "coo"):
        assert formats.format_of(grads[0]) == x
        np.testing.assert_allclose(grads[0].toarray(), np.where(a != 0, by_x, 0), atol=1e-5)
    else:
        np.testing.assert_allclose(grads[0], by_x, atol=1e-5)
    if bias:
        np.testing.assert_allclose(grads[2], head.sum(axis=0), atol=1e-5)


def test_layers_that_do_not_fit_are_refused():
    with pytest.raises(ops.OpError, match=r"takes x \[R, D\] and weight \[N, D\]; the shapes \(5, 4\) and \(4, 3\)"):
        ops.fully_connected(table(5, 4), table(4, 3))
    with pytest.raises(ops.OpError, match=r"with 3 outputs has shape \(3,\); \(4,\) came"):
        ops.fully_connected(table(5, 4), table(3, 4), table(4)[:, 0])
    with pytest.raises(ops.OpError, match="x, weight and bias; 4 arrays came"):
        ops.fully_connected(*[table(3, 3)] * 4)


LABELS = {"squared_loss": (7, 3), "logistic_loss": (7, 3), "softmax_loss": (7,)}


def labels_of(name: str, dtype: type) -> np.ndarray:
    shape = LABELS[name]
    return RNG.integers(0, 3, shape) if len(shape) == 1 else RNG.random(shape).astype(dtype)


def by_hand(name: str, scores: np.ndarray, labels: np.ndarray) -> float:
    scores = scores.astype(np.float64)
    if name == "squared_loss":
        return float(np.mean(np.sum((scores - labels) ** 2 / 2, axis=1)))
    if name == "logistic_loss":
        return float(np.mean(np.sum(np.logaddexp(0, scores) - scores * labels, axis=1)))
    return float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(labels)), labels]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LABELS)
def test_a_loss_its_slope_and_both_at_once_agree(name, dtype):
    op, scores, labels = ops.get(name), (3 * RNG.standard_normal((7, 3))).astype(dtype), labels_of(name, dtype)
    loss = op(scores, labels)
    assert loss.shape == ()
    assert loss.dtype == dtype
    np.testing.assert_allclose(loss, by_hand(name, scores, labels), rtol=1e-5)
    slope = np.full_like(scores, np.nan)
    np.testing.assert_array_equal(op.joint(scores, labels, slope=slope), loss)
    by_scores = gradient(op, scores, labels, head=np.asarray(2, dtype))[0]
    np.testing.assert_allclose(by_scores, 2 * slope, rtol=1e-6)


@pytest.mark.parametrize("name", ["squared_loss", "logistic_loss"])
def test_a_label_a_row_goes_with_one_score_a_row(name):
    scores, labels = table(5, 1), RNG.random(5).astype(np.float64)
    loss = ops.get(name)(scores, labels)
    np.testing.assert_allclose(loss, by_hand(name, scores, labels[:, None]), rtol=1e-5)
    towards = gradient(ops.get(name), scores, labels)[1]
    assert name == "logistic_loss" or towards.shape == (5,)


def test_a_loss_of_no_rows_is_zero():
    assert ops.squared_loss(np.zeros((0, 2)), np.zeros((0, 2))) == 0
    assert ops.softmax_loss(np.zeros((0, 2)), np.zeros(0, int)) == 0


def test_losses_refuse_what_they_cannot_mean():
    scores = table(4, 3)
    with pytest.raises(ValueError, match=r"labels\[1\] is 3; scores have 3 columns"):
        ops.softmax_loss(scores, np.array([0, 3, 1, 1]))
    with pytest.raises(ops.OpError, match="whole numbers; a fraction or NaN came"):
        ops.softmax_loss(scores, np.array([0, 0.5, 1, 1]))
    with pytest.raises(ops.OpError, match=r"a class for each row, shape \(4,\); \(3,\) came"):
        ops.softmax_loss(scores, np.array([0, 1, 1]))
    with pytest.raises(ops.OpError, match=r"go with labels of that shape; \(4, 2\) came"):
        ops.squared_loss(scores, table(4, 2))
    with pytest.raises(ops.OpError, match="Scores are float32 or float64; int64 came"):
        ops.squared_loss(np.ones((2, 1), int), np.ones((2, 1), int))
    with pytest.raises(ops.OpError, match="a single number came"):
        ops.squared_loss(np.ones(()), np.ones(()))


OUTPUTS = {
    "linear_regression_output": lambda x, y: (x, x - y),
    "logistic_regression_output": lambda x, y: (1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-x)) - y),
    "mae_regression_output": lambda x, y: (x, np.sign(x - y)),
}


@pytest.mark.parametrize("held", FORMATS)
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_layer_has_the_gradient_of_its_loss_whatever_comes_in(name, held):
    x, y = table(4, 3), np.where(RNG.random((4, 3)) < 0.5, table(4, 3), 0)
    output, slope = OUTPUTS[name](x, y)
    label = formats.to_format(y, held)
    with ops.settings(strict=True):
        np.testing.assert_allclose(ops.get(name)(x, label), output, rtol=1e-5)
    for head in (np.ones((4, 3), np.float32), np.zeros((4, 3), np.float32)):
        came, none = gradient(ops.get(name), x, label, head=head, grad_scale=1.5)
        assert none is None
        np.testing.assert_allclose(came, slope * 0.5, rtol=1e-5, atol=1e-7)


def test_an_output_layer_does_not_hand_out_its_input():
    x = table(4, 3)
    assert not np.shares_memory(ops.linear_regression_output(x, x), x)


def test_a_label_a_row_goes_with_one_output():
    x, y = table(4, 1), table(4, 1)
    came = gradient(ops.linear_regression_output, x, y[:, 0])[0]
    np.testing.assert_allclose(came, x - y)


@pytest.mark.parametrize(("normalization", "share"), [("null", 1), ("batch", 4), ("valid", 3)])
def test_softmax_output_leaves_out_what_is_ignored(normalization, share):
    x, label = table(4, 3), np.array([0, -1, 2, 1], np.float32)
    params = {"normalization": normalization, "use_ignore": True, "ignore_label": -1, "grad_scale": 2}
    came = gradient(ops.softmax_output, x, label, **params)[0]
    expected = ops.softmax(x) - np.eye(3)[[0, 0, 2, 1]]
    expected[1] = 0
    np.testing.assert_allclose(came, 2 * expected / share, rtol=1e-5, atol=1e-7)


def test_softmax_output_refuses_other_labels():
    x = table(2, 3)
    with pytest.raises(ops.OpError, match="Labels go from -1 to 1; the classes are 0 to 2"):
        gradient(ops.softmax_output, x, np.array([-1, 1]))
    with pytest.raises(ops.OpError, match="normalization is 'mean'; allowed are null, batch, valid"):
        ops.softmax_output(x, np.array([0, 1]), normalization="mean")


def test_read_only_and_strided_inputs_are_fine():
    roomy = np.full((8, 6), np.nan, np.float32)
    roomy[::2, ::2] = table(4, 3)
    x = roomy[::2, ::2]
    x.flags.writeable = False
    labels = np.array([0, 1, 2, 0])
    labels.flags.writeable = False
    assert np.isfinite(ops.softmax_loss(x, labels))
    assert np.isfinite(ops.squared_loss(x, x[::-1]))
    np.testing.assert_array_equal(ops.embedding(labels, x), x[labels])


def test_a_sparse_head_goes_back_through_a_layer():
    x, weight = table(4, 3), table(2, 3)
    head = scipy.sparse.csr_array(np.float32([[1, 0], [0, 0], [0, 0], [0, 2]]))
    by_x, by_weight = gradient(ops.fully_connected, x, weight, head=head)
    np.testing.assert_allclose(by_x, head.toarray() @ weight, rtol=1e-5)
    np.testing.assert_allclose(by_weight, head.toarray().T @ x, rtol=1e-5)
