"""Break-evens against known laws: where they lie, how well that is known, and that they never contradict a verdict."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as maker
from tests.support.pooled import neighbours, pooled
from workbench import store
from workbench.analysis import breakeven, configurations, contests
from workbench.analysis.breakeven import breakevens_of_group

DENSE, SPARSE = maker.DENSE, maker.SPARSE
LINEAR = replace(SPARSE, fixed=0.0)  # a straight line in the logarithms: interpolation is exact
NARROW = (0.02, 0.05, 0.06, 0.1, 0.12, 0.3)


def frame(*laws, **known):
    return store.frame(maker.sweep(laws or (DENSE, SPARSE), **known))


def only(found):
    (one,) = found
    return one


def test_without_noise_the_crossing_is_exact():
    near = (0.01, 0.07, 0.076, 0.08, 0.084, 0.09, 0.2)
    for law, densities in ((LINEAR, near), (SPARSE, near), (SPARSE, (0.01, 0.2))):
        even = only(breakeven(frame(DENSE, law, noise=1e-9, rounds=60, densities=densities)))
        assert even.status == "crossing"
        assert np.sqrt(even.low * even.high) < 1.3 * maker.crossing(law)
        if not even.is_range:
            assert even.density == pytest.approx(1.002 * maker.crossing(law), rel=1e-4)
            assert even.low < even.density < even.high < 1.11 * even.low
    assert even.place.startswith("somewhere between"), "two densities far apart do not tell it"
    assert "density to narrow it" in even.sentence
    even = only(breakeven(frame(DENSE, LINEAR, noise=1e-9, rounds=60, densities=near)))
    named = [even.line[name] for name in ("format", "engine", "gradient", "update")]
    assert named == ["csr", "ours", "row_sparse", "standard"]
    assert (even.place, even.is_range) == ("at 8 % density", False)


def simulated(rng, densities, truth, **noise):
    """The break-even of a sparse line that takes as long as dense at the density `truth`."""
    rows = []
    for density in densities:
        sparse, dense = neighbours(truth / density, rng, **noise)
        rows += [pooled(sparse, density), pooled(dense, density, "dense")]
    return only(breakevens_of_group(configurations.Group({}, "", rows), "seconds_step"))


def test_the_interval_holds_the_true_crossing_in_at_least_95_of_100_repetitions():
    rng = np.random.default_rng(2)
    made = [simulated(rng, (0.03, 0.06, 0.12, 0.24), 0.08, rounds=6, sd=0.15) for _ in range(200)]
    found = [even for even in made if even.status == "crossing"]
    assert len(found) > 180
    assert np.mean([even.low <= 0.08 <= even.high for even in found]) >= 0.95
    widths = [even.high / even.low for even in found]
    assert 1.05 < np.median(widths) < 2, "an interval that always holds it could be too wide to be of use"


@pytest.mark.parametrize("seed", range(8))
def test_a_break_even_lies_between_the_last_win_and_the_first_loss(seed):
    rows = store.frame(maker.sweep((DENSE, LINEAR), NARROW, noise=0.15, seed=seed))
    group, even = only(configurations.groups(rows)), only(breakeven(rows))
    verdicts = {contest.density: contest.verdict for contest in contests(group.rows, "seconds_step")}
    won = [density for density, verdict in verdicts.items() if verdict == "sparse"]
    lost = [density for density, verdict in verdicts.items() if verdict == "dense"]
    assert even.status == "crossing"
    assert max(won) <= even.low < even.high <= min(lost)
    open_ = [density for density, verdict in verdicts.items() if verdict in ("inconclusive", "level")]
    if open_:
        assert re.search(r"not decided|probably (sparse|dense)|equal", even.sentence)


def test_a_crossing_known_to_a_factor_of_two_is_a_range_and_no_number():
    even = only(breakeven(frame(noise=0.3, rounds=6)))
    assert (even.status, even.is_range, even.density) == ("crossing", True, None)
    assert even.high > 2 * even.low
    assert even.place.startswith("somewhere between ")
    assert even.place in even.sentence


def test_a_fixed_cost_and_memory_have_their_own_crossings():
    grid = tuple(np.geomspace(0.01, 0.4, 12))
    time, memory = (only(breakeven(frame(densities=grid), measure)) for measure in ("seconds_step", "bytes_peak"))
    assert time.density == pytest.approx(maker.crossing(), rel=0.1)
    assert memory.density == pytest.approx((100e6 - 10e6) / 400e6, rel=0.02)
    assert memory.low < memory.density < memory.high


LAWS = {
    "sparse": (replace(SPARSE, slope=1e-3), "sparse in time: sparse from 0.1 to 30.1 %."),
    "dense": (replace(SPARSE, fixed=0.02), "sparse in time: dense from 0.1 to 30.1 %."),
    "level": (replace(SPARSE, fixed=8e-3, slope=0.0), "sparse in time: equal from 0.1 to 30.1 %."),
}


@pytest.mark.parametrize("status", LAWS)
def test_where_nothing_crosses_the_sentence_says_who_wins(status):
    law, words = LAWS[status]
    even = only(breakeven(frame(DENSE, law, noise=0.01, rounds=30)))
    assert (even.status, even.density, even.place) == (status, None, "")
    assert words in even.sentence
    assert even.low == (pytest.approx(0.3006) if status == "sparse" else None)
    assert even.high == (pytest.approx(0.001002) if status == "dense" else None)


@pytest.mark.parametrize("change", [{"noise": 0.3, "seed": 2}, {"rounds": 1}], ids=["noise", "one round"])
def test_a_line_that_is_inconclusive_everywhere_has_no_break_even_and_says_why(change):
    even = only(breakeven(frame(DENSE, replace(SPARSE, fixed=8e-3, slope=0.0), **change)))
    assert (even.status, even.low, even.density, even.high) == ("inconclusive", None, None, None)
    assert "not decided" in even.sentence


def test_a_line_whose_losses_are_inconclusive_has_no_dense_wins_above():
    slower = replace(SPARSE, fixed=0.0, slope=0.09)
    rows = [row for row in maker.sweep((DENSE, slower), NARROW[:4]) if row["density"] < 0.1 or not row["round"]]
    even = only(breakeven(store.frame(rows)))
    assert (even.status, even.density, even.high) == ("sparse", None, None)
    assert even.sentence == "sparse in time: sparse from 2 to 6.01 %, not decided at 10 %."


def with_law(seconds, **known):
    """Rows whose sparse time at each density is given."""
    made = [maker.sweep((DENSE, replace(SPARSE, fixed=s, slope=0.0)), (d,), **known) for d, s in seconds.items()]
    return store.frame([row for pair in made for row in pair])


def test_several_crossings_are_not_made_into_one():
    even = only(breakeven(with_law({0.001: 1e-3, 0.01: 2e-2, 0.1: 2e-3, 0.3: 4e-2})))
    assert (even.status, even.density) == ("several", None)
    assert "sparse at 0.1 %, dense at 1 %, sparse at 10 %, dense at 30.1 %." in even.sentence
    assert (even.low, even.high) == (pytest.approx(0.001002), pytest.approx(0.3006))
    backwards = only(breakeven(with_law({0.001: 2e-2, 0.1: 1e-3})))
    assert backwards.status == "several", "dense first is no break-even either"


def test_noise_near_the_crossing_does_not_make_several_of_it():
    level = {0.001: 1e-3, 0.01: 4e-3, 0.03: 8.02e-3, 0.04: 7.98e-3, 0.05: 8.03e-3, 0.3: 3e-2}
    even = only(breakeven(with_law(level)))
    assert even.status == "crossing"
    assert 0.01 < even.low < even.high < 0.3


def test_other_programs_at_some_densities_leave_the_others():
    slower = [maker.DENSE, replace(maker.SPARSE, fixed=5.5 * maker.SPARSE.fixed, slope=5.5 * maker.SPARSE.slope)]
    rows = [maker.disturbed(row) if row["density"] == 0.01 else row for row in maker.sweep(slower)]
    quiet, even = only(breakeven(store.frame(maker.sweep(slower)))), only(breakeven(store.frame(rows)))
    assert even.status == quiet.status == "crossing"
    assert even.low < quiet.low < quiet.high < 1.01 * even.high
    assert ", probably sparse at 1 %, " in even.sentence
    all_of_them = only(breakeven(store.frame(map(maker.disturbed, maker.sweep()))))
    assert all_of_them.status == "crossing"
    assert all_of_them.low < maker.crossing() < all_of_them.high
    assert "probably dense at 10 %" in all_of_them.sentence


def test_dense_that_does_not_fit_loses_with_the_bytes_it_needs():
    rows = [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()]
    even = only(breakeven(store.frame(rows)))
    assert (even.status, even.density, even.low) == ("feasible", None, pytest.approx(0.3006))
    assert "dense did not fit in memory" in even.sentence


def test_a_missing_side_or_a_single_density_is_said():
    result = {
        "no_baseline": [row for row in maker.sweep() if row["format"] != "dense"],
        "infeasible": [maker.unfit(row) if row["format"] == "csr" else row for row in maker.sweep()],
        "too_few": maker.sweep(densities=(0.01,)),
    }
    for status, rows in result.items():
        even = only(breakeven(store.frame(rows)))
        assert even.status == status
    assert "sparse at 1 %; a break-even needs two densities." in even.sentence


def test_a_reason_that_ends_with_a_full_stop_ends_the_sentence_with_one():
    rows = [maker.unfit(row) | {"reason": "It is too large."} for row in maker.sweep() if row["format"] == "dense"]
    rows += [row for row in maker.sweep() if row["format"] != "dense"]
    assert not [even.sentence for even in breakeven(store.frame(rows)) if ".." in even.sentence]
    none = [row | {"status": "unsupported", "reason": "It is too large."} for row in rows if row["format"] != "dense"]
    dense = [row for row in maker.sweep() if row["format"] == "dense"]
    (even,) = breakeven(store.frame(none + dense))
    assert even.sentence.endswith("unsupported: It is too large.")


def test_other_configurations_of_a_frame_tell_of_its_noise_and_of_nothing_else():
    alone = only(breakeven(frame()))
    other = maker.sweep((replace(SPARSE, format="csc"),), seed=9)
    beside, _ = breakeven(store.frame(maker.sweep() + other))
    assert (beside.status, beside.line) == (alone.status, alone.line)
    assert (beside.low, beside.high) == pytest.approx((alone.low, alone.high), rel=0.05)
    assert (beside.low, beside.high) == pytest.approx((alone.low, alone.high), rel=0.1)
    of_machine = breakeven(store.frame(maker.sweep() + maker.sweep(machine="bench-2", noise=0.5)))
    assert alone in of_machine, "the noise of another machine is no part of it"
    assert breakeven(store.frame()) == []
    with pytest.raises(ValueError, match=r"Unknown measure 'speed'.*Expected one of: seconds_step"):
        breakeven(frame(), "speed")


CURVES = ("linear", "power", "linear and power", "saturating")


def drawn_curve(kind, random):
    """A density at which sparse takes as long as dense, and the sparse time by density over that of dense."""
    fixed, truth = random.uniform(0.02, 0.6), 10 ** random.uniform(-2.2, -0.5)
    power, share, knee = random.uniform(0.4, 2.0), random.uniform(), 10 ** random.uniform(-2, 0)
    shape = {
        "linear": lambda density: density / truth,
        "power": lambda density: (density / truth) ** power,
        "linear and power": lambda density: share * density / truth + (1 - share) * (density / truth) ** power,
        "saturating": lambda density: np.expm1(-density / knee) / np.expm1(-truth / knee),
    }[kind]
    return truth, lambda density: fixed + (1 - fixed) * shape(density)


@pytest.mark.covering(targets=lambda case: {(case["runs"], case["kind"]), (case["runs"], case["count"])})
@pytest.mark.parametrize("runs", [40, pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("kind", CURVES)
def test_the_interval_holds_the_crossing_of_curves_of_many_shapes_between_few_densities(kind, count, runs):
    random, held, widths = np.random.default_rng(CURVES.index(kind)), [], []
    for _ in range(runs):
        truth, ratio = drawn_curve(kind, random)
        ends = truth / 10 ** random.uniform(0.1, 1.5), min(truth * 10 ** random.uniform(0.1, 1.2), 1.0)
        rows = []
        for density in sorted([*ends, *np.exp(random.uniform(*np.log(ends), count - 2))]):
            sparse, dense = neighbours(1 / ratio(density), random, rounds=4, sd=0.05)
            rows += [pooled(sparse, density), pooled(dense, density, "dense")]
        even = only(breakevens_of_group(configurations.Group({}, "", rows), "seconds_step"))
        if even.status == "crossing":
            held.append(even.low <= truth <= even.high)
            widths.append(even.high / even.low)
    assert len(held) > runs / 3
    assert np.mean(held) >= 0.95
    assert np.median(widths) < {2: 20, 3: 15, 6: 6}[count]


def test_many_densities_make_a_break_even_narrow():
    rng, truth = np.random.default_rng(5), 0.2656
    rows = []
    for density in np.geomspace(0.1, 0.6, 16):
        sparse, dense = neighbours(1 / (0.15 + 3.2 * density), rng, rounds=6, sd=0.03)
        known = {"deviation": 0.03, "freedom": 50.0}
        rows += [pooled(sparse, density, **known), pooled(dense, density, "dense", **known)]
    even = only(breakevens_of_group(configurations.Group({}, "", rows), "seconds_step"))
    assert even.low < truth < even.high < 1.25 * even.low
    assert even.density == pytest.approx(truth, rel=0.1)
