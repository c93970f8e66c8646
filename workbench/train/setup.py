"""How to train, and which settings go together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench import optimizers
from workbench.ops import products

GRADIENTS = ("dense", "row_sparse", "fused")
UPDATES = ("standard", "lazy", "exact")
LAZY = {"standard": "off", "lazy": "on", "exact": "exact"}
"""What the optimizer calls each update."""


class SetupError(ValueError):
    """Settings that do not go together; the message says which and what would."""


@dataclass(frozen=True)
class Setup:
    """How to train: what X, the gradient and the update are held in and computed by.

    With `shuffle` every batch is new, and each step pays for its slice, conversion and plan; with `ahead` these are
    done for the next batch on a thread beside the step, which then pays for what it waits. Without `shuffle`, batches
    repeat and are kept as prepared in the first epoch, at the price of their memory. A `fused` gradient is applied to
    the rows it touches while it is summed, and never held. A `lazy` update leaves the other rows alone; an `exact` one
    lets them catch up when they are next touched, and trains as the `standard` one does.
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
    try:
        _ = setup.forward_rule, setup.gradient_rule
    except products.NoRuleError as error:
        return str(error)
    if setup.update in ("lazy", "exact") and setup.gradient == "dense":
        word = "A lazy" if setup.update == "lazy" else "An exact"
        return f"{word} update changes the rows that a row_sparse gradient names; a dense gradient names none."
    return _why_not_fused(setup) if setup.gradient == "fused" else ""


def _why_not_fused(setup: Setup) -> str:
    if setup.update == "standard":
        return "A fused gradient is applied as it is summed, to the rows it touches; its update is lazy or exact."
    if not setup.gradient_rule.plan:
        return f"A fused gradient is summed by a batch plan, which {setup.format} has none of; csr and coo have."
    if optimizers.get(setup.optimizer).fused is None:
        return f"The optimizer {setup.optimizer} has no fused rule."
    return ""
