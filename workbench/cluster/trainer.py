"""One trainer of a training by several: a rank of an MPI job, which trains its share of the rows.

It continues from the newest checkpoint if there is one, and writes its file of each new one. Trainer 0 reports the
steps of all a few times a second, and finally the quality on held-out rows.
"""

import contextlib
import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import threadpoolctl

import kernels
import workbench
from kernels import threads
from workbench import data, formats, graph, models, ops, optimizers
from workbench.cluster import checkpoints, serving
from workbench.cluster.local_steps import Copy, local_setup, why_not_local
from workbench.cluster.store import MpiStore
from workbench.formats.compressed import stack_csr
from workbench.kvstore import VALUE, LazyRandomRows, Store, StoreError
from workbench.measure import machine, memory
from workbench.models import Parameter
from workbench.module import Module, Position
from workbench.sweeps.grid import list_unread_settings, setup_of, why_dropped
from workbench.sweeps.problem import Problem, make_problem
from workbench.sweeps.spec import Configuration, SpecError
from workbench.training import Run
from workbench.training.constant import quality_without_x
from workbench.training.setup import LAZY, Setup, multiple_trainers_reason

# A configuration of settings as a module on a store, the same on every trainer, and the share of the rows that each
# trains on.
#
# Of n rows and W trainers, trainer t has the n // W rows from t (n // W) on, so that all have as many and every step
# has batch_rows / W rows of each; up to W - 1 rows are left out. Stored rows are streamed, those of others are never
# read.

DATA, LABEL = "data", "label"


def check(configuration: Configuration, trainers: int, sync_every: int = 1) -> None:
    """Raise SpecError if `trainers` trainers cannot train the configuration, or a setting has no effect.

    With `sync_every` above 1 they train copies of the weights for so many batches (`workbench.cluster.local_steps`).
    """
    alone = configuration.model_copy(update={"trainers": 1})  # on other machines there is room for more than here
    if reason := why_dropped(alone) or multiple_trainers_reason(setup_of(alone), trainers):
        raise SpecError(reason)
    if sync_every < 1:
        raise SpecError(f"Ranks synchronise after every {sync_every} batches; expected 1 or more.")
    if sync_every > 1 and (reason := why_not_local(setup_of(alone), trainers)):
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


SECONDS_BETWEEN_REPORTS = 0.2
"""Between two messages on how far a trainer is."""

Tell = Callable[[Mapping[str, Any]], None]


@final
@dataclass(frozen=True)
class Job:
    """Job of all trainers as JSON has it: the settings of a `cell`, by so many `trainers`.

    A configuration of 0 epochs has no rows held out, and is trained for one. `folder` is that of checkpoints, seen by
    all ranks, one after every `steps_saved` steps and after the last; "" for none. `threads` of a trainer, None for all
    cores. A process may ask for `bytes_most` bytes of its own, None for any number (`measure.memory.limit_memory`).
    """

    cell: Mapping[str, Any]
    trainers: int
    folder: str = ""
    steps_saved: int = 500
    spread: str = "contiguous"
    threads: int | None = None
    bytes_most: int | None = None
    sync_every: int = 1
    """Batches between two synchronisations; above 1 each rank trains a copy of the weights meanwhile."""


def train(communicator: Any, job: Job, tell: Tell) -> dict[str, Any]:
    """Train as this rank of the communicator until all epochs are done; return a dict on bytes, rows and steps.

    All ranks call it with the same `job`. On rank 0 `tell(message)` is called with steps and saved checkpoints, and
    "qualities" on the held-out rows are added. Raises StoreError for other code on a rank or a checkpoint that does not
    fit, MemoryError above `job.bytes_most`.
    """
    configuration, before = Configuration(**job.cell), memory.owned_bytes()
    memory.reset_peak()
    with memory.limit_memory(job.bytes_most), on_threads(job.threads):
        store = MpiStore(communicator, spread=job.spread)
        if store.trainers != job.trainers:
            raise StoreError(f"The job has {store.trainers} ranks; expected {job.trainers}: mpiexec -n {job.trainers}.")
        if len(codes := set(store.exchange.gather(describe_code()))) > 1:
            raise StoreError(f"Ranks have different code: {'; '.join(sorted(codes))}. Install the same on all.")
        setup, problem = setup_of(configuration), make_problem(configuration)
        feed = shared(problem, setup, store.trainer, store.trainers)
        trained = (_ByStep if job.sync_every == 1 else _ByCopies)(store, setup, problem, feed, job)
        if job.folder and (Path(job.folder) / checkpoints.MANIFEST).exists():
            about = store.load_shards(job.folder)
            _check_same_training(job, about)
            store.step = about["step"]
            trained.restore(Position(*about["position"]))
        report = _StepReport(trained, store, feed, job, tell, before)
        report.about = serving.describe_data(problem.dataset, problem.width)
        trained.fit(configuration.epochs or 1, report.add)
        report.finish()
        peak = memory.peak_owned_bytes()
        answer: dict[str, Any] = {"bytes_moved": store.exchange.bytes_moved, "rows": feed.total, "step": store.step}
        answer |= {"bytes_peak": peak, "bytes_grown": report.grown.tolist(), "bytes_asked": memory.asked_bytes()}
        found = store.exchange.gather({"resident": memory.peak_bytes(), "asked": answer["bytes_asked"]})
        answer |= {f"bytes_{name}": [one[name] for one in found] for name in found[0]}
        return answer | _qualities(trained.predict, setup, problem)


@final
class _ByStep:
    """A training whose ranks send rows at every step."""

    def __init__(self, store: MpiStore, setup: Setup, problem: Problem, feed: data.Feed, job: Job) -> None:
        """Bind a module to the feed, with its values in the store; `job` is unused."""
        self.setup, self.feed, self.module = setup, feed, module_of(setup, problem, store, feed)

    @property
    def position(self) -> Position:
        """Epoch and batch of the next step."""
        return self.module.position

    def restore(self, position: Position) -> None:
        """Go on from a position with the values that the store has loaded."""
        self.module.position = position
        self.module.version += 1

    def fit(self, epochs: int, add: Callable[[np.ndarray], None]) -> None:
        """Train until `epochs` epochs are done; `add` is called with the loss of each step, float64 [1]."""
        module = self.module
        module.fit(self.feed, epochs=epochs, batch_end=lambda _: add(np.array([float(module.outputs[0])])))

    def store_state(self) -> None:
        """Put the state into the store, which has it."""

    def predict(self, x: Any) -> np.ndarray:
        """Return the scores of rows x, [rows, outputs]."""
        return self.module.predict(data.batches_of(x, None, self.setup.batch_rows))


PARAMETER = "parameter:"
"""Begins the names of parameters in the state of a `Run`."""


@final
class _ByCopies:
    """A training whose ranks train copies of the weights between synchronisations."""

    def __init__(self, store: MpiStore, setup: Setup, problem: Problem, feed: Any, job: Job) -> None:
        """Make the copy of this rank; the store has values once they are saved."""
        own = local_setup(setup, store.trainer, store.trainers)
        self.store, self.position = store, Position(0, 0)
        self.run = Run(own, feed.x, feed.y, problem.width, problem.facts)
        self.copy = Copy(store.exchange, self.run, job.sync_every)
        store.set_optimizer(self.run.updater)

    def restore(self, position: Position) -> None:
        """Go on from a position with the values that the store has loaded."""
        state = self.store.state_dict()
        own = {
            f"{PARAMETER}{json.loads(name[len(VALUE) :])}" if name.startswith(VALUE) else name: array
            for name, array in state.items()
        }
        self.run.load_state_dict(own | {"step": np.array([self.store.step])})
        self.copy.keep()
        self.position = position

    def fit(self, epochs: int, add: Callable[[np.ndarray], None]) -> None:
        """Train until `epochs` epochs are done; `add` is called with the losses after each synchronisation."""
        for epoch in range(self.position.epoch, epochs):
            for losses in self.copy.windows(epoch, self.position.batch):
                self.position = Position(epoch, self.position.batch + losses.size)
                self.store.step += losses.size
                add(losses)
            self.position = Position(epoch + 1, 0)

    def store_state(self) -> None:
        """Put the state into the store, each rank its part."""
        state = self.run.state_dict()
        del state["step"]
        self.store.load_state_dict(
            {
                f"{VALUE}{json.dumps(name.removeprefix(PARAMETER))}" if name.startswith(PARAMETER) else name: array
                for name, array in state.items()
            }
        )

    def predict(self, x: Any) -> np.ndarray:
        """Return the scores of rows x, [rows, outputs]."""
        return self.run.predict(x)


def _check_same_training(job: Job, about: Mapping[str, Any]) -> None:
    """Raise StoreError if a checkpoint is of another training: other settings than epochs, or another share of rows."""
    own = {**job.cell, "epochs": 0, "trainers": job.trainers, "sync_every": job.sync_every}
    saved = {**about["cell"], "epochs": 0, "trainers": about["trainers"], "sync_every": about.get("sync_every", 1)}
    if differing := [name for name in own if own[name] != saved.get(name)]:
        name = differing[0]
        raise StoreError(
            f"The checkpoint in {job.folder} was trained with {name}={saved.get(name)}; this is {name}={own[name]}. "
            "Continue with the same settings, or name another folder."
        )


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
    """Reports the losses and times of steps of all ranks, and saves checkpoints."""

    def __init__(
        self,
        trained: _ByStep | _ByCopies,
        store: MpiStore,
        feed: data.Feed,
        job: Job,
        tell: Tell,
        bytes_before: int,
    ) -> None:
        """Start at the training's position; `tell(message)` gets the reports of rank 0.

        `bytes_before` is the memory of the process before the training.
        """
        self.trained, self.store, self.feed, self.bytes_before = trained, store, feed, bytes_before
        self.job, self.tell = job, tell
        self.steps: list[dict[str, Any]] = []
        self.grown = np.zeros(store.trainers)
        """Bytes that the training has added to the memory of each rank."""
        self.own_grown = 0.0
        self.saved = store.step
        """The step of the newest checkpoint."""
        self.about: dict[str, Any] = {}
        """What the data is, for who applies the model of a checkpoint."""
        self.last_report = self.last_step = time.perf_counter()

    def add(self, losses: np.ndarray) -> None:
        """Share the losses [steps] of the last steps and their seconds with all ranks; save and report if it is due.

        Called after each step, or synchronisation, on all ranks.
        """
        now, count = time.perf_counter(), losses.size
        own = np.array([[*losses, (now - self.last_step) / count, self.own_grown]])
        of_all = self.store.exchange.all_rows("report", own, [1] * self.store.trainers)
        self.grown = np.maximum(self.grown, of_all[:, -1])
        seconds, first = float(of_all[:, -2].max()), self.store.step - count + 1
        for number, loss in enumerate(of_all[:, :-2].mean(axis=0).tolist(), first):
            step = {"step": number, "loss": loss, "seconds": seconds, "steps_epoch": self.feed.count(0)}
            self.steps.append(step)
        self.last_step = now
        if self.job.folder and self.store.step // self.job.steps_saved > (first - 1) // self.job.steps_saved:
            self.save()
        if now - self.last_report > SECONDS_BETWEEN_REPORTS or first == 1:
            self.flush()

    def save(self) -> None:
        """Save a checkpoint of the store; its time counts for no step."""
        epoch, batch = self.trained.position
        position = [epoch, batch] if batch < self.feed.count(epoch) else [epoch + 1, 0]
        about = {"position": position, "step": self.store.step, "cell": self.job.cell, "trainers": self.store.trainers}
        self.trained.store_state()
        self.store.save_shards(self.job.folder, about | {"sync_every": self.job.sync_every, "data": self.about})
        self.saved, self.last_step = self.store.step, time.perf_counter()

    def flush(self) -> None:
        """Send the steps since the last message, and forget them."""
        self.own_grown = max(memory.peak_owned_bytes() - self.bytes_before, 0)
        if not self.store.trainer:
            for step in self.steps:
                self.tell({**step, "bytes_grown": float(self.grown.sum())})
        self.steps, self.last_report = [], time.perf_counter()

    def finish(self) -> None:
        """Save a checkpoint if the last step has none, and send the remaining steps."""
        if self.job.folder and self.store.step != self.saved:
            self.save()
        self.flush()


def _qualities(predict: Callable[[Any], np.ndarray], setup: Setup, problem: Problem) -> dict[str, Any]:
    """Return {"qualities": {measure: value}, "without_x": that of a constant} on the held-out rows; {} without any."""
    model = models.get(setup.model)
    x, y = problem.held_out
    if x is None:
        return {}
    scores = predict(x)
    measures = {model.quality_name: model.quality, **model.measures}
    without_x = quality_without_x(model, problem.y, y, scores.shape[1])
    return {
        "qualities": {name: float(measure(scores, y)) for name, measure in measures.items()},
        "without_x": without_x,
    }
