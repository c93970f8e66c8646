"""Choices among trainings that were tried: targets, what goes on for longer, what runs rounds; cases of files."""

import math

import pytest

from benchmarks import commands as command
from benchmarks.fit import cases, runner
from benchmarks.fit.runner import Policy, Rung
from benchmarks.shapes import BenchError
from tests.support import fit_rows


def test_targets_are_within_each_tolerance_of_the_best_that_both_sides_come_to():
    def targets(value):
        rows = [fit_rows.row("ours"), fit_rows.row("competitor", side="competitor", curve=((1.0, value, 1),))]
        found, larger_is_better = cases.targets_of_records(rows)
        assert not larger_is_better
        return list(found.values())

    assert targets(0.5014) == pytest.approx([0.5015, 0.505, 0.515]), "both are within the tightest of the best of all"
    assert targets(0.503) == pytest.approx([0.503 * factor for factor in (1.003, 1.01, 1.03)])
    assert targets(0.6) == pytest.approx([0.6018, 0.606, 0.618])
    assert all(map(math.isnan, cases.targets_of_records([])[0].values()))


def test_a_setting_that_is_best_for_several_targets_is_trained_once_a_round():
    slow, fast, is_ours = {"rate": 1.0}, {"rate": 3.0}, {"ours": True, "competitor": False}
    best = {
        0.003: {"ours": (3.0, slow, 9)},
        0.01: {"ours": (2.0, slow, 6), "competitor": (2.0, fast, 4)},
        0.03: {"ours": (1.0, fast, 2), "competitor": (1.0, fast, 2)},
    }
    jobs = cases.jobs_of(best, is_ours)
    assert [(job.name, job.value, job.numbers) for job in jobs] == [
        ("ours", slow, {0.003: 9, 0.01: 6}),
        ("ours", fast, {0.03: 2}),
        ("competitor", fast, {0.01: 4, 0.03: 2}),
    ]
    assert [job.only([0.01]).numbers for job in jobs] == [{0.01: 6}, {}, {0.01: 4}]


def test_rounds_are_of_ours_and_of_the_soonest_competitors():
    best = {
        name: (seconds, {}, 1)
        for name, seconds in {"slow": 9.0, "ours": 99.0, "a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}.items()
    }
    assert cases.candidates_for_rounds(best, {name: name == "ours" for name in best}) == ["ours", "a", "b", "c", "d"]


LAST = 20.0


def tried(**values_of):
    """Rows by candidate and number of the setting; each is the values at 0.25 and 0.5 s, and perhaps why it ended."""
    found = {}
    for name, every in values_of.items():
        side = "competitor" if name.startswith("competitor") else "ours"
        found[name] = {
            number: fit_rows.row(
                name, side=side, curve=((0.25, before, 1), (0.5, after, 2)), left=(*left, "limit")[0], seconds_rung=0.5
            )
            for number, (before, after, *left) in enumerate(every)
        }
    return found


def test_the_seconds_of_the_first_rung_can_be_asked_for_up_to_those_of_the_last():
    assert runner.rungs(1.0, first=0.1) == [Rung(0.1), Rung(1.0, 2)]
    assert runner.rungs(3.0, first=2.5) == [Rung(2.5), Rung(3.0, 2)]
    with pytest.raises(BenchError, match="first-seconds is 2; it is above 0 and at most seconds, 1"):
        Policy(1.0, first=2.0)


ENDED = (0.5, 0.5, "no gain")


@pytest.mark.parametrize(
    ("values", "rung", "expected"),
    [
        *(  # the best settings go on, of either side
            ({one: [(0.7, 0.6), (0.7, 0.55), (0.7, 0.65)], other: [(0.7, 0.58)]}, 2, {one: [0, 1], other: [0]})
            for one, other in (("ours", "competitor"), ("competitor", "ours"))
        ),
        (  # what is out of reach at its pace is left
            {"ours": [(0.31, 0.30)], "competitor": [(0.9, 0.8)], "competitor_slow": [(1.0001, 1.0)]},
            3,
            {"ours": [0], "competitor": [0], "competitor_slow": []},
        ),
        *(  # what ended by itself does not go on, and no other takes its place
            ({"ours": [(0.7, 0.5, "no gain"), (0.7, 0.6), (0.7, 0.65)]}, rung, {"ours": goes_on})
            for rung, goes_on in ((1, []), (2, [1]))
        ),
        # who is at the target goes on only if it moves it
        ({"ours": [(0.5001, 0.5)], "competitor": [(0.5011, 0.501)]}, 3, {"ours": [], "competitor": []}),
        *(  # who may come to one more target goes on
            ({"ours": [ENDED], "competitor": [ENDED], "competitor_slow": [(value + 4e-4, value)]}, 3, goes_on)
            for value, goes_on in ((0.502, {"competitor_slow": [0]}), (0.501, {}), (0.506, {"competitor_slow": [0]}))
        ),
    ],
)
def test_settings_that_may_still_win_go_on(values, rung, expected):
    found = runner.settings_to_continue(tried(**values), Rung(2.5, rung), LAST)
    assert found == {name: expected.get(name, []) for name in values}


def test_one_point_tells_no_pace():
    each = tried(ours=[(0.31, 0.30)], competitor=[(0.9, 0.8)])
    each["competitor"][0] |= {"curve": [[3.0, 0.8, 1]]}
    assert runner.settings_to_continue(each, Rung(2.5, 3), LAST)["competitor"] == [0]


def test_nobody_is_left_before_the_soonest_of_its_side_was_there_twice():
    each = tried(ours=[ENDED], competitor=[ENDED], competitor_slow=[(0.81, 0.8), (0.71, 0.7)])
    assert runner.settings_left_early(each, LAST) == {}
    each["competitor"][0]["curve"] = [[3.0, 0.5, 1]]
    assert runner.settings_left_early(each, LAST) == {"competitor_slow": (1, Rung(6.0, 1))}
    assert runner.settings_left_early(each, 4.0) == {"competitor_slow": (1, Rung(4.0, 1))}


def test_nobody_is_left_before_the_tightest_target_that_it_missed():
    each = tried(ours=[ENDED], competitor=[ENDED], competitor_slow=[(0.504, 0.504)])
    each["competitor"][0]["curve"] = [[0.1, 0.51, 1], [3.0, 0.5, 2]]
    assert runner.settings_left_early(each, LAST) == {"competitor_slow": (0, Rung(6.0, 1))}, "within 1 %, but not 0.3 %"


def test_a_file_is_a_case_and_another_file_is_held_out(tmp_path):
    lines = [f"{number % 2} {1 + number % 2}:1 {3 + number % 5}:1\n" for number in range(40)]
    for name in ("train", "later"):
        (tmp_path / name).write_text("".join(lines[: 40 if name == "train" else 10]))
    case = command.fit_case_of(str(tmp_path / "train"), str(tmp_path / "later"), {}, model="logistic")
    found = cases.judge_of(case, 1)
    assert (found.rows.x.shape[0], found.x.shape, found.y.shape) == (40, (10, found.rows.x.shape[1]), (10, 1))
    share = cases.judge_of(command.fit_case_of(str(tmp_path / "train"), "0.25", {}, model="logistic"), 1)
    assert (share.rows.x.shape[0], share.x.shape[0]) == (30, 10)


def test_what_is_guessed_of_a_file_may_be_said_too(tmp_path, capsys):
    file = tmp_path / "letters"
    file.write_text("spam\tbuy this now\nham\tsee you soon\n" * 9)
    case = command.fit_case_of(str(file), "0.2", {"reading": "label=first, hashed=64"}, model="logistic")
    assert case.settings["reading"] == "hashed=64, label=first"
    assert "is read by the data set text" in capsys.readouterr().err


def test_held_out_rows_may_be_below_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "later").touch()
    case = cases.case_of({"dataset": "svmlight", "path": "train", "model": "logistic"}, "~/later")
    assert case.held_out == str(tmp_path / "later")


@pytest.mark.parametrize("held_out", ["1.5", "no-file"])
def test_held_out_that_is_neither_share_nor_file_is_refused(held_out):
    with pytest.raises(BenchError, match="share"):
        cases.case_of({"dataset": "stdlib", "model": "logistic"}, held_out)
