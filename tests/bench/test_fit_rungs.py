"""Which settings go on for longer: one rule for ours and competitors, and none is left before the fastest is there."""

import pytest

from tests.support import fit_rows
from workbench.bench.fit import runner
from workbench.bench.fit.runner import Policy, Rung
from workbench.bench.shapes import BenchError

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


@pytest.mark.parametrize("sides", [("ours", "competitor"), ("competitor", "ours")])
def test_the_best_settings_go_on_of_either_side(sides):
    first, other = sides
    each = tried(**{first: [(0.7, 0.6), (0.7, 0.55), (0.7, 0.65)], other: [(0.7, 0.58)]})
    assert runner.settings_to_continue(each, Rung(2.5, 2), LAST) == {first: [0, 1], other: [0]}


def test_what_is_out_of_reach_at_its_pace_is_left():
    each = tried(ours=[(0.31, 0.30)], competitor=[(0.9, 0.8)], competitor_slow=[(1.0001, 1.0)])
    assert runner.settings_to_continue(each, Rung(2.5, 3), LAST) == {
        "ours": [0],
        "competitor": [0],
        "competitor_slow": [],
    }


def test_what_ended_by_itself_does_not_go_on_and_no_other_takes_its_place():
    each = tried(ours=[(0.7, 0.5, "no gain"), (0.7, 0.6), (0.7, 0.65)])
    assert runner.settings_to_continue(each, Rung(2.5, 1), LAST) == {"ours": []}
    assert runner.settings_to_continue(each, Rung(2.5, 2), LAST) == {"ours": [1]}


def test_who_is_at_the_target_goes_on_only_if_it_moves_it():
    each = tried(ours=[(0.5001, 0.5)], competitor=[(0.5011, 0.501)])
    assert runner.settings_to_continue(each, Rung(2.5, 3), LAST) == {"ours": [], "competitor": []}


@pytest.mark.parametrize(("value", "goes_on"), [(0.502, True), (0.501, False), (0.506, True)])
def test_who_may_come_to_one_more_target_goes_on(value, goes_on):
    each = tried(
        ours=[(0.5, 0.5, "no gain")], competitor=[(0.5, 0.5, "no gain")], competitor_slow=[(value + 4e-4, value)]
    )
    assert runner.settings_to_continue(each, Rung(2.5, 3), LAST)["competitor_slow"] == ([0] if goes_on else [])


def test_one_point_tells_no_pace():
    each = tried(ours=[(0.31, 0.30)], competitor=[(0.9, 0.8)])
    each["competitor"][0] |= {"curve": [[3.0, 0.8, 1]]}
    assert runner.settings_to_continue(each, Rung(2.5, 3), LAST)["competitor"] == [0]


def test_nobody_is_left_before_the_soonest_of_its_side_was_there_twice():
    each = tried(
        ours=[(0.5, 0.5, "no gain")], competitor=[(0.5, 0.5, "no gain")], competitor_slow=[(0.81, 0.8), (0.71, 0.7)]
    )
    assert runner.settings_left_early(each, LAST) == {}
    each["competitor"][0]["curve"] = [[3.0, 0.5, 1]]
    assert runner.settings_left_early(each, LAST) == {"competitor_slow": (1, Rung(6.0, 1))}
    assert runner.settings_left_early(each, 4.0) == {"competitor_slow": (1, Rung(4.0, 1))}


def test_nobody_is_left_before_the_tightest_target_that_it_missed():
    each = tried(ours=[(0.5, 0.5, "no gain")], competitor=[(0.5, 0.5, "no gain")], competitor_slow=[(0.504, 0.504)])
    each["competitor"][0]["curve"] = [[0.1, 0.51, 1], [3.0, 0.5, 2]]
    assert runner.settings_left_early(each, LAST) == {"competitor_slow": (0, Rung(6.0, 1))}, "within 1 %, but not 0.3 %"
