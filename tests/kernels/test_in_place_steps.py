"""Steps by each entry at once, of epochs of SGD without decay: their values, bits and choice."""

import numpy as np
import pytest

from kernels import Case, Kernel, epochs, threads
from kernels.epochs import calls, dense_table, loops
from kernels.rules import steps
from kernels.rules.rule import get_rule
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined
from tests.support.cases import random_case
from tests.support.implementations import same_bits
from tests.support.thread_counts import TWO_AT_MOST, share_out

WIDTHS = (1, 3, 67, pytest.param(16, marks=pytest.mark.exhaustive))


@pytest.fixture(autouse=True)
def two_threads(kept_threads):
    threads.set_threads(TWO_AT_MOST)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways to sum that calls took."""
    found: list[str] = []
    choose = calls._sums

    def noted(*given) -> str:
        found.append(choose(*given))
        return found[-1]

    monkeypatch.setattr(calls, "_sums", noted)
    return found


@pytest.fixture
def never_dense_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns are no reason to sum a gradient."""
    monkeypatch.setattr(dense_table, "suits", lambda *sizes: False)


def plain(kernel: Kernel, case: Case) -> dict[str, np.ndarray]:
    """Settings of two steps without decay, scale and clip."""
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True))
    tables = {name: made[name].copy() for name in ("settings", "settings_intercept")}
    for table in tables.values():
        table[:, 1] = 0
        table[:, -2:] = steps.UNCHANGED
    return tables


@pytest.mark.parametrize("serial", [False, None])
@pytest.mark.parametrize("way", ["lazy", "standard"])
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.usefixtures("never_dense_table")
def test_adversarial_rows_are_stepped_as_the_definition_says(
    name: str, way: str, serial: bool | None, monkeypatch: pytest.MonkeyPatch, taken: list[str]
) -> None:
    share_out(monkeypatch, serial)
    kernel, case = epochs.get("logistic", "sgd", way), adversarial(name)
    assert_as_defined(kernel, case, **plain(kernel, case))
    assert set(taken) <= {"in_place"}


@pytest.mark.covering(targets=lambda case: {("width", case["width"]), ("serial", case["serial"])})
@pytest.mark.parametrize("serial", [False, None])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.usefixtures("never_dense_table")
def test_rows_of_any_width_and_batches_of_any_size(
    width: int, serial: bool | None, monkeypatch: pytest.MonkeyPatch, taken: list[str]
) -> None:
    share_out(monkeypatch, serial)
    loss = "logistic" if width == 3 else "squared"  # the first has the loop of the rows above
    kernel, case = epochs.get(loss, "sgd"), random_case(60, 90, 700, width)
    for batch_rows in (1, 7, 100):
        assert_as_defined(kernel, case, batch_rows=batch_rows, **plain(kernel, case))
    assert taken == ["in_place"] * 3


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.usefixtures("never_dense_table")
def test_the_bits_are_the_same_on_any_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:

    kernel, case = epochs.get("logistic", "sgd"), adversarial(name)
    alone = assert_as_defined(kernel, case, **plain(kernel, case))
    share_out(monkeypatch)
    together = assert_as_defined(kernel, case, **plain(kernel, case))
    assert same_bits(alone[1:], together[1:])  # the first are losses, which the threads add up


def test_columns_are_shared_out_by_their_entries_in_whole_lines() -> None:
    weights = np.zeros((1000, 1), np.float32)
    even = loops.in_place_for(2, np.arange(1000, dtype=np.int32), weights).bounds
    assert even.tolist() == [0, 496, 1000]
    heavy = loops.in_place_for(2, np.repeat(np.int32([3, 700]), [900, 100]), weights).bounds
    assert heavy.tolist() == [0, 0, 1000]  # one column has most entries: nothing to share
    assert loops.in_place_for(3, np.zeros(0, np.int32), weights).bounds.tolist() == [0, 0, 0, 1000]
    assert loops.in_place_for(1, np.arange(9), weights).bounds.tolist() == [0, 1000]


def test_only_linear_rules_whose_step_without_gradient_changes_nothing_are_stepped_so() -> None:
    sgd, adagrad = get_rule("sgd"), get_rule("adagrad")
    assert loops.suits(sgd, np.array([[0.1, 0.0, 1, np.inf], [0.2, 0.0, 1, np.inf]]), is_unchanged=True)
    assert not loops.suits(sgd, np.array([[0.1, 0.0, 1, np.inf], [0.2, 0.5, 1, np.inf]]), is_unchanged=True)
    assert not loops.suits(sgd, np.array([[0.1, 0.0, 1, 3.0]]), is_unchanged=False)
    assert not loops.suits(adagrad, np.array([[0.1, 0.0, 1e-2, 1, np.inf]]), is_unchanged=True)


def test_several_threads_sum_for_few_columns_and_step_at_once_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = epochs.get("logistic", "sgd"), random_case(60, 900, 4000, 1)
    call = calls.Call.of(get_rule("sgd"), "lazy", kernel.arguments(case))
    assert calls._sums(call, 4000, 1, True) == "in_place"
    assert calls._sums(call, 4000, 2, True) == "dense_table"
    assert calls._sums(call, 4000, 2, False) == "dense_table"
    monkeypatch.setattr(calls, "cache_bytes", lambda level: 0)
    assert calls._sums(call, 4000, 2, True) == "in_place"
