"""Advice end to end on a small file, its command run; which candidates; what is refused."""

import json
import os
import re
import shlex

import pytest
from typer.testing import CliRunner

from kernels import threads
from tests.support.sweeps import supervised_here
from workbench import advising as advice
from workbench import data
from workbench.advising import advising
from workbench.advising.advising import folder_name_of, name_of
from workbench.advising.candidates import is_faithful, list_candidates
from workbench.command import cli
from workbench.settings import train_command
from workbench.sweeps import run_folder
from workbench.sweeps.spec import Configuration, SpecError

AT_ONCE = {
    "seconds_warmup": 0.0,
    "seconds_sample": 0.0,
    "trial_seconds": 0.0,
    "samples_least": 3,
    "rounds": 1,
    "busy_most": 1.0,
}
AMPLE = 1200.0
"""Seconds that no machine is too slow for: what is measured within a budget depends on how fast the machine is."""


pytestmark = pytest.mark.usefixtures("here")


def svmlight(path, rows=60) -> str:
    lines = [f"{row % 2} {1 + row % 7}:1 {8 + row % 5}:{1 + row % 3}" for row in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_file_is_advised_on_and_the_command_trains_what_is_recommended(tmp_path, monkeypatch):
    monkeypatch.setattr(advising, "list_candidates", lambda *given: list_candidates(*given)[:3])
    settings, why = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    assert "svmlight" in why
    with supervised_here():
        answer = advice.advise({**settings, "batch_rows": 16, "threads": 1}, AMPLE, measure=AT_ONCE)
    result = answer.recommendation
    assert answer.settings["model"] == "logistic"
    assert re.fullmatch(r"advise-clicks-logistic-[0-9a-f]{8}", answer.folder.name)
    assert run_folder.read_progress(answer.folder).name == "advise-clicks-logistic"
    assert answer.profile.rows == 60
    assert answer.trials == 3 + 3  # a race of three, and another at another density
    as_json = json.loads(json.dumps(answer.as_json(), allow_nan=False))
    assert as_json["recommended"] == result.settings
    time = as_json["answer"]["time"]
    assert time["low"] < time["ratio"] < time["high"] < 10 * time["low"]  # that of the usual noise
    came = CliRunner().invoke(cli.app, [*shlex.split(answer.command)[1:], "--epochs", "1"])
    assert came.exit_code == 0, came.output
    assert "held-out accuracy" in came.output


def test_advice_counts_the_trials_of_its_run_as_status_does_and_those_measured_before_apart(tmp_path, monkeypatch):
    """It took the difference of the records, which is -1 when a resumed run compares fewer candidates."""
    settings, _ = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    settings |= {"batch_rows": 16, "threads": 1, "device": "cpu"}
    monkeypatch.setattr(advising._Advising, "look_around", lambda self, say: None)
    counts = []
    for candidates in (3, 2, 4):
        some = lambda *given, most=candidates: list_candidates(*given)[:most]  # noqa: E731
        monkeypatch.setattr(advising, "list_candidates", some)
        with supervised_here():
            answer = advice.advise(settings, AMPLE, measure=AT_ONCE)
        state = run_folder.read_progress(answer.folder)
        assert answer.trials == state.done == len(run_folder.read_current_records(answer.folder))
        assert answer.as_json()["reused"] == answer.reused == state.reused
        counts.append((answer.trials, answer.reused, answer.spent.partition(" in ")[0]))
    assert counts == [
        (3, 0, "3 trials"),
        (2, 2, "2 trials, 2 of them measured before,"),
        (7, 3, "7 trials, 3 of them measured before,"),
    ]


@pytest.mark.parametrize(
    "model", ["matrix_factorization", "bpr", "factorization_machine", "embedding_mlp", "pruned_mlp"]
)
def test_where_no_trial_ended_the_answer_of_every_model_is_predicted(model, monkeypatch):
    monkeypatch.setattr(advising._Advising, "race", lambda self: self._name_configurations())
    is_of_ratings = model in ("matrix_factorization", "bpr")
    settings = {"dataset": "low_rank"} if is_of_ratings else {"dataset": "uniform", "rows": 300, "features": 90}
    answer = advice.advise({**settings, "model": model}, 5.0)
    assert answer.trials == 0
    assert answer.recommendation.verdict != "none"
    assert answer.as_json()["source"] == "predicted"
    assert answer.command.startswith("workbench train")


def test_files_of_one_name_in_two_folders_have_a_run_folder_each_with_a_readable_name(tmp_path):
    settings = [{"dataset": "svmlight", "model": "logistic", "path": str(tmp_path / one / "train.csv")} for one in "ab"]
    assert {name_of(setting) for setting in settings} == {"advise-train-logistic"}
    folders = {folder_name_of(setting) for setting in settings}
    assert len(folders) == 2
    assert all(folder.startswith("advise-train-logistic-") for folder in folders)
    assert folder_name_of({"dataset": "uniform", "model": "linear"}) == "advise-uniform-linear"


def test_exact_candidates_come_where_lazy_ones_train_another_model_which_come_last():
    adam = [candidate["update"] for candidate in list_candidates({"dataset": "uniform", "optimizer": "adam"})]
    sgd = [candidate["update"] for candidate in list_candidates({"dataset": "uniform", "optimizer": "sgd"})]
    assert set(adam) == {"lazy", "exact", "standard"}
    assert adam.index("lazy") > max(place for place, update in enumerate(adam) if update != "lazy")
    assert set(sgd) == {"lazy", "standard"}
    allowed = list_candidates({"dataset": "uniform", "optimizer": "adam"}, lazy=True)
    assert {one["update"] for one in allowed} == {"lazy", "standard"}
    assert is_faithful(Configuration(optimizer="sgd"))
    assert not is_faithful(Configuration(optimizer="adam"))
    assert not is_faithful(Configuration(optimizer="sgd", decay=0.1))


def test_epochs_in_one_call_are_no_candidate_of_a_model_that_has_none():
    found = list_candidates({"dataset": "low_rank", "model": "matrix_factorization"})
    assert found
    assert not any(one.get("execution") == "epoch" for one in found)


def test_the_command_trains_a_serial_configuration_on_one_thread():
    settings = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "serial": True}
    words = train_command(settings)
    assert words == "workbench train --threads 1 --format dense --engine dense --gradient dense --update standard"


def test_the_race_takes_part_of_the_budget_and_what_is_around_the_rest(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(advising.run_folder, "start_run", lambda spec, folder: begun.append(spec))
    monkeypatch.setattr(advising.run_folder, "read_progress", lambda folder: advising.Progress("x", state="finished"))
    with pytest.raises(FileNotFoundError, match="no results"):  # nothing was measured, and there is nothing to read
        advising.store.read(tmp_path)
    monkeypatch.setattr(advising.run_folder, "read_current_records", lambda folder: [])
    monkeypatch.setattr(advising._Clock, "slowdown", 1.0)  # beside other programs there is one race, of all the time
    settings = {"dataset": "uniform", "rows": 60, "features": 30, "shuffle": False, "model": ""}
    answer = advice.advise(settings, AMPLE, follow=lambda *_: None)
    [spec] = begun
    assert spec.measure.race
    assert spec.axes["shuffle"] == (False,)  # what is no is no gap
    assert 0.2 * AMPLE < spec.limits.budget < 0.6 * AMPLE
    assert spec.candidates[0]["execution"] == "epoch"  # the likeliest first, and one of each side in two
    assert spec.candidates[1]["format"] == "dense"
    found = answer.recommendation.time
    assert (found.source, found.ratio.rounds) == ("predicted", 0)
    assert found.ratio.high > 10 * found.ratio.low, "a prediction says little"
    assert "predicted from the sizes, not measured" in answer.text.time
    assert answer.command.startswith("workbench train --dataset uniform")


def test_another_density_is_looked_at_with_all_candidates_where_there_is_time_else_with_the_best_two():
    place = advising._Variation
    places = [place("batch", {"batch_rows": 4}, [{}, {}]), place("density", {"density": 0.5}, [{}] * 8)]
    places.append(place("density", {"density": 0.5}, [{}, {}]))
    counts = [len(advising._Advising._affordable(places, trials)) for trials in (100, 20, 10, 5)]
    assert counts == [2 + 8, 2 + 2, 2, 0]


@pytest.mark.parametrize(
    ("settings", "seconds", "message"),
    [
        ({"dataset": "uniform", "model": "softmx"}, 60, "Did you mean 'softmax'"),
        ({"dataset": "uniform", "model": "softmax"}, 1, "The budget is 1 seconds; expected 5 or more"),
        ({"dataset": "uniform", "model": "softmax"}, float("nan"), "The budget is nan seconds; expected 5 or more"),
        ({"dataset": "uniform", "model": "softmax"}, float("inf"), "The budget is inf seconds; expected 5 or more"),
        ({"dataset": "uniform", "model": "bpr"}, 60, "needs data with columns in two fields"),
    ],
)
def test_what_cannot_be_advised_on_is_refused_before_anything_runs(settings, seconds, message):
    with pytest.raises(SpecError, match=message):
        advice.advise(settings, seconds)


def test_a_source_that_is_neither_file_nor_data_set_lists_the_data_sets():
    with pytest.raises(data.DataError, match=r"There is no file and no data set 'nowhere'. Data sets: .*uniform"):
        advice.settings_of("nowhere")


def test_without_time_for_a_run_nothing_starts_and_the_answer_is_predicted(tmp_path, monkeypatch):
    monkeypatch.setattr(advising.run_folder, "start_run", lambda *_: pytest.fail("a run was started"))
    settings, _ = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    answer = advice.advise(settings, AMPLE, seconds_spent=AMPLE)
    assert (answer.trials, answer.recommendation.time.source) == (0, "predicted")
    assert "Records" not in answer.spent, "there is no folder of them"
    assert answer.command.startswith("workbench train --dataset svmlight")


def test_in_too_little_time_for_a_run_the_likeliest_of_each_side_are_measured_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr(advising.run_folder, "start_run", lambda *_: pytest.fail("a run was started"))
    for name in ("SECONDS_FIRST", "SECONDS_START"):
        monkeypatch.setattr(advising, name, AMPLE)
    settings, _ = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    count = threads.get_threads()
    answer = advice.advise(settings, AMPLE, measure=AT_ONCE)
    rows, progress = run_folder.read_current_records(answer.folder), run_folder.read_progress(answer.folder)
    assert {row["format"]: row["status"] for row in rows} == {"csr": "ok", "dense": "ok"}
    assert all(row["seconds_step"] > 0 and row["error"] <= row["error_allowed"] for row in rows)
    assert (answer.trials, answer.reused, answer.recommendation.time.source) == (2, 0, "measured")
    assert (progress.pid, progress.state, threads.get_threads()) == (os.getpid(), "finished", count)


@pytest.mark.parametrize(("error", "state"), [(KeyboardInterrupt(), "stopped"), (OSError(28, "full"), "failed")])
def test_an_error_while_measuring_in_this_process_ends_the_run(error, state, tmp_path, monkeypatch):
    def answers(_):
        raise error

    monkeypatch.setattr("workbench.sweeps.trial.answers", answers)
    monkeypatch.setattr(advising, "SECONDS_FIRST", AMPLE)
    settings, _ = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    with pytest.raises(type(error)):
        advice.advise(settings, AMPLE, measure=AT_ONCE, folder=tmp_path / "run")
    progress = run_folder.read_progress(tmp_path / "run")
    assert (progress.state, progress.over) == (state, True)
    assert ("full" in progress.message) == (state == "failed")


def test_seconds_over_the_budget_are_not_shown_as_progress(tmp_path):
    settings, _ = advice.settings_of(svmlight(tmp_path / "clicks.txt"))
    answer = advice.advise(settings, 10.0, seconds_spent=12.0)
    assert re.search(r"\b0 trials in 1[2-9] s, over the budget of 10 s\.", answer.spent)  # 12 s and what planning takes
