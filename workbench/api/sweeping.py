"""Sweeps from Python: the settings of a sweep as keyword arguments, one value or a list of each."""

import hashlib
import html
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernels.registry import unknown_name
from workbench import data
from workbench.advising.source import model_note, suggest_model
from workbench.analysis import formatting
from workbench.api import results
from workbench.api.inputs import in_notebook, say
from workbench.api.loading import Loaded, pop_reading, receive
from workbench.api.results import Result
from workbench.data.errors import DataError
from workbench.option_text import Options, worded
from workbench.settings import CHOICES
from workbench.study import suited
from workbench.study.suited import spec_of
from workbench.sweeps import grid, progress_bar, run_folder
from workbench.sweeps import spec as specs
from workbench.sweeps.problem import is_synthetic
from workbench.sweeps.progress import Progress
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import FILES, Spec, SpecError

# Progress of a measurement where a person sees it: a bar in a terminal, a card in a notebook, lines in a log.


SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_CHARTS = 5.0


def follow(heading: str, folder: Path, spent: float, budget: float) -> None:
    """Show the progress of the run in `folder` until it ends; Ctrl-C asks it to stop, a second one is raised.

    `heading` labels the display, `spent` and `budget` are seconds (0: no budget).
    """
    if in_notebook():
        _follow_in_notebook(heading, folder, spent, budget)
        return
    if sys.stderr.isatty():
        from rich.console import Console

        progress_bar.follow(heading, folder, spent, budget, console=Console(stderr=True))
        return
    due = time.monotonic()

    def show(state: Progress, _is_stopping: bool) -> None:
        """Print a line on the run's state if one is due."""
        nonlocal due
        if time.monotonic() >= due and state.total:
            due = time.monotonic() + SECONDS_BETWEEN_LINES
            say(f"{heading}: {progress_bar.line(state, spent, budget)}")

    run_folder.watch(folder, show)


INTERRUPT = "Interrupt the cell to stop and keep what was measured."


def _follow_in_notebook(heading: str, folder: Path, spent: float, budget: float) -> None:
    """Show a card in the notebook until the run ends: a bar, and every few seconds the chart of what is measured."""
    from IPython.display import HTML, display

    handle: Any = display(HTML(""), display_id=True)
    drawn, picture, last = time.monotonic(), "", ""

    def show(state: Progress, _is_stopping: bool) -> None:
        """Update the card's progress bar, and its chart from the run folder."""
        nonlocal drawn, picture, last
        if state.done and time.monotonic() - drawn > SECONDS_BETWEEN_CHARTS:
            from workbench import store
            from workbench.panels import picture as pictures

            drawn, records = time.monotonic(), run_folder.read_current_records(folder)
            records = [record for record in records if record["status"] in ("ok", "disturbed")]
            picture = pictures.draw("time_density", store.frame(records)).html if records else ""
        text = html.escape(f"{heading}: {progress_bar.line(state, spent, budget)}")
        bar = f'<progress max="{state.total or 1}" value="{state.done}" aria-label="Trials done"></progress>'
        body = f'<p role="status">{bar} {text}<br><small>{INTERRUPT}</small></p>{picture}'
        if body != last:
            last = body
            handle.update(HTML(results.page(body)))

    try:
        run_folder.watch(folder, show)
    finally:
        handle.update(HTML(""))


# Data in memory on its way to the measured processes: written once as X.sparse, and mapped by each of them.


FOLDER = "X.sparse"
HASH_BYTES = 4


def content_hash(dataset: data.Dataset) -> str:
    """Return 8 hexadecimal digits that identify matrix and labels of a data set in memory.

    >>> from workbench.api.loading import load
    >>> content_hash(load(([[1.0], [2.0]], [0, 1]))) == content_hash(load(([[1.0], [2.0]], [0, 1])))
    True
    """
    found = hashlib.blake2b(digest_size=HASH_BYTES)
    for array in (dataset.x.indptr, dataset.x.indices, dataset.x.data, dataset.y):
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    found.update("\0".join((dataset.labels.kind, *dataset.labels.classes)).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def name_of(loaded: Loaded) -> str:
    """Return a run name after its data: the file or data set, or "memory-HASH" for data in memory."""
    if loaded.settings:
        stem = Path(str(loaded.settings.get("path") or loaded.settings["dataset"])).name.partition(".")[0]
        return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in stem).strip("_") or "data"
    return f"memory-{content_hash(loaded.dataset)}"


def settings_of(loaded: Loaded, folder: Path) -> dict[str, Any]:
    """Return the settings by which a measured process reads the data: those given, or those of X.sparse in `folder`."""
    if loaded.settings:
        return dict(loaded.settings)
    return {"dataset": "sparse", "path": str((folder / FOLDER).resolve()), "reading": Options({"whole": True})}


def write_once(loaded: Loaded, folder: Path) -> None:
    """Write data in memory to `folder`/X.sparse unless it is there, and print its size; nothing for files.

    Prints a note if the labels are random. An existing folder has the same data, as its name is a content hash.
    """
    if loaded.settings:
        return
    place = folder / FOLDER
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        data.convert(loaded.dataset, place, shuffle=None)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        say(f"X and y were written to {place} for the measured processes: {formatting.format_bytes(size)} of disk.")
    if not loaded.is_labelled:
        say("X has no labels: random ones are used. Times and memory are those of your data, loss and quality are not.")


def run_of(loaded: Loaded, prefix: str = "") -> Path:
    """Return the default run folder of loaded data, `prefix` before its name; not created."""
    return run_folder.ROOT / f"{prefix}{name_of(loaded)}"


OF_DATA = ("dataset", "reading", "kind", *FILES)


def sweep(
    X: Any,
    y: Any = None,
    *,
    label: str | None = None,
    budget: float | None = None,
    run: str | Path | None = None,
    wait: bool = True,
    **settings: Any,
) -> Result:
    """Measure sparse against dense over settings, and return the result.

    Dense is always measured, in all its forms. Ctrl-C, or interrupting the cell, stops the run and returns
    what there is; the same call again measures the rest.

    Parameters
    ----------
    X : anything that `load` takes, or a spec
        A matrix `[rows, features]`, a frame, the path of a file, the name of a data set, the path of a spec (.toml), or
        a dict with the tables of one, such as `{"axes": {...}, "candidates": [{...}], "measure": {...}}`.
    y : array of shape [rows], optional
        Labels of a matrix in memory. Without labels random ones are used to time training.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    budget : float, optional
        Seconds that the sweep may take; by default as long as its rounds need.
    run : path, optional
        Run folder; by default one below `runs`, named after the data.
    wait : bool
        Whether to return only when all is measured; if not, `result.refresh()` reads what is new.
    **settings
        One value or a list of each setting, such as `density=[0.01, 0.1]`, `format=["csr", "dense"]`, `width`,
        `batch_rows`, `model`, `optimizer`, `device`, `threads`, `epochs`; `rounds` and `trial_seconds` say how to
        measure.

    Returns
    -------
    Result
        Shown as a card with a chart in a notebook.

    Raises
    ------
    ValueError
        If the data or a setting cannot be used; the message says what to type.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.sweep("uniform", densty=[0.1])
    Traceback (most recent call last):
    ...
    workbench.sweeps.spec.SpecError: Unknown setting 'densty'. Did you mean 'density'? ...
    """
    if is_spec(X):
        spec, folder = _parse_given_spec(X, y, settings), None
    else:
        reading = pop_reading(settings, {*CHOICES} - {*OF_DATA})
        refuse_unknown(settings)
        if budget is not None:
            _seconds(budget)
        loaded = receive(X, y, label, reading)
        folder = run_of(loaded)
        spec = _spec_of_settings(loaded, folder, settings)
    if budget is not None:
        spec = spec.model_copy(
            update={"limits": specs.Limits(**{**spec.limits.model_dump(), "budget": _seconds(budget)})}
        )
    return measured(spec, Path(run) if run is not None else folder, bool(run), wait, budget or 0.0)


def _seconds(budget: Any) -> float:
    """Return the budget in seconds; SpecError unless it is a finite number above 0."""
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < float("inf"):
        raise SpecError(f"budget is {budget!r}; expected a number of seconds above 0, such as budget=60.")
    return float(budget)


def refuse_unknown(settings: Mapping[str, Any]) -> None:
    """Raise SpecError, with the nearest and all known names, for the first name that is not a setting of sweeps."""
    known = [*CHOICES, "label", "budget", "run", "wait"]
    for name in settings:
        if name not in known:
            raise SpecError(unknown_name("setting", name, known))


def is_spec(value: Any) -> bool:
    """Return whether a value is a specification: the path of a TOML file, or a dict with the table `axes`.

    >>> is_spec("spec.toml"), is_spec({"axes": {"dataset": "uniform"}}), is_spec({"axes": [1, 2]})
    (True, True, False)
    """
    if isinstance(value, Mapping):
        return isinstance(value.get("axes"), Mapping)
    return isinstance(value, str | Path) and str(value).endswith(".toml")


def _parse_given_spec(given: Any, y: Any, settings: Mapping[str, Any]) -> Spec:
    """Return the specification in a TOML file or dict.

    FileNotFoundError for a missing file; SpecError if it is invalid, or y or settings were given, too.
    """
    if y is not None or settings:
        other = "y" if y is not None else next(iter(settings))
        raise SpecError(f"Both a spec and {other} were given; expected one of them.\nChange the spec, or leave it out.")
    if isinstance(given, Mapping):
        return specs.validate_spec(dict(given))
    if not Path(given).exists():
        raise FileNotFoundError(f"There is no spec {str(given)!r}, seen from {Path.cwd()}.\nCheck the path.")
    return specs.load_spec(given)


def _spec_of_settings(loaded: Loaded, folder: Path, settings: Mapping[str, Any]) -> Spec:
    """Return the specification of a sweep of loaded data; densities and model are suggested if not in `settings`.

    Data in memory is written to `folder`. Raises SpecError for invalid settings.
    """
    given = {name: value for name, value in settings.items() if value is not None or name == "density"}
    if not loaded.settings:
        drawn = choices_of({name: value for name, value in given.items() if value is not None})
        spec_of(
            suited.complete_with_suggestions(drawn), "check"
        )  # of drawn data: an invalid setting is refused before anything is written
        write_once(loaded, folder)
    choices = {name: str(value) for name, value in settings_of(loaded, folder).items()}
    if "density" not in given and "density" not in choices and loaded.dataset.density:
        own = suited.suggest_choices(choices["dataset"])
        if own["density"] == suited.OF_FILES["density"]:
            choices["density"] = suited.densities_around(loaded.dataset.density)
    if not is_synthetic(choices["dataset"]) and not {"model", "width"} & given.keys():
        choices["model"] = suggest_model(loaded.dataset)
        if "path" in loaded.settings:
            say(worded(model_note(loaded.dataset, choices["model"])))
    return spec_of(suited.complete_with_suggestions(choices | choices_of(given)), folder.name)


def choices_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return {choice: value as typed} for keyword arguments of a sweep; SpecError for a value that cannot be used.

    "dense" is left out of the formats, since it is always measured.
    """
    choices: dict[str, Any] = {}
    for name, value in given.items():
        several = list(value) if isinstance(value, list | tuple | set | range) or hasattr(value, "tolist") else [value]
        if name == "format":
            several = [one for one in several if one != "dense"]
            if not several:
                raise SpecError('format has dense alone, which is always measured.\nType format=["csr", "dense"].')
        refused: tuple[type, ...] = (list,) if CHOICES[name].type is dict else (list, dict)
        if any(isinstance(one, refused) or callable(one) for one in several):
            raise SpecError(f"{name} is {value!r:.60}; expected one value or a list of values.")
        is_many = CHOICES[name].widget == "many"
        choices[name] = tuple(several) if is_many else ", ".join(map(_word, several))
    return choices


def _word(value: Any) -> str:
    """Return one value as text that a user would type; options by name as a line.

    >>> [_word(value) for value in (None, True, 1, 0.5)]
    ['natural', 'yes', '1', '0.5']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "natural" if value is None else str(Options(value) if isinstance(value, Mapping) else value)


def measured(spec: Spec, folder: Path | None, is_chosen: bool, wait: bool, budget: float) -> Result:
    """Start a sweep, or the rest of it, in its run folder, and return its result: at its end if `wait`, else at once.

    `folder` None takes the spec's name; unless `is_chosen`, another free folder may be taken. Raises SpecError if a
    sweep is active there, DataError if nothing can be measured, RunError if its process fails.
    """
    place = folder if folder is not None else run_folder.ROOT / spec.name
    if not is_chosen:
        place = run_folder.resolve_run_folder(spec, place, Schedule.of(spec, run_folder.read_all_records(place)).reused)
    run_folder.require_no_active_sweep(place)
    if not grid.expand_grid(spec).configurations:
        raise DataError("No configuration of these settings can be measured.\nType fewer settings.")
    with run_folder.stopped_by_interrupt(place):
        run_folder.start_run(spec, place)
        if wait:
            follow("Measuring", place, 0.0, budget)
            if (state := run_folder.read_progress(place)).state == "failed":
                raise run_folder.RunError(
                    f"The sweep failed: {state.message}\nRecords, if any: wb.open({str(place)!r})"
                )
    return Result(place)
