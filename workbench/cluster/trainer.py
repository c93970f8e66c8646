"""One trainer of a distributed training, in a separate process or thread; the transport does not matter.

It trains its share of the rows (`workbench.cluster.trainer`), reports its steps a few times a second, and continues
from the newest checkpoint if there is one. Trainer 0 saves checkpoints and finally reports the quality on held-out
rows.
"""

import contextlib
import functools
import hashlib
import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import threadpoolctl

import kernels
import workbench
from kernels import threads
from workbench import data, formats, graph, models, ops, optimizers
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.transport import GoneError, RolledBackError, TimedOutError, Transport
from workbench.data import DataError
from workbench.formats import FormatError
from workbench.formats.compressed import stack_csr
from workbench.kvstore import LazyRandomRows, Store, StoreError
from workbench.measure import machine, memory
from workbench.models import ModelError, Parameter
from workbench.module import Module, Position
from workbench.module.training import BatchEnd
from workbench.sweeps.grid import list_unread_settings, setup_of, why_dropped
from workbench.sweeps.problem import Problem, make_problem
from workbench.sweeps.spec import Configuration, SpecError
from workbench.training.constant import quality_without_x
from workbench.training.setup import LAZY, Setup, multiple_trainers_reason

# A configuration of settings as a module on a store, the same on every trainer, and the share of the rows that each
# trains on.
#
# Of n rows and W trainers, trainer t has the n // W rows from t (n // W) on, so that all have as many and every step
# has batch_rows / W rows of each; up to W - 1 rows are left out. Stored rows are streamed, those of others are never
# read.

DATA, LABEL = "data", "label"


def check(configuration: Configuration, trainers: int) -> None:
    """Raise SpecError if `trainers` trainers cannot train the configuration, or a setting has no effect."""
    alone = configuration.model_copy(update={"trainers": 1})  # on other machines there is room for more than here
    if reason := why_dropped(alone) or multiple_trainers_reason(setup_of(alone), trainers):
        raise SpecError(reason)
    if names := list_unread_settings(configuration):
        raise SpecError(f"The data set {configuration.dataset} takes no {names[0]}; leave {names[0]} out.")


def shared(problem: Problem, setup: Setup, trainer: int, trainers: int) -> data.Batches | data.StoredBatches:
    """Return the batches of trainer `trainer` (from 0): `setup.batch_rows` // trainers rows each, of its rows only.

    Raises DataError if there are fewer rows than trainers.
    """
    rows = problem.x.shape[0] // trainers
    height = setup.batch_rows // trainers
    if not rows:
        raise data.DataError(f"{problem.x.shape[0]} rows cannot be shared by {trainers} trainers; take fewer of them.")
    first = trainer * rows
    is_stored = isinstance(problem.x, data.StoredRows)
    x = problem.x.between(first, first + rows) if is_stored else problem.x[first : first + rows]
    options = {"shuffle": setup.shuffle, "seed": setup.seed + trainer, "last": setup.last}
    return data.batches_of(x, problem.y[first : first + rows], height, **options)


def joined(problem: Problem, setup: Setup, trainers: int) -> data.Feed:
    """Return batches that each concatenate one batch of every trainer, for one process that stands for all.

    `problem` is the data, of which each trainer has its share; `setup` the training.
    """
    return _Joined([shared(problem, setup, number, trainers) for number in range(trainers)])


@final
class _Joined(data.Feed):
    def __init__(self, feeds: Sequence[data.Batches | data.StoredBatches]) -> None:
        """Keep the feeds, which must have equally many batches."""
        self.feeds = feeds

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[data.Batch]:
        """Yield batches that concatenate one batch of each feed, X in CSR, from batch `first` of epoch `number` on.

        ValueError if the feeds have different numbers of batches.
        """
        for parts in zip(*(feed.epoch(number, first) for feed in self.feeds), strict=True):
            labels = np.concatenate([part.labels[LABEL] for part in parts])
            rows = np.concatenate([part.rows_index for part in parts])
            yield data.Batch({DATA: stack_csr([part.data[DATA] for part in parts])}, {LABEL: labels}, rows)

    def count(self, number: int = 0) -> int:
        """Return the number of batches in epoch `number`, the same for each feed."""
        return self.feeds[0].count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings of the first feed, and "feeds", how many there are."""
        return {**self.feeds[0].settings(), "feeds": len(self.feeds)}


def module_of(setup: Setup, problem: Problem, store: Store | None, example: data.Feed, workers: int = 1) -> Module:
    """Return the module of a training setup on a problem, bound to the batches `example`, with its optimizer.

    Its outputs are [mean loss, scores]; parameters have their first values. `store` None keeps values in the process;
    `workers` is how many parts a batch has.
    """
    model = models.get(setup.model)
    given = model.given(problem.x.shape[1], problem.width, setup.model_options, problem.facts)
    parameters = model.trained(given, setup.has_intercept)
    scores, loss = model.graph(given, setup.engine, setup.has_intercept, (DATA, LABEL))
    symbol = _declare_variables(graph.group([loss, ops.get("stop_gradient")(scores)]), setup, parameters)
    module = Module(symbol, (DATA,), (LABEL,), store=store, workers=workers, share="rows", prediction=1)
    gradients = {parameter.name: parameter.gradient_format(setup.gradient) for parameter in parameters}
    module.bind(example, dtype=setup.dtype, grad_formats=gradients)
    module.initialise(values={one.name: _start(one, setup, number) for number, one in enumerate(parameters)})
    multipliers = {parameter.name: optimizers.Multiplier(decay=0.0) for parameter in parameters if not parameter.decays}
    options: dict[str, Any] = {"lazy": LAZY[setup.update], "multipliers": multipliers or None, **setup.options}
    return module.set_optimizer(optimizers.Updater(setup.optimizer, **options))


def format_of(parameter: Parameter, setup: Setup) -> str:
    """Return "row_sparse" for a parameter of which a batch reads and changes only its features' rows, else "dense"."""
    is_by_rows = parameter.product and parameter.gradient_format(setup.gradient) == "row_sparse"
    return "row_sparse" if is_by_rows else "dense"


def _declare_variables(symbol: graph.Graph, setup: Setup, parameters: tuple[Parameter, ...]) -> graph.Graph:
    """Return a copy of the graph whose variables have the formats of X and of the parameters, and their shapes."""
    facts: dict[str, Mapping[str, Any]] = {
        parameter.name: {"format": format_of(parameter, setup), "shape": list(parameter.shape)}
        for parameter in parameters
    }
    facts[DATA] = {"format": setup.format}
    document = json.loads(symbol.to_json())
    for node in document["nodes"]:
        if node["node"] == "variable":
            node["attributes"] |= facts.get(node["name"], {})
    return graph.from_json(json.dumps(document))


def _start(parameter: Parameter, setup: Setup, number: int) -> Any:
    """Return the first value of parameter `number`: an array, RowSparse or rows generated when first used.

    Zeros if its deviation is 0, else normal values by `setup.seed`. Lazy generation needs a lazy update.
    """
    by_rows = format_of(parameter, setup) == "row_sparse"
    if not parameter.deviation:
        return formats.zeros(parameter.shape, "row_sparse" if by_rows else "dense", np.dtype(setup.dtype))
    if by_rows:
        drawn = LazyRandomRows(parameter.shape, setup.dtype, "normal", parameter.deviation, setup.seed, parameter.name)
        return drawn if setup.update == "lazy" else drawn.whole()
    generator = np.random.default_rng((setup.seed, number))
    return generator.normal(0.0, parameter.deviation, parameter.shape).astype(setup.dtype)


# The code of a training, the same on all machines: versions of what computes, and a hash of the source.

SUFFIXES = (".py", ".cu", ".cuh", ".h")


@functools.cache
def describe_code() -> str:
    """Return versions and source hash of this code as text, "numpy 2.1.0, ..., source 0123456789ab".

    Reads all source files (some milliseconds) once per process.
    """
    digest = hashlib.sha256()
    for package in (kernels, workbench):
        root = Path(package.__path__[0])
        for path in sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES):
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    versions = ", ".join(f"{name} {version}" for name, version in machine.code_versions().items())
    return f"{versions}, source {digest.hexdigest()[:12]}"


def require_same_code(wanted: str) -> None:
    """Raise StoreError unless `wanted`, a text of `describe_code`, is that of this process; "" accepts any."""
    if wanted and wanted != describe_code():
        raise StoreError(
            f"The code here is {describe_code()}; where the training was started, {wanted}. Install the same."
        )


SECONDS_BETWEEN_REPORTS = 0.2
"""Between two messages on how far a trainer is."""

Tell = Callable[[Mapping[str, Any]], None]


@final
@dataclass(frozen=True)
class Job:
    """Job of all trainers as JSON has it: the settings of a `cell`, by so many `trainers`.

    A configuration of 0 epochs has no rows held out, and is trained for one.

    `folder` is that of checkpoints, seen by all processes, one after every `steps_saved` steps and after the last;
    "" for none. `threads` of a trainer, None for all cores. An answer that takes over `seconds` is an error. `resumes`
    says that there is a checkpoint to go on from. A process may ask for `bytes_most` bytes of its own, None for any
    number (`measure.memory.limit_memory`). `code` is `code.describe_code()` where the training was asked for, "" for
    any.
    """

    cell: Mapping[str, Any]
    trainers: int
    folder: str = ""
    steps_saved: int = 500
    spread: str = "contiguous"
    threads: int | None = None
    seconds: float = 60.0
    resumes: bool = False
    bytes_most: int | None = None
    code: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """Fields as a dict for JSON; `Job(**about)` is the inverse."""
        return asdict(self)


def train(transport: Transport, number: int, job: Job, tell: Tell) -> dict[str, Any]:
    """Train as trainer `number` until all epochs are done; return a JSON-able dict on bytes, rows and the last step.

    Trainer 0 adds "qualities" on the held-out rows. `tell(message)` is called with losses of steps and saved
    checkpoints. Raises StoreError for other code or lost shards, MemoryError above `job.bytes_most`.
    """
    require_same_code(job.code)
    configuration, before = Configuration(**job.cell), memory.owned_bytes()
    memory.reset_peak()
    with memory.limit_memory(job.bytes_most), on_threads(job.threads):
        setup, problem = setup_of(configuration), make_problem(configuration)
        feed = shared(problem, setup, number, job.trainers)
        store = ShardedStore(transport, number, spread=job.spread, seconds=job.seconds)
        module = module_of(setup, problem, store, feed)
        if job.resumes:
            module.position = Position(*store.load_shards(job.folder, generation=1)["position"])
            module.version += 1
        report = _StepReport(module, store, feed, number, job, tell, before)
        module.fit(feed, epochs=configuration.epochs or 1, batch_end=report.batch_end)
        report.finish()
        answer: dict[str, Any] = {"bytes_moved": store.traffic.bytes_sent + store.traffic.bytes_received}
        peak = memory.peak_owned_bytes()
        answer |= {"bytes_peak": peak, "bytes_grown": max(peak - before, 0), "bytes_asked": memory.asked_bytes()}
        answer |= {"bytes_resident": memory.peak_bytes(), "rows": feed.total, "step": report.step}
        if not number:
            answer |= _qualities(module, setup, problem)
        return answer


@contextlib.contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Limit the kernels and BLAS of this thread to `count` threads within the context; None for all."""
    with contextlib.ExitStack() as stack:
        if count == 1:
            stack.enter_context(threads.serial())
        elif count is not None:
            threads.set_threads(count)
        if count is not None:
            stack.enter_context(threadpoolctl.threadpool_limits(limits=count))
        yield


@final
class _StepReport:
    """Collects the losses and times of steps, reports them, and saves checkpoints."""

    def __init__(
        self, module: Module, store: ShardedStore, feed: data.Feed, number: int, job: Job, tell: Tell, bytes_before: int
    ) -> None:
        """Start at the module's position; `tell(message)` gets reports of trainer `number`.

        `bytes_before` is the memory of the process before the training.
        """
        self.module, self.store, self.feed, self.bytes_before = module, store, feed, bytes_before
        self.number, self.job, self.tell = number, job, tell
        self.losses: list[float] = []
        self.seconds: list[float] = []
        self.step = self._step(module.position)
        self.last_report = self.last_step = time.perf_counter()

    def _step(self, position: Position) -> int:
        """Return the number of steps done at a position, counted over all epochs."""
        return position.epoch * self.feed.count(0) + position.batch

    def batch_end(self, event: BatchEnd) -> None:
        """Keep the loss and seconds of a step; save a checkpoint and send a message if they are due.

        Called by the module after each batch. `event` is unused.
        """
        now = time.perf_counter()
        self.step += 1
        self.losses.append(float(self.module.outputs[0]))
        self.seconds.append(now - self.last_step)
        self.last_step = now
        if self.job.folder and self.step % self.job.steps_saved == 0:
            self.save()
        if now - self.last_report > SECONDS_BETWEEN_REPORTS:
            self.flush()

    def save(self) -> None:
        """Save a checkpoint of the store (written by trainer 0, which sends {"saved": step}).

        Its time counts for no step.
        """
        epoch, batch = self.module.position
        position = [epoch, batch] if batch < self.feed.count(epoch) else [epoch + 1, 0]
        about = {"position": position, "step": self.step, "cell": self.job.cell, "trainers": self.job.trainers}
        self.store.save_shards(self.job.folder, about)
        if not self.number:
            self.tell({"saved": self.step})
        self.last_step = time.perf_counter()

    def flush(self) -> None:
        """Send losses and seconds of the steps since the last message, if there are any, and forget them."""
        if self.losses:
            first = self.step - len(self.losses) + 1
            steps = {"first": first, "losses": self.losses, "seconds": self.seconds, "steps_epoch": self.feed.count(0)}
            grown = max(memory.peak_owned_bytes() - self.bytes_before, 0)
            self.tell({"trainer": self.number, "bytes_grown": grown, **steps})
        self.losses, self.seconds, self.last_report = [], [], time.perf_counter()

    def finish(self) -> None:
        """Save a checkpoint if the last step has none, and send the remaining losses."""
        if self.job.folder and self.step % self.job.steps_saved:
            self.save()
        self.flush()


def _qualities(module: Module, setup: Setup, problem: Problem) -> dict[str, Any]:
    """Return {"qualities": {measure: value}, "without_x": that of a constant} on the held-out rows; {} without any."""
    model = models.get(setup.model)
    x, y = problem.held_out
    if x is None:
        return {}
    scores = module.predict(data.batches_of(x, None, setup.batch_rows))
    measures = {model.quality_name: model.quality, **model.measures}
    without_x = quality_without_x(model, problem.y, y, scores.shape[1])
    return {
        "qualities": {name: float(measure(scores, y)) for name, measure in measures.items()},
        "without_x": without_x,
    }


# A trainer's work as text: what is asked by name and JSON, and answered in JSON, also where it failed.


WRONG = (DataError, FormatError, ModelError, SpecError)
WORK = "workbench.cluster.trainer:train"
"""What trainers do, as "module:function"."""


def run_request(work: str, transport: Transport, trainer: int, request: str, tell: Tell) -> str:
    """Call the function `work` ("module:function") as trainer `trainer` with a `Job` from JSON; return JSON.

    {"answer": ...}, or {"error", "trace", "is_cut_off", "is_wrong"} if it raised: `is_cut_off` if another process was
    lost, `is_wrong` if the request itself cannot be trained. Never raises; the traceback goes to standard error.
    """
    try:
        module, function = work.split(":")
        done = getattr(importlib.import_module(module), function)
        return json.dumps({"answer": done(transport, trainer, Job(**json.loads(request)), tell)})
    except Exception as error:  # whatever it is, it is told to who asked, and printed into the log here
        traceback.print_exc(file=sys.stderr)
        is_cut_off = isinstance(error, TimedOutError | RolledBackError | GoneError)
        record = {
            "error": f"{type(error).__name__}: {error}",
            "trace": traceback.format_exc(),
            "is_cut_off": is_cut_off,
        }
        return json.dumps(record | {"is_wrong": isinstance(error, WRONG)})
