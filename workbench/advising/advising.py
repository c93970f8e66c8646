"""Advice on data: look at it, measure a few well-chosen configurations within a budget of seconds, recommend.

Two stages in one run folder. First a race on the data as it is, of the candidates for which there is time, likeliest
first: who is far behind has one round. Then the best of each side meet with larger batches, and at another density all
that there is time for, which says what would change the answer. Rows stay, and asking again goes on from them.
"""

import dataclasses
import hashlib
import math
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernels import devices
from kernels.registry import format_count
from workbench import data, models, store
from workbench.advising.candidates import is_faithful, likely_first, list_candidates
from workbench.advising.first_part import FirstPart, first_part
from workbench.advising.source import model_note, suggest_model
from workbench.analysis import answers
from workbench.analysis.answer_text import AnswerText, text_of
from workbench.analysis.answers import EPOCHS, NO_ANSWER, answer_of
from workbench.analysis.compare import PREDICTED
from workbench.analysis.configurations import NUMBERED
from workbench.analysis.verdict_text import comparison_facts
from workbench.data import Profile, profile
from workbench.measure import memory
from workbench.measure.rounds import ALONE
from workbench.option_text import worded
from workbench.settings import train_command
from workbench.sweeps import estimate, grid, run_folder
from workbench.sweeps.budget import LEAST_OF_RACE, no_device
from workbench.sweeps.grid import planned_row, rough_seconds_of
from workbench.sweeps.problem import Contents, Problem, is_synthetic, make_problem, parameters_of_file
from workbench.sweeps.progress import Progress, format_spent
from workbench.sweeps.spec import FILES, Configuration, InvalidOption, Spec, SpecError, validate_spec
from workbench.sweeps.trial import settings_of

# The result of `advise`: the recommendation with its evidence, its command, and the data it was measured on.


@dataclass(frozen=True)
class Answer:
    """The answer to "sparse or dense, and how": for a panel, a notebook, a terminal or a program.

    `recommendation` is what the records of `folder` answer, `text` has its words; `command` trains what is
    recommended, empty if nothing ran. `settings` are those of the data, the model and the optimizer. `seconds` is
    how long it took, of `seconds_budget`, `seconds_compiled` of them for code that this machine had not kept. `trials`
    are those done of the run in `folder`, `reused` of them before; `is_stopped` tells that somebody ended it early.
    """

    recommendation: answers.Answer
    text: AnswerText
    command: str
    profile: Profile
    settings: dict[str, Any]
    folder: Path
    seconds: float
    seconds_budget: float
    trials: int
    reused: int = 0
    is_stopped: bool = False
    seconds_compiled: float = 0.0
    guesses: tuple[str, ...] = ()
    """A sentence for each guess on the data and the model, with what to type to change it."""
    note: str = ""
    """What the answer leaves out: rows of the file that were not read; "" if nothing."""

    def __str__(self) -> str:
        """Return the answer, the command that trains so, and what was spent, as text."""
        lines = [str(self.text)]
        lines += [f"Train it with: {self.command}"] if self.command else []
        return "\n".join([*lines, self.spent])

    @property
    def spent(self) -> str:
        """Text on the trials and seconds that were used, and where the records are, if there are any."""
        stopped = "stopped early; " if self.is_stopped else ""
        before = f", {self.reused} of them measured before," if self.reused else ""
        took = f"{format_count(self.trials, 'trial')}{before} in {format_spent(self.seconds, self.seconds_budget)}"
        once = (
            f", {self.seconds_compiled:.0f} s of them for compiling, which is cached"
            if self.seconds_compiled >= 1
            else ""
        )
        read = f"{self.note}\n" if self.note else ""
        kept = f" Records: {self.folder}" if self.folder.exists() else ""
        return f"{read}{stopped}{took}{once}.{kept}"

    def as_json(self) -> dict[str, Any]:
        """Return the answer as a dict for JSON: numbers, words, command and profile.

        The verdict has the fields of `verdict_text.comparison_facts`.
        """
        known = self.recommendation
        return {
            "verdict": known.verdict,
            "answer": None if known is NO_ANSWER else known.facts,
            **comparison_facts(known.time),
            "text": asdict(self.text),
            "recommended": known.settings,
            "key": known.key,
            "command": self.command,
            "settings": self.settings,
            "trials": self.trials,
            "reused": self.reused,
            "seconds": self.seconds,
            "is_stopped": self.is_stopped,
            "guesses": [*map(worded, self.guesses)],
            "note": self.note,
            "rows": str(self.folder),
            "profile": asdict(self.profile),
        }


# Names of the runs of advice, and of their folders.

HASH_BYTES = 4


def name_of(settings: Mapping[str, Any]) -> str:
    """Return the name of a run of advice, "advise-DATA-MODEL", in letters that a folder may have."""
    origin = Path(settings["path"]).stem if settings.get("path") else settings["dataset"]
    words = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in origin).strip("-")
    return f"advise-{words or settings['dataset']}-{settings['model']}"


def folder_name_of(settings: Mapping[str, Any]) -> str:
    """Return the name of the run folder: that of the run, and for a file a short hash of its full path.

    Files of one name in several folders have a run folder each.

    >>> folder_name_of({"dataset": "svmlight", "path": "/tmp/my data.txt", "model": "logistic"})
    'advise-my-data-logistic-247f503c'
    >>> folder_name_of({"dataset": "uniform", "model": "logistic"})
    'advise-uniform-logistic'
    """
    if not settings.get("path"):
        return name_of(settings)
    full = str(Path(settings["path"]).resolve()).encode("utf-8", "surrogateescape")
    return f"{name_of(settings)}-{hashlib.blake2b(full, digest_size=HASH_BYTES).hexdigest()}"


SECONDS = 60.0
SECONDS_LEAST = 5.0
SECONDS_BOTH = 30.0
"""A budget from which on there are two stages."""
SECONDS_START = 3.0
"""About what a run takes until its first trial is at work: libraries, and which configurations there are."""
RESERVE, SECONDS_RESERVE = 0.06, 2.0
"""Share of the budget, and seconds at most, that each stage leaves for what comes after: reading rows, the answer."""
SLOWDOWN_BOTH = 2.0
"""A slowdown from which on a run takes too long to begin for two of them."""
SLOWDOWN_MOST = 3.0
"""Next to many other programs the answer takes longer: at most so many times the reserve is left for it."""
READING_SHARE = 0.5
"""Share of the budget that reading may take: of a file that takes longer the first part is read."""
SECONDS_FIRST = 5.0
"""About what a run takes until a trial of each side has ended; in less time both are measured without one."""
SECONDS_HERE = 1.2
"""About what the first trials take in this process."""
FIRST_SHARE = 0.6
"""Share of the budget that the race of all may take where a second stage follows."""
SECONDS_TRIAL = 0.6
"""Seconds of a trial of small data."""
FAR_SHARE = 0.1
"""Share of a race that candidates may take which are predicted to be far behind the best of their side."""
FIRST_ROUND = 0.5
"""Largest share of a race that its first round takes: those that may win are to meet again."""
SECONDS_CELL = 10.0
"""Seconds that a trial may take at least, compiling not counted."""
LARGER_BATCH = 4
"""A larger batch has so many times the rows."""
DENSER = 8.0
"""Another density is so many times that of the data where sparse wins, and so many times less where dense does."""

SECONDS_UNPREDICTED = 9.0
"""What a race takes, whatever the budget, of a model whose steps no formula predicts: without a trial of each side
nothing could be answered."""

Follow = Callable[[str, Path, float, float], None]
"""Shows a run until it is over: heading, folder, seconds spent before it, seconds of the whole budget."""
Say = Callable[[str], None]
"""Tells the user a sentence."""


def wait_silently(heading: str, folder: Path, spent: float, budget: float) -> None:
    """Wait until the run in `folder` is over, without output; KeyboardInterrupt stops the run and waits on.

    The default of `follow`; `heading`, `spent` and `budget` are ignored.
    """
    try:
        for _ in run_folder.watch_progress(folder):
            pass
    except KeyboardInterrupt:
        run_folder.stop_run(folder)
        wait_silently(heading, folder, spent, budget)


def say_nothing(_sentence: str) -> None:
    """Ignore a sentence; the default of `say`."""


def advise(
    settings: Mapping[str, Any],
    seconds: float = SECONDS,
    *,
    lazy: bool = False,
    folder: str | Path | None = None,
    follow: Follow = wait_silently,
    measure: Mapping[str, Any] | None = None,
    seconds_spent: float = 0.0,
    say: Say = say_nothing,
    epochs: int = EPOCHS,
) -> Answer:
    """Measure a few well-chosen configurations on the data within a budget, and return what to train with.

    `settings` may have dataset, path and what else is about the data, model (by default what suits the labels),
    optimizer, batch_rows (by default 256 and larger ones are tried), threads, device. `lazy` lets an update be
    recommended that trains another model than dense. `seconds` are for everything, `seconds_spent` of them are over;
    `measure` says how each trial is measured, as in a spec. `folder` keeps the records. `follow` shows a run until it
    is over; `say` is called with each guess, on data and model, before anything is measured, and with the answer so far
    before other batch sizes and densities are tried. Training times are said for `epochs`. SpecError and data.DataError
    for what cannot be trained on.
    """
    if not SECONDS_LEAST <= seconds < math.inf:
        raise SpecError(
            f"The budget is {seconds:g} seconds; expected {SECONDS_LEAST:g} or more, {SECONDS:g} is usual.\n"
            f"Type --budget {SECONDS:g}."
        )
    clock = _Clock(seconds, seconds_spent)
    given = _absolute(settings)
    part = first_part(given, READING_SHARE * clock.left)
    fixed, profiled, problem = _profile_settings(given, part)
    guesses = _guesses(problem.dataset, fixed["model"], is_guessed="path" in given and "model" not in given)
    for sentence in guesses:
        say(sentence)
    original = fixed | {name: given[name] for name in ("path",) if name in given}
    folder = Path(folder) if folder else run_folder.ROOT / folder_name_of(original)
    able = list_candidates(fixed, _devices(settings.get("device")), lazy)
    advising = _Advising(fixed, able, folder, clock, follow, lazy, dict(measure or {}), problem, epochs)
    advising.race()
    if not advising.is_stopped:
        advising.look_around(say)
    answer = dataclasses.replace(advising.answer(profiled), guesses=guesses)
    return answer if part is None else _with_note_on_part(answer, part, given["path"])


def _with_note_on_part(answer: Answer, part: FirstPart, path: str) -> Answer:
    """Return the answer measured on the first part of a file as one about the file at `path`, with a note on it."""
    note = part.describe(path, answer.profile.rows, answer.seconds_budget)
    command = answer.command.replace(shlex.quote(str(part.path)), shlex.quote(path))
    return dataclasses.replace(answer, command=command, settings={**answer.settings, "path": path}, note=note)


def affordable_candidates(seconds: float, seconds_trial: float = SECONDS_TRIAL) -> int:
    """Return how many candidates a race of `seconds` may start with, 2 or more; a trial takes `seconds_trial`."""
    trials = FIRST_ROUND * max(seconds - SECONDS_START, 0.0) / seconds_trial
    return max(int(trials) - 1, 2)  # dense steps have two trials: on all threads and on one


def _absolute(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are neither None nor "", with file paths made absolute."""
    given = {name: value for name, value in settings.items() if value not in (None, "")}
    return {name: str(Path(value).resolve()) if name in FILES else value for name, value in given.items()}


def _devices(asked: str | None) -> tuple[str, ...]:
    """Return the names of the devices to compare: (asked,), else "cpu" and, if there is a GPU, "cuda"."""
    if asked:
        return (asked,)
    return ("cpu", "cuda") if devices.probe().present else ("cpu",)


def _profile_settings(
    settings: dict[str, Any], part: FirstPart | None = None
) -> tuple[dict[str, Any], Profile, Problem]:
    """Return the settings completed with a model, the profile of the data, and the problem to train.

    Of the first part of the file if one is given. Raises DataError or SpecError if it cannot be trained on.
    """
    if part is not None:
        try:
            return _profile_settings(settings | {"path": str(part.path)})
        except (data.DataError, SpecError) as error:
            why = f"Only the first {100 * part.share:.2g} % of the file were read, to keep the budget"
            raise type(error)(f"{error}\n{why}; for all of it take {part.seconds_for_all:.0f} s or more.") from None
    validate_spec({"name": "advise", "axes": settings})
    if settings.get("device") == "cuda" and not (found := devices.probe()).present:
        raise SpecError(InvalidOption(f"{no_device(found)}\nTake 'cpu', or leave it out.", "device", "cuda"))
    loaded = load_named(settings)
    settings = {"model": suggest_model(loaded), **settings}
    configuration = Configuration(**settings)
    if reason := grid.why_dropped(configuration):
        raise SpecError(reason)
    grid.refuse_unread_settings(configuration)
    return settings, profile(loaded), make_problem(configuration)


def _guesses(dataset: data.Dataset, model: str, is_guessed: bool) -> tuple[str, ...]:
    """Return a sentence for each guess, on columns of the file and on the model, with what to type to change it."""
    return (*dataset.facts.get("guesses", ()), *((model_note(dataset, model),) if is_guessed else ()))


def load_named(settings: Mapping[str, Any]) -> data.Dataset:
    """Return the data set of the settings, with its labels as they are; raises DataError if it cannot be read."""
    if is_synthetic(settings["dataset"]):
        return make_problem(Configuration(**settings)).dataset
    return data.load(settings["dataset"], **parameters_of_file(dict.fromkeys(FILES) | dict(settings)))


class _Clock:
    """Clock of what is left of the budget, of which `spent` seconds are over already."""

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        """Start the clock of a budget in seconds, of which `spent` are over."""
        self.budget, self.start = budget, time.monotonic() - spent
        self._cpu_start, self._wall_start = time.process_time(), time.monotonic()

    @property
    def slowdown(self) -> float:
        """Wall time over CPU time of this process since the start, at least 1.0; more if other programs run."""
        worked = time.process_time() - self._cpu_start
        return max((time.monotonic() - self._wall_start) / max(worked, 1e-3), 1.0) if worked > 0.1 else 1.0

    @property
    def spent(self) -> float:
        """Seconds since the advice was asked for, by the monotonic clock."""
        return time.monotonic() - self.start

    @property
    def left(self) -> float:
        """Seconds of the budget that are left; may be negative."""
        return self.budget - self.spent


class _Variation(NamedTuple):
    """Settings that are changed, of which kind, and the candidates that meet there."""

    what: str
    changed: dict[str, Any]
    candidates: list[dict[str, Any]]


class _Advising:
    """The stages of one advice, in one run folder."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        able: list[dict[str, Any]],
        folder: Path,
        clock: _Clock,
        follow: Follow,
        lazy: bool,
        measure: dict[str, Any],
        problem: Problem,
        epochs: int = EPOCHS,
    ) -> None:
        """Choose the candidates of the first race from `able`, which are those with enough time; starts nothing.

        `settings` are complete, `measure` overrides how trials are measured, `problem` is the data.
        """
        self.problem, self.epochs = problem, epochs
        self.settings, self.folder, self.clock, self.follow, self.lazy = dict(settings), folder, clock, follow, lazy
        self.measure = {"race": True, "roofs": False, **measure}
        self.fixed = {name: value for name, value in self.settings.items() if name != "device"}
        self.batch_rows, self.density = (self.fixed.pop(name, None) for name in ("batch_rows", "density"))
        here = {"batch_rows": self.batch_rows or Configuration().batch_rows, "density": self.density}
        self.candidates = [{**one, **here} for one in self._affordable_first(able)]
        usual = min(RESERVE * clock.budget, SECONDS_RESERVE)
        self.seconds_reserve = min(usual * min(clock.slowdown, SLOWDOWN_MOST), clock.left / 3)
        self.spec = self._spec(self.candidates, 0.0)
        self.by_key: dict[str, Configuration] = {}
        self.predicted: list[dict[str, Any]] = []
        self.is_stopped, self.is_cut, self.seconds_compiled, self.measured = False, False, 0.0, 0

    def _affordable_first(self, able: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the candidates of the first race: the likely fastest by the cost model, and a few others.

        A lazy update that trains another model than dense is only reported next to the exact one.
        """
        planned = [Configuration(**{**self.settings, **one}) for one in able]
        seconds = [
            planned_row(configuration, self.problem)["seconds_predicted"] if configuration.device == "cpu" else None
            for configuration in planned
        ]
        likely, others = likely_first(able, seconds)
        limit, each = self.first_share * self.clock.left, SECONDS_TRIAL * self.clock.slowdown
        first = [*likely[: affordable_candidates(limit, each)], *others[: int(FAR_SHARE * limit / each)]]
        exact = [{**one, "update": "lazy"} for one in first if one["update"] == "exact"]
        return [
            one for one in first if self.lazy or one in exact or is_faithful(Configuration(**{**self.settings, **one}))
        ]

    def race(self) -> None:
        """Measure all candidates on the data as it is; in too little time the likeliest of each side, in this process.

        Without time for these nothing, if predictions can answer.
        """
        seconds, slowdown = self.first_share * self.clock.left, min(self.clock.slowdown, SLOWDOWN_MOST)
        left = self.clock.left - self.seconds_reserve
        if models.get(self.settings["model"]).is_product and left < SECONDS_FIRST * slowdown:
            self._measure_here(left, slowdown)
            return
        if left < SECONDS_START * slowdown:
            seconds = SECONDS_UNPREDICTED * slowdown
        self._run("Comparing candidates", self.candidates, seconds)

    def _measure_here(self, seconds: float, slowdown: float) -> None:
        """Measure the likeliest sparse and dense candidate in this process, if `seconds` on a CPU so slow suffice.

        Without both on the CPU, or if an epoch is predicted to take long, nothing is measured.
        """
        from workbench.sweeps.runner import measure_here

        sides = {one["format"] == "dense": one for one in reversed(self.candidates) if one["device"] == "cpu"}
        self._name_configurations()
        long = max((row["seconds_predicted"] * row["steps_epoch"] for row in self.predicted), default=math.inf)
        if len(sides) < 2 or seconds < SECONDS_HERE * slowdown or long * slowdown > FAR_SHARE * seconds:
            return
        self.spec = self._spec([*sides.values()], seconds)
        measure_here(self.spec, self.folder)
        self._name_configurations()
        run_folder.write_predictions(self.folder, self.predicted)
        self.measured, self.is_cut = run_folder.read_progress(self.folder).done, True

    @property
    def first_share(self) -> float:
        """Share of the time left that the first race may use; 1.0 if there is no time for a second one."""
        has_both = self.clock.budget >= SECONDS_BOTH and self.clock.slowdown < SLOWDOWN_BOTH
        return FIRST_SHARE if has_both else 1.0

    def look_around(self, say: Say = say_nothing) -> None:
        """Measure the best of each side with larger batches and at another density, if the time is enough.

        If the race was cut off and is inconclusive, it is continued instead. Otherwise `say` is called with the answer
        so far, which need not be waited for.
        """
        if self.clock.left < self.seconds_reserve + SECONDS_START * min(self.clock.slowdown, SLOWDOWN_MOST):
            return
        known = self.recommended()
        if known.best is None:
            return
        if self.is_cut and (known.time.verdict == "inconclusive" or known.time.source == PREDICTED):
            self._run("Comparing candidates further", self.candidates, self.clock.left)
            return
        both = [row for row in (known.time.sparse, known.time.dense) if row is not None and row["status"] in NUMBERED]
        if not both:
            return
        named = [_candidate(self.by_key[row["key"]]) for row in both if row["key"] in self.by_key]
        each = estimate.seconds_a_trial(self.spec, store.read(self.folder))
        seconds = self.clock.left - self.seconds_reserve - SECONDS_START
        around = self._affordable(self._places(known, both, named), seconds / max(each, 0.1))
        if around:
            say(f"So far: {text_of(known, known.groups).headline} Stopping now keeps this answer.")
            self._run("Trying another batch size or density", [*self.candidates, *around], self.clock.left)

    @staticmethod
    def _affordable(places: list[_Variation], trials: float) -> list[dict[str, Any]]:
        """Return candidates (settings) that `trials` trials are enough for, in the order of the variations `places`.

        Of each `what`, the property that a variation changes, the first value that fits is taken.
        """
        found: dict[str, list[dict[str, Any]]] = {}
        for place in places:
            needed = len(place.candidates) + (ALONE - 1) * LEAST_OF_RACE
            if needed <= trials and place.what not in found:
                trials -= needed
                found[place.what] = [{**candidate, **place.changed} for candidate in place.candidates]
        return [one for able in found.values() for one in able]

    def _places(
        self, known: answers.Answer, both: list[Mapping[str, Any]], named: list[dict[str, Any]]
    ) -> list[_Variation]:
        """Return the variations to try: a larger batch, if it may be chosen, and another density, if there is one.

        `both` are the best records, `named` their settings. Of the density one with all candidates, one with these.
        """
        batch = self.candidates[0]["batch_rows"]
        rows = max((row["rows_trained"] or 0 for row in both), default=0)
        larger = {"batch_rows": LARGER_BATCH * batch}
        density = self._density(known, both)
        able = (named,) if self.density is not None else (self.candidates, named)  # most are at the density asked about
        return [
            *([_Variation("batch", larger, named)] if not self.batch_rows and rows >= LARGER_BATCH * batch else []),
            *([_Variation("density", density, some) for some in able] if density else []),
        ]

    def _density(self, known: answers.Answer, both: list[Mapping[str, Any]]) -> dict[str, Any]:
        """Return {"density": value} of another density to measure, by the verdict so far; {} if none is known."""
        natural = next((row["density_measured"] for row in both if row["density_measured"]), None)
        if natural is None:
            return {}
        other = natural / DENSER if known.verdict == "dense" else min(natural * DENSER, 0.5)
        return {"density": float(f"{other:.2g}")} if other != natural else {}

    def _run(self, heading: str, able: list[dict[str, Any]], seconds: float) -> None:
        """Measure the candidates `able` within `seconds` in the run folder; RunError if the run failed.

        Sets `is_stopped` and `is_cut` (by the budget), and adds to `seconds_compiled` and `measured` (trials).
        """
        self.spec, spent = self._spec(able, seconds - self.seconds_reserve), self.clock.spent
        with run_folder.stopped_by_interrupt(self.folder):
            run_folder.start_run(self.spec, self.folder)
            self._name_configurations()  # while the run loads libraries
            if self.folder.is_dir():
                run_folder.write_predictions(self.folder, self.predicted)
            self.follow(heading, self.folder, spent, self.clock.budget)
        state: Progress = run_folder.read_progress(self.folder)
        if state.state == "failed":
            raise run_folder.RunError(f"The sweep in {self.folder} failed: {state.message}")
        self.is_stopped, self.is_cut = state.state == "stopped", bool(state.message)
        self.seconds_compiled += state.seconds_compiled
        self.measured += state.done - state.reused

    def _name_configurations(self) -> None:
        """Set `by_key` to the configurations of the present spec by their keys, `predicted` to what is expected."""
        contents = Contents()
        self.by_key = {
            grid.configuration_key(configuration, contents): configuration
            for configuration in grid.expand_grid(self.spec).configurations
        }
        self.predicted = self._predict_configurations()

    def _spec(self, able: list[dict[str, Any]], seconds: float) -> Spec:
        """Return the spec of a sweep in which `able`, the settings of candidates, race within `seconds`."""
        seconds_cell = max(self.clock.budget / 3, SECONDS_CELL)
        return validate_spec(
            {
                "name": name_of(self.settings),
                "axes": self.fixed,
                "candidates": able,
                "measure": self.measure,
                "limits": {
                    "budget": max(seconds, 1.0),
                    "seconds_end": max(self.clock.left - self.seconds_reserve, seconds, 1.0),
                    "seconds_cell": seconds_cell,
                },
            }
        )

    def recommended(self) -> answers.Answer:
        """Return the answer of the records so far; configurations without a time are predicted."""
        rows = run_folder.read_current_records(self.folder)
        found = answer_of(store.frame(run_folder.with_predictions(rows, self.predicted)))
        return NO_ANSWER if found is None else dataclasses.replace(found, epochs=self.epochs)

    def _predict_configurations(self) -> list[dict[str, Any]]:
        """Return the predicted columns of each configuration on the CPU at the density and batch size asked about."""
        limit = 0.8 * memory.available_bytes()
        return [
            self._predict_row(configuration, key, limit)
            for key, configuration in self.by_key.items()
            if configuration.device == "cpu"
            and configuration.density == self.density
            and configuration.batch_rows == self.candidates[0]["batch_rows"]
        ]

    def _predict_row(self, configuration: Configuration, key: str, limit: float) -> dict[str, Any]:
        """Return predicted columns of a configuration under its key; rough seconds if it has no formula.

        The status is "memory" if its arrays need more than `limit` bytes.
        """
        row = (
            settings_of(configuration)
            | {"key": key, "round": 0, "run": ""}
            | planned_row(configuration, self.problem, limit)
        )
        if row["seconds_predicted"] is None:
            row["seconds_predicted"] = rough_seconds_of(configuration, row, self.problem)
        return row

    def answer(self, profiled: Profile) -> Answer:
        """Return the answer from the records measured so far, with the command that trains as recommended."""
        known = self.recommended()
        trials = run_folder.count_finished_trials(self.folder)
        return Answer(
            known,
            text_of(known, known.groups),
            train_command({**self.by_key[known.key].model_dump(), "epochs": self.epochs})
            if known.key in self.by_key
            else "",
            profiled,
            self.settings,
            self.folder,
            self.clock.spent,
            self.clock.budget,
            trials,
            max(trials - self.measured, 0),
            self.is_stopped,
            self.seconds_compiled,
        )


def _candidate(configuration: Configuration) -> dict[str, Any]:
    """Return the settings of a configuration that distinguish candidates, as a dict."""
    names = ("format", "storage", "engine", "gradient", "update", "execution", "device", "batch_rows", "density")
    return {name: getattr(configuration, name) for name in names}
