"""Sweeps from Python: the settings of a sweep as keyword arguments, one value or a list of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernels.registry import unknown_name
from workbench.advising.source import model_note, suggest_model
from workbench.api import progress, stored
from workbench.api.inputs import in_python, say
from workbench.api.loading import Loaded, as_typed, pop_reading, received
from workbench.api.results import Result
from workbench.data.errors import DataError
from workbench.study import suited
from workbench.study.choices import CHOICES, ChoiceError
from workbench.study.suited import spec_of
from workbench.sweeps import grid, run_folder
from workbench.sweeps import spec as specs
from workbench.sweeps.problem import is_synthetic
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import FILES, Spec, SpecError

OTHER_NAMES = {"trial_seconds": "seconds", "rounds": "rounds"}
"""Keyword arguments that say how to measure, and the choices they make."""
OF_DATA = ("dataset", "reading", "kind", *FILES)
BY_SETTING = {choice.axis: choice.name for choice in CHOICES if choice.axis} | {
    "format": "formats", "engine": "engines", "update": "updates", "hold": "holds", "launch": "launches",
}  # fmt: skip
"""The choice that each setting makes; those of a line make candidates together."""


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
    X : anything that `load` takes, or the path of a spec (.toml)
        A matrix `[rows, features]`, a frame, the path of a file, the name of a data set, or a spec.
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
    if isinstance(X, str | Path) and str(X).endswith(".toml"):
        spec, folder = _of_file(X, y, settings), None
    else:
        reading = pop_reading(settings, {*BY_SETTING, *OTHER_NAMES} - {*OF_DATA})
        refuse_unknown(settings)
        if budget is not None:
            _seconds(budget)
        loaded = received(X, y, label, reading)
        folder = stored.run_of(loaded)
        spec = _of_settings(loaded, folder, settings)
    if budget is not None:
        spec = spec.model_copy(
            update={"limits": specs.Limits(**{**spec.limits.model_dump(), "seconds_sweep": _seconds(budget)})}
        )
    return measured(spec, Path(run) if run is not None else folder, bool(run), wait, budget or 0.0)


def _seconds(budget: Any) -> float:
    """Return the budget in seconds; SpecError unless it is a finite number above 0."""
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < float("inf"):
        raise SpecError(f"budget is {budget!r}; expected a number of seconds above 0, such as budget=60.")
    return float(budget)


def refuse_unknown(settings: Mapping[str, Any]) -> None:
    """Raise for a name that is no setting, with the nearest one and all there are (`SpecError`)."""
    known = [*BY_SETTING, *OTHER_NAMES, "label", "budget", "run", "wait"]
    for name in settings:
        if name not in known:
            raise SpecError(unknown_name("setting", name, known))


def _of_file(path: Any, y: Any, settings: Mapping[str, Any]) -> Spec:
    """Return the specification in a TOML file; SpecError if settings were given, too."""
    if y is not None or settings:
        given = "y" if y is not None else next(iter(settings))
        raise SpecError(f"Both a spec and {given} were given; expected one of them.\nChange the spec, or leave it out.")
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no spec {str(path)!r}, seen from {Path.cwd()}.\nCheck the path.")
    return specs.load_spec(path)


def _of_settings(loaded: Loaded, folder: Path, settings: Mapping[str, Any]) -> Spec:
    """Return the specification of a sweep of loaded data with the given settings."""
    given = {name: value for name, value in settings.items() if value is not None or name == "density"}
    if not loaded.settings:
        _check(given)
        stored.write_once(loaded, folder)
    choices = {name: str(value) for name, value in stored.settings_of(loaded, folder).items()}
    if "density" not in given and "density" not in choices and loaded.dataset.density:
        own = suited.suggest_choices(choices["dataset"])
        if own["densities"] == suited.OF_FILES["densities"]:
            choices["densities"] = suited.densities_around(loaded.dataset.density)
    if not is_synthetic(choices["dataset"]) and not {"model", "width"} & given.keys():
        choices["model"] = suggest_model(loaded.dataset)
        if "path" in loaded.settings:
            say(as_typed(model_note(loaded.dataset, choices["model"])))
    return _spec(choices | _choices_of(given), folder.name)


def _choices_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices that keyword arguments make."""
    return {OTHER_NAMES.get(name) or BY_SETTING[name]: _typed(name, value) for name, value in given.items()}


def _spec(choices: Mapping[str, Any], name: str) -> Spec:
    """Return the specification of choices; SpecError in the words of Python."""
    try:
        return spec_of(suited.complete_with_suggestions(choices), name)
    except ChoiceError as error:
        raise SpecError(in_python(str(error))) from None


def _check(given: Mapping[str, Any]) -> None:
    """Raise SpecError for a wrong value, before anything is written for the sweep: of synthetic data it would be wrong,
    too.
    """
    _spec(_choices_of({name: value for name, value in given.items() if value is not None}), "check")


def _typed(name: str, value: Any) -> Any:
    """Write a value, or several, as a choice takes them; the dense format is left out, since it is always measured."""
    kind = next(
        (choice.kind for choice in CHOICES if choice.name == (OTHER_NAMES.get(name) or BY_SETTING[name])), "text"
    )
    several = list(value) if isinstance(value, list | tuple | set | range) or hasattr(value, "tolist") else [value]
    if name == "format":
        several = [one for one in several if one != "dense"]
        if not several:
            raise SpecError('format has dense alone, which is always measured.\nType format=["csr", "dense"].')
    if kind == "many":
        return tuple(several)
    if any(isinstance(one, dict | list) or callable(one) for one in several):
        raise SpecError(f"{name} is {value!r:.60}; expected one value or a list of values.")
    return ", ".join(map(_word, several))


def _word(value: Any) -> str:
    """Write one value as a person types it.

    >>> [_word(value) for value in (None, True, 1, 0.5)]
    ['natural', 'yes', '1', '0.5']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "natural" if value is None else str(value)


def measured(spec: Spec, folder: Path | None, is_chosen: bool, wait: bool, budget: float) -> Result:
    """Start a sweep in its run folder, or its rest, and return its result when it is over, or at once."""
    place = folder if folder is not None else run_folder.ROOT / spec.name
    if not is_chosen:
        place = run_folder.resolve_run_folder(spec, place, Schedule.of(spec, run_folder.read_all_records(place)).reused)
    run_folder.require_no_active_sweep(place)
    if not grid.expand_grid(spec).cells:
        raise DataError("No configuration of these settings can be measured.\nType fewer settings.")
    run_folder.start_run(spec, place)
    if wait:
        progress.follow("Measuring", place, 0.0, budget)
    return Result(place)
