"""Analysis of stored rows: configurations, intervals, verdicts, break-evens and advice. Sees rows only.

`measure.rounds` has the statistics. `configurations.groups` pools rows, `compare.contests` judges each density,
`breakeven` and `advise` put that in words; `intervals.interval_of` and `formatting.format_measured_quantity` say one
number of one row.
"""

from workbench.analysis.answer_text import AnswerText, answer_text
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.compare import Contest, contest_verdict, contests
from workbench.analysis.configurations import groups, pool_rounds
from workbench.analysis.intervals import Interval, interval_of

__all__ = [
    "AnswerText",
    "BreakEven",
    "Contest",
    "Interval",
    "answer_text",
    "breakeven",
    "contest_verdict",
    "contests",
    "groups",
    "interval_of",
    "pool_rounds",
]
