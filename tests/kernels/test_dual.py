"""Dual ascent row by row: for any loss what the definition says, and upward to the optimum; what every kind refuses."""

from types import ModuleType

import numpy as np
import pytest

from kernels import Case, Kernel, KernelError, Sizes
from kernels.epochs import dual, dual_decays, dual_dense
from kernels.loss_blocks import curvature_of
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined
from tests.support.cases import CASES, random_case
from tests.support.implementations import assert_close, run, same_bits, strided

sparse_and_dense = pytest.mark.parametrize("ascent", [dual, dual_dense], ids=["sparse", "dense"])


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_dual_ascent_on_adversarial_rows_is_what_the_definition_says(name: str) -> None:
    assert_as_defined(dual.get("logistic"), adversarial(name))


@pytest.mark.parametrize(("loss", "name"), [("softmax", "plain"), ("squared", "64 bits, narrow")])
def test_every_loss_and_type_has_its_dual_ascent(loss: str, name: str) -> None:
    assert_as_defined(dual.get(loss), CASES[name])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_dual_ascent_of_one_output_is_what_the_definition_says(loss: str) -> None:
    assert_as_defined(dual.get(loss), CASES["narrow"])


@sparse_and_dense
def test_rows_counted_alike_and_no_intercept(ascent: ModuleType) -> None:
    none = np.zeros(0, np.float32)
    assert_as_defined(ascent.get("logistic"), CASES["plain"], counts=none, intercept=none)


@sparse_and_dense
def test_memory_layout_does_not_matter_and_bits_are_the_same(ascent: ModuleType) -> None:
    kernel, case = ascent.get("logistic"), CASES["plain"]
    args = kernel.arguments(case)
    expected, gaps = run(kernel.cpu, args), tuple(map(strided, args))
    assert_close(case, [kernel.cpu(*gaps), *gaps], expected)
    assert same_bits(expected, run(kernel.cpu, kernel.arguments(case)))


def climbed(kernel: Kernel, decay: float, epochs: int) -> tuple[np.ndarray, ...]:
    """(X dense, targets, W) after some epochs on one small problem of one output."""
    case = random_case(40, 12, 200, 3)
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True))
    nothing = np.zeros(0, np.float32)
    made |= {"weights": np.zeros((12, 3), np.float32), "dual": np.zeros((40, 3), np.float32)}
    made |= {"counts": nothing, "intercept": nothing, "decay": decay, "order": np.tile(np.arange(40), epochs)}
    kernel.cpu(*made.values())
    x = np.zeros((40, 12))
    np.add.at(x, (np.repeat(np.arange(40), np.diff(case.indptr)), case.indices), case.data)
    np.testing.assert_allclose(x.T @ made["dual"] / (decay * 40), made["weights"], atol=2e-5)
    return x, made["targets"], made["weights"]


def test_of_the_squared_loss_it_comes_to_ridge_regression() -> None:
    x, y, w = climbed(dual.get("squared"), decay=0.05, epochs=60)
    expected = np.linalg.solve(x.T @ x + 0.05 * 40 * np.eye(12), x.T @ y)
    np.testing.assert_allclose(w, expected, atol=1e-4)


def test_of_the_logistic_loss_it_comes_to_where_the_gradient_is_zero() -> None:
    x, y, w = climbed(dual.get("logistic"), decay=0.01, epochs=200)
    slope = 1 / (1 + np.exp(-x @ w)) - y
    np.testing.assert_allclose(x.T @ slope / 40 + 0.01 * w, 0, atol=2e-5)


def test_duplicates_are_summed_before_they_are_squared() -> None:
    few = np.array([3, 3, 4, 1, 4]), np.array([1, 2, 3, 4, -1], np.float32)
    indices, data = (np.concatenate([array, np.tile(array, 8)]) for array in few)
    case, kernel = Case(np.array([0, 2, 5, 45]), indices, data, 5, 3), dual.get("squared")
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True))
    made |= {"squares": np.full(3, -1, np.float32), "order": np.array([0, 2, 1])}
    kernel.cpu(*made.values())
    np.testing.assert_array_equal(made["squares"], [9, 20, ((8 * np.bincount(*few)) ** 2).sum()])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("decay", 0.0, "decay is 0.0, intercept_square 0.5; the first is above 0"),
        ("intercept_square", -1.0, "intercept_square -1.0; the first is above 0"),
        ("counts", np.ones(3, np.float32), "counts has 3 numbers; it has one for each of 7 rows, or none"),
        ("intercept", np.ones(2, np.float32), "intercept has 2 numbers; it has 3, or none"),
        ("order", np.array([0, 7]), "order"),
    ],
)
@sparse_and_dense
def test_wrong_arguments_are_refused(ascent: ModuleType, name: str, value: object, text: str) -> None:
    with pytest.raises(KernelError) as refused:
        assert_as_defined(ascent.get("logistic"), CASES["plain"], **{name: value})
    assert text in str(refused.value)


@pytest.mark.parametrize("ascent", [dual, dual_dense, dual_decays], ids=["sparse", "dense", "several decays"])
def test_a_label_out_of_range_ends_the_epoch_and_is_named(ascent: ModuleType) -> None:
    labels = np.array([0, 1, 2, 0, 3, 1, 2])
    with pytest.raises(KernelError, match=r"labels\[4\] is 3; scores have 3 columns"):
        assert_as_defined(ascent.get("softmax"), CASES["plain"], targets=labels, order=np.arange(7))


def test_what_is_not_known_is_told_with_what_is_and_the_cost_is_that_of_rows() -> None:
    with pytest.raises(
        KernelError, match=r"Unknown loss of some rows 'hinge'.*Expected one of: logistic, softmax, squared"
    ):
        dual.get("hinge")
    assert [curvature_of(name) for name in ("logistic", "softmax", "squared")] == [0.25, 0.5, 1.0]
    cost = dual.get("squared").cost(Sizes(R=50, z=700, D=90, N=6, U=80))
    assert cost.flops == 4 * 700 * 6 + dual.TURNS * (4 * 50 * 6 + 6 * 50 * 6)
    assert cost.bytes_compulsory == 700 * 8 + 51 * 4 + 3 * 50 * 6 * 4 + 2 * 80 * 6 * 4
