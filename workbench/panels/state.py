"""The state of one study: what is chosen, what is running, what is known. It knows run folders, and no Jupyter.

Whoever shows it observes its traits. Nothing here takes longer than reading a small file, so buttons may call it.
"""

import json
import re
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pandas as pd
import traitlets

from workbench import store
from workbench.analysis import formatting
from workbench.analysis.pairs import CompareError
from workbench.data.errors import DataError
from workbench.formats import FormatError
from workbench.json_text import parsed
from workbench.models import ModelError
from workbench.store.table import RowError
from workbench.study import BY_NAME, CHOICES, ChoiceError, complete_choices, suited
from workbench.study.suited import COMMAND, command_text, name_of, spec_of
from workbench.sweeps import estimate, grid, run_folder
from workbench.sweeps.estimate import format_time_span, minimum_detectable_sentence, seconds_of_trials
from workbench.sweeps.problem import Contents
from workbench.sweeps.progress import Progress
from workbench.sweeps.run_folder import RunError
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import Spec, SpecError

# Plan of what Run would do: how many trials, of which configurations, what is measured already, how long it takes.


FEW = 3
"""Trials before the time left is told: the first ones load data and compile."""


@dataclass(frozen=True)
class Planned:
    """`rest` trials to do at least and at most; `reused` measured before; `configurations` in words; `seconds` as rest.

    `left_out` counts the combinations that cannot be measured, by reason; `minimum_detectable_sentence` says what can
    be distinguished.
    """

    rest: tuple[int, int]
    reused: int
    configurations: tuple[str, ...]
    seconds: tuple[float, float]
    sight: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        least, most = self.rest
        if not most:
            return f"All {formatting.format_count(self.reused, 'trial')} are measured; Run has nothing to add."
        known = f" in addition to {self.reused} measured already" if self.reused else ""
        count = formatting.format_count(least, "trial") if least == most else f"{least} to {most} trials"
        return f"{count}{known}; Run takes {format_time_span(self.seconds)}. {self.sight}".rstrip()

    @property
    def without(self) -> str:
        """Number of cells that are left out, and why, or why one of them is; "" if none is."""
        if not self.left_out:
            return ""
        example = "for example: " if len(self.left_out) > 1 else ""
        return (
            f"{formatting.format_count(sum(self.left_out.values()), 'setting')} left out: "
            f"{example}{next(iter(self.left_out))}"
        )


def plan(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> Planned:
    """Return the plan of a sweep whose run folder holds these rows."""
    schedule = Schedule.of(spec, rows, Contents(is_quick=True))
    rest = (schedule.trials_due(), schedule.trials_most())
    seconds = seconds_of_trials(rest, tuple(schedule.cells.values()), spec, rows)
    return Planned(
        rest, schedule.reused, _configurations(spec), seconds, minimum_detectable_sentence(spec), dict(schedule.dropped)
    )


def _configurations(spec: Spec) -> tuple[str, ...]:
    """Return the distinct names of the configurations of a specification."""
    return tuple(
        dict.fromkeys(formatting.short_configuration_name(cell.model_dump()) for cell in grid.expand_grid(spec).cells)
    )


def left(progress: Progress) -> str:
    """Return the time that a run takes still, for after a comma.

    "" before enough trials ended, for the first ones compile.
    """
    seconds = progress.seconds_left if progress.alive and progress.done - progress.reused >= FEW else None
    return estimate.format_time_left(seconds, progress.seconds_left_most)


# Messages in the words of a panel: an option or parameter that a message names becomes the field that sets it.


FIELDS = {choice.axis or choice.name: choice.label for choice in CHOICES} | {
    "label": "Label",
    "budget": "Budget",
    "dataset": "Reader",
    "reading": "Read with",
}
"""Labels of the fields, by the names of the options that set the same."""
_IN_PYTHON = re.compile(r' \(in Python (?:"[^"\n]*"|[^()"\n])*\)')
_OPTION = re.compile(r"--([a-z][a-z-]*[a-z])(?:[ =]('[^']*'|\"[^\"]*\"|[\w./~:=<>-]*[\w/>]))?")
_PARAMETER = re.compile(r"\b(?:the )?(parameter|option) '(\w+)'")
_NEEDED = re.compile(r"\bthe axis (\w+)")
_SUBJECT = re.compile(r"\b(label|labels|columns|kind|reading)( is | ?= ?)(?=['\"])")
_NAMED = re.compile(r"\*([A-Z][\w ]*)\*")
_AXIS = re.compile(r"\baxis (\w+) = ")


def in_panel(text: str) -> str:
    """Return a message with each option named as the field of the panel.

    >>> in_panel('Type --label NAME for a column of it (in Python label="NAME").')
    'Type NAME in the field *Label* for a column of it.'
    >>> in_panel("--columns is missing; axis model = 'svm'")
    "the field *Columns file* is missing; *Model* = 'svm'"
    >>> in_panel("The data set npz needs the axis path, a file of yours.")
    'The data set npz needs the field *Your file*, a file of yours.'
    >>> in_panel("label is 'wrong'; the columns are a, b.")
    "*Label* is 'wrong'; the columns are a, b."
    >>> in_panel("npz needs the parameter 'labels'; or say kind = 'classes'.")
    "npz needs the field *Labels file*; or say *Labels are* = 'classes'."
    """
    text = _IN_PYTHON.sub("", text)
    text = _OPTION.sub(lambda found: _field(found[1].replace("-", "_"), found[2] or "", found[0]), text)
    text = _NEEDED.sub(lambda found: _field(found[1], "", found[0]), text)
    text = _SUBJECT.sub(lambda found: f"*{FIELDS[found[1]]}*{found[2]}", text)
    text = _PARAMETER.sub(lambda found: _field(found[2], "", found[0]), text)
    return _AXIS.sub(lambda found: f"*{FIELDS[found[1]]}* = " if found[1] in FIELDS else found[0], text)


def _field(name: str, value: str, otherwise: str) -> str:
    """Return the words for a field and its value; `otherwise` if no field sets what has this name."""
    if name not in FIELDS:
        return otherwise
    if value in ("is", "was", "and", "or", "to", "names", "takes"):
        return f"the field *{FIELDS[name]}* {value}"
    return f"{value} in the field *{FIELDS[name]}*" if value else f"the field *{FIELDS[name]}*"


def emphasized(escaped: str) -> str:
    """Return HTML of a message with the names of fields emphasized and its lines kept; `escaped` is its escaped text.

    >>> emphasized("Fill the field *Label*.")
    'Fill the field <em>Label</em>.'
    """
    return _NAMED.sub(r"<em>\1</em>", escaped).replace("\n", "<br>")


# Whether the results in a run folder are those of the present choices, and in which choices they differ.


CHOSEN = "choices.json"
"""In the run folder: the choices that a study was opened with, and those that the run was started with."""


def differences(folder: Path, spec: Spec | None, choices: Mapping[str, Any]) -> str:
    """Return the choices in which the run in the folder differs from these, in words; "" if it is of these.

    `spec` is the sweep of the choices, None if they cannot be measured. A run without a readable spec is not judged.
    """
    try:
        of_run = run_folder.read_spec(folder)
    except run_folder.RunError:
        return ""
    if spec is not None and run_folder.result_identity(of_run) == run_folder.result_identity(spec):
        return ""
    started = chosen_of(folder)
    changes = _changes(started.chosen if started else {}, choices)
    return formatting.join_items(changes) if changes else "another spec"


class Chosen(NamedTuple):
    """Choices that a study was opened with, and choices that its run was started with."""

    given: Mapping[str, Any]
    chosen: Mapping[str, Any]


def chosen_of(folder: Path) -> Chosen | None:
    """Return the choices kept in a run folder; None if a panel did not start the run, or their file is damaged."""
    try:
        kept = parsed((folder / CHOSEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the run is shown without them
        return None
    if not isinstance(kept, dict) or not all(isinstance(kept.get(name), dict) for name in Chosen._fields):
        return None
    return Chosen(kept["given"], kept["chosen"])


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the choices of the run that are others now."""
    names = [name for name in before if name in BY_NAME and _unordered(before[name]) != _unordered(now[name])]
    return [f"{BY_NAME[name].label} {_shown(before[name])} (now {_shown(now[name])})" for name in names]


def _unordered(value: Any) -> Any:
    """Return a value for comparison: a list as a set."""
    return value if isinstance(value, str) else frozenset(value)


def _shown(value: Any) -> str:
    """Return a choice as text, "empty" if nothing is chosen."""
    return (value if isinstance(value, str) else ", ".join(value)) or "empty"


SECONDS_UNSEEN = 1.0
SECONDS_LITTLE, SHARE = 0.05, 10
"""Reading rows takes at most a tenth of the time where it takes more than a little: it disturbs the trials."""


TOLD = (ChoiceError, CompareError, DataError, FormatError, ModelError, RowError, RunError, SpecError)
"""Errors whose message says what to do: a traceback next to it would tell a person nothing."""


class Trouble(NamedTuple):
    """Something that went wrong: what, in a sentence, and the traceback for those who want it; "" if none is due."""

    summary: str
    details: str


class LabState(traitlets.HasTraits):
    """One study. `choices` are as typed, `filled` those of them that follow from the profile of a file; `problem` says
    what is wrong with them, else `planned` what Run would do, and `target` the run folder that it would do it in.

    `progress` and `rows` are as last read from `folder` by `poll`; both are empty while there is no run. `outdated`
    says in which choices that run differs from the present ones, and is empty if it does not. A study without a name
    of its own has that of its data: other data then have another folder, where their newest run is found again.
    """

    choices = traitlets.Dict()
    filled = traitlets.Dict()
    problem = traitlets.Unicode()
    planned = traitlets.Instance(Planned, allow_none=True)
    progress = traitlets.Instance(Progress, allow_none=True)
    rows = traitlets.Tuple()
    outdated = traitlets.Unicode()
    stopping = traitlets.Bool(False)
    trouble = traitlets.Instance(Trouble, allow_none=True)
    exported = traitlets.Tuple()

    def __init__(
        self, name: str, given: Mapping[str, Any] | None = None, run_dir: str | Path = "", spec: Spec | None = None
    ) -> None:
        super().__init__()
        self._given_spec, self._own_name = spec, name
        self.given = self.choices = suited.complete_with_suggestions(given or {})
        self._is_placed, self._found_for = bool(run_dir), self.name
        self.folder = self.target = Path(run_dir or run_folder.ROOT / self.name).resolve()
        self._read: tuple = ()
        self._due = self._looked = 0.0
        self._looked_at: tuple = ()
        self._framed: tuple | None = None
        self._frame = store.frame()
        self._files: tuple[tuple[int, int] | None, ...] = ()
        self._compared: tuple | None = None
        self.observe(self._plan, names=["choices"])
        self.attach()

    @property
    def name(self) -> str:
        """The name of the sweep, its own or that of the data."""
        return self._own_name or name_of(self.choices)

    def choose(self, **chosen: Any) -> None:
        """Change some choices and update `problem` and `planned`.

        A change of data set replaces densities, widths and features that followed the old one.
        """
        self.choices = suited.apply_change(self.choices, chosen)

    def fill(self, profile: Mapping[str, Any]) -> None:
        """Fill in what follows from the profile of the file, where the user has not chosen otherwise."""
        if found := suited.choices_of_profile(self.choices, profile):
            self.filled = found
            self.choose(**found)

    def _plan(self, _change: Any = None) -> None:
        """Update plan and problem after a change of the choices."""
        if self.name != self._found_for and not self.alive:
            self._find()
            self._read_run()
        self._files = suited.file_stamps(self.choices)
        try:
            spec = self.spec()
            self.planned, self.problem = self._planned(spec), ""
        except ChoiceError as error:
            spec, self.planned, self.problem = None, None, in_panel(str(error))
        self._compare(spec)

    def _planned(self, spec: Spec) -> Planned:
        """Return the plan of a sweep and set its folder; an existing run that it continues becomes the shown one."""
        planned, self.target = plan(spec, self._records(run_folder.read_all_records)), self.folder
        if not self._is_placed and not self.alive:
            self.target = run_folder.resolve_run_folder(spec, self.folder, planned.reused)
        if self.target != self.folder and self.target.exists():
            self.folder = self.target
            self._read_run()
            planned = plan(spec, self._records(run_folder.read_all_records))
        return planned

    def _compare(self, spec: Spec | None) -> None:
        """Tell whether the rows are of this spec, the present one; None if the choices make none."""
        self._compared = self._started
        self.outdated = differences(self.folder, spec, self.choices) if self.rows else ""

    @property
    def _started(self) -> tuple:
        """Changes when a run is started in the folder, and with its first rows."""
        return file_stamp(self.folder / run_folder.SPEC), bool(self.rows)

    def spec(self) -> Spec:
        """Return the sweep that was given, else that of the present choices (`ChoiceError`)."""
        return self._given_spec or spec_of(self.choices, self.name)

    @property
    def command(self) -> str:
        """The command that measures the same into the same folder."""
        run = shlex.quote(shorter(self.target))
        return f"{COMMAND} {run}/{run_folder.SPEC} --run {run}" if self._given_spec else command_text(self.choices, run)

    @property
    def following(self) -> str:
        """Choices that follow the data set or its profile, in words; "" if the sweep was given."""
        return "" if self._given_spec else suited.describe_following(self.choices, self.filled)

    @property
    def alive(self) -> bool:
        """Whether the sweep is at work."""
        return self.progress is not None and self.progress.alive

    @property
    def is_timed(self) -> bool:
        """Whether a trial is being timed, during which nothing should be computed."""
        return self.progress is not None and self.progress.is_timed

    @property
    def is_current(self) -> bool:
        """Whether the run in the folder is of these choices, and at work or done; if not, `start` has work to do."""
        if self.progress is None or self.planned is None or not (self.alive or self.planned.rest == (0, 0)):
            return False
        return run_folder.matches_spec(self.folder, self.spec())

    @property
    def is_resumable(self) -> bool:
        """Whether the run in the folder was stopped, and is of these choices: starting it does the rest."""
        return self.planned is not None and self.status == "stopped" and not self.outdated

    @property
    def status(self) -> str:
        """idle, starting, running, stopping, finished, stopped or failed."""
        if self.progress is None:
            return "idle"
        return "stopping" if self.stopping and self.alive else self.progress.state

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as the analysis and the charts take them."""
        if self._framed is not self.rows:
            self._framed, self._frame = self.rows, store.frame(self.rows)
        return self._frame

    @property
    def counts(self) -> Counter:
        """Number of rows of each status."""
        return Counter(row["status"] for row in self.rows)

    def attach(self) -> None:
        """Attach to a run, also one of another kernel: in the given folder, else the newest of the name.

        A run that was started from the same choices as this study shows the choices as they were changed for it.
        """
        self._find()
        self.poll()
        kept = chosen_of(self.folder) if self.progress is not None else None
        if kept is not None and kept.given == json.loads(json.dumps(self.given)):
            self.choices = complete_choices(kept.chosen)
        self._plan()

    def _find(self) -> None:
        """Return the folder of the newest run of the name, else that of a first run."""
        self._found_for = self.name
        if not self._is_placed:
            mine = (
                path
                for path in run_folder.find_runs(self.name)
                if run_folder.read_progress(path).alive or _has_rows(path)
            )
            self.folder = next(mine, run_folder.ROOT / self.name).resolve()

    def poll(self) -> None:
        """Read what changed in the run folder or at the user's files; only look at their stamps where nothing did.

        Once a second all is read: a supervisor that died has changed nothing.
        """
        of_user = suited.file_stamps(self.choices)
        stamp = self.folder, of_user, *(file_stamp(self.folder / name) for name in run_folder.TOLD)
        if stamp == self._looked_at and monotonic() < self._looked + SECONDS_UNSEEN:
            return
        self._looked_at, self._looked = stamp, monotonic()
        if of_user != self._files:
            self._plan()
        was_alive = self.alive
        self._read_run()
        if not self.alive and (was_alive or self.stopping):
            self.stopping = False
            self._plan()
        elif self._started != self._compared:
            self._plan()

    def _read_run(self) -> None:
        """Progress and rows of the run in the folder; both empty if there is none."""
        if not (self.folder / "progress.json").exists():
            self.progress, self.rows, self._read = None, (), ()
            return
        self.progress = run_folder.read_progress_or_failure(self.folder)
        stamp = self.folder, *(file_stamp(self.folder / name) for name in ("plan.json", store.FILE))
        if self.progress.state == "starting":  # plan.json is still that of the run before
            self.rows, self._read = (), ()
        elif stamp != self._read and (monotonic() >= self._due or not self.alive):
            started = monotonic()
            self.rows, self._read = tuple(self._records(run_folder.read_current_records)), stamp
            took = monotonic() - started
            self._due = monotonic() + SHARE * took if took > SECONDS_LITTLE else 0.0

    def _records(self, read: Callable[[Path], Sequence[Mapping[str, Any]]]) -> Sequence[Mapping[str, Any]]:
        """Return the records of the run by one of the functions that read them; none, which is shown in a line, if
        their file is damaged."""
        try:
            return read(self.folder)
        except RowError as error:
            self.trouble = trouble_of(error, "Reading the run")
            return ()

    def start(self) -> None:
        """Start the sweep of the present choices, or its rest (`ChoiceError`; `RunError` while any is at work)."""
        spec = self.spec()
        run_folder.require_no_active_sweep(self.target)
        run_folder.start_run(spec, self.target)
        self.folder = self.target
        kept = json.dumps({"given": self.given, "chosen": self.choices}, indent=1)
        run_folder.replace_file(self.folder / CHOSEN, kept)
        self.trouble, self.exported, self.stopping = None, (), False
        self.poll()

    def stop(self) -> None:
        """Ask the sweep to stop; the trial at work ends within a second, rows stay."""
        if self._is_gone():
            return
        run_folder.stop_run(self.folder)
        self.stopping = self.alive

    def export(self) -> None:
        """Write the report and the rows into the run folder; `exported` names the files."""
        if self._is_gone():
            return
        from workbench.reports import export  # loads Matplotlib

        self.exported = (export.write_report(self.folder), export.write_table(self.folder))

    def _is_gone(self) -> bool:
        """Return whether the run folder is gone, which is then shown in a line."""
        if self.folder.is_dir():
            return False
        self.trouble = Trouble(f"The run folder {shorter(self.folder)} is gone: press Run to measure again.", "")
        return True

    def tell(self, error: Exception, what: str) -> None:
        """Keep an exception where it is shown: `what` failed."""
        self.trouble = trouble_of(error, what)


def _has_rows(folder: Path) -> bool:
    """Return whether a run has records, readable or not."""
    try:
        return bool(run_folder.read_current_records(folder))
    except RowError:  # a damaged run is shown, with the line that is wrong
        return True


def file_stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file, zeros where it is absent."""
    if not path.is_file():
        return 0, 0
    known = path.stat()
    return known.st_size, known.st_mtime_ns


def trouble_of(error: Exception, what: str) -> Trouble:
    """Trouble that is shown where `what` failed."""
    details = "" if isinstance(error, TOLD) else "".join(traceback.format_exception(error))
    return Trouble(f"{what} failed: {in_panel(str(error))}", details)


def shorter(path: Path) -> str:
    """Return the path from where the user is, where it is below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
