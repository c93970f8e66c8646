"""Results of runs, measured now or before: the answer, a tidy table of configurations, all trials, charts, a report."""

import difflib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from kernels.registry import with_known_parameters
from workbench import store
from workbench.analysis import configurations, formatting
from workbench.analysis.answers import answer_of
from workbench.analysis.compare import Contest, contests_of_group, ratio_between
from workbench.analysis.configurations import pool_rounds
from workbench.analysis.estimates import estimate_of
from workbench.reports import export
from workbench.reports.page import joined_values
from workbench.sweeps import run_folder

TEXT, LINE = "var(--jp-ui-font-color1, inherit)", "var(--jp-border-color2, #8884)"
SHEET = f"""<style>
.workbench-card {{ color: {TEXT}; max-width: 1000px; line-height: 1.45; }}
.workbench-card table {{ border-collapse: collapse; color: inherit; }}
.workbench-card caption, .workbench-card th, .workbench-card td {{ text-align: left !important; vertical-align: top;
  padding: 3px 14px 3px 0;
  background: transparent !important; border-bottom: 1px solid {LINE}; }}
.workbench-card .scroll {{ overflow-x: auto; }}
.workbench-card .verdict {{ font-size: 115%; margin: 4px 0; }}
.workbench-card code {{ overflow-wrap: anywhere; }}
</style>"""
"""Colours follow the theme of the notebook: none is set but for lines."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table of texts.

    >>> "<td" in table(("a",), [("1",)])
    True
    """
    from workbench.panels import pages

    return pages.table(columns, rows, caption)


def page(body: str, frame: Any = None, chart: str = "") -> str:
    """Return the HTML of a card with `body`, below it the chart named `chart` of `frame` if it has rows."""
    picture = ""
    if chart and frame is not None and len(frame):
        from workbench.panels import picture as pictures

        picture = pictures.draw(chart, frame).html
    return f'{SHEET}<div class="workbench-card">{body}{picture}</div>'


INCHES_MESSAGE = 0.8
"""Height of a new figure that has a sentence instead of a chart."""


def plot(chart: str, frame: Any, figure: Any = None, ax: Any = None, size: Any = None, **controls: Any) -> Any:
    """Draw the chart named `chart` of `frame` on `figure`, in the place of `ax`, or on a new figure.

    `size` is (width, height) of a new figure in inches; `controls` are those of the chart. Returns the first Axes of
    the chart. Raises ValueError for an unknown chart, or an `ax` that is not part of a grid.
    """
    from workbench import plots
    from workbench.plots.chart import is_message

    if ax is not None:
        figure = _subfigure_of(ax)
    is_new = figure is None
    if is_new:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=size or (9.0, 5.4))
    plots.draw(chart, frame, figure, **controls)
    if is_new and is_message(figure):
        figure.set_figheight(INCHES_MESSAGE)
    return figure.axes[0]


def _subfigure_of(ax: Any) -> Any:
    """Return a SubFigure in the place of an Axes of a grid, which is removed; ValueError for another Axes."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"ax is {ax}; expected an Axes of a grid.\nType fig, axes = plt.subplots(1, 2)")
    figure = ax.get_figure(root=True)
    ax.remove()
    return figure.add_subfigure(place)


SETTINGS = (
    *(
        "model",
        "density",
        "format",
        "engine",
        "gradient",
        "update",
        "storage",
        "execution",
        "serial",
        "device",
        "batch_rows",
    ),
    *("width", "threads"),
)
MEASURED = (
    "seconds_step",
    "seconds_measured",
    "ratio",
    "ratio_low",
    "ratio_high",
    "bytes_peak",
    "ratio_memory",
    "loss",
    "quality",
)
COLUMNS = (*SETTINGS, *MEASURED, "rounds", "status", "verdict", "reason", "key")
WORDS = {"sparse": "faster", "dense": "slower", "level": "equivalent", "inconclusive": "inconclusive"}
"""The verdict of a ratio dense / this configuration, in words about this one."""
Record = Mapping[str, Any]
CITED = ("python", "numpy", "scipy", "numba", "cuda", "cupy")
"""Libraries whose versions a citation names."""
LATEX = ("configuration", "density", "time a step", "peak memory", "dense / this", "verdict")
"""Columns of a table for papers."""


def _latex_cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of the tidy table for a paper, in the order of `LATEX`; "" for unknown values."""
    tell = lambda value, unit: "" if pd.isna(value) else unit(value)  # noqa: E731
    ratio = ""
    if not pd.isna(line["ratio"]):
        ratio = f"{line['ratio']:.3g} ({line['ratio_low']:.3g} to {line['ratio_high']:.3g})"
    return (
        formatting.name_configuration(line),
        tell(line["density"], formatting.format_density),
        tell(line["seconds_step"], formatting.format_seconds),
        tell(line["bytes_peak"], formatting.format_bytes),
        "1" if line["verdict"] == "baseline" else ratio,
        line["verdict"],
    )


def _escape_latex(text: str) -> str:
    r"""Return a text with the special characters of LaTeX escaped.

    >>> print(_escape_latex("1 % of a_b"))
    1 \% of a\_b
    """
    return re.sub(r"([%&_#$])", r"\\\1", text)


def tidy(trials: pd.DataFrame) -> pd.DataFrame:
    """Return one row per configuration of these trials, sorted by density and time; always with the columns `COLUMNS`.

    >>> from workbench import store
    >>> list(tidy(store.frame()).columns)[:3]
    ['model', 'density', 'format']
    """
    if trials.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    counts = trials[trials["status"].isin(configurations.NUMBERED)].groupby("key").size()
    lines = []
    for group in configurations.groups(trials):
        found = {contest.asked_density: contest for contest in contests_of_group(group, "seconds_step")}
        lines += [_line(record, found.get(record["density"]), counts) for record in group.rows]
    return pd.DataFrame(lines, columns=list(COLUMNS)).sort_values(["density", "seconds_step"], ignore_index=True)


def _line(record: Record, contest: Contest | None, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a configuration's record as a row of the tidy table, with ratios to the best dense one of `contest`.

    `counts` maps keys to numbers of trials.
    """
    base, estimate = contest.dense if contest else None, estimate_of(record)
    line: dict[str, Any] = {name: record.get(name) for name in COLUMNS}
    line |= {"seconds_measured": record["seconds_step"]} | ({"seconds_step": estimate.value} if estimate else {})
    line |= {
        "density": configurations.density_of(record),
        "loss": record.get("loss_last"),
        "reason": record["reason"] or "",
    }
    line["rounds"], line["status"] = int(counts.get(record["key"], 0)), record["status"]
    if record["status"] not in configurations.NUMBERED:
        return line | {"verdict": record["status"]}
    if base is None or base["status"] not in configurations.NUMBERED:
        return line | {"verdict": "no baseline"}
    if base["key"] == record["key"]:
        return line | {"ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0, "ratio_memory": 1.0, "verdict": "baseline"}
    is_named = contest is not None and record is contest.sparse and contest.dense is base
    ratio = contest.ratio if contest and is_named else ratio_between(base, record, "seconds_step")
    if ratio is not None:
        line |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    if base["bytes_peak"] and record["bytes_peak"]:
        line["ratio_memory"] = base["bytes_peak"] / record["bytes_peak"]
    return line | {"verdict": WORDS[ratio.verdict] if ratio is not None else "inconclusive"}


CHARTS = {"time": "time_density", "memory": "memory_density", "quality": "learning", "loss": "learning"}
"""Short names of charts; the last two are one chart of two measures."""


class Text:
    """A text that looks well in a notebook; `str()` of it is plain.

    >>> Text("Sparse is faster.")
    Sparse is faster.
    """

    def __init__(self, text: str, body: str = "") -> None:
        """Store the plain text and its HTML body, by default the text as a paragraph."""
        self._text, self._body = text, body or f"<p>{html.escape(text)}</p>"

    def __str__(self) -> str:
        """Return the plain text."""
        return self._text

    def __repr__(self) -> str:
        """Return the plain text."""
        return self._text

    def _repr_html_(self) -> str:
        """Return the text as HTML for a notebook."""
        return page(self._body)


class Result:
    """The result of a sweep, read from its run folder; of a running sweep, the records measured so far.

    Attributes
    ----------
    folder : pathlib.Path
        The run folder, which `wb.open` takes.

    Examples
    --------
    >>> import workbench as wb
    >>> result = wb.sweep("uniform", density=0.01, width=4, rows=500, features=200, rounds=1, budget=30,
    ...                   run="/tmp/workbench-doctest")  # doctest: +SKIP
    >>> result.frame[["format", "seconds_step", "ratio"]]  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path) -> None:
        """Read records and progress of the run folder, or of a file of records."""
        self.folder = Path(folder)
        self.refresh()

    def refresh(self) -> "Result":
        """Read records and progress of the run folder again, in place, and return this object."""
        is_started = self.folder.is_file() or (self.folder / store.FILE).exists()
        self._trials = export.frame_of(self.folder) if is_started else store.frame()
        is_run = (self.folder / run_folder.PLAN).exists()
        self._answered = pool_rounds(export.answer_frame_of(self.folder) if is_started or is_run else store.frame())
        is_run = (self.folder / run_folder.PROGRESS).exists()
        self._progress = run_folder.read_progress_or_failure(self.folder) if is_run else None
        self._tidy: Any = None
        return self

    @property
    def is_running(self) -> bool:
        """Whether the sweep still runs in the background, as of the last refresh."""
        return self._progress is not None and self._progress.alive

    @property
    def state(self) -> str:
        """State of the run as a sentence: how many trials there are, and what to do if some are missing."""
        if self._progress is None:
            return f"{len(self._trials):,} trials."
        progress = self._progress
        trials = f"{progress.done} of {progress.total} trials"
        if self.is_running:
            return f"Still measured: {trials}. Type result.refresh() for what is new."
        message = f" {progress.message}" if progress.message else ""
        return f"{progress.state.capitalize()}: {trials}.{message}"

    def stop(self) -> None:
        """Ask a running sweep to stop after its current trial; records are kept."""
        run_folder.stop_run(self.folder)

    @property
    def trials(self) -> Any:
        """All trials as a pandas DataFrame, one line a trial, with all columns of a record."""
        return self._trials

    @property
    def frame(self) -> Any:
        """One line a configuration, as a pandas DataFrame.

        `seconds_step` is the estimate that ratios are made of, `seconds_measured` the mean of the rounds of one run.
        `bytes_peak` is the peak memory. `ratio` is the time of the best dense one at the
        same density divided by this one's, above 1 if this one is faster, with its 95 % interval `ratio_low` to
        `ratio_high`; `ratio_memory` is the same for peak memory. `verdict` is faster, slower, equivalent, inconclusive,
        baseline, or the status of a configuration without a result.
        """
        if self._tidy is None:
            self._tidy = tidy(self._trials)
        return self._tidy

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer for programs, None if nothing was measured.

        `density` is the one that it is about, `seconds` the training time of `epochs` epochs by side. `time` and
        `memory` have the better `side`, the `ratio` dense / sparse with its 95 % interval `low` to `high`, the
        `probability` of the side, and the `source`. `break_even` has the `density` up to which sparse is faster, `low`
        and `high`; None if none was found.
        """
        found = answer_of(self._answered)
        return found.facts if found else None

    @property
    def verdict(self) -> Text:
        """The answer with its uncertainty, as `Text`; a note if nothing was measured."""
        if not len(self._answered):
            return Text(f"Nothing was measured yet. {self.state}")
        from workbench.analysis.table_size import table_size_sentences
        from workbench.panels import pages

        if "dense" not in set(self._answered["format"]) and (sentences := table_size_sentences(self._answered)):
            return Text("\n".join(sentences), "".join(f"<p>{html.escape(text)}</p>" for text in sentences))
        as_html, text = pages.answer(self._answered)
        return Text(text, as_html)

    @property
    def break_evens(self) -> Text:
        """The densities below which each sparse configuration is faster, or smaller, than dense, as `Text`."""
        if not len(self._trials):
            return Text(f"Nothing was measured yet. {self.state}")
        from workbench.analysis import breakeven
        from workbench.analysis.verdict_text import MEASURES
        from workbench.panels import pages

        found = [even.sentence for measure in MEASURES for even in breakeven(self._trials, measure)]
        return Text("\n".join(found), pages.break_evens(self._trials))

    def plot(
        self,
        chart: str = "time",
        figure: Any = None,
        *,
        ax: Any = None,
        size: tuple[float, float] | None = None,
        interactive: bool = False,
        **controls: Any,
    ) -> Any:
        """Draw a chart and return its Axes.

        Parameters
        ----------
        chart : str
            "time", "memory", "loss", "quality" (of trainings with `epochs`), or one of `workbench.plots.names()`.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one.
        ax : matplotlib.axes.Axes, optional
            Axes of a grid, such as one of `plt.subplots(1, 2)`, whose place the chart takes.
        size : (float, float), optional
            Width and height of a new figure in inches; by default 9 x 5.4.
        interactive : bool
            Whether to return a chart for notebooks that answers to the pointer, by Plotly: values with intervals, a
            click on a name hides it, axes logarithmic or linear. Elsewhere it is a picture.
        **controls
            Controls of the chart, such as `candidates="best"` for the best sparse and the best dense candidate alone.

        Returns
        -------
        matplotlib.axes.Axes
            The first axes of the figure; a `Picture` if `interactive`.
        """
        measure = {"measure": chart} if chart in ("loss", "quality") else {}
        if interactive:
            from workbench.panels import picture

            return picture.draw(CHARTS.get(chart, chart), self._trials, **measure | controls)
        return plot(CHARTS.get(chart, chart), self._trials, figure, ax, size, **measure | controls)

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Return `frame` as CSV text, or write it to a file.

        Parameters
        ----------
        path : path, optional
            File to write; by default the text is returned.

        Returns
        -------
        str or None
            The text if there is no `path`.
        """
        return self.frame.to_csv(path, index=False)

    def to_latex(self, path: str | Path | None = None) -> str | None:
        r"""Return a LaTeX table of the configurations with the citation as its caption, or write it to a file.

        The ratio is dense / this configuration with its 95 % interval. The document needs the package booktabs.

        Parameters
        ----------
        path : path, optional
            File to write; by default the text is returned.

        Returns
        -------
        str or None
            The text if there is no `path`.
        """
        shown = pd.DataFrame(list(map(_latex_cells, self.frame.to_dict("records"))), columns=list(LATEX))
        caption = _escape_latex(self.citation)
        return shown.to_latex(path, index=False, escape=True, caption=caption, column_format="llrrll")

    @property
    def citation(self) -> str:
        """A line for papers: the version that measured, the machine, the dates, and the versions of libraries."""
        rows, machine = self._trials.to_dict("records"), export.machine_of(self.folder)
        if not rows:
            return "Nothing was measured yet."
        versions = joined_values(row["versions"] or {} for row in rows)
        days = sorted({str(row["time"])[:10] for row in rows if row["time"]})
        where = machine.get("cpu") or f"machine {', '.join(sorted({str(row['machine']) for row in rows}))}"
        own = versions.pop("sparse-workbench", "")
        used = ", ".join(f"{name} {version}" for name, version in versions.items() if name in CITED)
        span = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "an unknown day"
        return f"Measured by Sparse Workbench {own} on {where}, {span}, with {used}."

    def report(self, path: str | Path | None = None, quote_formulas: bool = False, interactive: bool = False) -> Path:
        """Write a report and return its path.

        Parameters
        ----------
        path : path, optional
            Ends in .html, .md, .csv or .parquet; by default `report.html` in the run folder.
        quote_formulas : bool
            Whether texts in a .csv that a spreadsheet would run, such as "=1+1", begin with an apostrophe. A warning
            tells them otherwise.
        interactive : bool
            Whether the charts of an .html answer to the pointer: values with intervals, names to hide, axes
            logarithmic or linear. Needs Plotly, whose script adds 2 MB to the file.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return export.write_report(self.folder, path, quote_formulas=quote_formulas, interactive=interactive)

    def __repr__(self) -> str:
        """Return folder and state as one line."""
        return f"Result of {self.folder}: {self.state}"

    def __str__(self) -> str:
        """Return verdict and state as plain text."""
        return f"{self.verdict}\n{self.state}"

    def _repr_html_(self) -> str:
        """Return verdict, state and a chart of time as HTML for a notebook."""
        from workbench.panels import pages

        body = pages.answer(self._answered)[0] if len(self._answered) else "<p>Nothing was measured yet.</p>"
        return page(f"{body}<p>{html.escape(self.state)}</p>", self._trials, CHARTS["time"])


@with_known_parameters
def open(run: str | Path) -> Result:
    """Open the result of a stored run.

    Parameters
    ----------
    run : path or str
        Run folder, its name below `runs`, or a `.jsonl` or `.jsonl.gz` file of records.

    Returns
    -------
    Result
        What the run has measured so far.

    Raises
    ------
    FileNotFoundError
        If there is no such run; the message lists the runs there are.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.open("no-such-run")
    Traceback (most recent call last):
    ...
    FileNotFoundError: There is no run 'no-such-run'...
    """
    run = _path(run)
    for path in (Path(run).expanduser(), run_folder.ROOT / str(run)):
        if not path.exists() and (older := store.packed_path(path)).is_file():
            return Result(older)
        if path.is_file() or any((path / name).exists() for name in (run_folder.PROGRESS, "trials.jsonl")):
            return Result(path)
    known = [str(path) for path in run_folder.list_runs()]
    near = difflib.get_close_matches(str(run), [name for path in known for name in (path, Path(path).name)], 1)
    listed = f"there are: {', '.join(known[:10])}" if known else f"there is none in the folder {run_folder.ROOT}"
    hint = f'wb.open("{near[0]}")' if near else "wb.runs() for a table of runs"
    raise FileNotFoundError(f"There is no run {str(run)!r}; {listed}.\nType {hint}.")


@with_known_parameters
def runs(root: str | Path = run_folder.ROOT) -> Any:
    """List the runs below a folder, the newest first.

    Parameters
    ----------
    root : path
        Folder of run folders, by default `runs` in the current one.

    Returns
    -------
    pandas.DataFrame
        Columns `run` (what `wb.open` takes), `state`, `trials`, `total`, `measured` (local time of the last trial).

    Examples
    --------
    >>> import workbench as wb
    >>> list(wb.runs("/nonexistent").columns)
    ['run', 'state', 'trials', 'total', 'measured']
    """
    import pandas as pd

    known = [(folder, run_folder.read_progress_or_failure(folder)) for folder in run_folder.list_runs(root)]
    lines = [
        (
            str(folder),
            state.state,
            state.done,
            state.total,
            pd.Timestamp.fromtimestamp(folder.stat().st_mtime).round("s"),
        )
        for folder, state in known
    ]
    return pd.DataFrame(lines, columns=["run", "state", "trials", "total", "measured"])


class Comparison:
    """Two runs side by side: what is faster, slower or the same in the second.

    Attributes
    ----------
    is_worse : bool
        Whether anything is significantly slower or larger.
    table : pandas.DataFrame
        One line a configuration that both runs have.

    Examples
    --------
    >>> import workbench as wb
    >>> found = wb.compare("runs/monday", "runs/tuesday")  # doctest: +SKIP
    >>> found.is_worse, len(found.table)  # doctest: +SKIP
    (False, 12)
    """

    def __init__(self, before: Any, after: Any) -> None:
        """Compare the trials of two runs, pandas frames, the older first; ValueError without a common configuration."""
        from workbench.analysis import changes

        self._found = changes.compare_runs(before, after)
        self._texts = [changes.headline(self._found), *changes.sentences(self._found)]
        self._columns, self._rows = changes.COLUMNS, changes.table(self._found.configurations)
        self.is_worse = self._found.is_worse

    @property
    def table(self) -> Any:
        """One line a configuration that both runs have, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self._rows, columns=list(self._columns))

    def __repr__(self) -> str:
        """Return the headline."""
        return self._texts[0]

    def __str__(self) -> str:
        """Return all sentences, one per line."""
        return "\n".join(self._texts)

    def _repr_html_(self) -> str:
        """Return the comparison as HTML for a notebook."""
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self._texts[1:])
        strong = f'<p class="verdict"><strong>{html.escape(self._texts[0])}</strong></p>'
        return page(f"{strong}{table(self._columns, self._rows)}<ul>{items}</ul>")


@with_known_parameters
def compare(before: Any, after: Any) -> Comparison:
    """Compare two runs: what is faster, slower or the same in the second.

    Parameters
    ----------
    before, after : Result, path, or str
        The runs, the older one first.

    Returns
    -------
    Comparison
        Shown as a card in a notebook; `str()` of it is plain text.

    Raises
    ------
    FileNotFoundError
        If there is no such run.
    ValueError
        If the runs have no configuration in common.

    Examples
    --------
    >>> import numpy as np, workbench as wb
    >>> run = wb.sweep(np.eye(64), np.arange(64) % 2, density=0.02, format="csr", rounds=1)  # doctest: +SKIP
    >>> print(wb.compare(run, "runs/yesterday"))  # doctest: +SKIP
    """
    first, second = (run if isinstance(run, Result) else open(run) for run in (before, after))
    return Comparison(first.trials, second.trials)


def _path(run: Any) -> str | Path:
    """Return the folder of a run given as a Result, or the path as given; TypeError for anything else."""
    if isinstance(run, str | Path):
        return run
    if hasattr(run, "folder"):
        return Path(run.folder)
    raise TypeError(
        f"{run!r:.60} is no run; expected a Result or the path of a run folder.\nType wb.runs() to see them."
    )
