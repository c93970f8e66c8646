"""dot: every rule of the table equals the dense meaning, and what has no rule is refused with what there is."""

import numpy as np
import pytest
import scipy.sparse

import kernels
from workbench import formats
from workbench.ops import dot as dots

RNG = np.random.default_rng(3)
PATTERNS = {
    "usual": RNG.random((7, 11)) < 0.3,
    "empty": np.zeros((4, 5), bool),
    "full": np.ones((3, 4), bool),
    "no rows": np.zeros((0, 6), bool),
    "one column": np.eye(5, 9, dtype=bool)[:, :1].repeat(9, 1),
}


def matrix(pattern: str, dtype: str) -> np.ndarray:
    mask = PATTERNS[pattern]
    return np.where(mask, RNG.standard_normal(mask.shape), 0).astype(dtype)


def dense_of(result) -> np.ndarray:
    return result.toarray() if isinstance(result, formats.RowSparse) else result


@pytest.mark.parametrize("rule", dots.RULES, ids=lambda r: f"{r.x}{'.T' if r.transposed else ''}-{r.result}-{r.engine}")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("width", [1, 3])
def test_every_rule_has_its_dense_meaning(rule, dtype, pattern, width):
    dense = matrix(pattern, dtype)
    x = formats.convert(dense, rule.x)
    other = RNG.standard_normal((dense.shape[0] if rule.transposed else dense.shape[1], width)).astype(dtype)
    if rule.transposed:
        came, expected = dots.dot_t(x, other, result=rule.result, engine=rule.engine), dense.T @ other
    else:
        came, expected = dots.dot(x, other, engine=rule.engine), dense @ other
    assert formats.format_of(came) == rule.result
    assert came.dtype == dtype
    np.testing.assert_allclose(dense_of(came), expected, atol=1e-5 if dtype == "float32" else 1e-12)


def test_a_row_sparse_gradient_names_exactly_the_touched_columns():
    dense = matrix("usual", "float32")
    for name in ("csr", "csc", "coo"):
        gradient = dots.dot_t(formats.convert(dense, name), np.ones((7, 2), np.float32), result="row_sparse")
        assert gradient.indices.tolist() == np.flatnonzero((dense != 0).any(axis=0)).tolist()


def test_a_coo_matrix_in_any_order_with_duplicates_is_summed():
    row, col = np.int32([2, 0, 2, 2]), np.int32([1, 3, 1, 0])
    x = scipy.sparse.coo_array((np.float32([1, 2, 3, 4]), (row, col)), shape=(3, 4))
    g = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_allclose(dots.dot_t(x, g, result="row_sparse").toarray(), x.toarray().T @ g)
    np.testing.assert_allclose(dots.dot(x, np.eye(4, dtype=np.float32)), x.toarray())


def test_out_is_filled_and_returned():
    x = formats.convert(matrix("usual", "float32"), "csr")
    out = np.full((7, 2), np.nan, np.float32)
    assert dots.dot(x, np.ones((11, 2), np.float32), out=out) is out
    assert np.isfinite(out).all()


def test_a_product_without_a_rule_names_those_there_are():
    with pytest.raises(dots.NoRuleError, match=r"row_sparse by engine 'vendor' .* there is: dense by ours"):
        dots.rule("csr", True, "row_sparse", "vendor")


def test_shapes_that_do_not_fit_are_refused_before_anything_is_computed():
    x = formats.convert(matrix("usual", "float32"), "csr")
    with pytest.raises(kernels.KernelError, match=r"out has shape \[6, 2\], but R is 7"):
        dots.dot(x, np.ones((11, 2), np.float32), out=np.empty((6, 2), np.float32))


def test_every_kernel_that_a_rule_names_exists():
    for rule in dots.RULES:
        assert kernels.get(rule.kernel).cpu is not None
