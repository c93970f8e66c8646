"""Explore: any run that is stored: filters, verdict and charts, gains at any density, rows behind a point, outliers."""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets as widgets
import pandas as pd
import traitlets

from kernels.registry import unknown_name
from workbench import settings, store
from workbench.analysis import configurations, formatting, gains, outliers
from workbench.analysis.outliers import find_outliers
from workbench.analysis.verdict_text import MEASURES
from workbench.panels import pages, picture
from workbench.panels.form import LABELLED, RunPicker, SliderWithText, close_tree, runs, send_less
from workbench.panels.guard import Guard
from workbench.panels.live import copied
from workbench.panels.results_view import ResultsView, Shown, said, verdict_of
from workbench.panels.state import file_stamp
from workbench.panels.tabs import Answer, RequestState, grid_of, register
from workbench.reports.report_tables import command_of, samples_text
from workbench.study import BY_NAME, ChoiceError, parse_numbers
from workbench.sweeps import run_folder

# State of looking at a stored run: the rows left by filters, the density and the cell that are looked at.
#
# What varies in the records may be filtered by; the dense baseline stays whatever configuration is chosen, since
# without it there is nothing to compare with.


ALL = "all"
OF_COLUMN = {setting.column or setting.name: setting for setting in settings.SETTINGS}
LABELS = {"rows_trained": "Rows trained on", "machine": "Machine", "index_dtype": "Index type", "density": "Density"}
MOST_PLACES, LEAST_PLACES = 41, 5
"""Places of the slider between the lowest and the highest density, those measured among them."""
GAINS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
"""Places of the slider of gains."""


class Filter(NamedTuple):
    """A column of rows that varies, what it is called, and its values by what they are called."""

    name: str
    label: str
    options: Mapping[str, Any]


class Behind(NamedTuple):
    """A cell: its row as the analysis pools it, and the trial rows that it is pooled from."""

    pooled: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


class Exploration(traitlets.HasTraits):
    """Exploration of the rows in `run`, a run folder or a file of rows (`run_folder.RunError` where it is none).

    `rows` are the records that pass every filter; `chosen` has the chosen options by filter name. `density` and
    `factor` are asked about in the table of gains, `cell` is the name of one of `configurations`.
    """

    run = traitlets.Unicode()
    every = traitlets.Tuple()
    chosen = traitlets.Dict()
    rows = traitlets.Tuple()
    density = traitlets.Float(None, allow_none=True)
    factor = traitlets.Float(2.0)
    cell = traitlets.Unicode()
    outdated = traitlets.Unicode()

    def __init__(self, run: str) -> None:
        """Read the records of `run`, a run folder or a .jsonl file; RunError if it is none."""
        super().__init__()
        self.run, self.folder = run, Path(run)
        self._read: tuple[tuple[int, int], ...] = ()
        self._framed: tuple | None = None
        self.answered = self._frame = configurations.pool_rounds(store.frame())
        self._cells = dict[str, Behind]()
        if not self.folder.is_file():
            run_folder.read_progress(self.folder)
        self.poll()

    def poll(self) -> None:
        """Read the records again if the files of the run have changed since the last call; updates all traits."""
        stamp = tuple(map(file_stamp, (self.folder, self.folder / store.FILE, self.folder / run_folder.PLAN)))
        if stamp != self._read:
            self._read = stamp
            is_run = self.folder.is_dir()
            every = run_folder.read_current_records(self.folder) if is_run else store.read(self.folder)
            answered = run_folder.predict_missing(self.folder, every) if is_run else every
            self.answered, self.every = configurations.pool_rounds(store.frame(answered)), tuple(every)
            self._leave()

    @property
    def alive(self) -> bool:
        """Whether the sweep of the run is running; False for a file."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).alive

    @property
    def is_timed(self) -> bool:
        """Whether a trial of the sweep is being timed, so that nothing else should compute."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).is_timed

    @property
    def filters(self) -> list[Filter]:
        """Settings whose values differ between records; of several that split them equally only the first."""
        found, parted = [], set()
        for name in ("density", *configurations.LINE, *configurations.GROUP, *configurations.BEST):
            texts = [("" if _is_kept(row, name) else _text(name, row)) for row in self.every]
            options = _options(name, texts, self.every)
            met = {text: number for number, text in enumerate(dict.fromkeys(texts))}
            parting = tuple(met[text] if text else None for text in texts)
            if len(options) > 1 and parting not in parted:
                found.append(Filter(name, _label(name), options))
                parted.add(parting)
        return found

    def choose(self, name: str, option: str) -> None:
        """Set the filter `name` to an option ("all" removes it), and update `rows`.

        ChoiceError, listing the known ones, for an unknown filter or option. Dense configurations always stay.
        """
        known = {filter.name: filter for filter in self.filters}
        if name not in known:
            raise ChoiceError(unknown_name("filter", name, known))
        if option not in (ALL, *known[name].options):
            raise ChoiceError(f"{known[name].label}: {option!r} is none of {', '.join(known[name].options)}.")
        self.chosen = {key: value for key, value in {**self.chosen, name: option}.items() if value != ALL}
        self._leave()

    def _leave(self) -> None:
        """Update `rows` from the filters, and density and configuration if they are gone.

        Observers are notified once.
        """
        with self.hold_trait_notifications():
            self.rows = tuple(row for row in self.every if _passes(row, self.chosen))
            if self.density is None and self.densities:
                self.density = self.densities[len(self.densities) // 2]
            if self.cell not in self.cells:
                self.cell = next(iter(self.cells), "")

    @property
    def left(self) -> str:
        """Sentence on how many records are shown and by which filters."""
        if not self.chosen:
            return f"All {formatting.format_count(len(self.every), 'record')} of {self.run}."
        said = ", ".join(f"{_label(name)} {option}" for name, option in self.chosen.items())
        kept = "; dense stays" if any(name in configurations.LINE for name in self.chosen) else ""
        return f"{len(self.rows)} of {formatting.format_count(len(self.every), 'record')} of {self.run}: {said}{kept}."

    @property
    def frame(self) -> pd.DataFrame:
        """Data frame of the filtered records, pooled; its estimates are those of all records."""
        self._know()
        return self._frame

    @property
    def cells(self) -> dict[str, Behind]:
        """Pooled record and trials of each filtered configuration, by a distinct name."""
        self._know()
        return self._cells

    def _know(self) -> None:
        """Update data frame, pooled records and names if `rows` has changed since the last call."""
        if self._framed is self.rows:
            return
        self._framed = self.rows
        self._frame = configurations.part_of(self.answered, lambda row: _passes(row, self.chosen))
        behind = configurations.configurations_of(store.frame(self.rows))
        pooled = configurations.records(self._frame)
        found = [(row, behind.get(configurations.configuration_of(row), [])) for row in pooled]
        self._cells = {name: Behind(*one) for name, one in zip(configurations.names_of(pooled), found, strict=True)}

    @property
    def densities(self) -> list[float]:
        """Densities that were measured, ascending, without repetition."""
        return sorted({density for cell in self.cells.values() if (density := configurations.density_of(cell.pooled))})

    def places(self) -> list[float]:
        """Return the densities that the slider offers, ascending: measured ones and some between them."""
        known = self.densities
        if len(known) < 2:
            return known
        between = max(LEAST_PLACES, (MOST_PLACES - 1) // (len(known) - 1))
        inner = (
            low * (high / low) ** (place / between) for low, high in pairwise(known) for place in range(1, between)
        )
        return sorted([*known, *inner])

    def ask_density(self, text: str) -> None:
        """Set `density` from text, a share ("0.03") or per cent ("3 %"); ChoiceError unless in (0, 1]."""
        self.density = _positive(text, "Density", most=1.0)

    def ask_factor(self, text: str) -> None:
        """Set `factor` from text such as "3" or "3x"; ChoiceError unless it is above 0."""
        self.factor = _positive(text.strip().removesuffix("x"), "Gain")


def _positive(text: str, label: str, most: float = float("inf")) -> float:
    """Return the number in a text field; ChoiceError, naming the field, unless it is in (0, most]."""
    try:
        values = parse_numbers(BY_NAME["densities"], text)
    except ChoiceError:
        values = []
    value = values[0] if len(values) == 1 else None
    if value is None or not 0 < value <= most:
        raise ChoiceError(f"{label}: {text!r} is not one number above 0{', 100 % at most' if most == 1 else ''}.")
    return value


def _passes(row: Mapping[str, Any], chosen: Mapping[str, str]) -> bool:
    """Return whether a record passes all filters, `chosen` by their names."""
    return all(_stays(row, *one) for one in chosen.items())


def _stays(row: Mapping[str, Any], name: str, option: str) -> bool:
    """Return whether a record passes the filter `name` set to `option`: it has that value, none, or is a baseline."""
    return _is_kept(row, name) or _text(name, row) in (option, "")


def _is_kept(row: Mapping[str, Any], name: str) -> bool:
    """Return whether a record passes the filter `name` whatever is chosen: the dense baselines do, for most filters."""
    return name in configurations.LINE and configurations.is_dense(row)


def _options(name: str, texts: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {text: value} of a column, sorted by value; `texts` are those of `rows` in order, "" is left out."""
    values = {text: row[name] for text, row in zip(texts, rows, strict=True) if text}
    return dict(sorted(values.items(), key=lambda item: (item[1] is not None, _order(item[1]))))


def _order(value: Any) -> tuple[bool, float, str]:
    """Return a sort key for a filter's value: numbers first by size, then texts."""
    is_number = isinstance(value, int | float)
    return not is_number, float(value) if is_number else 0.0, "" if is_number else str(value)


def _text(name: str, row: Mapping[str, Any]) -> str:
    """Return a record's value of the setting `name` as text; "" if it has none."""
    if name == "density":
        return configurations.density_label(row)
    setting = OF_COLUMN.get(name)
    value = row[name]
    if setting is not None and value is None:
        value = settings.value_or_default(setting.name, None) if setting.role == "line" else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (setting.say(value) if setting is not None else str(value)) or str(value)


def _label(name: str) -> str:
    """Return the label of a column in filters; its name if it has none."""
    setting = OF_COLUMN.get(name)
    if name in LABELS or setting is None:
        return LABELS.get(name, name)
    return setting.control.label if setting.control else setting.name.replace("_", " ").capitalize()


# Results of an exploration as HTML: gains at a density, rows behind a cell, outliers. All text is escaped.


COLUMNS = ("Round", "Result", "Time a step", "Peak memory", "Other programs", "Tries", "Measured", "Run", "Reason")
NO_GAINS = "No sparse configuration was measured against dense here."
NO_CELLS = "No setting is left; choose other filters."
NO_OUTLIERS = "Nothing lies off: all have a result, none was disturbed, and no round is beyond the noise of all."


def gains_table(state: Exploration) -> str:
    """Return an HTML table of each configuration's gain over dense at `state.density`, in time and memory.

    Also the highest density up to which it gains `state.factor`. A sentence if there is none.
    """
    density = state.density
    found = list(_lines(state)) if density else []
    if not found or density is None:
        return f"<p>{NO_GAINS}</p>"
    here, asked = f"{formatting.format_density(density)} density", f"{formatting.format_number(state.factor)} x"
    names = [MEASURES[measure][0].capitalize() for measure in MEASURES]
    columns = ["Configuration", *(text for name in names for text in (f"{name} at {here}", f"{name}: {asked} or more"))]
    rows = [(name, *(text for line in lines for text in _gain(line, density, state.factor))) for name, lines in found]
    caption = f"Sparse against dense at {here}, and up to which density sparse gains {asked} or more"
    return pages.wrapped(pages.table(columns, rows, caption))


def _lines(state: Exploration) -> Iterator[tuple[str, tuple[gains.Line, ...]]]:
    """Yield (name, its curve over densities in each measure) of each configuration of each group."""
    groups = configurations.groups(state.frame)
    for group in groups:
        where = f" ({group.label})" if len(groups) > 1 else ""
        for lines in zip(*(gains.lines_of_group(group, measure) for measure in MEASURES), strict=True):
            yield f"{formatting.short_configuration_name(lines[0].rows[0])}{where}", lines


def _gain(line: gains.Line, density: float, factor: float) -> tuple[str, str]:
    """Return (text of the gain at a density with its source and doubts, text of how far `factor` reaches)."""
    gain = gains.gain_at_density(line, density)
    source = gain.source if gain.ratio and gain.source != gains.MEASURED else ""
    text = gain.text.removeprefix("✓ ") if line.warning else gain.text
    return "; ".join(filter(None, (text, source, line.warning))), gains.highest_density_with_gain(line, factor).sentence


def behind(state: Exploration) -> str:
    """Return HTML on the selected configuration: result, warnings, trials, samples, command; else a sentence."""
    found = state.cells.get(state.cell)
    if found is None:
        return f"<p>{NO_CELLS}</p>"
    row = found.pooled
    number = formatting.format_measured_quantity(row, "seconds_step")
    memory = formatting.format_measured_quantity(row, "bytes_peak")
    numbers = [f"{number} a step" if number else "", f"{memory} at most" if memory else "", _rounds(row)]
    result = f"{pages.SIGNS.get(row['status'], '')} {row['status']}"
    head = f"<p><strong>{html.escape(state.cell)}</strong><br>{html.escape(_join(result, *numbers))}</p>"
    reasons = [*([row["reason"]] if row["reason"] else []), *outliers.warnings_of_record(row)]
    listed = "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons)
    trials = _filled(
        [_trial(trial) for trial in found.rows], f"{formatting.format_count(len(found.rows), 'trial')} of this setting"
    )
    samples = samples_text(row)
    shown = f"<details><summary>Samples</summary><p>{html.escape(samples)}</p></details>" if samples else ""
    command = f"<p>Train with this setting again: {copied(command_of(dict(row)))}</p>"
    return f"{head}{f'<ul>{listed}</ul>' if listed else ''}{trials}{shown}{command}"


def _filled(rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return an HTML table of trials, without columns in which all cells are ""."""
    kept = [place for place, _ in enumerate(COLUMNS) if any(row[place] for row in rows)]
    shown = [[row[place] for place in kept] for row in rows]
    return pages.wrapped(pages.table([COLUMNS[place] for place in kept], shown, caption))


def _rounds(row: Mapping[str, Any]) -> str:
    """Return "mean of 3 rounds", or "" without rounds."""
    return f"mean of {formatting.format_count(row['rounds'], 'round')}" if row["rounds"] else ""


def _join(*parts: str) -> str:
    """Return the texts that are not "", joined by " · "."""
    return " · ".join(filter(None, parts))


def _trial(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a trial's record in the table of trials, as text; "" for missing values."""

    def shown(value: Any, tell: Any) -> str:
        """Return `tell(value)`; "" for None."""
        return "" if value is None else tell(value)

    return (
        shown(row["round"], lambda number: str(number + 1)),
        f"{pages.SIGNS.get(row['status'], '')} {row['status']}",
        shown(row["seconds_step"], formatting.format_seconds),
        shown(row["bytes_peak"], formatting.format_bytes),
        shown(row["busy_others"], lambda share: formatting.format_density(share, 2)),
        shown(row["tries"], str),
        row["time"] or "",
        row["run"] or "",
        row["reason"] or "",
    )


def outliers_table(state: Exploration) -> str:
    """Return an HTML table of outlying rounds and doubtful or failed configurations, each with its reason.

    A sentence if there are none.
    """
    named = {id(one.pooled): name for name, one in state.cells.items()}
    found = find_outliers([cell.pooled for cell in state.cells.values()])
    if not found:
        return f"<p>{NO_OUTLIERS if named else NO_CELLS}</p>"
    rows = [(named[id(one.row)], one.place or "all rounds", one.reason) for one in found]
    caption = f"{formatting.format_count(len(rows), 'finding')} to look at"
    return pages.wrapped(pages.table(("Setting", "Where", "Why"), rows, caption))


NONE = "There is no run in this folder yet. Sweep or Advise makes one."
GAIN, BEHIND, OFF = "Gain at a density", "Rows behind a point", "Outliers"


class Explored:
    """The widgets of one exploration."""

    def __init__(self, state: Exploration, guard: Guard) -> None:
        """Make the widgets of the exploration `state` and keep them up to date with its traits.

        `guard` wraps callbacks.
        """
        self.state, self.guard, self._is_filling = state, guard, False
        self.filters: dict[str, widgets.Dropdown] = {}
        self.bar, self.left = grid_of(), widgets.HTML()
        self.density = SliderWithText(
            "Density", "Stored entries / size, as 0.03 or 3 %", formatting.format_density, self._asks("density")
        )
        self.factor = SliderWithText("Gain", "How many times better than dense at least", _times, self._asks("factor"))
        self.cell = widgets.Dropdown(description="Point", tooltip="The setting whose rows are shown", style=LABELLED)
        self.cell.add_class(picture.PICKER)
        self.cell.observe(guard("Showing rows", self._pick), names=["value"])
        self.pages = {name: widgets.HTML() for name in (GAIN, BEHIND, OFF)}
        asked = grid_of(self.density.slider, self.density.text, widgets.Box(), self.factor.slider, self.factor.text)
        more = {
            GAIN: widgets.VBox([asked, self.pages[GAIN]]),
            BEHIND: widgets.VBox([self.cell, self.pages[BEHIND]]),
            OFF: self.pages[OFF],
        }
        self.results = ResultsView(state, guard, drawn=self._drawn, more=more)
        self.results.view.observe(guard("Showing a table", self._fill_page), names=["value"])
        self.box = widgets.VBox([self.bar, self.left, *self.results.parts])
        state.observe(lambda _: self.fill(), names=["rows"])
        state.observe(lambda _: self._fill_page(), names=["density", "factor", "cell"])
        self.fill()

    def _asks(self, name: str) -> Any:
        """Return the callback of the text field "density" or "factor": it sets the state, showing errors."""
        ask = {"density": self.state.ask_density, "factor": self.state.ask_factor}[name]
        return lambda text: self.guard("Asking", partial(ask, text))()

    def _pick(self) -> None:
        """Show the trials of the configuration selected in the drop-down, which a click into the chart also sets."""
        if self._is_filling or not self.cell.value:
            return
        self.state.cell = self.cell.value
        self.results.view.value = BEHIND

    def _drawn(self, name: str, frame: Any, **controls: Any) -> str:
        """Return HTML of the chart `name` of the filtered records, with clickable points."""
        return picture.drawn(name, frame, [cell.pooled for cell in self.state.cells.values()], **controls)

    def fill(self) -> None:
        """Update filters, list of configurations and page from the state, without triggering their callbacks."""
        self._is_filling = True
        try:
            for filter in self.state.filters:
                self._fill_filter(filter)
            self.bar.children = tuple(self.filters.values())
            self.left.value = f'<p role="status">{html.escape(self.state.left)}</p>'
            names = tuple(self.state.cells)
            if tuple(self.cell.options) != names:
                self.cell.options = names
            self.cell.value = self.state.cell or None
        finally:
            self._is_filling = False
        self._fill_page()

    def _fill_filter(self, filter: Filter) -> None:
        """Create or update the drop-down of a filter, with "all" as first option."""
        if filter.name not in self.filters:
            shown = widgets.Dropdown(
                description=filter.label, tooltip=f"Show rows of one {filter.label}", style=LABELLED
            )
            shown.observe(lambda change: self._filter(filter.name, change["new"]), names=["value"])
            self.filters[filter.name] = shown
        shown, options = self.filters[filter.name], (ALL, *filter.options)
        if tuple(shown.options) != options:
            shown.options = options
        shown.value = self.state.chosen.get(filter.name, ALL)

    def _filter(self, name: str, option: str) -> None:
        """Apply the option that the user has chosen in the filter `name`, showing errors."""
        if not self._is_filling:
            self.guard("Filtering", partial(self.state.choose, name, option))()

    def _fill_page(self) -> None:
        """Update the sliders and the HTML of the selected page from the state."""
        self.density.show(self.state.density, self.state.places())
        self.factor.show(self.state.factor, GAINS)
        made = {GAIN: gains_table, BEHIND: behind, OFF: outliers_table}
        if (view := self.results.view.value) in made:
            self.pages[view].value = made[view](self.state)


def _times(factor: float) -> str:
    """Return a factor as text, "3 x"."""
    return f"{formatting.format_number(factor)} x"


class _Explore:
    """A run is chosen, or a file of rows is named."""

    explored: Explored | None

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the fields for run and file, and open `asked.run` or the newest run, if there is one."""
        self.guard, self.explored = guard, None
        self.picker = RunPicker("Run", "Which run to show", [asked.run], guard("Opening the run", self._pick))
        help = "A run folder elsewhere, or a .jsonl file of rows"
        self.file = widgets.Text(
            description="Another run or file", tooltip=help, continuous_update=False, style=LABELLED
        )
        self.content = widgets.VBox()
        self.box = widgets.VBox([grid_of(self.picker.widget, self.file), self.content])
        self.file.observe(guard("Opening the run", lambda: self._open(self.file.value)), names=["value"])
        self._open(self.picker.value)

    def _pick(self) -> None:
        """Open the run selected in the list, and clear the text field."""
        self.file.value = ""
        self._open(self.picker.value)

    def _open(self, run: str) -> None:
        """Show the run or file `run`, closing the widgets of the former; for "" a hint if nothing is shown.

        Raises RunError if it is neither.
        """
        if not run:
            self.content.children = self.content.children or [widgets.HTML(f"<p>{NONE}</p>")]
            return
        before, self.explored = self.explored, Explored(Exploration(run), self.guard)
        self.picker.show(run)
        send_less(self.explored.box)
        self.content.children = [self.explored.box]
        if before is not None:
            close_tree(before.box)

    def paint(self) -> None:
        """Show records that are new since the last call; open the first run if none was there before."""
        if self.picker.refresh() and self.explored is None:
            self._open(self.picker.value)
        if self.explored is not None:
            self.explored.state.poll()
            self.explored.results.paint()

    def close(self) -> None:
        """Do nothing: this view started no thread and no process."""


def _shown(asked: RequestState) -> Any:
    """Return verdict, gains and outliers of `asked.run`, else of the newest run, as a result of a cell."""
    named = [asked.run] if asked.run else runs()
    if not named:
        return said(NONE)
    state = Exploration(named[0])
    verdict = verdict_of(state.answered)
    more = f"{gains_table(state)}{outliers_table(state)}"
    return Shown(f"<p>{html.escape(state.left)}</p>{verdict.html}{more}", f"{state.left}\n{verdict.text}")


register(Answer("explore", "Explore", "Look at any run: verdict, charts, break-evens, records.", 2, _Explore, _shown))
