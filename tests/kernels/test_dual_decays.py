"""Dual ascent of several decays at once: for any loss what the definition says, and what each decay is trained to
alone."""

import numpy as np
import pytest

from kernels import KernelError, Sizes
from kernels.epochs import dual, dual_decays
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined
from tests.support.cases import CASES
from tests.support.implementations import run, same_bits


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_several_decays_on_adversarial_rows_are_what_the_definition_says(name: str) -> None:
    assert_as_defined(dual_decays.get("logistic"), adversarial(name))


@pytest.mark.parametrize(
    ("loss", "name"),
    [("softmax", "plain"), ("squared", "64 bits, narrow"), ("logistic", "narrow"), ("squared", "narrow")],
)
def test_every_loss_has_it_for_one_output_and_for_several(loss: str, name: str) -> None:
    assert_as_defined(dual_decays.get(loss), CASES[name])


def test_rows_counted_alike_and_no_intercept() -> None:
    none = np.zeros(0, np.float32)
    counts = np.zeros((0, len(dual_decays.DECAYS)), np.float32)
    assert_as_defined(dual_decays.get("logistic"), CASES["plain"], counts=counts, intercept=none)


def test_a_row_that_counts_for_nothing_is_left_out_and_bits_are_the_same() -> None:
    kernel, case = dual_decays.get("logistic"), CASES["narrow"]
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True))
    made["dual"][:, 1], made["counts"][:, 1] = 0, 0
    came = run(kernel.cpu, tuple(made.values()))
    after = dict(zip(names, came, strict=True))
    np.testing.assert_array_equal(after["weights"][:, 1], made["weights"][:, 1])
    assert not after["dual"][:, 1].any()
    assert (after["weights"][:, 0] != made["weights"][:, 0]).any()
    assert same_bits(came, run(kernel.cpu, tuple(made.values())))


@pytest.mark.parametrize(("loss", "name"), [("logistic", "narrow"), ("softmax", "plain")])
def test_each_decay_comes_to_what_it_comes_to_alone(loss: str, name: str) -> None:
    kernel, alone, case = dual_decays.get(loss), dual.get(loss), CASES[name]
    made = dict(zip([name for name, _, _ in kernel.parsed], kernel.arguments(case), strict=True))
    rows, outputs, decays = case.R, case.N, len(dual_decays.DECAYS)
    made |= {"counts": np.zeros((0, decays), case.dtype), "order": np.tile(np.arange(rows), 400)}
    made |= {name: np.zeros_like(made[name]) for name in ("weights", "dual", "intercept")}
    kernel.cpu(*made.values())
    for k, decay in enumerate(dual_decays.DECAYS):
        block = slice(k * outputs, (k + 1) * outputs)
        one = made | {"counts": np.zeros(0, case.dtype), "decay": decay}
        one |= {name: np.zeros_like(made[name][..., block]) for name in ("weights", "dual", "intercept")}
        del one["decays"]
        alone.cpu(*one.values())
        for name in ("weights", "dual", "intercept"):
            np.testing.assert_allclose(made[name][..., block], one[name], atol=2e-4)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decays", np.array([1, 0, 1], np.float32), "decays are [1. 0. 1.], intercept_square 0.5; the first is"),
        ("intercept_square", -1.0, "the other is 0 or more"),
        ("counts", np.ones((3, 3), np.float32), "counts has 3 numbers; it has one for each of 7 rows, or none"),
        ("intercept", np.ones(2, np.float32), "intercept has 2 numbers; it has 9, or none"),
        ("weights", np.ones((5, 6), np.float32), "weights"),
        ("order", np.array([0, 7]), "order"),
    ],
)
def test_invalid_arguments_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(KernelError) as refused:
        assert_as_defined(dual_decays.get("logistic"), CASES["plain"], **{name: value})
    assert message in str(refused.value)


def test_columns_that_are_no_multiple_of_the_decays_are_refused() -> None:
    kernel = dual_decays.get("logistic")
    two = {"decays": np.ones(2, np.float32), "counts": np.zeros((0, 2), np.float32)}
    with pytest.raises(KernelError, match="dual has 9 columns for 2 decays"):
        assert_as_defined(kernel, CASES["plain"], **two)


def test_the_cost_is_that_of_rows_and_unknown_losses_are_refused() -> None:
    with pytest.raises(KernelError, match="Unknown loss of some rows 'hinge'"):
        dual_decays.get("hinge")
    cost = dual_decays.get("squared").cost(Sizes(R=50, z=700, D=90, N=6, U=80))
    assert cost.flops == 4 * 700 * 6 + dual_decays.TURNS * (4 * 50 * 6 + 8 * 50 * 6)
