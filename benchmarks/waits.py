"""`benchmarks waits`: what a user waits for apart from training.

How to add a part: an entry of `PARTS`, a function that yields the records of the candidates of each of its cases. These
are timed in turn in every round; what a call returns is compared with what the competitor returns.
"""

import operator
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.contest import Record, mean_seconds, set_threads
from benchmarks.end import Case, log_loss, write_files
from benchmarks.shapes import BenchError
from kernels.registry import format_count
from workbench.data.content import VARIABLE
from workbench.measure import race
from workbench.measure.machine import OtherPrograms

SECONDS_PART = 900.0
"""Limit of a part."""


class Request(NamedTuple):
    """How a part is measured: `folder` for the files it reads, whether the selection is quick, the seed."""

    folder: Path
    is_quick: bool
    seed: int


Calls = Mapping[str, Callable[[], Any]]
"""The call of each candidate by name; those named "project" are the project's, all others competitors."""


def side_of(candidate: str) -> str:
    """Return the side of a candidate: "project" for that name, else "competitor"."""
    return "project" if candidate == "project" else "competitor"


def record_of(case: str, candidate: str, samples: list[float], **more: Any) -> Record:
    """Return the columns of a candidate from its seconds, one a round."""
    known = {"case": case, "candidate": candidate, "side": side_of(candidate), "status": "ok"}
    return known | race.times_of(samples) | more


def rounds_of(case: str, calls: Calls, rounds: int, same: Callable[[Any, Any], str] | None = None) -> Iterator[Record]:
    """Yield the records of the candidates of a case after a first call and `rounds` rounds of one call each.

    `same(own, other)` returns why the results of the project and of a competitor differ, "" if they agree; the project
    is "wrong" then.
    """
    results = {name: call() for name, call in calls.items()}  # what is called first compiles and fills caches
    others = [value for name, value in results.items() if name != "project"]
    differences = [same(results["project"], value) for value in others] if same else []
    error = next(filter(None, differences), "")
    del results, others
    able = {name: race.ReadyCandidate((name,), partial(mean_seconds, call, 1), 1.0) for name, call in calls.items()}
    race.time_rounds(able, race.Policy(rounds=rounds, rounds_least=rounds), time.perf_counter)
    for name, one in able.items():
        wrong = {"status": "wrong", "reason": error} if error and name == "project" else {}
        yield record_of(case, name, one.samples) | wrong


# Reading: files of text to a matrix, on one core, without the copy that the cache keeps.


@contextmanager
def one_core() -> Iterator[None]:
    """Restrict this process to the last of its cores within the block, and restore it after.

    No effect on systems that cannot set the cores of a process.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def reading(request: Request) -> Iterator[Record]:
    """Yield the project's and a library's reader for each text format, timed on one core; writes missing files."""
    megabytes, rounds = (2, 3) if request.is_quick else (20, 5)
    with one_core():
        for name, (write, other, load, load_other) in READERS.items():
            path = write(request.folder, megabytes)
            calls = {"project": partial(load, path), other: partial(load_other, path)}
            yield from rounds_of(f"{name}, {megabytes} MB", calls, rounds, _same_data)


def _same_data(own: Any, other: Any) -> str:
    """Return why two read results differ in shape, stored entries or sum of values; "" if they agree.

    Of a table that a library keeps in columns only the number of rows is compared.
    """
    x = own.x
    if not sparse.issparse(other):
        return "" if x.shape[0] == other.num_rows else f"{x.shape[0]} rows, {other.num_rows} read by the library."
    if x.shape != other.shape or x.nnz != other.nnz:
        return f"shape {x.shape} and {x.nnz} entries; the library read {other.shape} and {other.nnz}."
    total, total_other = float(x.data.sum(dtype=np.float64)), float(other.data.sum(dtype=np.float64))
    return "" if abs(total - total_other) <= 1e-6 * abs(total_other) else f"sum {total}, of the library {total_other}."


def _written_text(format: str, folder: Path, megabytes: int) -> Path:
    """Write rows in `format` ("svmlight" or "clicks") of about `megabytes` MB if missing; return the path."""
    return write_files(Case(format, megabytes), folder)[0]


def _matrix_market(folder: Path, megabytes: int) -> Path:
    """Write a random matrix of about `megabytes` MB as Matrix Market text if it is missing; return its path."""
    from scipy.io import mmwrite

    path = folder / f"matrix-{megabytes}.mtx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = megabytes * 1300  # 30 entries of 25 bytes a row
        matrix = sparse.random_array((rows, 20_000), density=30 / 20_000, rng=np.random.default_rng(1), format="coo")
        mmwrite(path, matrix, precision=8)
    return path


def _numbers(folder: Path, megabytes: int) -> Path:
    """Write a table of a label and 20 numbers, half of them zero, as CSV if it is missing; return its path."""
    path = folder / f"numbers-{megabytes}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows, generator = megabytes * 8500, np.random.default_rng(2)
        values = generator.normal(size=(rows, 20)).round(4) * (generator.random((rows, 20)) < 0.5)
        labels = generator.integers(0, 2, rows)
        with path.open("w", encoding="utf-8") as file:
            file.write(",".join(["label", *(f"x{column}" for column in range(20))]) + "\n")
            for label, row in zip(labels.tolist(), values.tolist(), strict=True):
                file.write(f"{label},{','.join(map('{:g}'.format, row))}\n")
    return path


def _load(path: Path, **settings: Any) -> Any:
    """Return the data set of a file as the project reads it, without its cache.

    `settings` override the guessed ones.
    """
    from workbench import data

    reader, guessed, _ = data.guess(path)
    return data.load(reader, path=str(path), cache=False, **guessed | settings)


def _load_svmlight(path: Path) -> Any:
    """Return X csr float32 of an svmlight file, read by scikit-learn."""
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), dtype=np.float32)[0]


def _load_matrix_market(path: Path) -> Any:
    """Return the sparse array of a Matrix Market file, read by SciPy."""
    from scipy.io import mmread

    return mmread(path, spmatrix=False)


def _load_table(path: Path) -> Any:
    """Return the pyarrow table of a CSV file with a header, read on one thread."""
    from pyarrow import csv

    return csv.read_csv(path, csv.ReadOptions(use_threads=False))


READERS: dict[str, tuple[Callable[..., Path], str, Callable[..., Any], Callable[..., Any]]] = {
    "svmlight": (partial(_written_text, "svmlight"), "scikit-learn", _load, _load_svmlight),
    "Matrix Market": (_matrix_market, "SciPy", partial(_load, kind="none"), _load_matrix_market),
    "CSV of numbers": (_numbers, "pyarrow", _load, _load_table),
    "CSV of clicks": (partial(_written_text, "clicks"), "pyarrow", _load, _load_table),
}
"""How a file is written, whose reader competes, and the two calls, by the form of the text."""


# Starting: whole processes that do next to nothing, next to an interpreter that does nothing.


def _process(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run Python with these arguments in a folder and return what it prints; BenchError if its status is not 0."""
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BenchError(f"python {' '.join(arguments)} ended with status {ended.returncode}: {ended.stderr[-500:]}")
    return ended.stdout


STARTS = {
    "import workbench": ("-c", "import workbench"),
    "--help": ("-m", "workbench", "--help"),
    "data list": ("-m", "workbench", "data", "list"),
    "status": ("-m", "workbench", "status"),
}
"""Arguments of Python by what is started."""
INTERPRETER = "python -c pass"


def starting(request: Request) -> Iterator[Record]:
    """Yield each command of the project and a bare interpreter, timed as whole processes with warm caches."""
    with tempfile.TemporaryDirectory(prefix="bench-waits-") as name:
        folder = Path(name)
        known = os.environ | {"NUMBA_CACHE_DIR": f"{name}/code", VARIABLE: f"{name}/data"}
        for case, arguments in STARTS.items():
            calls = {
                "project": partial(_process, arguments, folder, known),
                INTERPRETER: partial(_process, ("-c", "pass"), folder, known),
            }
            yield from rounds_of(case, calls, 3 if request.is_quick else 9)
        yield from _first_step(request, folder, known)


def _first_step(request: Request, folder: Path, known: Mapping[str, str]) -> Iterator[Record]:
    """Yield the time of `workbench train` on a cached file, without the seconds of its epochs, which it reports."""
    megabytes = 2 if request.is_quick else 100
    path = _written_text("svmlight", request.folder, megabytes)
    arguments = ("-m", "workbench", "train", str(path.resolve()), "--epochs", "1", "--optimizer", "adagrad")
    samples = []
    for number in range(4):
        start = time.perf_counter()
        printed = _process(arguments, folder, known)
        seconds = time.perf_counter() - start
        (epoch,) = re.findall(r"([0-9.e-]+) s an epoch", printed)
        if number:  # the first one compiles, parses and fills the caches
            samples.append(seconds - float(epoch))
    yield record_of(f"train, {megabytes} MB, cached", "project", samples, note="less the seconds of its epochs")


# Compiling: the first epoch of a process whose cache of compiled code is empty, made ready included.


DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
COMPILED = (
    ("csr, logistic, AdaGrad", {"optimizer": "adagrad"}),
    ("csr, logistic, SGD", {"optimizer": "sgd"}),
    ("csr, logistic, Adam", {"optimizer": "adam"}),
    ("csr, logistic, FTRL", {"optimizer": "ftrl"}),
    ("csr, softmax, AdaGrad", {"optimizer": "adagrad", "model": "softmax"}),
    ("csr, linear, SGD", {"optimizer": "sgd", "model": "linear"}),
    ("dense, logistic, AdaGrad", {"optimizer": "adagrad", **DENSE}),
    (
        "csr, logistic, dual ascent",
        {"optimizer": "sgd", "execution": "dual", "update": "exact", "options": {"decay": 1e-4}},
    ),
)
"""Trainings by name, and what they set otherwise than logistic regression on csr rows."""


def compiling(request: Request) -> Iterator[Record]:
    """Yield the time (s) of a first epoch with an empty code cache, a new process per sample; mostly compilation."""
    for case, settings in COMPILED[:2] if request.is_quick else COMPILED:
        samples = []
        for _ in range(1 if request.is_quick else 3):
            with tempfile.TemporaryDirectory(prefix="bench-waits-") as name:
                code = f"from benchmarks.waits import first_epoch; print(first_epoch({settings!r}))"
                samples.append(float(_process(("-c", code), Path(name), os.environ | {"NUMBA_CACHE_DIR": name})))
        yield record_of(case, "project", samples)


def first_epoch(settings: Mapping[str, Any]) -> float:
    """Return the seconds until a training on 2,000 synthetic rows is ready and its first epoch has ended.

    `settings` are fields of `workbench.training.Setup` by name; the defaults are logistic regression on csr rows.
    """
    from workbench import training

    x, y = synthetic(2000, 5000, 20, seed=0)
    known: dict[str, Any] = {
        "model": "logistic",
        "format": "csr",
        "execution": "epoch",
        "batch_rows": 32,
        "seed": 0,
    } | dict(settings)
    targets = y if known["model"] == "softmax" else y[:, None].astype(np.float32)
    rows: Any = x.toarray() if known["format"] == "dense" else x
    start = time.perf_counter()
    run: Any = training.make_run(training.Setup(**known), rows, targets, 2 if known["model"] == "softmax" else 1)
    for _ in run.epoch(0):
        pass
    return time.perf_counter() - start


def synthetic(rows: int, features: int, entries: int, seed: int, slope: float = 2.0) -> tuple[Any, np.ndarray]:
    """Return x csr float32 [rows, features] and labels 0 and 1 int64 [rows] of a logistic model.

    A row has about `entries` columns, chosen by a power law of that `slope` (1: uniform), with values of 1; weights are
    normal, and scores have a standard deviation of about 1.5.
    """
    generator = np.random.default_rng([7, seed])
    columns = (features * generator.random((rows, entries)) ** slope).astype(np.int32)
    indptr = np.arange(0, rows * entries + 1, entries, dtype=np.int32)
    x = sparse.csr_array((np.ones(rows * entries, np.float32), columns.ravel(), indptr), shape=(rows, features))
    x.sum_duplicates()
    x.data[:] = 1
    weights = generator.normal(scale=1.5 / entries**0.5, size=features)
    scores = x @ weights
    labels = (scores - scores.mean() + generator.logistic(size=rows) > 0).astype(np.int64)
    return x, labels


# Predicting: probabilities of all rows, next to SciPy's product of the same matrix and weights.


PREDICTED = ((7_200, 12_741, 39), (60_000, 20_000, 30), (60_000, 1_000_000, 30), (500, 2_000, 20))
"""Rows, columns, and entries of a row."""


def predicting(request: Request) -> Iterator[Record]:
    """Yield `decision_function` and `predict_proba` of the project, with SciPy's `x @ w` as the competitor."""
    from workbench.bridges.sklearn import SparseClassifier

    for rows, features, entries in PREDICTED[-1:] if request.is_quick else PREDICTED:
        x, y = synthetic(rows, features, entries, request.seed)
        model = SparseClassifier(max_iter=1, random_state=request.seed).fit(x, y)
        w, b = model.coef_.T.astype(np.float32), model.intercept_
        for name in ("decision_function", "predict_proba"):
            calls: Calls = {
                "project": partial(getattr(model, name), x),
                "SciPy, x @ w": partial(operator.matmul, x, w),
            }
            same = partial(_same_scores, b) if name == "decision_function" else None
            case = f"{name}, {rows:,} rows of {features:,} columns, {entries} entries"
            yield from rounds_of(case, calls, 5 if request.is_quick else 25, same)


def _same_scores(intercept: np.ndarray, own: np.ndarray, other: np.ndarray) -> str:
    """Return why scores [rows] differ from products [rows, 1] plus an intercept [1]; "" if they agree."""
    error = float(np.abs(own - (other[:, 0] + intercept)).max())
    return "" if error <= 1e-4 * max(1.0, float(np.abs(own).max())) else f"scores differ by {error:.3g}."


# Few rows: what a training takes whose arithmetic takes next to nothing.


def few_rows(request: Request) -> Iterator[Record]:
    """Yield `fit` of 100 rows, one epoch and with defaults, with scikit-learn's SGDClassifier as the competitor."""
    from sklearn.linear_model import SGDClassifier

    from workbench.bridges.sklearn import SparseClassifier

    x, y = synthetic(100, 123, 14, request.seed)
    for name, own, other in (("one epoch", {"max_iter": 1}, {"max_iter": 1, "tol": None}), ("nothing set", {}, {})):
        calls: Calls = {
            "project": partial(SparseClassifier(random_state=0, **own).fit, x, y),
            "SGDClassifier": partial(SGDClassifier(loss="log_loss", random_state=0, **other).fit, x, y),
        }
        yield from rounds_of(f"fit of 100 rows, {name}", calls, 20 if request.is_quick else 200)


# Searching: eight settings trained at once, next to one training with the setting that was chosen.


SEARCHED = ((6_000, 5_000, 20), (20_000, 20_000, 30), (60_000, 5_000, 20))
"""Rows, columns, and entries of a row; the first is the quick one."""


def searching(request: Request) -> Iterator[Record]:
    """Yield a search over 8 settings for 10 epochs, with one dual-ascent training of 10 epochs as the competitor."""
    from workbench.bridges.sklearn import SparseClassifier

    for rows, features, entries in SEARCHED[:1] if request.is_quick else SEARCHED[1:]:
        x, y = synthetic(rows, features, entries, request.seed)
        chosen = SparseClassifier(search=8, max_iter=10, random_state=0)
        chosen.fit(x, y)
        alone = SparseClassifier(
            execution="dual", optimizer="sgd", lazy="exact", alpha=chosen.alpha_, max_iter=10, random_state=0
        )
        calls = {"project": partial(chosen.fit, x, y), "project, one setting": partial(alone.fit, x, y)}
        yield from rounds_of(f"{rows:,} rows of {features:,} columns", calls, 3 if request.is_quick else 7)


# Defaults: the held-out loss of an estimator with nothing set, next to the best of LogisticRegression.


STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of C that LogisticRegression tries."""
HELD_OUT = 0.2
SYNTHETIC_SIZES = ((3_000, 2_000, 15, 2.0), (20_000, 20_000, 30, 3.0), (8_000, 60_000, 40, 6.0), (20_000, 300, 12, 1.0))
"""Rows, columns, entries of a row, and slope of the synthetic sets."""


def defaults(request: Request) -> Iterator[Record]:
    """Yield the project with defaults and LogisticRegression: the loss of its best C, the time of C = 1.

    svmlight files of two classes in the folder `data` of the results are further data sets.
    """
    for rows, features, entries, slope in SYNTHETIC_SIZES[:1] if request.is_quick else SYNTHETIC_SIZES:
        case = f"{rows:,} rows of {features:,} columns, {entries} entries, slope {slope:g}"
        yield from _defaults_on(case, *synthetic(rows, features, entries, request.seed, slope), request)
    for path in sorted((request.folder.parent / "data").glob("*")):
        x, labels = _read_own_file(path)
        yield from _defaults_on(path.name, x, labels, request)


def _read_own_file(path: Path) -> tuple[Any, np.ndarray]:
    """Return (X csr float32, labels 0 and 1 int64) of an svmlight file; BenchError unless it has two classes."""
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(str(path), dtype=np.float32)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise BenchError(f"{path} has {format_count(len(classes), 'class')}; expected a file of two.")
    return sparse.csr_array(x), labels.astype(np.int64)


def _defaults_on(case: str, x: Any, y: np.ndarray, request: Request) -> Iterator[Record]:
    """Yield both candidates on a data set; a fifth of the rows, drawn by the seed, is held out."""
    from sklearn.linear_model import LogisticRegression

    from workbench.bridges.sklearn import SparseClassifier

    order = np.random.default_rng([3, request.seed]).permutation(len(y))
    count = int(HELD_OUT * len(y))
    test, train = order[:count], order[count:]
    models = {
        "project": SparseClassifier(random_state=request.seed),
        "LogisticRegression": LogisticRegression(C=1.0, max_iter=1000),
    }
    calls = {key: partial(model.fit, x[train], y[train]) for key, model in models.items()}
    found = list(rounds_of(case, calls, 1 if request.is_quick else 3))
    losses = [log_loss(y[test], model.predict_proba(x[test])[:, 1]) for model in models.values()]
    by_strength = {1.0: losses[1]}
    for strength in STRENGTHS:
        if strength != 1.0:
            other = LogisticRegression(C=strength, max_iter=1000).fit(x[train], y[train])
            by_strength[strength] = log_loss(y[test], other.predict_proba(x[test])[:, 1])
    best = min(by_strength, key=by_strength.__getitem__)
    yield found[0] | {"loss": losses[0]}
    yield found[1] | {"loss": by_strength[best], "note": f"loss of C = {best:g}, seconds of C = 1"}


# The suite: each part in a process of its own.


@dataclass(frozen=True)
class Part:
    """A part by name, a case of the harness."""

    name: str

    def columns(self) -> Record:
        """Return the column of the part's name."""
        return {"part": self.name}


PARTS: dict[str, Callable[[Request], Iterator[Record]]] = {
    one.__name__: one for one in (reading, starting, compiling, predicting, few_rows, searching, defaults)
}
STARTS_PROCESSES = ("starting", "compiling")
"""Parts whose processes would be counted as other programs."""


def answers(request: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the record columns of each candidate of one part, measured in this process.

    `request` has `part`, `folder`, `is_quick`, `threads` and `seed`.
    """
    set_threads(request["threads"])
    others = OtherPrograms()
    for found in PARTS[request["part"]](Request(Path(request["folder"]), request["is_quick"], request["seed"])):
        yield found | {"busy_others": None if request["part"] in STARTS_PROCESSES else others.share()}
