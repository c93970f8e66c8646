"""How to train, and which settings go together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench import optimizers
from workbench.models import Model
from workbench.ops import products

GRADIENTS = ("dense", "row_sparse", "fused")
UPDATES = ("standard", "lazy", "exact")
LAZY = {"standard": "off", "lazy": "on", "exact": "exact"}
"""What the optimizer calls each update."""


DEVICES = ("cpu", "cuda")
ON_CUDA = {("csr", "ours"), ("coo", "ours"), ("csr", "vendor"), ("dense", "dense")}
"""Formats and engines that train on a CUDA device; the vendor is cuSPARSE there, and dense is cuBLAS."""


class SetupError(ValueError):
    """Settings that do not go together; the message says which and what would."""


@dataclass(frozen=True)
class Setup:
    """How to train: what X, the gradient and the update are held in and computed by.

    With `shuffle` every batch is new, and each step pays for its slice, conversion and plan; with `ahead` these are
    done for the next batch on a thread beside the step, which then pays for what it waits. Without `shuffle`, batches
    repeat and are kept as prepared in the first epoch, at the price of their memory. A `fused` gradient is applied to
    the rows it touches while it is summed, and never held. A `lazy` update leaves the other rows alone; an `exact` one
    lets them catch up when they are next touched, and trains as the `standard` one does. On the `device` cuda batches
    are cut on the host and copied; weights and states stay there.
    """

    model: str = "softmax"
    format: str = "csr"
    gradient: str = "row_sparse"
    update: str = "lazy"
    engine: str = "ours"
    optimizer: str = "sgd"
    options: Mapping[str, float] = field(default_factory=dict)
    batch_rows: int = 256
    shuffle: bool = True
    ahead: bool = False
    last: str = "keep"
    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"

    @property
    def forward_rule(self) -> products.Row:
        """The rule of X @ W."""
        return products.rule(self.format, False, engine=self.engine)

    @property
    def gradient_rule(self) -> products.Row:
        """The rule of X.T @ G; for a fused gradient that of its rows."""
        result = "row_sparse" if self.gradient == "fused" else self.gradient
        return products.rule(self.format, True, result, self.engine)


def why_impossible(setup: Setup) -> str:
    """Why the format, engine, gradient and update do not go together, or "" when they do."""
    if setup.device not in DEVICES:
        return f"There is no device {setup.device!r}; there is: {', '.join(DEVICES)}."
    try:
        _ = setup.forward_rule, setup.gradient_rule
    except products.NoRuleError as error:
        return str(error)
    if setup.update in ("lazy", "exact") and setup.gradient == "dense":
        word = "A lazy" if setup.update == "lazy" else "An exact"
        return f"{word} update changes the rows that a row_sparse gradient names; a dense gradient names none."
    not_fused = _why_not_fused(setup) if setup.gradient == "fused" else ""
    return not_fused or (_why_not_on_cuda(setup) if setup.device == "cuda" else "")


def refuse_impossible(setup: Setup, model: Model, width: int) -> None:
    """`SetupError` for settings that do not go together, `OptimizerError` for options that do not fit."""
    optimizers.get(setup.optimizer).resolve(setup.options)
    if reason := why_impossible(setup):
        raise SetupError(reason)
    if not model.allows(width):
        raise SetupError(f"The {model.name} model has {model.widths}; asked for was width {width}.")


def _why_not_fused(setup: Setup) -> str:
    if setup.update == "standard":
        return "A fused gradient is applied as it is summed, to the rows it touches; its update is lazy or exact."
    if not setup.gradient_rule.plan:
        return f"A fused gradient is summed by a batch plan, which {setup.format} has none of; csr and coo have."
    return ""


def _why_not_on_cuda(setup: Setup) -> str:
    if (setup.format, setup.engine) not in ON_CUDA:
        known = ", ".join(f"{format} by {engine}" for format, engine in sorted(ON_CUDA))
        return f"On cuda no {setup.format} trains by engine {setup.engine}; there is: {known}."
    if setup.update == "exact":
        return "An exact update keeps what rows have missed on the host: it runs on cpu; cuda has standard and lazy."
    return ""
