"""What hurts silently is named by `check`, with a line to type that ends it: one trap in each file or array."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from typer.testing import CliRunner

from tests.support.probes import peak_bytes, repeated, small, unsorted, wide
from workbench.bridges import check
from workbench.command.cli import app


def coo_backwards(x):
    coo = x.tocoo()
    return scipy.sparse.coo_array((coo.data[::-1], (coo.row[::-1], coo.col[::-1])), coo.shape)


def with_zeros(x):
    x.data[::7] = 0
    return x


def with_nan(x):
    x.data[0] = np.nan
    return x


def bool_of(x):
    return x.astype(bool)


TO_INT32 = "x.indices = x.indices.astype(np.int32); x.indptr = x.indptr.astype(np.int32)"
TRAPS = {
    "columns out of order, PyTorch": ("pytorch", unsorted(small()), "column order", "x.sort_indices()"),
    "a column twice, PyTorch": ("pytorch", repeated(), "duplicates", "x.sum_duplicates()"),
    "a column twice, StandardScaler": ("sklearn", repeated(), "duplicates", "x.sum_duplicates()"),
    "columns out of order, PolynomialFeatures": ("sklearn", unsorted(small()), "column order", "x.sort_indices()"),
    "int64 indices, LinearSVC": ("sklearn", wide(small()), "narrow indices", TO_INT32),
    "integers, LightGBM": (
        "lightgbm", (small() * 10).astype(np.int32), "integers", "x = x.astype(np.float32)"
    ),
    "bool, LightGBM": ("lightgbm", bool_of(small()), "integers", "x = x.astype(np.float32)"),
    "a column twice, XGBoost": ("xgboost", repeated(), "duplicates", "x.sum_duplicates()"),
    "an array, CatBoost": ("catboost", small(), "sparse array", "x = scipy.sparse.csr_matrix(x)"),
    "columns first, Keras": ("keras", small().tocsc(), "format", "x = x.tocsr()"),
    "rows out of order, TensorFlow": ("tensorflow", coo_backwards(small()), "row order", "x = x.tocsr().tocoo()"),
    "NaN, PyTorch": ("pytorch", with_nan(small()), "finite", "x.data = np.nan_to_num(x.data)"),
    "a division, SciPy": ("scipy", small() / 2, "float32", "x = x.astype(np.float32)"),
    "bool twice, SciPy": ("scipy", scipy.sparse.csr_array((np.ones(2, bool), [1, 1], [0, 2]), (1, 3)), "duplicates",
                          "x.sum_duplicates()"),
    "zeros that are stored, XGBoost": ("xgboost", with_zeros(small()), "stored zeros", "x.eliminate_zeros()"),
    "zeros that are stored, implicit": ("implicit", with_zeros(small()), "stored zeros", "x.eliminate_zeros()"),
    "integers, PyTorch": ("pytorch", (small() * 10).astype(np.int64), "floats", "x = x.astype(np.float32)"),
    "a column twice, implicit": ("implicit", repeated(), "duplicates", "x.sum_duplicates()"),
}  # fmt: skip
IN_FILES = [name for name, (_, x, rule, _) in TRAPS.items() if rule != "sparse array" and "implicit" not in name]


def rules_of(x, framework):
    return {violation.contract: violation for violation in check(x, for_=framework)}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_is_named_with_what_to_type_and_that_ends_it(trap):
    framework, x, rule, cure = TRAPS[trap]
    found = rules_of(x, framework)
    assert rule in found
    typed = cure.removeprefix("x = ")
    assert typed.split(";")[0].removeprefix("x.data = ") in found[rule].advice
    known = {"x": x.copy(), "np": np, "scipy": scipy}
    exec(cure, known)
    assert not set(rules_of(known["x"], framework)) - {"zeros are missing"}
    if rule not in ("finite", "floats", "float32", "integers"):
        np.testing.assert_allclose(known["x"].toarray(), x.toarray(), rtol=1e-6)


@pytest.mark.parametrize("trap", IN_FILES)
def test_a_trap_in_a_file_is_named_by_the_command(trap, tmp_path):
    framework, x, rule, _ = TRAPS[trap]
    scipy.sparse.save_npz(tmp_path / "x.npz", x)
    result = CliRunner().invoke(app, ["check", str(tmp_path / "x.npz"), "--for", framework, "--json"])
    violations = json.loads(result.stdout)["breaches"]
    severities = {violation["contract"]: violation["severity"] for violation in violations}
    assert rule in severities
    assert result.exit_code == ("error" in severities.values())


def test_a_sparse_frame_and_csr_are_told_apart_for_xgboost():
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(small()), columns=list("abcde"))
    found = rules_of(frame, "xgboost")
    assert "frame" in found
    cure = "x = scipy.sparse.csr_array(frame.sparse.to_coo())"
    assert cure.removeprefix("x = ") in found["frame"].advice
    known = {"frame": frame, "scipy": scipy}
    exec(cure, known)
    assert set(rules_of(known["x"], "xgboost")) == {"zeros are missing"}
    assert not rules_of(small().toarray(), "xgboost")


def test_trees_take_nan_for_missing_values():
    for framework in ("xgboost", "lightgbm"):
        assert "finite" not in rules_of(with_nan(small()), framework)


def test_the_gradient_of_a_sparse_operand_is_sparse_by_the_cure():
    torch = pytest.importorskip("torch")
    x, weight = torch.eye(3).to_sparse_coo().requires_grad_(), torch.ones(3, 2)
    found = rules_of(x, "pytorch")
    assert set(found) == {"gradient of values"}
    assert "torch.sparse.mm(x, weight)" in found["gradient of values"].advice
    known = {"x": x, "weight": weight, "torch": torch}
    exec("torch.sparse.mm(x, weight).sum().backward()", known)
    assert x.grad.layout is torch.sparse_coo


def test_rows_cut_out_of_a_matrix_of_jax_are_mostly_padding():
    sparse = pytest.importorskip("jax.experimental.sparse")
    x = small(columns=40)
    assert not rules_of(sparse.BCOO.from_scipy_sparse(x), "jax")
    found = rules_of(sparse.BCOO.from_scipy_sparse(x)[:4], "jax")
    assert set(found) == {"padding"}
    assert "BCOO.from_scipy_sparse(x[start:stop])" in found["padding"].advice
    known = {"x": x, "BCOO": sparse.BCOO, "start": 0, "stop": 4}
    exec("batch = BCOO.from_scipy_sparse(x[start:stop])", known)
    assert not rules_of(known["batch"], "jax")
    np.testing.assert_allclose(known["batch"].todense(), x[:4].toarray())


def test_a_check_costs_a_pass_over_the_entries():
    x = scipy.sparse.random_array((2000, 500), density=0.2, dtype=np.float32, format="csr", rng=0)
    for framework in ("pytorch", "sklearn", "xgboost"):
        assert peak_bytes(lambda: check(x, for_=framework)) < 64 * x.nnz  # noqa: B023
