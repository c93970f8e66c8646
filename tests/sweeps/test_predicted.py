"""Predictions of trials before they run, and what is known of trials that were ended before they had a time."""

import math

import pytest

from kernels._compat.library_internals import watched_compiling
from kernels.registry import format_size
from tests.support.tiny_sweeps import DENSE, TINY, trial_row
from workbench.sweeps.budget import COMPILING, TrialClock
from workbench.sweeps.grid import planned_row, seconds_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.spec import Configuration

SIZES = {"features": 20_000, "width": 1, "nnz_batch": 256 * 40.0, "touched": 5_000.0, "rows_trained": 10_000}
EPOCH = {"model": "logistic", "optimizer": "sgd", "execution": "epoch"}


def predicted(**settings) -> float | None:
    return seconds_of(Configuration(**EPOCH | settings), SIZES)


def test_a_denser_batch_takes_sparse_longer_and_dense_as_long():
    dense = {**DENSE, "execution": "epoch"}
    thin, thick = (SIZES | {"nnz_batch": 256 * count, "touched": min(256 * count, 2e4)} for count in (4.0, 4000.0))
    sparse = [seconds_of(Configuration(**EPOCH), sizes) for sizes in (thin, thick)]
    both = [seconds_of(Configuration(**EPOCH | dense), sizes) for sizes in (thin, thick)]
    assert sparse[1] > 30 * sparse[0]
    assert both[0] == both[1] > sparse[0]
    assert sparse[1] > both[1], "at 20 % density dense wins"


@pytest.mark.parametrize(
    "settings", [{"device": "cuda", "execution": "cuda_graph"}, {"execution": "dual"}, {"trainers": 2}]
)
def test_nothing_is_predicted_of_what_no_formula_is_fitted_for(settings):
    assert predicted(**settings) is None


def test_a_plan_has_the_bytes_that_a_trial_predicts_and_says_what_does_not_fit():
    configuration = Configuration(**{**TINY, **DENSE, "density": 0.1})
    row = planned_row(configuration, make_problem(configuration))
    measured = trial_row(**{**DENSE, "density": 0.1})
    assert (row["status"], row["bytes_predicted"]) == ("skipped", measured["bytes_predicted"])
    assert row["seconds_predicted"] == measured["seconds_predicted"] > 0
    unfit = planned_row(configuration, make_problem(configuration), bytes_limit=row["bytes_predicted"] - 1)
    assert (unfit["status"], unfit["bytes_needed"]) == ("memory", row["bytes_predicted"])
    assert unfit["reason"].startswith(f"Needs {format_size(row['bytes_predicted'])} (data: ")


def test_what_a_trial_has_told_stays_known_and_compiling_counts_for_no_limit(monkeypatch):
    supervisor = Supervisor.__new__(Supervisor)
    monkeypatch.setattr(Supervisor, "enter", lambda *_: None)
    clock = TrialClock(100.0)
    assert supervisor.is_interim({"known": {"bytes_predicted": 7}}, clock)
    assert supervisor.is_interim({"stage": COMPILING}, clock)
    assert not supervisor.is_interim({"status": "ok"}, clock)
    assert clock.known == {"bytes_predicted": 7}
    assert "limit of compiling" not in str(clock.why_end)


def test_a_trial_that_runs_at_the_end_of_the_budget_is_stopped_whatever_it_does():
    assert TrialClock(100.0, end=math.inf).why_end == {}
    assert TrialClock(100.0, end=0.0).why_end["status"] == "stopped"


def test_compiling_is_heard_once_for_a_function_with_all_that_it_calls():
    from numba import njit

    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return inner(x) * 2

    begun, ended = [], []
    with watched_compiling(lambda: begun.append(True), ended.append):
        assert [outer(1), outer(2)] == [4, 6]
    assert len(begun) == len(ended) == 1
    assert ended[0] > 0
