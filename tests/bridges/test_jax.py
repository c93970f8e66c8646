"""JAX: matrices of a fixed size with their padding, gradients as in float64 loops, steps that are compiled once."""

import doctest
import importlib

import numpy as np
import pytest
import scipy.sparse

from tests.support.stale_flags import FAULTS, KINDS, stale
from tests.support.torch_rows import dense, drawn, invalid
from workbench import data
from workbench.advising.frameworks.training import error_of
from workbench.advising.frameworks.ways import get, names, problem_of
from workbench.bridges import check
from workbench.bridges.contracts import ContractError
from workbench.formats.compressed import assemble
from workbench.formats.contract import FormatError

jax = pytest.importorskip("jax", reason="jax is not installed: pip install 'sparse-workbench[jax]'")
bridge = importlib.import_module("workbench.bridges.jax")
jnp = jax.numpy
FORMS = {"bcoo": bridge.to_bcoo, "bcsr": bridge.to_bcsr}


def test_the_examples_run():
    assert not doctest.testmod(bridge).failed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("seed", range(3))
def test_a_padded_matrix_has_the_same_numbers_and_says_its_padding(form, index, seed):
    x = drawn(index=index, seed=seed)
    before, true = x.indices.copy(), dense(x)
    padded = FORMS[form](x, rows=11, entries=60)
    assert padded.matrix.shape == (11, 30)
    assert padded.matrix.nse == 60
    assert (padded.rows, padded.entries) == (8, scipy.sparse.csr_array(true).nnz)
    assert padded.padding == 60 - padded.entries
    assert padded.matrix.indices.dtype == np.int32
    np.testing.assert_allclose(padded.matrix.todense(), np.vstack([true, np.zeros((3, 30))]), rtol=1e-6)
    w = np.random.default_rng(seed).standard_normal((30, 4)).astype(np.float32)
    np.testing.assert_allclose((padded.matrix @ w)[:8], true @ w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bridge.from_jax(padded.matrix).toarray()[:8], true, rtol=1e-6)
    assert bridge.from_jax(padded.matrix).nnz == padded.entries
    np.testing.assert_array_equal(x.indices, before)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_of_jax_has_what_the_matrix_holds_whatever_scipy_remembers(kind, fault):
    x, true = stale(kind, fault, np.float32)
    matrix = bridge.to_bcoo(x).matrix
    places = np.asarray(matrix.indices)
    assert (np.diff(places[:, 0] * 40 + places[:, 1]) > 0).all()
    np.testing.assert_allclose(matrix.todense(), true.toarray(), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(0, 5), (3, 5), (1, 1)])
def test_nothing_stored_is_handed_over(form, shape):
    padded = FORMS[form](scipy.sparse.csr_array(shape, dtype=np.float32), rows=4, entries=2)
    assert padded.padding == 2
    np.testing.assert_array_equal(padded.matrix.todense(), np.zeros((4, shape[1])))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", invalid())
def test_invalid_matrices_are_refused(form, case):
    indptr, indices, values = invalid()[case]
    with pytest.raises((ContractError, FormatError)):
        FORMS[form](assemble("csr", indptr, indices, values, (3, 5)))


@pytest.mark.parametrize("form", FORMS)
def test_what_jax_takes_in_silence_is_refused(form):
    x = drawn()
    with pytest.raises(ContractError, match="width"):
        FORMS[form](x, width=29)
    with pytest.raises(ValueError, match=r"x\.astype\(np\.float32\), or jax\.config\.update"):
        FORMS[form](x.astype(np.float64))
    with pytest.raises(ValueError, match=r"has 8 rows; rows=7 is less\. Give rows=8 or more"):
        FORMS[form](x, rows=7)
    with pytest.raises(ValueError, match="entries=1 is less"):
        FORMS[form](x, entries=1)
    wide = assemble("csr", np.int64([0, 1]), np.int64([2**33]), np.float32([1]), (1, 2**34))
    with pytest.raises(ContractError, match="index limit"):
        FORMS[form](wide)
    assert "becomes another one" in next(str(one) for one in check(wide, for_="jax") if one.contract == "index limit")
    x.data[0] = np.nan
    with pytest.raises(ContractError, match="finite"):
        FORMS[form](x)


def test_only_matrices_are_taken_back():
    for wrong in (jnp.ones((2, 2)), jax.experimental.sparse.BCOO.fromdense(jnp.ones((2, 3, 4)))):
        with pytest.raises(TypeError, match="Expected: a BCOO or BCSR"):
            bridge.from_jax(wrong)
    with pytest.raises(TypeError, match=r"to_bcoo\(x\)\.matrix"):
        bridge.sparse_product(jnp.ones((2, 2)), jnp.ones((2, 1)))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_float64_loops(seed):
    x, rng = drawn(seed=seed), np.random.default_rng(seed)
    w, slope = rng.standard_normal((30, 4)), rng.standard_normal((8, 4))
    true = dense(x).astype(np.float64)
    scores, of_w = np.zeros((8, 4)), np.zeros((30, 4))
    for row, column in zip(*np.nonzero(true), strict=True):
        for output in range(4):
            scores[row, output] += true[row, column] * w[column, output]
            of_w[column, output] += true[row, column] * slope[row, output]
    matrix, _, entries = bridge.to_bcoo(x, entries=50)
    ours = jnp.float32(w)

    def loss(values, w):
        filled = jax.experimental.sparse.BCOO((values, matrix.indices), shape=matrix.shape, indices_sorted=True)
        return jnp.sum(bridge.sparse_product(filled, w) * slope.astype(np.float32))

    np.testing.assert_allclose(bridge.sparse_product(matrix, ours), scores, rtol=1e-4, atol=1e-5)
    of_values, gradient = jax.grad(loss, argnums=(0, 1))(matrix.data, ours)
    np.testing.assert_allclose(gradient, of_w, rtol=1e-4, atol=1e-5)
    row, column = np.asarray(matrix.indices)[:entries].T
    np.testing.assert_allclose(of_values[:entries], (slope[row] * w[column]).sum(1), rtol=1e-4, atol=1e-4)
    assert not np.asarray(of_values[entries:]).any()
    gathered = bridge.gather(matrix, ours)
    of_rows = jax.grad(lambda rows: jnp.sum(bridge.combine(matrix, rows) * slope.astype(np.float32)))(gathered)
    np.testing.assert_allclose(bridge.scatter_add(matrix, ours, -of_rows), w - of_w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("last", ["keep", "pad", "discard"])
def test_batches_are_those_of_the_feed_and_compile_a_step_once(last):
    made = data.load("uniform", rows=50, features=20, density=0.2, cache=False)
    feed = data.Batches(made.x, made.y, rows=16, shuffle=True, seed=3, last=last)
    traces = []

    @jax.jit
    def step(batch):
        traces.append(1)
        return batch.matrix @ jnp.ones((20, 1)), batch.weights.sum()

    for epoch in range(2):
        for batch, true in zip(bridge.batches(feed, rows=16, epoch=epoch), feed.epoch(epoch), strict=True):
            scores, count = step(batch)
            rows = true.x.shape[0]
            np.testing.assert_array_equal(bridge.from_jax(batch.matrix).toarray()[:rows], true.x.toarray())
            np.testing.assert_allclose(scores[:rows, 0], true.x.sum(axis=1), rtol=1e-5)
            np.testing.assert_array_equal(batch.labels[:rows], true.y)
            assert float(count) == batch.rows == rows - true.pad
            assert batch.padding == batch.matrix.nse - true.x.nnz >= 0
    assert len(traces) == 1


def test_a_batch_with_more_than_the_entries_given_is_refused(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n0 2:1\n")
    (only,) = bridge.batches(tmp_path / "x.svm", rows=3)
    assert (only.rows, only.entries, only.padding, only.labels.tolist()) == (2, 3, 0, [1, 0, 0])
    with pytest.raises(ValueError, match="entries=2 is less"):
        list(bridge.batches(tmp_path / "x.svm", rows=3, entries=2))
    (bare,) = bridge.batches(data.Batches(scipy.sparse.eye_array(5, dtype=np.float32, format="csr"), rows=8), rows=8)
    assert bare.labels is None


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", [name for name in names() if get(name).framework == "jax"])
def test_each_way_is_compiled_once_and_trains_as_float64_loops(name, classes):
    made = data.load("uniform", rows=160, features=40, density=0.2, classes=classes, seed=1, cache=False)
    problem = problem_of(made, 32, threads=1)
    trainer = get(name).make(problem)
    for epoch in range(3):
        trainer.run(problem.batches)
        if not epoch:
            assert error_of(trainer.state(), problem.expected(problem.order(0))) < 1e-4
    assert trainer.traces == 1
    assert trainer.step._cache_size() == 1
