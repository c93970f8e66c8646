"""PyTorch: X @ W by an EmbeddingBag or of dense rows, factorization machine, factors of two fields, wide and deep."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kernels.competitors.torch_sparse import pytorch
from workbench.bench.fit.contract import Rows
from workbench.bench.fit.torch_loop import Batch, bag, look_up, register_dense, register_net
from workbench.models import glorot, he

Made = tuple[Any, Callable[[Any], Any]]


def product(rows: Rows, sparse: bool) -> Made:
    """X @ W, plus b where the case has an intercept."""
    torch = pytorch()
    table, width = bag(rows, rows.width, sparse), rows.width
    parts = {"b": torch.nn.Parameter(torch.zeros(width))} if rows.has_intercept else {}
    module = torch.nn.ModuleDict({"w": table, "more": torch.nn.ParameterDict(parts)})
    if not rows.has_intercept:
        return module, partial(look_up, table)
    return module, lambda batch: look_up(table, batch) + module["more"]["b"]


def linear(rows: Rows, sparse: bool) -> Made:
    """X @ W of dense rows, plus b where the case has an intercept."""
    torch = pytorch()
    columns, width = rows.x.shape[1], rows.width
    w = torch.nn.Parameter(torch.zeros(columns, width))
    if not rows.has_intercept:
        return torch.nn.ParameterDict({"w": w}), lambda batch: batch @ w
    b = torch.nn.Parameter(torch.zeros(width))
    return torch.nn.ParameterDict({"w": w, "b": b}), lambda batch: torch.addmm(b, batch, w)


def machine(rows: Rows, sparse: bool) -> Made:
    """Return a factorization machine: half of the square of sums less the sum of squares, beside X @ w."""
    torch = pytorch()
    w, v = bag(rows, 1, sparse), torch.nn.Embedding(rows.x.shape[1], rows.width, sparse=sparse)
    torch.nn.init.normal_(v.weight, std=0.01)
    b = torch.nn.ParameterDict({"b": torch.nn.Parameter(torch.zeros(1))} if rows.has_intercept else {})

    def forward(batch: Batch) -> Any:
        terms = v(batch.ids) * batch.values[:, None]  # [z, K]
        of_row, zeros = batch.row_of(), torch.zeros(batch.rows, rows.width)
        sums, squares = zeros.index_add(0, of_row, terms), zeros.index_add(0, of_row, terms * terms)
        pairs = 0.5 * (sums * sums - squares).sum(1, keepdim=True)
        return look_up(w, batch) + pairs + (b["b"] if rows.has_intercept else 0.0)

    return torch.nn.ModuleList([w, v, b]), forward


def factors(rows: Rows, sparse: bool) -> Made:
    """Return biases, and the product of the factors of a row's user and item."""
    torch = pytorch()
    features, width = rows.x.shape[1], rows.width
    w, v = (torch.nn.Embedding(features, size, sparse=sparse) for size in (1, width))
    torch.nn.init.zeros_(w.weight)
    torch.nn.init.normal_(v.weight, std=0.1)
    b = torch.nn.ParameterDict({"b": torch.nn.Parameter(torch.zeros(1))} if rows.has_intercept else {})

    def forward(batch: Batch) -> Any:
        pair = batch.ids.reshape(-1, 2)  # user and item of each row
        both = v(pair)
        found = w(pair).sum(1) + (both[:, 0] * both[:, 1]).sum(1, keepdim=True)
        return found + b["b"] if rows.has_intercept else found

    return torch.nn.ModuleList([w, v, b]), forward


def wide_and_deep(rows: Rows, sparse: bool) -> Made:
    """X @ w plus a network over the sums of embeddings."""
    torch = pytorch()
    hidden, layers = rows.options["hidden"], rows.options["layers"]
    w, e = bag(rows, 1, sparse), bag(rows, hidden, sparse, deviation=0.1)
    c = torch.nn.Parameter(torch.zeros(hidden))
    deep = [torch.nn.Linear(hidden, hidden) for _ in range(layers - 1)]
    out = torch.nn.Linear(hidden, 1, bias=rows.has_intercept)
    for layer in deep:
        torch.nn.init.normal_(layer.weight, std=he(hidden))
        torch.nn.init.zeros_(layer.bias)
    torch.nn.init.normal_(out.weight, std=glorot(hidden, 1))

    def forward(batch: Batch) -> Any:
        signal = torch.relu(look_up(e, batch) + c)
        for layer in deep:
            signal = torch.relu(layer(signal))
        return look_up(w, batch) + out(signal)

    return torch.nn.ModuleList([w, e, *deep, out, torch.nn.ParameterList([c])]), forward


register_net(product, "logistic", ("logistic", "multilabel"), "EmbeddingBag")
register_net(product, "softmax", ("softmax",), "EmbeddingBag of classes")
register_net(product, "squared", ("linear",), "EmbeddingBag of numbers")
register_dense(linear, "logistic", ("logistic", "multilabel"), "Linear")
register_dense(linear, "softmax", ("softmax",), "Linear of classes")
register_dense(linear, "squared", ("linear",), "Linear of numbers")
register_net(machine, "squared", ("factorization_machine",))
register_net(machine, "logistic", ("factorization_machine_logistic",))
register_net(factors, "squared", ("matrix_factorization",))
register_net(wide_and_deep, "logistic", ("embedding_mlp",))
