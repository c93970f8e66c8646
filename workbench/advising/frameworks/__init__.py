"""Which way of training is the fastest inside a framework: its own dense and sparse ways, and ours through the bridge.

`answer_for("pytorch", dataset)` trains the linear model on the data in each way of that framework, compares weights
and losses of each with loops in float64, times them in turned rounds, and says which to use, by how much, and the lines
to paste. `workbench advise DATA --for pytorch` prints it.

How to add a way: a call of `register_way` in the file of its framework in the folder `ways`, and its code in the
template next to it. A new framework is a new file there, and a template.
"""

import importlib.util
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kernels import threads as threads_of_kernels
from kernels.registry import format_count
from workbench import data
from workbench.advising import breakevens
from workbench.advising.frameworks import ways as work
from workbench.advising.frameworks.training import Problem
from workbench.advising.frameworks.ways import FRAMEWORKS, Way, problem_of, ways_of
from workbench.analysis import formatting
from workbench.measure.posterior import Ratio, Trial, posterior
from workbench.measure.race import Policy, Worker, records_of_candidates
from workbench.sweeps.spec import SpecError

__all__ = ["FRAMEWORKS", "FrameworkAnswer", "Way", "answer_for"]


# The answer in a framework: the ways timed in one process, the fastest of each kind compared, and lines to paste.


WORK = "workbench.advising.frameworks.ways:answers"
BUDGET = 120.0
"""Seconds for everything, as a rule."""
BATCH_ROWS = 256
SHARE_ROUNDS = 0.4
"""Share of the budget for the rounds; the rest is for libraries, compiling and checks."""

LOADED = """import workbench as wb

dataset = {}
x, y = dataset.x, dataset.y

"""

Progress = Callable[[str], None]
"""Called with what is done now."""


@dataclass(frozen=True)
class Timed:
    """A way with its result: seconds a batch (NaN if it was not timed, then `reason` says why), bytes of X as held, and
    its lines."""

    name: str
    kind: str
    is_ours: bool
    seconds: float
    reason: str
    bytes_data: int
    lines: str

    @property
    def result(self) -> str:
        """The time of a batch and the size of the data, such as "3 ms a batch; data 12 MB", or why it was not timed."""
        if not math.isfinite(self.seconds):
            return self.reason
        return f"{formatting.format_seconds(self.seconds)} a batch; data {formatting.format_bytes(self.bytes_data)}"


@dataclass(frozen=True)
class FrameworkAnswer:
    """What to train with in a framework.

    `ways` are all that were tried. `best` is the fastest one, `dense` the fastest on dense rows (None if none ran).
    `ratio` is dense / best sparse, with its 95 % interval; None if a side did not run. `rows` were trained on.
    """

    framework: str
    ways: Sequence[Timed]
    best: Timed
    dense: Timed | None
    ratio: Ratio | None
    rows: int
    batch_rows: int
    seconds: float
    density: float = math.nan
    """Share of the entries that are stored in the rows trained on."""
    load: str = ""
    """Python call that loads the data; "" for data in memory."""

    @property
    def measured_elsewhere(self) -> breakevens.Measurement:
        """Break-evens of operations of this framework on other data, by `benchmarks libraries`."""
        return breakevens.measurement().of(FRAMEWORKS[self.framework][1])

    @property
    def lines(self) -> str:
        """The code to paste, which loads the data first if it is a file or has a name."""
        return f"{LOADED.format(self.load)}{self.best.lines}" if self.load else self.best.lines

    @property
    def paste_heading(self) -> str:
        """The line above the code to paste, with the names that it expects."""
        return "Lines to paste" if self.load else "Lines to paste (x: SciPy sparse matrix, y: labels)"

    @property
    def headline(self) -> str:
        """The sentence on which way of training to use and by how much it is better."""
        name = FRAMEWORKS[self.framework][1]
        if self.dense is None:
            why = next((way.reason for way in self.ways if way.kind == "dense"), "")
            return f"In {name} use {self.best.name}: no dense way runs here. {why}"
        if self.best.kind == "dense":
            return f"In {name} stay dense, with {self.best.name}: {self._against_sparse()}."
        assert self.ratio is not None
        bytes_less = self.dense.bytes_data / max(self.best.bytes_data, 1)
        of_memory = (
            f"its data needs {bytes_less:.3g} times less memory"
            if bytes_less > 1
            else (f"its data needs {1 / bytes_less:.3g} times more memory")
        )
        return f"In {name} use {self.best.name}: {_times(self.ratio)} faster than {self.dense.name}, and {of_memory}."

    def _against_sparse(self) -> str:
        """Return by which factor the best way is faster than the fastest sparse one, or "no sparse way ran"."""
        sparse = [way for way in self.ways if way.kind == "sparse" and math.isfinite(way.seconds)]
        if self.ratio is None or not sparse:
            return "no sparse way ran"
        turned = Ratio(1 / self.ratio.value, 1 / self.ratio.high, 1 / self.ratio.low)
        return f"{_times(turned)} faster than {min(sparse, key=lambda way: way.seconds).name}"

    @property
    def lines_of_ways(self) -> list[str]:
        """A line for each way, fastest first: time and bytes of its data, or why it was not timed."""
        ordered = sorted(self.ways, key=lambda way: (not math.isfinite(way.seconds), way.seconds))
        return [f"{way.name}: {way.result}" for way in ordered]

    def __str__(self) -> str:
        """Return the whole answer as lines of text: headline, ways, what was timed, and the code to paste."""
        lines = [self.headline, "", *(f"  {line}" for line in self.lines_of_ways)]
        measured = (
            f"Timed on {format_count(self.rows, 'row')}, {self.batch_rows} a batch, plain SGD, in {self.seconds:.0f} s."
        )
        elsewhere = self.measured_elsewhere.lines(self.density)
        return "\n".join([*lines, "", measured, *elsewhere, "", f"{self.paste_heading}:", "", self.lines])

    def as_json(self) -> dict[str, Any]:
        """Return the answer as a dict for JSON; unknown times and ratios are None."""
        ratio = (
            None if self.ratio is None else {"value": self.ratio.value, "low": self.ratio.low, "high": self.ratio.high}
        )
        ways = [asdict(way) | {"seconds": way.seconds if math.isfinite(way.seconds) else None} for way in self.ways]
        return {
            "framework": self.framework,
            "why": self.headline,
            "recommended": self.best.name,
            "side": self.best.kind,
            "dense_over_sparse": ratio,
            "lines": self.lines,
            "ways": ways,
            "rows": self.rows,
            "batch_rows": self.batch_rows,
            "seconds": self.seconds,
            "density": self.density if math.isfinite(self.density) else None,
            "measured_elsewhere": asdict(self.measured_elsewhere),
        }


def _times(ratio: Ratio) -> str:
    """Return a ratio with its interval, such as "3.2 (95 %: 2.9 to 3.6) times"."""
    return f"{ratio.value:.2g} (95 %: {ratio.low:.2g} to {ratio.high:.2g}) times"


def answer_for(
    framework: str,
    dataset: data.Dataset,
    *,
    budget: float = BUDGET,
    batch_rows: int | None = None,
    threads: int | None = None,
    progress: Progress = lambda what: None,
    load: str = "",
) -> FrameworkAnswer:
    """Time the ways of a framework on a data set, in a process of their own, and say which one to use.

    Parameters
    ----------
    framework : str
        A key of `FRAMEWORKS`: pytorch, tensorflow, keras, jax or sklearn.
    dataset : Dataset
        Labelled rows; the labels are classes. The first 32,768 rows are trained on.
    budget : float, default 120
        Seconds for everything.
    batch_rows : int, optional
        Rows of a batch, by default 256; scikit-learn steps after each row.
    threads : int, optional
        Processor threads, by default all cores.
    progress : callable, optional
        Called with a text that names the current step.
    load : str, optional
        Python call that loads the data, such as "wb.load('train.txt')", for the lines to paste.

    Returns
    -------
    FrameworkAnswer
        The fastest way, with the ratio of dense and sparse and the lines to paste.

    Raises
    ------
    SpecError
        If the framework is unknown or not installed, the labels are no classes, or nothing could be timed.
    """
    began = time.monotonic()
    ways = ways_of(framework)
    package, name, install = FRAMEWORKS[framework]
    if not importlib.util.find_spec(package):
        raise SpecError(f"{name} is not installed here.\nType: {install}")
    count = threads or threads_of_kernels.max_threads()
    problem = problem_of(dataset, 1 if framework == "sklearn" else batch_rows or BATCH_ROWS, count)
    with tempfile.TemporaryDirectory(prefix="workbench-framework-") as folder:
        request = work.save(problem, Path(folder)) | {
            "framework": framework,
            "threads": count,
            "policy": asdict(Policy(seconds_most=SHARE_ROUNDS * budget)),
        }
        records = _measure_ways(request, ways, Path(folder), budget, began, progress)
    answer = _conclude(framework, ways, records, problem, time.monotonic() - began)
    return replace(answer, load=load)


def _measure_ways(
    request: dict[str, Any], ways: Sequence[Way], folder: Path, budget: float, began: float, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Return {way's name: record} of the `ways` (candidates of a framework), timed in one worker process.

    A way that ends the process is left out and the others are timed again. `began` (`time.monotonic`) and `budget` (s)
    limit the whole; `progress` is called with the way's name.
    """
    worker = Worker(WORK, folder, share_memory=0.9)

    def answers(left_out: list[str]) -> Iterator[dict[str, Any]]:
        """Yield the worker's answers for all ways except `left_out`; reports progress."""
        for answer in worker.answers(request | {"left_out": left_out}, lambda _: budget, began):
            if "at" in answer:
                progress(answer["at"])
            yield answer

    return records_of_candidates([way.name for way in ways], answers)


def _conclude(
    framework: str, ways: Sequence[Way], records: Mapping[str, Mapping[str, Any]], problem: Problem, seconds: float
) -> FrameworkAnswer:
    """Return the answer of a framework from {way's name: record}; SpecError if no way could be timed.

    `ways` are the candidates of the framework. `seconds` is what the whole took.
    """
    timed = [_timing_of(way, records.get(way.name, {}), problem) for way in ways]
    able = [way for way in timed if math.isfinite(way.seconds)]
    if not able:
        reasons = "\n".join(f"{way.name}: {way.reason}" for way in timed)
        raise SpecError(f"No way of {FRAMEWORKS[framework][1]} could be timed.\n{reasons}")
    best = min(able, key=lambda way: way.seconds)
    sides = [
        min((way for way in able if way.kind == kind), key=lambda way: way.seconds, default=None)
        for kind in ("dense", "sparse")
    ]
    dense, sparse = sides
    ratio = None if dense is None or sparse is None else _ratio(records[dense.name], records[sparse.name])
    rows = len(problem.labels)
    density = problem.sizes.density
    return FrameworkAnswer(framework, timed, best, dense, ratio, rows, problem.batch_rows, seconds, density)


def _timing_of(way: Way, record: Mapping[str, Any], problem: Problem) -> Timed:
    """Return the result of a `Way` (a candidate of the framework) from its record; seconds are NaN if it was not timed.

    `reason` then says why. An empty record means that the budget was over before.
    """
    is_ok = record.get("status") == "ok" and record.get("seconds") is not None
    seconds = float(record["seconds"]) if is_ok else math.nan
    reason = record.get("reason") or ("" if is_ok else "It was not reached within the budget.")
    lines = way.lines(problem)
    return Timed(way.name, way.kind, way.side == "project", seconds, reason, way.bytes_data(problem), lines)


def _ratio(dense: Mapping[str, Any], sparse: Mapping[str, Any]) -> Ratio:
    """Return the ratio dense / sparse over the rounds that both records have."""
    both = zip(dense["samples"], sparse["samples"], strict=False)
    trials = [
        Trial(name, seconds, "run", number)
        for number, pair in enumerate(both)
        for name, seconds in zip(("dense", "sparse"), pair, strict=True)
    ]
    return posterior(trials).ratio("dense", "sparse")
