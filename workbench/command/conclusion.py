"""Conclusions from measured rows, in the words of the report: a verdict, how sure it is, break-evens, warnings."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workbench.analysis.advisor import MEASURES, advise
from workbench.analysis.breakeven import breakeven


@dataclass(frozen=True)
class Conclusion:
    """The verdict, how sure it is, a sentence for each break-even, warnings, and the report where one was written."""

    verdict: str
    certainty: str
    breakevens: tuple[str, ...]
    warnings: tuple[str, ...]
    report: Path | None = None


def of(frame: pd.DataFrame, report: Path | None = None) -> Conclusion:
    """The conclusion over all rows of a frame."""
    advice = advise(frame)
    evens = [even for measure in MEASURES for even in breakeven(frame, measure) if even.status != "too_few"]
    return Conclusion(advice.verdict, advice.certainty, tuple(even.sentence for even in evens), advice.warnings, report)
