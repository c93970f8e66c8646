"""View of a chosen file: its profile in a sentence, two small charts, and all numbers folded."""

import html

import ipywidgets as widgets
import pandas as pd

from workbench.analysis import profiles, words
from workbench.panels import pages, picture
from workbench.panels.guard import Guard
from workbench.panels.profiling import Profiling

CHARTS = ("column_ranks", "touched_columns")
KEY = ("size", "entries a row", "columns")
"""Facts that are shown unfolded."""


class ProfileView:
    """The widgets of a profile; they come with a file, and go with it."""

    def __init__(self, profiling: Profiling, guard: Guard) -> None:
        self.profiling = profiling
        self.text, self.charts, self.numbers = (widgets.HTML() for _ in range(3))
        self.button = widgets.Button(description="Profile", tooltip="Read the file and count what is in it")
        self.button.on_click(guard("Profiling", profiling.start))
        self.line = widgets.HBox([self.button, self.text])
        self.line.add_class("wb-row")
        self.box = widgets.VBox([self.line, self.charts, self.numbers])
        self._drawn: dict = {}
        profiling.observe(lambda _: self.fill(), names=["status", "asked"])
        profiling.state.observe(lambda _: self._enable(), names=["progress"])
        self.fill()

    def fill(self) -> None:
        """Bring the text up to date, at once; charts follow by `paint`."""
        self.text.value = text_of(self.profiling)
        self.numbers.value = _numbers(self.profiling.profile) if self.profiling.profile else ""
        if not self.profiling.profile:
            self.charts.value = ""
        self.box.layout.display = None if self.profiling.status else "none"
        self.button.layout.display = None if self.profiling.status == "waiting" else "none"
        self._enable()

    def _enable(self) -> None:
        self.button.disabled = self.profiling.state.alive

    def paint(self) -> None:
        """Draw the charts of a profile that is new."""
        profile = self.profiling.profile
        if profile is self._drawn or not profile:
            return
        self._drawn, frame = profile, pd.DataFrame([profile])
        drawn = (picture.draw_small(name, frame).html for name in CHARTS)
        pictures = f'<div class="wb-pictures">{"".join(drawn)}</div>'
        self.charts.value = f"<details open><summary>Charts of the profile</summary>{pictures}</details>"


def text_of(profiling: Profiling) -> str:
    """Text of a profile: its sentence with the key numbers, or why there is none yet."""
    asked = profiling.asked
    if profiling.status == "done":
        facts = dict(profiles.facts(profiling.profile))
        known = [f"{what}: {'; '.join(facts[what])}." for what in KEY]
        lines = [f"<strong>{html.escape(profiles.sentence(profiling.profile))}</strong>", *map(html.escape, known)]
        return f'<div role="status">{"<br>".join(lines)}</div>'
    if profiling.status == "failed":
        return f'<div class="wb-problem" role="alert">{html.escape(profiling.problem)}</div>'
    if profiling.status == "counting":
        return '<div role="status">◔ Reading the file for its profile.</div>'
    if asked is None:
        return ""
    if profiling.is_small:
        return "<div>The file is profiled once the run is over.</div>"
    return f"<div>Profile reads {words.bytes_(asked.bytes_)} and counts what is in it, beside no run.</div>"


def _numbers(profile: dict) -> str:
    rows = [(what, "; ".join(lines)) for what, lines in profiles.facts(profile)]
    table = pages.table(("What", "Counted"), rows, f"{profile['source']}, read by {profile['name']}")
    return f"<details><summary>All numbers of the profile</summary>{table}</details>"
