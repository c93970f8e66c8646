"""Parts of the self-trial that run the demo again, and all threads against one, on synthetic trials."""

import pytest

from tests.support.self_trial_rows import Measured
from workbench.bench.self_trial import answers, threads, trials, turns
from workbench.bench.self_trial.trials import split_key
from workbench.measure import loads, machine


@pytest.fixture(autouse=True)
def without_loads(monkeypatch):
    monkeypatch.setattr(answers.loads, "run_load", lambda name: loads.contextmanager(lambda: iter([0]))())


def timed(monkeypatch, of_configuration):
    """Trials that take what `of_cell` says, with a little noise."""
    jitter = lambda task: 1 + 0.001 * (task.round % 3)  # noqa: E731
    monkeypatch.setattr(
        Measured, "seconds", staticmethod(lambda task, work: jitter(task) * of_configuration(task.configuration))
    )


def by_name(rows):
    return {(row["what"], row["condition"]): row for row in rows}


def test_runs_of_the_demo_take_turns_and_agree(measured, tmp_path, monkeypatch):
    timed(monkeypatch, lambda configuration: 3.0 if configuration.format == "dense" else 1.0)
    runs = {"quiet": 2, "bursts": 1}
    found = by_name(answers.demo(tmp_path, trials.Budget(60.0), runs))
    same = found["a density's winner is the same in all runs", "all"]
    assert (same["hits"], same["count"], same["met"]) == (15, 15, True)
    for load, count in runs.items():
        held = found["an interval holds the quiet runs' ratio", load]
        assert (held["hits"], held["count"]) == (5 * count, 5 * count)
        assert found["a winner is named", load]["hits"] == 5 * count
    done = len(measured)
    assert answers.demo(tmp_path, trials.Budget(60.0), runs)
    assert len(measured) == done, "enough runs are stored"


def test_a_run_of_the_demo_that_names_another_winner_is_counted():
    def row(ratio, load, number):
        known = {"ratio": ratio, "low": ratio / 1.2, "high": ratio * 1.2, "rounds": 6}
        return trials.outcome("demo", "density 0.1", f"{load}, {number}", **known)

    rows = [row(3.0, "quiet", 0), row(3.1, "quiet", 1), row(0.3, "quiet", 2), row(1.1, "bursts", 3)]
    found = by_name(answers.demo_outcomes(rows))
    same = found["a density's winner is the same in all runs", "all"]
    assert (same["hits"], same["count"], same["met"]) == (2, 3, False)
    assert found["a winner is named", "bursts"]["hits"] == 0
    held = found["an interval holds the quiet runs' ratio", "quiet"]
    assert (held["hits"], held["count"], held["met"]) == (2, 3, False)
    assert found["an interval holds the quiet runs' ratio", "bursts"]["hits"] == 0


def test_a_run_whose_rounds_were_all_disturbed_names_no_winner():
    row = trials.outcome("demo", "density 0.1", "busy core, 1", status="failed", reason="busy")
    found = by_name(answers.demo_outcomes([row]))
    assert (found["a winner is named", "busy core"]["hits"], found["a winner is named", "busy core"]["count"]) == (0, 1)


@pytest.mark.parametrize("shared", [0.6, 1.0])
def test_more_threads_that_are_not_slower_lose_nothing(measured, tmp_path, monkeypatch, shared):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    timed(monkeypatch, lambda configuration: 1.0 if configuration.serial else shared)
    found = threads.threads(tmp_path, trials.Budget(60.0))
    assert len(found) == len(threads.configurations()) + 1
    assert (found[-1]["hits"], found[-1]["count"], found[-1]["met"]) == (0, len(threads.configurations()), True)


def test_configurations_that_are_slower_on_more_threads_are_counted(measured, tmp_path, monkeypatch):
    timed(
        monkeypatch, lambda configuration: 2.0 if configuration.batch_rows == 64 and not configuration.serial else 1.0
    )
    found = threads.threads(tmp_path, trials.Budget(60.0))
    assert (found[-1]["hits"], found[-1]["met"]) == (len(threads.configurations()) // 2, False)
    assert found[0]["ratio"] == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(("slower", "is_met"), [(1.2, True), (2.6, False)])
def test_training_that_is_held_up_by_a_busy_core_is_counted(measured, tmp_path, monkeypatch, slower, is_met):
    timed(monkeypatch, lambda configuration: 1.0 if configuration.serial or configuration.launch == "epoch" else slower)
    found = by_name(threads.busy(tmp_path, trials.Budget(0.0)))
    for load in threads.CONDITIONS:
        assert found["dense steps, softmax: all threads / one thread", load]["ratio"] == pytest.approx(slower, rel=0.01)
        assert found["csr epoch, logistic: all threads / one thread", load]["ratio"] == pytest.approx(1.0, rel=0.01)
        slow = found["all threads take 1.3 times as long as one", load]
        assert (slow["hits"], slow["count"], slow["met"]) == (0 if is_met else 2, 4, is_met)


def shift_second(monkeypatch, second, factor):
    """Dense takes 3 times as long, and `factor` times that in the arrangement `second`, the only one without noise."""

    def seconds(task, _):
        is_second = split_key(task.key)[1].startswith(second)
        slower = (3.0 if task.configuration.format == "dense" else 1.0) * (1 + 0.1 * (task.round % 2) * (not is_second))
        return slower * (factor if is_second and task.configuration.format == "dense" else 1.0)

    monkeypatch.setattr(Measured, "seconds", staticmethod(seconds))


@pytest.mark.parametrize(("factor", "is_met"), [(1.0, True), (1.02, True), (1.05, False), (0.9, False)])
def test_turns_that_shift_a_ratio_are_found_out(measured, tmp_path, monkeypatch, factor, is_met):
    shift_second(monkeypatch, turns.NAMES[1], factor)
    found = by_name(turns.turns(tmp_path, trials.Budget(0.0), most=6))
    assert len(measured) == 6 * 2 * 2 * len(turns.CONDITIONS)
    shift = found["ratio in turns / ratio fresh", "quiet"]
    assert (shift["ratio"], shift["met"]) == (pytest.approx(factor, rel=1e-3), is_met)
    assert found["ratio in turns / ratio fresh", "busy core"]["met"] is None
    for load in turns.CONDITIONS:
        assert found["dense / csr, fresh", load]["ratio"] == pytest.approx(3.0, rel=1e-4)
        assert found["dense / csr, in turns", load]["deviation"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("factor", "is_met"), [(1.0, True), (1.4, False)])
def test_duets_that_shift_a_ratio_are_found_out(measured, tmp_path, monkeypatch, factor, is_met):
    shift_second(monkeypatch, turns.DUET_NAMES[1], factor)
    found = by_name(turns.duets(tmp_path, trials.Budget(0.0), most=6))
    assert len(measured) == 6 * 2 * 2 * len(turns.CONDITIONS)
    assert {row["threads"] for row in measured} == {1}
    shift = found["ratio at once, one thread / ratio in turns, one thread", "quiet"]
    assert (shift["ratio"], shift["met"]) == (pytest.approx(factor, rel=1e-3), is_met)
    assert found["dense / csr, at once, one thread", "busy core"]["deviation"] == pytest.approx(0.0, abs=1e-9)
