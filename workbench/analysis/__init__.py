"""What stored rows mean: cells, intervals, verdicts, break-evens and advice. Sees rows only."""

from workbench.analysis.advisor import Advice, advise
from workbench.analysis.breakeven import BreakEven, breakeven
from workbench.analysis.cells import groups, latest
from workbench.analysis.compare import verdict
from workbench.analysis.intervals import median_interval

__all__ = ["Advice", "BreakEven", "advise", "breakeven", "groups", "latest", "median_interval", "verdict"]
