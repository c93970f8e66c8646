"""Analysis of stored rows: cells, intervals, verdicts, break-evens and advice. Sees rows only.

`measure.rounds` has the statistics. `cells.groups` pools rows, `compare.contests` judges each density, `breakeven` and
`advise` put that in words; `intervals.interval_of` and `words.measured_quantity` say one number of one row.
"""

from workbench.analysis.advisor import Advice, advise
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.cells import groups, latest
from workbench.analysis.compare import Contest, contests, verdict
from workbench.analysis.intervals import Interval, interval_of

__all__ = [
    "Advice",
    "BreakEven",
    "Contest",
    "Interval",
    "advise",
    "breakeven",
    "contests",
    "groups",
    "interval_of",
    "latest",
    "verdict",
]
