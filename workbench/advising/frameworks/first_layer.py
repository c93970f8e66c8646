"""Ways to make the first layer of a model, checked against the dense layer and timed in whole training steps."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse

from workbench import data
from workbench.advising.frameworks.training import ALLOWED
from workbench.advising.frameworks.ways import ROWS
from workbench.analysis import formatting
from workbench.formats.arrays import canonical
from workbench.measure import memory
from workbench.measure.race import Policy, Prepared, ReadyCandidate, failure_record, measure_candidates
from workbench.sweeps.spec import SpecError

BATCH_ROWS = 256
RATE = 1e-3
"""Learning rate of the steps that are timed: small, so that no value overflows."""
REST = "the step without the first layer"
STEPS_CHECKED = 2
"""Steps whose losses are compared: that of the second one shows the update of the first."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What is trained on: `csr` [R, D], labels [R] or targets [R, K], whole batches of `batch_rows`."""

    csr: scipy.sparse.csr_array
    y: np.ndarray
    kind: str
    batch_rows: int

    @property
    def features(self) -> int:
        """Number of columns D."""
        return self.csr.shape[1]

    @property
    def batches(self) -> int:
        """Number of batches of an epoch."""
        return self.csr.shape[0] // self.batch_rows

    @property
    def bytes_sparse(self) -> int:
        """Bytes of the CSR arrays."""
        return self.csr.data.nbytes + self.csr.indices.nbytes + self.csr.indptr.nbytes

    @property
    def bytes_dense(self) -> int:
        """Bytes of the rows as one dense array."""
        return self.csr.shape[0] * self.features * self.csr.dtype.itemsize

    def batch(self, number: int) -> np.ndarray:
        """Return the row indices of a batch, int64; each epoch has an order of its own, the same for all ways."""
        epoch, place = divmod(number, self.batches)
        order = np.random.default_rng(epoch).permutation(self.batches * self.batch_rows)
        return order[place * self.batch_rows : (place + 1) * self.batch_rows]


class Training(ABC):
    """Training steps of one copy of the model, one batch after the other."""

    bytes_gradient = 0
    """Bytes of the gradient of the first layer's weights, after `check`."""

    @abstractmethod
    def step(self, rows: np.ndarray) -> float:
        """Train on the rows with these indices; return the loss before the update."""

    @abstractmethod
    def gradients(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return {parameter: gradient} of a batch, the first layer's weights as [D, N]; nothing is updated."""


@dataclass(frozen=True)
class LayerWay:
    """A first layer: how it holds the rows (`kind` dense or sparse; "" for the step without it), how its training is
    made, the bytes of its rows, the lines that change, and `why_not`, if it cannot run here."""

    name: str
    kind: str
    make: Callable[[], Training]
    bytes_data: int = 0
    lines: str = ""
    why_not: str = ""


def rows_of_dataset(dataset: data.Dataset, batch_rows: int | None, dtype: Any) -> Rows:
    """Return whole batches of the first rows of a data set, 32,768 at most, values of this dtype.

    Raises SpecError for several labels a row.
    """
    if dataset.kind not in ("classes", "numbers"):
        raise SpecError(f"The labels are {dataset.labels}; expected one class or numbers for each row.")
    count = min(dataset.rows, ROWS)
    batch = min(batch_rows or BATCH_ROWS, count)
    count = count // batch * batch
    csr = canonical(scipy.sparse.csr_array(dataset.x[:count], dtype=dtype))
    y = np.asarray(dataset.y[:count])
    return Rows(csr, y.astype(np.int64 if dataset.kind == "classes" else np.float32), dataset.kind, batch)


def why_no_dense(rows: Rows) -> str:
    """Return why the rows are not held as one dense array, or ""."""
    if rows.bytes_dense <= memory.available_bytes() // 2:
        return ""
    return f"All rows dense take {formatting.format_bytes(rows.bytes_dense)}; that is not free here."


def time_ways(
    ways: Sequence[LayerWay], rows: Rows, policy: Policy, seconds: float = math.inf
) -> dict[str, dict[str, Any]]:
    """Return {way: record}: loss and gradients checked against those of the first dense way, then timed in rounds.

    A way is left out after its first step if checks and the least number of rounds would not end within `seconds`.
    """
    checked: dict[str, tuple[list[float], dict[str, np.ndarray]]] = {}
    end = perf_counter() + seconds

    def prepare(way: LayerWay, able: Mapping[str, ReadyCandidate]) -> Prepared:
        """Make a way ready unless it cannot run, differs from the dense one, or is too slow."""
        if way.why_not:
            return {"status": "unsupported", "reason": way.why_not}, None
        rest = end - perf_counter() - policy.rounds_least * sum(_seconds_of_call(one, policy) for one in able.values())
        if rest <= 0:
            return {"status": "time", "reason": "Not timed: the budget was used up by the ways before."}, None
        try:
            training = way.make()
            if way.kind:
                start = perf_counter()
                gradients = training.gradients(rows.batch(0))
                step = perf_counter() - start
                if (STEPS_CHECKED + policy.rounds_least) * step > rest - step:
                    reason = f"Not timed: a step took {formatting.format_seconds(step)}, too long for the budget."
                    return {"status": "time", "reason": reason, "seconds_step": step}, None
                losses = [training.step(rows.batch(number)) for number in range(STEPS_CHECKED)]
                reference = checked.setdefault("dense", (losses, gradients))
                if reason := difference((losses, gradients), reference):
                    return {"status": "wrong", "reason": reason}, None
            return {"status": "ok", "reason": "", "bytes_gradient": training.bytes_gradient}, _ready(
                way, training, rows, policy
            )
        except MemoryError as failure:
            return failure_record(failure), None
        except Exception as failure:  # of a model that does not take sparse rows, the answer says so
            line = str(failure).strip().partition("\n")[0]
            return {"status": "failed", "reason": f"{type(failure).__name__}: {line:.200}"}, None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of frameworks about their own code, such as sparse tensors in beta state
        policy = replace(policy, seconds_most=min(policy.seconds_most, seconds))
        answers = list(measure_candidates({way.name: partial(prepare, way) for way in ways}, policy))
    return {answer["name"]: answer["record"] for answer in answers if "record" in answer}


def _seconds_of_call(candidate: ReadyCandidate, policy: Policy) -> float:
    """Return the seconds that a call of a candidate takes, about."""
    return max(candidate.estimate, policy.seconds_call)


def difference(
    found: tuple[list[float], dict[str, np.ndarray]], expected: tuple[list[float], dict[str, np.ndarray]]
) -> str:
    """Return how losses and gradients differ from the expected ones by more than float32 sums may; "" if they agree."""
    for number, (loss, other) in enumerate(zip(found[0], expected[0], strict=True), 1):
        if not abs(loss - other) <= ALLOWED * max(abs(other), ALLOWED):
            return f"The loss of step {number} is {loss:.6g}; with the dense layer it is {other:.6g}."
    largest = max((float(np.abs(wanted).max(initial=0.0)) for wanted in expected[1].values()), default=0.0)
    for name, wanted in expected[1].items():
        own = found[1].get(name)
        if own is None or own.shape != wanted.shape:
            return f"There is no gradient of {name} {list(wanted.shape)}."
        # A gradient that is 0 but for rounding, as that of a bias before a normalization, is compared with the largest.
        scale = max(float(np.abs(wanted).max(initial=0.0)), ALLOWED * largest) or 1.0
        off = float(np.abs(own - wanted).max(initial=0.0)) / scale
        if not off <= ALLOWED:
            return f"The gradient of {name} differs from that of the dense layer by {off:.2g}; allowed is {ALLOWED:g}."
    return ""


def _ready(way: LayerWay, training: Training, rows: Rows, policy: Policy) -> ReadyCandidate:
    """Return a candidate of `time_rounds` whose call trains on as many batches as fill the time of a call."""
    number = STEPS_CHECKED

    def run(steps: int) -> float:
        """Train on the next batches and return the seconds of one."""
        nonlocal number
        start = perf_counter()
        for _ in range(steps):
            training.step(rows.batch(number))
            number += 1
        return (perf_counter() - start) / steps

    estimate = run(1)
    if estimate < policy.seconds_call:
        estimate = min(run(1), run(1))
    steps = max(1, round(policy.seconds_call / max(estimate, 1e-9)))
    return ReadyCandidate(("rest",) if not way.kind else (), lambda: run(steps), estimate)
