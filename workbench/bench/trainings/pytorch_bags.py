"""Models of sparse rows in PyTorch, of EmbeddingBag, as its users write them: one batch after the other, Adam.

`logistic` is one bag, `embedding_mlp` the wide and deep network of the model of that name; starting deviations are the
same. With sparse gradients the bags are trained by SparseAdam, which is lazy, and what is dense by Adam; without them
all by Adam. Batches are cut by our loader, so that this library pays for no more than its own work.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from kernels.rivals.torch_sparse import UNAVAILABLE, pytorch
from workbench import data
from workbench.bench.trainings import Scorer
from workbench.models import glorot
from workbench.sweep.problem import Problem

__all__ = ["UNAVAILABLE", "train"]


def train(
    problem: Problem,
    model: str = "logistic",
    sparse: bool = True,
    learning_rate: float = 0.001,
    hidden: int = 64,
    batch_rows: int = 256,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[Scorer]:
    """Train `logistic` or `embedding_mlp`, of one layer of `hidden` units, by the log loss; after each epoch a scorer.

    `sparse` says whether the gradients of the bags are. ModuleNotFoundError where PyTorch is not installed.
    """
    torch = pytorch()
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    network = _network(torch, model, problem.x.shape[1], hidden, sparse)
    optimizers = _optimizers(torch, network, sparse, learning_rate)
    batches = data.Batches(problem.x, problem.y, batch_rows, shuffle=True, seed=seed)
    epoch = 0
    while True:
        for batch in batches.epoch(epoch):
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            scores = _scores(torch, network, batch.x)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, torch.from_numpy(batch.labels["label"]))
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        epoch += 1
        yield lambda x: _predicted(torch, network, x)


def _network(torch: Any, model: str, features: int, hidden: int, sparse: bool) -> Any:
    """The layers by name, in a ModuleDict."""
    if model not in ("logistic", "embedding_mlp"):
        raise ValueError(f"model is {model!r}; it is logistic or embedding_mlp.")
    nn, bag = torch.nn, {"mode": "sum", "include_last_offset": True, "sparse": sparse}
    layers = {"wide": nn.EmbeddingBag(features, 1, **bag)}
    nn.init.zeros_(layers["wide"].weight)
    if model == "embedding_mlp":
        layers |= {"deep": nn.EmbeddingBag(features, hidden, **bag), "out": nn.Linear(hidden, 1)}
        nn.init.normal_(layers["deep"].weight, std=0.1)
        nn.init.normal_(layers["out"].weight, std=glorot(hidden, 1))
    network = nn.ModuleDict(layers)
    network.register_parameter("bias", nn.Parameter(torch.zeros(1)))
    network.register_parameter("shift", nn.Parameter(torch.zeros(hidden)))
    return network


def _optimizers(torch: Any, network: Any, sparse: bool, learning_rate: float) -> list[Any]:
    if not sparse:
        return [torch.optim.Adam(network.parameters(), lr=learning_rate)]
    bags = [network[name].weight for name in ("wide", "deep") if name in network]
    others = [one for one in network.parameters() if not any(one is bag for bag in bags)]
    return [torch.optim.SparseAdam(bags, lr=learning_rate), torch.optim.Adam(others, lr=learning_rate)]


def _scores(torch: Any, network: Any, x: scipy.sparse.csr_array) -> Any:
    """Scores [R, 1] of a batch; its arrays are shared."""
    indices, offsets, values = map(torch.from_numpy, (x.indices, x.indptr, x.data))
    scores = network["wide"](indices, offsets, per_sample_weights=values) + network.bias
    if "deep" not in network:
        return scores
    hidden = network["deep"](indices, offsets, per_sample_weights=values) + network.shift
    return scores + network["out"](torch.relu(hidden))


def _predicted(torch: Any, network: Any, x: scipy.sparse.csr_array) -> np.ndarray:
    with torch.no_grad():
        return _scores(torch, network, x).numpy()
