"""Exit status of commands: 0 for success, 1 for a failure, 2 for wrong input, 130 when interrupted.

Errors a user can fix are one message; what is interrupted says how to go on. Others are defects, with a traceback.
"""

import atexit
import copy
import errno
import gc
import os
import shlex
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from workbench import option_text
from workbench.command.output import echo, escape_controls

FAILURE, WRONG_INPUT, INTERRUPTED = 1, 2, 130

RESUMED = ("demo", "advise", "sweep")
"""Commands that go on where they ended when they are started again."""

WRONG_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
_ARGUMENTS = "workbench arguments"
OBJECTS_COLLECTED = 250_000
"""Objects that are made between two searches for garbage: imports alone make 130,000, none of which ever is."""
AT_FIRST_USE = ("numpy.f2py", "numpy.testing", "yaml")
"""Modules that libraries import without using them: SciPy copies all names of NumPy, and Numba looks whether it could
read a file of settings in YAML. They take 0.05 s."""


class Group(TyperGroup):
    """Commands of which a wrong name lists the known ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; an unknown name is a usage error (status 2) that lists the known ones."""
        if args and args[0] not in self.commands:
            from kernels.registry import unknown_name

            advice = command_advice(args[0], self.commands)
            ctx.fail(advice or unknown_name("command", args[0], self.commands))
        return super().resolve_command(ctx, args)


USUAL_COMMANDS = {
    "version": "--version", "help": "--help", "fit": "train FILE", "run": "sweep FILE", "plot": "report RUN",
    "predict": "apply MODEL FILE",
    "show": "report RUN", "inspect": "data profile FILE", "convert": "data convert FILE FOLDER", "ls": "status",
    "list": "status", "evaluate": "apply MODEL FILE", "test": "apply MODEL FILE", "measure": "advise FILE",
}  # fmt: skip
"""Names that other programs have for commands, with what to type here."""


def command_advice(name: str, known: Collection[str]) -> str:
    """Return the message for a word typed for a command that is a file, or what another program calls it; else "".

    `known` are the commands of the group: a usual name is for the group of all alone, and none of a known command.
    """
    path = Path(name)
    if "train" not in known:
        return ""
    if name in USUAL_COMMANDS:
        return f"Unknown command {name!r}.\nType workbench {USUAL_COMMANDS[name]}."
    if path.is_dir() and (path / "trials.jsonl").is_file():
        return f"{name!r:.80} is a run folder, and no command.\nType workbench report {shlex.quote(name)}."
    if path.is_file():
        command = "sweep" if path.suffix == ".toml" else "advise"
        return f"{name!r:.80} is a file, and no command.\nType workbench {command} {shlex.quote(name)}."
    return ""


@contextmanager
def _say_what_to_type() -> Iterator[None]:
    """Add to the error of an unknown option the nearest one, to that of a missing argument an example; raise it again.

    The errors are recognized by the name of their class, since click and its copy in typer have one each.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "NoSuchOption" and getattr(error, "possibilities", None) is not None:
            _suggest_option(error)
        if type(error).__name__ == "MissingParameter":
            missing: Any = error
            if examples := (missing.ctx.command.epilog or "").split("\n\n")[1:]:
                missing.message = f"Type, for example: {examples[0]}"
        if hasattr(error, "message") and hasattr(error, "exit_code"):  # an error of click, which prints it
            error.message = escape_controls(str(error.message))
        raise


def _suggest_option(error: Any) -> None:
    """Set the possibilities of the error of an unknown option to at most one, the nearest; in place."""
    from kernels.registry import nearest_name

    options = {
        name.lstrip("-").replace("-", "_"): name
        for parameter in error.ctx.command.params
        for name in parameter.opts
        if name.startswith("--") and not getattr(parameter, "hidden", False)
    }
    near = nearest_name(error.option_name.lstrip("-").replace("-", "_"), options)
    error.possibilities = [options[near]] if near else []


class Commands(Group):
    """The commands; an interrupt ends each of them with the words how to go on."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments as typed in the context, for `original_command_line`; return the rest of the parsing."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        with _say_what_to_type():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; KeyboardInterrupt exits with status 130 and says how to continue."""
        try:
            with _say_what_to_type(), option_text.at_door(option_text.on_command_line):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            exit_interrupted(ctx)


def original_command_line(ctx: Any) -> str:
    """Return the command line as the user typed it, quoted for a shell."""
    return f"{_program} {shlex.join(ctx.meta[_ARGUMENTS])}"


def is_default(ctx: Any, option: str) -> bool:
    """Return whether the option (by parameter name) has its default, because it was not typed."""
    return ctx.get_parameter_source(option).name == "DEFAULT"


def exit_interrupted(ctx: Any, state: str = "Interrupted") -> None:
    """Print the state and the command that continues to standard error; exit with status 130."""
    arguments: Sequence[str] = ctx.meta[_ARGUMENTS]
    is_resumed = _program != PROGRAM or (arguments and arguments[0] in RESUMED)
    how = "Go on with" if is_resumed else "Start again with"
    echo(f"{state}. {how}: {original_command_line(ctx)}", err=True)
    raise typer.Exit(INTERRUPTED)


def exit_unless_finished(ctx: typer.Context, state: str) -> None:
    """Exit with status 130 if the sweep's state is "stopped", with 1 unless it is "finished"."""
    if state == "stopped":
        exit_interrupted(ctx, "Stopped")
    if state != "finished":
        raise typer.Exit(FAILURE)


def status_of(error: Exception) -> int | None:
    """Return the exit status of an exception: 2 for wrong input, 1 for other failures, None for a defect."""
    is_ours = type(error).__module__.split(".")[0] in ("workbench", "kernels", "benchmarks")
    if isinstance(error, WRONG_FILE) or (is_ours and isinstance(error, ValueError | LookupError)):
        return WRONG_INPUT
    return FAILURE if is_ours or isinstance(error, OSError | ImportError | MemoryError) else None


def text_of(error: Exception) -> str:
    """Return the message of an exception for the command line, in the words of options.

    For a system error text and file, without the number.
    """
    if worded := getattr(error, "worded", None):  # of a SpecError, whose module would import all of data
        return str(worded(lambda option, value: f"--{option.replace('_', '-')} {value!r}"))
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}. Free some of the disk, or name a folder on another one."
    if error.errno == errno.EROFS:
        return f"{text}. Name a folder that can be written to."
    if not error.filename or (folder := Path(os.fsdecode(error.filename)).parent).exists():
        return text
    return f"{text}. There is no folder {folder}; make it first, or name another"


PROGRAM = "workbench"
_program = PROGRAM
"""What a user types to start the program whose command line runs in this process."""
_is_own_process = False


def seconds_spent() -> float:
    """Return the seconds since this process began, imports included; 0.0 unless it runs the command line."""
    if not _is_own_process:
        return 0.0
    import psutil

    return max(time.time() - float(psutil.Process().create_time()), 0.0)


class _AtFirstUse(MetaPathFinder):
    """Finder of the modules `AT_FIRST_USE`, which are executed when one of their names is first read."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of such a module with a loader that waits, None for any other module."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in AT_FIRST_USE else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _with_one_command(app: typer.Typer, name: str) -> typer.Typer:
    """Return `app` with its command `name` alone, so that no options of others are made; `app` itself if it has none
    of that name.
    """
    named = [one for one in app.registered_commands if (one.name or getattr(one.callback, "__name__", "")) == name]
    if not named:
        return app
    alone = copy.copy(app)
    alone.registered_commands, alone.registered_groups = named, []
    return alone


def run(app: typer.Typer, program: str = PROGRAM) -> None:
    """Run the command line and exit the process with its status; defects are raised with their traceback.

    Garbage is collected less often meanwhile. `program` is what is typed before the arguments.
    """
    global _is_own_process, _program
    _is_own_process, _program, shown = True, program, warnings.showwarning
    warnings.showwarning = lambda message, *_: echo(f"Note: {message}", err=True)
    thresholds, finder = gc.get_threshold(), _AtFirstUse()
    sys.meta_path.insert(0, finder)
    gc.set_threshold(OBJECTS_COLLECTED)
    atexit.register(gc.freeze)  # the process ends: a last search for garbage takes 0.15 s and frees nothing of use
    try:
        _with_one_command(app, *sys.argv[1:2] or [""])()
    except Exception as error:
        status = status_of(error)
        if status is None:
            raise
        echo(f"{program}: {text_of(error)}", fg="red", err=True)
        sys.exit(status)
    finally:
        _is_own_process, _program = False, PROGRAM
        warnings.showwarning = shown
        sys.meta_path.remove(finder)
        gc.set_threshold(*thresholds)
