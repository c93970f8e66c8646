"""Options of commands from the table of settings: what they take, their defaults and their help."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from workbench.settings import CONTROLS, SETTINGS, Control, Setting

COMPLETED = {"engine": "the format", "gradient": "the format", "update": "the gradient"}
"""Settings that are completed where they are not given, and what they have to suit."""


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` an option for each setting in place of its last parameter, which takes the rest."""
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*own, *(_parameter(setting) for setting in SETTINGS)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


CHOSEN = "What is chosen, where no spec is given"
"""The heading of the options that are choices of a study."""


def with_choices(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` an option for each choice of a study in place of its last parameter, which takes the rest."""
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    options = [_choice(control) for control in CONTROLS]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *options)}
    return command


def _choice(control: Control) -> inspect.Parameter:
    """Return the keyword parameter of a command for a control that is not a setting."""
    said = control.help or f"{control.label}."
    several = {"many": " Several between commas.", "numbers": " Several between commas."}.get(control.kind, "")
    usual = control.default if isinstance(control.default, str) else ", ".join(control.default)
    default = f" By default {usual}." if usual else ""
    annotation = Annotated[str | None, typer.Option(help=f"{said}{several}{default}", rich_help_panel=CHOSEN)]
    return inspect.Parameter(control.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _parameter(setting: Setting) -> inspect.Parameter:
    """Return the keyword-only parameter of a command that stands for a setting, with its type and default."""
    default = setting.default if setting.train is None else setting.train
    kind: Any = setting.type
    if setting.name in COMPLETED:
        default = None
    if default is None:
        kind = kind | None
    annotation = Annotated[kind, _option(setting)]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(setting: Setting) -> Any:
    """Return the typer option of a setting: help and bounds."""
    meaning = f"{setting.meaning[:1].upper()}{setting.meaning[1:]}"
    more = f"; by default what suits {COMPLETED[setting.name]}" if setting.name in COMPLETED else ""
    more += "; a wrong name lists all" if isinstance(setting.allowed, str) else ""
    least = setting.least if setting.train is None else max(1, setting.least or 0)  # a training has an epoch at least
    bounds: dict[str, Any] = {"min": least, "max": setting.most} if setting.type in (int, float) else {}
    return typer.Option(help=f"{meaning}{more}.", **bounds)
