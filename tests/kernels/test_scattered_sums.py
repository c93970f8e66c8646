"""Sums of an epoch that have a place for every column beside a list of those touched: their values, bits and choice."""

from dataclasses import replace

import numpy as np
import pytest

from kernels import Case, KernelError, epochs, threads
from kernels.epochs import calls, placed, scattered, touched
from kernels.rules.rule import get_rule
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined, unchanged
from tests.support.cases import CASES, from_rows, random_case
from tests.support.implementations import run, same_bits


@pytest.fixture(autouse=True)
def one_thread(kept_threads):
    threads.set_threads(1)


def weights_of(case: Case) -> np.ndarray:
    return np.zeros((case.D, case.N), case.dtype)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_rows_are_summed_as_the_definition_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "suits", lambda *sizes: True)
    assert_as_defined(epochs.get("logistic", "adagrad"), adversarial(name))


@pytest.mark.parametrize(
    ("loss", "rule", "way", "width"),
    [
        *(("logistic", "adagrad", "lazy", 3), ("softmax", "adam", "replay", 3)),  # whose loops other tests have
        pytest.param("logistic", "adam", "replay", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "sgd", "lazy", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "adagrad", "lazy", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "group_adagrad", "lazy", 3, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "adagrad", "standard", 1, marks=pytest.mark.exhaustive),
        pytest.param("logistic", "ftrl", "settle", 1, marks=pytest.mark.exhaustive),
    ],
)
def test_they_have_the_bits_of_sums_that_are_listed(
    loss: str, rule: str, way: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, case = epochs.get(loss, rule, way), random_case(60, 8200, 400, width)
    assert scattered.suits(400 * 17 // 60, 8, weights_of(case))
    settings = {} if (rule, way) == ("adagrad", "lazy") else unchanged(kernel, case)
    at_places = assert_as_defined(kernel, case, batch_rows=17, **settings)
    for way_of_sums in (scattered, placed):
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
    monkeypatch.setattr(scattered, "suits", lambda *sizes: True)
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
    assert scattered.suits(704, 1, few)
    assert not scattered.suits(few.size // scattered.PLACES, 1, few)  # looking through all places is faster
    assert not scattered.suits(704, 100, many)  # clearing the places would take longer than the batches
    assert scattered.suits(704, 400, many)
    assert few.size <= touched.DIRECT < many.size
    assert not scattered.suits(704, 10**6, np.zeros((30_000, 17), np.float32))


def test_several_threads_take_other_sums() -> None:
    kernel, case = epochs.get("logistic", "adagrad"), random_case(60, 8200, 400, 1)
    call = calls.Call.of(get_rule("adagrad"), "lazy", kernel.arguments(case))
    assert calls._sums(call, 100, 1) == "scattered"
    assert calls._sums(call, 100, 2) != "scattered"


@pytest.mark.parametrize("name", [*ADVERSARIAL, "plain"])
def test_batches_by_column_are_as_the_definition_says_and_have_the_bits_of_others(name: str) -> None:
    case = replace(CASES[name], N=1)
    kernel, other = (epochs.get("logistic", "adagrad", way) for way in ("indexed", "lazy"))
    by_column = assert_as_defined(kernel, case)
    expected = run(other.cpu, kernel.arguments(case)[: len(other.parsed)])
    assert same_bits(by_column[: len(expected)], expected)


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("name", ["plain", "many", "duplicates"])
def test_parts_that_share_the_columns_of_an_index_out_have_the_bits_of_one(
    name: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = random_case(60, 8200, 4000, 1) if name == "many" else replace(CASES[name], N=1)
    kernel = epochs.get("logistic", "adagrad", "indexed")
    alone = assert_as_defined(kernel, case)
    made, loops_of = [], calls.make_parallel
    monkeypatch.setattr(calls, "make_parallel", lambda *key: made.append(key[-1]) or loops_of(*key))
    monkeypatch.setattr(calls, "is_serial", lambda work, within: False)
    monkeypatch.setattr(calls, "get_threads", lambda: parts)
    threads.set_threads(min(2, threads.max_threads()))
    with threads.parallel():
        assert same_bits(alone[1:], assert_as_defined(kernel, case)[1:])  # the losses of parts are added
    assert made == ["indexed"]


def test_wider_rows_and_too_few_for_a_batch_leave_the_index_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "indexed_for", None)
    assert_as_defined(epochs.get("logistic", "adagrad", "indexed"), adversarial("duplicates"))
    kernel, case = epochs.get("logistic", "adagrad", "indexed"), replace(CASES["plain"], N=1)
    active = dict(zip([name for name, _, _ in kernel.parsed], kernel.arguments(case), strict=True))["columns"].size
    assert_as_defined(kernel, case, batch_rows=10**6, batches=np.array([0, active]))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("order", 4, "batches has .* numbers; it has 3"),
        ("rows", [3], "rows"),
        ("columns", [10**6], "columns"),
        ("segments", [10**6], "segments"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(name: str, value: int | list, message: str) -> None:
    kernel, case = epochs.get("logistic", "adagrad", "indexed"), replace(CASES["plain"], N=1)
    made = dict(zip([name for name, _, _ in kernel.parsed], kernel.arguments(case), strict=True))
    made[name] = made[name][:value].copy() if isinstance(value, int) else np.append(made[name][:-1], value)
    made[name] = made[name].astype(made["indices"].dtype if name != "order" else np.int64)
    with pytest.raises(KernelError, match=message):
        kernel.cpu(*made.values())


def test_columns_of_a_batch_come_by_their_number_of_entries() -> None:
    case = random_case(40, 30, 300, 1)
    index = scattered.index_of(case.indptr, case.indices, case.data, np.arange(40), 16)
    assert index.batches.size == 4
    counts = np.minimum(np.diff(index.segments), scattered.LONGEST)
    for first, stop in zip(index.batches[:-1], index.batches[1:], strict=True):
        pairs = list(zip(counts[first:stop].tolist(), index.columns[first:stop].tolist(), strict=True))
        assert pairs == sorted(pairs)
    huge = np.array([2**62])
    with pytest.raises(KernelError, match="too large"):
        scattered.index_of(np.array([0, 1]), huge, np.ones(1), np.arange(1), 1)
