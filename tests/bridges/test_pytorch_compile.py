"""Compiled modules compute what they do in eager code, without a break of the graph, with a row-sparse gradient."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.support.torch_rows import drawn, invalid  # noqa: E402
from workbench.bridges import pytorch  # noqa: E402
from workbench.bridges.contracts import ContractError  # noqa: E402
from workbench.bridges.pytorch import SparseLinear, SparseRows, layers, rows_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")


@pytest.mark.parametrize("values", [True, False])
def test_operators_are_what_pytorch_asks_of_them(values):
    rows = rows_of(drawn())
    data = rows.data.requires_grad_() if values else None
    weight = torch.randn(30, 4, requires_grad=True)
    torch.library.opcheck(layers.sparse_product_op, (rows.indptr, rows.indices, data, weight))
    slope, given = torch.randn(8, 4), rows.data.detach()
    torch.library.opcheck(layers.of_weight, (rows.indptr, rows.indices, given if values else None, slope, 30))
    torch.library.opcheck(layers.of_data, (rows.indptr, rows.indices, given, slope, weight.detach()))


@pytest.mark.parametrize("of_data", [True, False])
def test_a_compiled_module_is_the_eager_one_in_one_graph(of_data):
    torch._dynamo.reset()
    layer = SparseLinear(30, 4)
    forward = torch.compile(lambda rows: torch.relu(layer(rows)).sum(), backend="aot_eager", fullgraph=True)
    for seed, rows in enumerate((8, 8, 11)):  # the last of another length
        batch = rows_of(drawn(rows=rows, seed=seed))
        results = []
        for function in (forward, lambda rows: torch.relu(layer(rows)).sum()):
            layer.zero_grad()
            data = batch.data.detach().clone().requires_grad_(of_data)
            loss = function(batch._replace(data=data))
            loss.backward()
            assert layer.weight.grad.layout is torch.sparse_coo
            results.append((loss.detach(), layer.weight.grad.to_dense(), layer.bias.grad, data.grad))
        for one, other in zip(*results, strict=True):
            assert one is other is None or torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("values", [True, False])
def test_a_module_that_is_compiled_with_defaults_stays_in_one_graph(values):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    layer = SparseLinear(30, 4)
    forward = torch.compile(lambda rows: torch.relu(layer(rows)).sum(), backend="aot_eager")
    for seed, rows in enumerate((8, 8, 11)):
        batch = rows_of(drawn(rows=rows, seed=seed))
        batch = batch if values else batch._replace(data=None)
        gradients = []
        for function in (forward, lambda rows: torch.relu(layer(rows)).sum()):
            layer.zero_grad()
            function(batch).backward()
            assert layer.weight.grad.layout is torch.sparse_coo
            gradients.append(layer.weight.grad.to_dense())
        torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)
    assert not torch._dynamo.utils.counters["graph_break"]
    assert torch._dynamo.utils.counters["stats"]["calls_captured"] > 3


def test_compiled_training_has_the_bits_of_eager_training():
    torch._dynamo.reset()
    trained = []
    for backend in ("eager", "aot_eager"):
        torch.manual_seed(0)
        layer = SparseLinear(30, 4)
        optimizer = pytorch.LazyAdam(layer.parameters())
        forward = torch.compile(layer, backend=backend, fullgraph=backend != "eager") if backend != "eager" else layer
        for seed in range(3):
            optimizer.zero_grad()
            (forward(rows_of(drawn(seed=seed))) ** 2).sum().backward()
            optimizer.step()
        trained.append(layer.weight.detach().numpy())
    np.testing.assert_array_equal(*trained)


def test_compiled_code_refuses_invalid_rows():
    torch._dynamo.reset()
    layer = SparseLinear(5, 2)
    forward = torch.compile(layer, backend="aot_eager", fullgraph=True)
    sound = SparseRows(torch.tensor([0, 1]), torch.tensor([2]), torch.ones(1), 5)
    assert forward(sound).shape == (1, 2)
    tensors = [torch.from_numpy(part) for part in invalid()["column far outside"]]
    with pytest.raises(ContractError, match="range"):
        forward(SparseRows(*tensors, 5))


def test_a_second_derivative_of_the_operator_is_refused():
    rows, weight = rows_of(drawn()), torch.randn(30, 2, requires_grad=True)
    data = rows.data.requires_grad_()
    scores = (layers.sparse_product_op(rows.indptr, rows.indices, data, weight) ** 2).sum()
    (towards,) = torch.autograd.grad(scores, data, create_graph=True)
    with pytest.raises(NotImplementedError, match="create_graph=True"):
        towards.sum().backward()
