"""Rounds that lie off, cells to doubt and cells without a result are found, each with its reason; good rows are not."""

from tests.support import rows as made
from workbench import store
from workbench.analysis import cells
from workbench.analysis.outliers import outliers


def found(rows):
    return outliers(cells.records(cells.latest(store.frame(rows))))


def test_rounds_that_agree_are_no_outliers():
    assert found(made.sweep(noise=0.01, shared=0.01)) == []


def test_a_round_that_lies_off_is_named_with_how_far():
    rows = made.sweep(densities=(0.01,), rounds=6, noise=0.005, shared=0.005)
    slow = next(row for row in rows if row["format"] == "csr" and row["round"] == 2)
    slow["seconds_step"] *= 3
    told = {(one.row["format"], one.place): one.reason for one in found(rows)}
    assert told["csr", "round 3 of r1"] == "took 3 times the median of its 6 rounds"
    assert told["csr", ""].startswith("rounds spread by ")
    assert not any(format == "dense" for format, _ in told)


def test_few_rounds_have_no_outlier_of_their_own():
    rows = made.sweep(densities=(0.01,), rounds=3, noise=0.005, shared=0.005)
    rows[0]["seconds_step"] *= 3
    assert {one.place for one in found(rows)} == {""}


def test_cells_without_a_result_come_first_and_disturbed_ones_are_told():
    found_ = found(made.rich())
    statuses = [one.row["status"] for one in found_]
    assert statuses[:3] == sorted(statuses[:3], key=lambda status: status in cells.NUMBERED)
    reasons = [one.reason for one in found_]
    assert any(reason.startswith("memory: needs 5 GB") for reason in reasons)
    assert any(reason.startswith("disturbed: other programs took 60 %") for reason in reasons)
