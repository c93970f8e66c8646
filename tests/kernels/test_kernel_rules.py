"""What the definitions of the kernels themselves are held to: calculus, SciPy, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse

import kernels
from kernels import Case, Kernel, KernelError
from kernels.updates.adam import rest_of_power
from tests.support.cases import CASES, random_case
from tests.support.implementations import copies, get, run
from tests.support.thread_counts import share_out

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.mark.parametrize("name", ["squared", "logistic", "softmax"])
def test_loss_gradient_is_the_slope_of_the_loss(name: str) -> None:
    kernel = get(name)
    scores, target, gradient = kernel.arguments(random_case(4, 5, 6, 3, dtype=np.float64, index=np.int64))
    scores = scores / 10
    kernel.cpu(scores, target, gradient)
    for place in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-6
        above, below = (kernel.cpu(scores + sign * step, target, gradient.copy()) for sign in (1, -1))
        assert (above - below) / 2e-6 == pytest.approx(gradient[place], abs=1e-8)


@pytest.mark.parametrize("label", [-1, 3, 2**40])
def test_softmax_refuses_a_label_without_a_column(label: int) -> None:
    scores, labels = np.zeros((4, 3), np.float32), np.array([0, 1, label, 2])
    with pytest.raises(KernelError, match=rf"labels\[2\] is {label}; .* 0 to 2"):
        get("softmax").cpu(scores, labels, scores.copy())


def test_softmax_of_huge_scores_is_finite() -> None:
    scores, gradient = np.float32([[1e30, -1e30, 0], [-1e30, -1e30, -1e30]]), np.empty((2, 3), np.float32)
    assert get("softmax").cpu(scores, np.array([0, 1]), gradient) == pytest.approx(np.log(3) / 2)
    np.testing.assert_allclose(gradient, [[0, 0, 0], [1 / 6, -1 / 3, 1 / 6]], rtol=1e-6)


def test_softmax_gradient_of_a_sure_label_does_not_cancel() -> None:
    gradient = np.empty((1, 3), np.float32)
    get("softmax").cpu(np.float32([[20, 0, 0]]), np.array([0]), gradient)
    np.testing.assert_allclose(gradient, np.array([[-2, 1, 1]]) * np.exp(-20), rtol=1e-6)


EQUAL_WITHOUT_DECAY = ("sgd", "adagrad", "group_adagrad")
"""Other rules are equal where every row is touched."""


@pytest.mark.parametrize("rule", [name.removesuffix("_lazy") for name in kernels.names() if name.endswith("_lazy")])
def test_lazy_step_equals_dense_step_where_the_header_says_so(rule: str) -> None:
    lazy, dense, every = get(f"{rule}_lazy"), get(f"{rule}_dense"), rule not in EQUAL_WITHOUT_DECAY
    case = random_case(5, 8, 30 if every else 6, 3, seed=4)
    args = list(copies(lazy.arguments(case)))
    rows, gradient = args[-2 - _numbers(lazy)], args[-1 - _numbers(lazy)]
    if every:
        rows, gradient = np.arange(case.D), case.dense(case.D, 3)
    decay = _position(lazy, "decay")
    args[decay] = args[decay] if every else 0
    full = np.zeros((case.D, case.N), case.dtype)
    full[rows] = gradient
    state, numbers = args[: -2 - _numbers(lazy)], args[-_numbers(lazy) :]
    by_rows = run(lazy.cpu, (*state, rows, gradient, *numbers))
    at_once = run(dense.cpu, (*state, full, *numbers))
    for one, other in zip(by_rows[: len(state)], at_once[: len(state)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def _numbers(kernel: Kernel) -> int:
    return sum(kind == "s" for _, kind, _ in kernel.parsed)


def _position(kernel: Kernel, parameter: str) -> int:
    return [name for name, _, _ in kernel.parsed].index(parameter)


def test_adam_counts_steps_from_one() -> None:
    args = get("adam_dense").arguments(CASES["plain"])
    with pytest.raises(KernelError, match="step is 0; it counts from 1"):
        get("adam_dense").cpu(*args[:-1], 0)


@pytest.mark.parametrize("beta", [0.0, 1e-9, 0.5, 0.9, 0.999, 1 - 1e-9, 1.0])
def test_rests_of_powers_are_those_of_every_step(beta: float) -> None:
    steps = np.concatenate([np.arange(1, 500), np.arange(41_000, 43_000), [10**6, 10**12, 2**62]])
    with np.errstate(under="ignore"):
        assert rest_of_power(beta, steps).tolist() == (1 - beta**steps).tolist()


@every_case
def test_conversions_agree_with_scipy(case: Case) -> None:
    matrix = scipy.sparse.csr_array((case.data, case.indices, case.indptr), shape=(case.R, case.D))
    column = scipy.sparse.csc_array(matrix.tocoo() if case.R == 0 else matrix)
    row, col, data, n_rows = get("coo_to_csr").arguments(case)
    pieces = get("coo_to_csr").cpu(row, col, data, n_rows)
    assert pieces[0].tolist() == case.indptr.tolist()
    for ours, theirs in zip(
        get("csr_to_csc").cpu(case.indptr, case.indices, case.data, case.D),
        (column.indptr, column.indices, column.data),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(get("csr_to_coo_rows").cpu(case.indptr), matrix.tocoo().row)


@pytest.mark.parametrize(("name", "word"), [("coo_to_csr", "row"), ("csr_to_csc", "column")])
@pytest.mark.parametrize("wrong", [-1, 99])
@pytest.mark.parametrize("serial", [False, None])
def test_grouping_refuses_a_number_out_of_range(name, word, wrong, serial, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, serial)
    args = copies(get(name).arguments(random_case(3, 4, 40, 1)))
    args[0 if name == "coo_to_csr" else 1][7] = wrong
    with pytest.raises(KernelError, match=rf"Entry 7 has {word} {wrong}; allowed are 0 to"):
        get(name).trusted(*args)
    with pytest.raises(KernelError, match=rf"\[7\] is {wrong}, out of range"):
        get(name).cpu(*args)


@pytest.mark.parametrize("wrong", [-1, 7])
def test_slice_rows_refuses_a_row_that_is_not_there(wrong: int) -> None:
    *matrix, rows = get("slice_rows").arguments(CASES["plain"])
    rows[2] = wrong
    with pytest.raises(KernelError, match=rf"rows\[2\] is {wrong}; the matrix has the rows 0 to 6"):
        get("slice_rows").trusted(*matrix, rows)
    with pytest.raises(KernelError, match=rf"rows\[2\] is {wrong}, out of range. Allowed: 0 to 6"):
        get("slice_rows").cpu(*matrix, rows)


def test_merge_rows_refuses_a_negative_index() -> None:
    with pytest.raises(KernelError, match="an index is -2; rows count from 0"):
        get("merge_rows").trusted(np.array([3, -2]), np.ones((2, 1)))
    with pytest.raises(KernelError, match=r"indices\[1\] is -2, out of range"):
        get("merge_rows").cpu(np.array([3, -2]), np.ones((2, 1)))


def test_scipy_routines_compute_what_its_operator_does() -> None:
    case = CASES["full row"]
    indptr, indices, data, x, out = get("scipy.csr_dense").arguments(case)
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=(case.R, case.D))
    get("scipy.csr_dense").cpu(indptr, indices, data, x, out)
    np.testing.assert_array_equal(out, matrix @ x)
    g, full = case.dense(case.R, case.N), case.garbage(case.D, case.N)
    get("scipy.csr_t_dense_full").cpu(indptr, indices, data, g, full)
    np.testing.assert_array_equal(full, matrix.T @ g)
