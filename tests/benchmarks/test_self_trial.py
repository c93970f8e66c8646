"""Parts of the self-trial on synthetic trials: what is judged, stored, shown, and refused."""

import json

import pytest
from matplotlib.figure import Figure

from benchmarks import tables
from benchmarks.harness import MACHINE, Run
from benchmarks.page import write
from benchmarks.self_trial import noise, simulations, suite, trials
from tests.support import self_trial_rows as maker
from workbench import store
from workbench.measure import machine
from workbench.sweeps.alternation import ROUNDS_A_SET

CONFIGURATION = trials.groups()[0]["csr"]


def test_a_recording_has_each_candidate_there_and_back_in_turned_order(measured, tmp_path):
    noise.record(tmp_path, trials.Budget(0.0))
    loads = [trials.load_of(row["experiment"]) for row in measured]
    assert set(loads) == set(noise.CONDITIONS)
    assert all(loads.count(load) == 6 * 6 * ROUNDS_A_SET for load in noise.CONDITIONS)
    names = [(trials.candidate_of(row), trials.split_key(row["key"])[1]) for row in measured[:6]]
    assert [name for name, _ in names] == [*trials.CANDIDATE_SETTINGS, *reversed(trials.CANDIDATE_SETTINGS)]
    assert [half for _, half in names] == ["there"] * 3 + ["back"] * 3
    order = noise.there_and_back(trials.groups()[0], 1)
    assert [task.configuration.format for task in order[:3]] == ["dense", "csr", "csr"]


def test_a_recording_goes_on_with_the_condition_that_lacks_most(measured, tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "CONDITIONS", {"quiet": 2, "bursts": 1})
    begun = {"quiet": 6 * ROUNDS_A_SET, "bursts": ROUNDS_A_SET}
    monkeypatch.setattr(noise, "_rounds_recorded", lambda folder: dict(begun))
    seen = iter([False, False, True, True])
    budget = trials.Budget(60.0)
    monkeypatch.setattr(trials.Budget, "is_over", property(lambda self: next(seen)))
    noise.record(tmp_path, budget)
    assert {trials.load_of(row["experiment"]) for row in measured} == {"bursts"}
    assert {row["round"] for row in measured} == {*range(ROUNDS_A_SET, 3 * ROUNDS_A_SET)}


def test_rounds_of_a_recording_are_counted_by_load(tmp_path, monkeypatch):
    monkeypatch.setattr(noise.trials, "rows_of_this_machine", lambda rows: rows)
    monkeypatch.setattr(noise.trials, "read", lambda file: [{"experiment": "self-noise-busy-core"}] * (6 * 6 * 4 + 5))
    assert noise._rounds_recorded(tmp_path) == dict.fromkeys(noise.CONDITIONS, 0) | {"busy core": 4}


def outcomes(*known):
    return [tables.SELF.new_row(machine="m", **one) for one in known]


def test_the_page_begins_with_what_it_means_for_a_reader():
    known = [("coverage", suite.HELD, load, hits, 200) for load, hits in (("quiet", 190), ("bursts", 186))]
    known += [("calibration", suite.SURE_IS_RIGHT, "all", 997, 1000), ("power", suite.EQUALS, "quiet", 1, 200)]
    page = suite.page(outcomes(*(trials.share_row(*one, (None, None)) for one in known)))
    assert page.summary == [
        "What this means for you: Of 1,000 answers that were stated with more than 99 % certainty, 99.7 % named the "
        "faster side; an interval called 95 % held the true ratio in 93 to 95 % of the cases; of two that are equally "
        "fast one was called faster with that certainty in 0.5 %."
    ]
    assert suite.page(outcomes(*maker.shares())).summary == []


def test_the_page_says_what_is_met_and_what_is_missed(tmp_path):
    for row in outcomes(*maker.shares()):
        tables.SELF.append(tmp_path / tables.SELF.file, row)
    text = write(suite.SUITE, tmp_path).read_text(encoding="utf-8")
    assert "**2 of 3 measured targets are met.**" in text
    assert "| coverage: storages; recorded | 93 to 97 % | 95.0 % (91.9 to 96.9), 285 of 300 | met |" in text
    assert "| power: decided; recorded | at least 75 % | 50.0 % (40.4 to 59.6), 50 of 100 | missed |" in text
    assert "| same: winner; all | at most 5 % | 3.3 % (1.1 to 9.3), 3 of 90 | met |" in text
    assert "](self-decisions.svg)" in text


@pytest.mark.parametrize("rows", [[], maker.shares()[:2], maker.shares()], ids=["none", "few", "all"])
def test_the_chart_draws_every_frame(rows):
    figure = Figure(figsize=(9, 6))
    assert suite.draw(outcomes(*rows), figure).endswith(".")
    figure.draw_without_rendering()


def test_simulations_on_recorded_noise_yield_outcomes(tmp_path, monkeypatch):
    monkeypatch.setattr(simulations, "ANSWERS", 100)
    for row in maker.recording(14):
        store.append(tmp_path / noise.FILE, row)
    run = Run(tables.SELF, tmp_path, ["coverage", "calibration", "power"])
    assert run.collect(suite.measure(run))
    assert json.loads((tmp_path / MACHINE).read_text())["id"] == machine.machine_id()
    assert {row["part"] for row in tables.SELF.read(tmp_path)} == {"coverage", "calibration", "power"}


def test_rows_are_kept_without_what_no_part_reads(tmp_path):
    row = maker.trial(CONFIGURATION, "there", 0, 1.0, samples=[1.0] * 20, seconds_update=0.5, versions={"numpy": "2"})
    with trials.Trials(tmp_path / noise.FILE, trials.experiment("noise")) as measured:
        measured.supervisor.do = lambda task: row
        assert measured.measure(trials.task_of(CONFIGURATION, "there", 0)) is row
    (kept,) = trials.read(tmp_path / noise.FILE)
    assert (kept["samples"], kept["versions"]) == (None, None)
    assert {name: kept[name] for name in trials.KEPT} == {name: row[name] for name in trials.KEPT}
    assert trials.group_of(kept) == trials.group_of(row)
