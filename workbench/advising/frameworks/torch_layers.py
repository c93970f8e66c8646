"""First layers of a model of PyTorch: Linear on dense rows, torch.sparse, EmbeddingBag, and ours."""

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch

from kernels.registry import unknown_name
from workbench.advising.frameworks.first_layer import RATE, REST, LayerWay, Rows, Training, why_no_dense
from workbench.bridges import pytorch as bridge
from workbench.sweeps.spec import SpecError

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, torch.optim.SGD, "LazySGD"),
    "adagrad": (torch.optim.Adagrad, torch.optim.Adagrad, "LazyAdagrad"),
    "adam": (torch.optim.Adam, torch.optim.SparseAdam, "LazyAdam"),
}
"""The optimizer of dense gradients, that of sparse ones, and ours."""
DTYPES = {torch.float32: np.float32, torch.float64: np.float64}
"""Types of weights that sparse rows are multiplied with, and those of the rows."""
NOT_LAZY = ("sgd", "adagrad")
"""Optimizers that leave a row without a gradient as it is."""


class SparseTensorLinear(torch.nn.Module):
    """torch.nn.Linear for CSR tensors, by torch.sparse.mm; the gradient of the weight [D, N] is dense."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        """Copy the weight, transposed, and the bias of a Linear."""
        super().__init__()
        self.weight = torch.nn.Parameter(linear.weight.detach().T.contiguous())
        self.bias = None if linear.bias is None else torch.nn.Parameter(linear.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight + bias of a CSR tensor [R, D]."""
        product = torch.sparse.mm(x, self.weight)
        return product if self.bias is None else product + self.bias


class BagLinear(torch.nn.Module):
    """torch.nn.Linear for (column indices, row offsets, values) of CSR rows, by torch.nn.EmbeddingBag."""

    def __init__(self, linear: torch.nn.Linear, sparse: bool) -> None:
        """Copy the weight, transposed, and the bias of a Linear; `sparse` makes the gradient one of active rows."""
        super().__init__()
        self.bag = torch.nn.EmbeddingBag.from_pretrained(
            linear.weight.detach().T.contiguous(), freeze=False, mode="sum", sparse=sparse, include_last_offset=True
        )
        self.bias = None if linear.bias is None else torch.nn.Parameter(linear.bias.detach().clone())

    def forward(self, x: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Return the scores [R, N] of a batch (ids, offsets, values)."""
        ids, offsets, values = x
        product = self.bag(ids, offsets, per_sample_weights=values)
        return product if self.bias is None else product + self.bias


class _Constant(torch.nn.Module):
    """In place of the first layer: its output for a batch, a leaf that takes a gradient, whatever comes in."""

    def __init__(self, outputs: int, dtype: torch.dtype, rows: int) -> None:
        """Draw the output [rows, outputs]."""
        super().__init__()
        self.output = torch.randn(rows, outputs, dtype=dtype, requires_grad=True)

    def forward(self, *_: Any) -> torch.Tensor:
        """Return the output, its gradient removed."""
        self.output.grad = None
        return self.output


class _Held(torch.nn.Module):
    """In place of an EmbeddingBag: a layer that takes `given`, whatever the model passes on."""

    def __init__(self, layer: torch.nn.Module) -> None:
        """Keep the layer."""
        super().__init__()
        self.layer, self.given = layer, None

    def forward(self, *_: Any, **__: Any) -> torch.Tensor:
        """Return the layer's output of `given`."""
        return self.layer(self.given)


def as_dense(x: Any) -> torch.Tensor:
    """Return CSR rows as one dense tensor."""
    return torch.from_numpy(x.toarray())


def as_tensor(x: Any) -> torch.Tensor:
    """Return CSR rows as one CSR tensor."""
    parts = map(torch.from_numpy, (x.indptr, x.indices, x.data))
    return torch.sparse_csr_tensor(*parts, size=x.shape, check_invariants=False)


def as_bags(x: Any) -> tuple:
    """Return CSR rows as (ids, offsets, values), the last offset included."""
    return tuple(map(torch.from_numpy, (x.indices, x.indptr, x.data)))


@final
class ModuleTraining(Training):
    """Steps of a copy of the module with another first layer."""

    def __init__(
        self,
        module: torch.nn.Module,
        layer: str,
        optimizers: Sequence[Any],
        batch: Callable[[np.ndarray], tuple],
        loss: Callable[[Any, Any], Any],
        y: torch.Tensor,
        is_transposed: bool,
    ) -> None:
        """Keep the module in training mode; `layer` is the path of its first layer, `batch(rows)` its arguments.

        `is_transposed` tells that the weight of the layer is [N, D].
        """
        self.module, self.layer, self.optimizers = module.train(), layer, optimizers
        self.batch, self.loss, self.y, self.is_transposed = batch, loss, y, is_transposed

    def _backward(self, rows: np.ndarray) -> Any:
        """Compute the gradients of a batch and return its loss as a tensor."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.module(*self.batch(rows)), self.y[torch.from_numpy(rows)])
        loss.backward()
        return loss

    def step(self, rows: np.ndarray) -> float:
        """Train on the rows with these indices; return the loss before the update."""
        loss = self._backward(rows)
        for optimizer in self.optimizers:
            optimizer.step()
        return float(loss.detach())

    def gradients(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return {parameter: gradient} of a batch, that of the first layer's weight as [D, N]."""
        torch.manual_seed(0)
        self._backward(rows)
        for optimizer in self.optimizers:
            if isinstance(optimizer, bridge.LazyOptimizer):
                optimizer.settle()
        own = set(map(id, self.module.get_submodule(self.layer).parameters()))
        found = {}
        for name, parameter in self.module.named_parameters():
            gradient = parameter.grad
            if gradient is None:
                continue
            array = gradient.to_dense().numpy().copy()
            if id(parameter) in own and array.ndim == 2:
                self.bytes_gradient = _bytes_of(gradient)
                name, array = "the first layer", array.T if self.is_transposed else array
            elif id(parameter) in own:
                name = "the bias of the first layer"
            found[name] = array
        torch.manual_seed(0)
        return found


def _bytes_of(gradient: torch.Tensor) -> int:
    """Return the bytes of a gradient, those of indices included."""
    if gradient.layout is torch.strided:
        return gradient.numel() * gradient.element_size()
    values, places = gradient._values(), gradient._indices()
    return values.numel() * values.element_size() + places.numel() * places.element_size()


def first_layer_of(module: torch.nn.Module, features: int) -> tuple[str, torch.nn.Module]:
    """Return (path, layer) of the Linear that takes the rows as they come in, or of the EmbeddingBag of the features.

    Raises SpecError if there is none.
    """
    if any(parameter.device.type != "cpu" for parameter in module.parameters()):
        raise SpecError("The model is not on the CPU; the first layers are timed there.\nType model.cpu().")
    copied = copy.deepcopy(module).train()  # dropout before the layer makes rows dense in training only
    dtype = next((parameter.dtype for parameter in copied.parameters()), torch.float32)
    example, found = torch.zeros(2, features, dtype=dtype), []
    for path, layer in copied.named_modules():
        if isinstance(layer, torch.nn.EmbeddingBag) and layer.num_embeddings == features and layer.mode == "sum":
            return path, layer
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_pre_hook(
                lambda layer, given, path=path: found.append((path, layer)) if given[0] is example else None
            )
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            copied(example)
    except Exception as error:
        if not found or found[0][1].in_features != features:
            raise SpecError(
                f"The model does not take rows of {features:,} columns: {type(error).__name__}: {error}"
            ) from error
    if not found:
        raise SpecError(
            f"No layer takes the rows as they come in; expected a torch.nn.Linear({features}, ...) or a "
            f'torch.nn.EmbeddingBag({features}, ..., mode="sum") first.'
        )
    return found[0]


def ways_of_module(module: torch.nn.Module, features: int) -> tuple[str, Any, Callable[..., list[LayerWay]]]:
    """Return (name of the first layer, NumPy's dtype of the rows, function that makes the ways)."""
    path, layer = first_layer_of(module, features)
    if layer.weight.dtype not in DTYPES:
        raise SpecError(
            f"The weights of the first layer are {layer.weight.dtype}; expected float32 or float64.\n"
            "Type model.float()."
        )
    dtype = np.dtype(DTYPES[layer.weight.dtype])

    def make(rows: Rows, optimizer: str | None, loss: Any, lazy: bool) -> list[LayerWay]:
        """Return the ways to train the module on these rows."""
        name = optimizer or "adam"
        if name not in OPTIMIZERS:
            raise SpecError(unknown_name("optimizer", name, OPTIMIZERS))
        return _Ways(module, path, layer, rows, name, loss, lazy).listed()

    return path or type(layer).__name__, dtype, make


class _Ways:
    """The ways to train one module on one set of rows."""

    def __init__(self, module: Any, path: str, layer: Any, rows: Rows, optimizer: str, loss: Any, lazy: bool) -> None:
        """Keep what all ways have in common; an EmbeddingBag is also kept as a Linear of the same weights."""
        self.module, self.path, self.layer, self.rows = module, path, layer, rows
        self.is_bag = isinstance(layer, torch.nn.EmbeddingBag)
        self.linear = _linear_of(layer) if self.is_bag else layer
        self.optimizer, self.lazy = optimizer, lazy or optimizer in NOT_LAZY
        self.loss, self.y = loss or usual_loss, torch.from_numpy(rows.y)

    def listed(self) -> list[LayerWay]:
        """Return the ways, dense ones first, and the step without the layer last."""
        csr, linear, size = self.rows.csr, self.linear, self.rows.bytes_sparse
        own = "SparseEmbeddingBag" if self.is_bag else "SparseLinear"

        def whole() -> Training:
            """Return the training on one dense array of all rows."""
            x = as_dense(csr)
            return self._training(
                copy.deepcopy(linear), lambda rows: x.index_select(0, torch.from_numpy(rows)), is_transposed=True
            )

        def part() -> Training:
            """Return the training on dense batches of the CSR rows."""
            return self._training(copy.deepcopy(linear), lambda rows: as_dense(csr[rows]), is_transposed=True)

        def tensor() -> Training:
            """Return the training by torch.sparse."""
            return self._training(SparseTensorLinear(linear), lambda rows: as_tensor(csr[rows]))

        def bag() -> Training:
            """Return the training by EmbeddingBag."""
            return self._training(BagLinear(linear, self.lazy), lambda rows: as_bags(csr[rows]))

        def ours() -> Training:
            """Return the training by this project's layer and optimizer."""
            return self._training(bridge.SparseLinear.from_linear(linear), lambda rows: csr[rows], is_ours=True)

        def rest() -> Training:
            """Return the training of all but the first layer."""
            output = _Constant(linear.out_features, linear.weight.dtype, self.rows.batch_rows)
            rows = torch.empty(1, dtype=linear.weight.dtype).expand(self.rows.batch_rows, csr.shape[1])
            return self._training(output, lambda _: rows)

        kind = "sparse" if self.lazy else "dense"
        ways = [
            LayerWay("rows densified a batch at a time", "dense", part, size, self._lines("batch")),
            LayerWay(
                "rows in a dense array",
                "dense",
                whole,
                self.rows.bytes_dense,
                self._lines("array"),
                why_no_dense(self.rows),
            ),
            LayerWay("torch.sparse, CSR", "sparse", tensor, size, self._lines("torch.sparse")),
            LayerWay(f"EmbeddingBag, {kind} gradient", "sparse", bag, size, self._lines("EmbeddingBag")),
            LayerWay(f"{own} and {OPTIMIZERS[self.optimizer][2]}", "sparse", ours, size, self._lines("ours")),
            LayerWay(REST, "", rest),
        ]
        return [way for way in ways if not (self.is_bag and way.make is tensor)]

    def _training(
        self,
        layer: torch.nn.Module,
        rows_of: Callable[[np.ndarray], Any],
        is_transposed: bool = False,
        is_ours: bool = False,
    ) -> Training:
        """Return the training of a copy of the module with this first layer, which takes what `rows_of` returns."""
        held = _Held(layer) if self.is_bag else layer
        module = copy.deepcopy(self.module) if self.path else held
        if self.path:
            module.set_submodule(self.path, held)

        def batch(rows: np.ndarray) -> tuple:
            """Return the arguments of the module for the rows with these indices."""
            if not isinstance(held, _Held):
                return (rows_of(rows),)
            held.given = rows_of(rows)
            return as_bags(self.rows.csr[rows])

        optimizers = self._optimizers(module, layer, is_ours)
        return ModuleTraining(module, self.path, optimizers, batch, self.loss, self.y, is_transposed)

    def _optimizers(self, module: torch.nn.Module, layer: torch.nn.Module, is_ours: bool) -> list[Any]:
        """Return the optimizers of the module: one for its first layer where that needs another, one for the rest."""
        dense, sparse, name = OPTIMIZERS[self.optimizer]
        own, found = list(layer.parameters()), []
        if is_ours:
            how = {"lazy": "on", "fused": True} if self.lazy else {"lazy": "exact"}
            found.append(getattr(bridge, name)(own, lr=RATE, **how))
        elif isinstance(layer, BagLinear) and self.lazy and sparse is not dense:
            own = [layer.bag.weight]
            found.append(sparse(own, lr=RATE))
        else:
            own = []
        known = set(map(id, own))
        others = [parameter for parameter in module.parameters() if id(parameter) not in known]
        return [*found, dense(others, lr=RATE)] if others else found

    def _lines(self, way: str) -> str:
        """Return the lines that change with a first layer, for `model`, CSR rows `X` and a learning rate `lr`."""
        if way in ("array", "batch"):
            start = "# a torch.nn.Linear in place of the EmbeddingBag\n" if self.is_bag else ""
            array = "x = torch.from_numpy(X.toarray())  # once\noutputs = model(x[rows])"
            return start + (array if way == "array" else "outputs = model(torch.from_numpy(X[rows].toarray()))")
        old = f'model.get_submodule("{self.path}")' if self.path else "model"
        put = f'model.set_submodule("{self.path}", layer)' if self.path else "model = layer"
        dense, sparse, name = (one if isinstance(one, str) else one.__name__ for one in OPTIMIZERS[self.optimizer])
        own = "list(layer.parameters())"
        first, outputs = f"torch.optim.{dense}(own, lr=lr)", "model(X[rows])"
        if way == "ours":
            layer = "SparseEmbeddingBag" if self.is_bag else "SparseLinear"
            start = (
                f"from workbench.bridges.pytorch import {name}, {layer}\n\nlayer = {layer}.from_linear({old})\n{put}"
            )
            if self.is_bag:
                start = f"from workbench.bridges.pytorch import {name}, {layer}, to_bags\n\n"
                start += f"bag = {old}.weight\n"
                start += (
                    f'layer = {layer}.from_pretrained(bag, freeze=False, mode="sum", include_last_offset=True)\n{put}'
                )
                outputs = "model(*to_bags(X[rows]))"
            first = f"{name}(own, lr=lr{'' if self.lazy else ', lazy=' + repr('exact')})"
        elif self.is_bag:
            start = f"from workbench.bridges.pytorch import to_bags\n\nlayer = {old}\nlayer.sparse = {self.lazy}"
            outputs = "model(*to_bags(X[rows]))"
        else:
            source, form = (SparseTensorLinear, as_tensor) if way == "torch.sparse" else (BagLinear, as_bags)
            more = f", sparse={self.lazy}" if source is BagLinear else ""
            code = f"{inspect.getsource(source)}\n\n{inspect.getsource(form)}"
            start = f"from typing import Any\n\nimport torch\n\n\n{code}\n\n"
            start += f"layer = {source.__name__}({old}{more})\n{put}"
            outputs = f"model({form.__name__}(X[rows]))"
        if way == "EmbeddingBag" and self.lazy and sparse != dense:
            own = "[layer.weight]" if self.is_bag else "[layer.bag.weight]"
            first = f"torch.optim.{sparse}(own, lr=lr)"
        lines = [start, f"own = {own}", f"optimizers = [{first}]  # step each"]
        if self.path:
            others = "[one for one in model.parameters() if all(one is not parameter for parameter in own)]"
            lines.append(f"optimizers.append(torch.optim.{dense}({others}, lr=lr))")
        return "\n".join([*lines, f"outputs = {outputs}"])


def _linear_of(bag: torch.nn.EmbeddingBag) -> torch.nn.Linear:
    """Return a Linear without a bias of the weights of an EmbeddingBag."""
    linear = torch.nn.Linear(bag.num_embeddings, bag.embedding_dim, bias=False, dtype=bag.weight.dtype)
    with torch.no_grad():
        linear.weight.copy_(bag.weight.T)
    return linear


def usual_loss(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean loss: cross entropy of class indices [R], logistic for one output; squared error of numbers."""
    if y.dtype.is_floating_point:
        return torch.nn.functional.mse_loss(outputs.reshape(y.shape), y)
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs.reshape(-1), y.to(outputs.dtype))
    return torch.nn.functional.cross_entropy(outputs, y)
