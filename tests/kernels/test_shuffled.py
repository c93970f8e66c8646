"""Random orders: those of NumPy, bit for bit."""

import numpy as np
import pytest

from kernels import permutation as permutations
from kernels.permutation import FEW, permutation


@pytest.mark.parametrize("total", [0, 1, 2, 64, FEW - 1, FEW, FEW + 1, 1024, 1025, 1400, 4099])
def test_an_order_is_the_one_that_numpy_draws(total: int) -> None:
    for seed in range(5):
        one, other = (np.random.default_rng((seed, total)) for _ in range(2))
        order = permutation(one, total)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(order, other.permutation(total))


def test_draws_that_do_not_suffice_are_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutations, "DRAWS", 1.0)
    monkeypatch.setattr(permutations, "SPREAD", 0)
    one, other = (np.random.default_rng(3) for _ in range(2))
    np.testing.assert_array_equal(permutation(one, 2000), other.permutation(2000))


def test_a_generator_in_the_midst_of_a_word_or_of_another_kind_draws_its_own_order() -> None:
    for make in (np.random.PCG64, np.random.MT19937):
        one, other = (np.random.Generator(make(7)) for _ in range(2))
        assert [generator.integers(0, 5, dtype=np.uint32) for generator in (one, other)]
        np.testing.assert_array_equal(permutation(one, 3000), other.permutation(3000))
