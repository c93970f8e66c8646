"""The first layer of a model of PyTorch or Keras: whole training steps of that model, with the layer dense and sparse.

`answer_for_model(model, dataset)` replaces the layer that takes the features in copies of the model, compares loss and
gradients of each copy with those of the dense layer, and times the steps in alternating rounds. Beside them it times
the step without the first layer: that is the least that any first layer leaves, and so bounds what can be gained.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from workbench import data
from workbench.advising import breakevens
from workbench.advising.frameworks.first_layer import REST, LayerWay, Rows, rows_of_dataset, time_ways
from workbench.analysis import formatting
from workbench.measure.posterior import ANYWHERE, Posterior, Ratio, Trial, posterior, residuals
from workbench.measure.race import Policy
from workbench.sweeps.spec import SpecError

STEPS_LEAST = 6
"""Steps of a way at least: those of its checks, and two rounds."""
SHARE_ROUNDS = 0.6
"""Share of the budget for the rounds; the rest is for copies, checks and libraries."""


@dataclass(frozen=True)
class TimedWay:
    """A first layer with its result: seconds of a training step (NaN if it was not timed: `reason` says why), seconds
    that are left for the layer itself, bytes of rows and gradient, and the lines that change."""

    name: str
    kind: str
    seconds: float
    seconds_layer: float
    bytes_data: int
    bytes_gradient: int
    reason: str
    lines: str

    @property
    def result(self) -> str:
        """The time of a step and the memory, such as "3 ms a step; rows 12 MB, gradient 2 MB"; or the reason."""
        if not math.isfinite(self.seconds):
            return self.reason
        sizes = (
            f"rows {formatting.format_bytes(self.bytes_data)}, gradient {formatting.format_bytes(self.bytes_gradient)}"
        )
        return f"{formatting.format_seconds(self.seconds)} a step; {sizes}"


@dataclass(frozen=True)
class ModelAnswer:
    """Which first layer to train a model with.

    `best` and `dense` are the fastest way of all and the fastest dense one, `ratio` is the time of a step dense /
    sparse with its 95 % interval, `share` (0 to 1) that part of the dense step that the first layer takes. `library` is
    PyTorch or Keras, `density` the share of the entries that are stored in the rows.
    """

    ways: Sequence[TimedWay]
    best: TimedWay
    dense: TimedWay
    sparse: TimedWay | None
    ratio: Ratio | None
    share: float
    layer: str
    rows: int
    batch_rows: int
    seconds: float
    library: str
    density: float

    @property
    def measured_elsewhere(self) -> breakevens.Measurement:
        """Break-evens of operations of the model's library on other data, by `benchmarks libraries`."""
        return breakevens.measurement().of(self.library)

    @property
    def lines(self) -> str:
        """The lines that change for the best way."""
        return self.best.lines

    @property
    def layer_ratio(self) -> float | None:
        """Times as long as the dense layer takes compared with the sparse one, about; None if it is not known."""
        if self.sparse is None or not (self.dense.seconds_layer > 0 and self.sparse.seconds_layer > 0):
            return None
        return self.dense.seconds_layer / self.sparse.seconds_layer

    @property
    def bound(self) -> float:
        """Times as fast as the dense step that no first layer can exceed."""
        return 1 / max(1 - self.share, 1e-9)

    @property
    def headline(self) -> str:
        """The sentence on which first layer to use and how much faster the training step is."""
        if self.sparse is None or self.ratio is None:
            return f"Keep the dense layer {self.layer}: no sparse way ran."
        ratio, against = self.ratio, self.dense.name
        if ratio.low > 1:
            layer = f", the layer about {self.layer_ratio:.2g} times" if self.layer_ratio else ""
            return (
                f"Make the layer {self.layer} sparse, with {self.sparse.name}: the training step is "
                f"{ratio.value:.2g} times faster (95 %: {ratio.low:.2g} to {ratio.high:.2g}) than {against}{layer}."
            )
        turned = formatting.invert_ratio(ratio)
        if ratio.high < 1:
            return (
                f"Keep the layer {self.layer} dense, with {against}: the training step is {turned.value:.2g} times "
                f"faster (95 %: {turned.low:.2g} to {turned.high:.2g}) than {self.sparse.name}."
            )
        return (
            f"Not decided, keep the layer {self.layer} as it is: the training step takes {ratio.value:.2g} times as "
            f"long (95 %: {ratio.low:.2g} to {ratio.high:.2g}) with {against} as with {self.sparse.name}."
        )

    @property
    def bound_sentence(self) -> str:
        """The sentence on the share of the step that the layer has, which bounds the gain; "" if it is not known."""
        if not math.isfinite(self.share):
            return ""
        return (
            f"The layer takes {self.share:.0%} of the dense step, so no first layer makes the step more than "
            f"{self.bound:.2g} times faster."
        )

    @property
    def memory_sentence(self) -> str:
        """The sentence on the memory of rows and gradient, dense and sparse; "" without a sparse way."""
        if self.sparse is None:
            return ""
        sizes = [formatting.format_bytes(way.bytes_data + way.bytes_gradient) for way in (self.sparse, self.dense)]
        return f"Rows and the layer's gradient need {sizes[0]} sparse, {sizes[1]} dense."

    @property
    def lines_of_ways(self) -> list[str]:
        """A line for each way, fastest first: time and memory, or why it was not timed."""
        ordered = sorted(self.ways, key=lambda way: (not math.isfinite(way.seconds), way.seconds))
        return [f"{way.name}: {way.result}" for way in ordered]

    def __str__(self) -> str:
        """Return the whole answer as text: headline, bound, memory, each way, the lines that change."""
        measured = f"Timed on {self.rows:,} rows, {self.batch_rows} a batch, in {self.seconds:.0f} s."
        grounds = [text for text in (self.bound_sentence, self.memory_sentence) if text]
        ways = [f"  {line}" for line in self.lines_of_ways]
        elsewhere = self.measured_elsewhere.lines(self.density)
        parts = [self.headline, *grounds, "", *ways, "", measured, *elsewhere, "", "Lines that change:", "", self.lines]
        return "\n".join(parts)


def answer_for_model(
    model: Any,
    dataset: data.Dataset,
    *,
    budget: float = 60.0,
    batch_rows: int | None = None,
    optimizer: str | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    lazy: bool = False,
) -> ModelAnswer:
    """Time whole training steps of a model with its first layer dense and sparse, and say which to use.

    Parameters
    ----------
    model : torch.nn.Module or keras.Model
        Its first layer takes the features: torch.nn.Linear, torch.nn.EmbeddingBag or keras.layers.Dense. It is copied,
        and stays as it is.
    dataset : Dataset
        Rows with one class or numbers each. The first 32,768 rows are trained on.
    budget : float, default 60
        Seconds for everything.
    batch_rows : int, optional
        Rows of a batch, by default 256.
    optimizer : str, optional
        sgd, adagrad or adam, by default adam; of a compiled Keras model its own.
    loss : callable, optional
        `loss(outputs, y)` of a model of PyTorch; by default cross entropy for classes, squared error for numbers.
    lazy : bool
        Whether rows of the layer without a gradient may be left alone where dense Adam would move them.

    Returns
    -------
    ModelAnswer
        The fastest way, ratio and share, and the lines that change.

    Raises
    ------
    SpecError
        If the model has no such first layer or cannot train on the rows, no dense way could be timed, or a step takes
        too long for the budget.
    """
    began = time.monotonic()
    random_state: AbstractContextManager[Any] = nullcontext()
    if _is_a(model, "torch.nn"):
        from workbench.advising.frameworks import torch_layers

        library = "PyTorch"
        layer, dtype, make_ways = torch_layers.ways_of_module(model, dataset.features)
        random_state = torch_layers.torch.random.fork_rng(devices=[])
    elif _is_a(model, "keras"):
        from workbench.advising.frameworks import keras_layers

        library = "Keras"
        layer, dtype, make_ways = keras_layers.ways_of_model(model, dataset.features)
    else:
        raise SpecError(
            f"model is a {type(model).__name__}; expected the name of a model, a torch.nn.Module or a keras.Model."
        )
    rows = rows_of_dataset(dataset, batch_rows, dtype)
    policy = Policy(rounds=40, rounds_slow=2, slow=8.0, rounds_least=2, seconds_most=SHARE_ROUNDS * budget)
    with random_state:
        ways = make_ways(rows, optimizer, loss, lazy)
        records = time_ways(ways, rows, policy, budget - (time.monotonic() - began))
    _require_time(ways, records, budget)
    return _conclude(ways, records, rows, layer, library, time.monotonic() - began)


def _require_time(ways: Sequence[LayerWay], records: Mapping[str, Mapping[str, Any]], budget: float) -> None:
    """Raise SpecError, with a budget that suffices, if dense or sparse ways were left out for time alone."""
    for kind in ("dense", "sparse"):
        some = [records[way.name] for way in ways if way.kind == kind]
        slow = [record for record in some if record["status"] == "time"]
        if slow and not any("samples" in record for record in some):
            step = max(record.get("seconds_step", 0.0) for record in records.values())
            enough = math.ceil(max(2 * budget, 1.5 * STEPS_LEAST * len(ways) * step))
            raise SpecError(
                f"No {kind} way could be timed within the budget of {budget:g} s. {slow[0]['reason']}\n"
                f"Type budget={enough}, or a smaller batch_rows."
            )


def _is_a(model: Any, package: str) -> bool:
    """Return whether a class of the model is of a package; nothing is imported."""
    return any(kind.__module__.startswith(package) for kind in type(model).__mro__)


def _conclude(
    ways: Sequence[LayerWay],
    records: Mapping[str, Mapping[str, Any]],
    rows: Rows,
    layer: str,
    library: str,
    seconds: float,
) -> ModelAnswer:
    """Return the answer from {way: record}; SpecError if no dense way was timed."""
    found = _posterior(records)
    medians = {name: float(record["seconds"]) for name, record in records.items() if "samples" in record}
    rest = medians.get(REST, math.nan)
    timed = [
        TimedWay(
            way.name,
            way.kind,
            medians.get(way.name, math.nan),
            medians.get(way.name, math.nan) - rest,
            way.bytes_data,
            int(records[way.name].get("bytes_gradient", 0)),
            records[way.name].get("reason", ""),
            way.lines,
        )
        for way in ways
        if way.kind
    ]
    sides = {kind: [way for way in timed if way.kind == kind and way.name in medians] for kind in ("dense", "sparse")}
    if not sides["dense"]:
        raise SpecError("No dense way could be timed.\n" + "\n".join(f"{way.name}: {way.reason}" for way in timed))
    dense, sparse = (_best(found, sides[kind]) for kind in ("dense", "sparse"))
    assert dense is not None
    ratio = None
    if sparse is not None:
        names = {kind: [way.name for way in some] for kind, some in sides.items()}
        ratio = found.ratio(dense.name, sparse.name, names["dense"], names["sparse"])
    best = sparse if sparse is not None and ratio is not None and ratio.low > 1 else dense
    share = min(max(1 - rest / dense.seconds, 0.0), 1.0) if math.isfinite(rest) else math.nan
    count, columns = rows.csr.shape
    density = rows.csr.nnz / max(count * columns, 1)
    return ModelAnswer(
        timed, best, dense, sparse, ratio, share, layer, count, rows.batch_rows, seconds, library, density
    )


def _posterior(records: Mapping[str, Mapping[str, Any]]) -> Posterior[str]:
    """Return the posterior of the times of the ways with a kind, and of the step without the layer."""
    trials = [
        Trial(name, seconds, "rounds", number)
        for name, record in records.items()
        for number, seconds in enumerate(record.get("samples", ()))
    ]
    return posterior(trials, scatter=ANYWHERE.shrunk(*residuals(trials)))


def _best(found: Posterior[str], ways: Sequence[TimedWay]) -> TimedWay | None:
    """Return the way of least expected loss; None without ways."""
    name = found.best([way.name for way in ways])
    return next((way for way in ways if way.name == name), None)
