"""What measured rows come to, in the words of the report: a verdict, break-evens, what makes them doubtful."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workbench.analysis.advisor import MEASURES, advise
from workbench.analysis.breakeven import breakeven


@dataclass(frozen=True)
class Conclusion:
    """The verdict, a sentence for each break-even, what makes them doubtful, and the report where one was written."""

    verdict: str
    breakevens: tuple[str, ...]
    warnings: tuple[str, ...]
    report: Path | None = None


def of(frame: pd.DataFrame, report: Path | None = None) -> Conclusion:
    """The conclusion over all rows of a frame."""
    advice = advise(frame)
    evens = [even for measure in MEASURES for even in breakeven(frame, measure) if even.status != "too_few"]
    return Conclusion(advice.verdict, tuple(even.sentence for even in evens), advice.warnings, report)
