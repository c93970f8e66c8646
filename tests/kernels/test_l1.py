"""Coordinate steps with an L1 penalty, column by column: what the definition says, in both storages."""

from types import ModuleType

import numpy as np
import pytest

from kernels import KernelError
from kernels.epochs import l1_csc, l1_dense, l1_products
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined
from tests.support.cases import CASES
from tests.support.implementations import assert_close, run, same_bits, strided

both = pytest.mark.parametrize("steps", [l1_csc, l1_dense], ids=["csc", "dense"])
each = pytest.mark.parametrize("steps", [l1_csc, l1_dense, l1_products], ids=["csc", "dense", "products"])


@both
@pytest.mark.parametrize("name", [*ADVERSARIAL, "64 bits, narrow"])
def test_steps_on_adversarial_columns_are_what_the_definition_says(steps: ModuleType, name: str) -> None:
    if name != "nan and inf":  # which spread in another order of sums
        assert_as_defined(steps.get(), adversarial(name))


@each
@pytest.mark.parametrize("l1", [0.0, 1.0, 1e9])
def test_steps_without_an_intercept_and_with_any_penalty(steps: ModuleType, l1: float) -> None:
    assert_as_defined(steps.get(), CASES["plain"], shift=np.zeros(0), l1=l1)


@each
def test_sweeps_end_when_they_move_no_more(steps: ModuleType) -> None:
    kernel = steps.get()
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(CASES["plain"]), strict=True))
    made |= {"history": np.zeros((500, len(made["columns"]))), "enough": 1e-12}
    sweeps, moved = kernel.cpu(*made.values())
    assert 1 < sweeps < 500
    assert moved <= 1e-12
    assert not made["history"][sweeps:].any()
    np.testing.assert_array_equal(made["history"][sweeps - 1], made["weights"][made["columns"]])


@each
def test_memory_layout_does_not_matter_and_bits_are_the_same(steps: ModuleType) -> None:
    kernel, case = steps.get(), CASES["plain"]
    args = kernel.arguments(case)
    expected, gaps = run(kernel.cpu, args), tuple(map(strided, args))
    assert_close(case, [*kernel.cpu(*gaps), *gaps], expected)
    assert same_bits(expected, run(kernel.cpu, kernel.arguments(case)))


@each
@pytest.mark.parametrize("wrong", [-1, 99])
def test_a_column_that_is_not_there_is_refused(steps: ModuleType, wrong: int) -> None:
    kernel = steps.get()
    args = list(kernel.arguments(CASES["plain"]))
    place = [name for name, _, _ in kernel.parsed].index("columns")
    args[place][1] = wrong
    with pytest.raises(KernelError, match=rf"columns\[1\] is {wrong}, out of range"):
        kernel.cpu(*args)
