"""The table of settings: what is derived from it has each of them and no others; and options as one line of text."""

import dataclasses
import inspect
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from workbench import option_text, plots, settings, store, training
from workbench.analysis import configurations
from workbench.api.training import ESTIMATOR_PARAMETERS
from workbench.command import cli
from workbench.study import complete_choices
from workbench.sweeps import grid, spec, trial
from workbench.sweeps.spec import Configuration, SpecError

NAMES = [setting.name for setting in settings.SETTINGS]


def test_a_configuration_has_a_field_for_each_setting_and_no_other():
    assert list(Configuration.model_fields) == NAMES
    assert all(getattr(Configuration(), setting.name) == setting.default for setting in settings.SETTINGS)


def test_columns_of_rows_are_those_of_the_table():
    for setting in settings.SETTINGS:
        column = store.COLUMNS[setting.column or setting.name]
        assert (column.kind, column.meaning, column.part) == (setting.kind, setting.meaning, "setting")
    beyond = set(store.SETTINGS) - {setting.column or setting.name for setting in settings.SETTINGS}
    assert beyond == {"index_dtype", "round"}


def test_every_setting_but_the_axis_and_what_is_repeated_tells_rows_apart():
    parted = {*configurations.LINE, *configurations.GROUP} - {"index_dtype", "machine", "rows_trained"}
    others = {*settings.columns("axis"), *settings.columns("best")}
    assert parted | others == {setting.column or setting.name for setting in settings.SETTINGS}
    assert not parted & others


def test_the_command_train_has_an_option_for_each_setting():
    parameters = inspect.signature(cli.train).parameters  # in the order of the headings in its help
    assert sorted(name for name in parameters if name in NAMES) == sorted(NAMES)


def test_a_setting_has_one_name_and_one_meaning_at_every_door():
    """The keyword in Python, the key in TOML, the option of the command line and the choice of the panel."""
    options = {name: command.params for name, command in commands(typer.main.get_command(cli.app))}
    for command, known in {"workbench train": settings.BY_NAME, "workbench sweep": settings.CHOICES}.items():
        given = {parameter.name: parameter for parameter in options[command]}
        for name, setting in known.items():
            assert given[name].opts == [setting.option]
            assert given[name].help.startswith(setting.help.removesuffix("."))
    assert {*settings.CHOICES} - {*settings.BY_NAME} == {setting.name for setting in settings.MEASURE}
    assert {setting.name for setting in settings.MEASURE} <= {*spec.Measure.model_fields}
    assert {*complete_choices({})} == {*settings.CHOICES}
    for name, of_scikit_learn in {"epochs": "max_iter", "decay": "alpha", "seed": "random_state"}.items():
        assert of_scikit_learn in ESTIMATOR_PARAMETERS
        assert name not in ESTIMATOR_PARAMETERS
        assert all(of_scikit_learn != parameter.name for parameters in options.values() for parameter in parameters)


def test_a_setup_has_the_settings_that_go_to_one():
    fields = [field.name for field in dataclasses.fields(training.Setup)]
    assert fields == [*settings.names(goes_to="setup"), "options", "last"]


@pytest.mark.parametrize("name", settings.names(goes_to="optimizer"))
def test_a_setting_of_the_optimizer_is_an_option_of_it(name):
    assert grid.setup_of(Configuration(**{name: 0.25})).options == {name: 0.25}
    assert trial.settings_of(Configuration(**{name: 0.25}))[name] == 0.25
    assert isinstance(
        trial.settings_of(Configuration())[name], float
    )  # what the optimizer does by default is in the row


@pytest.mark.parametrize(
    "setting", [setting for setting in settings.SETTINGS if setting.allowed], ids=lambda one: one.name
)
def test_an_unknown_value_is_refused_with_those_that_are_known(setting):
    with pytest.raises(SpecError) as raised:
        spec.validate_spec({"name": "x", "axes": {setting.name: "nonsense"}})
    assert all(value in str(raised.value) for value in spec.allowed_values(setting))


@pytest.mark.parametrize(
    "setting", [setting for setting in settings.SETTINGS if setting.least is not None], ids=lambda one: one.name
)
def test_a_number_below_the_least_is_refused(setting):
    with pytest.raises(SpecError, match=f"{setting.name} = "):
        spec.validate_spec({"name": "x", "axes": {setting.name: setting.least - 1}})


FORMER = re.compile(
    r"\b(touch\w*|contender\w*|rival\w*|breach\w*|goals?|doubts?|told|stumble|slopes?|yes or no|at work|of its own)\b"
)
"""Words that the glossary has replaced, and phrases without a meaning of their own."""


def shown_texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of what the command line, the panel, charts and notebooks show to a user."""
    root = typer.main.get_command(cli.app)
    for names, command in commands(root):
        yield names, command.help or ""
        yield from ((f"{names} {each.name}", getattr(each, "help", "") or "") for each in command.params)
    for setting in settings.SETTINGS:
        yield f"setting {setting.name}", setting.meaning
        yield f"choice {setting.name}", setting.label
    for name in itertools.chain.from_iterable(map(plots.names, plots.POOLED)):
        yield f"chart {name}", plots.get(name).title
    for path in sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield path.name, "".join(cell["source"])


def commands(command: Any, names: str = "workbench") -> Iterator[tuple[str, Any]]:
    """Yield (what is typed, command) for a command and all below it that are not hidden."""
    if not command.hidden:
        yield names, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{names} {name}")


def test_what_users_read_has_the_words_of_the_glossary():
    texts = [*shown_texts()]
    assert len(texts) > 300
    assert [(place, found[0], text) for place, text in texts if (found := FORMER.search(text))] == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"a": 1, "b": -2.5, "c": True, "d": None, "e": "text"},
        {"commas": "x, y = z", "digits": "12", "word": "true", "empty": "", "quotes": 'it\'s \\ "so"', "blank": " x"},
        {"large": 2**70, "tiny": 1e-300, "underscore": "1_000"},
    ],
)
def test_what_is_written_is_read_back(options):
    assert option_text.parsed(str(option_text.Options(options))) == options


@pytest.mark.parametrize("text", ["a", "a=1, a=2", "=3", "a=1,,b=2", "a='open", "a=1; b=2'x'"])
def test_an_invalid_line_is_refused(text):
    with pytest.raises(ValueError, match="reading is"):
        option_text.parsed(text, "reading")
