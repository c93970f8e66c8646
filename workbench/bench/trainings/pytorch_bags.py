"""Models of sparse rows in PyTorch, of EmbeddingBag, trained by Adam, as its users write them.

The networks are those of `bench.fit`. With sparse gradients their tables are trained by SparseAdam, which is lazy, and
what is dense by Adam; without them all by Adam. Batches are cut by our loader, so that this library pays for no more
than its own work.
"""

from collections.abc import Iterator
from typing import Any

from kernels.rivals.torch_sparse import UNAVAILABLE, pytorch
from workbench import data
from workbench.bench.fit.contenders.pytorch import product, wide_and_deep
from workbench.bench.fit.contract import Scorer
from workbench.bench.fit.torch_loop import batch_of, scores
from workbench.bench.trainings import rows_of
from workbench.sweep.problem import Problem

__all__ = ["UNAVAILABLE", "train"]

NETWORKS = {"logistic": product, "embedding_mlp": wide_and_deep}


def train(
    problem: Problem,
    model: str = "logistic",
    sparse: bool = True,
    learning_rate: float = 0.001,
    options: str = "",
    batch_rows: int = 256,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[Scorer]:
    """Train `logistic` or `embedding_mlp` with these options by the log loss; after each epoch a scorer.

    `sparse` says whether the gradients of the tables are. ModuleNotFoundError where PyTorch is not installed.
    """
    if model not in NETWORKS:
        raise ValueError(f"model is {model!r}; it is {' or '.join(NETWORKS)}.")
    torch = pytorch()
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    module, forward = NETWORKS[model](rows_of(problem, model, 1, threads or 0, seed, options), sparse)
    optimizers = _optimizers(torch, module, sparse, learning_rate)
    loss = torch.nn.BCEWithLogitsLoss()
    batches = data.Batches(problem.x, problem.y, batch_rows, shuffle=True, seed=seed)
    epoch = 0
    while True:
        for batch in batches.epoch(epoch):
            for optimizer in optimizers:
                optimizer.zero_grad()
            found = forward(batch_of(batch.x, 0, batch.x.shape[0]))
            loss(found, torch.from_numpy(batch.labels["label"])).backward()
            for optimizer in optimizers:
                optimizer.step()
        epoch += 1
        yield lambda x: scores(forward, x)


def _optimizers(torch: Any, module: Any, sparse: bool, learning_rate: float) -> list[Any]:
    if not sparse:
        return [torch.optim.Adam(module.parameters(), lr=learning_rate)]
    tables = [one.weight for one in module.modules() if isinstance(one, torch.nn.EmbeddingBag)]
    others = [one for one in module.parameters() if not any(one is table for table in tables)]
    return [torch.optim.SparseAdam(tables, lr=learning_rate), torch.optim.Adam(others, lr=learning_rate)]
