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

from workbench import atomic_files, store
from workbench.analysis.formatting import format_count, join_items, name_configuration
from workbench.analysis.pairs import CompareError
from workbench.data.errors import DataError
from workbench.formats import FormatError
from workbench.json_text import parsed
from workbench.models import ModelError
from workbench.option_text import Options
from workbench.settings import CHOICES, LABEL
from workbench.store.table import RowError
from workbench.study import choices_of_spec, complete_choices, suited
from workbench.study.suited import command_text, name_of, spec_of
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
        """Return a sentence on the trials to do and how long Run takes, or that all are measured."""
        least, most = self.rest
        if not most:
            return f"All {format_count(self.reused, 'trial')} are measured; Run has nothing to add."
        known = f" in addition to {self.reused} measured already" if self.reused else ""
        count = format_count(least, "trial") if least == most else f"{least} to {most} trials"
        return f"{count}{known}; Run takes {format_time_span(self.seconds)}. {self.sight}".rstrip()

    @property
    def without(self) -> str:
        """Sentence on the settings left out, "3 settings left out: reason"; "" if none is."""
        if not self.left_out:
            return ""
        example = "for example: " if len(self.left_out) > 1 else ""
        return f"{format_count(sum(self.left_out.values()), 'setting')} left out: {example}{next(iter(self.left_out))}"


def plan(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> Planned:
    """Return what Run would do for a spec whose run folder has the records `rows`; nothing is started.

    Large data files are not read for it. Raises SpecError or DataError if the spec cannot be measured.
    """
    schedule = Schedule.of(spec, rows, Contents(is_quick=True))
    rest = (schedule.trials_due(), schedule.trials_most())
    seconds = seconds_of_trials(rest, tuple(schedule.configurations.values()), spec, rows)
    return Planned(
        rest, schedule.reused, _configurations(spec), seconds, minimum_detectable_sentence(spec), dict(schedule.dropped)
    )


def _configurations(spec: Spec) -> tuple[str, ...]:
    """Return the distinct short names of the spec's configurations, in their order, such as "CSR ours"."""
    return tuple(
        dict.fromkeys(
            name_configuration(configuration.model_dump()) for configuration in grid.expand_grid(spec).configurations
        )
    )


def left(progress: Progress) -> str:
    """Return the remaining time of a run as text, "about 3 minutes left".

    "" before `FEW` trials ended or if it is over.
    """
    seconds = progress.seconds_left if progress.alive and progress.done - progress.reused >= FEW else None
    return estimate.format_time_left(seconds, progress.seconds_left_most)


# Messages in the words of a panel: an option or parameter that a message names becomes the field that sets it.


FIELDS = {name: choice.label for name, choice in CHOICES.items()} | {
    "label": LABEL.label,
    "budget": "Budget (s)",
    "dataset": "Reader",
    "reading": "Read with",
}
"""Labels of the fields, by the names of the options that set the same."""
_KIND = re.compile(r'\{"columns": \{"([^"\\]+)": \{"kind": "(\w+)"\}\}\}')
"""The kind of one column, as messages propose it."""
_NAMED = re.compile(r"\*([A-Z][\w ()]*)\*")


def in_panel(options: Mapping[str, Any]) -> str:
    """Return options that a message names as the fields that set them; parameters of readers are of one field.

    >>> in_panel({"label": "NAME"}), in_panel({"implicit": True})
    ('NAME in the field *Label*', 'implicit=true in the field *Read with*')

    A kind of a column is chosen at the column.

    >>> in_panel({"columns": '{"columns": {"age": {"kind": "ignored"}}}'})
    "'ignore' chosen below the column 'age'"
    """
    if kind := _KIND.fullmatch(str(options.get("columns", ""))):
        return f"{kind[2].replace('ignored', 'ignore')!r} chosen below the column {kind[1]!r}"
    own = {FIELDS[name]: value for name, value in options.items() if name in FIELDS}
    read = Options({name: value for name, value in options.items() if name not in FIELDS})
    given = [*own.items(), *([(FIELDS["reading"], read)] if read else [])]
    return ", ".join(f"{value} in the field *{label}*" for label, value in given)


def message_of(error: Exception) -> str:
    """Return the message of an error in the words of the panel."""
    if isinstance(error, SpecError):
        return error.worded(lambda option, value: f"*{FIELDS.get(option, option)}* = {value!r}")
    return str(error)


def emphasized(escaped: str) -> str:
    """Return HTML of an escaped message with *field names* emphasized and line breaks kept.

    >>> emphasized("Fill the field *Label*.")
    'Fill the field <em>Label</em>.'
    """
    return _NAMED.sub(r"<em>\1</em>", escaped).replace("\n", "<br>")


# Whether the results in a run folder are those of the present choices, and in which choices they differ.


CHOSEN = "choices.json"
"""In the run folder: the choices that a study was opened with, and those that the run was started with."""


def differences(folder: Path, spec: Spec | None, choices: Mapping[str, Any]) -> str:
    """Return the choices in which the run in the folder differs from `choices`, as text; "" if it is of these.

    `spec` is the sweep of the choices, None if they cannot be measured. Also "" if the run has no readable spec;
    "another spec" if the run's choices are unknown.
    """
    try:
        of_run = run_folder.read_spec(folder)
    except run_folder.RunError:
        return ""
    if spec is not None and run_folder.result_identity(of_run) == run_folder.result_identity(spec):
        return ""
    changes = _changes(choices_of_run(folder), choices)
    return join_items(changes) if changes else "another spec"


class Chosen(NamedTuple):
    """Choices that a study was opened with, and choices that its run was started with."""

    given: Mapping[str, Any]
    chosen: Mapping[str, Any]


def chosen_of(folder: Path) -> Chosen | None:
    """Return the choices kept in the run folder's choices.json; None if it is absent or damaged."""
    try:
        kept = parsed((folder / CHOSEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the run is shown without them
        return None
    if not isinstance(kept, dict) or not all(isinstance(kept.get(name), dict) for name in Chosen._fields):
        return None
    return Chosen(kept["given"], kept["chosen"])


def choices_of_run(folder: Path) -> Mapping[str, Any]:
    """Return the choices that the run in a folder was started with; {} if there is no run, or none that has choices."""
    if (kept := chosen_of(folder)) is not None:
        return kept.chosen
    try:
        return choices_of_spec(run_folder.read_spec(folder)) or {}
    except run_folder.RunError:
        return {}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return "LABEL old (now new)" for each known choice whose values differ; the order of lists does not matter."""
    names = [name for name in before if name in CHOICES and _unordered(before[name]) != _unordered(now[name])]
    return [f"{CHOICES[name].label} {_shown(before[name])} (now {_shown(now[name])})" for name in names]


def _unordered(value: Any) -> Any:
    """Return a value for comparison: a string as it is, any other sequence as a frozenset."""
    return value if isinstance(value, str) else frozenset(value)


def _shown(value: Any) -> str:
    """Return a choice's value as text, lists joined by commas; "empty" if nothing is chosen."""
    return (value if isinstance(value, str) else ", ".join(value)) or "empty"


SECONDS_UNSEEN = 1.0
SECONDS_LITTLE, SHARE = 0.05, 10
"""Reading rows takes at most a tenth of the time where it takes more than a little: it disturbs the trials."""


EXPECTED_ERRORS = (CompareError, DataError, FormatError, ModelError, RowError, RunError, SpecError)
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

    def __init__(self, name: str, given: Mapping[str, Any] | None = None, run_dir: str | Path = "") -> None:
        """Make the study of `given` choices and attach to its run, if there is one.

        `name` "" takes that of the data; `run_dir` "" chooses a folder below `runs`. Reads the run folder, starts
        nothing.
        """
        super().__init__()
        self._own_name = name
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
        """The name of the sweep: the given one, else that of the data."""
        return self._own_name or name_of(self.choices)

    def choose(self, **chosen: Any) -> None:
        """Change the named choices; observers of `choices` then update `problem` and `planned`.

        A change of data set replaces densities, widths and features that followed the old one.
        """
        self.choices = suited.apply_change(self.choices, chosen)

    def fill(self, profile: Mapping[str, Any]) -> None:
        """Set choices that follow from a file's profile, unless the user has chosen otherwise; updates `filled`."""
        if found := suited.choices_of_profile(self.choices, profile):
            self.filled = found
            self.choose(**found)

    def _plan(self, _change: Any = None) -> None:
        """Update `planned`, `problem`, `target` and `outdated` after a change of the choices or files.

        Never raises SpecError.
        """
        if self.name != self._found_for and not self.alive:
            self._find()
            self._read_run()
        self._files = suited.file_stamps(self.choices)
        try:
            spec = self.spec()
            self.planned, self.problem = self._planned(spec), ""
        except SpecError as error:
            spec, self.planned, self.problem = None, None, message_of(error)
        self._compare(spec)

    def _planned(self, spec: Spec) -> Planned:
        """Return the plan of a sweep, and set `target` to its folder.

        A run that this sweep would continue becomes the shown one (`folder`, `progress` and `rows`).
        """
        planned, self.target = plan(spec, self._records(run_folder.read_all_records)), self.folder
        if not self._is_placed and not self.alive:
            try:
                self.target = run_folder.resolve_run_folder(spec, self.folder, planned.reused)
            except RowError as error:
                self.trouble = trouble_of(error, "Reading the run")
        if self.target != self.folder and self.target.exists():
            self.folder = self.target
            self._read_run()
            planned = plan(spec, self._records(run_folder.read_all_records))
        return planned

    def _compare(self, spec: Spec | None) -> None:
        """Set `outdated` to the difference between the run and `spec`, the present sweep.

        None if there is no valid one.
        """
        self._compared = self._started
        self.outdated = differences(self.folder, spec, self.choices) if self.rows else ""

    @property
    def _started(self) -> tuple:
        """(stamp of the run's spec, whether it has records): changes when a run starts and with its first records."""
        return file_stamp(self.folder / run_folder.SPEC), bool(self.rows)

    def spec(self) -> Spec:
        """Return the sweep of the present choices; SpecError if these are invalid."""
        return spec_of(self.choices, self.name)

    @property
    def command(self) -> str:
        """Shell command that measures the same into the same run folder."""
        run = shlex.quote(shorter(self.target))
        return command_text(self.choices, run)

    @property
    def following(self) -> str:
        """Sentence on choices that follow the data set or its profile; "" if none does."""
        return suited.describe_following(self.choices, self.filled)

    @property
    def alive(self) -> bool:
        """Whether the run's supervisor is alive."""
        return self.progress is not None and self.progress.alive

    @property
    def is_timed(self) -> bool:
        """Whether a trial is being timed, so that nothing else should compute."""
        return self.progress is not None and self.progress.is_timed

    @property
    def is_current(self) -> bool:
        """Whether the run in the folder is of these choices and is running or complete.

        If not, `start` has work to do.
        """
        if self.progress is None or self.planned is None or not (self.alive or self.planned.rest == (0, 0)):
            return False
        return run_folder.matches_spec(self.folder, self.spec())

    @property
    def is_resumable(self) -> bool:
        """Whether the run in the folder was stopped and is of these choices, so that starting does the rest."""
        return self.planned is not None and self.status == "stopped" and not self.outdated

    @property
    def status(self) -> str:
        """One of "idle", "starting", "running", "stopping", "finished", "stopped" and "failed"."""
        if self.progress is None:
            return "idle"
        return "stopping" if self.stopping and self.alive else self.progress.state

    @property
    def frame(self) -> pd.DataFrame:
        """Data frame of `rows`, one record a row; made again only if they changed."""
        if self._framed is not self.rows:
            self._framed, self._frame = self.rows, store.frame(self.rows)
        return self._frame

    @property
    def answered(self) -> pd.DataFrame:
        """Data frame of the records that the answer is made of: `rows`, with predictions where trials are missing."""
        return store.frame(run_folder.predict_missing(self.folder, self.rows))

    @property
    def counts(self) -> Counter:
        """Number of records of each status."""
        return Counter(row["status"] for row in self.rows)

    def attach(self) -> None:
        """Show the run in the given folder, else the newest run of the name, also one started by another kernel.

        If that run was started from the same choices as this study, its later choices are taken over.
        """
        self._find()
        self.poll()
        kept = chosen_of(self.folder) if self.progress is not None else None
        if kept is not None and kept.given == json.loads(json.dumps(self.given)):
            self.choices = complete_choices(kept.chosen)
        self._plan()

    def _find(self) -> None:
        """Set `folder` to the newest run of the name that is alive or has records, else to runs/NAME.

        Does nothing if the folder was given.
        """
        self._found_for = self.name
        if not self._is_placed:
            mine = (
                path
                for path in run_folder.find_runs(self.name)
                if run_folder.read_progress(path).alive or _has_rows(path)
            )
            self.folder = next(mine, run_folder.ROOT / self.name).resolve()

    def poll(self) -> None:
        """Read what changed in the run folder or in the user's files since the last call, and update the traits.

        Only file stamps are compared within `SECONDS_UNSEEN`; then all is read, as a dead supervisor changes no file.
        """
        of_user = suited.file_stamps(self.choices)
        stamp = self.folder, of_user, *(file_stamp(self.folder / name) for name in run_folder.WATCHED)
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
        """Update `progress` and `rows` from the run folder; both are empty if there is no run.

        Records are read at most a tenth of the time if that takes long. A damaged file sets `trouble`.
        """
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
        """Return the run's records by the function `read`; () and a set `trouble` if their file is damaged."""
        try:
            return read(self.folder)
        except RowError as error:
            self.trouble = trouble_of(error, "Reading the run")
            return ()

    def start(self) -> None:
        """Start the sweep of the present choices, or its rest, in a separate process; show its folder.

        Writes spec and choices into the folder. Raises SpecError for invalid choices, RunError if a sweep is running.
        """
        spec = self.spec()
        run_folder.require_no_active_sweep(self.target)
        run_folder.start_run(spec, self.target)
        self.folder = self.target
        kept = json.dumps({"given": self.given, "chosen": self.choices}, indent=1)
        atomic_files.write(self.folder / CHOSEN, kept)
        self.trouble, self.exported, self.stopping = None, (), False
        self.poll()

    def stop(self) -> None:
        """Ask the sweep to stop: the trial at work ends within a second, records stay.

        If the run folder is gone, `trouble` is set instead.
        """
        if self._is_gone():
            return
        run_folder.stop_run(self.folder)
        self.stopping = self.alive

    def export(self) -> None:
        """Write report.html and rows.csv into the run folder and set `exported` to their paths.

        If the folder is gone, only `trouble` is set, to a sentence that says so.
        """
        if self._is_gone():
            return
        from workbench.reports import export  # loads Matplotlib

        self.exported = (export.write_report(self.folder), export.write_table(self.folder))

    def _is_gone(self) -> bool:
        """Return whether the run folder was removed; if so, set `trouble` to a sentence that says it."""
        if self.folder.is_dir():
            return False
        self.trouble = Trouble(f"The run folder {shorter(self.folder)} is gone: press Run to measure again.", "")
        return True

    def tell(self, error: Exception, what: str) -> None:
        """Set `trouble` from an exception; `what` names the action that failed, such as "Starting"."""
        self.trouble = trouble_of(error, what)


def _has_rows(folder: Path) -> bool:
    """Return whether a run has current records; True also if their file is damaged."""
    try:
        return bool(run_folder.read_current_records(folder))
    except RowError:  # a damaged run is shown, with the line that is wrong
        return True


def file_stamp(path: Path) -> tuple[int, int]:
    """Return (size in bytes, time of change in ns) of a file; (0, 0) if it is absent."""
    if not path.is_file():
        return 0, 0
    known = path.stat()
    return known.st_size, known.st_mtime_ns


def trouble_of(error: Exception, what: str) -> Trouble:
    """Return the summary "WHAT failed: message" of an exception, with its traceback unless the message is for users."""
    details = "" if isinstance(error, EXPECTED_ERRORS) else "".join(traceback.format_exception(error))
    return Trouble(f"{what} failed: {message_of(error)}", details)


def shorter(path: Path) -> str:
    """Return the path as text, relative to the working directory if it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
