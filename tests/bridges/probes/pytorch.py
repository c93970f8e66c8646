"""Probes of PyTorch: what each fact of `workbench/bridges/facts/pytorch.toml` says, on the installed release."""

import copy
import warnings

import numpy as np
import torch

from tests.support.probes import refusal, repeated, right, small, unsorted

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)


def csr(x):
    parts = map(torch.from_numpy, (x.indptr, x.indices, x.data))
    return torch.sparse_csr_tensor(*parts, x.shape, check_invariants=False)


def eye(layout):
    dense = torch.eye(3)
    return dense.to_sparse_csr() if layout == "csr" else dense.to_sparse_coo()


def layout_of(gradient):
    return "densifies" if gradient.layout is torch.strided else "sparse"


def embedding(columns=2):
    torch.manual_seed(0)
    return torch.nn.Embedding(10, columns, sparse=True)


def repeats_times_themselves():
    a, dense = csr(repeated()), torch.from_numpy(repeated().toarray())
    other = torch.full(dense.shape, 2.0)
    pairs = ((a * a, dense * dense), (a.sin(), dense.sin()), (a * other, dense * other))
    outcomes = {right(value.to_dense(), expected) for value, expected in pairs}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def repeats_as_coo():
    coo = csr(repeated()).to_sparse_coo()
    places = coo._indices().T.tolist()
    is_repeated = len(places) > len(set(map(tuple, places)))
    return "wrong" if coo.is_coalesced() and is_repeated else "sparse"


def unsorted_times_dense():
    x = small()
    return right((csr(unsorted(x)) * torch.ones(x.shape)).to_dense(), x.toarray())


def repeats_in_a_product():
    w = torch.arange(10.0).reshape(5, 2)
    return right(csr(repeated()) @ w, repeated().toarray() @ w.numpy())


def columns_out_of_range():
    return "sparse" if torch.sparse.check_sparse_tensor_invariants.is_enabled() else "wrong"


def row_starts_that_fall():
    return "sparse" if torch.sparse.check_sparse_tensor_invariants.is_enabled() else "wrong"


def width_of_a_product():
    calls = [lambda a: a @ torch.ones(6, 2), lambda a: torch.mm(a, torch.ones(6, 2)), torch.nn.Linear(6, 2)]
    outcomes = {refusal(lambda: call(eye(layout)), RuntimeError) for call in calls for layout in ("csr", "coo")}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def not_a_number():
    a = torch.tensor([[float("nan"), 0.0]]).to_sparse_csr()
    return "wrong" if (a @ torch.ones(2, 1)).isnan().all() else "sparse"


def gradient_of_a_sparse_operand():
    outcomes = set()
    for layout in ("csr", "coo"):
        for product in (torch.matmul, torch.mm, lambda a, w: torch.nn.functional.linear(a, w.T)):
            a = eye(layout).requires_grad_()
            product(a, torch.ones(3, 2, requires_grad=True)).sum().backward()
            outcomes.add(layout_of(a.grad))
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def gradient_in_sparse_mm():
    outcomes = set()
    for layout in ("csr", "coo"):
        a = eye(layout).requires_grad_()
        torch.sparse.mm(a, torch.ones(3, 2)).sum().backward()
        outcomes.add("sparse" if a.grad.layout is a.layout else "densifies")
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def gradient_of_linear():
    layer = torch.nn.Linear(3, 2)
    layer(eye("csr")).sum().backward()
    return layout_of(layer.weight.grad)


def stepped(ids, **options):
    """An embedding, its weight at the start, and its optimizer, after a step for each id."""
    layer = embedding()
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), **{"lr": 0.1, **options})
    for id_ in ids:
        optimizer.zero_grad()
        layer(torch.tensor([id_, id_])).sum().backward()
        optimizer.step()
    return layer, before, optimizer


def momentum_of_sparse_gradients():
    layer, ids = embedding(), np.random.default_rng(0).integers(0, 10, (60, 8))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    for batch in torch.from_numpy(ids):
        optimizer.zero_grad()
        layer(batch).sum().backward()
        optimizer.step()
    return "costly" if optimizer.state[layer.weight]["momentum_buffer"]._nnz() > 5 * len(layer.weight) else "sparse"


def momentum_of_absent_rows():
    once, _, _ = stepped([1], momentum=0.9)
    later, _, _ = stepped([1, 2], momentum=0.9)
    return "sparse" if torch.equal(once.weight[1], later.weight[1]) else "densifies"


def step_of_one_value():
    layer = embedding(columns=1)
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer(torch.tensor([1])).sum().backward()
    optimizer.step()
    return right(layer.weight.detach()[1], before[1] - 1.0)


def adam_of_sparse_gradients():
    outcomes = set()
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        layer = embedding()
        layer(torch.tensor([1])).sum().backward()
        outcomes.add(refusal(kind(layer.parameters()).step, RuntimeError, text="does not support sparse gradients"))
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def weight_decay_of_sparse_gradients():
    layer = embedding()
    layer(torch.tensor([1, 2])).sum().backward()
    kinds = (torch.optim.SGD, torch.optim.Adagrad)
    outcomes = {refusal(kind(layer.parameters(), lr=0.1, weight_decay=0.1).step, RuntimeError) for kind in kinds}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def clip_of_sparse_gradients():
    layer = embedding()
    layer(torch.tensor([1])).sum().backward()
    return refusal(lambda: torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0), NotImplementedError)


def gradient_with_a_penalty():
    layer = embedding()
    (layer(torch.tensor([1])).sum() + layer.weight.square().sum()).backward()
    return layout_of(layer.weight.grad)


def in_autocast(layout):
    with torch.autocast("cpu", torch.bfloat16):
        return eye(layout) @ torch.ones(3, 2)


def csr_in_autocast():
    return refusal(lambda: in_autocast("csr"), NotImplementedError, RuntimeError)


def coo_in_autocast():
    return refusal(lambda: in_autocast("coo"), NotImplementedError, RuntimeError)


def rows_of_csr():
    return refusal(lambda: eye("csr")[0:2], RuntimeError)


def batches_by_dataloader():
    def first(layout):
        data = torch.utils.data.TensorDataset(eye(layout), torch.arange(3))
        return next(iter(torch.utils.data.DataLoader(data, batch_size=2)))

    outcomes = {refusal(lambda: first(layout), RuntimeError) for layout in ("csr", "coo")}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def copy_of_a_module():
    return refusal(lambda: copy.deepcopy(eye("csr")), NotImplementedError)


def indices_of_coo():
    places = torch.tensor([[0], [1]], dtype=torch.int32)
    return (
        "costly" if torch.sparse_coo_tensor(places, torch.ones(1), (2, 2))._indices().element_size() == 8 else "sparse"
    )


def quotient_by_a_number():
    assert (eye("csr") * 0.5).layout is torch.sparse_csr
    assert (eye("coo") / 2).layout is torch.sparse_coo
    return refusal(lambda: eye("csr") / 2, RuntimeError)


def transpose_of_csr():
    assert eye("csr").t().layout is torch.sparse_csc
    return refusal(lambda: eye("csr").T, NotImplementedError)


def sum_of_coo_and_dense():
    assert (torch.ones(3, 3) + eye("coo")).layout is torch.strided
    return refusal(lambda: eye("coo") + torch.ones(3, 3), RuntimeError)


def sum_of_rows():
    assert eye("csr").sum(1, keepdim=True).shape == (3, 1)
    return refusal(lambda: eye("csr").sum(1), RuntimeError, text="keepdim")


def largest_of_bags():
    bags = torch.nn.EmbeddingBag(3, 2, mode="max", sparse=True)
    return refusal(lambda: bags(torch.tensor([[0, 1]])), ValueError)


def gradient_of_bags():
    bags = torch.nn.EmbeddingBag(5, 2, sparse=True, mode="sum")
    bags(torch.tensor([[0, 0, 1]])).sum().backward()
    return "costly" if bags.weight.grad._nnz() == 3 else "sparse"
