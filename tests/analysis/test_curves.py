"""Curves of quality: points of trials and of others in one frame, ends, and pairs of candidates split by split."""

import re

import pandas as pd
import pytest

from tests.support import rows as maker
from tests.support.curve_points import point, two
from workbench import store
from workbench.analysis import curves


def test_trials_that_trained_epochs_become_points_by_seed_and_measure():
    judged = [{"epoch": 1, "seconds": 0.5, "AUC": 0.6, "log loss": 0.4}, {"epoch": 2, "seconds": 1.0, "AUC": 0.7}]
    laws = [maker.SPARSE, maker.DENSE]
    rows = maker.sweep(laws, (0.1,), rounds=2, quality_curve=judged)
    rows = [row | {"seed": seed} for seed in (1, 2) for row in rows]
    found = curves.points_of_trials(store.frame([*rows, *maker.sweep(densities=(0.2,))]))
    assert set(found["repeat"]) == {1, 2}
    assert len(found) == 2 * 2 * 3
    assert found["who"].nunique() == 2, "who names what differs, and no seed"
    assert curves.list_measures(found) == ("AUC", "log loss")
    assert {end for of_who in curves.final_values(found, "AUC").values() for end in of_who.values()} == {(1.0, 0.7)}


def test_settings_that_are_on_or_off_are_named_in_words():
    judged = [{"epoch": 1, "seconds": 0.5, "AUC": 0.6}]
    rows = maker.sweep((maker.DENSE, maker.SERIAL), (0.1,), quality_curve=judged)
    assert set(curves.points_of_trials(store.frame(rows))["who"]) == {"logistic, all threads", "logistic, 1 thread"}


def test_trials_beside_other_programs_have_their_quality_too():
    rows = maker.sweep(densities=(0.2,))
    for row in rows:
        row |= {"status": "disturbed", "quality_curve": [{"epoch": 1, "seconds": 0.5, "AUC": 0.7}]}
    assert set(curves.points_of_trials(store.frame(rows))["value"]) == {0.7}


def test_no_points_beside_some_leave_numbers_numbers():
    """Competitors that are not installed are no points."""
    joined = pd.concat([two(), curves.frame([])])
    assert joined["value"].dtype == joined["seconds"].dtype == joined["epoch"].dtype == "float64"


def test_the_best_is_the_largest_or_of_a_loss_the_smallest():
    assert curves.best_candidate(two(), "AUC") == "ours"
    assert curves.best_candidate(two(measure="log loss"), "log loss") == "theirs"
    assert curves.best_candidate(two(), "AUC", side="competitor") == "theirs"
    with pytest.raises(ValueError, match="No training of competitor has the measure 'AUC'"):
        curves.best_candidate(two().query("side == 'ours'"), "AUC", side="competitor")


def test_candidates_are_compared_split_by_split():
    text = curves.compare_paired_repeats(two(), "AUC", "ours", "theirs")
    assert "ours ends with the better AUC, by 0.099 to 0.1" in text
    found = re.search(r"ours is ([\d.]+) to ([\d.]+) times faster to within 1 % of the lesser of both ends", text)
    assert float(found[1]) < 8 < float(found[2]) < 2 * float(found[1]), "its first epoch is good enough"
    worse = curves.compare_paired_repeats(two(measure="log loss"), "log loss", "ours", "theirs")
    assert "theirs ends with the better log loss" in worse


@pytest.mark.parametrize(("measure", "target"), [("AUC", 0.99 * 0.7), ("log loss", 1.01 * 0.8)])
def test_the_target_of_a_pair_is_the_worse_of_both_ends_less_one_percent(measure, target):
    ends = [{1: curves.End(1.0, 0.8), 2: curves.End(1.0, 0.5)}, {1: curves.End(2.0, 0.7)}]
    assert curves.targets_by_repeat(*ends, measure) == {1: pytest.approx(target)}


def test_the_best_of_ours_is_set_beside_the_best_competitor():
    title, sentence = curves.headline(two(), "AUC")
    assert title == "ours ends with the best AUC, 0.778 to 0.916"
    assert sentence == curves.compare_paired_repeats(two(), "AUC", "ours", "theirs")
    other = curves.frame([point("x", seconds=2.0, measure="RMSE"), point("y", measure="RMSE")])
    mixed = pd.concat([two(), other])
    assert curves.headline(mixed, "RMSE")[1].startswith("x and y: "), (
        "competitors of another measure are none of this one"
    )
    alone = curves.frame([point()])
    assert curves.headline(alone, "AUC")[1] == "ours ends with AUC about 0.5 after about 1 s."


def test_a_competitor_is_set_beside_ours_of_its_model():
    names = {
        "a, lazy update": "ours",
        "a, exact update": "ours",
        "b": "ours",
        "a in C": "competitor",
        "D": "competitor",
    }
    ends = [(who, side, repeat) for who, side in names.items() for repeat in range(4)]
    values = [0.9 if who == "b" else 0.5 + 0.01 * len(who) for who, _, _ in ends]
    points = [
        point(who, repeat, value=value, side=side) for (who, side, repeat), value in zip(ends, values, strict=True)
    ]
    said = curves.sentences(curves.frame(points), "AUC")[len(names) :]
    assert [text.partition(":")[0] for text in said] == [
        *("b and a, lazy update", "b and a, exact update"),
        *("a, lazy update and a in C", "a, exact update and a in C", "b and D"),
    ]


def test_what_cannot_be_told_is_said_so():
    text = curves.compare_paired_repeats(two(repeats=3), "AUC", "ours", "theirs")
    assert "which ends with the better AUC is inconclusive, fewer than four repeats of both" in text
    assert "the time to within 1 % of the lesser of both ends is inconclusive, fewer than four repeats" in text
    assert curves.sentences(two(repeats=3), "AUC")[-1].startswith("Fewer than four repeats: which is better")
    alike = curves.frame([point(who, repeat) for who in "ab" for repeat in range(4)])
    assert "a and b: their AUC is the same" in curves.compare_paired_repeats(alike, "AUC", "a", "b")
    level = [point("a", r, value=0.5 + 0.01 * (-1) ** r) for r in range(4)] + [point("b", r) for r in range(4)]
    assert "their AUC cannot be distinguished" in curves.compare_paired_repeats(curves.frame(level), "AUC", "a", "b")


def test_a_reference_is_no_candidate():
    both = curves.frame([point(), point("click rate", side="reference", seconds=None, epoch=None)])
    assert list(curves.final_values(both, "AUC")) == ["ours"]
    ended, level, few = curves.sentences(both, "AUC")
    assert ended == "ours ends with AUC about 0.5 after about 1 s."
    assert level == "click rate: AUC 0.5, with no training."
    assert few.startswith("Fewer than four repeats: ")


def test_a_reference_is_to_be_beaten_and_a_bound_is_not():
    levels = [point("known", side=side, value=value) for side, value in (("reference", 0.6), ("bound", 0.99))]
    both = curves.frame([*two().to_dict("records"), *(level | {"who": level["side"]} for level in levels)])
    assert curves.reference_levels(both, "AUC") == {"reference": 0.6, "bound": 0.99}


def test_a_point_with_other_columns_is_refused():
    with pytest.raises(ValueError, match="A point has who; it has epoch, measure"):
        curves.frame([{"who": "x"}])
