"""Runs of trainings to a held-out quality: what is stored, gone on with, ended; targets, ratios and the page."""

import pytest
from matplotlib.figure import Figure

from benchmarks import tables
from benchmarks.fit import candidates, cases, suite
from benchmarks.harness import Run
from benchmarks.page import write
from tests.support import fit_rows
from tests.support.fit_rows import rounds, row
from workbench.measure import race
from workbench.measure.child import Ended
from workbench.measure.rounds import MOST

POINTS = {"ours, sparse": [[1.0, 0.51, 1], [2.0, 0.5, 2]], "scikit-learn SGDClassifier": [[3.0, 0.501, 1]]}
CASE = cases.Case("toy, logistic", {"model": "logistic", "dataset": "power_law"})


@pytest.fixture
def told(monkeypatch):
    """Scripted processes: the points of each setting by the name of the candidate; `asked` are the requests."""
    state = {"asked": [], "end": None, "left": "no gain", "spread": 1.0, "ladders": [], "points": dict(POINTS)}

    def answers(self, request, seconds):
        asked = state["asked"]
        asked.append((request["candidate"], [number for number, *_ in request["values"]], request["target"]))
        state["ladders"] += [request["ladder"]] if request["ladder"] else []
        yield {"facts": {**fit_rows.FACTS, **fit_rows.MEASURED}}
        for number, *_ in request["values"]:
            yield {"setting": number}
            longer = 1.0 if len(asked) % 3 else state["spread"]
            yield from ({"point": [longer * point[0], *point[1:]]} for point in state["points"][request["candidate"]])
            if number == state["end"]:
                raise Ended({"status": "timeout", "reason": "It took longer than 5 s."})
            yield {"done": {"measures": {"accuracy": 0.9}, "busy_others": 0.0, "left": state["left"]}}

    monkeypatch.setattr(race.Worker, "answers", answers)
    monkeypatch.setattr(cases, "CASES", (CASE,))

    def run(folder, count=2):
        state["asked"] = []
        made = Run(tables.FIT, folder, threads=1)
        assert made.collect(suite.measure(made, candidate=list(state["points"]), seconds=5.0, rounds=count))
        return state["asked"], made.records

    state["run"] = run
    return state


def test_a_run_tries_every_setting_then_rounds_in_turn_and_has_nothing_to_do_again(told, tmp_path):
    asked, rows = told["run"](tmp_path)
    names = list(POINTS)
    assert [name for name, *_ in asked] == [*names, *names, *names[::-1]]
    assert [target for *_, target in asked] == [None, None, *[pytest.approx(0.505)] * 4]
    found = [one for one in rows if one["stage"] == "rounds"]
    assert [(one["candidate"], one["seconds"]) for one in found[:2]] == [(names[0], 2.0), (names[1], 3.0)]
    assert [len(one["curve"]) for one in found[:2]] == [2, 1]
    assert len(rows) == 2 * candidates.TRIED + 4
    again, same = told["run"](tmp_path)
    assert (again, len(same)) == ([], len(rows))
    more, _ = told["run"](tmp_path, 3)
    assert [name for name, *_ in more] == names[::-1]


def test_what_is_left_after_a_setting_that_took_too_long_is_tried_in_another_process(told, tmp_path):
    told["end"] = 3
    asked, rows = told["run"](tmp_path, 1)
    assert [numbers for _, numbers, target in asked if target is None][:2] == [list(range(10)), list(range(4, 10))]
    assert len([one for one in rows if one["status"] == "timeout"]) == 2
    assert len([one for one in rows if one["stage"] == "settings"]) == 2 * candidates.TRIED


def test_all_settings_have_a_short_time_the_two_best_more_and_the_best_all(told, tmp_path):
    told["left"] = "limit"
    asked, rows = told["run"](tmp_path, 1)
    settings = [(name, numbers) for name, numbers, target in asked if target is None]
    assert settings == [(name, numbers) for numbers in (list(range(10)), [0, 1], [0]) for name in POINTS]
    own = [one["seconds_rung"] for one in rows if one["stage"] == "settings" and one["candidate"] == "ours, sparse"]
    assert own == [*[0.4] * 10, *[2.0] * 2, 5.0]
    assert told["run"](tmp_path, 1)[0] == []


def test_rounds_are_added_while_the_ratio_of_the_soonest_is_not_known(told, tmp_path):
    def count(folder, rounds):
        return [name for name, _, target in told["run"](folder, rounds)[0] if target].count("ours, sparse")

    assert count(tmp_path / "alike", 4) >= 4
    told["spread"] = 9.0
    assert count(tmp_path / "few", 3) == 3
    assert count(tmp_path / "apart", 4) == MOST
    assert count(tmp_path / "apart", 4) == 0


def test_a_fit_anew_is_done_in_a_round_with_the_iterations_that_reached_the_target(told, tmp_path):
    told["points"]["scikit-learn LogisticRegression lbfgs"] = [[3.0, 0.51, 6], [5.0, 0.5, 11]]
    told["run"](tmp_path, 1)
    assert told["ladders"] == [[11]]


def test_a_candidate_without_a_point_in_time_is_tried_once(told, tmp_path):
    told["points"]["scikit-learn SGDClassifier"], told["end"] = [], 0
    _, rows = told["run"](tmp_path, 1)
    assert len([one for one in rows if one["candidate"] == "scikit-learn SGDClassifier"]) == 1
    assert told["run"](tmp_path, 1)[0] == []


@pytest.mark.parametrize(("ours", "other", "wanted"), [(0.5, 0.502, 0.5), (0.5, 0.6, 0.6), (0.6, 0.5, 0.6)])
def test_targets_are_relative_to_the_best_that_both_sides_come_to(ours, other, wanted):
    rows = [
        {"value_best": value, "side": side, "larger_is_better": False}
        for side, value in (("project", ours), ("competitor", other))
    ]
    assert cases.best_value(rows) == (wanted, False)
    assert cases.best_value([]) == (None, False)
    turned = [one | {"value_best": 1 - one["value_best"], "larger_is_better": True} for one in rows]
    assert cases.best_value(turned) == (pytest.approx(1 - wanted), True)


OURS = rounds("ours, sparse", [2.0, 2.2, 1.8])
COMPETITORS = [*rounds("fast", [6.0, 6.6, 5.4], "competitor"), *rounds("slow", [60.0, 66.0, 54.0], "competitor")]
NEVER = row("never", curve=((1.0, 0.9, 1), (4.0, 0.8, 2)), side="competitor", left="limit")
LARGE = row("ours, dense", curve=(), status="memory", reason="Needs much", bytes_needed=10**12, is_dense=True)


def result(*rows):
    ((found,),) = suite.results(rows).values()
    return found


def test_the_ratio_is_of_the_soonest_of_either_side_round_by_round():
    found = result(*OURS, *COMPETITORS, NEVER, LARGE)
    assert found.fastest("sparse").name == "ours, sparse"
    assert found.fastest("competitor").name == "fast"
    assert found.ratio.value == pytest.approx(3.0, rel=0.01)
    assert found.quality == "log loss ≤ 0.505"
    texts = {entry.name: entry.text for entry in found.entries}
    assert texts["fast"] == "6 s (5.4 s to 6.6 s)"
    assert texts["never"] == "not reached; out of time after 4 s"
    assert texts["ours, dense"] == "would need 1 TB"
    assert result(*OURS, NEVER).ratio is None


def test_of_a_key_the_last_record_counts_and_of_a_candidate_its_newest_code():
    old = [one | {"source": "old", "key": f"old {one['key']}"} for one in rounds("ours, sparse", [9.0])]
    assert result(*old, *OURS, *COMPETITORS).ratio.value == pytest.approx(3.0, rel=0.01)
    older = rounds("ours, sparse", [1.0], target=0.7, tolerance=0.03)
    other = [one | {"key": f"3 % {one['key']}"} for one in older]
    every = suite.results([*OURS, *COMPETITORS, *other])
    assert list(every) == [cases.TOLERANCE, 0.03]
    assert every[0.03][0].goal == 0.7


def test_targets_and_page_have_each_case(tmp_path):
    rows = [*OURS, *COMPETITORS, NEVER, LARGE]
    each, together, text = suite.list_targets(suite.results(rows)[cases.TOLERANCE])
    assert (each.measured, each.met, together.met, text.met) == ("3 (toy, logistic)", False, False, None)
    for one in rows:
        tables.FIT.append(tmp_path / tables.FIT.file, one)
    page = write(suite.SUITE, tmp_path).read_text()
    assert "| toy, logistic | 80 x 50 | log loss ≤ 0.505 | 3 x |" in page
    assert "toy, logistic: ours, sparse reaches log loss ≤ 0.505 in 2 s (1.8 s to 2.2 s), fast in 6 s" in page
    assert "| ours, dense | would need 1 TB |" in page
    assert (tmp_path / "fit-toy-logistic.svg").stat().st_size > 1000


def test_a_chart_has_a_line_of_each_candidate_with_points_and_the_target():
    figure = Figure()
    suite.draw(result(*OURS, *COMPETITORS, NEVER, LARGE), figure)
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == [
        "ours, sparse: 2 s",
        "fast: 6 s",
        "slow: 60 s",
        "never: not reached; out of time after 4 s",
        "target: log loss ≤ 0.505",
    ]
    assert "No candidate of toy" in suite.draw(result(row("never", curve=())), figure)
