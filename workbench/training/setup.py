"""Setup of a training, which settings go together, and completion of the settings that are not given.

>>> complete_settings({"format": "row_sparse"})[1]
('format = row_sparse: engine ours, gradient dense, update standard completed',)
>>> complete_settings({"format": "csr"})
({'format': 'csr', 'engine': 'ours', 'gradient': 'row_sparse', 'update': 'lazy'}, ())
"""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Any

from kernels import loss_blocks
from kernels.gpu.losses import LOSSES
from kernels.registry import unknown_name
from workbench import models, optimizers, settings
from workbench import settings as table
from workbench.models import Model
from workbench.ops import products


def multiple_trainers_reason(setup: "Setup", trainers: int) -> str:
    """Return why `trainers` trainers cannot share a training of the setup, as a sentence; "" if they can."""
    model = models.get(setup.model)
    if trainers < 1:
        return f"There are {trainers} trainers; there is 1 or more."
    if setup.device != "cpu":
        return "Trainers that share a training compute on cpu; on cuda a training has one trainer."
    if setup.execution != "step":
        return f"Trainers exchange rows at every step, and execution {setup.execution} does not stop there: take step."
    if setup.format != "csr" or setup.gradient == "fused":
        return (
            "Trainers send the active rows of a batch: take format csr and the gradient row_sparse (or dense); "
            f"this is {setup.format} with {setup.gradient}."
        )
    if model.sampler is not None or not model.rows_apart:
        return f"The {model.name} model completes its batches from all rows, of which a trainer has some: it has one."
    if model.moves is not None:
        return f"The {model.name} model has weights at a pattern, which shards do not hold: it has one trainer."
    if setup.batch_rows % trainers:
        return f"Trainers have equal parts of a batch: {setup.batch_rows} rows are no multiple of {trainers}."
    return ""


LAZY = {"standard": "off", "lazy": "on", "exact": "exact"}
"""What the optimizer calls each update."""


ON_CUDA = {("csr", "ours"), ("coo", "ours"), ("csr", "vendor"), ("dense", "dense")}
"""Formats and engines that train on a CUDA device; the vendor is cuSPARSE there, and dense is cuBLAS."""
IN_GRAPH = {
    "csr": {"engine": "ours", "gradient": "fused", "update": "lazy"},
    "dense": {"engine": "dense", "gradient": "dense", "update": "standard"},
}
"""What a step has that is launched as one graph, by the format of its batches."""
IN_CALLS = {"format": "csr", "engine": "ours", "gradient": "row_sparse", "device": "cpu", "ahead": False}
"""What epochs have that are done in few calls, by a rule or by dual ascent."""
DENSE_IN_CALLS = IN_CALLS | {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
"""What epochs of a dense training have that are done in few calls."""


class SetupError(ValueError):
    """Settings that do not go together; the message says which and what would."""


_FIELDS = [
    (name, settings.BY_NAME[name].type, field(default=settings.BY_NAME[name].default))
    for name in settings.names(goes_to="setup")
]
_Setup: Any = make_dataclass("_Setup", _FIELDS, frozen=True)


@dataclass(frozen=True)
class Setup(_Setup):
    """Settings of a training: the formats of X, the gradient and the update, and what computes them.

    It has the settings of the table that go to a setup, the `options` of the optimizer by name, and `last`, which says
    what becomes of rows that fill no batch, as in `data.Batches`.

    With `shuffle` every batch is new, and each step pays for its slice, conversion and plan; with `ahead` these are
    done for the next batch on a thread parallel to the step, which then pays for what it waits. Without `shuffle`,
    batches repeat and are kept as prepared in the first epoch, at the price of their memory, as is a batch of all rows
    in any case. With `storage` csr data that is trained on dense is kept as CSR, and each batch is made dense; with
    `storage` uint8 or float16 it is kept dense in that type, in which every value must be exact; each batch is
    widened. A `fused` gradient is applied to the active rows while it is summed, and never held. A `lazy` update
    leaves the other rows alone; an `exact` one lets them catch up when they are next touched, and trains as the
    `standard` one does. On the `device` cuda batches are cut on the host and copied; weights and states stay there.
    With `execution` cuda_graph a whole step is one launch on cuda: for csr batches and a fused gradient, and for dense
    batches, with the products of cuBLAS. With `execution` epoch all batches of an epoch, or of 50 ms of it, are one
    compiled call on cpu, which reads rows where they stand: csr ones with any update, dense ones with the standard
    one; a `fused` gradient is computed there as a `row_sparse` one is. With `execution` dual so are csr or dense rows
    one by one, each by a step of dual variables (`kernels.epochs.dual`): it trains to what `sgd` with this decay and
    an `exact` update, which is the standard one of dense rows, comes to, without a learning rate; `batch_rows` only
    says of how many rows a loss is reported. With `intercept`, None for yes on cpu, a number for each output is added
    to the scores: its gradient is the column sums of the slope, and the optimizer steps all of it every time, without
    weight decay.
    """

    options: Mapping[str, float] = field(default_factory=dict)
    last: str = "keep"

    def changed(self, **settings: Any) -> "Setup":
        """Return a copy with other values of the named settings."""
        return replace(self, **settings)

    @property
    def has_intercept(self) -> bool:
        """Whether there is an intercept: as `intercept` says; if that is None, on cpu if the model may have one."""
        if not models.get(self.model).has_intercept:
            return False
        return self.device == "cpu" if self.intercept is None else self.intercept

    @property
    def forward_rule(self) -> products.Method:
        """The product method for X @ W; NoRuleError if format and engine do not go together."""
        return products.rule(self.format, False, engine=self.engine)

    @property
    def gradient_rule(self) -> products.Method:
        """The product method for X.T @ G (row-sparse for a fused gradient); NoRuleError if there is none."""
        result = "row_sparse" if self.gradient == "fused" else self.gradient
        return products.rule(self.format, True, result, self.engine)


def impossible_reason(setup: Setup) -> str:
    """Return why the settings do not go together, as a sentence with what to change; "" if they do."""
    for name in ("device", "execution", "storage"):
        value, allowed = getattr(setup, name), settings.BY_NAME[name].allowed
        if value not in allowed:
            return unknown_name(name, value, allowed)
    try:
        _ = setup.forward_rule, setup.gradient_rule
    except products.NoRuleError as error:
        return str(error)
    if setup.update in ("lazy", "exact") and setup.gradient == "dense":
        word = "A lazy" if setup.update == "lazy" else "An exact"
        return f"{word} update changes the rows that a row_sparse gradient names; a dense gradient names none."
    if reason := _why_not_held(setup):
        return reason
    reason = _why_not_fused(setup) if setup.gradient == "fused" else ""
    reason = reason or _why_not_these_options(setup)
    reason = reason or (_why_not_on_cuda(setup) if setup.device == "cuda" else "")
    reason = reason or (multiple_trainers_reason(setup, setup.trainers) if setup.trainers != 1 else "")
    reason = reason or (_why_no_graph(setup) if setup.execution == "cuda_graph" else "")
    if not reason and setup.execution == "epoch":
        is_dense, what = setup.format == "dense", "Dense epochs" if setup.format == "dense" else "Epochs"
        needed = DENSE_IN_CALLS if is_dense else IN_CALLS
        reason = _why_no_calls(setup, f"{what} in one call have", "Epochs in one call are for", needed)
    return reason or (_why_no_dual(setup) if setup.execution == "dual" else "")


MOST_POSSIBLE = 1000
"""Combinations of settings that are remembered as possible, at most."""

_possible: set[tuple] = set()
"""Settings, as `_key_of` returns them, that go together: trainings are often begun with those of one before."""


def _key_of(setup: Setup) -> tuple:
    """Return what `impossible_reason` depends on: the settings with their types, the names of options, any decay."""
    known = vars(setup).copy()
    options, settings = known.pop("options"), tuple(known.values())
    return settings, tuple(map(type, settings)), id(models.get(setup.model)), tuple(options), bool(options.get("decay"))


def require_possible(setup: Setup, model: Model, width: int) -> None:
    """Raise SetupError for settings, or a width, that do not go together; OptimizerError for unfit options."""
    optimizers.get(setup.optimizer).resolve(setup.options)
    key = _key_of(setup)
    if key not in _possible:
        if reason := impossible_reason(setup):
            raise SetupError(reason)
        if len(_possible) < MOST_POSSIBLE:
            _possible.add(key)
    if not model.allows(width):
        raise SetupError(f"The {model.name} model has {model.widths}; asked for was width {width}.")


def _why_not_these_options(setup: Setup) -> str:
    """Return why model options or intercept do not go with the model, as a sentence; "" if they do."""
    model = models.get(setup.model)
    try:
        model.resolve(setup.model_options)
    except models.ModelError as error:
        return str(error)
    if setup.intercept and not model.has_intercept:
        return f"The {model.name} model has no intercept, which would change no order; leave it out."
    return ""


def _why_not_held(setup: Setup) -> str:
    """Return why data cannot be held as the setting `storage` asks, with what to change; "" if it can."""
    if setup.storage == "same":
        return ""
    if setup.format != "dense":
        return (
            f"storage {setup.storage} is for data that is trained on dense; format {setup.format} is held as it is: "
            "take storage same, or format dense."
        )
    if setup.device != "cpu":
        return f"Data is held as {setup.storage} on cpu alone; on {setup.device} take storage same."
    model = models.get(setup.model)
    if model.sampler is not None or not model.rows_apart:
        return f"The {model.name} model completes its batches from all rows: take storage same."
    return ""


def _why_not_fused(setup: Setup) -> str:
    """Return why the setup cannot have a fused gradient, as a sentence; "" if it can."""
    if setup.update == "standard":
        return "A fused gradient is applied to the active rows as it is summed; its update is lazy or exact."
    if not setup.gradient_rule.plan:
        return f"A fused gradient is summed by a batch plan, which {setup.format} has none of; csr and coo have."
    return ""


def _why_not_on_cuda(setup: Setup) -> str:
    """Return why the setup cannot train on a CUDA device, as a sentence; "" if it can."""
    if (setup.format, setup.engine) not in ON_CUDA:
        known = ", ".join(f"{format} by {engine}" for format, engine in sorted(ON_CUDA))
        return f"On cuda no {setup.format} trains by engine {setup.engine}; there is: {known}."
    if not (model := models.get(setup.model)).is_product:
        return not_on_cuda(model)
    if setup.has_intercept:
        return "Models with an intercept do not train on cuda yet: take device cpu, or give X a column of ones."
    if setup.update == "exact":
        return "An exact update keeps what rows have missed on the host: it runs on cpu; cuda has standard and lazy."
    return ""


def not_on_cuda(model: Model) -> str:
    """Return the sentence that a model does not train on a CUDA device."""
    return f"The {model.name} model has no steps on cuda yet: models whose scores are X @ W train there."


def _why_no_graph(setup: Setup) -> str:
    """Return why a step of the setup cannot be one CUDA graph, as a sentence; "" if it can."""
    if setup.format not in IN_GRAPH:
        return f"A step in one graph has format {' or '.join(IN_GRAPH)}; with format {setup.format} execution is step."
    choices = IN_GRAPH[setup.format]
    if wrong := [name for name, choice in choices.items() if getattr(setup, name) != choice]:
        needed = ", ".join(f"{name} {choices[name]}" for name in wrong)
        came = f"{wrong[0]} {getattr(setup, wrong[0])}"
        return f"A step in one graph of format {setup.format} has {needed}; with {came} execution is step."
    if (loss := models.get(setup.model).loss) not in LOSSES:
        return f"A step in one graph has the loss {', '.join(LOSSES)}; for {loss}, execution is step."
    if setup.device != "cuda":
        return "A step in one graph runs on a CUDA device; on cpu execution is step."
    return ""


def _why_no_calls(setup: Setup, what: str, are: str, needed: Mapping[str, Any] = IN_CALLS) -> str:
    """Return why epochs cannot be compiled calls with the settings `needed`, as a sentence; "" if they can.

    `what` and `are` begin the sentences.
    """
    if setup.execution == "epoch" and setup.gradient == "fused":  # a call sums and applies gradients in one pass
        needed = {**needed, "gradient": "fused"} if setup.format != "dense" else needed
    for name, choice in needed.items():
        if (value := getattr(setup, name)) != choice:
            return f"{what} {_words(needed)}; with {_words({name: value})} execution is step."
    if not _goes_into_calls(models.get(setup.model)):
        known = ", ".join(name for name in models.names() if _goes_into_calls(models.get(name)))
        return f"{are} {known}; for {setup.model}, execution is step."
    return ""


def _why_no_dual(setup: Setup) -> str:
    """Return why the setup cannot be trained by dual ascent, as a sentence; "" if it can."""
    is_dense = setup.format == "dense"
    needed = DENSE_IN_CALLS if is_dense else IN_CALLS
    what = "Dual ascent on dense rows has" if is_dense else "Dual ascent has"
    if reason := _why_no_calls(setup, what, "Dual ascent is for", needed):
        return reason
    if setup.storage not in ("same", "csr"):
        return f"Dual ascent reads values of the weights' type: storage {setup.storage} needs execution step or epoch."
    update = "standard" if is_dense else "exact"
    if setup.optimizer != "sgd" or setup.update != update:
        return (
            f"Dual ascent trains what sgd with an exact update does: take optimizer sgd and update {update}; with "
            f"{setup.optimizer} and {setup.update} execution is step or epoch."
        )
    if not setup.options.get("decay"):
        return "Dual ascent needs a decay above 0, which the weights are divided by: 1e-4, for one, or 1 / (C rows)."
    if others := sorted(set(setup.options) - {"decay"}):
        return f"Dual ascent has steps of its own length and takes the decay alone: leave {', '.join(others)} out."
    return ""


def _goes_into_calls(model: Model) -> bool:
    """Return whether the compiled epochs support a model."""
    return model.is_product and model.sampler is None and loss_blocks.has_block(model.loss)


def _words(choices: Mapping[str, Any]) -> str:
    """Return settings {name: value} as text, "name value, ..."; True flags as "name", False ones as "nothing name"."""
    said = {
        name: {True: name, False: f"nothing {name}"}.get(value, f"{name} {value}") for name, value in choices.items()
    }
    return ", ".join(said.values())


COMPLETED = ("engine", "gradient", "update")
"""Settings that are completed, in the order in which they are chosen."""

DECIDING = ("format", "device", "execution", "model", "intercept")
"""Settings that are never completed, on which it depends what suits."""

USUAL = {name: table.BY_NAME[name].default for name in (*COMPLETED, *DECIDING)}


def complete_settings(settings: Mapping[str, Any], fastest: bool = False) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return (settings with engine, gradient and update filled in, notes about choices other than the defaults).

    The defaults are those of `Setup`; if they do not go with what is given, or with `fastest`, the first that do are
    taken: the format's own engine, then a gradient of the active rows, then a lazy update. If nothing fits, only the
    engine is added, and whoever validates the settings reports why.
    """
    deciding = tuple(settings.get(name, USUAL[name]) for name in DECIDING)
    given = tuple(settings.get(name) for name in COMPLETED)
    chosen = _choose_settings(deciding, given, fastest)
    if chosen is None:
        return {"engine": products.default_engine(deciding[0]), **settings}, ()
    added = {name: value for name, value in zip(COMPLETED, chosen, strict=True) if settings.get(name) is None}
    is_usual = fastest or all(value == USUAL[name] for name, value in added.items())
    named = ", ".join(
        f"{name} = {settings[name]}" for name in (*DECIDING, *COMPLETED) if settings.get(name) is not None
    )
    what = ", ".join(f"{name} {value}" for name, value in added.items())
    return {**settings, **added}, () if is_usual else (f"{named}: {what} completed",)


def with_epoch_calls(setup: Setup) -> Setup:
    """Return the setup with epochs as compiled calls if possible, else the setup itself.

    >>> with_epoch_calls(Setup(update="lazy")).execution, with_epoch_calls(Setup(format="coo")).execution
    ('epoch', 'step')
    """
    calls = setup.changed(execution="epoch", gradient="dense" if setup.format == "dense" else "row_sparse")
    return calls if setup.execution == "step" and not impossible_reason(calls) else setup


@functools.lru_cache
def _choose_settings(deciding: tuple, given: tuple, fastest: bool) -> tuple | None:
    """Return (engine, gradient, update): values of `given`, with None replaced by the first valid combination; cached.

    None if there is no valid one. `deciding` are the values of `DECIDING`; with `fastest` the fastest combinations are
    tried before the defaults.
    """
    setup = Setup(**dict(zip(DECIDING, deciding, strict=True)))
    if setup.execution == "cuda_graph":  # on cpu it means something, too, and gives a row that says what there is not
        setup = setup.changed(device="cuda")
    if setup.execution == "dual":  # the others that it asks for are said by whoever checks the settings
        setup = setup.changed(optimizer="sgd", options={"decay": 1.0})
    own = products.default_engine(setup.format)
    engines = (own, *(engine for engine in products.ENGINES if engine != own))
    usual = tuple(value or USUAL[name] for name, value in zip(COMPLETED, given, strict=True))
    gradients = _gradients(given, fastest and setup.execution != "epoch")  # an epoch is fused whatever it is called
    candidates = itertools.product(engines, gradients, ("lazy", *table.BY_NAME["update"].allowed))
    for chosen in candidates if fastest else (usual, *candidates):
        is_as_given = all(value in (None, choice) for value, choice in zip(given, chosen, strict=True))
        if is_as_given and not impossible_reason(replace(setup, **dict(zip(COMPLETED, chosen, strict=True)))):
            return chosen
    return None


def _gradients(given: tuple, fastest: bool) -> tuple[str, ...]:
    """Return the gradient formats in the order to try; `given` are (engine, gradient, update) or None each.

    Dense is first for an update of all rows.
    """
    update = given[COMPLETED.index("update")]
    if update == "standard":
        return ("dense", *table.BY_NAME["gradient"].allowed)
    return ("fused", "row_sparse", "dense") if fastest else ("row_sparse", "fused", "dense")
