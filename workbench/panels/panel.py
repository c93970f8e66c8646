"""The panel: one root widget, made once and kept up to date by two threads.

One reads the run folder and tells how far the sweep is, ten times a second. The other draws, which takes longer; so
that a slow chart never delays what Stop did, they hold different locks.
"""

import html
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import ipywidgets as widgets
import pandas as pd
import traitlets

from workbench import data
from workbench.analysis import formatting, profiles
from workbench.data import contract
from workbench.option_text import worded
from workbench.panels import live, pages, picture
from workbench.panels.form import Form
from workbench.panels.guard import Guard
from workbench.panels.results_view import ResultsView, Shown
from workbench.panels.state import LabState, emphasized
from workbench.panels.style import SHEET, Watcher
from workbench.panels.widget_trees import close_tree, send_less
from workbench.study import suited
from workbench.study.suited import drop_unread_files, files_of
from workbench.sweeps.problem import OF_FILE, parameters_of_file
from workbench.sweeps.spec import FILES

# The profile of the chosen file: when it is counted, and its result. Uses no widgets.


BYTES_UNASKED = 64 * 2**20
"""Files up to this size are profiled, in seconds; larger ones by `wb.profile`."""
NATURAL = "guessed"


class ProfileRequest(NamedTuple):
    """Subject of a profile: data set, what its source is called with, bytes to read, size and time of each file."""

    dataset: str
    parameters: dict[str, Any]
    bytes_: int
    stamps: tuple[tuple[int, int] | None, ...]


class Profiling(traitlets.HasTraits):
    """Follows the choices of a study with the profile of its file.

    `status` is empty if there is nothing to count, else waiting (for `count`), done (`profile`) or failed (`problem`).
    During a sweep nothing is counted: it would disturb the trials.
    """

    status = traitlets.Unicode()
    profile = traitlets.Dict()
    problem = traitlets.Unicode()
    asked = traitlets.Instance(ProfileRequest, allow_none=True)

    def __init__(self, state: LabState) -> None:
        """Follow the choices of `state`; nothing is read before the first `poll`."""
        super().__init__()
        self.state = state
        self._looked_at: dict[str, Any] | None = None
        self._counted: tuple[ProfileRequest, dict[str, Any]] | None = None

    def poll(self) -> None:
        """Update status and profile after changes of choices or files, and take what `count` has found."""
        if self.state.choices is self._looked_at and self.state.alive:  # a look at files costs, and a sweep is at work
            return
        asked, self._looked_at = asked_of(self.state.choices), self.state.choices
        counted, self._counted = self._counted, None
        if asked != self.asked:
            self.asked = asked
            self._become("waiting" if asked else "", {})
        if counted is not None and counted[0] == self.asked:
            self._become("failed" if "error" in counted[1] else "done", counted[1])
            if self.profile:
                self.state.fill(self.profile)

    @property
    def is_small(self) -> bool:
        """Whether the file is small enough to be profiled in a panel (`BYTES_UNASKED`)."""
        return self.asked is not None and self.asked.bytes_ <= BYTES_UNASKED

    def count(self) -> None:
        """Read the file and count its profile, which the next `poll` takes; never of a large file or beside a sweep."""
        asked = self.asked
        if self.status != "waiting" or self._counted is not None or asked is None or not self.is_small:
            return
        if self.state.alive:
            return
        try:
            read = data.load(asked.dataset, **asked.parameters)
            task = data.Description(read.labels, read.facts, read.graph is not None).task
            found = asdict(data.profile(read)) | {"task": task, "guesses": list(read.facts.get("guesses", ()))}
        except (data.DataError, MemoryError) as error:
            found = {"error": str(error)}
        self._counted = asked, found

    def _become(self, status: str, found: dict[str, Any]) -> None:
        """Set `status` and at once `profile` or, if `found` has "error", `problem`."""
        with self.hold_trait_notifications():
            self.problem, self.status = found.get("error", ""), status
            self.profile = {} if self.problem else found


def asked_of(choices: Mapping[str, Any]) -> ProfileRequest | None:
    """Return what these choices ask to profile; None if it is no file, or the choices are invalid or incomplete."""
    if not files_of(choices["dataset"]) or suited.find_file_errors(choices):
        return None
    chosen = drop_unread_files(choices)
    read = {name: chosen[name] for name in ("dataset", *OF_FILE) if chosen[name] not in ("", NATURAL)}
    paths = {name: Path(read[name]).expanduser().resolve() for name in FILES if name in read}
    try:
        options = {"reading": contract.reader_options(read.get("reading"))}
        parameters = parameters_of_file(read | {name: str(path) for name, path in paths.items()} | options)
    except data.DataError:  # it is among what the panel says is wrong
        return None
    known = data.get(read["dataset"]).parameters
    if any(known[name] is inspect.Parameter.empty and name not in parameters for name in known):
        return None
    return ProfileRequest(read["dataset"], parameters, sum(map(_bytes, paths.values())), suited.file_stamps(choices))


def _bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder.

    Counting stops once `BYTES_UNASKED` is exceeded, so that larger folders give a lower bound.
    """
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for place, _, names in os.walk(path):
        total += sum(Path(place, name).stat().st_size for name in names if Path(place, name).is_file())
        if total > BYTES_UNASKED:
            break
    return total


# View of a chosen file: its profile in a sentence, two small charts, and all numbers folded.


KEY = ("size", "entries a row", "columns")
"""Facts that are shown unfolded."""


class ProfileView:
    """The widgets of a profile; they come with a file, and go with it."""

    def __init__(self, profiling: Profiling) -> None:
        """Make the widgets and keep them up to date with the traits of `profiling`."""
        self.profiling = profiling
        self.text, self.chart, self.numbers = (widgets.HTML() for _ in range(3))
        self.box = widgets.VBox([self.text, self.chart, self.numbers])
        self._drawn: dict = {}
        profiling.observe(lambda _: self.fill(), names=["status", "asked"])
        self.fill()

    def fill(self) -> None:
        """Update text and numbers from the profile; its chart is drawn later by `paint`."""
        self.text.value = text_of(self.profiling)
        self.numbers.value = _numbers(self.profiling.profile) if self.profiling.profile else ""
        if not self.profiling.profile:
            self.chart.value = ""
        self.box.layout.display = None if self.profiling.status else "none"

    def paint(self) -> None:
        """Count the profile if it is due, and draw its chart, unless it is drawn already or there is none."""
        self.profiling.count()
        profile = self.profiling.profile
        if profile is not self._drawn and profile:
            self._drawn, drawn = profile, picture.draw("profile", pd.DataFrame([profile]))
            self.chart.value = f"<details open><summary>Chart of the profile</summary>{drawn.html}</details>"


def text_of(profiling: Profiling) -> str:
    """Return HTML of a profile: its sentence, key numbers and guesses; else why there is none, or "" without a file."""
    asked = profiling.asked
    if profiling.status == "done":
        facts = dict(profiles.profile_facts(profiling.profile))
        known = [f"{what}: {'; '.join(facts[what])}." for what in KEY]
        lines = [
            f"<strong>{html.escape(profiles.profile_sentence(profiling.profile))}</strong>",
            *map(html.escape, known),
            *(emphasized(html.escape(worded(guess))) for guess in profiling.profile.get("guesses", ())),
        ]
        return f'<div role="status">{"<br>".join(lines)}</div>'
    if profiling.status == "failed":
        return f'<div class="wb-problem" role="alert">{emphasized(html.escape(profiling.problem))}</div>'
    if asked is None:
        return ""
    if profiling.is_small:
        wait = "The file is profiled once the run is over." if profiling.state.alive else "Reading the file."
        return f'<div role="status">◔ {wait}</div>'
    size = formatting.format_bytes(asked.bytes_)
    return f"<div>The file has {size}: wb.profile(PATH) counts what is in it.</div>"


def _numbers(profile: dict) -> str:
    """Return HTML of a folded table with all numbers of a profile."""
    rows = [(what, "; ".join(lines)) for what, lines in profiles.profile_facts(profile)]
    table = pages.table(("What", "Counted"), rows, f"{profile['source']}, read by {profile['name']}")
    return f"<details><summary>All numbers of the profile</summary>{table}</details>"


SECONDS_BETWEEN = 0.1
"""Time between two looks, short compared with the start of a trial, in which there is time to draw."""
SNAPSHOT = "Last state (no kernel running)"
HINT = "The panel needs a running kernel. Its last state is below."


class Panel:
    """Widgets for one study. Nothing runs until `watch`; `step` does by hand what its threads do again and again."""

    def __init__(self, state: LabState, clock: Callable[[], float] = monotonic) -> None:
        """Make all widgets of a study; `clock()` gives seconds. No thread is started before `watch`."""
        self.state = state
        quick, slow = (Guard(state.tell) for _ in range(2))
        self.form, self.live = Form(state, quick), live.Live(state)
        self.profiling = Profiling(state)
        self.profile = ProfileView(self.profiling)
        self.results = ResultsView(state, slow, clock)
        self.run = _button("Run", "Measure what is not measured yet", quick("Starting", state.start), "primary")
        self.stop = _button("Stop", "End the sweep; finished trials stay", quick("Stopping", state.stop), "warning")
        exports = "Write report.html and rows.csv into the run folder"
        self.export = _button("Export", exports, slow("Exporting", state.export))
        self.root = widgets.VBox(self._children())
        self.root.add_class("workbench-lab")
        send_less(self.root)
        self.threads = tuple(
            Watcher(step, SECONDS_BETWEEN)
            for step in (quick("Watching the run", self._look), slow("Drawing", self.paint))
        )
        self._update_still: Callable[[Shown], Any] = lambda _: None
        self._still_of = len(state.rows)
        state.observe(lambda _: self._enable(), names=["progress", "problem", "rows", "stopping", "outdated"])
        self._enable()

    def _children(self) -> list[widgets.Widget]:
        """Return the widgets of the panel from top to bottom; adds classes to some."""
        lines = self.live.lines
        buttons = widgets.HBox([self.run, self.stop, self.export, lines[live.status_line]])
        progress = widgets.HBox([self.live.bar, lines[live.progress_line]])
        for row in (buttons, progress):
            row.add_class("wb-row")
        asked = [self.form.box, self.profile.box, lines[live.plan_line], lines[live.command_line]]
        above = [widgets.HTML(SHEET), *asked, buttons, progress]
        below = [lines[live.trouble_box], lines[live.exported_line], lines[live.outdated_line]]
        return [*above, *below, *self.results.parts]

    def step(self) -> None:
        """Run one step of each thread by hand: read the run folder, then draw what changed."""
        for thread in self.threads:
            thread.step()

    def _look(self) -> None:
        """Update the state from the run folder and the file's profile; called repeatedly by a thread."""
        self.state.poll()
        self.profiling.poll()

    def paint(self) -> None:
        """Draw what is new: profile and results; called repeatedly by a thread.

        Sends a new still once a run is over.
        """
        self.profile.paint()
        self.results.paint()
        if not self.state.alive and len(self.state.rows) != self._still_of:
            self._still_of = len(self.state.rows)
            self._update_still(self.still())

    def _enable(self) -> None:
        """Enable or disable the buttons, and name Run "Resume", according to the state."""
        state = self.state
        self.run.description = "Resume" if state.is_resumable else "Run"
        self.run.disabled = state.alive or bool(state.problem)
        self.stop.disabled = not state.alive or state.stopping
        self.export.disabled = not state.rows

    def watch(self) -> None:
        """Start the two threads, which run until `close`."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """End the threads and close all widgets; the sweep goes on."""
        for thread in self.threads:
            thread.stop()
        close_tree(self.root)

    def still(self) -> Shown:
        """Return status, verdict, chart and latest records as HTML and text, for readers without a kernel.

        Draws the chart.
        """
        state = self.state
        chart = self.results.chart
        drawn = picture.draw(chart.picker.value, state.frame, **chart.chosen)
        lines = (live.status_line, live.progress_line, live.outdated_line)
        shown = (self.results.verdict.value, drawn.html)
        parts = [*(line(state) for line in lines), *shown]
        inside = "".join([*parts, pages.latest_rows(state.rows)])
        return Shown(f"<details><summary>{SNAPSHOT}</summary>{inside}</details>", f"{SNAPSHOT}: {state.status}")

    def keep_snapshot(self, update: Callable[[Shown], Any]) -> None:
        """Call `update(snapshot)` whenever a run is over, so that an exported notebook shows its last state."""
        self._update_still, self._still_of = update, len(self.state.rows)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return the widget's MIME bundle, with a hint for front ends and exports without widgets."""
        bundle = self.root._repr_mimebundle_(**options) or {}
        return dict(bundle) | {"text/html": f"<p>{HINT}</p>", "text/plain": HINT}


def _button(name: str, tooltip: str, clicked: Callable[..., None], style: str = "") -> widgets.Button:
    """Return a button that calls `clicked(button)`; `style` is one of ipywidgets' names, "" for the default."""
    button = widgets.Button(description=name, tooltip=tooltip, button_style=style)
    button.on_click(clicked)
    return button
