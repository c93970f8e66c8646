"""Recommendations from rows of a known law: the right choice, its doubts, and the rows behind each sentence."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as made
from tests.support.rows import DENSE, SPARSE
from workbench import store
from workbench.analysis.compare import HOLDS_ONE, LARGER_BUDGET, PREDICTED, REMEDY, Contest
from workbench.analysis.formatting import Ratio
from workbench.analysis.grades import grade_comparison
from workbench.analysis.recommendation import recommend

QUICK = replace(SPARSE, gradient="fused", update="lazy", fixed=5e-5, slope=0.06)
SLOW = replace(SPARSE, engine="vendor", gradient="dense", fixed=3e-4, slope=0.3)


def swept(laws=(DENSE, SPARSE, QUICK, SLOW), density=0.01, noise=0.03, is_natural=True, **known) -> list[dict]:
    rows = made.sweep(laws, (density,), noise=noise, **known)
    return [with_key({**row, "density": None if is_natural else density}) for row in rows]


def with_key(row: dict) -> dict:
    return row | {"key": made.key_of(row)}


def said(rows):
    return recommend(store.frame(rows))


def test_the_fastest_is_recommended_with_its_gain_over_dense():
    came = said(swept())
    assert (came.verdict, came.settings["gradient"], came.settings["update"]) == ("sparse", "fused", "lazy")
    assert re.match(r"Go sparse: it is 12 \(95 %: 11 to 1[34]\) times faster; it needs 7", str(came.headline))
    assert "Take CSR ours (fused gradient, lazy update), with 256 rows a batch;" in str(came.grounds[0])
    truth = DENSE.seconds(0.01) / QUICK.seconds(0.01)
    assert came.time.ratio.low < truth < came.time.ratio.high
    assert came.memory.verdict == "sparse"


def test_every_sentence_names_the_cells_that_it_rests_on():
    rows = swept()
    keys = {row["key"] for row in rows}
    came = said(rows)
    assert came.key in keys
    for sentence in came.sentences:
        assert sentence.keys, sentence.text
        assert set(sentence.keys) <= keys


def test_dense_is_recommended_where_it_is_faster():
    came = said(swept(density=0.3))
    assert (came.verdict, came.settings["format"]) == ("dense", "dense")
    assert str(came.headline).startswith("Stay dense")


def test_what_trains_another_model_is_not_recommended_but_told_of():
    exact = replace(QUICK, update="exact")
    came = said(swept(laws=(DENSE, SPARSE, exact, replace(QUICK, fixed=1e-5, slope=0.01))))
    assert came.settings["update"] == "exact"
    assert "lazy" not in str(came.grounds[1])


def test_sides_that_cannot_be_told_apart_are_inconclusive_with_what_to_do():
    came = said(swept(laws=(replace(DENSE, fixed=SPARSE.seconds(0.01) * 1.02), SPARSE), noise=0.5, shared=0.0))
    assert came.verdict == "inconclusive"
    assert str(came.headline).startswith(("Inconclusive, take ", "Probably "))
    assert re.search(
        r"dense takes 0\.\d+ to \d(\.\d)? times as long as sparse; choosing (sparse|dense) takes at most 1\.\d+ times",
        str(came.headline),
    )


def test_dense_that_does_not_fit_is_told_with_its_bytes():
    rows = [made.unfit(row) if row["format"] == "dense" else row for row in swept()]
    came = said(rows)
    assert (came.verdict, came.time.ratio) == ("sparse", None)
    assert "dense needs 82 GB and the limit is 16 GB" in str(came)


def test_a_busy_machine_bounds_a_large_factor_and_leaves_a_small_one_likely():
    came = said([made.disturbed(row) for row in swept()])
    assert (came.verdict, came.settings["gradient"]) == ("sparse", "fused")
    assert came.time.is_beside_others
    assert re.search(
        r"^Go sparse: it is at least \d\.\d times faster \(other programs were running\); it needs 7",
        str(came.headline),
    )
    near = said([made.disturbed(row) for row in swept(laws=(replace(DENSE, fixed=1.4 * QUICK.seconds(0.01)), QUICK))])
    assert (near.verdict, near.time.likely) == ("inconclusive", "sparse")
    assert re.match(r"Probably sparse: \d(\.\d)? times faster \(\d\d %\)", str(near.headline))
    assert "less memory" in str(near.grounds[2])


def test_where_nothing_ran_the_reasons_are_told():
    came = said([made.failed(row, "failed", "OSError: no disk") for row in swept()])
    assert (came.verdict, came.settings) == ("none", None)
    assert str(came.headline) == "There is no answer: OSError: no disk"


@pytest.mark.parametrize("lucky", [0.93, 1.1])
def test_who_left_the_race_is_not_said_to_be_slower_or_faster_for_one_round(lucky):
    """Its one round says which of two to take, and no more than that: the other cannot be distinguished from it."""
    rows = [row for row in swept(rounds=9) if row["engine"] != "vendor" or row["round"] == 0]
    first = next(row for row in rows if row["gradient"] == "fused" and row["round"] == 0)
    rows = [row | {"seconds_step": lucky * first["seconds_step"]} if row["engine"] == "vendor" else row for row in rows]
    came = said(rows)
    assert came.settings["engine"] == ("vendor" if lucky < 1 else "ours")
    assert any(" cannot be distinguished from it: it takes 0." in str(ground) for ground in came.grounds)
    assert came.time.ratio.rounds == (1 if lucky < 1 else 9)


def test_who_left_after_a_round_is_slower_and_memory_is_that_of_who_stayed():
    laws = (DENSE, replace(DENSE, serial=True, fixed=3 * DENSE.fixed), QUICK, SLOW)
    came = said(
        [row for row in swept(laws=laws) if row["round"] == 0 or not (row["serial"] or row["engine"] == "vendor")]
    )
    assert any(str(ground).startswith("The next sparse one, CSR vendor") for ground in came.grounds)
    assert came.memory.verdict == "sparse"


def test_of_batches_nearly_as_fast_the_smallest_is_taken_and_a_much_faster_one_is():
    small = swept()
    alike = swept(
        laws=[replace(law, fixed=4 * law.fixed, slope=4 * law.slope) for law in (DENSE, QUICK)], batch_rows=1024
    )
    quicker = swept(laws=(DENSE, QUICK), batch_rows=1024)
    assert said(small + alike).settings["batch_rows"] == 256
    came = said(small + quicker)
    assert came.settings["batch_rows"] == 1024
    [of_batches] = [str(ground) for ground in came.grounds if str(ground).startswith("An epoch takes")]
    assert "by seconds an epoch alone: its epochs have fewer updates, which trains another model" in of_batches
    assert "--batch-rows 256 keeps to the smaller one" in of_batches


def test_few_rounds_that_are_far_apart_decide_and_others_have_an_interval():
    far, near = said(swept(rounds=1)), said(swept(laws=(replace(DENSE, fixed=8e-4), QUICK), rounds=1))
    assert (far.verdict, near.verdict) == ("sparse", "inconclusive")
    for came in (far, near):
        assert 0 < came.time.ratio.low < came.time.ratio.value < came.time.ratio.high < 100
        assert came.time.ratio.rounds == 1
    assert far.time.ratio.low <= DENSE.seconds(0.01) / QUICK.seconds(0.01) <= far.time.ratio.high
    assert str(near.headline).startswith(("Probably sparse: ", "Inconclusive, take "))


def test_the_answer_is_of_the_lowest_density_that_is_decided_of_those_with_most_configurations():
    low, high = swept(is_natural=False), swept(density=0.3, is_natural=False)
    assert said(low + high).verdict == "sparse"
    assert said([row for row in low if row["engine"] != "vendor"] + high).verdict == "dense"
    assert said(swept(laws=(replace(DENSE, fixed=6e-4), QUICK), rounds=1, is_natural=False) + high).verdict == "dense"


@pytest.mark.parametrize("density", np.geomspace(0.003, 0.3, 5))
def test_the_side_is_right_on_both_sides_of_the_crossing(density):
    truth = min((DENSE, QUICK, SLOW), key=lambda law: law.seconds(density))
    came = said(swept(laws=(DENSE, QUICK, SLOW), density=float(density), noise=0.02))
    assert came.settings["format"] == truth.format


def test_dense_that_cannot_fit_loses_to_sparse_that_had_no_time():
    skipped = {"seconds_step": None, "bytes_peak": None, "status": "skipped", "seconds_predicted": 1e-4}
    rows = [made.unfit(row) if row["format"] == "dense" else row | skipped for row in swept(rounds=1)]
    came = said(rows)
    assert (came.verdict, came.time.source, came.time.ratio) == ("sparse", "bounded", None)
    assert str(came.headline) == "Go sparse: dense needs 82 GB and the limit is 16 GB."


@pytest.mark.parametrize(("seconds", "side"), [(5e-5, "dense"), (2e-4, "csr")])
def test_of_a_side_that_had_no_time_the_prediction_decides_which_one_to_take(seconds, side):
    dense = {"seconds_step": None, "seconds_first_step": None, "status": "stopped", "seconds_predicted": seconds}
    rows = [row | ({"seconds_predicted": 1e-4} if row["format"] != "dense" else dense) for row in swept(rounds=1)]
    came = said(rows)
    assert (came.time.source, came.settings["format"]) == ("predicted", side)


def test_predictions_that_do_not_decide_ask_for_a_larger_budget():
    ratio = Ratio(1.0, 0.3, 3.0, 0, 0, 0.5)
    predicted = Contest(0.1, {}, {}, "inconclusive", ratio, HOLDS_ONE, source=PREDICTED)
    assert predicted.remedy == LARGER_BUDGET
    assert predicted._replace(ratio=ratio._replace(rounds=2)).remedy == REMEDY[HOLDS_ONE]
    assert predicted._replace(verdict="sparse", why="").remedy == ""


def test_a_difference_in_memory_below_its_error_is_called_so_and_not_about_the_same():
    small = Contest(0.1, {}, {}, "inconclusive", Ratio(2.8, 0.09, 39, 1, 1, 0.5), HOLDS_ONE)
    assert grade_comparison(small, "bytes_peak").endswith("is smaller than the error with which memory is known")
    near = small._replace(ratio=Ratio(1.0, 0.9, 1.3, 1, 1, 0.5))
    assert grade_comparison(near, "bytes_peak") == "the two need about the same memory (0.9 to 1.3)"
