"""Runs of trainings to a held-out quality: what is stored, what is gone on with, what ends a candidate."""

import pytest

from benchmarks import tables
from benchmarks.fit import candidates, cases, runner
from tests.support import fit_rows
from workbench.measure.child import Ended

POINTS = {"ours, sparse": [[1.0, 0.51, 1], [2.0, 0.5, 2]], "scikit-learn SGDClassifier": [[3.0, 0.501, 1]]}


class Told(runner.Runner):
    """A runner with scripted processes: the points of each setting by the name of the candidate."""

    asked: list
    end = None
    left = "no gain"
    spread = 1.0
    """How many times as long every third process takes."""

    def _answers(self, asked):
        self.asked.append((asked.candidate.name, [number for number, _ in asked.values], asked.target))
        yield {"facts": {**fit_rows.FACTS, **fit_rows.MEASURED}}
        for number, _ in asked.values:
            yield {"setting": number}
            longer = 1.0 if len(self.asked) % 3 else self.spread
            yield from ({"point": [longer * point[0], *point[1:]]} for point in POINTS[asked.candidate.name])
            if number == self.end:
                raise Ended({"status": "timeout", "reason": "It took longer than 5 s."})
            yield {"done": {"measures": {"accuracy": 0.9}, "busy_others": 0.0, "left": self.left}}


WHOLE = Told._answers


def run_of(tmp_path, rounds=2, end=None):
    made = Told(tmp_path, runner.Policy(5.0, rounds))
    made.asked, made.end = [], end
    case = cases.Case("toy, logistic", {"model": "logistic", "dataset": "power_law"})
    made.run([case], tuple(POINTS))
    return made.asked, tables.FIT.read(tmp_path)


def test_a_run_tries_every_setting_then_rounds_in_turn_and_has_nothing_to_do_again(tmp_path):
    asked, rows = run_of(tmp_path)
    names = list(POINTS)
    assert [name for name, *_ in asked] == [*names, *names, *names[::-1]]
    assert [target for *_, target in asked] == [None, None, *[pytest.approx(0.5015)] * 4], "one training for all"
    rounds = [row for row in rows if row["stage"] == "rounds"]
    seconds = {each: [row["seconds"] for row in rounds if row["tolerance"] == each] for each in cases.TOLERANCES}
    assert seconds == {0.003: [2.0, 3.0, 3.0, 2.0], 0.01: [2.0, 3.0, 3.0, 2.0], 0.03: [1.0, 3.0, 3.0, 1.0]}
    assert [row["target"] for row in rounds[:3]] == pytest.approx([0.5015, 0.505, 0.515])
    assert [len(row["curve"]) for row in rounds[:3]] == [2, 2, 1], "each to its target"
    assert len(rows) == 2 * candidates.TRIED + 4 * 3
    again, same = run_of(tmp_path)
    assert (again, len(same)) == ([], len(rows))
    more, _ = run_of(tmp_path, rounds=3)
    assert [name for name, *_ in more] == names[::-1]


def test_what_is_left_after_a_setting_that_took_too_long_is_tried_in_another_process(tmp_path):
    asked, rows = run_of(tmp_path, rounds=1, end=3)
    assert [numbers for _, numbers, target in asked if target is None][:2] == [list(range(10)), list(range(4, 10))]
    cut = [row for row in rows if row["status"] == "timeout"]
    assert [len(row["curve"]) for row in cut] == [2, 1]
    assert len([row for row in rows if row["stage"] == "settings"]) == 2 * candidates.TRIED


def test_the_best_settings_go_on_and_the_rest_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Told, "left", "limit")
    asked, rows = run_of(tmp_path, rounds=1)
    settings = [(name, numbers) for name, numbers, target in asked if target is None]
    assert settings == [(name, numbers) for numbers in (list(range(10)), [0, 1], [0]) for name in POINTS]
    of_first = [
        row["seconds_rung"] for row in rows if row["stage"] == "settings" and row["candidate"] == "ours, sparse"
    ]
    assert of_first == [*[0.4] * 10, *[2.0] * 2, 5.0]
    again, _ = run_of(tmp_path, rounds=1)
    assert again == []


def test_rounds_are_added_of_the_soonest_alone_while_their_ratio_is_not_known(tmp_path, monkeypatch):
    asked, _ = run_of(tmp_path / "alike", rounds=4)
    assert [name for name, _, target in asked if target].count("ours, sparse") >= 4
    monkeypatch.setattr(Told, "spread", 9.0)
    asked, _ = run_of(tmp_path / "few", rounds=3)
    assert [name for name, _, target in asked if target].count("ours, sparse") == 3
    asked, _ = run_of(tmp_path / "apart", rounds=4)
    assert [name for name, _, target in asked if target].count("ours, sparse") == cases.ROUNDS_MOST
    again, _ = run_of(tmp_path / "apart", rounds=4)
    assert again == []


def test_a_fit_anew_is_done_in_a_round_for_each_target(tmp_path, monkeypatch):
    monkeypatch.setitem(POINTS, "scikit-learn LogisticRegression lbfgs", [[3.0, 0.51, 6], [5.0, 0.5, 11]])
    ladders = []
    monkeypatch.setattr(Told, "_answers", lambda self, asked: ladders.append(asked.ladder) or WHOLE(self, asked))
    run_of(tmp_path, rounds=1)
    assert [list(ladder) for ladder in ladders if ladder] == [[6, 11]]


def test_ctrl_c_stops_a_run_and_what_is_finished_stays(tmp_path, monkeypatch):
    def stopped(self, asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(Told, "_answers", stopped)
    case = cases.Case("toy, logistic", {"model": "logistic", "dataset": "power_law"})
    assert not Told(tmp_path, runner.Policy(5.0, 1)).run([case], ("ours, sparse",))


def test_a_candidate_without_a_point_in_time_is_tried_once(tmp_path, monkeypatch):
    monkeypatch.setitem(POINTS, "scikit-learn SGDClassifier", [])
    _, rows = run_of(tmp_path, rounds=1, end=0)
    assert len([row for row in rows if row["candidate"] == "scikit-learn SGDClassifier"]) == 1
    again, _ = run_of(tmp_path, rounds=1)
    assert again == []
