"""The page of trainings to a held-out quality: ratios, targets, why a candidate has no seconds, the chart."""

import json
import math
import re

import pytest
from matplotlib.figure import Figure

from benchmarks import plots, tables
from benchmarks.analysis import fit
from benchmarks.pages import suites as reports
from tests.support.fit_rows import rounds, row
from tests.support.quiet_ratios import known

OURS = rounds("ours, sparse", [1.0, 1.1, 0.9, 1.0])
DENSE = row("ours, dense", curve=(), is_dense=True, status="memory", bytes_needed=3 * 10**9, reason="Needs more.")
COMPETITORS = [*rounds("slow", [9.0, 9.0, 9.0, 9.0], "competitor"), *rounds("fast", [6.0, 6.6, 5.4, 6.0], "competitor")]


def by_tolerance(*rows):
    return fit.by_tolerance(tables.FIT.frame(rows))


def found(*rows):
    """The cases of rows that have one tolerance."""
    (cases,) = by_tolerance(*rows).values()
    return cases


def at_each(ours, competitor, case="toy, logistic"):
    """Rounds of a case by tolerance, with the seconds of ours and of the competitor."""
    targets = {0.003: 0.5015, 0.01: 0.505, 0.03: 0.515}
    made = []
    for (tolerance, target), first, second in zip(targets.items(), ours, competitor, strict=True):
        more = {"target": target, "tolerance": tolerance, "case": case}
        made += rounds("ours, sparse", [first] * 4, **more) + rounds("other", [second] * 4, "competitor", **more)
    return [row | {"key": f"{case} {row['key']} {row['tolerance']}"} for row in made]


def test_the_ratio_is_to_the_fastest_competitor_of_the_same_rounds():
    (case,) = found(*OURS, DENSE, *COMPETITORS)
    assert case.fastest("competitor").name == "fast"
    assert case.ratio[:3] == pytest.approx(known(6.0, 4))
    assert case.quality == "log loss ≤ 0.505"
    assert case.fastest("sparse").seconds == (1.0, 0.9, 1.1)


def test_rounds_of_different_runs_have_no_ratio():
    apart = rounds("fast", [6.0, 6.0], "competitor", run="two")
    (case,) = found(*OURS, *apart)
    assert case.ratio is None


def test_rounds_to_another_target_do_not_count():
    (case,) = found(*OURS, *[row("ours, sparse", "rounds", round=9, seconds=7.0, target=0.4)])
    assert case.fastest("sparse").seconds == (7.0, 7.0, 7.0)


def test_rows_of_a_candidate_s_older_code_do_not_count():
    before = [changed | {"source": "old", "key": f"old {changed['key']}"} for changed in rounds("ours, sparse", [5.0])]
    after = [changed | {"source": "new"} for changed in rounds("ours, sparse", [1.0])]
    (case,) = found(*before, *after)
    assert case.fastest("sparse").seconds == (1.0, 1.0, 1.0)
    assert len(case.entries[0].settings) == 1


def test_what_reached_the_target_without_rounds_has_the_seconds_it_was_tried_with():
    (case,) = found(*OURS, row("other", side="competitor"))
    assert (case.entries[1].seconds, case.entries[1].state) == (None, "about 2 s, tried once")


def test_before_the_rounds_nothing_is_said_of_the_target():
    (case,) = found(row("ours, sparse"), row("other", side="competitor", curve=(), status="timeout"))
    assert [entry.state for entry in case.entries] == ["rounds not run yet", "not reached in 5 s"]
    assert case.quality == ""


def test_targets_are_met_missed_or_not_measured():
    each, together, softmax = fit.list_targets(by_tolerance(*OURS, *COMPETITORS))
    assert (each.met, together.met, softmax.met) == (True, False, None)
    assert together.measured == "6 x over 1 of 1 set"
    never = row("ours, sparse", curve=((1.0, 0.9, 1),))
    each, together, _ = fit.list_targets(by_tolerance(never, *COMPETITORS))
    assert (each.met, together.met) == (False, None)
    assert "sparse does not reach" in each.measured


def test_each_tolerance_has_its_target_and_its_ratio():
    every = by_tolerance(*at_each((2.0, 1.0, 0.5), (8.0, 8.0, 1.0)))
    assert list(every) == [0.003, 0.01, 0.03]
    assert [case.ratio.value for (case,) in every.values()] == pytest.approx(
        [known(ratio, 4).value for ratio in (4.0, 8.0, 2.0)]
    )
    assert [case.quality for (case,) in every.values()] == [f"log loss ≤ {target}" for target in (0.5015, 0.505, 0.515)]


def test_a_target_is_met_only_if_it_is_at_every_tolerance():
    each, together, _ = fit.list_targets(by_tolerance(*at_each((1.0, 1.0, 1.0), (20.0, 30.0, 6.0))))
    assert (each.met, together.met) == (True, False)
    assert "At 0.3 %: 20 x over 1 of 1 set. At 1 %: 30 x over 1 of 1 set. At 3 %: 6 x" in together.measured


def test_a_target_that_is_not_measured_at_a_tolerance_is_not_met():
    rows = [*at_each((1.0, 1.0, 1.0), (20.0, 30.0, 16.0)), *rounds("ours, sparse", [1.0], case="old, logistic")]
    each, together, _ = fit.list_targets(
        by_tolerance(*rows, *rounds("other", [40.0], "competitor", case="old, logistic"))
    )
    assert each.met
    assert not together.met
    assert "At 3 %: 16 x over 1 of 2 sets" in together.measured


def test_how_far_the_tolerance_moves_the_mean_is_said():
    a, b = at_each((1.0, 1.0, 1.0), (8.0, 4.0, 2.0)), at_each((1.0, 1.0, 1.0), (8.0, 64.0, 2.0), "b")
    every = by_tolerance(
        *a, *b, *rounds("ours, sparse", [1.0], case="old"), *rounds("x", [99.0], "competitor", case="old")
    )
    expected = [math.sqrt(known(a, 4).value * known(b, 4).value) for a, b in ((8, 8), (4, 64), (2, 2))]
    assert fit.mean_ratios(every) == pytest.approx(expected), "of cases with a ratio at each alone"
    text = fit.tolerance_sensitivity(every)
    assert "moves the geometric mean by 8 x: it is 8 x at 0.3 %, 16 x at 1 % and 2 x at 3 %" in text
    assert "moves b most: 8 x at 0.3 %, 64 x at 1 % and 2 x at 3 %" in text
    assert "within 1 % alone" in fit.tolerance_sensitivity(by_tolerance(*OURS, *COMPETITORS))
    columns, lines = fit.table(every)
    assert columns[1:4] == ("0.3 %", "1 %", "3 %")
    assert lines[2][:4] == ["old", "", f"{known(99, 1).value:.2g} x", ""]
    assert lines[-1][:4] == ["geometric mean, cases with all", *(f"{mean} x, 2 of 3" for mean in (8, 16, 2))]


def test_staying_at_the_target_is_read_from_the_last_points():
    curve = ((1.0, 0.5, 1), (2.0, 0.6, 2), (3.0, 0.505, 3), (4.0, 0.5, 4))
    left = row("left", side="competitor", curve=((1.0, 0.5, 1), (2.0, 0.6, 2)))
    ours = [changed | {"curve": [[0.5, 0.5, 1]]} for changed in rounds("ours, sparse", [1.0])]
    (case,) = found(
        *ours, *[round | {"curve": list(map(list, curve))} for round in rounds("other", [1.0], "competitor")], left
    )
    assert [entry.seconds_staying for entry in case.entries] == [0.5, 3.0, None]
    assert case.ratio_staying == pytest.approx(6.0)


def test_records_of_the_schema_before_are_of_one_percent(tmp_path):
    old = {name: value for name, value in OURS[1].items() if name != "tolerance"} | {"schema": 2}
    (tmp_path / tables.FIT.file).write_text("".join(json.dumps(each) + "\n" for each in (OURS[0], old)))
    ((tolerance, (case,)),) = fit.by_tolerance(tables.FIT.frame(tables.FIT.read(tmp_path))).items()
    assert (tolerance, case.target, case.fastest("sparse").seconds[0]) == (0.01, 0.505, 1.0)


SHORT = ((1.0, 0.9, 1),)
"""A curve of one point, short of the target."""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"status": "unsupported", "reason": "x is not installed."}, "x is not installed."),
        ({"status": "memory", "bytes_needed": 3 * 10**9}, "would need 3 GB"),
        ({"status": "failed", "reason": "It broke."}, "failed: It broke."),
        ({"status": "timeout"}, "not reached in 5 s"),
        ({"curve": SHORT, "left": "no gain"}, "not reached; no further gain after 1 s"),
        ({"curve": SHORT, "left": "limit", "seconds_rung": 0.5}, "not reached; stopped after 1 s, behind others"),
        ({"curve": SHORT, "left": "limit", "seconds_rung": 5.0}, "not reached in 1 s"),
        ({"curve": SHORT}, "not reached in 5 s"),
    ],
)
def test_a_candidate_without_seconds_says_why(more, expected):
    (case,) = found(*OURS, row("other", side="competitor", **{"curve": (), **more}))
    assert case.entries[1].state == expected


def test_where_a_competitor_had_less_time_than_the_fastest_needed_nobody_is_called_faster():
    for seconds, is_decided in ((2.5, False), (7.0, True)):
        slow = row(
            "slow", curve=((seconds, 0.9, 1),), side="competitor", left="limit", seconds_rung=2.5, seconds_limit=20.0
        )
        (case,) = found(*OURS, *rounds("fast", [6.0, 6.6, 5.4], "competitor"), slow)
        assert (case.ratio is not None) is is_decided
        sentence = plots.draw(
            "fit_curves", tables.FIT.frame([*OURS, *rounds("fast", [6.0, 6.6, 5.4], "competitor"), slow]), Figure()
        )
        assert ("inconclusive, slow had less time" in sentence) is not is_decided


@pytest.mark.parametrize(("is_dense", "is_decided"), [(True, True), (False, False)])
def test_a_dense_training_that_had_less_time_than_another_dense_one_decides_nothing_of_sparse(is_dense, is_decided):
    quick = [row | {"is_dense": is_dense} for row in rounds("ours, quick", [6.0, 6.6, 5.4, 6.0])]
    ours = [*quick] if not is_dense else [*OURS, *quick]
    left = {"left": "limit", "seconds_rung": 2.5, "seconds_limit": 20.0, "is_dense": is_dense}
    slow = row("ours, slow", curve=((2.5, 0.9, 1),), **left)
    (case,) = found(*ours, slow, *COMPETITORS)
    assert (case.ratio is not None) is is_decided


def test_the_page_has_the_table_and_a_chart_of_every_case(tmp_path):
    for one in (*OURS, DENSE, *COMPETITORS):
        tables.FIT.append(tmp_path / tables.FIT.file, one)
    text = reports.write_fit(tmp_path, "python -m benchmarks fit --quick").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("| toy, logistic | log loss"))
    assert "would need 3 GB | fast | 6 s (5.4 s to 6.6 s) | 6 x (" in line
    assert "1 s (900 ms to 1.1 s)" in line
    assert "| toy, logistic | 80 x 50 | log loss 0.5 | ours, sparse |" in text
    assert "python -m benchmarks fit --quick" in text
    assert "optimizer sgd, rate 1 (of 1)" in text
    assert (tmp_path / "fit-toy-logistic.svg").exists()


def test_dense_that_is_too_slow_names_the_bytes_of_x():
    slow = row("ours, dense", curve=((5.0, 0.9, 1),), is_dense=True)
    (case,) = found(*OURS, slow, *COMPETITORS)
    assert reports.fit_line(case)[3] == "not reached in 5 s; X takes 16 kB"


def test_the_chart_tells_ours_from_competitors_by_line_and_marker():
    figure = Figure()
    sentence = plots.draw("fit_curves", tables.FIT.frame([*OURS, *COMPETITORS]), figure)
    low, high = (f"{end:.2g}" for end in known(6.0, 4)[1:])
    assert f"{low} to {high} times sooner" in " ".join(figure.get_suptitle().split())
    assert "fast in 6 s" in sentence
    lines = {line.get_label().split(":")[0]: line for line in figure.axes[0].get_lines()}
    assert lines["ours, sparse"].get_linestyle() != lines["fast"].get_linestyle()
    assert len({line.get_marker() for name, line in lines.items() if name != "target"}) == 3
    assert figure.axes[0].get_xscale() == "log"


def test_the_page_has_ratios_and_a_table_of_each_tolerance(tmp_path):
    absent = row("none", curve=(), side="competitor", status="unsupported", reason="x is not installed.")
    for one in (*at_each((2.0, 1.0, 0.5), (8.0, 8.0, 1.0)), absent):
        tables.FIT.append(tmp_path / tables.FIT.file, one)
    text = reports.write_fit(tmp_path).read_text(encoding="utf-8")
    assert "| toy, logistic | 4 x | 8 x | 2 x |" in text
    assert [f"## Within {share}" in text for share in ("0.3 %", "1 %", "3 %")] == [True] * 3
    assert "The choice of the tolerance moves the geometric mean by 4 x" in " ".join(text.split())
    assert re.search(r"Fastest competitor / sparse: 4 x \(.*\) at 0.3 %, 8 x \(.*\) at 1 % and 2 x \(.*\) at 3 %", text)
    assert "| none |  |  |  |  |  | x is not installed. |" in text, "a reason is said once"
    assert "| candidate | time to 0.3 % | time to 1 % | time to 3 % |" in text


def test_a_target_that_is_not_reached_is_said_once_in_a_row_with_how_the_training_ended(tmp_path):
    slow = row("slow", curve=SHORT, side="competitor", left="no gain")
    for one in (*at_each((2.0, 1.0, 0.5), (8.0, 8.0, 1.0)), slow):
        tables.FIT.append(tmp_path / tables.FIT.file, one)
    text = reports.write_fit(tmp_path).read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("| slow |"))
    assert [cell.strip() for cell in line.strip("|").split("|")][1:4] == ["not reached"] * 3
    assert line.endswith("| no further gain after 1 s |")


def test_the_dense_trainings_of_a_chart_differ_in_look():
    dense = [each for name in "abc" for each in rounds(f"ours, dense, {name}", [3.0], is_dense=True)]
    figure = Figure()
    plots.draw("fit_curves", tables.FIT.frame([*OURS, *COMPETITORS, *dense]), figure)
    looks = {
        (line.get_color(), line.get_marker()) for line in figure.axes[0].get_lines() if "dense" in line.get_label()
    }
    assert len(looks) == 3


def test_of_many_competitors_the_soonest_are_drawn():
    many = [
        each for number in range(12) for each in rounds(f"competitor {number:02}", [20.0 - number] * 4, "competitor")
    ]
    figure = Figure()
    plots.draw("fit_curves", tables.FIT.frame([*OURS, *many]), figure)
    names = [line.get_label().split(":")[0] for line in figure.axes[0].get_lines()]
    assert names == ["ours, sparse", *(f"competitor {number:02}" for number in range(4, 12)), "target"]


def test_a_case_without_points_says_so():
    figure = Figure()
    never = row("ours, sparse", curve=(), status="timeout")
    assert "No candidate of toy" in plots.draw("fit_curves", tables.FIT.frame([never]), figure)
