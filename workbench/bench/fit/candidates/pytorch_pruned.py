"""PyTorch: a perceptron whose dense weight matrices have a mask, as `torch.nn.utils.prune` does it."""

from functools import partial
from typing import Any

import numpy as np

from kernels.competitors.torch_sparse import pytorch
from workbench import models
from workbench.bench.fit.contract import Candidate, Rows, register, settings_by_rate
from workbench.bench.fit.torch_loop import RIVAL, Batch, train
from workbench.models import patterns


def masked(rows: Rows, sparse: bool) -> tuple[Any, Any]:
    """Return the network of the model at a pattern drawn as ours is.

    Gradients are dense, and X is read by its entries.
    """
    torch = pytorch()
    model = models.get(rows.model)
    given = model.given(rows.x.shape[1], rows.width, rows.settings.get("model_options"), rows.facts)
    generator, held, masks = np.random.default_rng(rows.seed), torch.nn.ParameterDict(), {}
    for one in model.trained(given, rows.has_intercept):
        values = generator.normal(0.0, one.deviation, one.shape).astype(np.float32)
        if one.matrix:
            pattern = patterns.drawn(one.matrix, one.shape[0], generator)
            masks[one.name] = torch.from_numpy(pattern.matrix(np.ones_like(values)).toarray())
            values = pattern.matrix(values).toarray()
        held[one.name] = torch.nn.Parameter(torch.from_numpy(values))

    def forward(batch: Batch) -> Any:
        signal = _looked_up(held["w1"] * masks["w1"], batch)
        for layer in range(2, len(masks) + 1):
            signal = torch.relu(signal + held[f"c{layer - 1}"].T) @ (held[f"w{layer}"] * masks[f"w{layer}"])
        return signal + held["b"] if rows.has_intercept else signal

    return held, forward


def _looked_up(weights: Any, batch: Batch) -> Any:
    """Return the first layer's output: weighted sums of the active rows, [batch, hidden]."""
    bag = partial(pytorch().nn.functional.embedding_bag, mode="sum", include_last_offset=True)
    return bag(batch.ids, weights, batch.offsets, per_sample_weights=batch.values)


def _moves(rows: Rows) -> str:
    """Return the note that the competitor's mask is fixed if the model's pattern moves, else ""."""
    return "" if rows.options["pattern"] == "fixed" else "Its mask stays; the pattern of the model moves."


def bytes_needed(rows: Rows) -> int:
    """Return weights, mask, gradient and the history of AdaGrad of the first matrix."""
    hidden = int(str(rows.options["hidden"]).split("x")[0])
    return 4 * 4 * rows.x.shape[1] * hidden


register(
    Candidate(
        "PyTorch pruned_mlp, dense with a mask",
        models=("pruned_mlp",),
        values=settings_by_rate,
        steps=lambda rows, value: train(rows, value, masked, "softmax", sparse=False),
        bytes_needed=bytes_needed,
        why_not=_moves,
        **RIVAL,
    )
)
