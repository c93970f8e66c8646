"""PyTorch: products and a step of a linear layer by its sparse tensors and EmbeddingBag."""

from typing import Any

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []


def csr(data: Data) -> Calls:
    """Return CSR @ W of 64 columns."""
    import torch

    torch.set_num_threads(data.threads)
    x, dense, w = csr_tensor(data), torch.from_numpy(data.dense), torch.from_numpy(data.w)
    return lambda: (x @ w).numpy(), lambda: (dense @ w).numpy()


def csr_tensor(data: Data) -> Any:
    """Return X as a CSR tensor over the same memory."""
    import torch

    parts = map(torch.from_numpy, (data.csr.indptr, data.csr.indices, data.csr.data))
    return torch.sparse_csr_tensor(*parts, size=data.csr.shape, check_invariants=False)


def coo(data: Data) -> Calls:
    """Return COO @ W of 64 columns."""
    import torch

    torch.set_num_threads(data.threads)
    x, dense, w = csr_tensor(data).to_sparse_coo(), torch.from_numpy(data.dense), torch.from_numpy(data.w)
    return lambda: torch.sparse.mm(x, w).numpy(), lambda: (dense @ w).numpy()


def bag(data: Data) -> Calls:
    """Return the sums of an EmbeddingBag of width 64 with weights, and the dense product."""
    import torch

    torch.set_num_threads(data.threads)
    indices, starts, values = map(torch.from_numpy, (data.csr.indices, data.csr.indptr, data.csr.data))
    dense, w = torch.from_numpy(data.dense), torch.from_numpy(data.w)

    def bags() -> np.ndarray:
        """Return the sums of the bags."""
        found = torch.nn.functional.embedding_bag(
            indices, w, starts, mode="sum", per_sample_weights=values, include_last_offset=True
        )
        return found.numpy()

    return bags, lambda: (dense @ w).numpy()


def step(data: Data) -> Calls:
    """Return the gradient of W by CSR @ W and its backward pass."""
    import torch

    torch.set_num_threads(data.threads)
    w = torch.from_numpy(data.w.copy()).requires_grad_()

    def gradient(x: Any) -> np.ndarray:
        """Return the gradient of the sum of squared scores."""
        w.grad = None
        (x @ w).square().sum().backward()
        assert w.grad is not None
        return w.grad.numpy().copy()

    x, dense = csr_tensor(data), torch.from_numpy(data.dense)
    return lambda: gradient(x), lambda: gradient(dense)


for _what, _make in {
    "CSR @ 64 columns": csr,
    "COO @ 64 columns": coo,
    "EmbeddingBag of width 64": bag,
    "CSR @ 64 columns and gradient": step,
}.items():
    OPERATIONS.append(Operation("PyTorch", _what, _make, "torch"))
