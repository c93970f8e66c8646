"""PyTorch: products, factors, wide and deep models, personalised ranking, graphs, and pruned perceptrons."""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.competitors.torch_sparse import csr_tensor, pytorch
from benchmarks.fit.candidates import Candidate, Rows, Scorer, Value, register, settings_by_rate
from benchmarks.fit.torch_loop import (
    COMPETITOR,
    OPTIMIZERS,
    Batch,
    bag,
    look_up,
    register_dense,
    register_net,
    train,
)
from workbench import models
from workbench.formats.compressed import transposed
from workbench.models import glorot, he, patterns

Made = tuple[Any, Callable[[Any], Any]]


def intercept_of(rows: Rows, width: int) -> Made:
    """Return (module, function that adds b [width] to scores); neither does anything if the case has no intercept."""
    torch = pytorch()
    held = torch.nn.ParameterDict({"b": torch.nn.Parameter(torch.zeros(width))} if rows.has_intercept else {})
    return held, lambda scores: scores + held["b"] if rows.has_intercept else scores


def product(rows: Rows, sparse: bool) -> Made:
    """Return (module, function from a `Batch` to scores [R, N]): X @ W, plus b if the case has an intercept.

    `sparse` makes the gradient of the table sparse. `rows` has the training rows and the sizes of the model.
    """
    table, (b, with_intercept) = bag(rows, rows.width, sparse), intercept_of(rows, rows.width)
    return pytorch().nn.ModuleList([table, b]), lambda batch: with_intercept(look_up(table, batch))


def linear(rows: Rows, sparse: bool) -> Made:
    """Return (module, function from a dense tensor [R, D] to scores [R, N]): X @ W, plus b with an intercept.

    `sparse` is not used. `rows` has the training rows and the sizes of the model.
    """
    torch = pytorch()
    columns, width = rows.x.shape[1], rows.width
    w = torch.nn.Parameter(torch.zeros(columns, width))
    if not rows.has_intercept:
        return torch.nn.ParameterDict({"w": w}), lambda batch: batch @ w
    b = torch.nn.Parameter(torch.zeros(width))
    return torch.nn.ParameterDict({"w": w, "b": b}), lambda batch: torch.addmm(b, batch, w)


def machine(rows: Rows, sparse: bool) -> Made:
    """Return a factorization machine as (module, function from a `Batch` to scores [R, 1]).

    Scores are X @ w plus half of (square of sums - sum of squares) of the factors; `sparse` makes table gradients
    sparse. `rows` has the training rows and the sizes of the model.
    """
    torch = pytorch()
    w, v = bag(rows, 1, sparse), torch.nn.Embedding(rows.x.shape[1], rows.width, sparse=sparse)
    torch.nn.init.normal_(v.weight, std=0.01)
    b, with_intercept = intercept_of(rows, 1)

    def forward(batch: Batch) -> Any:
        """Return the scores [R, 1] of a batch."""
        terms = v(batch.ids) * batch.values[:, None]  # [z, K]
        of_row, zeros = batch.row_of(), torch.zeros(batch.rows, rows.width)
        sums, squares = zeros.index_add(0, of_row, terms), zeros.index_add(0, of_row, terms * terms)
        pairs = 0.5 * (sums * sums - squares).sum(1, keepdim=True)
        return with_intercept(look_up(w, batch) + pairs)

    return torch.nn.ModuleList([w, v, b]), forward


def factors(rows: Rows, sparse: bool) -> Made:
    """Return matrix factorization as (module, function from a `Batch` to scores [R, 1]).

    A row has two entries, user and item; scores are biases plus the product of their factors. `rows` has the training
    rows and the sizes of the model.
    """
    torch = pytorch()
    features, width = rows.x.shape[1], rows.width
    w, v = (torch.nn.Embedding(features, size, sparse=sparse) for size in (1, width))
    torch.nn.init.zeros_(w.weight)
    torch.nn.init.normal_(v.weight, std=0.1)
    b, with_intercept = intercept_of(rows, 1)

    def forward(batch: Batch) -> Any:
        """Return the score [R, 1] of each row's pair of user and item."""
        pair = batch.ids.reshape(-1, 2)  # user and item of each row
        both = v(pair)
        return with_intercept(w(pair).sum(1) + (both[:, 0] * both[:, 1]).sum(1, keepdim=True))

    return torch.nn.ModuleList([w, v, b]), forward


def wide_and_deep(rows: Rows, sparse: bool) -> Made:
    """Return (module, function from a `Batch` to scores [R, 1]): X @ w plus a network over the sum of embeddings.

    Sizes are the model's options `hidden` and `layers`; `sparse` makes table gradients sparse.
    """
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
        """Return the sum of the scores of the linear and of the deep part for a batch, [R, 1]."""
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


# PyTorch: Bayesian personalised ranking, pairs of an item that a user has and one drawn of all.


def steps(sparse: bool, rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train Bayesian personalised ranking without end; yield a scorer after every `rows_point` pairs.

    Each pair gets a random other item, drawn uniformly from all items, as tutorials do. `value` has `rate` (of AdaGrad)
    and `batch_rows`; `sparse` makes table gradients sparse.
    """
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
    """Return the scores of all items for the user indices `users`, [users, items], from factors p and q."""
    return p[users] @ q.T


for _sparse in (True, False):
    _name = f"PyTorch bpr, {'sparse' if _sparse else 'dense'} gradient"
    register(Candidate(_name, models=("bpr",), values=settings_by_rate, steps=partial(steps, _sparse), **COMPETITOR))


# PyTorch: a perceptron whose dense weight matrices have a mask, as `torch.nn.utils.prune` does it.


def masked_perceptron(rows: Rows, sparse: bool) -> tuple[Any, Any]:
    """Return a perceptron with masked dense weights as (parameters, function from a `Batch` to scores [R, N]).

    Masks and initial values are drawn as the project's model draws them. Gradients are dense; `sparse` is not used.
    `rows` has the training rows and the sizes of the model.
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
        """Return the scores [R, N] of a batch, with masked weights at 0."""
        signal = _look_up(held["w1"] * masks["w1"], batch)
        for layer in range(2, len(masks) + 1):
            signal = torch.relu(signal + held[f"c{layer - 1}"].T) @ (held[f"w{layer}"] * masks[f"w{layer}"])
        return signal + held["b"] if rows.has_intercept else signal

    return held, forward


def _look_up(weights: Any, batch: Batch) -> Any:
    """Return the weighted sums of a batch's rows of `weights` [D, hidden], as a tensor [R, hidden]."""
    bag = partial(pytorch().nn.functional.embedding_bag, mode="sum", include_last_offset=True)
    return bag(batch.ids, weights, batch.offsets, per_sample_weights=batch.values)


def _why_moving(rows: Rows) -> str:
    """Return why it cannot train the model (its mask is fixed and the model's pattern moves), else ""."""
    return "" if rows.options["pattern"] == "fixed" else "Its mask stays; the pattern of the model moves."


def bytes_needed(rows: Rows) -> int:
    """Return the bytes of weights, mask, gradient and AdaGrad history of the first matrix, float32."""
    hidden = int(str(rows.options["hidden"]).split("x")[0])
    return 4 * 4 * rows.x.shape[1] * hidden


register(
    Candidate(
        "PyTorch pruned_mlp, dense with a mask",
        models=("pruned_mlp",),
        values=settings_by_rate,
        steps=lambda rows, value: train(rows, value, masked_perceptron, "softmax", sparse=False),
        bytes_needed=bytes_needed,
        why_not=_why_moving,
        **COMPETITOR,
    )
)


# Graph convolution of two layers in full batches, its matrices as sparse CSR tensors (Kipf and Welling 2017).
#
# Both layers read the whole graph in each step; the loss is of the nodes trained on. A product has its transposed
# matrix ready for the gradient, made once and timed, which is faster than what autograd does with `A @ x`. The
# normalised adjacency is given to both, ours and PyTorch.


@functools.cache
def product_class() -> Any:
    """Return the autograd function class for sparse CSR @ dense; cached, since it needs PyTorch to be imported."""
    Function: Any = pytorch().autograd.Function

    class Product(Function):
        """Product `matrix @ dense` whose backward step takes the transpose that was built before."""

        @staticmethod
        def forward(ctx, matrix, turned, dense):
            """Return `matrix @ dense`; the transpose `turned` is kept for the backward step."""
            ctx.turned = turned
            return matrix @ dense

        @staticmethod
        def backward(ctx, gradient):
            """Return the gradient of each argument of `forward`; only that of `dense` is not None."""
            return None, None, ctx.turned @ gradient.contiguous()

    return Product


def both_ways(x: Any) -> Callable[[float], tuple[Any, Any]]:
    """Return a function of a dropout rate to (X, X transposed) as CSR tensors.

    Entries are dropped anew at each call.
    """
    torch = pytorch()
    places = x.copy()
    places.data = np.arange(x.nnz, dtype=np.float64)
    indptr, indices, order = transposed(places)
    order, values = torch.tensor(order.astype(np.int64)), torch.tensor(x.data)

    def made(rate: float) -> tuple[Any, Any]:
        """Return X and its transpose as CSR tensors after dropout of their entries with one mask."""
        kept = torch.nn.functional.dropout(values, rate)
        matrix = csr_tensor(x.indptr, x.indices, kept.numpy(), x.shape)
        return matrix, csr_tensor(indptr, indices, kept[order].numpy(), x.shape[::-1])

    return made


def features(rows: Rows) -> Any:
    """Return X csr of all nodes, its rows divided by their absolute sums if the option `rows_of_x` is "sum_1"."""
    x = rows.facts["graph"].x
    if rows.options["rows_of_x"] != "sum_1":
        return x
    sums = np.abs(x).sum(axis=1)
    scaled = x.copy()
    scaled.data /= np.repeat(np.where(sums > 0, sums, 1), np.diff(x.indptr)).astype(x.dtype)
    return scaled


def network(rows: Rows) -> tuple[Any, Callable[[bool], Any]]:
    """Return graph convolution as (parameters, function from `is_training` to scores [nodes, N]).

    `rows` has the training rows and the sizes of the model.
    """
    torch = pytorch()
    hidden, rate = rows.options["hidden"], rows.options["dropout"]
    product, x = product_class().apply, both_ways(features(rows))
    adjacency = both_ways(rows.facts["graph"].adjacency)(0.0)
    shapes = {"w": (rows.x.shape[1], hidden), "c": (hidden,), "out": (hidden, rows.width)}
    shapes |= {"b": (rows.width,)} if rows.has_intercept else {}
    held = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()})
    for name in ("w", "out"):
        torch.nn.init.normal_(held[name], std=glorot(*shapes[name]))
    whole = x(0.0)

    def forward(is_training: bool) -> Any:
        """Return the scores [nodes, N]; dropout of entries and units is active in training."""
        read = x(rate) if is_training and rate else whole
        units = torch.relu(product(*adjacency, product(*read, held["w"])) + held["c"])
        units = torch.nn.functional.dropout(units, rate, is_training)
        found = product(*adjacency, units @ held["out"])
        return found + held["b"] if rows.has_intercept else found

    return held, forward


def graph_steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Train on full batches without end; yield after each step a scorer of the nodes that follow the trained ones.

    `value` has `optimizer` and `rate`.
    """
    torch = pytorch()
    torch.manual_seed(rows.seed)
    held, forward = network(rows)
    optimizer = getattr(torch.optim, OPTIMIZERS[value["optimizer"]])(held.parameters(), lr=value["rate"])
    y, count = torch.from_numpy(rows.y.reshape(-1).astype(np.int64)), rows.x.shape[0]

    def scores(x: Any) -> np.ndarray:
        """Return the scores [rows of x, N] of the held-out nodes; only the number of rows of `x` is used."""
        with torch.no_grad():
            return forward(False)[count : count + x.shape[0]].numpy()

    while True:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(True)[:count], y).backward()
        optimizer.step()
        yield scores


def _why_drawn(rows: Rows) -> str:
    """Return why it cannot train the model (it reads all neighbours and the model samples them), else ""."""
    return "It reads all neighbours; the model draws some of them." if rows.options["neighbors"] else ""


_NAME, _MODELS = "PyTorch graph_convolution, sparse CSR", ("graph_convolution",)
register(Candidate(_NAME, models=_MODELS, values=settings_by_rate, steps=graph_steps, why_not=_why_drawn, **COMPETITOR))
