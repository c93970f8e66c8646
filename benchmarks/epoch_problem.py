"""Configurations of `benchmarks epochs`: every pair of values occurs; their rows, and what training comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import epoch_loops
from benchmarks.epoch_loops import RULES
from benchmarks.fair.configurations import covering_array
from benchmarks.shapes import Shape, draw_batch
from workbench.advising.frameworks.training import State
from workbench.formats.compressed import assemble

# Configurations


AXES: dict[str, tuple] = {
    "features": (100, 3000, 100_000, 1_000_000, 10_000_000),
    "entries": (5, 30, 300),
    "lengths": ("fixed", "power law"),
    "batch_rows": (1, 32, 256, 1024),
    "width": (1, 4, 16, 64),
    "values": ("ones", "normal"),
    "optimizer": tuple(RULES),
    "batches": ("new", "repeat"),
}
TIMES, TIMES_FULL, MOST = 2, 4, 80
"""How often each pair of values occurs by default and with `--full`, and the most configurations."""
QUICK = 8
"""Configurations of a quick run: the first ones, which have the most pairs."""
BYTES_MODEL = 2_000_000_000
"""Bytes of weights and states at most."""
FULLEST = 0.5
"""Share of the columns that a row has at most."""
ENTRIES_EPOCH = 2**21
"""Entries of an epoch with one output, about; with N outputs 1 / (1 + N / 16) of them."""
BATCHES_LEAST, BATCHES_INDEXED = 4, 2000
"""Batches of an epoch at least, and those for which a list of columns of each is made at most."""
CLASSES_DRAWN = 1009
"""Columns share weights of the teacher that draws the labels: its memory does not grow with D."""


@dataclass(frozen=True)
class Configuration:
    """Sizes of a training: D `features`, mean `entries` a row, how `lengths` and columns are distributed, rows a batch,
    N outputs (`width`), `values` ones or normal, the optimizer, and whether `batches` are new or repeat."""

    features: int
    entries: int
    lengths: str
    batch_rows: int
    width: int
    values: str
    optimizer: str
    batches: str
    seed: int = 0
    entries_epoch: int = ENTRIES_EPOCH

    @property
    def name(self) -> str:
        """Name of the configuration from its settings, such as "sgd-D100-Z5-B32-N1-fixed-ones-new"."""
        sizes = f"D{self.features}-Z{self.entries}-B{self.batch_rows}-N{self.width}"
        return f"{self.optimizer}-{sizes}-{self.lengths.replace(' ', '_')}-{self.values}-{self.batches}"

    @property
    def model(self) -> str:
        """Name of the model: "logistic" for one output, "softmax" for several."""
        return "logistic" if self.width == 1 else "softmax"

    @property
    def rows(self) -> int:
        """Number of rows R: whole batches, at least four, with about `entries_epoch` entries for one output."""
        wanted = self.entries_epoch / (1 + (self.width - 1) / 16) / self.entries
        return max(BATCHES_LEAST, round(wanted / self.batch_rows)) * self.batch_rows

    @property
    def steps(self) -> int:
        """Number of steps (batches) of an epoch."""
        return self.rows // self.batch_rows

    @property
    def rate(self) -> float:
        """Learning rate, inversely proportional to the entries of a row so that scores stay small."""
        return (0.1 if self.optimizer == "adam" else 0.5) / self.entries

    @property
    def bytes_model(self) -> int:
        """Bytes of the weights and of the optimizer's states, float32 [D, N] each."""
        return 4 * self.features * self.width * RULES[self.optimizer]

    @property
    def is_possible(self) -> bool:
        """Whether a row uses at most half of the columns, and weights and states take at most 2 GB."""
        return self.entries <= FULLEST * self.features and self.bytes_model <= BYTES_MODEL

    @property
    def bytes_needed(self) -> int:
        """Bytes that a process needs at most, an estimate: two models, the rows in all forms, checks and 1 GiB."""
        return 2 * self.bytes_model + self.rows * self.entries * (200 + 16 * self.width) + 2**30

    def columns(self) -> dict[str, Any]:
        """Return {record column: value} for all columns that the configuration determines."""
        known = {"model": self.model, "rows": self.rows, "steps": self.steps}
        return known | {name: getattr(self, name) for name in (*AXES, "seed")}


@cache
def all_configurations() -> tuple[Configuration, ...]:
    """Return all configurations, at most 80, cached; the first ones have every pair of values once, then twice, ..."""

    def is_possible(values: Mapping[str, Any]) -> bool:
        """Return whether the configuration with these values fits the limits of `Configuration.is_possible`."""
        return Configuration(**values).is_possible

    chosen = covering_array(AXES, 1, is_possible)
    for times in range(TIMES, TIMES_FULL + 1):
        chosen = covering_array(AXES, times, is_possible, chosen)
    return tuple(Configuration(**values) for values in chosen[:MOST])


def default_configurations() -> tuple[Configuration, ...]:
    """Return the first configurations, in which every possible pair of values occurs at least once."""
    known = all_configurations()
    allowed = covering_array(AXES, 1, lambda values: Configuration(**values).is_possible)
    return known[: max(len(allowed), round(len(known) * TIMES / TIMES_FULL))]


# Rows, and what training on them comes to


@dataclass(eq=False)
class Problem:
    """Rows X csr [R, D] float32 with int32 indices, labels int64 [R], and the threads that candidates may use."""

    configuration: Configuration
    csr: scipy.sparse.csr_array
    labels: np.ndarray
    threads: int = 1
    expected: dict[tuple, State] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    """What candidates share, by name."""

    @cached_property
    def targets(self) -> np.ndarray:
        """Labels as the losses take them: float32 [R] for logistic regression, int64 [R] for softmax."""
        return self.labels.astype(np.float32) if self.configuration.width == 1 else self.labels

    @cached_property
    def occurring(self) -> tuple[np.ndarray, np.ndarray]:
        """(ascending columns that occur [U], index into them of each entry's column [nnz])."""
        return np.unique(self.csr.indices, return_inverse=True)

    def order(self, epoch: int) -> np.ndarray:
        """Return the row indices of an epoch, int64 [R]: a permutation, or in stored order if batches repeat."""
        if self.configuration.batches == "repeat":
            return np.arange(len(self.labels))
        return np.random.default_rng((self.configuration.seed, epoch)).permutation(len(self.labels))

    def reference(self, order: np.ndarray, rate_b: float) -> State:
        """Return weights, intercept and losses after one epoch from zero in float64, rows in this order.

        `rate_b` is the learning rate of the intercept. The last result is cached in `expected`.
        """
        key = order.tobytes(), rate_b
        if key not in self.expected:
            one, x = self.configuration, self.csr
            columns, places = self.occurring
            losses = np.zeros(one.steps)
            arrays, intercept = (tuple(np.zeros((count, one.width)) for _ in range(3)) for count in (columns.size, 1))
            rows = x.indptr, places, x.data, self.labels, order, one.batch_rows
            rule = list(RULES).index(one.optimizer)
            epoch_loops.reference(*rows, one.rate, rate_b, rule, arrays, intercept, losses)
            self.expected = {key: State(arrays[0], intercept[0][0], losses)}
        return self.expected[key]


def draw(configuration: Configuration, threads: int = 1) -> Problem:
    """Return a synthetic problem: CSR rows, labels 0 to N - 1 (or 0 and 1) from a random linear teacher.

    Rows have a fixed number of entries in uniform columns, or lengths and columns by power laws, as `lengths` says.
    """
    is_fixed = configuration.lengths == "fixed"
    sigma, slope = (0.0, 0.0) if is_fixed else (0.8, 1.1)
    sizes = configuration.rows, configuration.features, configuration.entries
    batch = draw_batch(Shape("epochs", *sizes, sigma, slope, values=configuration.values), configuration.seed)
    csr = assemble("csr", batch.indptr, batch.indices, batch.data, sizes[:2])
    rng, classes = np.random.default_rng((configuration.seed, 1)), max(configuration.width, 2)
    short = scipy.sparse.csr_array((csr.data, csr.indices % CLASSES_DRAWN, csr.indptr), shape=(sizes[0], CLASSES_DRAWN))
    scores = short @ rng.standard_normal((CLASSES_DRAWN, classes)).astype(np.float32)
    return Problem(configuration, csr, scores.argmax(axis=1).astype(np.int64), threads)


def error_of(state: State, expected: State) -> float:
    """Return the largest relative error of weights, intercept and losses, each by root mean squares; inf if not finite.

    Single weights may differ by more: a gradient whose terms cancel is rounding, and AdaGrad and Adam scale it up.
    """
    pairs = [(state.w, expected.w, 0.0), (state.b, expected.b, 1e-2 * float(np.abs(expected.w).max()))]
    if state.losses is not None and expected.losses is not None:
        pairs.append((state.losses, expected.losses, 0.0))
    norm = np.linalg.norm
    errors = [norm(came - wanted) / (max(float(norm(wanted)), least) or 1.0) for came, wanted, least in pairs]
    worst = float(np.max(errors))
    return worst if np.isfinite(worst) else float("inf")
