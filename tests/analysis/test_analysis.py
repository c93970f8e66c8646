"""From rows to an answer: pooling, intervals, verdicts, break-evens against known laws, and the words of the advice."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import advise, breakeven, cells, compare, groups, latest, median_interval, verdict

DENSE, SPARSE = maker.DENSE, maker.SPARSE
LINEAR = replace(SPARSE, fixed=0.0)  # a straight line in the logarithms: interpolation is exact


def frame(*laws, **known):
    return store.frame(maker.sweep(laws or (DENSE, SPARSE), **known))


def only(found):
    (one,) = found
    return one


def test_the_interval_of_a_median_lies_between_the_ranks_of_the_binomial():
    assert median_interval(range(1, 21)) == (10.5, 6.0, 15.0)
    assert median_interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert median_interval([7.0]) == (7.0, 7.0, 7.0)


@pytest.mark.parametrize("size", [6, 13, 40])
def test_the_interval_holds_the_median_as_often_as_it_says(size):
    drawn = np.random.default_rng(1).lognormal(size=(1500, size))
    ends = np.array([median_interval(samples)[1:] for samples in drawn])
    covered = np.mean((ends[:, 0] <= 1.0) & (ends[:, 1] >= 1.0))
    assert 0.94 < covered < 0.99


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")]])
def test_an_interval_needs_finite_samples(samples):
    with pytest.raises(ValueError, match="needs finite samples"):
        median_interval(samples)


def test_rounds_of_a_cell_are_pooled():
    pooled = latest(frame(rounds=3, samples=10))
    assert len(pooled) == 2 * len(maker.DENSITIES)
    assert set(pooled["rounds"]) == {3}
    row = pooled.iloc[0]
    assert len(row["samples"]) == 30
    assert (row["seconds_step"], row["seconds_step_low"], row["seconds_step_high"]) == median_interval(row["samples"])
    assert len(row["round_values"]["bytes_peak"]) == 3
    assert latest(pooled) is pooled


def test_a_later_success_supersedes_failures_and_they_are_counted():
    good = maker.sweep((SPARSE,), (0.01,))[0]
    bad = maker.failed(good, "timeout", "no result after 60 s")
    row = latest(store.frame([bad, good])).iloc[0]
    assert (row["status"], row["rounds"], row["rounds_failed"]) == ("ok", 1, 1)
    row = latest(store.frame([good, bad])).iloc[0]
    assert (row["status"], row["rounds_failed"]) == ("ok", 1)
    row = latest(store.frame([bad, bad | {"status": "memory"}])).iloc[0]
    assert (row["status"], row["rounds"]) == ("memory", 0)


def test_a_round_measured_twice_counts_once_and_rows_of_older_code_do_not():
    old, again, newer = (maker.sweep((SPARSE,), (0.01,), seed=seed)[0] for seed in range(3))
    assert latest(store.frame([old, again])).iloc[0]["samples"] == again["samples"]
    pooled = latest(store.frame([old, newer | {"source": "new", "round": 1}])).iloc[0]
    assert pooled["samples"] == newer["samples"]


def test_cells_of_different_machines_are_not_pooled_nor_compared():
    rows = maker.sweep((SPARSE,)) + maker.sweep((DENSE,), machine="bench-2")
    assert len(groups(store.frame(rows))) == 2
    assert {even.status for even in breakeven(store.frame(rows))} == {"no_baseline"}


def test_groups_come_largest_first_with_labels_that_tell_them_apart():
    found = groups(store.frame(maker.rich()))
    assert [group.label for group in found] == ["width 16", "width 64"]
    assert len(found[0].rows) > len(found[1].rows)
    assert groups(store.frame()) == []
    both = maker.sweep(batch_rows=4096) + maker.sweep(batch_rows=4096, intercept=True)
    assert [group.label for group in groups(store.frame(both))] == ["without an intercept", "with an intercept"]
    assert ", 4,096 rows a batch, " in only(groups(store.frame(maker.sweep(batch_rows=4096)))).label


def test_a_row_that_failed_before_its_data_was_read_joins_the_group_it_agrees_with():
    rows = maker.sweep()
    rows[0] = maker.failed(rows[0], "timeout", "no result after 60 s") | {"features": None, "rows_total": None}
    assert len(only(groups(store.frame(rows))).rows) == len(rows)


def sides(sparse, dense, **known):
    made = ({"seconds_step": (a + b) / 2, "seconds_step_low": a, "seconds_step_high": b} for a, b in (sparse, dense))
    return tuple(side | {"status": "ok", "samples": [1.0] * 20} | known for side in made)


@pytest.mark.parametrize(
    ("sparse", "dense", "expected"),
    [
        ((1, 2), (3, 4), "sparse"),
        ((3, 4), (1, 2), "dense"),
        ((1, 3), (2, 4), "undecided"),
        ((1, 2), (2, 3), "undecided"),
    ],
)
def test_a_verdict_needs_intervals_that_lie_apart(sparse, dense, expected):
    assert verdict(*sides(sparse, dense), "seconds_step") == expected


def test_three_samples_decide_nothing_and_what_did_not_fit_loses():
    assert verdict(*sides((1, 2), (3, 4), samples=[1.0] * 3), "seconds_step") == "undecided"
    sparse, dense = sides((1, 2), (3, 4))
    assert verdict(sparse, dense | {"status": "memory"}, "seconds_step") == "sparse"
    assert verdict(sparse | {"status": "memory"}, dense, "seconds_step") == "dense"
    assert verdict(sparse | {"status": "failed"}, dense, "seconds_step") == "undecided"


def test_the_same_thing_measured_twice_is_undecided():
    rng = np.random.default_rng(5)
    pairs = [[maker.row(law, 0.01, rng) for law in (DENSE, replace(SPARSE, fixed=8e-3, slope=0.0))] for _ in range(100)]
    pooled = [latest(store.frame(pair)) for pair in pairs]
    told = [verdict(*(cells.records(pair)[::-1]), "seconds_step") for pair in pooled]
    assert told.count("undecided") >= 95


def test_without_noise_the_crossing_is_exact():
    even = only(breakeven(frame(DENSE, LINEAR, noise=1e-9)))
    assert even.status == "crossing"
    assert even.density == pytest.approx(1.002 * maker.crossing(LINEAR), rel=1e-6)
    assert even.low == pytest.approx(even.high, rel=1e-6)
    assert list(even.line.values())[:4] == ["csr", "ours", "row_sparse", "standard"]


def test_the_interval_holds_the_true_crossing_in_about_95_of_100_repetitions():
    truth = 1.002 * maker.crossing(LINEAR)
    found = [
        only(breakeven(frame(DENSE, LINEAR, densities=(0.03, 0.06, 0.12), seed=seed, noise=0.1), resamples=400))
        for seed in range(150)
    ]
    assert np.mean([even.low <= truth <= even.high for even in found]) >= 0.9
    widths = [even.high / even.low for even in found]
    assert 1.02 < np.median(widths) < 1.4, "an interval that always holds it could be too wide to be of use"


def test_a_fixed_cost_and_memory_have_their_own_crossings():
    grid = tuple(np.geomspace(0.01, 0.4, 12))
    time, memory = (only(breakeven(frame(densities=grid), measure)) for measure in ("seconds_step", "bytes_peak"))
    assert time.density == pytest.approx(maker.crossing(), rel=0.05)
    assert memory.density == pytest.approx((100e6 - 10e6) / 400e6, rel=0.02)


def test_one_round_of_memory_has_no_interval_and_says_so():
    even = only(breakeven(frame(), "bytes_peak"))
    assert even.low == even.high == even.density
    assert "(measured once, so no interval)" in even.sentence
    even = only(breakeven(frame(rounds=4, noise=1.0), "bytes_peak"))
    assert even.low < even.high
    assert "95 % interval" in even.sentence


@pytest.mark.parametrize(
    ("law", "status", "words"),
    [
        (replace(SPARSE, slope=1e-3), "sparse", "beats dense in time at every density measured, up to 30.1 %"),
        (replace(SPARSE, fixed=0.02), "dense", "in time at every density measured, from 0.1 %, where it is"),
        (
            replace(SPARSE, fixed=8e-3, slope=0.0),
            "undecided",
            "cannot be told from dense in time at any density measured, from 0.1",
        ),
    ],
)
def test_where_nothing_crosses_the_sentence_says_who_wins(law, status, words):
    even = only(breakeven(frame(DENSE, law)))
    assert (even.status, even.density) == (status, None)
    assert words in even.sentence
    assert even.low == (pytest.approx(0.3006) if status == "sparse" else None)
    assert even.high == (pytest.approx(0.001002) if status == "dense" else None)


def with_law(seconds, **known):
    """Rows whose sparse time at each density is given."""
    made = [maker.sweep((DENSE, replace(SPARSE, fixed=s, slope=0.0)), (d,), **known) for d, s in seconds.items()]
    return store.frame([row for pair in made for row in pair])


def test_several_crossings_are_not_made_into_one():
    even = only(breakeven(with_law({0.001: 1e-3, 0.01: 2e-2, 0.1: 2e-3, 0.3: 4e-2})))
    assert even.status == "several"
    assert "sparse at 0.1 %, dense at 1 %, sparse at 10 % and dense at 30.1 %; no one break-even" in even.sentence
    assert even.low == even.density < even.high
    assert only(breakeven(with_law({0.001: 2e-2, 0.1: 1e-3}))).status == "several", (
        "dense first is no break-even either"
    )


def test_noise_near_the_crossing_does_not_make_several_of_it():
    level = {0.001: 1e-3, 0.01: 4e-3, 0.03: 8.02e-3, 0.04: 7.98e-3, 0.05: 8.03e-3, 0.3: 3e-2}
    even = only(breakeven(with_law(level, noise=0.1)))
    assert even.status == "crossing"
    assert 0.01 < even.low <= even.density <= even.high < 0.3


def test_dense_that_does_not_fit_loses_with_the_bytes_it_needs():
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    even = only(breakeven(store.frame(rows)))
    assert (even.status, even.density, even.low) == ("feasible", None, pytest.approx(0.3006))
    assert "dense needs 82 GB and the limit is 16 GB" in even.sentence


def test_a_missing_side_or_a_single_density_is_said():
    told = {
        "no_baseline": [row for row in maker.sweep() if row["format"] != "dense"],
        "infeasible": [maker.unfit(row) if row["format"] == "csr" else row for row in maker.sweep()],
        "too_few": maker.sweep(densities=(0.01,)),
    }
    for status, rows in told.items():
        even = only(breakeven(store.frame(rows)))
        assert even.status == status
    assert "at one density, 1 %: sparse is better there, " in even.sentence


def test_the_same_frame_gives_the_same_break_even_whatever_else_it_holds():
    alone = only(breakeven(frame()))
    both = breakeven(store.frame(maker.sweep() + maker.sweep((replace(SPARSE, format="csc"),), seed=9)))
    assert both[0] == alone
    assert breakeven(store.frame()) == []
    with pytest.raises(ValueError, match="no measure 'speed'; there is: seconds_step"):
        breakeven(frame(), "speed")


def test_the_verdict_comes_first_and_separates_time_from_memory():
    advice = advise(frame())
    assert advice.sentences[0] == advice.verdict
    assert re.match(r"For time, go sparse below 8\.\d+ % density \(95 % interval", advice.verdict)
    assert "For memory, go sparse below 22.2 % density: CSR ours" in advice.verdict
    assert "Above that, stay dense." in advice.verdict
    assert any("dense beats the best sparse" in sentence for sentence in advice.time)


def test_where_dense_wins_or_nothing_is_decided_it_says_so_plainly():
    assert "For time, stay dense" in advise(frame(DENSE, replace(SPARSE, fixed=0.1))).verdict
    same = advise(frame(DENSE, replace(SPARSE, fixed=8e-3, slope=0.0)))
    assert "For time it is undecided: the intervals overlap at every density" in same.verdict
    assert "the intervals overlap" in same.time[0]
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    assert "it runs where dense needs 82 GB and the limit is 16 GB" in advise(store.frame(rows)).verdict
    assert advise(store.frame()).sentences == ("There is no answer yet: no rows were given.",)


def test_a_lazy_update_that_trains_worse_is_named_and_does_not_win():
    lazy = replace(SPARSE, update="lazy", fixed=1e-5, slope=0.01)
    worse = advise(frame(DENSE, SPARSE, replace(lazy, loss_last=0.4)))
    assert "lazy" not in worse.verdict
    assert any("trained a worse model" in sentence and "0.4 instead of 0.35" in sentence for sentence in worse.warnings)
    assert "lazy update" in advise(frame(DENSE, SPARSE, lazy)).verdict


def test_a_noisy_configuration_is_not_level_with_a_better_one():
    noisy = maker.sweep((replace(SPARSE, format="coo", fixed=2e-4),), noise=3.0, seed=3)
    steady = maker.sweep((DENSE, SPARSE), densities=maker.DENSITIES)
    found = compare.contests(cells.records(latest(store.frame(noisy + steady))), "seconds_step")
    assert {contest.sparse["format"] for contest in found[:3]} == {"csr"}
    alike = replace(SPARSE, format="csc")
    found = compare.contests(cells.records(latest(frame(DENSE, SPARSE, alike, noise=1e-6))), "bytes_peak")
    assert [row["format"] for row in found[0].level] == ["csc"]


def test_losses_after_different_numbers_of_steps_are_not_compared():
    rows = cells.records(latest(frame(SPARSE, replace(SPARSE, update="lazy", loss_last=0.4), densities=(0.01,))))
    assert len(compare.trained_worse(rows)) == 1
    rows[1]["curve"] = rows[1]["curve"][:-1]
    assert compare.trained_worse(rows) == []


def test_warnings_failures_and_what_the_answer_depends_on_are_told():
    advice = advise(store.frame(maker.rich()))
    assert any("made a dense array in dot (10.2 MB)" in sentence for sentence in advice.warnings)
    assert "3 of 54 cells have no result" in advice.failures[0]
    assert "1 timeout (no result after 60 s)" in advice.failures[0]
    assert any("moves with width: CSR ours" in sentence for sentence in advice.would_change)
    prepared = advise(frame(seconds_slice=0.0, seconds_convert=0.0, seconds_plan=0.0, seconds_prepare=1e-3))
    assert any("Batches repeat" in sentence for sentence in prepared.warnings)


def long_numbers(text):
    """Numbers with more than three significant digits, names and counts with separators aside."""
    return [n for n in re.findall(r"\d+\.?\d*", text) if len(n.replace(".", "").strip("0")) > 3]


def test_no_sentence_has_more_than_three_significant_digits():
    told = advise(store.frame(maker.rich())).sentences + tuple(e.sentence for e in breakeven(store.frame(maker.rich())))
    assert not [number for sentence in told for number in long_numbers(sentence)]
    assert long_numbers("12.34 ms") == ["12.34"], "the search itself must be able to find one"
