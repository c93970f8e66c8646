"""How each side was held and executed: said of every side, and what an unequal execution could change is bounded."""

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import configurations, contests, execution
from workbench.analysis.standings import headline_of

BASE = {"engine": "dense", "gradient": "dense", "update": "standard", "threads": 2, "format": "dense"}
SPARSE = BASE | {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"}


def group_of(*laws, **known):
    (group,) = configurations.groups(store.frame(maker.sweep(laws, **{"noise": 0.003, "rounds": 60} | known)))
    return group


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
