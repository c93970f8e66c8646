"""Numbers in sentences have the digits that tell what their intervals allow to be told."""

import pytest

from workbench.analysis import formatting
from workbench.measure.rounds import Ratio


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.02, 1.98, "1.02 to 2 times"),
        (1.04, 2.1, "1.04 to 2 times"),
        (0.97, 1.04, "0.97 to 1.04 times"),
        (0.98, 2.3, "0.98 to 2 times"),
        (0.9999, 2.3, "1 to 2 times"),
        (1.1, 1.7, "1.1 to 1.7 times"),
    ],
)
def test_an_end_next_to_1_tells_on_which_side_it_is(low, high, expected):
    assert formatting.format_times(Ratio((low + high) / 2, low, high)) == expected
    assert formatting.format_gain(formatting.invert_ratio(Ratio((low + high) / 2, low, high))) == expected
