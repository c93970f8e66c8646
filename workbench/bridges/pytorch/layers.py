"""`SparseLinear` and `SparseEmbeddingBag`: modules over sparse rows whose weight has a row-sparse gradient."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor  # the annotations of an operator are its schema, and have to be PyTorch's own
from torch._subclasses.fake_tensor import DynamicOutputShapeException

import kernels
from kernels import aligned
from kernels.plan import BatchPlan, build
from workbench.bridges.pytorch.library import follow, torch
from workbench.bridges.pytorch.rows import INDEX_DTYPES, SparseRows, arrays_of, require_sound, rows_of
from workbench.bridges.pytorch.steps import Steps, array_of, steps_of, tensor_of
from workbench.formats import RowSparse
from workbench.formats.compressed import assemble
from workbench.ops.products import Unsummed

# `sparse_product`: X @ W of sparse rows X [R, D] and a weight W [D, N] as a function that autograd knows.
#
# The gradient of W holds the rows that X touches and no others: a sparse_coo tensor, its rows sorted, each once, or
# factors that are left to an optimizer with `fused=True`. That of the values of X, where they ask for one, has a
# number for each entry.

# The product and its gradients as operators of PyTorch, for `torch.compile`: `workbench::sparse_product` and its
# like.
#
# Compiled code calls them, `fullgraph=True` as well. They do what `products` does, but for what an optimizer of ours
# and a layer tell each other: a gradient is never left as factors, and rows do not catch up before they are read. In
# eager code a call of them takes about 100 us longer, forward and backward, so that there they are not used.

# X @ W of sparse rows X [R, D] and a weight W [D, N], and its gradients, by our kernels on arrays.

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray | None]

TWICE = (
    "Gradients through sparse rows cannot be differentiated again (create_graph=True): kernels have no derivative of "
    "the row-sparse gradient. Use torch.sparse.mm and a dense weight where second derivatives are needed."
)


def multiply(arrays: Arrays, weight: torch.Tensor) -> torch.Tensor:
    """Return the product X @ W [R, N] of checked `arrays` and weight [D, N], a new tensor of the weight's dtype."""
    indptr, indices, data = arrays
    out = torch.empty((indptr.size - 1, weight.shape[1]), dtype=weight.dtype)
    operands = (indptr, indices) if data is None else (indptr, indices, data)
    _kernel("csr_dense_ones" if data is None else "csr_dense")(*operands, array_of(weight), out.numpy())
    return out


def gradient_of_data(arrays: Arrays, grad_scores: np.ndarray, weight: torch.Tensor) -> torch.Tensor:
    """Return grad_scores @ weight.T at the stored entries [z], in the weight's dtype.

    `grad_scores` is [R, N]. The range of indices is checked once more.
    """
    indptr, indices, _ = arrays
    out = torch.empty(indices.size, dtype=weight.dtype)
    _kernel("sddmm", checked=True)(indptr, indices, grad_scores, array_of(weight), out.numpy())
    return out


def factors_of(arrays: Arrays, grad_scores: np.ndarray, shape: tuple[int, int]) -> Unsummed:
    """Return X.T @ grad_scores [D, N] as its factors, with the batch's plan; `shape` is (D, N). O(z).

    `grad_scores` is [R, N]. The range of indices is checked again.
    """
    indptr, indices, data = arrays
    plan = build(indptr, indices, shape[0], data)
    values = np.ones(indices.size, grad_scores.dtype) if data is None else data
    if data is None:
        plan.kept[:] = values, values  # ones are in any order
    return Unsummed(assemble("csr", indptr, indices, values, plan.shape), grad_scores, plan, shape)


def summed(factors: Unsummed, are_ones: bool) -> RowSparse:
    """Return a factored gradient summed over the entries of each active column, as row_sparse [D, N].

    `are_ones` says that every value of X is one.
    """
    plan: BatchPlan = factors.plan
    values = aligned.empty((plan.touched, factors.shape[1]), factors.grad_scores.dtype)
    if are_ones:
        _kernel("csr_t_dense_ones")(plan.segments, plan.rows, factors.grad_scores, values)
    else:
        entries = plan.segments, plan.rows, plan.in_order(factors.x.data)
        _kernel("csr_t_dense")(*entries, factors.grad_scores, values)
    return RowSparse.assemble(values, plan.columns, factors.shape)


def _kernel(name: str, checked: bool = False) -> Callable[..., Any]:
    """Return the CPU function of the kernel `name`: with validation of its operands if `checked`, else without."""
    implementation = kernels.get(name).cpu if checked else kernels.get(name).trusted
    assert implementation is not None
    return implementation


@torch.library.custom_op("workbench::sparse_product", mutates_args=())
def sparse_product_op(indptr: Tensor, indices: Tensor, data: Tensor | None, weight: Tensor) -> Tensor:
    """Return X @ W [R, N] as `sparse_product` does, as an operator that compiled code calls.

    Raises TypeError for wrong types, ContractError for indices out of range.
    """
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
    require_sound(arrays, weight.shape[0], "rows -> product")
    return multiply(arrays, weight)


@torch.library.custom_op("workbench::sparse_product_rows", mutates_args=())
def of_weight(
    indptr: Tensor, indices: Tensor, data: Tensor | None, grad_scores: Tensor, features: int
) -> tuple[Tensor, Tensor]:
    """Return the rows that X touches, int64 [U], and their gradient [U, N]; `grad_scores` is [R, N]."""
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, features))
    factors = factors_of(arrays, grad_scores.contiguous().numpy(), (features, grad_scores.shape[1]))
    rows = summed(factors, data is None)
    return torch.from_numpy(rows.indices), torch.from_numpy(rows.values)


@torch.library.custom_op("workbench::sparse_product_values", mutates_args=())
def of_data(indptr: Tensor, indices: Tensor, data: Tensor, grad_scores: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient towards the values of X [z], of the gradient of the scores [R, N] and the weight [D, N]."""
    follow()
    arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
    return gradient_of_data(arrays, grad_scores.contiguous().numpy(), weight)


@sparse_product_op.register_fake
def _(indptr: Tensor, indices: Tensor, data: Tensor | None, weight: Tensor) -> Tensor:
    """Return an empty tensor of the product's shape [R, N], for `torch.compile`."""
    return weight.new_empty((indptr.shape[0] - 1, weight.shape[1]))


@of_weight.register_fake
def _(
    indptr: Tensor, indices: Tensor, data: Tensor | None, grad_scores: Tensor, features: int
) -> tuple[Tensor, Tensor]:
    """Return empty tensors of the weight gradient's rows [U] and values [U, N], for `torch.compile`."""
    active = torch.library.get_ctx().new_dynamic_size()
    return grad_scores.new_empty((active,), dtype=torch.int64), grad_scores.new_empty((active, grad_scores.shape[1]))


@of_data.register_fake
def _(indptr: Tensor, indices: Tensor, data: Tensor, grad_scores: Tensor, weight: Tensor) -> Tensor:
    """Return an empty tensor of the shape of the gradient of `data` [z], for `torch.compile`."""
    return torch.empty_like(data)


def _keep(ctx: Any, inputs: tuple, output: Tensor) -> None:
    """Save in `ctx` what the backward pass of the product needs; the weight only if values need a gradient.

    `output` is unused.
    """
    indptr, indices, data, weight = inputs
    ctx.save_for_backward(indptr, indices, data, weight if ctx.needs_input_grad[2] else None)
    ctx.features = weight.shape[0]


def _backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of (indptr, indices, data, weight); None for each that is not needed.

    That of the weight is a sparse_coo tensor [D, N]: coalesced, but for code that is compiled without `fullgraph=True`,
    which takes no operator whose result has a length of its own. There it has a row for each entry.
    """
    indptr, indices, data, weight = ctx.saved_tensors
    towards_data = of_data(indptr, indices, data, grad_scores, weight) if ctx.needs_input_grad[2] else None
    if not ctx.needs_input_grad[3]:
        return None, None, towards_data, None
    shape = ctx.features, grad_scores.shape[1]
    try:
        rows, values = of_weight(indptr, indices, data, grad_scores, ctx.features)
        gradient = torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)
    except DynamicOutputShapeException:
        row_of_entry = torch.repeat_interleave(indptr.diff(), output_size=indices.shape[0])
        values = grad_scores.index_select(0, row_of_entry)
        values = values if data is None else values * data[:, None]
        gradient = torch.sparse_coo_tensor(indices[None].long(), values, shape, check_invariants=False)
    return None, None, towards_data, gradient


def _refuse(ctx: Any, *slopes: Tensor) -> None:
    """Raise NotImplementedError: the gradient has no gradient."""
    raise NotImplementedError(TWICE)


sparse_product_op.register_autograd(_backward, setup_context=_keep)
of_weight.register_autograd(_refuse)
of_data.register_autograd(_refuse)


def sparse_product(rows: SparseRows, weight: torch.Tensor) -> torch.Tensor:
    """Return X @ W [R, N] of W [D, N], float32 or float64, in its dtype.

    Duplicates are summed, columns may be unsorted. Kernels run on `torch.get_num_threads()` threads, on the CPU. Raises
    TypeError or ValueError for values of another type, other lengths and other widths, ContractError for indices out of
    range and row starts that fall: nothing is read outside of the weight. 2 z N flops, O(R + z) for the checks.
    """
    _check(rows, weight)
    if torch.compiler.is_compiling():
        return sparse_product_op(rows.indptr, rows.indices, rows.data, weight)
    return _Product.apply(rows.indptr, rows.indices, rows.data, weight)


def _check(rows: SparseRows, weight: torch.Tensor) -> None:
    """Raise ValueError unless rows and weight [features, N] fit in shape, TypeError unless in dtype and device."""
    if weight.ndim != 2 or rows.features != weight.shape[0]:
        raise ValueError(
            f"Sparse rows of {rows.features} columns meet a weight of shape {list(weight.shape)}; it is [features, N]. "
            "Read the data like the training data, or make a weight of that size."
        )
    if rows.data is not None and rows.data.dtype != weight.dtype:
        raise TypeError(
            f"The values of sparse rows are {rows.data.dtype}, the weight is {weight.dtype}; they need the same type. "
            "Convert one of them with .to(...)."
        )
    if not (rows.indptr.is_cpu and rows.indices.is_cpu and weight.is_cpu):
        raise TypeError(f"The weight is on {weight.device}, the rows on {rows.indices.device}; kernels run on the cpu.")


class _Product(torch.autograd.Function):
    """The product, with its gradients towards values and weight."""

    @staticmethod
    def forward(ctx: Any, indptr: Any, indices: Any, data: Any, weight: Any) -> torch.Tensor:
        """Return X @ W [R, N], after the rows that it reads have caught up in place where they have to.

        Raises TypeError for wrong types, ContractError for indices out of range.
        """
        follow()
        arrays = arrays_of(SparseRows(indptr, indices, data, weight.shape[0]))
        require_sound(arrays, weight.shape[0], "rows -> product")
        steps = steps_of(weight)
        if steps is not None and steps.is_exact:
            steps.catch_up(weight, arrays[1])
        ctx.save_for_backward(indptr, indices, data, weight if ctx.needs_input_grad[2] else None)
        ctx.steps, ctx.shape, ctx.arrays = steps, tuple(weight.shape), arrays
        return multiply(arrays, weight)

    @staticmethod
    def backward(ctx: Any, grad_scores: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients towards values and weight for autograd; differentiable again only to refuse it.

        The first two, of indptr and indices, are None.
        """
        _, _, data, weight = ctx.saved_tensors  # all of them, so that autograd sees what was written to since
        arguments = grad_scores, ctx.arrays, data, weight, ctx.shape, ctx.steps, ctx.needs_input_grad[3]
        both = _Gradients.apply(*arguments) if torch.is_grad_enabled() else gradients(*arguments)
        return None, None, *both


class _Gradients(torch.autograd.Function):
    """The gradients where autograd would differentiate them again, which is refused then and not before."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients towards values and weight, None if not requested."""
        return gradients(*arguments)

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> None:
        """Raise NotImplementedError: second derivatives are not supported."""
        raise NotImplementedError(TWICE)


def gradients(
    grad_scores: torch.Tensor,
    arrays: Arrays,
    data: torch.Tensor | None,
    weight: torch.Tensor | None,
    shape: tuple[int, int],
    steps: Steps | None,
    of_weight: bool,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return (gradient of data [z], None without the weight; gradient of the weight, None unless `of_weight`).

    `grad_scores` is [R, N], `shape` that of the weight, (D, N). With an optimizer's fused `steps` the second is only a
    mark, its factors are left there. `data` is here for autograd, which is to know that gradients depend on it.
    """
    follow()
    grad_scores_rn = grad_scores.detach().contiguous().numpy()
    towards_data = None if weight is None else gradient_of_data(arrays, grad_scores_rn, weight)
    if not of_weight:
        return towards_data, None
    factors = factors_of(arrays, grad_scores_rn, shape)
    if steps is not None and steps.takes_factors:
        return towards_data, steps.leave(factors)
    return towards_data, tensor_of(summed(factors, arrays[2] is None))


# Input of `torch.nn.EmbeddingBag` from sparse rows: it is a sparse linear layer by another name.


def to_bags(x: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return `(indices, offsets, per_sample_weights)` of a matrix x [R, D], a CSR tensor or `SparseRows`.

    They are over its memory. `offsets` has R + 1 entries: the EmbeddingBag needs `include_last_offset=True`. The
    weights are None if every value is one, which is what a bag of ids is. indices are int32 or int64 [z], as x has
    them. Raises ContractError if they are invalid. O(nnz).

    >>> to_bags(scipy.sparse.csr_array(np.float32([[0, 1], [1, 1]])))
    (tensor([1, 0, 1], dtype=torch.int32), tensor([0, 1, 3], dtype=torch.int32), None)
    """
    rows = rows_of(x)
    arrays = arrays_of(rows)
    require_sound(arrays, rows.features, "rows -> EmbeddingBag")
    has_values = arrays[2] is not None and arrays[2].size and (arrays[2][0] != 1 or bool((arrays[2] != 1).any()))
    return rows.indices, rows.indptr, rows.data if has_values else None


class SparseLinear(torch.nn.Module):
    """y = X @ weight + bias for sparse rows X [R, in_features]: `SparseRows`, CSR tensors, SciPy matrices.

    `weight` is [in_features, out_features], the transpose of torch.nn.Linear's: a gradient of rows is row-sparse in
    PyTorch's layout along the first dimension alone. `from_linear` and `to_linear` convert. It starts as Linear's does.
    Its gradient is a sparse_coo tensor of the rows that X touches, sorted, each once: give the weight to one of our
    lazy optimizers, or to torch.optim's SGD, Adagrad, SparseAdam. `sparse_product` says what is refused.

    >>> layer = SparseLinear(3, 2, bias=False)
    >>> layer(SparseRows(torch.tensor([0, 1]), torch.tensor([2]), None, 3)).equal(layer.weight[2:])
    True
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: torch.dtype | None = None
    ) -> None:
        """Make the layer with weights drawn anew; `dtype` of None is PyTorch's default."""
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = torch.nn.Parameter(torch.empty((in_features, out_features), dtype=dtype))
        self.bias = torch.nn.Parameter(torch.empty(out_features, dtype=dtype)) if bias else None
        self.register_state_dict_pre_hook(_catch_up)
        self.register_load_state_dict_pre_hook(_catch_up)
        self.register_load_state_dict_pre_hook(_refuse_weights_of_linear)
        self.reset_parameters()

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear) -> "SparseLinear":
        """Return a layer with copies of weight, transposed, and bias of a torch.nn.Linear, in its dtype.

        >>> linear = torch.nn.Linear(3, 2)
        >>> torch.equal(SparseLinear.from_linear(linear).weight, linear.weight.T)
        True
        """
        layer = cls(linear.in_features, linear.out_features, linear.bias is not None, dtype=linear.weight.dtype)
        with torch.no_grad():
            layer.weight.copy_(linear.weight.T)
            if layer.bias is not None:
                layer.bias.copy_(linear.bias)
        return layer

    def to_linear(self) -> torch.nn.Linear:
        """Return a torch.nn.Linear with copies of weight, transposed, and bias, for dense rows; rows catch up first."""
        _catch_up(self)
        has_bias = self.bias is not None
        linear = torch.nn.Linear(self.in_features, self.out_features, has_bias, dtype=self.weight.dtype)
        with torch.no_grad():
            linear.weight.copy_(self.weight.T)
            if has_bias:
                linear.bias.copy_(self.bias)
        return linear

    def reset_parameters(self) -> None:
        """Draw weight and bias anew in place, uniform within 1 / sqrt(in_features), as torch.nn.Linear does."""
        bound = 1 / math.sqrt(max(self.in_features, 1))
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Any) -> torch.Tensor:
        """Return X @ weight + bias, [R, out_features], of anything that `rows_of` takes.

        Raises ValueError for another number of columns, TypeError for another dtype than the weight's.
        """
        scores = sparse_product(rows_of(x), self.weight)
        return scores if self.bias is None else scores + self.bias

    def extra_repr(self) -> str:
        """Return sizes and options of the layer as torch's `repr` shows them."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


MODES = ("sum", "mean")


class SparseEmbeddingBag(torch.nn.Module):
    """`torch.nn.EmbeddingBag` with sparse=True on our kernels: means or sums of rows of `weight`, bag by bag.

    Arguments and defaults are those of torch.nn.EmbeddingBag, the mode mean among them; max_norm, scale_grad_by_freq
    and the mode max are refused. It takes what that takes: `input` [z] with `offsets` [R], or [R + 1] with
    `include_last_offset`, or `input` [R, L]; `per_sample_weights` of the input's shape with mode="sum". Ids that are
    `padding_idx` count in no bag, and their row stays as it is. Also one argument alone: `SparseRows`, a CSR tensor, a
    SciPy matrix. The weight starts normal, as there. Ids out of range are refused (`ContractError`).

    >>> bags = SparseEmbeddingBag(5, 2)
    >>> bags(torch.tensor([4, 0, 1]), torch.tensor([0, 1])).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = True,
        _weight: torch.Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Make the layer; `_weight` [num_embeddings, embedding_dim] is used as it is, None draws one anew.

        `padding_idx` of None leaves no id out. Raises ValueError for another mode than sum and mean, for options that
        are not there, and for a `_weight` of another shape.
        """
        super().__init__()
        if mode not in MODES:
            raise ValueError(f"mode is {mode!r}; it is one of {', '.join(MODES)}.")
        for name, value, usual in (
            ("max_norm", max_norm, None), ("scale_grad_by_freq", scale_grad_by_freq, False), ("sparse", sparse, True)
        ):  # fmt: skip
            if value != usual:
                raise ValueError(f"{name} is {value!r}; SparseEmbeddingBag has {name}={usual}: leave it out.")
        if device is not None and torch.device(device).type != "cpu":
            raise ValueError(f"device is {device!r}; kernels run on the cpu: leave it out.")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, False, True
        self.mode, self.include_last_offset = mode, include_last_offset
        self.padding_idx = _padding_index(padding_idx, num_embeddings)
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise ValueError(f"_weight is {list(_weight.shape)}; it is [{num_embeddings}, {embedding_dim}].")
        weight = torch.empty((num_embeddings, embedding_dim), dtype=dtype) if _weight is None else _weight
        self.weight = torch.nn.Parameter(weight)
        self.register_state_dict_pre_hook(_catch_up)
        self.register_load_state_dict_pre_hook(_catch_up)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: torch.Tensor, freeze: bool = True, **options: Any) -> "SparseEmbeddingBag":
        """Return a layer over these rows [num_embeddings, embedding_dim], which share memory.

        `freeze` leaves them untrained. `options` are those of the constructor, whose ValueError it raises.
        """
        count, dimension = embeddings.shape
        layer = cls(count, dimension, _weight=embeddings, **options)
        layer.weight.requires_grad = not freeze
        return layer

    def reset_parameters(self) -> None:
        """Draw the weight anew in place, standard normal; the row of `padding_idx` becomes zero."""
        torch.nn.init.normal_(self.weight)
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].zero_()

    def forward(
        self, input: Any, offsets: torch.Tensor | None = None, per_sample_weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return a row for each bag, [R, embedding_dim]; an empty bag has zeros.

        Raises TypeError or ValueError for inputs that do not fit together and for weights with the mode mean,
        ContractError for ids out of range.
        """
        if isinstance(input, torch.Tensor) and input.layout is torch.strided:
            rows = self._bags(input, offsets, per_sample_weights)
        elif offsets is None and per_sample_weights is None:
            rows = rows_of(input)
        else:
            raise TypeError("Sparse rows came with offsets or weights; they have row starts and values of their own.")
        if self.padding_idx is not None:
            rows = _without(rows, self.padding_idx)
        if self.mode == "sum":
            return sparse_product(rows, self.weight)
        if rows.data is not None:
            raise ValueError("mode='mean' takes no values and no per_sample_weights; leave them out, or use 'sum'.")
        lengths = rows.indptr.diff().clamp(min=1)[:, None]
        return sparse_product(rows, self.weight) / lengths

    def _bags(self, ids: torch.Tensor, offsets: torch.Tensor | None, weights: torch.Tensor | None) -> SparseRows:
        """Return ids, offsets and weights as sparse rows, one a bag, over their memory where it can be.

        `offsets` of None go with ids [R, L], `weights` of None with ones. Raises TypeError or ValueError if types or
        shapes do not fit.
        """
        if ids.dtype not in INDEX_DTYPES or (weights is not None and weights.shape != ids.shape):
            shape = "none" if weights is None else list(weights.shape)
            raise TypeError(
                f"Ids are {ids.dtype} {list(ids.shape)}, their weights {shape}; ids are int32 or int64, and weights "
                "have their shape."
            )
        if ids.ndim == 2 and offsets is None:
            starts = torch.arange(len(ids) + 1, dtype=ids.dtype) * ids.shape[1]
            weights = None if weights is None else weights.reshape(-1)
            return SparseRows(starts, ids.reshape(-1), weights, self.num_embeddings)
        if ids.ndim != 1 or offsets is None:
            raise ValueError("Give ids [z] with offsets, or ids [R, L] without.")
        if not self.include_last_offset:
            offsets = torch.cat((offsets, offsets.new_tensor([ids.numel()])))
        return SparseRows(offsets.to(ids.dtype), ids, weights, self.num_embeddings)

    def extra_repr(self) -> str:
        """Return sizes and options of the layer as torch's `repr` shows them."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}{padding}"


def _padding_index(padding_idx: int | None, count: int) -> int | None:
    """Return the index of the padding row, counted from 0, None for none. Raises ValueError if it is out of range."""
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise ValueError(f"padding_idx is {padding_idx}; it is within num_embeddings, {-count} to {count - 1}.")
    return padding_idx % count


def _without(rows: SparseRows, id_: int) -> SparseRows:
    """Return a copy of the rows without the entries of one id; bags may become empty. O(z)."""
    kept = rows.indices != id_
    before = torch.cat((kept.new_zeros(1, dtype=torch.int64), kept.cumsum(0)))
    starts = before[rows.indptr.clamp(0, len(kept)).long()].to(rows.indptr.dtype)
    return SparseRows(starts, rows.indices[kept], None if rows.data is None else rows.data[kept], rows.features)


def _refuse_weights_of_linear(module: Any, state: Any, prefix: str, *_: Any) -> None:
    """Raise ValueError, with what to type, where a `SparseLinear` loads the transposed weight of a Linear."""
    came = state.get(f"{prefix}weight")
    turned = (module.out_features, module.in_features)
    if came is not None and tuple(came.shape) == turned != turned[::-1]:
        raise ValueError(
            f"{prefix}weight is {list(turned)}, as torch.nn.Linear has it; SparseLinear has {list(turned[::-1])}. "
            "Load it into a torch.nn.Linear and type SparseLinear.from_linear(linear)."
        )


def _catch_up(module: Any, *_: Any) -> None:
    """Let all rows of a weight that is stepped with lazy="exact" catch up in place, before it is saved or loaded."""
    steps = steps_of(module.weight)
    if steps is not None and steps.is_exact:
        steps.catch_up(module.weight)
