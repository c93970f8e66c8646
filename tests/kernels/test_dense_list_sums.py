"""Sums of an epoch that have a place for every column beside a list of those touched: their values, bits and choice."""

import numpy as np
import pytest

from kernels import Case, epochs, threads
from kernels.epochs import calls, dense_list, dense_table, touched
from kernels.rules.rule import get_rule
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined, unchanged
from tests.support.cases import from_rows, random_case
from tests.support.implementations import run, same_bits


@pytest.fixture(autouse=True)
def one_thread(kept_threads):
    threads.set_threads(1)


def weights_of(case: Case) -> np.ndarray:
    return np.zeros((case.D, case.N), case.dtype)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_rows_are_summed_as_the_definition_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_list, "suits", lambda *sizes: True)
    assert_as_defined(epochs.get("logistic", "adagrad"), adversarial(name))


@pytest.mark.parametrize(
    ("loss", "rule", "way", "width"),
    [
        *(("logistic", "adagrad", "lazy", 3), ("softmax", "adam", "step_by_step", 3)),  # whose loops other tests have
        pytest.param("logistic", "adam", "step_by_step", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "sgd", "lazy", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "adagrad", "lazy", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "group_adagrad", "lazy", 3, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "adagrad", "standard", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "ftrl", "last_step", 1, marks=pytest.mark.exhaustive),
    ],
)
def test_they_have_the_bits_of_sums_that_are_listed(
    loss: str, rule: str, way: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, case = epochs.get(loss, rule, way), random_case(60, 8200, 400, width)
    assert dense_list.suits(400 * 17 // 60, 8, weights_of(case))
    settings = {} if (rule, way) == ("adagrad", "lazy") else unchanged(kernel, case)
    at_places = assert_as_defined(kernel, case, batch_rows=17, **settings)
    for way_of_sums in (dense_list, dense_table):
        monkeypatch.setattr(way_of_sums, "suits", lambda *sizes: False)
    assert same_bits(at_places, assert_as_defined(kernel, case, batch_rows=17, **settings))


@pytest.mark.parametrize(
    ("rule", "dtype", "width"),
    [
        *(("adam", np.float64, 1), ("adagrad", np.float32, 3)),  # the last has the loop of the rows above
        pytest.param("adam", np.float32, 1, marks=pytest.mark.exhaustive),
        pytest.param("adagrad", np.float32, 1, marks=pytest.mark.exhaustive),
        pytest.param("adagrad", np.float64, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_column_whose_entries_cancel_is_stepped_once(
    rule: str, dtype: type, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second step of Adam would change weights without a gradient."""
    monkeypatch.setattr(dense_list, "suits", lambda *sizes: True)
    rows, columns = np.repeat(np.arange(4), 6), np.tile([0, 1, 1, 2, 1, 0], 4)
    case = from_rows(rows, columns, 4, 3, width, dtype=dtype)
    case.data[:] = np.tile([1, 2, -2, 0, 2, -1], 4)  # column 0 cancels, column 1 cancels and comes again
    assert_as_defined(epochs.get("logistic", rule), case, batch_rows=2)


def test_columns_from_beyond_the_cache_are_asked_for_and_summed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = epochs.get("logistic", "adagrad"), random_case(60, 8200, 400, 3)
    near = run(kernel.cpu, kernel.arguments(case))
    monkeypatch.setattr(calls, "cache_bytes", lambda level: 0)
    assert same_bits(near, run(kernel.cpu, kernel.arguments(case)))


def test_columns_are_many_for_a_batch_and_few_for_a_call() -> None:
    few, many = np.zeros((30_000, 1), np.float32), np.zeros((10**6, 1), np.float32)
    assert dense_list.suits(704, 1, few)
    assert not dense_list.suits(few.size // dense_list.PLACES, 1, few)  # looking through all places is faster
    assert not dense_list.suits(704, 100, many)  # clearing the places would take longer than the batches
    assert dense_list.suits(704, 400, many)
    assert few.size <= touched.DIRECT < many.size
    assert not dense_list.suits(704, 10**6, np.zeros((30_000, 17), np.float32))


def test_several_threads_take_other_sums() -> None:
    kernel, case = epochs.get("logistic", "adagrad"), random_case(60, 8200, 400, 1)
    call = calls.Call.of(get_rule("adagrad"), "lazy", kernel.arguments(case))
    assert calls._sums(call, 100, 1) == "dense_list"
    assert calls._sums(call, 100, 2) != "dense_list"
