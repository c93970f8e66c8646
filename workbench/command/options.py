"""Options of commands from the table of settings: what they take, their defaults and their help."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.models import CommandInfo, OptionInfo

from workbench.settings import COMPLETED, Setting

# Groups of the commands in `workbench --help`. The docstring of a command says what it does, what its options are
# (section Parameters) and what to type (section Examples).
#
# How to add a command: its name in `PANELS`; a test parses each of its examples. How to add an option: its help in the
# docstring; of a command that has many, its name in `OPTION_PANELS`.


PANELS = {
    "Measure": ("demo", "advise", "sweep"),
    "Train": ("train", "apply"),
    "Data": ("profile", "data", "check"),
    "Runs": ("status", "stop", "report", "compare", "race"),
    "This machine": ("doctor", "warm", "lab"),
}
"""Commands by the heading under which they are listed, in this order."""

_OPTIONS = {
    "Data": "path dataset label labels columns kind positive merge reading data held_out stream memory bits case rows "
    "features density like framework",
    "Model": "model model_options width intercept dtype",
    "How": "optimizer learning_rate decay epochs batch_rows shuffle ahead format engine gradient update storage "
    "execution lazy search passes candidate budget trial_seconds first_seconds rounds seed quick dry_run yes",
    "Machine": "device threads serial trainers sync_every cluster",
    "Output": "run save force checkpoints detach json verbose results charts",
}
OPTION_PANELS = {panel: tuple(names.split()) for panel, names in _OPTIONS.items()}
"""Options by the heading that they stand under in the help of a command with more than `FEW_OPTIONS` of them."""
FEW_OPTIONS = 8

GROUP_EXAMPLES = {
    "": ("workbench demo", "workbench advise train.txt", "workbench train train.txt --save model/"),
    "data": ("workbench data profile train.txt", "workbench data convert train.txt X.sparse"),
}
"""What to type, by group of commands; "" is that of all."""


def add_help_texts(app: typer.Typer, group: str = "") -> None:
    """Set the help panel and examples of every command of `app` and its groups, in place; sort the commands.

    `group` is the name of the group, "" at the top.
    """
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    order = list(panels)
    for command in app.registered_commands:
        name = _name_of(command)
        command.rich_help_panel = panels.get(name, "Commands") if not group else "Commands"
        if command.callback is not None:
            command.help, parameters, examples = _sections_of(command.callback)
            typed = f"workbench {group} {name}" if group else f"workbench {name}"  # a command may be in two groups
            command.epilog = _epilog([re.sub(rf"^workbench .*?\b{name}\b", typed, one) for one in examples])
            _document_options(command.callback, parameters)
    for inner in app.registered_groups:
        inner.rich_help_panel = panels[str(inner.name)]
        inner.epilog = _epilog(GROUP_EXAMPLES[str(inner.name)])
        add_help_texts(inner.typer_instance, str(inner.name))  # type: ignore[arg-type]
    if not group:
        app.info.epilog = _epilog(GROUP_EXAMPLES[""])
        app.registered_commands.sort(key=lambda command: [*order, _name_of(command)].index(_name_of(command)))


def _sections_of(callback: Callable[..., Any]) -> tuple[str, dict[str, str], list[str]]:
    """Return what the docstring of a command says: its help, that of its parameters by name, and its examples.

    Each paragraph is on one line: the width of the terminal breaks it, not that of the code.
    """
    head, *sections = re.split(r"\n\n(Parameters|Examples)\n-+\n", inspect.cleandoc(callback.__doc__ or ""))
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    parameters = dict(re.findall(r"^(\w+)\n((?: {4}.*\n?)+)", found.get("Parameters", ""), re.MULTILINE))
    paragraphs = "\n\n".join(" ".join(paragraph.split()) for paragraph in head.split("\n\n"))
    return (
        paragraphs,
        {name: " ".join(text.split()) for name, text in parameters.items()},
        found.get("Examples", "").splitlines(),
    )


def _epilog(examples: Sequence[str]) -> str | None:
    """Return the examples of a command as paragraphs under "Example:"; None without examples."""
    return "\n\n".join((("Examples:" if len(examples) > 1 else "Example:"), *examples)) if examples else None


def _document_options(callback: Callable[..., Any], texts: Mapping[str, str]) -> None:
    """Give the parameters of a command their help texts by name, and many options headings, by which they are sorted.

    Replaces the function's signature. Flags that are off have no --no-NAME.
    """
    parameters = []
    for one in inspect.signature(callback, eval_str=True).parameters.values():
        if one.name in texts:
            infos = getattr(one.annotation, "__metadata__", ())
            flag = (f"--{one.name.replace('_', '-')}",) if one.default is False else ()
            info = infos[0] if infos else typer.Argument() if one.default is one.empty else typer.Option(*flag)
            info.help = texts[one.name]
            one = one if infos else one.replace(annotation=Annotated[one.annotation, info])
        parameters.append(one)
    found = {one.name: getattr(one.annotation, "__metadata__", (None,))[0] for one in parameters}
    options = {name: info for name, info in found.items() if isinstance(info, OptionInfo)}
    if len(options) > FEW_OPTIONS:
        panels = {name: panel for panel, names in OPTION_PANELS.items() for name in names if name in options}
        for name, panel in panels.items():
            options[name].rich_help_panel = panel
        places = {name: place for place, name in enumerate(panels)}
        parameters = [one.replace(kind=one.KEYWORD_ONLY) if one.name in options else one for one in parameters]
        parameters.sort(key=lambda one: (one.kind, places.get(one.name, -1)))
    _set_parameters(callback, parameters)


def _name_of(command: CommandInfo) -> str:
    """Return the name by which a command is typed, its own or that of its function."""
    return command.name or str(getattr(command.callback, "__name__", ""))


def with_options(
    *settings: Setting, as_text: bool = True, missing: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command an option for each setting, which it takes as `**` in its last parameter.

    Options are taken `as_text`, as they are typed, and are `missing` where they are not; or else have the type, bounds
    and default of the command `train`. In the command's help they come before its own that are keyword-only.
    """

    def give(command: Callable[..., None]) -> Callable[..., None]:
        """Replace the signature that typer sees of `command`; return it."""
        *own, _ = inspect.signature(command, eval_str=True).parameters.values()
        made = [_text_option(setting, missing) if as_text else _typed_option(setting) for setting in settings]
        _set_parameters(command, sorted([*own, *made], key=lambda one: (one.kind, one in own)))
        return command

    return give


def _text_option(setting: Setting, missing: str | None) -> inspect.Parameter:
    """Return the keyword-only parameter of a command that takes one or several values of a setting as text."""
    several = " Several between commas." if setting.widget in ("many", "numbers") and missing is None else ""
    usual = setting.usual if isinstance(setting.usual, str) else ", ".join(setting.usual)
    default = f" By default {usual}." if usual and missing is None else ""
    option = typer.Option(help=f"{setting.help}{several}{default}")
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(setting.name, kind, default=missing, annotation=Annotated[str | None, option])


def _typed_option(setting: Setting) -> inspect.Parameter:
    """Return the keyword-only parameter of a command for a setting, with its type, bounds, default and help."""
    default = setting.default if setting.train is None else setting.train
    kind: Any = str if setting.type is dict else setting.type
    more = f"; by default what suits {COMPLETED[setting.name]}" if setting.name in COMPLETED else ""
    if more or default is None:
        default, kind = None, kind | None
    more += "; a wrong name lists all" if isinstance(setting.allowed, str) else ""
    least = setting.least if setting.train is None else max(1, setting.least or 0)  # a training has an epoch at least
    bounds: dict[str, Any] = {"min": least, "max": setting.most} if setting.type in (int, float) else {}
    option = typer.Option(help=f"{setting.help.removesuffix('.')}{more}.", **bounds)
    annotation = Annotated[kind, option]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _set_parameters(command: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> None:
    """Set the parameters that typer sees of a command, in this order."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
