"""From a file to predictions in whole processes, as a user starts them: seconds by stage and peak memory.

How to add a candidate: a call of `register` after the function that returns its commands. The suite measures the
settings of each candidate, then the first setting that reaches the loss, warm and cold.

Warm is a start after another one of the same candidate: files in memory, compiled code and parsed copies in their
caches. Cold is a start with these caches empty and the files dropped from memory. A run is measured as a whole, from
the start of the first process to the end of the last; memory is the largest of a process.
"""

import collections
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import linear
from benchmarks.contest import Record
from benchmarks.end import script
from benchmarks.shapes import BenchError
from kernels.registry import Registry
from workbench import atomic_files
from workbench.data import guess_columns
from workbench.data.content import VARIABLE
from workbench.data.tables.schema import Column

PASSES = ({"passes": 1}, {"passes": 2}, {"passes": 4}, {"passes": 8}, {"passes": 16})
"""Settings of what goes over the rows again and again."""


class Paths(NamedTuple):
    """Files of one run: `train` and `held_out` are read; `predictions` and what is in `folder` are written."""

    format: str
    train: Path
    held_out: Path
    folder: Path
    python: str = sys.executable
    """Python that competitors are started with."""

    @property
    def predictions(self) -> Path:
        """File with a line for each held-out row, whose last field is the probability of the label 1."""
        return self.folder / "predictions.csv"

    @property
    def stages(self) -> Path:
        """JSON file of seconds by stage, written only by candidates that measure them."""
        return self.folder / "stages.json"


Commands = list[tuple[str, list[str]]]
"""Processes that run one after the other: the stage that each is, and its command line."""


@dataclass(frozen=True)
class Candidate:
    """A program or script that trains on a file and predicts: `commands(paths, setting)` are its processes, `settings`
    the settings to try.

    `formats` lists what it reads. `package` has to be installed; `install` says how. `why_not` is why no case has it.
    """

    name: str
    side: str
    commands: Callable[[Paths, Mapping[str, Any]], Commands]
    settings: Sequence[Mapping[str, Any]]
    formats: tuple[str, ...] = ("svmlight", "clicks")
    package: str = ""
    install: str = ""
    why_not: str = ""

    def unavailable(self, format: str, versions: Mapping[str, str]) -> str:
        """Return why it cannot take part with a text format, "" if it can.

        `versions` are those of the distributions that its Python has, by name.
        """
        if format not in self.formats:
            return f"It reads {' and '.join(self.formats)} only."
        if self.package and self.package not in versions:
            return f"{self.package} is not installed: {self.install}."
        return self.why_not


_candidates: Registry[Candidate] = Registry("candidate", (), BenchError)
register, names, get = _candidates.register, _candidates.names, _candidates.get


# The project's command line: `workbench train --save`, then `workbench apply`; first as they are, then on all rows, as
# the others train, with the decay searched, given to dual ascent, or none and a number of passes.


PROJECT_OPTIONS: dict[str, Callable[[Any], list[str]]] = {
    "held_out": lambda share: ["--held-out", str(share)],
    "decay": lambda decay: ["--optimizer", "sgd", "--execution", "dual", "--decay", str(decay), "--epochs", "10"],
    "passes": lambda passes: ["--epochs", str(passes)],
    "streamed": lambda passes: ["--stream", "--passes", str(passes)],
}
"""What a setting of the project's adds to the command line, by its name."""
PROJECT_SETTINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"held_out": 0},
    *({"held_out": 0, "decay": decay} for decay in (1e-3, 1e-4, 1e-5)),
    *({"held_out": 0, "passes": passes} for passes in (1, 4)),
)


def project_commands(is_logarithmic: bool, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the `workbench train` and `workbench apply` commands with the options of a setting.

    With `is_logarithmic` a file of column kinds that takes numbers as logarithms is written and passed.
    """
    workbench, model = [sys.executable, "-m", "workbench"], str(paths.folder / "model")
    train = [*workbench, "train", str(paths.train), "--save", model]
    train += ["--columns", str(write_columns(paths))] if is_logarithmic else []
    train += [text for name, value in setting.items() for text in PROJECT_OPTIONS[name](value)]
    apply = [*workbench, "apply", model, str(paths.held_out), "--out", str(paths.predictions)]
    return [("train", train), ("apply", apply)]


def write_columns(paths: Paths) -> Path:
    """Write the guessed column kinds as TOML, numbers as scaled logarithms, into the run's folder; return the path.

    It is what a user writes by hand, so it is made before the clock starts.
    """
    columns, path = guess_columns(paths.train), paths.folder / "columns.toml"
    kinds = [
        Column(one.name, "number", "log", scaling="largest") if one.kind == "number" else one for one in columns.columns
    ]
    replace(columns, columns=tuple(kinds)).save(path)
    return path


register(Candidate("project", "project", partial(project_commands, False), PROJECT_SETTINGS))
register(
    Candidate(
        "project, logarithms", "project", partial(project_commands, True), PROJECT_SETTINGS[:5], formats=("clicks",)
    )
)
register(
    Candidate(
        "project, streamed",
        "project",
        partial(project_commands, False),
        tuple({"held_out": 0, "streamed": passes} for passes in (1, 2, 3)),
    )
)


# Scripts of few lines: the list of linear competitors, and PyTorch's EmbeddingBag.


SCRIPT = Path(__file__).with_name("script.py")
STRENGTHS = tuple({"C": strength} for strength in (0.01, 0.03, 0.1, 0.3, 1.0))
"""Inverse strengths of the penalty that LIBLINEAR tries."""
DECAYS = tuple({"alpha": alpha} for alpha in (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5))
"""Strengths of the penalty that SGDClassifier tries; it ends by itself."""
L1_STRENGTHS = tuple({"C": strength} for strength in (0.1, 0.3, 1.0, 3.0, 10.0))
"""Inverse strengths of an L1 penalty."""
OTHERS = ("torch", "polars")
"""Distributions of competitors that the list of linear ones does not have."""


def script_commands(library: str, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the one command that runs `script.py` for a library; `setting` has exactly one value."""
    (value,) = setting.values()
    files = map(str, (paths.train, paths.held_out, paths.predictions, paths.stages))
    return [("script", [paths.python, str(SCRIPT), library, paths.format, *files, str(value)])]


_SOLVERS: dict[str, Sequence[Mapping[str, Any]]] = {"liblinear": STRENGTHS, "SGDClassifier": DECAYS}
for _name, _settings in _SOLVERS.items():
    register(Candidate(_name, "competitor", partial(script_commands, _name), _settings, package="scikit-learn"))
for _one in linear.COMPETITORS:
    if _one.solve is not None and "SGDClassifier" not in _one.aliases:
        register(
            Candidate(
                _one.name,
                "competitor",
                partial(script_commands, _one.name),
                L1_STRENGTHS if _one.name in ("skglm", "celer") else STRENGTHS,
                package=_one.distribution,
                install=_one.install,
                why_not="It factors a matrix of all pairs of weights, of which there are too many."
                if _one.is_quadratic
                else "",
            )
        )
register(
    Candidate(
        "polars, SGDClassifier",
        "competitor",
        partial(script_commands, "polars, SGDClassifier"),
        DECAYS,
        formats=("clicks",),
        package="polars",
        install="pip install polars",
    )
)
register(
    Candidate(
        "EmbeddingBag",
        "competitor",
        partial(script_commands, "EmbeddingBag"),
        PASSES,
        package="torch",
        install="pip install 'sparse-workbench[pytorch]'",
    )
)


# Vowpal Wabbit's command line as its Python package has it, on its own text: the rows of the svmlight file.
#
# The text is made before the clock starts; a value of a click is the name of a feature, a number is a logarithm. With
# its cache the text is parsed in the first pass only, without it there is one pass. It holds no rows out by itself.


PROGRAM = ("-m", "vowpalwabbit")
LOGISTIC = ("--quiet", "--loss_function", "logistic", "-b", "22")


def text_of(path: Path) -> Path:
    """Return the path of the rows in Vowpal Wabbit's text, written next to the svmlight or CSV file if missing."""
    made = path.with_suffix(".vw")
    if not made.exists():
        to_lines = _lines_of_clicks if path.suffix == ".csv" else _lines_of_svmlight
        with path.open(encoding="utf-8") as rows, made.open("w", encoding="utf-8") as file:
            file.writelines(to_lines(rows))
    return made


def _lines_of_svmlight(rows: Iterator[str]) -> Iterator[str]:
    """Yield a line for each svmlight line."""
    for row in rows:
        label, _, entries = row.strip().partition(" ")
        yield f"{1 if float(label) > 0 else -1} | {entries}\n"


def _lines_of_clicks(rows: Iterator[str]) -> Iterator[str]:
    """Yield a line for each line of clicks after the header: values by name, log(1 + number) / 8; none if missing."""
    _, *names = next(rows).rstrip("\n").split(",")
    of_columns = [(name, name.startswith(script.NUMBERS)) for name in names]
    for row in rows:
        label, *cells = row.rstrip("\n").split(",")
        entries = (
            f"{name}:{math.log1p(float(cell)) / 8:.6g}" if is_number else f"{name}={cell}"
            for (name, is_number), cell in zip(of_columns, cells, strict=True)
            if cell
        )
        yield f"{1 if label == '1' else -1} | {' '.join(entries)}\n"


def vowpal_wabbit_commands(has_cache: bool, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the commands that train and predict; with `has_cache` several passes over a cache file are made.

    Writes the rows in its text next to the files if they are missing; `setting` has `passes`.
    """
    model = str(paths.folder / "model.vw")
    passes = ["--passes", str(setting["passes"]), "--cache_file", str(paths.folder / "rows.cache")] if has_cache else []
    passes += ["--holdout_off"] if has_cache else []
    train = [paths.python, *PROGRAM, *LOGISTIC, *passes, "-d", str(text_of(paths.train)), "-f", model]
    test = [
        paths.python,
        *PROGRAM,
        "--quiet",
        "-t",
        "-i",
        model,
        "-d",
        str(text_of(paths.held_out)),
        "--link",
        "logistic",
    ]
    return [("train", train), ("apply", [*test, "-p", str(paths.predictions)])]


for _name, _has_cache, _settings in (("Vowpal Wabbit", False, PASSES[:1]), ("Vowpal Wabbit, cache", True, PASSES[1:])):
    register(
        Candidate(
            _name,
            "competitor",
            partial(vowpal_wabbit_commands, _has_cache),
            _settings,
            package="vowpalwabbit",
            install="pip install 'sparse-workbench[rivals]'",
        )
    )


# The files of a case: text of a given size, drawn from a seed, and a fifth as much that is held out.


FORMATS = ("svmlight", "clicks")
MEGABYTES = (1, 10, 100, 1000)
HELD_OUT = 0.2
FEATURES, ENTRIES = 20_000, 40
NUMBERS, VALUES = 13, tuple(int(4 * 1.6**place) for place in range(26))
"""Columns of numbers, and how many values each column of categories has."""
ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Case:
    """Text in a format, of so many megabytes to train on."""

    format: str
    megabytes: int

    @property
    def name(self) -> str:
        """Name in records and pages, such as "svmlight, 10 MB"."""
        return f"{self.format}, {self.megabytes} MB"

    def columns(self) -> Record:
        """Return the columns of format and size."""
        return {"format": self.format, "megabytes": self.megabytes}


def write_files(case: Case, folder: Path) -> tuple[Path, Path]:
    """Write the training file and the held-out file (a fifth as large) if they are missing; return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "svm" if case.format == "svmlight" else "csv"
    paths = [folder / f"{case.format}-{case.megabytes}-{part}.{suffix}" for part in ("train", "held-out")]
    for seed, (path, share) in enumerate(zip(paths, (1.0, HELD_OUT), strict=True)):
        if not path.exists():
            _write(case, path, int(share * case.megabytes * 1e6), seed)
    return paths[0], paths[1]


def _write(case: Case, path: Path, size: int, seed: int) -> None:
    """Write lines of the case until the file has `size` characters; it is renamed into place when complete."""
    lines = svmlight_lines(seed) if case.format == "svmlight" else click_lines(seed)
    written = 0
    with atomic_files.replacing(path) as new, new.open("w", encoding="utf-8") as file:
        while written < size:
            written += file.write(next(lines))


def _labels(scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return labels 0 and 1, int64 [rows], drawn with the logistic probabilities of the scores [rows]."""
    return (scores + random.logistic(size=len(scores)) > 0).astype(int)


def svmlight_lines(seed: int) -> Iterator[str]:
    """Yield svmlight lines without end; columns follow a power law, weights are the same for every seed."""
    weights = np.random.default_rng(0).normal(scale=0.4, size=FEATURES)
    random = np.random.default_rng([1, seed])
    while True:
        columns = np.sort((FEATURES * random.random((ROWS_AT_ONCE, ENTRIES)) ** 6).astype(int), axis=1)
        labels = _labels(weights[columns].sum(axis=1), random)
        for label, row in zip(labels.tolist(), columns.tolist(), strict=True):
            yield f"{label} {' '.join(f'{column + 1}:1' for column in dict.fromkeys(row))}\n"


def click_lines(seed: int) -> Iterator[str]:
    """Yield a CSV header, then lines without end: label, 13 counts, 26 categories, some counts missing."""
    fixed, random = np.random.default_rng(0), np.random.default_rng([2, seed])
    weights = [fixed.normal(scale=0.4, size=count) for count in VALUES]
    yield ",".join(
        ["label", *(f"I{place + 1}" for place in range(NUMBERS)), *(f"C{n + 1}" for n in range(len(VALUES)))]
    )
    yield "\n"
    while True:
        codes = [(count * random.random(ROWS_AT_ONCE) ** 3).astype(int) for count in VALUES]
        labels = _labels(sum(part[column] for part, column in zip(weights, codes, strict=True)), random)
        counts = np.exp(random.normal(2, 1.5, (NUMBERS, ROWS_AT_ONCE))).astype(int).tolist()
        texts = [[str(count) if count % 9 else "" for count in column] for column in counts]
        texts += [[f"v{code * 2654435761 % 2**32:08x}" for code in column.tolist()] for column in codes]
        for label, *row in zip(labels.tolist(), *texts, strict=True):
            yield f"{label},{','.join(row)}\n"


def labels_in(path: Path) -> np.ndarray:
    """Return the labels of a generated file, int64 [rows]: 1, and 0 for what is not positive."""
    separator, skipped = (",", 1) if path.suffix == ".csv" else (" ", 0)
    with path.open(encoding="utf-8") as file:
        found = (float(line.partition(separator)[0]) > 0 for line in itertools.islice(file, skipped, None))
        return np.fromiter(found, np.int64)


SECONDS_RUN = 900.0
"""Seconds of a process, at most."""


def run_once(
    format: str,
    candidate: Candidate,
    setting: Mapping[str, Any],
    files: tuple[Path, Path],
    labels: np.ndarray,
    caches: str,
    python: str = sys.executable,
    bytes_limit: int = 0,
) -> Record:
    """Run a candidate once and return the columns: seconds by stage, peak memory (bytes) and held-out loss.

    `format` is that of `files`, which are those to train on and held out; `caches` is the folder for compiled code and
    parsed data, `labels` those held out, `python` that of competitors. A failed process gives `status` and `reason`
    only. The processes run in a temporary folder. `bytes_limit` is the memory for data that each process is given, 0
    for no limit.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{caches}/code", VARIABLE: f"{caches}/data"}
    with tempfile.TemporaryDirectory(prefix="bench-end-") as folder:
        paths = Paths(format, *files, Path(folder), python)
        stages: dict[str, float] = {}
        peaks: dict[str, int] = {}
        commands = candidate.commands(paths, setting)
        for stage, command in commands:
            status, reason, stages[stage], peaks[stage] = run_process(command, environment, bytes_limit)
            if status != "ok":
                return {"status": status, "reason": reason}
        seconds = sum(stages.values())
        if paths.stages.exists():
            stages = json.loads(paths.stages.read_text(encoding="utf-8"))
            stages["start"] = seconds - sum(stages.values())
        with paths.predictions.open(encoding="utf-8") as file:
            rows = collections.deque((line.rpartition(",")[2] for line in file), len(labels))  # no header
        chances = np.fromiter(map(float, rows), np.float64, len(labels))
    return {
        "status": "ok",
        "seconds": seconds,
        "stages": stages,
        "bytes_peak": max(peaks.values()),
        "bytes_stages": peaks,
        "loss": log_loss(labels, chances),
        "bytes_file": files[0].stat().st_size,
    }


LAUNCH = """
import json, os, resource, sys, time
if limit := int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
start = time.perf_counter()
try:
    process = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ)
    _, status, usage = os.wait4(process, 0)
except OSError as error:
    sys.exit(str(error))
with open(sys.argv[1], "w") as report:
    json.dump([time.perf_counter() - start, usage.ru_maxrss], report)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
"""
"""Program that starts a process, and writes its seconds and its peak memory as the system counts it into a file. It is
small: a new process begins with the peak of the one that starts it, which here has read and generated whole files."""


def run_process(
    command: Sequence[str], environment: dict[str, str], bytes_limit: int = 0
) -> tuple[str, str, float, int]:
    """Run a process to its end; return (status, reason, its seconds, peak resident memory in bytes).

    `status` is "ok", "failed" (reason: the last line it printed) or "timeout" after 900 s, when it is killed; the
    numbers are 0 then. What it prints goes to a temporary file. The system refuses it more memory for data than
    `bytes_limit`, if that is not 0.
    """
    with tempfile.TemporaryDirectory(prefix="bench-end-") as folder, tempfile.TemporaryFile() as said:
        report = Path(folder, "report.json")
        launch = [sys.executable, "-I", "-S", "-c", LAUNCH, str(report), str(bytes_limit), *command]
        process = subprocess.Popen(
            launch, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            code = process.wait(SECONDS_RUN)
        except subprocess.TimeoutExpired:
            return "timeout", f"Took longer than {SECONDS_RUN:g} s.", 0.0, 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            return "failed", (lines[-1] if lines else f"Ended with {code}."), 0.0, 0
        seconds, peak = json.loads(report.read_text(encoding="utf-8"))
    return "ok", "", seconds, peak * (1 if os.uname().sysname == "Darwin" else 1024)


def log_loss(labels: np.ndarray, chances: np.ndarray) -> float:
    """Return the mean log loss of labels 0 and 1 [rows]; probabilities of 1 are clipped to [1e-6, 1 - 1e-6]."""
    kept = np.clip(chances, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(labels == 1, np.log(kept), np.log(1 - kept))))


def drop_from_memory(path: Path) -> None:
    """Flush a file to disk and ask the system to drop it from its page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
