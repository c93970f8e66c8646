"""States of our optimizers in PyTorch: saved, loaded, caught up; and what they refuse."""

import copy

import pytest

torch = pytest.importorskip("torch")

from tests.support.torch_training import RULES, assert_same, batches, class_of, layer_of, train  # noqa: E402
from workbench import optimizers  # noqa: E402
from workbench.bridges import pytorch  # noqa: E402
from workbench.bridges.contracts import class_name  # noqa: E402
from workbench.optimizers import OptimizerError  # noqa: E402


@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam", "adamw", "ftrl", "group_adagrad"])
def test_a_state_that_is_saved_and_loaded_goes_on_with_the_same_bits(rule, lazy, tmp_path):
    options = {"lazy": lazy, "weight_decay": 0.01}
    layer = layer_of()
    optimizer = class_of(rule)([{"params": [layer.weight]}, {"params": [layer.bias], "lr": 0.02}], **options)
    train(layer, optimizer, batches()[:3])
    torch.save({"model": layer.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.pt")
    train(layer, optimizer, batches()[3:])
    saved = torch.load(tmp_path / "run.pt", weights_only=True)
    other = layer_of(seed=1)
    other.load_state_dict(saved["model"])
    again = class_of(rule)([{"params": [other.weight]}, {"params": [other.bias]}], **options)
    again.load_state_dict(saved["optimizer"])
    assert again.param_groups[1]["lr"] == 0.02
    train(other, again, batches()[3:])
    optimizer.catch_up()
    again.catch_up()
    assert_same(layer, other)


@pytest.mark.parametrize("is_copied", [False, True])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam", "ftrl"])
def test_an_exact_optimizer_may_be_saved_before_its_model(rule, is_copied):
    """Rows caught up twice: the model's weights had caught up, and the optimizer's record said that they had not."""
    layer, other = layer_of(), layer_of(seed=1)
    optimizer, again = (class_of(rule)(each.parameters(), lazy="exact", weight_decay=0.1) for each in (layer, other))
    train(layer, optimizer, batches()[:3])
    states = optimizer.state_dict(), layer.state_dict()
    of_optimizer, of_layer = copy.deepcopy(states) if is_copied else states
    other.load_state_dict(of_layer)
    again.load_state_dict(of_optimizer)
    assert_same(layer, other)
    for each, steps in ((layer, optimizer), (other, again)):
        train(each, steps, batches()[3:])
        steps.catch_up()
    assert_same(layer, other)


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    layer = layer_of()
    optimizer = pytorch.LazyAdam(layer.parameters())
    train(layer, optimizer)
    state = optimizer.state_dict()
    fresh = pytorch.LazyAdam(layer_of().parameters(), lr=0.5)
    theirs = torch.optim.Adam(layer_of().parameters())
    with pytest.raises(OptimizerError, match="rescale"):
        fresh.load_state_dict(theirs.state_dict())
    with pytest.raises(OptimizerError, match="sgd"):
        pytorch.LazySGD(layer.parameters()).load_state_dict(state | {"param_groups": fresh_groups(layer)})
    with pytest.raises(OptimizerError, match="lazy"):
        pytorch.LazyAdam(layer.parameters(), lazy="off").load_state_dict(state)
    narrow = copy.deepcopy(state)
    narrow["state"][0]["weight/mean"] = torch.zeros(30, 2)
    with pytest.raises(OptimizerError, match="mean"):
        fresh.load_state_dict(narrow)
    with pytest.raises(OptimizerError, match="were dense"):
        pytorch.LazyAdam([torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]).load_state_dict(state)
    assert fresh.param_groups[0]["lr"] == 0.5
    assert not fresh.state_dict()["state"]


def fresh_groups(layer) -> list:
    return pytorch.LazySGD(layer.parameters()).state_dict()["param_groups"]


def test_exact_rows_catch_up_when_they_are_read_and_saved():
    layer = layer_of()
    optimizer = pytorch.LazyAdam(layer.parameters(), lazy="exact", lr=0.1)
    train(layer, optimizer)
    other = layer_of()
    other.load_state_dict(layer.state_dict())
    assert_same(layer, other)
    rows = batches()[0]
    before = layer.weight.detach().clone()
    train(layer, optimizer, batches()[1:2])
    with torch.no_grad():
        layer(rows)
    touched = rows.indices.unique().long()
    assert not torch.equal(layer.weight[touched], before[touched])


def test_exact_refuses_a_gradient_of_rows_that_had_not_caught_up():
    bags = torch.nn.EmbeddingBag(30, 3, mode="sum", sparse=True, include_last_offset=True)
    optimizer = pytorch.LazyAdam(bags.parameters(), lazy="exact")

    def step(rows):
        optimizer.zero_grad()
        bags(rows.indices, rows.indptr, per_sample_weights=rows.data).sum().backward()
        optimizer.step()

    step(batches()[0])
    step_all = lambda: [step(rows) for rows in batches()[1:]]  # noqa: E731
    with pytest.raises(OptimizerError, match="catch_up"):
        step_all()
    optimizer.catch_up()
    step(batches()[1])


def test_autograd_sees_that_a_step_wrote_to_the_weight():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = pytorch.LazySGD([weight])
    later = (weight**2).sum()
    weight.grad = torch.ones(3)
    optimizer.step()
    with pytest.raises(RuntimeError, match="inplace"):
        later.backward()


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (torch.ones(3, dtype=torch.bfloat16), "bfloat16"),
        (torch.ones(3, 2).T, "gaps"),
        (torch.ones(3, device="meta"), "meta"),
    ],
)
def test_parameters_that_kernels_cannot_step_are_refused(parameter, words):
    with pytest.raises(OptimizerError, match=words):
        pytorch.LazySGD([torch.nn.Parameter(parameter)])


def test_unknown_options_names_and_layouts_are_refused_with_what_there_is():
    parameters = [torch.nn.Parameter(torch.ones(3, 2))]
    with pytest.raises(OptimizerError, match=r"momentum.*lr"):
        pytorch.LazySGD(parameters, momentum=0.9)
    with pytest.raises(OptimizerError, match="learning_rate"):
        pytorch.LazySGD([{"params": parameters, "learning_rate": 0.1}])
    with pytest.raises(OptimizerError, match="off, on, exact"):
        pytorch.LazySGD(parameters, lazy="very")
    with pytest.raises(OptimizerError, match="betas"):
        pytorch.LazyAdam(parameters, betas=(0.9,))
    with pytest.raises(OptimizerError, match="beta1"):
        pytorch.LazyAdam(parameters, betas=(1.5, 0.9))
    with pytest.raises(AttributeError, match="LazyAdam"):
        pytorch.LazyNothing  # noqa: B018
    with pytest.raises(AttributeError, match="nothing"):
        pytorch.nothing  # noqa: B018
    with pytest.raises(OptimizerError, match="LazyAdam"):
        pytorch.LazyOptimizer(parameters)
    with pytest.raises(TypeError, match="state_dict"):
        copy.deepcopy(pytorch.LazySGD(parameters))
    parameters[0].grad = torch.ones(3, 2).to_sparse()
    with pytest.raises(OptimizerError, match="2 sparse dimensions"):
        pytorch.LazySGD(parameters).step()


def test_every_optimizer_has_a_class_that_says_its_rule():
    assert set(dir(pytorch)) >= {class_name(rule) for rule in RULES}
    assert class_of("centered_rmsprop").__name__ == "LazyCenteredRMSprop"
    assert "Lazy       " in pytorch.LazyAdam.__doc__
