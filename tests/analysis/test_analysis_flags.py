"""What makes an answer doubtful: other programs at work while cells were timed."""

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import advise


def advice_with(busy: int, share: float = 0.6) -> object:
    """Of a sweep of which so many cells were timed beside other programs, which took that share of the cores."""
    made = maker.sweep((maker.DENSE, maker.SPARSE))
    assert len(made) >= 10
    return advise(store.frame([row | {"busy_others": share if k < busy else 0.0} for k, row in enumerate(made)]))


def test_a_verdict_from_a_quiet_machine_has_no_doubt() -> None:
    quiet = advice_with(0)
    assert "Doubtful" not in quiet.verdict
    assert not any("other programs" in sentence for sentence in quiet.sentences)
    assert advice_with(99, share=0.05) == quiet


@pytest.mark.parametrize("busy", [1, 99])
def test_disturbed_cells_are_counted_and_where_they_are_many_the_verdict_says_so(busy: int) -> None:
    told = advice_with(busy)
    count = len(maker.sweep((maker.DENSE, maker.SPARSE)))
    (warning,) = (sentence for sentence in told.warnings if "other programs took up to 60 %" in sentence)
    assert warning.startswith(f"{min(busy, count)} of {count} cells")
    doubt = f"Doubtful: other programs were at work beside {count} of {count} cells; measure again alone."
    assert told.verdict.endswith(doubt) == (busy > 1)
    assert told.verdict.startswith(advice_with(0).verdict)
