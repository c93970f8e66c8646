"""PyTorch: Bayesian personalised ranking, pairs of an item that a user has and one drawn of all."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from kernels.competitors.torch_sparse import pytorch
from workbench.bench.fit.contract import Candidate, Rows, Scorer, Value, register, settings_by_rate
from workbench.bench.fit.torch_loop import RIVAL


def steps(sparse: bool, rows: Rows, value: Value) -> Iterator[Scorer]:
    """Yield epochs over all pairs; the other item is drawn uniformly of all items, as tutorials do."""
    torch = pytorch()
    torch.manual_seed(rows.seed)
    users, items = rows.facts["fields"]
    pairs = torch.from_numpy(rows.x.indices.reshape(-1, 2)).long() - torch.tensor([0, users])
    p, q = (torch.nn.Embedding(count, rows.width, sparse=sparse) for count in (users, items))
    for table in (p, q):
        torch.nn.init.normal_(table.weight, std=0.1)
    optimizer = torch.optim.Adagrad([p.weight, q.weight], lr=value["rate"])
    done = 0
    while True:
        shuffled = pairs[torch.randperm(len(pairs))]
        for batch in shuffled.split(value["batch_rows"]):
            user, item = batch[:, 0], batch[:, 1]
            other = torch.randint(items, (len(batch),))
            optimizer.zero_grad()
            apart = (p(user) * (q(item) - q(other))).sum(1)
            (-torch.nn.functional.logsigmoid(apart).mean()).backward()
            optimizer.step()
            done += len(batch)
            if done >= rows.rows_point:
                done = 0
                yield partial(_scores, p.weight.detach().numpy(), q.weight.detach().numpy())


def _scores(p: np.ndarray, q: np.ndarray, users: np.ndarray) -> Any:
    """Return the scores of all items for the given users, [users, items]."""
    return p[users] @ q.T


for _sparse in (True, False):
    _name = f"PyTorch bpr, {'sparse' if _sparse else 'dense'} gradient"
    register(Candidate(_name, models=("bpr",), values=settings_by_rate, steps=partial(steps, _sparse), **RIVAL))
