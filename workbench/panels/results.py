"""Results of a study as static outputs of cells: they stay in the notebook, and need no kernel to be read."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.analysis import advise, breakeven
from workbench.analysis.advisor import MEASURES
from workbench.panels import pages, picture
from workbench.panels.state import LabState

NOTHING = "No rows yet. Press Run in the panel, and run this cell again when trials have ended."


class NoResultError(RuntimeError):
    """No trial gave a result; the message counts the reasons."""


@dataclass(frozen=True)
class Shown:
    """HTML for notebooks, text for the rest."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        """Return the HTML and the text that Jupyter displays."""
        return {"text/html": self.html, "text/plain": self.text}


def _unless_empty(study: LabState, make: Callable[[], Shown]) -> Shown:
    """Return what `make` returns, with a note if the run is outdated; a hint if there are no rows yet."""
    study.poll()
    if not study.rows:
        return said(NOTHING)
    shown, note = make(), f"{pages.OUTDATED} The run has {study.outdated}."
    if not study.outdated:
        return shown
    return Shown(f"<p><strong>{html.escape(note)}</strong></p>{shown.html}", f"{note}\n{shown.text}")


def said(text: str) -> Shown:
    """Return a sentence."""
    return Shown(f"<p>{html.escape(text)}</p>", text)


def chart(study: LabState, name: str, **controls: Any) -> Shown:
    """Return a chart with the sentence that says what it shows (`ValueError` lists the known charts and controls)."""

    return _unless_empty(study, lambda: drawn(name, study.frame, **controls))


def drawn(name: str, frame: pd.DataFrame, **controls: Any) -> Shown:
    """Return a chart of any frame of the rows that it reads, such as the curves of `analysis.curves`, with its
    sentence."""
    made = picture.draw(name, frame, **controls)
    return Shown(made.html, f"{made.title}: {made.sentence}")


def verdict(study: LabState) -> Shown:
    """Return the answer and its grounds."""
    return _unless_empty(study, lambda: verdict_of(study.frame))


def verdict_of(frame: pd.DataFrame) -> Shown:
    """Return the answer of any rows and its grounds."""
    return Shown(pages.verdict(frame) + pages.grounds(frame), str(advise(frame)))


def break_evens(study: LabState) -> Shown:
    """Below which density each sparse configuration wins, in time and in memory."""

    def make() -> Shown:
        frame = study.frame
        sentences = [even.sentence for measure in MEASURES for even in breakeven(frame, measure)]
        return Shown(pages.break_evens(frame), "\n".join(sentences))

    return _unless_empty(study, make)


def trials(study: LabState, most: int = 100) -> Shown:
    """Return the newest trials, failures with their reasons."""

    def make() -> Shown:
        text = "\n".join(f"{status}: {count}" for status, count in study.counts.items())
        return Shown(pages.latest_rows(study.rows, most), text)

    return _unless_empty(study, make)


def gate(study: LabState) -> Shown:
    """Count trials with a result; `NoResultError`, which fails the notebook, when a sweep is over and has none.

    Disturbed trials have results, too, whose times are known less well.
    """
    study.poll()
    good, disturbed = study.counts["ok"], study.counts["disturbed"]
    if good or disturbed:
        beside = f", {disturbed} of them beside other programs" if disturbed else ""
        return said(
            f"{good + disturbed} of {len(study.rows)} trials gave a result{beside}. Rows are in {study.folder}."
        )
    if study.progress is None or study.alive:
        return said(NOTHING)
    reasons = dict.fromkeys(f"{row['status']}: {row['reason']}" for row in study.rows)
    why = "; ".join(list(reasons)[:3]) or study.progress.message or f"the sweep is {study.status} with no row"
    raise NoResultError(f"None of {len(study.rows)} trials gave a result: {why}. See {study.folder / 'log.txt'}.")
