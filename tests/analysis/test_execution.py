"""How each side was held and executed: said of every side, and what an unequal execution could change is bounded."""

from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import advise, breakeven, configurations, contests, execution
from workbench.analysis.standings import headline_of

STEPS_ONLY = (maker.DENSE, maker.SPARSE, replace(maker.SPARSE, launch="epoch", fixed=5e-5, slope=0.05))
BASE = {"engine": "dense", "gradient": "dense", "update": "standard", "threads": 2, "format": "dense"}
SPARSE = BASE | {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"}


def group_of(*laws, **known):
    (group,) = configurations.groups(store.frame(maker.sweep(laws, **{"noise": 0.003, "rounds": 60} | known)))
    return group


def without_phases(row):
    return row | {name: None for name in row if name.startswith("seconds_") and name.removeprefix("seconds_") in PHASES}


PHASES = (*execution.AROUND, *execution.KERNELS)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (BASE, "held as a dense array, a step at a time by BLAS, up to 2 threads"),
        (BASE | {"serial": True}, "held as a dense array, a step at a time by BLAS, 1 thread"),
        (
            BASE | {"hold": "uint8", "launch": "epoch", "threads_used": 2},
            "held as uint8 and widened a batch at a time, the epoch in one compiled call, 2 threads",
        ),
        (
            BASE | {"densified": [{"op": "batch from csr"}], "device": "cuda"},
            "held as CSR and made dense a batch at a time, a step at a time by cuBLAS, on cuda",
        ),
        (
            SPARSE | {"threads_used": 1},
            "held as CSR, gradient fused with the update, lazy update, a step at a time, 1 thread",
        ),
        (
            SPARSE | {"format": "csc", "engine": "vendor", "gradient": "dense", "update": "standard", "ahead": True},
            "held as CSR, batches converted to CSC, dense gradient, update of all rows, a step at a time by SciPy, "
            "batches prepared ahead, up to 2 threads",
        ),
        (
            SPARSE | {"launch": "dual", "update": "exact", "trainers": 2},
            "held as CSR, exact update, dual ascent, the epoch in one compiled call, 2 trainers",
        ),
    ],
)
def test_a_row_says_how_it_was_held_and_executed(row, said):
    assert execution.describe(row) == said


def test_the_headline_names_both_sides():
    group = group_of(*maker.BOTH_AT_THEIR_BEST)
    said = headline_of(group, "seconds_step").executed
    assert said == (
        "Dense: held as a dense array, the epoch in one compiled call, up to 2 threads. "
        "Sparse: held as CSR, lazy update, the epoch in one compiled call, up to 2 threads."
    )


def test_a_side_that_did_not_run_is_not_described():
    group = group_of(maker.DENSE, maker.SPARSE)
    first = contests(group.rows, "seconds_step")[0]
    unfit = first._replace(dense=dict(first.dense) | {"status": "memory"})
    assert execution.describe_sides(unfit).startswith("Sparse: ")


def unequal(group, density):
    rows = [row for row in group.rows if row["density"] == density]
    (one,) = contests(rows, "seconds_step")
    return one, execution.describe_inequality(one, rows)


IN_CALLS = (maker.DENSE, maker.DENSE_IN_CALLS, maker.SPARSE)
DENSE_STEPS = "Dense was run a step at a time, sparse in one call"
OF_DENSE = f"{DENSE_STEPS}: one call made sparse 2 times as fast as a step at a time; dense with the same gain would be"
OF_SPARSE = (
    "Sparse was run a step at a time, dense in one call: one call made dense 2 times as fast as a step at a time; "
    "sparse with the same gain would be"
)


@pytest.mark.parametrize(
    ("laws", "density", "verdict", "expected"),
    [  # steps of sparse take twice as long as its epochs: dense 3 times as long would then be 1.5 times slower
        (STEPS_ONLY, 0.03, "sparse", f"{OF_DENSE} 2.6 times slower than sparse."),
        (STEPS_ONLY, 0.1, "sparse", f"{OF_DENSE} 1.3 times faster than sparse."),
        (STEPS_ONLY, 0.3, "dense", f"{DENSE_STEPS}; dense wins all the same."),
        (IN_CALLS, 0.1, "dense", f"{OF_SPARSE} 1.3 times slower than dense."),
    ],
)
def test_one_call_against_steps_is_bounded_by_what_one_call_gained_on_the_other_side(laws, density, verdict, expected):
    one, said = unequal(group_of(*laws), density)
    assert (one.verdict, said) == (verdict, expected)


def test_without_steps_of_the_other_side_the_bound_is_what_is_outside_of_the_kernels():
    """Slice, convert and plan are 15 % of a step in these rows."""
    group = group_of(maker.DENSE, STEPS_ONLY[2])
    _, said = unequal(group, 0.03)
    assert "15 % of a step of dense is outside of forward, loss, gradient and update; dense without that" in said
    assert said.endswith("would be 4.4 times slower than sparse.")


def test_without_phases_no_bound_is_known():
    rows = [without_phases(row) for row in maker.sweep((maker.DENSE, STEPS_ONLY[2]), noise=0.003)]
    (group,) = configurations.groups(store.frame(rows))
    assert unequal(group, 0.03)[1].endswith("is not known, since the phases of its steps were not timed.")


def test_a_side_that_had_its_chance_is_not_said_to_be_unequal():
    """Dense in one call was measured and lost to dense steps: both sides are at their best."""
    slow = replace(maker.DENSE_IN_CALLS, fixed=2 * maker.DENSE.fixed)
    assert unequal(group_of(*STEPS_ONLY, slow), 0.03)[1] == ""
    assert unequal(group_of(maker.DENSE, maker.SPARSE), 0.03)[1] == ""


def test_the_advice_warns_of_unequal_executions_where_they_could_change_most():
    frame = store.frame(maker.sweep(STEPS_ONLY, noise=0.003))
    (said,) = [text for text in advise(frame).warnings if "in one call" in text]
    assert said.startswith("At 10 % dense was run a step at a time, sparse in one call")
    equal = store.frame(maker.sweep(maker.BOTH_AT_THEIR_BEST, noise=0.003))
    assert not [text for text in advise(equal).warnings if "in one call:" in text]
    assert breakeven(equal)[0].sentence
