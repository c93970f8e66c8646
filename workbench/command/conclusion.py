"""Conclusions from measured rows, in the words of the report: a verdict, how sure it is, break-evens, warnings."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workbench.analysis import compare_devices, configurations
from workbench.analysis.advisor import MEASURES, advise
from workbench.analysis.breakeven import breakeven
from workbench.analysis.standings import Headline, Standings, headline_of, make_standings


@dataclass(frozen=True)
class Conclusion:
    """A number and a table of each measure, the verdict in words, how sure it is, a sentence for each break-even,
    warnings, how devices and trainers compare, and the report where one was written."""

    headlines: tuple[Headline, ...]
    standings: tuple[Standings, ...]
    verdict: str
    certainty: str
    breakevens: tuple[str, ...]
    warnings: tuple[str, ...]
    places: tuple[str, ...]
    report: Path | None = None


def make_conclusion(frame: pd.DataFrame, report: Path | None = None) -> Conclusion:
    """Return headlines, standings, verdict, break-evens and warnings from the records of a frame."""
    advice, groups = advise(frame), configurations.groups(frame)[:1]
    evens = {measure: breakeven(frame, measure) for measure in MEASURES}
    return Conclusion(
        tuple(headline_of(group, measure, evens[measure]) for group in groups for measure in MEASURES),
        tuple(make_standings(group, measure) for group in groups for measure in MEASURES),
        advice.verdict,
        advice.certainty,
        tuple(even.sentence for each in evens.values() for even in each if even.status != "too_few"),
        advice.warnings,
        tuple(compare_devices.compare_device_sentences(configurations.groups(frame))),
        report,
    )
