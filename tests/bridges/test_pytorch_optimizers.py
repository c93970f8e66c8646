"""Our optimizers in PyTorch: the bits of `Updater`, PyTorch's own where the mathematics is the same, and fused."""

import copy
import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.support.torch_rows import drawn  # noqa: E402
from tests.support.torch_training import RULES, assert_same, batches, class_of, layer_of, train  # noqa: E402
from workbench import optimizers  # noqa: E402
from workbench.bridges import pytorch  # noqa: E402
from workbench.bridges.pytorch import SparseEmbeddingBag, ours  # noqa: E402
from workbench.bridges.pytorch.steps import gradient_of  # noqa: E402
from workbench.optimizers import Updater  # noqa: E402

FUSED = pytest.mark.parametrize("fused", [False, True])


@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("rule", RULES)
def test_steps_have_the_bits_of_an_updater(rule, lazy):
    layer, other = layer_of(), layer_of()
    optimizer = class_of(rule)(layer.parameters(), lazy=lazy, weight_decay=0.01)
    updater = Updater(rule, lazy=lazy, decay=0.01)
    for rows in batches():
        optimizer.zero_grad()
        other.zero_grad()
        weights = {name: parameter.detach().numpy() for name, parameter in other.named_parameters()}
        updater.catch_up(weights, {"weight": rows.indices.numpy()})  # as the layer does
        for module in (layer, other):
            (module(rows) ** 2).sum().backward()
        updater.update(weights, {name: gradient_of(p.grad) for name, p in other.named_parameters()})
        optimizer.step()
    optimizer.catch_up()
    updater.catch_up(weights)
    assert_same(layer, other)


THEIRS = {
    "sgd": (lambda parameters: torch.optim.SGD(parameters, lr=0.1), {}),
    "adam": (lambda parameters: torch.optim.SparseAdam(parameters, lr=0.1), {}),
    "adagrad": (lambda parameters: torch.optim.Adagrad(parameters, lr=0.1, eps=1e-10), {"eps": 1e-20}),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # by Adagrad
@FUSED
@pytest.mark.parametrize("rule", THEIRS)
def test_steps_are_those_of_pytorch_where_the_mathematics_is_the_same(rule, fused):
    make, options = THEIRS[rule]
    mine = SparseEmbeddingBag(30, 3, mode="sum", include_last_offset=True, dtype=torch.float64)
    theirs = torch.nn.EmbeddingBag(30, 3, mode="sum", sparse=True, include_last_offset=True, dtype=torch.float64)
    theirs.load_state_dict(mine.state_dict())
    ours_, their_ = class_of(rule)(mine.parameters(), lr=0.1, fused=fused, **options), make(theirs.parameters())
    for rows in batches():
        for module, optimizer in ((mine, ours_), (theirs, their_)):
            optimizer.zero_grad()
            (module(rows.indices, rows.indptr, rows.data.double()) ** 2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(mine.weight, theirs.weight)


DENSE = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, weight_decay=0.1),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.1, eps=1e-12),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1, eps=1e-12),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01, eps=1e-12),
}


@pytest.mark.parametrize("lazy", ["off", "exact"])
@pytest.mark.parametrize("rule", DENSE)
def test_off_and_exact_are_the_dense_optimizers_of_pytorch(rule, lazy):
    """Their epsilon stands elsewhere, so that it is too small here to tell."""
    layer = layer_of(dtype=torch.float64)
    weight, bias = (parameter.detach().clone().requires_grad_() for parameter in (layer.weight, layer.bias))
    decay = {} if rule == "adagrad" else {"weight_decay": 0.1}
    eps = {} if rule == "sgd" else {"eps": 1e-24 if rule == "adagrad" else 1e-14}
    mine, theirs = class_of(rule)(layer.parameters(), lr=0.01, lazy=lazy, **decay, **eps), DENSE[rule]([weight, bias])
    for rows in batches():
        matrix = torch.from_numpy(pytorch.from_tensor(pytorch.to_tensor(drawn())).toarray()) * 0
        matrix = torch.zeros(8, 30, dtype=torch.float64)
        counts = rows.indptr.diff()
        matrix.index_put_(
            (torch.repeat_interleave(torch.arange(8), counts), rows.indices.long()), rows.data.double(), accumulate=True
        )
        mine.zero_grad()
        theirs.zero_grad()
        (layer(rows._replace(data=rows.data.double())) ** 2).sum().backward()
        ((matrix @ weight + bias) ** 2).sum().backward()
        mine.step()
        theirs.step()
    mine.catch_up()
    torch.testing.assert_close(layer.weight.detach(), weight.detach(), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(layer.bias.detach(), bias.detach(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("rule", RULES)
def test_fused_steps_are_those_of_two_kernels(rule, lazy):
    layer, other = layer_of(dtype=torch.float64), layer_of(dtype=torch.float64)
    double = [rows._replace(data=rows.data.double()) for rows in batches()]
    fused = class_of(rule)(layer.parameters(), lazy=lazy, fused=True)
    train(layer, fused, double)
    two = class_of(rule)(other.parameters(), lazy=lazy)
    train(other, two, double)
    fused.catch_up()
    two.catch_up()
    torch.testing.assert_close(layer.weight.detach(), other.weight.detach(), rtol=1e-9, atol=1e-12)


def test_what_a_fused_gradient_leaves_is_dropped_settled_and_added_to():
    layer, other = layer_of(), layer_of()
    fused, plain = pytorch.LazySGD(layer.parameters(), fused=True), pytorch.LazySGD(other.parameters())
    one, two, three = batches()[:3]
    layer(one).sum().backward()
    assert layer.weight.grad._nnz() == 0
    layer.zero_grad()  # the module's own, of which the optimizer hears nothing
    for module in (layer, other):
        (module(two).sum() + module(three).sum()).backward()
        (module.weight**2).sum().backward()  # which makes .grad dense
    fused.step()
    plain.step()
    torch.testing.assert_close(layer.weight, other.weight)
    for module, optimizer in ((layer, fused), (other, plain)):
        optimizer.zero_grad()
        module(one).sum().backward()
    fused.settle()
    torch.testing.assert_close(layer.weight.grad.to_dense(), other.weight.grad.to_dense())
    fused.step()
    plain.step()
    torch.testing.assert_close(layer.weight, other.weight)


@FUSED
def test_row_sparse_gradients_are_clipped_as_dense_ones(fused):
    layer, other = layer_of(), layer_of()
    optimizer = pytorch.LazySGD(layer.parameters(), lr=0.1, fused=fused)
    (layer(batches()[0]) ** 2).sum().backward()
    (other(batches()[0]) ** 2).sum().backward()
    other.weight.grad = other.weight.grad.to_dense()
    norm = torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
    assert optimizer.clip_grad_norm_(0.5).item() == pytest.approx(norm.item())
    optimizer.step()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    torch.testing.assert_close(layer.weight, other.weight)
    assert optimizer.clip_grad_norm_(1e9).item() == pytest.approx(0.5, rel=1e-4)


def steps_under(scaler, layer, optimizer, prepare=lambda scaler, optimizer: None, scales=(1.0, float("inf"), 3.0)):
    """Train with a GradScaler, with a loss that is infinite once; return the weights and the scaler's scales."""
    found = []
    for rows, factor in zip(batches(), scales, strict=False):
        optimizer.zero_grad()
        scores = layer(rows) if isinstance(layer, pytorch.SparseLinear) else layer(dense_of(rows))
        scaler.scale((scores**2).sum() * factor).backward()
        prepare(scaler, optimizer)
        scaler.step(optimizer)
        scaler.update()
        found.append(scaler.get_scale())
    return found


def dense_of(rows):
    return torch.sparse_csr_tensor(rows.indptr, rows.indices, rows.data, (8, 30)).to_dense()


@FUSED
@pytest.mark.parametrize("prepare", [lambda *_: None, torch.amp.GradScaler.unscale_], ids=["step", "unscale"])
def test_steps_with_a_gradient_scaler_are_those_of_pytorch_on_dense_rows(fused, prepare):
    layer = layer_of()
    dense = layer.to_linear()
    scalers = [torch.amp.GradScaler("cpu", growth_interval=1) for _ in "ab"]
    mine, theirs = pytorch.LazySGD(layer.parameters(), lr=0.01, fused=fused), torch.optim.SGD(dense.parameters(), 0.01)
    assert steps_under(scalers[0], layer, mine, prepare) == steps_under(scalers[1], dense, theirs, prepare)
    torch.testing.assert_close(layer.weight.detach(), dense.weight.detach().T)
    torch.testing.assert_close(layer.bias, dense.bias)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lazy", optimizers.LAZY)
def test_fused_steps_with_a_gradient_scaler_are_those_without_fusion(rule, lazy):
    layers = layer_of(), layer_of()
    for layer, fused in zip(layers, (True, False), strict=True):
        optimizer = class_of(rule)(layer.parameters(), lazy=lazy, fused=fused)
        scales = steps_under(torch.amp.GradScaler("cpu"), layer, optimizer)
        optimizer.catch_up()
        assert scales == [2.0**16, 2.0**15, 2.0**15]
    assert_same(*layers)


def quarter(weight):
    weight.grad *= 0.25


HOOKS = {
    "zeros": lambda weight: weight.register_hook(lambda gradient: gradient * 0),
    "half": lambda weight: weight.register_hook(lambda gradient: gradient * 0.5),
    "after": lambda weight: weight.register_post_accumulate_grad_hook(quarter),
}


@FUSED
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("hook", "factor"), [("zeros", 0), ("half", 0.5), ("after", 0.25)])
def test_a_hook_on_a_weight_changes_the_gradient_that_is_stepped(hook, factor, is_first, fused):
    layer, rows = layer_of(), batches()[0]
    before = layer.weight.detach().clone()
    layer(rows).sum().backward()
    gradient = layer.weight.grad.to_dense()
    layer.zero_grad()
    register = HOOKS[hook]
    if is_first:
        register(layer.weight)
    optimizer = pytorch.LazySGD(layer.parameters(), lr=1.0, fused=fused)
    if not is_first:
        register(layer.weight)
    layer(rows).sum().backward()
    optimizer.step()
    torch.testing.assert_close(layer.weight.detach(), before - factor * gradient)


def test_hooks_of_former_optimizers_leave_a_fused_gradient_as_factors():
    layer = layer_of()
    for _ in range(2):
        optimizer = pytorch.LazySGD(layer.parameters(), fused=True)
    layer(batches()[0]).sum().backward()
    assert layer.weight.grad._nnz() == 0
    assert len(optimizer.param_groups) == 1
    assert layer.weight.grad._nnz() > 0


def test_a_fused_gradient_without_its_optimizer_is_a_gradient():
    layer = layer_of()
    pytorch.LazySGD(layer.parameters(), fused=True)
    gc.collect()
    layer(batches()[0]).sum().backward()
    assert layer.weight.grad._nnz() > 0


def test_stock_embedding_bag_with_our_optimizer():
    """Its gradient holds rows more than once."""
    bags = torch.nn.EmbeddingBag(30, 3, mode="sum", sparse=True, include_last_offset=True)
    other = copy.deepcopy(bags)
    rows = batches()[0]
    for module, optimizer in (
        (bags, pytorch.LazyAdam(bags.parameters())),
        (other, torch.optim.SparseAdam(list(other.parameters()))),
    ):
        (module(rows.indices, rows.indptr, per_sample_weights=rows.data) ** 2).sum().backward()
        optimizer.step()
    torch.testing.assert_close(bags.weight, other.weight)


def test_a_gradient_that_lies_about_being_coalesced_is_summed():
    weight = torch.nn.Parameter(torch.ones(4, 1))
    optimizer = pytorch.LazyAdagrad([weight], lr=0.1, eps=0.0)
    weight.grad = torch.sparse_coo_tensor(
        torch.tensor([[2, 2]]), torch.ones(2, 1), (4, 1), is_coalesced=True, check_invariants=False
    )
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([[1.0], [1.0], [0.9], [1.0]]))


@pytest.mark.parametrize("rows", [[7], [-1]])
def test_a_gradient_of_rows_out_of_range_is_refused(rows):
    weight = torch.nn.Parameter(torch.ones(4, 1))
    weight.grad = torch.sparse_coo_tensor(
        torch.tensor([rows]), torch.ones(1, 1), (4, 1), is_coalesced=True, check_invariants=False
    )
    with pytest.raises(ValueError, match=r"-1|7"):
        pytorch.LazySGD([weight]).step()
    assert torch.equal(weight, torch.ones(4, 1))


@pytest.mark.parametrize("gradient", [torch.ones(3, 4).T, torch.ones(1, 1).expand(4, 3), torch.randn(4, 3)])
def test_dense_gradients_with_and_without_gaps(gradient):
    weight = torch.nn.Parameter(torch.ones(4, 3))
    weight.grad = gradient.clone(memory_format=torch.preserve_format)
    pytorch.LazySGD([weight], lr=0.5).step()
    torch.testing.assert_close(weight.detach(), 1 - 0.5 * gradient)


def test_parameters_without_a_gradient_stay_and_one_of_no_axis_steps():
    still, number = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.tensor(1.0))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    optimizer = pytorch.LazySGD([still, number, frozen], lr=0.5)
    (number * 2).backward()
    optimizer.step()
    assert (still == 1).all()
    assert (frozen == 1).all()
    assert number.item() == 0


def test_groups_schedulers_and_closures():
    layer, other = layer_of(), layer_of()
    groups = [{"params": [layer.weight], "lr": 0.5}, {"params": [layer.bias]}]
    optimizer = pytorch.LazySGD(groups, lr=0.1)
    theirs = torch.optim.SGD([{"params": [other.weight], "lr": 0.5}, {"params": [other.bias]}], lr=0.1)
    schedulers = [torch.optim.lr_scheduler.StepLR(each, 1, 0.5) for each in (optimizer, theirs)]

    def closure_of(module, stepped):
        def closure():
            stepped.zero_grad()
            loss = (module(batches()[0]) ** 2).sum() * 0.01
            loss.backward()
            return loss

        return closure

    for _ in range(3):
        losses = [each.step(closure_of(module, each)) for module, each in ((layer, optimizer), (other, theirs))]
        torch.testing.assert_close(*losses)
        for scheduler in schedulers:
            scheduler.step()
    torch.testing.assert_close(layer.weight, other.weight)
    torch.testing.assert_close(layer.bias, other.bias)
    assert optimizer.param_groups[0]["lr"] == 0.0625


def test_one_cycle_moves_rate_and_betas():
    layer = layer_of()
    optimizer = pytorch.LazyAdam(layer.parameters())
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=9)
    train(layer, optimizer, after=scheduler.step)
    options = ours(optimizer.param_groups[0], "adam")
    assert options["beta1"] != 0.9
    assert options["beta2"] == 0.999


class Mixed(torch.nn.Module):
    """Layers with row-sparse gradients, one of them of one column, and one with a dense gradient."""

    def __init__(self):
        super().__init__()
        self.ids = torch.nn.Embedding(10, 2, sparse=True)
        self.bias = torch.nn.Embedding(10, 1, sparse=True)
        self.rows = pytorch.SparseLinear(4, 1)
        self.top = torch.nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("kind", "options", "severities", "advice"),
    [
        ("SGD", {"lr": 0.1}, ["warning"], "LazySGD"),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, ["warning"] * 4, "LazyMomentum"),
        ("SGD", {"lr": 0.1, "weight_decay": 0.1}, ["error"] * 2 + ["warning", "error"], "LazySGD"),
        ("Adam", {}, ["error"] * 3, "LazyAdam"),
        ("AdamW", {}, ["error"] * 3, "LazyAdamW"),
        ("RMSprop", {}, ["error"] * 3, "LazyRMSprop"),
        ("NAdam", {}, ["error"] * 3, "LazyAdam"),
        ("Adagrad", {}, [], ""),
        ("Adagrad", {"weight_decay": 0.1}, ["error"] * 3, "LazyAdagrad"),
    ],
)
def test_optimizers_that_refuse_row_sparse_gradients_or_grow_are_told(kind, options, severities, advice):
    model = Mixed()
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
    found = pytorch.check_optimizer(model, optimizer)
    assert [violation.severity for violation in found] == severities
    assert all("top" not in violation.came for violation in found)
    assert not found or f"Take {advice} of workbench.bridges.pytorch" in {violation.advice for violation in found}
    for violation in found:
        lazy = getattr(pytorch, violation.advice.split()[1])
        assert pytorch.check_optimizer(model, lazy(model.parameters())) == []


def test_the_cure_of_growing_momentum_takes_the_same_steps():
    ids, weights = torch.from_numpy(np.random.default_rng(0).integers(0, 10, (60, 8))), []
    for make in (torch.optim.SGD, pytorch.LazyMomentum):
        torch.manual_seed(0)
        layer = torch.nn.Embedding(10, 2, sparse=True)
        options = {"momentum": 0.9} if make is torch.optim.SGD else {"beta": 0.9, "lazy": "exact"}
        optimizer = make(layer.parameters(), lr=0.1, **options)
        for batch in ids:
            optimizer.zero_grad()
            (layer(batch) ** 2).sum().backward()
            optimizer.step()
            getattr(optimizer, "catch_up", lambda: None)()  # torch.nn.Embedding reads the weight
        weights.append(layer.weight.detach().numpy())
    np.testing.assert_allclose(*weights, rtol=1e-4, atol=1e-5)
