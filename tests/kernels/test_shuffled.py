"""Random orders: those of NumPy, bit for bit."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernels import sorting


@pytest.mark.parametrize("total", [0, 1, 2, 63, 64, 65, 127, 128, 1000, 1024, 1025, 1400, 4099])
def test_an_order_is_the_one_that_numpy_draws(total: int) -> None:
    for seed in range(5):
        one, other = (np.random.default_rng((seed, total)) for _ in range(2))
        order = sorting.permutation(one, total)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(order, other.permutation(total))


@pytest.mark.parametrize("total", [0, 1, 63, 64, 1000, 4099])
def test_orders_one_after_the_other_are_those_that_numpy_draws(total: int) -> None:
    orders = sorting.permutations_of(3, 4, 5, total)
    expected = [np.random.default_rng((3, number)).permutation(total) for number in range(4, 9)]
    assert orders.dtype == np.int64
    np.testing.assert_array_equal(orders, np.concatenate(expected))


def test_orders_whose_draws_do_not_suffice_are_drawn_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "DRAWS", 1.0)
    monkeypatch.setattr(sorting, "SPREAD", 0)
    expected = [np.random.default_rng((3, number)).permutation(1000) for number in range(2)]
    np.testing.assert_array_equal(sorting.permutations_of(3, 0, 2, 1000), np.concatenate(expected))


def test_draws_that_do_not_suffice_are_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "DRAWS", 1.0)
    monkeypatch.setattr(sorting, "SPREAD", 0)
    one, other = (np.random.default_rng(3) for _ in range(2))
    np.testing.assert_array_equal(sorting.permutation(one, 1000), other.permutation(1000))


def test_a_generator_in_the_midst_of_a_word_or_of_another_kind_draws_its_own_order() -> None:
    for make in (np.random.PCG64, np.random.MT19937):
        one, other = (np.random.Generator(make(7)) for _ in range(2))
        assert [generator.integers(0, 5, dtype=np.uint32) for generator in (one, other)]
        np.testing.assert_array_equal(sorting.permutation(one, 300), other.permutation(300))


@pytest.mark.parametrize("total", [0, 1, 63, 64, 65, 1000, 1025, 4099])
@pytest.mark.parametrize("seed", [0, 1, 7, 2**31, 2**32 - 1, 2**32, 2**70])
def test_an_order_without_a_generator_is_the_one_that_numpy_draws(total: int, seed: int) -> None:
    for number in (0, 3, 2**32 - 1, 2**32):
        order = sorting.permutation_of(seed, number, total)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(order, np.random.default_rng((seed, number)).permutation(total))


def test_an_order_without_a_generator_is_drawn_again_if_its_draws_do_not_suffice(monkeypatch) -> None:
    monkeypatch.setattr(sorting, "DRAWS", 1.0)
    monkeypatch.setattr(sorting, "SPREAD", 0)
    expected = np.random.default_rng((3, 1)).permutation(1000)
    np.testing.assert_array_equal(sorting.permutation_of(3, 1, 1000), expected)


def test_the_first_order_of_a_process_compiles_nothing_and_is_the_same(monkeypatch) -> None:
    monkeypatch.setattr(sorting, "_draw_orders", SimpleNamespace(signatures=[]))
    order = sorting.permutation_of(3, 0, 1000)
    np.testing.assert_array_equal(order, np.random.default_rng((3, 0)).permutation(1000))
    with pytest.raises(TypeError, match="not callable"):
        sorting.permutation_of(3, 1, 1000)
