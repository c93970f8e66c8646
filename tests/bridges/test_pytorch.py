"""Matrices to tensors and back: what is shared, what is kept, and what is refused before PyTorch reads outside."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")

import workbench as wb  # noqa: E402
from tests.support.torch_rows import dense, drawn, invalid, ones  # noqa: E402
from workbench.bridges import pytorch  # noqa: E402
from workbench.bridges.contracts import ContractError, check  # noqa: E402
from workbench.bridges.pytorch.rows import rows_of  # noqa: E402
from workbench.data import DataError  # noqa: E402
from workbench.formats import FormatError  # noqa: E402
from workbench.formats.arrays import canonical  # noqa: E402
from workbench.formats.compressed import assemble  # noqa: E402

MODULES = [module.name for module in pkgutil.iter_modules(pytorch.__path__)]


@pytest.mark.parametrize("name", ["", *(f".{module}" for module in MODULES)])
def test_examples(name):
    module = importlib.import_module(f"workbench.bridges.pytorch{name}")
    known = {"scipy": scipy, "np": np, "torch": torch, "SparseRows": pytorch.SparseRows}
    assert not doctest.testmod(module, extraglobs=known).failed


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_csr_tensor_shares_memory_and_keeps_types(index, dtype):
    x = canonical(drawn(index=index, dtype=dtype))
    tensor = pytorch.to_tensor(x)
    parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
    for part, array in zip(parts, (x.indptr, x.indices, x.data), strict=True):
        assert np.shares_memory(part.numpy(), array)
        assert part.numpy().dtype == array.dtype
    assert np.array_equal(tensor.to_dense().numpy(), dense(x))


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_coo_tensor_has_long_coordinates_and_shares_values(index):
    x = canonical(drawn(index=index))
    tensor = pytorch.to_tensor(x, layout="coo")
    assert tensor._indices().dtype == torch.int64
    assert np.shares_memory(tensor._values().numpy(), x.data)
    assert tensor.is_coalesced()
    assert np.allclose(tensor.to_dense().numpy(), dense(x))


@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("seed", range(3))
def test_unsorted_and_repeated_columns_become_a_tensor_that_computes_rightly(layout, seed):
    x = drawn(seed=seed)
    before = x.copy()
    assert canonical(x).nnz != x.nnz, "some columns come twice"
    tensor, right = pytorch.to_tensor(x, layout=layout), torch.from_numpy(dense(x))
    other = torch.randn(right.shape)
    for result, expected in ((tensor * tensor, right * right), (tensor * other, right * other)):
        torch.testing.assert_close(result.to_dense(), expected)
    torch.testing.assert_close(tensor.sin().to_dense(), right.sin())
    assert tensor._nnz() == canonical(x).nnz
    np.testing.assert_array_equal(x.data, before.data)
    np.testing.assert_array_equal(x.indices, before.indices)


def test_tensors_are_checked_as_the_matrices_they_are():
    sound = torch.eye(3).to_sparse_csr()
    assert not check(sound, for_="pytorch")
    assert not check(sound.to_sparse_coo(), for_="pytorch", width=3)
    x = drawn()
    parts = map(torch.from_numpy, (x.indptr, x.indices, x.data))
    tensor = torch.sparse_csr_tensor(*parts, x.shape, check_invariants=False)
    found = {violation.contract: violation for violation in check(tensor, for_="pytorch")}
    assert set(found) == {"column order", "duplicates"}
    assert "A * A" in found["duplicates"].effect
    assert [violation.contract for violation in check(sound.requires_grad_(), for_="pytorch")] == ["gradient of values"]
    assert [violation.contract for violation in check(torch.ones(3, 2), for_="pytorch", sparse=True)] == ["sparse"]


def test_small_floats_and_tensors_of_other_ranks_are_read_or_refused_in_words():
    right = np.eye(3, dtype=np.float32)
    for dtype in (torch.float16, torch.bfloat16):
        for tensor in (torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_coo()):
            np.testing.assert_array_equal(wb.load((tensor.to(dtype), np.arange(3) % 2)).x.toarray(), right)
    with pytest.raises(FormatError, match=r"dense dimensions.*tensor.to_dense\(\).to_sparse\(\)"):
        wb.load((torch.eye(3).to_sparse(1), np.arange(3) % 2))
    for tensor in (torch.ones(3, 2, 2).to_sparse(), torch.ones(3, 2, 2).to_sparse_csr(), torch.ones(3, 2, 2)):
        with pytest.raises(DataError, match=r"3 dimensions.*expected \[rows, features\]"):
            wb.load((tensor, np.arange(3) % 2))


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_there_and_back_is_the_same_matrix(layout):
    x = canonical(drawn())
    back = pytorch.from_tensor(pytorch.to_tensor(x, layout=layout))
    assert back.format == layout
    assert back.shape == x.shape
    assert back.dtype == x.dtype
    assert np.shares_memory(back.data, x.data)
    assert np.allclose(dense(back), dense(x))


@pytest.mark.parametrize("shape", [(0, 4), (3, 4), (0, 0)])
@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_no_rows_and_no_entries(shape, layout):
    tensor = pytorch.to_tensor(scipy.sparse.csr_array(shape, dtype=np.float32), layout=layout)
    assert tuple(tensor.shape) == shape
    assert pytorch.from_tensor(tensor).shape == shape


@pytest.mark.parametrize("make", [scipy.sparse.lil_array, scipy.sparse.dok_array])
def test_what_check_passes_becomes_a_tensor_and_what_it_does_not_is_refused(make):
    x = make(np.float32([[0, 2], [3, 0]]))
    (found,) = check(x, for_="pytorch")
    assert (found.contract, found.severity, found.advice) == ("format", "error", "Call x.tocsr()")
    with pytest.raises(ContractError, match=r"Call x.tocsr\(\)"):
        pytorch.to_tensor(x)
    assert pytorch.to_tensor(x.tocsr()).to_dense().tolist() == [[0, 2], [3, 0]]


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_other_formats_are_converted(make):
    x = make(np.float32([[0, 2], [3, 0]]))
    assert pytorch.to_tensor(x).to_dense().tolist() == [[0, 2], [3, 0]]


def test_read_only_arrays_are_copied_without_a_warning():
    x = drawn()
    for part in (x.indptr, x.indices, x.data):
        part.setflags(write=False)
    before = x.data.copy()
    tensor = pytorch.to_tensor(x)
    tensor.values().zero_()
    assert np.array_equal(x.data, before)
    assert not np.shares_memory(rows_of(x).data.numpy(), x.data)


def test_a_view_with_gaps_is_copied():
    values = np.float32([1, 9, 2, 9])[::2]
    x = assemble("csr", np.int32([0, 2]), np.int32([0, 1]), values, (1, 2))
    assert pytorch.to_tensor(x).values().tolist() == [1, 2]


@pytest.mark.parametrize("case", invalid())
def test_invalid_matrices_are_refused(case):
    indptr, indices, data = invalid()[case]
    x = assemble("csr", indptr, indices, data, (3, 5))
    with pytest.raises(ContractError, match="matrix -> tensor"):
        pytorch.to_tensor(x)


@pytest.mark.parametrize("case", ["column too large", "column below zero", "starts fall"])
def test_invalid_tensors_are_refused_on_the_way_back(case):
    parts = map(torch.from_numpy, invalid()[case])
    tensor = torch.sparse_csr_tensor(*parts, size=(3, 5), check_invariants=False)
    with pytest.raises(ContractError, match="tensor -> matrix"):
        pytorch.from_tensor(tensor)


def test_nan_and_another_width_are_refused():
    x = drawn()
    x.data[0] = np.nan
    with pytest.raises(ContractError, match="finite"):
        pytorch.to_tensor(x)
    with pytest.raises(ContractError, match="width"):
        pytorch.to_tensor(drawn(columns=30), width=31)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match="csr, coo"):
        pytorch.to_tensor(drawn(), layout="csc")
    with pytest.raises(TypeError, match="from_tensor"):
        pytorch.to_tensor(torch.zeros(2, 2))
    with pytest.raises(TypeError, match="to_sparse_csr"):
        pytorch.from_tensor(torch.zeros(2, 2))
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        pytorch.from_tensor(drawn())
    with pytest.raises(ContractError, match="int"):
        pytorch.to_tensor(scipy.sparse.csr_array(np.array([[1, 2]])))


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_bags_give_what_the_product_gives(index):
    x = drawn(index=index)
    bag = torch.nn.EmbeddingBag(30, 4, mode="sum", include_last_offset=True)
    indices, offsets, weights = pytorch.to_bags(x)
    assert np.shares_memory(indices.numpy(), x.indices)
    result = bag(indices, offsets, per_sample_weights=weights).detach().numpy()
    assert np.allclose(result, dense(x) @ bag.weight.detach().numpy(), atol=1e-5)


def test_bags_of_ones_have_no_weights():
    assert pytorch.to_bags(ones(drawn()))[2] is None
    x = ones(drawn())
    x.data[-1] = 2
    assert pytorch.to_bags(x)[2] is not None
    assert pytorch.to_bags(pytorch.to_tensor(ones(canonical(drawn()))))[2] is None


def test_bags_of_invalid_rows_are_refused():
    tensors = [torch.from_numpy(part) for part in invalid()["column too large"]]
    with pytest.raises(ContractError, match="EmbeddingBag"):
        pytorch.to_bags(pytorch.SparseRows(*tensors, 5))


def test_importing_the_workbench_loads_no_torch():
    from tests.project.test_layers import loaded_by

    assert "torch" not in loaded_by("import workbench, workbench.bridges")
    assert "torch" in loaded_by("import workbench.bridges.pytorch")
