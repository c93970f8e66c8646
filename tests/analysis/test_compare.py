"""Verdicts: what rounds decide, what they do not and why, and simulations in which the truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as maker
from tests.support.pooled import neighbours, pooled
from workbench import store
from workbench.analysis import cells, compare, contests, latest, verdict, worse
from workbench.measure.rounds import LEVEL, decide

DENSE, SERIAL, SPARSE = maker.DENSE, maker.SERIAL, maker.SPARSE
ALIKE = replace(SPARSE, fixed=8e-3, slope=0.0)
"""A sparse law that takes as long as dense."""


def rows_of(*laws, densities=(0.01,), change=lambda row: row, **known):
    return cells.records(latest(store.frame(map(change, maker.sweep(laws, densities, **known)))))


def judged(*laws, measure="seconds_step", **known):
    (found,) = contests(rows_of(*laws, **known), measure)
    return found


@pytest.mark.parametrize(
    ("seconds", "told"), [(1e-3, "sparse"), (3e-2, "dense"), (8e-3, "level")], ids=["faster", "slower", "as fast"]
)
def test_four_rounds_decide_what_is_far_apart_or_known_to_be_close(seconds, told):
    found = judged(DENSE, replace(SPARSE, fixed=seconds, slope=0.0), noise=0.01)
    assert (found.verdict, found.why) == (told, "")
    assert found.ratio.low <= 8e-3 / seconds <= found.ratio.high


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_fewer_than_four_rounds_decide_nothing_and_say_so(rounds):
    found = judged(DENSE, SPARSE, rounds=rounds)
    assert (found.verdict, found.why, found.visible) == ("undecided", compare.FEW, None)
    assert "at least four rounds" in compare.REMEDY[found.why]


def test_what_cannot_be_told_apart_says_what_could_have_been_seen():
    found = judged(DENSE, replace(ALIKE, fixed=7.5e-3), noise=0.2)
    assert (found.verdict, found.why) == ("undecided", compare.HOLDS_ONE)
    assert found.visible == found.ratio.visible > 1.2


def test_verdicts_and_ratios_are_those_of_the_module_of_rounds():
    laws = (DENSE, SERIAL, SPARSE, replace(SPARSE, format="coo", slope=0.3), replace(SPARSE, format="csc", slope=0.2))
    rows = rows_of(*laws, noise=0.3, rounds=6, densities=(0.03,))
    (found,) = contests(rows, "seconds_step")
    times = {row["format"] + str(row["serial"]): row["round_values"]["seconds_step"] for row in rows}
    dense = {name: times.pop(name) for name in ("denseFalse", "denseTrue")}
    decision = decide(times, dense)
    assert found.verdict == decision.verdict
    assert found.ratio.rounds == decision.ratio.rounds == 6
    if not found.level:
        assert found.ratio == decision.ratio


def test_two_runs_are_combined_by_their_ratios():
    slow = [row | {"seconds_step": 3 * row["seconds_step"]} for row in maker.sweep(run="r2", seed=1, densities=(0.01,))]
    rows = cells.records(latest(store.frame(maker.sweep(densities=(0.01,)) + slow)))
    (found,) = contests(rows, "seconds_step")
    assert (found.ratio.runs, found.ratio.rounds) == (2, 8)
    assert found.ratio.low < 8e-3 / SPARSE.seconds(0.01) < found.ratio.high


def test_two_sides_of_different_runs_are_not_compared():
    rows = maker.sweep((DENSE,), (0.01,)) + maker.sweep((SPARSE,), (0.01,), run="r2")
    (found,) = contests(cells.records(latest(store.frame(rows))), "seconds_step")
    assert (found.verdict, found.ratio, found.why) == ("undecided", None, compare.APART)


def disturb(formats, rounds):
    """Rows of these formats and rounds as other programs leave them."""
    return lambda row: maker.disturbed(row) if row["format"] in formats and row["round"] in rounds else row


@pytest.mark.parametrize("formats", [("dense",), ("csr",), ("dense", "csr")])
def test_where_all_rounds_of_a_side_were_disturbed_nobody_wins_in_time(formats):
    found = judged(DENSE, SPARSE, change=disturb(formats, range(4)))
    assert (found.verdict, found.ratio, found.why) == ("undecided", None, compare.BUSY)
    assert judged(DENSE, SPARSE, change=disturb(formats, range(4)), measure="bytes_peak").verdict == "sparse"


def test_rounds_lost_to_other_programs_are_the_reason_where_too_few_are_left():
    for lost in ((0, 1), (0, 1, 2, 3)):
        found = judged(DENSE, SPARSE, change=disturb(("csr",), lost), rounds=5)
        assert (found.verdict, found.why, found.visible) == ("undecided", compare.BUSY, None)
    assert judged(DENSE, SPARSE, change=disturb(("csr",), (0, 1)), rounds=6).verdict == "sparse"


def test_sparse_cannot_win_where_one_of_the_baselines_was_disturbed():
    spoil = lambda row: maker.disturbed(row) if row["format"] == "dense" and not row["serial"] else row  # noqa: E731
    assert judged(DENSE, SERIAL, SPARSE, change=spoil).why == compare.BUSY
    assert judged(DENSE, SERIAL, replace(SPARSE, fixed=0.1), change=spoil).verdict == "dense"


def test_the_better_of_dense_on_one_thread_and_on_all_is_to_be_beaten():
    between = replace(SPARSE, fixed=8e-3, slope=0.0)
    quick = replace(SERIAL, fixed=4e-3)
    assert judged(replace(DENSE, fixed=16e-3), between).verdict == "sparse"
    found = judged(replace(DENSE, fixed=16e-3), quick, between)
    assert (found.verdict, found.dense["serial"]) == ("dense", True)


def test_what_did_not_fit_loses_to_what_ran():
    unfit = lambda formats: lambda row: maker.unfit(row) if row["format"] in formats else row  # noqa: E731
    for measure in ("seconds_step", "bytes_peak"):
        assert judged(DENSE, SPARSE, change=unfit(("dense",)), measure=measure).verdict == "sparse"
        assert judged(DENSE, SPARSE, change=unfit(("csr",)), measure=measure).verdict == "dense"
        assert judged(DENSE, SPARSE, change=unfit(("dense", "csr")), measure=measure).why == compare.NO_RESULT
    assert judged(DENSE).why == compare.NO_SPARSE
    assert judged(SPARSE).why == compare.NO_DENSE


@pytest.mark.parametrize(
    ("size", "told"), [(100e6, "level"), (97e6, "level"), (95e6, "sparse"), (106e6, "dense")], ids=str
)
def test_memory_has_its_own_rule_and_two_rounds_suffice(size, told):
    law = replace(SPARSE, bytes_fixed=size, bytes_slope=0.0)
    assert judged(DENSE, law, measure="bytes_peak", rounds=2, noise=0.01).verdict == told
    assert judged(DENSE, law, measure="bytes_peak", rounds=1).why == "measured once"


def test_one_configuration_stands_for_those_that_win_alike():
    laws = (DENSE, SPARSE, replace(SPARSE, format="csc"))
    found = contests(rows_of(*laws, densities=maker.DENSITIES), "seconds_step")
    won = [one for one in found if one.verdict == "sparse"]
    assert len({one.sparse["format"] for one in won}) == 1
    assert sum(bool(one.level) for one in won) > 1
    slow = judged(DENSE, SPARSE, replace(SPARSE, format="csc", slope=0.3))
    assert (slow.sparse["format"], slow.level) == ("csr", ())


def test_a_pair_of_rows_has_the_verdict_of_their_contest():
    dense, sparse = rows_of(DENSE, SPARSE)
    assert verdict(sparse, dense, "seconds_step") == judged(DENSE, SPARSE).verdict == "sparse"
    assert verdict(dense, sparse, "seconds_step") == "dense"


def simulated(ratio, times, rounds=12, sd=0.2):
    """So many contests of two contenders, of which dense takes `ratio` times as long."""
    rng = np.random.default_rng(1)
    made = (neighbours(ratio, rng, rounds=rounds, sd=sd) for _ in range(times))
    return [
        compare.contest([pooled(sparse)], [pooled(dense, format="dense")], "seconds_step") for sparse, dense in made
    ]


@pytest.mark.parametrize("rounds", [4, 12])
def test_of_two_contenders_alike_at_most_one_in_twenty_is_called_a_winner(rounds):
    told = [one.verdict for one in simulated(1.0, 300, rounds)]
    assert 1 - (told.count("undecided") + told.count("level")) / 300 <= 0.05


def test_the_best_of_four_rivals_alike_pays_for_the_choice():
    rng = np.random.default_rng(3)
    won = 0
    for _ in range(150):
        spells = rng.normal(0, 0.3, 8)
        sides = np.exp(spells + rng.normal(0, 0.15, (5, 8)))
        sparse = [pooled(seconds, engine=f"rival {k}") for k, seconds in enumerate(sides[1:])]
        won += compare.contest(sparse, [pooled(sides[0], format="dense")], "seconds_step").verdict == "sparse"
    assert won <= 0.05 * 150


def test_a_true_difference_is_found_and_its_interval_holds_it():
    found = simulated(1.5, 300)
    assert np.mean([one.verdict == "sparse" for one in found]) > 0.9
    assert np.mean([one.ratio.low <= 1.5 <= one.ratio.high for one in found]) >= 0.95
    assert np.median([one.ratio.high / one.ratio.low for one in found]) < 1.7, "an interval that says nothing holds all"


def test_nobody_is_called_level_who_is_not():
    told = [one.verdict for one in simulated(LEVEL, 300, sd=0.03)]
    assert "dense" not in told
    assert told.count("level") <= 0.05 * 300


def test_a_lazy_update_is_compared_with_an_equal_training_only():
    lazy = replace(SPARSE, update="lazy", loss_last=0.4)
    rows = rows_of(DENSE, SPARSE, lazy)
    assert [(one["update"], fair["format"]) for one, fair in worse.trained_worse(rows)] == [("lazy", "csr")]
    assert len(worse.trained_worse(rows_of(DENSE, lazy))) == 1, "dense trains the same model as any standard update"
    for change in ({"learning_rate": 0.5}, {"seed": 3}):
        other = [row | change if row["update"] == "lazy" else row for row in rows]
        assert worse.trained_worse(other) == [], change
    fewer = [row | {"curve": row["curve"][:-1]} if row["update"] == "lazy" else row for row in rows]
    assert worse.trained_worse(fewer) == [], "losses after different numbers of steps"
    unknown = [row | {"curve": None} for row in rows]
    assert worse.trained_worse(unknown) == [], "nor after numbers that are not known"


FASTER = replace(SPARSE, format="csc", fixed=1e-3, slope=0.0)
SLOWER = replace(SPARSE, fixed=3e-2, slope=0.0)


def partly(*absent, at=0.1):
    """The contests of sweeps at three densities, at one of which some laws were not measured."""
    rows = rows_of(DENSE, SLOWER, *absent, densities=(0.01, 0.1, 0.2), noise=0.01)
    formats = {law.format for law in absent}
    kept = [row for row in rows if not (row["density"] == at and row["format"] in formats)]
    return {round(found.density, 2): (found.verdict, found.why) for found in contests(kept, "seconds_step")}


def test_dense_does_not_win_where_a_configuration_that_beats_it_elsewhere_was_not_measured():
    assert partly(FASTER) == {0.01: ("sparse", ""), 0.1: ("undecided", compare.PARTLY), 0.2: ("sparse", "")}


def test_dense_wins_where_what_was_not_measured_is_surely_behind_another_one_nearby():
    behind = replace(FASTER, format="coo", fixed=2e-3)
    assert partly(behind)[0.1] == ("undecided", compare.PARTLY)
    rows = rows_of(DENSE, FASTER, replace(behind, fixed=4e-3), densities=(0.01,), noise=0.01)
    rows += rows_of(DENSE, replace(FASTER, slope=0.2), densities=(0.1,), noise=0.01)
    assert [one.verdict for one in contests(rows, "seconds_step")] == ["sparse", "dense"]


def test_dense_wins_where_what_was_not_measured_loses_nearby():
    assert partly(replace(SLOWER, format="csc")) == dict.fromkeys((0.01, 0.1, 0.2), ("dense", ""))
