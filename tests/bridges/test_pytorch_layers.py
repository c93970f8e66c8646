"""Our modules against dense products in PyTorch: values, gradients, and what is refused."""

import inspect

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")

from tests.support.torch_rows import dense, drawn, invalid, ones  # noqa: E402
from workbench.bridges import pytorch  # noqa: E402
from workbench.bridges.contracts import ContractError  # noqa: E402
from workbench.bridges.pytorch import SparseEmbeddingBag, SparseLinear, SparseRows, rows_of  # noqa: E402

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def expected(x, layer, slope):
    """Result and gradients by a dense product: (y, weight's, bias's)."""
    weight = layer.weight.detach().clone().requires_grad_()
    bias = layer.bias.detach().clone().requires_grad_()
    y = torch.from_numpy(dense(x)) @ weight + bias
    y.backward(slope)
    return y.detach(), weight.grad, bias.grad


@pytest.mark.parametrize("width", [1, 3, 16])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("values", [drawn, lambda **options: ones(drawn(**options))], ids=["values", "ones"])
def test_linear_is_the_dense_product_and_its_gradient_holds_the_touched_rows(width, index, dtype, values):
    x = values(index=index, dtype=dtype)
    layer = SparseLinear(30, width, dtype=DTYPES[dtype])
    rows = rows_of(x)
    rows = rows._replace(data=None) if bool((rows.data == 1).all()) else rows
    slope = torch.randn(8, width, dtype=DTYPES[dtype])
    y = layer(rows)
    y.backward(slope)
    wanted = expected(x, layer, slope)
    gradient = layer.weight.grad
    assert gradient._indices()[0].tolist() == sorted(set(x.indices.tolist()))
    for actual, desired in zip((y, gradient.to_dense(), layer.bias.grad), wanted, strict=True):
        torch.testing.assert_close(actual, desired, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_a_large_batch_is_that_of_the_dense_product(dtype):
    x = drawn(rows=2000, columns=300, dtype=dtype)
    layer, slope = SparseLinear(300, 3, dtype=DTYPES[dtype]), torch.randn(2000, 3, dtype=DTYPES[dtype])
    layer(rows_of(x)).backward(slope)
    _, wanted, _ = expected(x, layer, slope)
    torch.testing.assert_close(layer.weight.grad.to_dense(), wanted, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("form", ["csr", "scipy", "coo", "matrix"])
def test_linear_takes_rows_in_every_form(form):
    x = drawn()
    layer = SparseLinear(30, 2)
    given = {"csr": pytorch.to_tensor(x), "coo": pytorch.to_tensor(x, "coo"), "scipy": x, "matrix": x.tocoo()}[form]
    assert torch.allclose(layer(given), layer(rows_of(x)), atol=1e-6)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_rows_without_entries_give_the_bias_and_a_gradient_without_rows(rows):
    x = drawn(rows=rows)
    empty = SparseRows(torch.zeros(rows + 1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), None, 30)
    layer = SparseLinear(30, 2)
    y = layer(empty)
    assert y.shape == (rows, 2)
    assert torch.equal(y, layer.bias.expand(rows, 2))
    y.sum().backward()
    assert layer.weight.grad._nnz() == 0
    assert layer(x).shape == (rows, 2)


def test_gradient_towards_the_values():
    x = drawn(dtype="float64")
    layer = SparseLinear(30, 3, dtype=torch.float64)
    rows = rows_of(x)
    rows.data.requires_grad_()
    assert torch.autograd.gradcheck(lambda data: layer(rows._replace(data=data)), (rows.data,))
    layer.weight.requires_grad_(False)
    layer(rows).sum().backward()
    assert layer.weight.grad is None
    assert rows.data.grad.shape == rows.data.shape


@pytest.mark.parametrize(
    "slope",
    [torch.ones(1, 1).expand(8, 4), torch.randn(4, 8).T, torch.randn(8, 8)[:, ::2]],
    ids=["one", "turned", "gaps"],
)
def test_a_slope_with_gaps_gives_the_gradient_of_its_copy(slope):
    layer = SparseLinear(30, 4)
    rows = rows_of(drawn())
    layer(rows).backward(slope)
    gradient, layer.weight.grad = layer.weight.grad.to_dense(), None
    layer(rows).backward(slope.contiguous())
    assert torch.equal(gradient, layer.weight.grad.to_dense())


def test_two_batches_through_one_weight_add_up():
    layer = SparseLinear(30, 4)
    one, two = rows_of(drawn(seed=1)), rows_of(drawn(seed=2))
    (layer(one).sum() + (layer(two) ** 2).sum()).backward()
    both, layer.weight.grad = layer.weight.grad.to_dense(), None
    layer(one).sum().backward()
    (layer(two) ** 2).sum().backward()
    torch.testing.assert_close(layer.weight.grad.to_dense(), both)


def test_a_second_derivative_is_refused_with_the_reason_and_a_first_one_is_not():
    layer = SparseLinear(30, 2, bias=False)
    rows = rows_of(drawn(dtype="float32"))
    rows.data.requires_grad_()
    scores = (layer(rows) ** 2).sum()
    (towards,) = torch.autograd.grad(scores, rows.data, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"create_graph=True.*torch\.sparse\.mm"):
        towards.sum().backward()
    assert torch.autograd.grad((layer(rows) ** 2).sum(), layer.weight, create_graph=True)


@pytest.mark.parametrize("case", invalid())
def test_invalid_rows_are_refused_and_nothing_is_read(case):
    tensors = [torch.from_numpy(part) for part in invalid()[case]]
    with pytest.raises((ContractError, TypeError), match=r"llowed|Expected"):
        SparseLinear(5, 2)(SparseRows(*tensors, 5))


@pytest.mark.parametrize("of_data", [False, True])
def test_indices_changed_before_the_backward_pass_are_refused(of_data):
    layer, rows = SparseLinear(30, 2), rows_of(drawn())
    rows.data.requires_grad_(of_data)
    layer.weight.requires_grad_(not of_data)
    y = layer(rows).sum()
    rows.indices.numpy()[0] = 10**6  # unseen by autograd
    with pytest.raises(ValueError, match=r"1000000"):
        y.backward()


def test_values_changed_before_the_backward_pass_are_refused_by_autograd():
    layer, rows = SparseLinear(30, 2), rows_of(drawn())
    y = layer(rows).sum()
    rows.data.zero_()
    with pytest.raises(RuntimeError, match="inplace"):
        y.backward()


@pytest.mark.parametrize("is_coalesced", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_coo_tensor_that_is_trained_has_the_gradient_of_a_dense_one(is_coalesced, seed):
    x = drawn(seed=seed, dtype="float64")
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    tensor = torch.sparse_coo_tensor(np.stack([row, x.indices]), torch.from_numpy(x.data), x.shape)
    tensor = (tensor.coalesce() if is_coalesced else tensor).detach().requires_grad_()
    layer = SparseLinear(30, 2, dtype=torch.float64)
    (layer(tensor) ** 2).sum().backward()
    right = torch.from_numpy(dense(x)).requires_grad_()
    ((right @ layer.weight.detach() + layer.bias.detach()) ** 2).sum().backward()
    stored = tensor.detach().coalesce().indices()
    np.testing.assert_allclose(tensor.grad.to_dense()[tuple(stored)], right.grad[tuple(stored)], rtol=1e-9)


def test_what_does_not_fit_is_refused_in_words():
    rows = rows_of(drawn())
    with pytest.raises(ValueError, match=r"30 columns.*\[31, 2\]"):
        SparseLinear(31, 2)(rows)
    with pytest.raises(TypeError, match=r"float32.*float64"):
        SparseLinear(30, 2, dtype=torch.float64)(rows)
    with pytest.raises(TypeError, match="layout"):
        SparseLinear(30, 2)(torch.zeros(3, 30))
    with pytest.raises(TypeError, match="batch_size=None"):
        SparseLinear(30, 2)(SparseRows(rows.indptr[None], rows.indices[None], rows.data[None], 30))


def test_nan_passes_through_as_in_dense_layers():
    x = drawn()
    x.data[0] = np.nan
    rows = SparseRows(*map(torch.from_numpy, (x.indptr, x.indices, x.data)), 30)
    assert SparseLinear(30, 2)(rows).isnan().any()


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("include_last_offset", [True, False])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_embedding_bag_is_that_of_pytorch(mode, include_last_offset, index):
    options = {"mode": mode, "include_last_offset": include_last_offset}
    theirs = torch.nn.EmbeddingBag(30, 4, sparse=True, **options)
    bags = SparseEmbeddingBag(30, 4, **options)
    bags.load_state_dict(theirs.state_dict())
    ids = torch.randint(0, 30, (40,), dtype=index)
    offsets = torch.tensor([0, 3, 3, 20, *([40] if include_last_offset else [])], dtype=index)
    weights = torch.rand(40) if mode == "sum" else None
    for module in (theirs, bags):
        (module(ids, offsets, per_sample_weights=weights) ** 2).sum().backward()
    torch.testing.assert_close(
        bags(ids, offsets, per_sample_weights=weights), theirs(ids, offsets, per_sample_weights=weights)
    )
    torch.testing.assert_close(bags.weight.grad.to_dense(), theirs.weight.grad.to_dense())


@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (5, 0)])
def test_embedding_bag_of_rows_of_ids(shape):
    theirs, bags = torch.nn.EmbeddingBag(30, 4, mode="sum"), SparseEmbeddingBag(30, 4, mode="sum")
    bags.load_state_dict(theirs.state_dict())
    ids = torch.randint(0, 30, shape)
    wanted = theirs(ids) if ids.numel() else torch.zeros(shape[0], 4)
    torch.testing.assert_close(bags(ids), wanted)


def test_embedding_bag_refuses_what_it_cannot_do():
    bags, ids = SparseEmbeddingBag(30, 4, mode="sum"), torch.tensor([1, 2])
    with pytest.raises(ValueError, match="sum, mean"):
        SparseEmbeddingBag(30, 4, mode="max")
    with pytest.raises(ContractError, match="30"):
        bags(torch.tensor([1, 30]), torch.tensor([0]))
    with pytest.raises(ValueError, match="offsets"):
        bags(ids)
    with pytest.raises(ValueError, match="offsets"):
        bags(ids[None], torch.tensor([0]))
    with pytest.raises(TypeError, match="int32 or int64"):
        bags(torch.rand(2), torch.tensor([0]))
    with pytest.raises(TypeError, match="weights"):
        bags(ids, torch.tensor([0]), torch.rand(3))
    with pytest.raises(TypeError, match="of their own"):
        bags(rows_of(drawn()), torch.tensor([0]))
    with pytest.raises(ValueError, match="mean"):
        SparseEmbeddingBag(30, 4, mode="mean")(rows_of(drawn()))


def test_embedding_bag_has_the_arguments_and_defaults_of_pytorch():
    wanted = inspect.signature(torch.nn.EmbeddingBag.__init__).parameters
    found = inspect.signature(SparseEmbeddingBag.__init__).parameters
    assert list(found) == list(wanted)
    others = {name for name in wanted if found[name].default != wanted[name].default}
    assert others == {"sparse"}  # the gradient is always row-sparse
    assert (SparseEmbeddingBag(3, 2).mode, torch.nn.EmbeddingBag(3, 2).mode) == ("mean", "mean")


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding_idx", [3, -1])
@pytest.mark.parametrize("is_table", [False, True])
def test_ids_that_pad_count_in_no_bag(mode, padding_idx, is_table):
    options = {"mode": mode, "padding_idx": padding_idx}
    theirs, bags = torch.nn.EmbeddingBag(6, 2, sparse=True, **options), SparseEmbeddingBag(6, 2, **options)
    assert not bags.weight[padding_idx].any()
    bags.load_state_dict(theirs.state_dict())
    given = (torch.randint(0, 6, (5, 4)),) if is_table else (torch.randint(0, 6, (20,)), torch.tensor([0, 4, 4, 9]))
    first, second = bags(*given), theirs(*given)
    torch.testing.assert_close(first, second)
    for scores in (first, second):
        (scores**2).sum().backward()
    torch.testing.assert_close(bags.weight.grad.to_dense(), theirs.weight.grad.to_dense())


@pytest.mark.parametrize(
    "options",
    [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": False}, {"padding_idx": 6}, {"device": "meta"}],
    ids=str,
)
def test_embedding_bag_refuses_arguments_that_it_does_not_obey(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is"):
        SparseEmbeddingBag(6, 2, **options)


def test_embedding_bag_is_made_of_pretrained_rows():
    bags = SparseEmbeddingBag.from_pretrained(torch.eye(3), mode="sum")
    assert not bags.weight.requires_grad
    torch.testing.assert_close(bags(torch.tensor([[0, 2]])), torch.tensor([[1.0, 0, 1]]))


def test_kernels_run_on_as_many_threads_as_pytorch():
    from kernels import threads

    before = torch.get_num_threads()
    layer, rows = SparseLinear(30, 2), rows_of(drawn())
    try:
        for count in (1, min(2, threads.numba.config.NUMBA_NUM_THREADS)):
            torch.set_num_threads(count)
            layer(rows)
            assert threads.get_threads() == count
    finally:
        torch.set_num_threads(before)
        layer(rows)


def test_modules_are_copied_saved_and_loaded(tmp_path):
    import copy

    layer, rows = SparseLinear(30, 2), rows_of(drawn())
    assert torch.equal(copy.deepcopy(layer)(rows), layer(rows))
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    other = SparseLinear(30, 2)
    other.load_state_dict(torch.load(tmp_path / "layer.pt"))
    assert torch.equal(other(rows), layer(rows))
    assert repr(layer) == "SparseLinear(in_features=30, out_features=2, bias=True)"


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_converted_both_ways(bias: bool) -> None:
    linear = torch.nn.Linear(7, 3, bias=bias)
    layer = SparseLinear.from_linear(linear)
    x = scipy.sparse.random_array((5, 7), density=0.4, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    torch.testing.assert_close(layer(x), linear(torch.from_numpy(x.toarray())))
    again = layer.to_linear()
    assert torch.equal(again.weight, linear.weight)
    assert (again.bias is None) is not bias
    with torch.no_grad():
        layer.weight.zero_()
    assert linear.weight.any(), "values are copied"


def test_the_state_of_a_linear_layer_is_refused_with_what_to_type() -> None:
    with pytest.raises(ValueError, match=r"weight is \[3, 7\], as torch.nn.Linear has it.*from_linear"):
        SparseLinear(7, 3).load_state_dict(torch.nn.Linear(7, 3).state_dict())
