"""Several trainers are a configuration beside one process: both meet dense, and each other, in every verdict."""

from dataclasses import replace

from tests.support import rows as maker
from workbench import store
from workbench.analysis import answer_text
from workbench.analysis.breakeven import breakeven
from workbench.analysis.configurations import groups
from workbench.analysis.standings import make_standings
from workbench.plots import phases
from workbench.settings import train_command

SLOW = replace(maker.SPARSE, trainers=2, fixed=3e-3)
"""Messages cost 3 ms a step; a row costs half."""
FAST = replace(maker.SPARSE, trainers=2, slope=maker.SPARSE.slope / 2)


def swept(*laws, densities=maker.DENSITIES):
    return store.frame(maker.sweep(laws=(maker.DENSE, maker.SPARSE, *laws), densities=densities))


def test_there_is_a_break_even_of_each_number_of_trainers_in_one_group():
    frame = swept(SLOW, densities=(0.01, 0.04, 0.06, 0.07, 0.09, 0.2))
    (group,) = groups(frame)
    found = {even.line["trainers"]: even for even in breakeven(frame)}
    assert group.settings.keys().isdisjoint({"trainers"})
    for law in (maker.SPARSE, SLOW):
        even = found[law.trainers]
        assert even.status == "crossing"
        assert even.low <= maker.crossing(law) <= even.high
    assert "sparse, 2 trainers in time" in found[2].sentence
    assert make_standings(group, "seconds_step").candidates == ("S1", "S2", "D1")


def test_the_best_trainers_have_the_verdict_and_their_command():
    frame = swept(FAST)
    assert dict(answer_text(frame).names)["S1"] == "sparse, 2 trainers"
    row = next(row for row in groups(frame)[0].rows if row["trainers"] == 2)
    assert "--trainers 2" in train_command(row)
    untimed = row | dict.fromkeys(map("seconds_{}".format, phases.PHASES))
    assert phases._note(untimed, phases.phases_of(untimed), 2).endswith(", phases not timed")
