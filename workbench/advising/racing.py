"""Races: the statistics of this lab for anybody's own functions and commands.

Contestants are timed in interleaved rounds of counterbalanced order, so that whatever slows the machine slows all of
them alike, and compared by the posterior of their times: a ratio with its interval and the probability that it is on
that side, instead of two means of different minutes.
"""

import copy
import html
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
import pandas as pd

from kernels.registry import format_count, with_known_parameters
from workbench import atomic_files
from workbench.analysis import formatting
from workbench.measure import machine, memory
from workbench.measure.clock import MOST_ROUNDS
from workbench.measure.posterior import ANYWHERE, Posterior, Ratio, Trial, posterior, residuals, severity_of
from workbench.measure.race import Policy, ReadyCandidate, time_rounds
from workbench.measure.rounds import trial_statistic

BUDGET = 30.0
ROUNDS = 60
"""Rounds at most: the posterior takes O(rounds ** 3)."""
LEAST_ROUNDS = 4
MOST_SAMPLES = 100_000
"""Samples of a contestant at most; a budget is over before."""
SECONDS_SAMPLE = 0.005
"""Seconds that the calls of one sample last, so that the clock weighs little; then the next contestant has its turn."""
SAMPLES = 8
"""Samples of a round, of which the lower quartile counts: what interrupts a sample makes it longer, never shorter."""
SECONDS_OF_SHARE = 1.0
"""Seconds from which on the share of other programs is known within 4 % of two cores: the system counts ticks of 10 ms,
of which a program that runs all the time has one or none in a sample."""
SLOW, ROUNDS_SLOW = 8.0, 4
"""How many times slower than the fastest a contestant is to have only so many rounds."""
TOLERANCE = 1e-5
"""Relative difference up to which results agree."""


STARTER = """
import os, sys, time
start = time.perf_counter()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"[{time.perf_counter() - start}, {os.waitstatus_to_exitcode(status)}, {usage.ru_maxrss}]")
"""
"""Starts a command from a small process: the peak of resident memory of a process includes that of the one that it was
forked from."""


class RaceError(ValueError):
    """Contestants that cannot be compared: fewer than two, one that fails, or results that do not agree."""


@dataclass
class Timing:
    """What was measured of a contestant: seconds of a call in each round, and the most memory that a call added.

    `busy` is the share of the cores, 0 to 1, that other programs took in each round; `bytes_peak` is None where the
    system does not tell.
    """

    calls: int = 1
    seconds: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    bytes_peak: int | None = None


@final
@dataclass(frozen=True, eq=False)
class Race:
    """The outcome of a race.

    Attributes
    ----------
    timings : dict of str to Timing
        Calls a sample, seconds a call of each round, other programs' share of the cores, peak memory, by name.
    machine : str
        Name of the machine.
    versions : dict of str to str
        Versions of Python and the libraries that times depend on.
    agree : bool or None
        Whether the results were compared and agree; None if they were not compared.

    Examples
    --------
    >>> import numpy as np, workbench as wb
    >>> x = np.ones((300, 300))
    >>> race = wb.race({"once": lambda: x @ x, "ten times": lambda: [x @ x for _ in range(10)][0]}, budget=0.5)
    >>> race.fastest, race.ratio("ten times", "once").probability > 0.9
    ('once', True)
    """

    timings: dict[str, Timing]
    machine: str
    versions: dict[str, str]
    agree: bool | None = None

    @cached_property
    def posterior(self) -> Posterior[str]:
        """The joint distribution of the logarithms of the contestants' times."""
        limit = machine.disturbance_limit(os.cpu_count() or 1)
        trials = [
            Trial(name, seconds, "race", number, share > limit, severity=severity_of(share))
            for name, timing in self.timings.items()
            for number, (seconds, share) in enumerate(zip(timing.seconds, timing.busy, strict=True))
        ]
        return posterior(trials, scatter=ANYWHERE.shrunk(*residuals(trials)))

    @property
    def names(self) -> list[str]:
        """Names of the contestants, the fastest first."""
        order = np.argsort(self.posterior.mean, kind="stable")
        return [self.posterior.names[place] for place in order]

    @property
    def fastest(self) -> str:
        """The contestant that is fastest, however surely."""
        return self.names[0]

    def ratio(self, slow: str, fast: str) -> Ratio:
        """Return how many times as long one contestant takes as another.

        Parameters
        ----------
        slow, fast : str
            Names of two contestants.

        Returns
        -------
        workbench.measure.posterior.Ratio
            `value` with its 95 % interval `low` to `high`, and the `probability` that it is above 1. If `fast` is the
            fastest of several, the interval allows for its luck.

        Raises
        ------
        RaceError
            If a name is unknown; lists the known ones.
        """
        for name in (slow, fast):
            if name not in self.timings:
                raise RaceError(f"Unknown contestant {name!r}. Expected one of: {', '.join(self.timings)}.")
        others = [name for name in self.timings if name != slow] if fast == self.fastest else []
        return self.posterior.ratio(slow, fast, (), others if len(others) > 1 else ())

    @property
    def _busy(self) -> float:
        """Mean share of the cores, 0 to 1, that other programs took."""
        return float(np.mean([share for timing in self.timings.values() for share in timing.busy]))

    @property
    def verdict(self) -> str:
        """The outcome in a sentence: who is faster, by how much, and how surely."""
        first, second = self.names[:2]
        ratio, tell = self.ratio(second, first), formatting.format_number
        bounds = f"(95 %: {tell(ratio.low)} to {tell(ratio.high)}, {ratio.rounds} rounds)"
        if ratio.low > 1:
            return f"{first} is fastest: {second} takes {tell(ratio.value)} times {bounds} as long."
        if ratio.verdict == "level":
            return f"{first} and {second} are equally fast: the ratio is {tell(ratio.value)} {bounds}."
        more = (
            "Race again when other programs have ended."
            if self._busy > machine.DISTURBED
            else "A larger budget may decide."
        )
        other = tell(1 / ratio.low) if ratio.low else "any number of"
        most = f"{first} up to {tell(ratio.high)} times, {second} up to {other} times"
        return f"Not decided: either may be faster, {most} (95 %, {ratio.rounds} rounds). {more}"

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each contestant, the fastest first, as a pandas DataFrame.

        Columns: name; seconds, the median of a call; ratio, ratio_low, ratio_high, of its time to the fastest one's;
        probability that the fastest one is faster; bytes_peak; rounds; calls a sample; busy, the mean share of the
        cores that other programs took.
        """
        rows = []
        for name in self.names:
            timing, is_first = self.timings[name], name == self.fastest
            ratio = Ratio(1.0, 1.0, 1.0) if is_first else self.ratio(name, self.fastest)
            rows.append(
                {
                    "name": name,
                    "seconds": float(np.median(timing.seconds)),
                    "ratio": ratio.value,
                    "ratio_low": ratio.low,
                    "ratio_high": ratio.high,
                    "probability": ratio.probability,
                    "bytes_peak": timing.bytes_peak,
                    "rounds": len(timing.seconds),
                    "calls": timing.calls,
                    "busy": float(np.mean(timing.busy)),
                }
            )
        return pd.DataFrame(rows)

    @property
    def _lines(self) -> list[tuple[str, ...]]:
        """(name, time of a call, times the fastest, memory) of each contestant as texts."""
        tell = formatting.format_number
        return [
            (
                row.name,
                formatting.format_seconds(row.seconds),
                "1" if row.ratio == 1 else f"{tell(row.ratio)} ({tell(row.ratio_low)} to {tell(row.ratio_high)})",
                "unknown" if row.bytes_peak is None or row.bytes_peak != row.bytes_peak else _bytes(row.bytes_peak),
            )
            for row in self.frame.itertuples(index=False)
        ]

    @property
    def _notes(self) -> str:
        """What the reader must know: whether results were compared, and whether other programs ran."""
        texts = "The results agree. " if self.agree else "The results were not compared. "
        others = f"Other programs took {self._busy:.0%} of the cores. " if self._busy > machine.DISTURBED else ""
        return f"{texts}{others}Measured on {self.machine}."

    def __str__(self) -> str:
        """Return verdict and table as text."""
        rows = [_COLUMNS, *self._lines]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
        lines = ["  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.verdict, "", *lines, "", self._notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return verdict, table and picture as HTML for a notebook."""
        body = f'<p class="verdict"><strong>{html.escape(self.verdict)}</strong></p>{self._picture}'
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in line)}</tr>" for line in self._lines)
        return f"{body}<table><tr>{head}</tr>{rows}</table><p>{html.escape(self._notes)}</p>"

    @property
    def _picture(self) -> str:
        """The chart as inline SVG."""
        import io

        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 1.1 + 0.5 * len(self.timings)), layout="constrained")
        self.plot(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue().partition("<svg")[2].join(("<svg", ""))

    def plot(self, ax: Any = None) -> Any:
        """Draw the time of each contestant relative to the fastest one, with 95 % intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes: contestants from the fastest at the top, the ratio of times on the other, logarithmic axis.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=(8, 1.1 + 0.5 * len(self.timings)), layout="constrained").subplots()
        frame = self.frame
        for place, row in enumerate(frame.itertuples(index=False)):
            colour = "#0072B2" if place == 0 else "#D55E00"
            ax.plot([row.ratio_low, row.ratio_high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
            ax.plot([row.ratio], [place], "o", color=colour)
            text = f"{formatting.format_seconds(row.seconds)} a call"
            ax.annotate(text, (row.ratio_high, place), (8, 0), textcoords="offset points", va="center")
        ax.set_xscale("log")
        most = float(frame["ratio_high"].max())
        ax.set_xlim(min(0.9, float(frame["ratio_low"].min()) / 1.1), most * max(1.5, most**0.35))
        ax.set_yticks(range(len(frame)), frame["name"])
        ax.set_ylim(len(frame) - 0.5, -0.5)
        ticks = [tick for tick in _TICKS if tick <= most * 1.2] if most < _TICKS[-1] else None
        if ticks:
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        ax.axvline(1, color="#888888", linewidth=1, zorder=0)
        ax.set_xlabel("time / time of the fastest (95 % interval)")
        return ax

    def report(self, path: str | Path = "race.html") -> Path:
        """Write verdict, picture, table and machine to a page of HTML, which needs no other file, and return its path.

        Parameters
        ----------
        path : str or Path
            File to write; replaced if it is there.

        Returns
        -------
        Path
            The file.
        """
        versions = "; ".join(f"{name} {version}" for name, version in self.versions.items())
        title = "<!doctype html><html lang='en'><meta charset='utf-8'><title>Race</title>"
        style = "<style>body { font-family: sans-serif; margin: 2em; } svg { max-width: 100%; height: auto; } "
        style += "td, th { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid #8884; }</style>"
        body = f"{title}{style}<h1>Race</h1>{self._repr_html_()}<p>{html.escape(versions)}</p></html>"
        atomic_files.write(Path(path), body)
        return Path(path)

    def save(self, path: str | Path) -> Path:
        """Write everything that was measured to a file of JSON, which `Race.load` reads; return its path.

        Parameters
        ----------
        path : str or Path
            File to write; replaced if it is there.

        Returns
        -------
        Path
            The file.
        """
        atomic_files.write(Path(path), self.to_json())
        return Path(path)

    def to_json(self) -> str:
        """Return everything that was measured as JSON: `timings` by name, `machine`, `versions`, `agree`."""
        return json.dumps(asdict(self), indent=1, allow_nan=False)

    @classmethod
    def load(cls, path: str | Path) -> "Race":
        """Return the race that `save` wrote to a file.

        Parameters
        ----------
        path : str or Path
            File of JSON.

        Returns
        -------
        Race
            The race, with the same ratios.

        Raises
        ------
        RaceError
            If the file is no race.
        """
        try:
            read = json.loads(Path(path).read_text(encoding="utf-8"))
            timings = {str(name): Timing(**timing) for name, timing in read.pop("timings").items()}
            race = cls(timings, **read)
            assert len(race.posterior.names) > 1, "it has fewer than two contestants"
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
            raise RaceError(
                f"{path} is no race that was saved: {error}. Expected a file that Race.save wrote."
            ) from None
        return race

    def compare(self, before: "Race") -> pd.DataFrame:
        """Return how many times as long each contestant takes now as it took in another race.

        Two races share no rounds: what slowed the machine in one of them shows as a difference. The intervals are those
        of Welch's t-test of the logarithms of the times.

        Parameters
        ----------
        before : Race
            A race with the same contestants, or some of them, on the same machine.

        Returns
        -------
        pandas.DataFrame
            Columns name, ratio, ratio_low, ratio_high and probability that it takes longer now.

        Raises
        ------
        RaceError
            If no contestant is in both, or the machines differ.
        """
        both = [name for name in self.names if name in before.timings]
        if not both:
            raise RaceError(
                f"No contestant is in both races: {', '.join(self.timings)}; before {', '.join(before.timings)}."
            )
        if self.machine != before.machine:
            raise RaceError(f"The races are of two machines, {before.machine} and {self.machine}; their times differ.")
        from scipy import stats

        rows = []
        for name in both:
            logs = [np.log(race.timings[name].seconds) for race in (self, before)]
            found = stats.ttest_ind(*logs, equal_var=False, alternative="greater")
            low, high = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
            ratio = math.exp(logs[0].mean() - logs[1].mean())
            rows.append((name, ratio, math.exp(low), math.exp(high), 1 - float(found.pvalue)))
        return pd.DataFrame(rows, columns=["name", "ratio", "ratio_low", "ratio_high", "probability"])


_COLUMNS = ("", "time of a call", "times the fastest (95 %)", "memory at its peak")
_TICKS = (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)


def _bytes(count: float) -> str:
    """Return bytes as text, 0 as "none added"."""
    return formatting.format_bytes(int(count)) if count else "none added"


@with_known_parameters
def race(
    functions: Mapping[str, Callable[..., Any]],
    *,
    args: Sequence[Any] = (),
    setup: Callable[[], Any] | None = None,
    check: bool | Callable[[Any, Any], Any] = True,
    budget: float = BUDGET,
) -> Race:
    """Time functions against each other and say which is faster, by how much and how surely.

    All run in this process, in interleaved rounds. Each is called once before, which compiles what is compiled at the
    first call, and its result is compared with that of the first function.

    Parameters
    ----------
    functions : mapping of str to callable
        At least two, by name.
    args : sequence
        Arguments that each function is called with. Each has a deep copy of its own, so that none changes another's.
    setup : callable, optional
        Called before every call, untimed; what it returns is the only argument of the function, in place of `args`. For
        functions that use up what they are given.
    check : bool or callable, default True
        How results are compared: numbers and arrays, dense or sparse, up to 1e-5 of their size, all else by equality.
        False compares nothing. `check(first, other)` of your own returns False, or raises, if they do not agree.
    budget : float, default 30
        Seconds for the rounds, at least four. The first call of each function is not counted.

    Returns
    -------
    Race
        Ratios with intervals, a table, a chart, a report.

    Raises
    ------
    RaceError
        With fewer than two functions, a budget that is not positive, a function that raises, or results that do not
        agree.

    Examples
    --------
    >>> import workbench as wb
    >>> race = wb.race({"sum": lambda x: sum(x), "loop": lambda x: sum(v for v in x)}, args=[range(20_000)], budget=0.5)
    >>> race.fastest
    'sum'
    """
    _check_arguments(functions, budget)
    if args and setup is not None:
        raise RaceError("Both args and setup give arguments; expected one of them.")
    calls: dict[str, _Function] = {}
    for name, function in functions.items():
        calls[name] = _Function(name, function, copy.deepcopy(tuple(args)), setup)
    first, *others = list(calls)
    expected, agree = calls[first].first_result(), None if check is False else True
    for name in others:
        result = calls[name].first_result()
        if check is not False:
            _compare(first, expected, name, result, check if callable(check) else _assert_close)
        del result
    del expected
    return _run({name: function.calibrated() for name, function in calls.items()}, budget, agree)


def race_commands(commands: Sequence[str], *, budget: float = BUDGET) -> Race:
    """Time whole commands against each other, as processes from their start to their end.

    Parameters
    ----------
    commands : sequence of str
        At least two commands, each split as a shell splits words; no shell runs.
    budget : float, default 30
        Seconds for the rounds, at least four. One run of each before the rounds is not counted.

    Returns
    -------
    Race
        Ratios with intervals; memory is the largest resident size of the process and of those it waited for.

    Raises
    ------
    RaceError
        With fewer than two commands or two that are the same, for one that cannot be started or does not end with
        status 0; what it printed last is in the message.

    Examples
    --------
    >>> from workbench.advising.racing import race_commands
    >>> race_commands(["sleep 0.2", "sleep 0.01"], budget=1).fastest
    'sleep 0.01'
    """
    if len(set(commands)) < len(commands):
        raise RaceError("Two commands are the same; expected different ones.")
    _check_arguments(commands, budget)
    return _run({command: _Command(command).calibrated() for command in commands}, budget, None)


def _check_arguments(contestants: Sequence[str] | Mapping[str, Any], budget: float) -> None:
    """Raise RaceError for fewer than two contestants, one that cannot be called, or a budget that is not positive."""
    if len(contestants) < 2:
        is_named = isinstance(contestants, Mapping)
        usage = 'wb.race({"mine": f, "theirs": g})' if is_named else 'workbench race "python a.py" "python b.py"'
        given = format_count(len(contestants), "function" if is_named else "command")
        raise RaceError(f"A race of {given}; expected two or more.\nType {usage}.")
    for name, function in contestants.items() if isinstance(contestants, Mapping) else ():
        if not callable(function):
            raise RaceError(f"{name!r} is {function!r}; expected a function.")
    if not (math.isfinite(budget) and budget > 0):
        raise RaceError(f"budget is {budget}; expected a positive number of seconds.")


class _Contestant(ABC):
    """One that is timed: `once()` runs it and returns its seconds; `taken` has what other programs took in each sample,
    and seconds of all cores.
    """

    timing: Timing
    taken: list[tuple[float, float]]

    @abstractmethod
    def once(self) -> float:
        """Run once and return the seconds that it took."""

    def calibrated(self) -> "tuple[_Contestant, ReadyCandidate]":
        """Return it with a candidate for `time_rounds`, after one untimed run."""
        start = perf_counter()
        estimate = max(min(self.once() for _ in range(2)), 1e-9)
        with_setup = (perf_counter() - start) / 2  # what comes before each call counts, too
        self.timing.calls = max(1, round(SECONDS_SAMPLE / max(estimate, with_setup)))
        self.taken = []
        return self, ReadyCandidate((), self.sample, estimate)

    def sample(self) -> float:
        """Return the mean seconds of the calls of a sample; note what other programs took meanwhile."""
        others = machine.OtherPrograms()
        seconds = sum(self.once() for _ in range(self.timing.calls)) / self.timing.calls
        self.taken.append(others.taken())
        return max(seconds, 1e-9)


@final
class _Function(_Contestant):
    """A function with its arguments."""

    def __init__(self, name: str, function: Callable[..., Any], args: tuple, setup: Callable[[], Any] | None) -> None:
        """Store the function; `args` are its own."""
        self.name, self.function, self.args, self.setup, self.timing = name, function, args, setup, Timing()

    def once(self) -> float:
        """Call the function once and return the seconds that it took."""
        args = self.args if self.setup is None else (self.setup(),)
        start = perf_counter()
        self.function(*args)
        return perf_counter() - start

    def first_result(self) -> Any:
        """Call the function and return its result; note the memory that the call adds at its peak."""
        args = self.args if self.setup is None else (self.setup(),)
        can_tell = memory.reset_peak()
        before = memory.resident_bytes()
        try:
            result = self.function(*args)
        except Exception as error:
            raise RaceError(f"{self.name!r} raised {type(error).__name__}: {error}") from error
        self.timing.bytes_peak = max(memory.peak_bytes() - before, 0) if can_tell else None
        return result


@final
class _Command(_Contestant):
    """A command, run as a process."""

    def __init__(self, command: str) -> None:
        """Split the command into words; RaceError if that fails."""
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise RaceError(f"{command!r} cannot be split into words: {error}.") from None
        if not self.words:
            raise RaceError("A command is empty; expected one such as: python train.py")
        self.command, self.timing = command, Timing(bytes_peak=0)

    def once(self) -> float:
        """Run the command to its end and return the seconds that it took; RaceError if its status is not 0."""
        with tempfile.TemporaryDirectory(prefix="workbench-race-") as folder:
            said, printed = Path(folder) / "said", Path(folder) / "printed"
            with printed.open("wb") as file:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", STARTER, str(said), *self.words],
                    stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
                )  # fmt: skip
                try:
                    process.wait()
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    raise
            last = printed.read_bytes()[-800:].decode(errors="replace").strip()
            if not said.exists():
                raise RaceError(f"{self.command!r} cannot be started: {last.splitlines()[-1] if last else 'no reason'}")
            seconds, status, resident = json.loads(said.read_text())
            if status:
                raise RaceError(f"{self.command!r} ended with status {status}:\n{last}")
        unit = 1 if os.uname().sysname == "Darwin" else 1024
        self.timing.bytes_peak = max(self.timing.bytes_peak or 0, resident * unit)
        return seconds


def _run(ready: Mapping[str, tuple[_Contestant, ReadyCandidate]], budget: float, agree: bool | None) -> Race:
    """Time the contestants in rounds for `budget` seconds and return the race."""
    policy = Policy(
        rounds=MOST_SAMPLES, rounds_slow=ROUNDS_SLOW, slow=SLOW, rounds_least=LEAST_ROUNDS, seconds_most=budget
    )
    time_rounds({name: candidate for name, (_, candidate) in ready.items()}, policy, perf_counter)
    taken = _added_up([contestant.taken for contestant, _ in ready.values()])
    for contestant, candidate in ready.values():
        timing, count, own = contestant.timing, len(candidate.samples), _added_up([contestant.taken])
        parts = np.array_split(np.arange(count), min(ROUNDS, max(count // SAMPLES, min(count, MOST_ROUNDS))))
        timing.seconds = [trial_statistic([candidate.samples[place] for place in part]) for part in parts]
        timing.busy = [share_of_others(own, taken, part[0], part[-1] + 1) for part in parts]
    timings = {name: contestant.timing for name, (contestant, _) in ready.items()}
    return Race(timings, machine.machine_id(), machine.versions(), agree)


def _added_up(taken: Sequence[Sequence[tuple[float, float]]]) -> np.ndarray:
    """Return what other programs took, and seconds of all cores, in all samples before each one, float64 [samples, 2].

    `taken` has a list a contestant; samples of the same number are added.
    """
    sums = np.zeros((1 + max(map(len, taken)), 2))
    for one in taken:
        sums[1 : 1 + len(one)] += one
    return sums.cumsum(axis=0)


def share_of_others(own: np.ndarray, of_all: np.ndarray, first: int, last: int) -> float:
    """Return the share of the cores, 0 to 1, that other programs took in the samples from `first` to before `last`.

    `own` are sums of the contestant's samples, `of_all` those of all contestants, as `_added_up` gives them. If its own
    last less than `SECONDS_OF_SHARE`, those of all count, and as many before and after them as it takes.
    """
    least = SECONDS_OF_SHARE * (os.cpu_count() or 1)
    taken, seconds = own[last] - own[first]
    reach = 0
    while seconds < least and reach < len(of_all):
        begin, end = max(first - reach, 0), min(last + reach, len(of_all) - 1)
        taken, seconds = of_all[end] - of_all[begin]
        reach = 2 * reach + 1
    return machine.share_of(float(taken), float(seconds))


def _compare(first: str, expected: Any, name: str, result: Any, check: Callable[[Any, Any], Any]) -> None:
    """Raise RaceError unless the results of two functions agree, as `check` says."""
    try:
        is_same = check(expected, result)
    except Exception as error:
        why = " ".join(str(error).split())
    else:
        if is_same is None or is_same is True or (is_same is not False and bool(is_same)):
            return
        why = "check returned False"
    raise RaceError(
        f"The results of {name!r} and {first!r} do not agree: {why}.\n"
        "Without the same result a time says nothing. Type check=False to race them all the same."
    )


def _assert_close(expected: Any, result: Any) -> bool:
    """Return whether two results agree: numbers and arrays up to `TOLERANCE`, sequences by parts, others if equal."""
    import scipy.sparse

    if isinstance(expected, list | tuple) and isinstance(result, list | tuple):
        return len(expected) == len(result) and all(map(_assert_close, expected, result))
    if isinstance(expected, Mapping) and isinstance(result, Mapping):
        return expected.keys() == result.keys() and all(_assert_close(expected[key], result[key]) for key in expected)
    if scipy.sparse.issparse(expected) and scipy.sparse.issparse(result):
        if expected.shape != result.shape:
            return False
        size = float(abs(expected).max()) if expected.nnz else 0.0
        return not float(abs(expected - result).max()) > TOLERANCE * size
    one, other = (each.toarray() if scipy.sparse.issparse(each) else each for each in (expected, result))
    if not (hasattr(one, "__array__") or isinstance(one, int | float | complex)):
        return bool(one == other)
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind not in "biufc" or other.dtype.kind not in "biufc":
        return bool(np.array_equal(one, other))
    size = float(np.abs(one).max(initial=0.0)) if one.size else 0.0
    np.testing.assert_allclose(other, one, rtol=TOLERANCE, atol=TOLERANCE * size if math.isfinite(size) else 0)
    return True
