"""The page of trainings to a held-out quality: ratios, goals, why a contender has no seconds, the chart."""

import pytest
from matplotlib.figure import Figure

from tests.support.fit_rows import rounds, row
from workbench import plots, store
from workbench.analysis import fit
from workbench.reports import fit as reports

OURS = rounds("ours, sparse", [1.0, 1.1, 0.9, 1.0])
DENSE = row("ours, dense", curve=(), is_dense=True, status="memory", bytes_needed=3 * 10**9, reason="Needs more.")
RIVALS = [*rounds("slow", [9.0, 9.0, 9.0, 9.0], "rival"), *rounds("fast", [6.0, 6.6, 5.4, 6.0], "rival")]


def found(*rows):
    return fit.found_in(store.FIT.frame(rows))


def test_the_ratio_is_to_the_fastest_rival_of_the_same_rounds():
    (case,) = found(*OURS, DENSE, *RIVALS)
    assert case.fastest("rival").name == "fast"
    assert case.ratio.value == pytest.approx(6.0)
    assert case.quality == "log loss ≤ 0.505"
    assert case.fastest("sparse").seconds == (1.0, 0.9, 1.1)


def test_rounds_of_different_runs_have_no_ratio():
    apart = rounds("fast", [6.0, 6.0], "rival", run="two")
    (case,) = found(*OURS, *apart)
    assert case.ratio is None


def test_rounds_to_another_target_do_not_count():
    (case,) = found(*OURS, *[row("ours, sparse", "rounds", round=9, seconds=7.0, target=0.4)])
    assert case.fastest("sparse").seconds == (7.0, 7.0, 7.0)


def test_rows_of_a_contender_s_older_code_do_not_count():
    before = [changed | {"source": "old", "key": f"old {changed['key']}"} for changed in rounds("ours, sparse", [5.0])]
    after = [changed | {"source": "new"} for changed in rounds("ours, sparse", [1.0])]
    (case,) = found(*before, *after)
    assert case.fastest("sparse").seconds == (1.0, 1.0, 1.0)
    assert len(case.entries[0].settings) == 1


def test_what_reached_the_target_without_rounds_has_the_seconds_it_was_tried_with():
    (case,) = found(*OURS, row("other", side="rival"))
    assert (case.entries[1].seconds, case.entries[1].state) == (None, "about 2 s, tried once")


def test_before_the_rounds_nothing_is_said_of_the_target():
    (case,) = found(row("ours, sparse"), row("other", side="rival", curve=(), status="timeout"))
    assert [entry.state for entry in case.entries] == ["rounds not run yet", "not reached in 5 s"]
    assert case.quality == ""


def test_goals_are_met_missed_or_not_measured():
    each, together, softmax = fit.goals(found(*OURS, *RIVALS))
    assert (each.met, together.met, softmax.met) == (True, False, None)
    assert together.measured == "6 x over 1 of 1 set"
    never = row("ours, sparse", curve=((1.0, 0.9, 1),))
    each, together, _ = fit.goals(found(never, *RIVALS))
    assert (each.met, together.met) == (False, None)
    assert "sparse does not reach" in each.measured


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"status": "unsupported", "reason": "x is not installed."}, "x is not installed."),
        ({"status": "memory", "bytes_needed": 3 * 10**9}, "would need 3 GB"),
        ({"status": "failed", "reason": "It broke."}, "failed: It broke."),
        ({"status": "timeout"}, "not reached in 5 s"),
    ],
)
def test_a_contender_without_seconds_says_why(more, told):
    (case,) = found(*OURS, row("other", curve=(), side="rival", **more))
    assert case.entries[1].state == told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"left": "no gain"}, "not reached; no gain any more after 1 s"),
        ({"left": "limit", "seconds_rung": 0.5}, "not reached in 1 s; left there, behind others"),
        ({"left": "limit", "seconds_rung": 5.0}, "not reached in 1 s"),
        ({}, "not reached in 5 s"),
    ],
)
def test_who_did_not_reach_the_target_says_how_it_ended(more, told):
    (case,) = found(*OURS, row("other", curve=((1.0, 0.9, 1),), side="rival", **more))
    assert case.entries[1].state == told


def test_where_a_rival_had_less_time_than_the_fastest_needed_nobody_is_called_faster():
    for seconds, is_decided in ((2.5, False), (7.0, True)):
        slow = row("slow", curve=((seconds, 0.9, 1),), side="rival", left="limit", seconds_rung=2.5, seconds_limit=20.0)
        (case,) = found(*OURS, *rounds("fast", [6.0, 6.6, 5.4], "rival"), slow)
        assert (case.ratio is not None) is is_decided
        sentence = plots.draw(
            "fit_curves", store.FIT.frame([*OURS, *rounds("fast", [6.0, 6.6, 5.4], "rival"), slow]), Figure()
        )
        assert ("undecided, slow had less time" in sentence) is not is_decided


def test_the_page_has_the_table_and_a_chart_of_every_case(tmp_path):
    for one in (*OURS, DENSE, *RIVALS):
        store.FIT.append(tmp_path / store.FIT.file, one)
    text = reports.write(tmp_path, "workbench bench fit --quick").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| toy, logistic |"))
    assert "would need 3 GB | fast | 6 s (5.4 s to 6.6 s) | 6 x (" in line
    assert "1 s (900 ms to 1.1 s)" in line
    assert line.endswith("| 0.5, ours, sparse |")
    assert "workbench bench fit --quick" in text
    assert "optimizer sgd, rate 1, of 1" in text
    assert (tmp_path / "fit-toy-logistic.svg").exists()


def test_dense_that_is_too_slow_names_the_bytes_of_x():
    slow = row("ours, dense", curve=((5.0, 0.9, 1),), is_dense=True)
    (case,) = found(*OURS, slow, *RIVALS)
    assert reports.line(case)[4] == "not reached in 5 s; X takes 16 kB"


def test_the_chart_tells_ours_from_rivals_by_line_and_marker():
    figure = Figure()
    sentence = plots.draw("fit_curves", store.FIT.frame([*OURS, *RIVALS]), figure)
    assert "6 times sooner" in " ".join(figure.get_suptitle().split())
    assert "fast in 6 s" in sentence
    lines = {line.get_label().split(":")[0]: line for line in figure.axes[0].get_lines()}
    assert lines["ours, sparse"].get_linestyle() != lines["fast"].get_linestyle()
    assert len({line.get_marker() for name, line in lines.items() if name != "target"}) == 3
    assert figure.axes[0].get_xscale() == "log"


def test_a_case_without_points_says_so():
    figure = Figure()
    never = row("ours, sparse", curve=(), status="timeout")
    assert "No contender of toy" in plots.draw("fit_curves", store.FIT.frame([never]), figure)
