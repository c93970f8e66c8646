"""Sweeps as they run: one row a trial whatever happens, resume, stop, overhead."""

import json
import math
import os
import time
import types

import psutil
import pytest

import workbench as wb
from tests.support.commands import run
from tests.support.processes import kept_handlers, printed
from tests.support.sweeps import row_of_trial, swept
from tests.support.tiny_sweeps import DENSE, FUSED, OUTSIDE, QUICK, TINY, finish, spec_of, trial_row
from workbench import optimizers, store
from workbench.analysis.formatting import format_bytes
from workbench.measure import memory
from workbench.panels.live import progress_line
from workbench.sweeps import check, grid, run_folder, runner, trial
from workbench.sweeps.spec import Configuration


def test_a_trial_fills_its_row():
    came = trial_row(epochs=2, density=0.1)
    assert came.pop("seconds_measured") > 0
    row = store.new_row(**came, key="k")
    assert row["status"] == "ok", row["reason"]
    unknown = {name for name, value in row.items() if value is None}
    of_a_gpu = {"gpu", *(name for name in store.COLUMNS if name.startswith("bytes_device_"))}
    not_given = {"path", "labels", "columns", "kind", "reading", "positive", "model_options"}
    of_meters = {"joules_step", "throttled", "hertz", "environment_removed"}  # which not every machine has, or needs
    assert unknown - of_meters == OUTSIDE | {"index_dtype", "bytes_needed", "hashed"} | not_given | of_a_gpu
    assert row["seconds_step_low"] <= row["seconds_step"] <= row["seconds_step_high"]
    assert row["rows_trained"] == 48
    assert row["density_measured"] == pytest.approx(0.1, rel=0.05)
    assert row["curve"][-1][2] == 2 * row["steps_epoch"]
    assert 0 < row["error"] < row["error_allowed"]


SETTINGS = [{}, DENSE, {"format": "coo"}, {"update": "standard"}, {"update": "exact"}, FUSED]


@pytest.mark.parametrize("model", ["linear", "logistic", "softmax"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_models_pass_the_check_before_timing(model, setting):
    row = trial_row(model=model, optimizer="adagrad", density=0.2, **setting)
    assert (row["status"], row["reason"]) == ("ok", "")


@pytest.mark.covering(targets=lambda case: {case["optimizer"], str(case["setting"])})
@pytest.mark.parametrize("optimizer", optimizers.names())
@pytest.mark.parametrize("setting", [{}, DENSE, FUSED], ids=str)
def test_every_optimizer_passes_the_check_before_timing(optimizer, setting):
    row = trial_row(optimizer=optimizer, density=0.2, **setting)
    assert (row["status"], row["reason"]) == ("ok", "")


def test_a_wrong_kernel_is_refused_a_time(monkeypatch):
    from workbench import training

    real = training.Run.backward

    def slightly_wrong(self, timer=None):
        gradients = real(self, timer)
        gradients["w"].values[...] *= 1.01
        return gradients

    monkeypatch.setattr(training.Run, "backward", slightly_wrong)
    row = trial_row(density=0.2)
    assert row["status"] == "wrong"
    assert "gradient by 0.01" in row["reason"]
    assert "seconds_step" not in row


def test_what_cannot_fit_is_a_row_that_names_the_bytes_it_needs():
    row = trial_row(bytes_limit=10_000, density=0.1, **DENSE)
    assert row["status"] == "memory"
    assert row["bytes_needed"] >= 60 * 30 * 4
    assert f"Needs {format_bytes(row['bytes_needed'])} (data: " in row["reason"]


def test_data_that_cannot_be_had_is_an_unsupported_row(tmp_path):
    row = trial_row(dataset="svmlight", path=str(tmp_path / "none.txt"), features=None, rows=None)
    assert row["status"] == "unsupported"
    assert "none.txt" in row["reason"]


def test_a_sweep_gives_a_row_a_trial_and_resuming_does_nothing_twice(tmp_path):
    spec, folder = spec_of(density=[0.1, 0.2], measure={**QUICK, "rounds": 2}), tmp_path / "run"
    state = swept(spec, folder)
    rows = run_folder.read_current_records(folder)
    assert (state.state, state.done, state.total, state.counts) == ("finished", 8, 8, {"ok": 8})
    assert sorted(row["round"] for row in rows) == [0] * 4 + [1] * 4
    assert [row["round"] for row in rows] == [0, 0, 1, 1] * 2  # processes that live measure their rounds one by one
    assert {row["process"] for row in rows} == {0}
    state = swept(spec, folder)
    assert (state.reused, state.counts, len(run_folder.read_current_records(folder))) == (8, {}, 8)


@pytest.mark.parametrize("status", ["ok", "stopped"])
def test_a_run_that_was_cut_within_a_round_counts_each_finished_trial_once_everywhere(tmp_path, status):
    """The trials of a cut round were left out of `done`: 88 of 88 for 89 records."""
    spec, folder = spec_of(density=[0.1], measure={**QUICK, "rounds": 2}), tmp_path / "run"
    swept(spec, folder)
    rows = [json.loads(line) for line in (folder / store.FILE).read_text().splitlines()]
    cut = [row for row in rows if row["round"] == 0] + [next(row for row in rows if row["round"] == 1)]
    cut[-1]["status"] = status
    (folder / store.FILE).write_text("".join(f"{json.dumps(row)}\n" for row in cut))
    state = swept(spec, folder)
    before = 2 + (status == "ok")
    assert (state.reused, state.done, state.total) == (before, before + 2, before + 2)
    assert run_folder.count_finished_trials(folder) == state.done
    assert wb.open(folder).state == f"Finished: {state.done} of {state.done} trials."
    assert progress_line(types.SimpleNamespace(progress=state, counts={}, alive=False)).startswith(
        f"<div>{state.done} of {state.done} trials"
    )
    assert f"{state.done} of {state.done}" in run("status", str(folder)).output


def test_rows_of_a_folder_that_is_used_again_are_of_another_run(tmp_path):
    first = run_folder.run_identity(tmp_path)
    assert first.startswith(f"{tmp_path.name} 20")
    assert run_folder.run_identity(tmp_path) == first
    (tmp_path / run_folder.IDENTITY).write_text("older 2020-01-01\n")
    assert run_folder.run_identity(tmp_path) == "older 2020-01-01"


def test_a_larger_spec_in_the_same_folder_runs_only_what_is_new(tmp_path):
    folder = tmp_path / "run"
    swept(spec_of(density=[0.1]), folder)
    state = swept(spec_of(density=[0.1, 0.3]), folder)
    assert (state.reused, state.counts) == (2, {"ok": 2})
    swept(spec_of(density=[0.3]), folder)
    assert {row["density"] for row in run_folder.read_current_records(folder)} == {0.3}


def test_a_trial_that_takes_too_long_is_a_timeout_row_and_the_sweep_goes_on(tmp_path):
    slow = {**QUICK, "trial_seconds": 30.0, "samples_most": 10**9}
    state = swept(spec_of(density=[0.1], measure=slow, limits={"seconds_cell": 0.5}), tmp_path / "run")
    assert (state.state, state.counts) == ("finished", {"timeout": 2})
    assert all("seconds_cell = 0.5 s" in row["reason"] for row in run_folder.read_current_records(tmp_path / "run"))


def test_a_trial_whose_time_is_out_keeps_the_samples_that_it_has():
    row = trial_row(seconds_limit=0.0, density=0.1)
    assert row["status"] == "timeout"
    assert row["reason"] == "Stopped after 0 s (limits.seconds_cell), with 1 sample of 1 step."
    assert len(row["samples"]) == 1
    assert row["seconds_step"] > 0
    assert row["bytes_peak"] is not None


def test_a_training_whose_time_is_out_keeps_its_epochs(monkeypatch):
    left = iter((math.inf, math.inf, 0.0))
    monkeypatch.setattr(trial._Trial, "seconds_left", lambda self: next(left))
    row = trial_row(seconds_limit=9.0, density=0.1, epochs=5)
    assert (row["status"], row["reason"]) == (
        "timeout",
        "Stopped after 9 s (limits.seconds_cell), with 2 of 5 epochs.",
    )
    assert [point["epoch"] for point in row["quality_curve"]] == [1, 2]
    assert row["quality"] is not None


def test_a_second_sweep_in_a_folder_is_refused_and_a_stop_ends_the_trial_at_work(tmp_path):
    slow = {**QUICK, "trial_seconds": 60.0, "samples_most": 10**9}
    folder = run_folder.start_run(spec_of(density=[0.1, 0.2], measure=slow), tmp_path / "run")
    for state in run_folder.watch_progress(folder, 0.02):
        if state.current:
            break
    with pytest.raises(run_folder.RunError, match="in use by another sweep"):
        run_folder.start_run(spec_of(measure=slow), folder)
    run_folder.stop_run(folder)
    state = finish(folder)
    assert state.state == "stopped"
    assert [row["status"] for row in run_folder.read_current_records(folder)] == ["stopped"] * 2, "they take turns"


@pytest.mark.parametrize(
    ("host", "seconds_ago", "is_alive"),
    [("here", 1, True), ("here", 1000, True), ("here", 1e9, False), ("elsewhere", 1, True), ("elsewhere", 1000, False)],
)
def test_a_silent_supervisor_is_alive_while_its_process_is_there(tmp_path, monkeypatch, host, seconds_ago, is_alive):
    """A disk may hold it up, or its machine has slept; what began after the heartbeat only has its number."""
    began = time.time() - 2000
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: began)
    state = run_folder.Progress("x", state="running", pid=os.getpid())
    state.host = {"here": state.host}.get(host, host)
    run_folder.write_progress(tmp_path, state)
    path = tmp_path / run_folder.PROGRESS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"heartbeat": time.time() - seconds_ago}))
    state = run_folder.read_progress(tmp_path)
    assert (state.alive, state.state) == (is_alive, "running" if is_alive else "failed")
    assert is_alive or "The supervisor died; start the sweep again" in state.message


def test_a_folder_that_is_no_run_is_an_error_that_lists_the_runs(tmp_path):
    (tmp_path / "a").mkdir()
    run_folder.write_progress(tmp_path / "a", run_folder.Progress("a"))
    with pytest.raises(run_folder.RunError, match=r"no progress\.json.*/a\."):
        run_folder.read_progress(tmp_path / "b")


def test_a_broken_spec_in_a_run_folder_ends_as_failed_with_the_reason(tmp_path):
    folder = tmp_path / "run"
    swept(spec_of(), folder)
    (folder / run_folder.SPEC).write_text(json.dumps({"name": "x", "axis": {}}), encoding="utf-8")
    with kept_handlers():
        assert runner.supervise(folder) == 1
    state = run_folder.read_progress(folder)
    assert state.state == "failed"
    assert "Did you mean 'axes'" in state.message


def test_the_default_configuration_is_possible():
    assert not memory.available_bytes() < 0
    assert grid.describe_configuration(Configuration()).startswith(
        "dataset=stdlib model=softmax batch_rows=256 format=csr"
    )


def test_a_step_of_the_same_bits_has_the_errors_of_an_earlier_trial(monkeypatch):
    sent: list[dict] = []
    monkeypatch.setattr(trial.child, "tell", sent.append)
    first = trial_row()
    (checked,) = [message["checked"] for message in sent if "checked" in message]
    request = {"cell": TINY, "measure": QUICK, "bytes_limit": 2**34, "checked": checked}
    sent.clear()
    monkeypatch.setattr(check, "expected_gradients", lambda *_: pytest.fail("it was computed again"))
    assert row_of_trial(request)["error"] == first["error"]
    assert not any("checked" in message for message in sent)


def test_later_rounds_are_given_the_errors_of_the_first(monkeypatch, tmp_path):
    given, real = [], runner.child.start

    def start(context, work, request, log):
        given.append("checked" in request)
        return real(context, work, request, log)

    monkeypatch.setattr(runner.child, "start", start)
    swept(spec_of(candidates=[{}], density=[0.1], measure={**QUICK, "rounds": 2}), tmp_path / "run")
    assert given == [False, True]


def threads_started_by(statement: str) -> bool:
    """Whether a fresh interpreter has started Numba's threads after the statement."""
    return printed(f"{statement}\nimport numba.np.ufunc.parallel as p\nprint(p._is_initialized)") == "True\n"


def test_the_fork_server_has_no_threads_when_it_forks():
    assert not threads_started_by("import workbench.sweeps.preload")


def test_the_check_for_threads_can_fail():
    assert threads_started_by("import numba; numba.get_num_threads()")
