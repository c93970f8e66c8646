"""Base of every training: batches, steps with a time for each phase, predictions and quality; where it runs is open.

>>> import numpy as np
>>> x = np.float32([[0, 2], [0, 0]])
>>> convert_storage("csr", x).nnz, convert_storage("uint8", x).nbytes
(1, 4)
"""

import dataclasses
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy.sparse

from kernels import aligned
from kernels.plan import BatchPlan
from workbench import data, formats, models
from workbench.data.batches import feed
from workbench.formats import arrays
from workbench.metrics import constant_quality
from workbench.models import Given, Model, Parameter
from workbench.models.two_fields import pairs_of
from workbench.training.setup import Setup, SetupError, require_possible

if TYPE_CHECKING:
    from workbench.models.patterns import Pattern

ELEMENTS = 1 << 21
"""Scores that are held at once: a few MB, which stay in the cache from one pass over them to the next."""

BLOCK = 64
"""Items of which first only the largest score is looked at."""

NOT_FEWER = 4
"""Items are left out where so many times as many remain out as in."""

Scorer = Callable[[np.ndarray], np.ndarray]
"""`scores_of(users)` of all items [n, items]."""


def by_popularity(x: Any, fields: Sequence[int]) -> Scorer:
    """Return a scorer that ignores the user: the score of an item is the number of rows of X that have it.

    `fields` is [users, items]; X is one-hot in both.
    """
    counts = np.bincount(pairs_of(x, fields)[1], minlength=fields[1]).astype(np.float32)
    return lambda users: np.tile(counts, (len(users), 1))


def ranking_measures(
    scores_of: Scorer, measures: Mapping[str, Callable], fields: Sequence[int], trained: Any, held_out: Any
) -> dict[str, float]:
    """Return the mean of each measure over users with held-out items.

    One-hot `trained` and `held_out` have a row per pair. `measures` are called with scores and bool targets, both
    [users, items]. Items that a user has in `trained` are scored -inf and not relevant. If all measures are
    `functools.partial` with `k`, only the top items are passed. NaN without users. O(users * items).
    """
    sums, users = dict.fromkeys(measures, 0.0), 0
    first = max((getattr(measure, "keywords", {}).get("k", math.inf) for measure in measures.values()), default=0)
    for scores, targets in _parts(scores_of, fields, trained, held_out):
        scores, targets = top_items(scores, targets, first)
        for name, measure in measures.items():
            sums[name] += len(scores) * measure(scores, targets)
        users += len(scores)
    return {name: total / users if users else float("nan") for name, total in sums.items()}


def top_items(scores: np.ndarray, targets: np.ndarray, first: float) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and targets [n, fewer items] on which measures of the `first` top items are the same as on all.

    Kept are relevant items and those that may be among the top: at least the `first`-th largest of the maxima of blocks
    of `BLOCK`. Shorter rows are padded with scores of -inf. The inputs are returned if a score is NaN or little would
    be dropped. O(n * items).
    """
    rows, items = scores.shape
    blocks = items // BLOCK
    if first > blocks or not rows:
        return scores, targets
    largest = scores[:, : blocks * BLOCK].reshape(rows, blocks, BLOCK).max(axis=2)
    floor = np.partition(largest, blocks - int(first), axis=1)[:, blocks - int(first), None]
    kept = (scores >= floor) | targets
    counts = np.count_nonzero(kept, axis=1)
    most = counts.max()
    has_nan = np.isnan(largest).any() or np.isnan(scores[:, blocks * BLOCK :]).any()
    if NOT_FEWER * most > items or has_nan:
        return scores, targets
    of_row, item = np.nonzero(kept)
    place = np.arange(of_row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    few = np.full((rows, most), -np.inf, scores.dtype), np.zeros((rows, most), bool)
    for short, long in zip(few, (scores, targets), strict=True):
        short[of_row, place] = long[of_row, item]
    return few


def _parts(scores_of: Scorer, fields: Sequence[int], *rows: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (scores, bool relevance), both [users, items], for blocks of users with held-out items.

    `rows` are X of the training and X held out; items of the training get the score -inf.
    """
    seen, held = (_matrix(x, fields) for x in rows)
    held = held - held.multiply(seen)
    held.eliminate_zeros()
    users = np.flatnonzero(np.diff(held.indptr))
    for part in np.array_split(users, -(-users.size * fields[1] // ELEMENTS)) if users.size else []:
        scores = np.array(scores_of(part))
        scores[seen[part].nonzero()] = -np.inf
        relevant = np.zeros(scores.shape, bool)
        relevant[held[part].nonzero()] = True
        yield scores, relevant


def _matrix(x: Any, fields: Sequence[int]) -> scipy.sparse.csr_array:
    """Return a CSR array [users, items] of ones at the pairs in one-hot x."""
    pairs = pairs_of(x, fields)
    matrix = scipy.sparse.csr_array((np.ones(len(pairs[0]), np.float32), pairs), shape=tuple(fields))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


# Events of steps: the loss, and where the time went.

PHASES = ("slice", "convert", "transfer", "plan", "wait", "forward", "loss", "gradient", "update", "graph", "batches")
"""The phases of a step, in order. In the place of forward, loss, gradient and update a step that is launched as one
graph has `graph`, and one of an epoch that is done in few calls `batches`."""


_NOTHING = dict.fromkeys(PHASES, 0.0)


@dataclass(frozen=True)
class StepEvent:
    """One step that was done: its loss before the update, and the seconds of each phase.

    Of an epoch that is done in few calls it is all steps of a call: `step` is the last of them, `rows` and `seconds`
    are those of all, `loss` is the mean over the rows, and `losses` float64 [steps] tell each step's own.

    `seconds_prepare` is what slice, convert and plan of its batch took, also when that was during an earlier step; it
    is 0 for a batch that was kept.
    """

    step: int
    epoch: int
    rows: int
    loss: float
    seconds: dict[str, float]
    seconds_prepare: float = 0.0
    losses: np.ndarray | None = None
    losses_epochs: np.ndarray | None = None
    """Mean loss over the rows of each epoch, float64 [epochs], if it stands for several; `epoch` is the last one."""

    @property
    def steps(self) -> int:
        """Number of steps that the event stands for."""
        return 1 if self.losses is None else len(self.losses)

    @property
    def epochs(self) -> int:
        """Number of epochs that the event belongs to: 1 unless it stands for several."""
        return 1 if self.losses_epochs is None else len(self.losses_epochs)

    @property
    def seconds_step(self) -> float:
        """Seconds of the event: the sum of its phases."""
        return sum(self.seconds.values())


PHASE_OF = {"plan": "gradient", "forward": "forward", "loss": "loss", "backward": "gradient", "store": "gradient"}
"""The phase that each part of the executor's program is filed under; a plan is only taken there, being prepared."""


class PhaseTimer:
    """Times the phases of a step; `known` holds phases timed elsewhere."""

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        """Start timing now, with all phases 0 except those in `known`."""
        self.seconds = {**_NOTHING, **known} if known else {**_NOTHING}
        self.last = perf_counter()

    def split(self, phase: str) -> None:
        """Add the time since the last split to `phase`; KeyError for an unknown one."""
        now = perf_counter()
        self.seconds[phase] += now - self.last
        self.last = now

    def add_step(self, step: Any) -> None:
        """Add the time since the last split to the phase of a finished executor step."""
        now = perf_counter()
        self.seconds[PHASE_OF[step.part]] += now - self.last
        self.last = now


NARROW = ("uint8", "float16")
"""Values of `storage` that name a type of values."""


def convert_storage(storage: str, x: Any) -> Any:
    """Return rows X in `storage`: x itself for "same", CSR, or dense of a narrower dtype.

    FormatError for a value which that dtype cannot hold. Rows read from disk are never converted: `storage` "same" and
    "csr" return them, others raise DataError.
    """
    if storage == "same" or (storage == "csr" and isinstance(x, data.StoredRows)):
        return x
    if storage == "csr":
        return formats.to_format(x, "csr")
    if isinstance(x, data.StoredRows):
        raise data.DataError(
            f"{x.place} is read as it is trained on, and storage {storage} needs it in memory: take storage same, "
            "or load it with whole=True (reading: whole=true)."
        )
    return arrays.narrowed(x, np.dtype(storage))


@dataclass
class Prepared:
    """A batch in the format it is trained in, with its plan where the gradient reads one."""

    x: Any
    y: np.ndarray
    plan: BatchPlan | None
    seconds: dict[str, float]
    """Seconds of convert and plan."""
    weights: np.ndarray | None = None
    """What the loss of each row counts for [R]; None where all count alike."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """What the model reads in addition to X, by name."""

    made: Sequence[Any] = ()
    """Arrays that conversion made."""
    is_own: bool = False
    """Whether X was cut for this batch from rows that were checked, and nobody else holds it."""

    @property
    def bytes_own(self) -> int:
        """Bytes beyond the data set's own arrays: converted arrays, and the plan."""
        arrays = {id(array): array for array in self.made}
        return sum(map(formats.nbytes, arrays.values())) + (self.plan.nbytes if self.plan else 0)

    @property
    def plans(self) -> dict[str, BatchPlan]:
        """{"x": plan}; empty without a plan."""
        return {"x": self.plan} if self.plan else {}

    @property
    def columns(self) -> np.ndarray:
        """The sorted column indices in which the batch has entries, int [U]."""
        return self.plan.columns if self.plan else np.unique(formats.to_format(self.x, "coo").coords[1])


def batches_of(
    setup: Setup, x: Any, y: np.ndarray, is_drawn: bool = False, as_held: bool = False
) -> data.Batches | data.StoredBatches:
    """Return batches of the rows of X and y as the setup says; one batch of all rows is not shuffled unless `is_drawn`.

    `is_drawn` says that the model samples. Unless `as_held`, batches of a dense training are made dense as they are
    cut, if they are not kept.
    """
    is_whole = setup.execution == "step" and setup.last == "keep" and x.shape[0] <= setup.batch_rows
    shuffle = setup.shuffle and (is_drawn or not is_whole)
    dense = None if as_held or keeps_batches(setup, x, shuffle) else dense_type(setup)
    return data.batches_of(x, y, setup.batch_rows, shuffle=shuffle, seed=setup.seed, last=setup.last, dense=dense)


def dense_type(setup: Setup) -> str | None:
    """Return the dtype in which batches are made dense as they are cut; None if they keep the format of the data."""
    model = models.get(setup.model)
    is_cut = setup.device == "cpu" and model.rows_apart and model.sampler is None
    return setup.dtype if setup.format == "dense" and is_cut else None


def keeps_batches(setup: Setup, x: Any, shuffle: bool) -> bool:
    """Return whether prepared batches are kept for later epochs: not if shuffled, on disk, or stored otherwise."""
    return not shuffle and setup.storage == "same" and not isinstance(x, data.StoredRows)


def feed_of(batches: data.Batches | data.StoredBatches, model: Model, given: Given) -> data.Feed:
    """Return the batches, passed through the model's sampler if it has one."""
    if model.sampler is None:
        return batches
    return data.Completed(batches, model.sampler(given, batches.x), batches.seed)


def prediction_batch(source: data.Feed, batch: data.Batch, first: int) -> data.Batch:
    """Return a batch to predict, completed by the model's sampler if `source` has one.

    `first` is its data's first row.
    """
    if not isinstance(source, data.Completed):
        return batch
    return source.complete(dataclasses.replace(batch, rows_index=batch.rows_index + first), None)


class Training(ABC):
    """Parameters, optimizer states and batches of one training; `events` does the steps.

    X [rows, D] is CSR, dense for format dense, or stored rows, which are read as they come; y is what the model's loss
    takes; `facts` are those of the data that the model needs. Made by `make_run`. Raises `SetupError` for settings that
    do not go together, `ModelError` for data that lacks what the model needs.
    """

    def __init__(self, setup: Setup, x: Any, y: np.ndarray, width: int, facts: Mapping[str, Any] | None = None) -> None:
        """Validate the setup for the model, create its parameters' descriptions, and cut batches of X and y."""
        self.setup, self.model = setup, models.get(setup.model)
        require_possible(setup, self.model, width)
        self.given = self.model.given(x.shape[1], width, setup.model_options, facts)
        self.parameters = self.model.trained(self.given, setup.has_intercept)
        """The model's parameters, the intercept among them where the setup asks for one."""
        self.features, self.width, self.dtype = x.shape[1], width, np.dtype(setup.dtype)
        self.hold(x, y)
        self.step = 0

    @final
    def hold(self, x: Any, y: Any) -> None:
        """Cut batches from these rows from now on; `y` may be {name: array} with the targets as "label"."""
        y = {**y, "label": self.targets(y["label"])} if isinstance(y, Mapping) else self.targets(y)
        is_drawn = self.model.sampler is not None and self.model.draws(self.given)
        self.hold_batches(batches_of(self.setup, convert_storage(self.setup.storage, x), y, is_drawn))

    @final
    def hold_batches(self, batches: data.Batches | data.StoredBatches) -> None:
        """Use batches that `storage` has cut for this training, now or before; kept prepared ones are dropped."""
        self.batches = batches
        self.feed = feed_of(batches, self.model, self.given)
        self.keeps_prepared = keeps_batches(self.setup, batches.x, batches.shuffle)
        self.kept: dict[int, Any] = {}

    @final
    def targets(self, y: Any) -> Any:
        """Return the targets as all implementations of training take them; sparse and other non-numeric targets are
        returned as they are.

        Class indices become int64, other values the dtype of the parameters, and one value a row becomes a column [R,
        1]. Raises SetupError for targets of the logistic loss outside [0, 1].
        """
        if not isinstance(y, np.ndarray) or y.dtype.kind not in "biuf":
            return y
        if self.model.target == "classes":
            return y.astype(np.int64, copy=False) if y.dtype.kind in "iu" else y
        y = y.astype(self.dtype, copy=False)
        outputs = self.model.outputs or self.width
        y = y[:, None] if y.ndim == 1 and outputs == 1 and self.model.rows_apart else y
        if self.model.loss == "logistic" and y.size and not (y.min() >= 0 and y.max() <= 1):
            raise SetupError(
                f"Targets of the {self.model.name} model are {y.min():.6g} to {y.max():.6g}; expected 0 to 1.\n"
                "Give 1 for the positive class and 0 for the other one, or take the model linear for numbers."
            )
        return y

    # Steps

    @final
    def events(self, epochs: int | None = None) -> Generator[StepEvent, None, None]:
        """Yield the step events of `epochs` epochs, without end if None."""
        epoch = 0
        while epochs is None or epoch < epochs:
            yield from self.epoch(epoch)
            epoch += 1

    @final
    def epoch(self, epoch: int) -> Generator[StepEvent, None, None]:
        """Train epoch `epoch` (from 0) and yield its events: in compiled calls if possible, else batch by batch.

        Batches that repeat are kept after the first whole epoch. Steps are done as they are asked for.
        """
        calls = self.calls_of(epoch)
        return self._batch_by_batch(epoch) if calls is None else calls

    def events_of_epochs(self, first: int = 0, count: int | None = None) -> Generator[StepEvent, None, None]:
        """Yield the events of `count` epochs from `first` on, without end if None.

        An event may stand for several short epochs, trained in one call: for who looks at nothing in between.
        """
        for epoch in itertools.count(first) if count is None else range(first, first + count):
            yield from self.epoch(epoch)

    def _batch_by_batch(self, epoch: int) -> Generator[StepEvent, None, None]:
        """Train epoch `epoch` (from 0) step by step on kept or new batches, and yield an event for each."""
        if self.kept:
            for batch in self.kept.values():
                yield self.do_step(batch, epoch, {}, 0.0)
            return
        keeps, kept = self.keeps, dict[int, Any]()
        at_once = self.feed.at_once if self.setup.device == "cpu" else 1

        def step(ready: feed.Ready) -> StepEvent:
            """Train on a prepared batch, which is kept if all are."""
            if keeps:
                kept[len(kept)] = ready.value
            return self.do_step(ready.value, epoch, *self.phases_before(ready))

        try:
            yield from feed.steps(self.feed.epoch(epoch), self.prepare, step, int(self.setup.ahead), at_once)
        finally:
            self.settle()
        self.kept = kept

    def calls_of(self, epoch: int) -> Generator[StepEvent, None, None] | None:
        """Return the step events of an epoch trained in its own way (compiled calls).

        None to train on the feed's batches.
        """
        return None

    @property
    def keeps(self) -> bool:
        """Whether the prepared batches of an epoch are kept for later ones."""
        return self.keeps_prepared

    @abstractmethod
    def prepare(self, batch: data.Batch) -> Any:
        """Return a batch as a step takes it: in the setup's format, with its plan if the gradient needs one."""

    @abstractmethod
    def phases_before(self, ready: feed.Ready) -> tuple[dict[str, float], float]:
        """Return ({phase: seconds before the step}, seconds of preparing) of a batch that the loader gave."""

    @abstractmethod
    def do_step(self, batch: Any, epoch: int, phases: dict[str, float], seconds_prepare: float) -> StepEvent:
        """Train on a prepared batch and return the event; `phases` are the seconds of the phases before."""

    def settle(self) -> None:  # noqa: B027 - most trainings have nothing to wait for
        """Wait for background work after the last step of an epoch; nothing by default."""

    # The same in parts, by which a step is checked before it is timed

    @abstractmethod
    def forward(self, batch: Any) -> float:
        """Return the mean loss of a prepared batch."""

    @abstractmethod
    def slope(self) -> np.ndarray:
        """Return the gradient of the scores of the last `forward`, [R, outputs]; valid until the next step."""

    @abstractmethod
    def backward(self) -> dict[str, Any]:
        """Return {parameter: gradient} for the batch of the last `forward`: dense, row-sparse, or factored."""

    @abstractmethod
    def gradient_rows(self, gradient: Any, rows: np.ndarray, name: str = "w") -> np.ndarray | None:
        """Return rows (indices) of a gradient of `backward`, that of parameter `name`; None if it is factored."""

    @abstractmethod
    def update(self, gradients: dict[str, Any]) -> None:
        """Change parameters and states in place by one step with the gradients that `backward` returned."""

    # Parameters

    @final
    def start_of(self, parameter: Parameter) -> np.ndarray:
        """Return the initial values of a parameter, the same for the same seed; SetupError if memory is too small."""
        try:
            return self._start_of(parameter)
        except MemoryError:
            gib = math.prod(parameter.shape) * self.dtype.itemsize / 2**30
            raise SetupError(
                f"The parameter {parameter.name} {list(parameter.shape)} needs {gib:,.1f} GiB; memory has less.\n"
                "Keep fewer features (features), hash them into fewer, or take a smaller width."
            ) from None

    def _start_of(self, parameter: Parameter) -> np.ndarray:
        """Return the initial values of a parameter: zeros, or normal with its deviation, by the setup's seed."""
        if not parameter.deviation:
            return aligned.zeros(parameter.shape, self.dtype)
        number = [parameter.name for parameter in self.parameters].index(parameter.name)
        generator = np.random.default_rng((self.setup.seed, number))
        return aligned.copy(generator.normal(0.0, parameter.deviation, parameter.shape), self.dtype)

    @final
    def first_pattern(self, parameter: Parameter) -> "Pattern":
        """Return the initial sparsity pattern of a parameter with a matrix, the same for the same seed."""
        from workbench.models import patterns  # late: few models have such parameters

        number = [parameter.name for parameter in self.parameters].index(parameter.name)
        assert parameter.matrix is not None
        return patterns.drawn(parameter.matrix, parameter.shape[0], np.random.default_rng((self.setup.seed, number, 0)))

    def pattern(self, name: str) -> "Pattern":
        """Return the current sparsity pattern of parameter `name`; SetupError if it has none."""
        raise SetupError(f"The parameter {name} has no pattern here.")

    @final
    def rows_of(self, parameter: Parameter, features: np.ndarray) -> np.ndarray:
        """Return the row indices of a parameter for the columns `features` of X.

        All rows if it is not indexed by them.
        """
        if not parameter.touched:
            return np.arange(parameter.shape[0])
        return self.pattern(parameter.name).on_rows(features)[1] if parameter.matrix else features

    @abstractmethod
    def read_rows(self, rows: np.ndarray, name: str = "w") -> np.ndarray:
        """Return the rows (indices) of parameter `name`, copied to the host."""

    @abstractmethod
    def write_rows(self, rows: np.ndarray, values: np.ndarray, name: str = "w") -> None:
        """Overwrite the rows (indices) of parameter `name` by `values`."""

    @abstractmethod
    def reset(self) -> None:
        """Restore initial parameters, states of zero and step 0; prepared batches are kept."""

    # Results

    @abstractmethod
    def scores_of(self, batch: data.Batch) -> np.ndarray:
        """Return the scores [R, outputs] of a batch as a host array, which the next call may overwrite."""

    @final
    def predict(self, x: Any, first: int = 0) -> np.ndarray:
        """Return scores [rows, outputs] of X, in chunks of the batch size, after rows that lag have caught up.

        `first` is the index of X's first row in the data, for models of a graph, which read the rows around it: 0 for
        those trained on, their count for those held out. For these models only the row indices count.
        """
        self.catch_up()
        if (scores := self._product(x)) is not None:
            return scores
        batches = data.batches_of(x, None, self.setup.batch_rows, dense=dense_type(self.setup)).epoch(0)
        if not self.model.rows_apart:
            batches = (prediction_batch(self.feed, batch, first) for batch in batches)
        return np.concatenate([self.scores_of(batch).copy() for batch in batches])

    def _product(self, x: Any) -> np.ndarray | None:
        """Return scores [rows, outputs] by one product over all rows; None if the model or the array needs batches.

        O(nnz * outputs) without the cost of batches: 15 to 30 times less on rows of 20 to 40 entries and one output.
        `x` is unused.
        """
        return None

    def catch_up(self) -> None:  # noqa: B027 - only an exact update has rows that lag behind
        """Apply updates that an exact update has deferred, in place; nothing otherwise."""

    @final
    def quality(self, x: Any, y: np.ndarray) -> float:
        """Return the model's main quality measure on held-out X and y."""
        return self.qualities(x, y)[self.model.quality_name]

    @final
    def qualities(self, x: Any, y: np.ndarray) -> dict[str, float]:
        """Return {name: value} of the model's quality measures on held-out X and y.

        For a model of a graph the rows held out are the nodes behind those trained on.
        """
        measures = {self.model.quality_name: self.model.quality, **self.model.measures}
        if self.model.rank is None:
            scores = self.predict(x, first=self.batches.total)
            return {name: measure(scores, y) for name, measure in measures.items()}
        self.catch_up()
        arrays = {
            parameter.name: self.read_rows(np.arange(parameter.shape[0]), parameter.name)
            for parameter in self.parameters
        }
        return self._of_order(self.model.rank(self.given, arrays), measures, x)

    def _of_order(self, scores_of: Scorer, measures: Mapping[str, Callable], x: Any) -> dict[str, float]:
        """Return {measure: value} of the ranking by `scores_of` on held-out one-hot rows x."""
        return ranking_measures(scores_of, measures, self.given.facts["fields"], self.batches.x, x)

    @final
    def quality_without_x(self, x: Any, y: np.ndarray) -> float:
        """Return the main quality of the best constant prediction (or order by popularity) on held-out X and y."""
        if self.model.rank is not None:
            popular = by_popularity(self.batches.x, self.given.facts["fields"])
            return self._of_order(popular, {"quality": self.model.quality}, x)["quality"]
        outputs = self.model.outputs or self.width
        return constant_quality(self.model.target, self.model.quality, np.asarray(self.batches.y), y, outputs)

    @abstractmethod
    def densified(self) -> list[dict]:
        """Return {"op", "shape", "bytes"} of each array that these settings make dense in a step; [] for most."""

    @property
    @abstractmethod
    def bytes_held(self) -> int:
        """Bytes of all arrays of the training on the host."""
