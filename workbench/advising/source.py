"""Source of data named by a word: a file or folder whose reader is guessed, or a data set by its name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench import data, models
from workbench.data import contract
from workbench.data.files.nearest import nearest_file
from workbench.option_text import Options, typed
from workbench.sweeps.spec import FILES


def settings_of(
    source: str, dataset: str = "", reading: Mapping[str, Any] | None = None, **given: str
) -> tuple[dict[str, Any], str]:
    """Return (settings that name the data of `source`, why this reader was chosen; "" if it was not guessed).

    `source` is a file, folder or data set's name, `dataset` a reader, `reading` its options, `given` file settings; ""
    for none. DataError if there is no such data or an option does not fit.
    """
    path, why, options = Path(source).expanduser(), "", dict(reading or {})
    if dataset and source in data.names() and not path.exists():
        if dataset != source:
            reader = "path" in data.get(dataset).parameters if dataset in data.names() else True
            but = "reads files" if reader else "is another one"
            raise data.DataError(
                f"{source!r} is a data set by its name, and {dataset!r} {but}; keep one of the two.\n"
                f"Leave {dataset} out, or give the path of a file."
            )
        dataset = ""
    if not dataset and source in data.names() and not ("path" in data.get(source).parameters and path.exists()):
        settings: dict[str, Any] = {"dataset": source}
    elif path.exists():
        if not dataset:
            dataset, guessed, why = contract.guess_reader_options(path, options)
            options |= guessed
        settings = {"dataset": dataset, "path": str(path)}
    else:
        names = ", ".join(data.names())
        near = nearest_file(source, data.names()) or f" Data sets: {names}; or give a path."
        raise data.DataError(f"There is no file and no data set {source!r}.{near}")
    origin = data.get(settings["dataset"])
    given, known = {name: value for name, value in given.items() if value}, origin.parameters
    words = {name: given.pop(name) for name in FILES if name in given and isinstance(known.get(name), str)}
    settings |= {name: _describe_guess(name, value) for name, value in given.items()}
    origin.refuse_unknown(settings.keys() - {"dataset"})
    origin.refuse_unknown(options)
    for name, value in words.items():  # `columns` of readers other than table, which is no file
        if options.setdefault(name, value) != value:
            raise data.DataError(f"{name} is {value!r}, and {options[name]!r} in reading; keep one of them.")
    return settings | ({"reading": Options(options)} if options else {}), why


def load_call(settings: Mapping[str, Any]) -> str:
    """Return the Python call that loads the data that these settings name, `settings_of` being where they come from.

    >>> load_call({"dataset": "table", "path": "my clicks.csv", "reading": {"label": "clicked"}})
    "wb.load('my clicks.csv', dataset='table', label='clicked')"
    >>> load_call({"dataset": "stdlib"})
    "wb.load('stdlib')"
    """
    options = {name: value for name, value in settings.items() if name != "path" and value is not None}
    source = settings.get("path") or options.pop("dataset")
    options |= options.pop("reading", {})
    return f"wb.load({', '.join([repr(str(source)), *(f'{name}={value!r}' for name, value in options.items())])})"


def _describe_guess(name: str, value: str) -> str:
    """Return the value of a setting, with "~" expanded if it is a file."""
    return str(Path(value).expanduser()) if name in FILES else value


def suggest_model(dataset: data.Dataset) -> str:
    """Return the name of the model that suits the labels and facts of a data set."""
    return model_for(data.Description(dataset.labels, dataset.facts, dataset.graph is not None))


def model_for(description: data.Description) -> str:
    """Return the name of the model that suits a data set of this description."""
    return models.default_model(description.task)


def model_note(read: data.Dataset | data.Description, model: str) -> str:
    """Return a sentence on why the model was guessed, with what to type for another one."""
    reason = "each row is what was taken" if read.facts.get("implicit") else f"the labels are {read.labels}"
    return f"The model is {model}: {reason}. Another one: {typed(model='NAME')}."
