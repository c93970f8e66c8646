"""The training loop of PyTorch that its candidates share: shuffled once an epoch, cut into batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.competitors.torch_sparse import INSTALL, pytorch
from benchmarks.fit.candidates import Candidate, Rows, Scorer, Value, register, settings_by_decay, settings_by_rate

# Dense rows for competitors: the same training, on X as a dense array, if that takes few enough bytes.
#
# What is good for dense loops of ours is good for those of others: on data of few columns a dense array may be the
# faster input of a library, and some libraries learn better from it (scikit-learn's SGD slows the intercept of sparse
# rows). Each training of a competitor that can take dense rows has a second candidate with them, tried with as many
# settings; the faster of the two counts. Making the dense array is timed, as it is for ours.


DENSE_MOST = 16
"""Bytes of X dense by those of X csr up to which competitors try dense rows: a density of about 3 % in float32."""


def bytes_csr(rows: Rows) -> int:
    """Return the bytes of X in CSR form: data, indices and indptr."""
    return rows.x.data.nbytes + rows.x.indices.nbytes + rows.x.indptr.nbytes


def why_too_sparse(rows: Rows) -> str:
    """Return why no competitor tries these rows dense (over 16 times the bytes of CSR), or "" if it does."""
    times = rows.bytes_dense / max(bytes_csr(rows), 1)
    if times <= DENSE_MOST:
        return ""
    return f"X dense takes {times:,.0f} times the bytes of CSR; competitors try it up to {DENSE_MOST} times."


def densify(rows: Rows, dtype: str) -> Rows:
    """Return the rows with X as a new dense array [R, D] of a data type, C order."""
    return replace(rows, x=rows.x.toarray().astype(dtype, copy=False))


def register_both(candidate: Candidate, dtype: str = "float32") -> None:
    """Register a competitor's training, and the same on dense rows of a data type."""
    register(candidate)
    register(densify_candidate(candidate, dtype))


def densify_candidate(candidate: Candidate, dtype: str = "float32") -> Candidate:
    """Return a candidate that trains as this one does, on rows made dense with a data type; making them is timed."""
    steps, refit = candidate.steps, candidate.refit

    def dense_steps(rows: Rows, value: Value) -> Iterator[Scorer]:
        """Yield the scorers of the candidate's stepwise training on rows made dense."""
        assert steps is not None
        yield from steps(densify(rows, dtype), value)

    def dense_refit(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
        """Fit rows made dense for at most so many iterations; return (scorer, whether it converged)."""
        assert refit is not None
        return refit(densify(rows, dtype), value, iterations)

    return replace(
        candidate,
        name=f"{candidate.name}, dense rows",
        steps=dense_steps if steps else None,
        refit=dense_refit if refit else None,
        bytes_needed=lambda rows: (
            rows.bytes_dense * np.dtype(dtype).itemsize // rows.x.dtype.itemsize + candidate.bytes_needed(rows)
        ),
        why_not=lambda rows: candidate.why_not(rows) or why_too_sparse(rows),
    )


OPTIMIZERS = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam"}
COMPETITOR: dict[str, Any] = {"side": "competitor", "needs": "torch", "install": INSTALL}
LOSSES = {"logistic": "BCEWithLogitsLoss", "softmax": "CrossEntropyLoss", "squared": "MSELoss"}
"""PyTorch's loss by the name of ours."""


@dataclass(frozen=True)
class Batch:
    """Rows as an EmbeddingBag takes them: `ids` and `values` [z], `offsets` [R + 1]."""

    ids: Any
    values: Any
    offsets: Any

    @property
    def rows(self) -> int:
        """Number of rows R of the batch."""
        return len(self.offsets) - 1

    def row_of(self) -> Any:
        """Return the row index of each stored entry as a tensor, int64 [z]."""
        torch = pytorch()
        return torch.repeat_interleave(torch.arange(self.rows), self.offsets.diff())


def batch_of(x: Any, start: int, stop: int) -> Any:
    """Return rows `start` to `stop` of X csr as a `Batch`, or of a dense X as a tensor [R, D].

    Nothing is copied except the offsets.
    """
    torch = pytorch()
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x[start:stop])
    first, last = x.indptr[start], x.indptr[stop]
    ids, values = torch.from_numpy(x.indices[first:last]), torch.from_numpy(x.data[first:last])
    return Batch(ids, values, torch.from_numpy(x.indptr[start : stop + 1] - first))


def bag(rows: Rows, width: int, sparse: bool, deviation: float = 0.0) -> Any:
    """Return an EmbeddingBag [D, width] that sums weighted rows; initially 0, or normal with `deviation`.

    `sparse` makes its gradient sparse.
    """
    torch = pytorch()
    table = torch.nn.EmbeddingBag(rows.x.shape[1], width, mode="sum", include_last_offset=True, sparse=sparse)
    torch.nn.init.normal_(table.weight, std=deviation) if deviation else torch.nn.init.zeros_(table.weight)
    return table


def look_up(table: Any, batch: Batch) -> Any:
    """Return X @ W of a batch, [R, width], from an EmbeddingBag with the table W."""
    return table(batch.ids, batch.offsets, per_sample_weights=batch.values)


Net = Callable[[Rows, bool], tuple[Any, Callable[[Any], Any]]]
"""Makes of rows, and whether gradients are sparse, the module and what gives its scores [R, N] of a batch, which is a
tensor if the rows are dense."""


def optimizers_of(module: Any, value: Value, sparse: bool) -> list[Any]:
    """Return the optimizers of a module for a setting: one, or for Adam with sparse tables SparseAdam and Adam.

    SparseAdam takes the tables alone, and Adam all other parameters. `value` has `optimizer`, `rate`, `batch_rows` and
    possibly `decay`.
    """
    torch = pytorch()
    if value["optimizer"] != "adam" or not sparse:
        made, decay = getattr(torch.optim, OPTIMIZERS[value["optimizer"]]), value.get("decay", 0.0)
        return [made(parameters_of(module, decay), lr=value["rate"], weight_decay=decay)]
    kinds = torch.nn.EmbeddingBag, torch.nn.Embedding
    tables = [module.weight for module in module.modules() if isinstance(module, kinds)]
    others = [parameter for parameter in module.parameters() if not any(parameter is table for table in tables)]
    lazy = torch.optim.SparseAdam(tables, lr=value["rate"])
    return [lazy, torch.optim.Adam(others, lr=value["rate"])] if others else [lazy]


def parameters_of(module: Any, decay: float) -> Any:
    """Return the parameters of a module for an optimizer; with decay in two groups, intercepts ("b") without it."""
    if not decay:
        return module.parameters()
    named = list(module.named_parameters())
    kept = [one for name, one in named if name.rpartition(".")[2] == "b"]
    decayed = [one for name, one in named if name.rpartition(".")[2] != "b"]
    return [{"params": decayed}, {"params": kept, "weight_decay": 0.0}] if kept else decayed


def train(rows: Rows, value: Value, net: Net, loss: str, sparse: bool) -> Iterator[Scorer]:
    """Train a net on CSR or dense rows without end; yield a scorer after every `rows_point` rows.

    `loss` is a key of LOSSES; `sparse` makes table gradients sparse. Rows are shuffled each epoch; preparing them is
    part of the timed training. `value` has `optimizer`, `rate`, `batch_rows` and possibly `decay`.
    """
    torch = pytorch()
    torch.manual_seed(rows.seed)
    module, forward = net(rows, sparse)
    measured = getattr(torch.nn, LOSSES[loss])()
    optimizers = optimizers_of(module, value, sparse)
    size, count, done = value["batch_rows"], rows.x.shape[0], 0
    generator = np.random.default_rng(rows.seed)
    while True:
        order = generator.permutation(count)
        x, y = rows.x[order], torch.from_numpy(rows.y[order])
        for start in range(0, count, size):
            stop = min(start + size, count)
            module.zero_grad()
            measured(forward(batch_of(x, start, stop)), y[start:stop]).backward()
            for optimizer in optimizers:
                optimizer.step()
            done += stop - start
            if done >= rows.rows_point:
                done = 0
                yield partial(scores, forward, isinstance(rows.x, np.ndarray))


def scores(forward: Callable[[Any], Any], is_dense: bool, x: Any) -> np.ndarray:
    """Return the scores of X csr as float32 [R, N], 4,096 rows at once, made dense first if `is_dense`."""
    torch, every = pytorch(), []
    with torch.no_grad():
        for start in range(0, x.shape[0], 4096):
            rows = x[start : start + 4096]
            every.append(forward(batch_of(rows.toarray() if is_dense else rows, 0, rows.shape[0])).numpy())
    return np.concatenate(every)


def register_dense(net: Net, loss: str, trained: tuple[str, ...], what: str) -> None:
    """Register a net that takes dense rows as the candidate "PyTorch `what`, dense rows" of the models `trained`."""

    def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
        """Yield the scorers of the net's training with dense gradients."""
        return train(rows, value, net, loss, sparse=False)

    register(
        densify_candidate(
            Candidate(f"PyTorch {what}", models=trained, values=settings_by_decay, steps=steps, **COMPETITOR)
        )
    )


def register_net(net: Net, loss: str, trained: tuple[str, ...], what: str = "") -> None:
    """Register a net twice, with sparse and with dense table gradients, for the models `trained`.

    `what` follows PyTorch's name, by default the first model.
    """
    for sparse in (True, False):
        kind = "sparse" if sparse else "dense"

        def steps(rows: Rows, value: Value, sparse: bool = sparse) -> Iterator[Scorer]:
            """Yield the scorers of the net's training, its table gradients sparse or dense."""
            return train(rows, value, net, loss, sparse)

        name = f"PyTorch {what or trained[0]}, {kind} gradient"
        values = settings_by_rate if sparse else settings_by_decay
        register(Candidate(name, models=trained, values=values, steps=steps, **COMPETITOR))
