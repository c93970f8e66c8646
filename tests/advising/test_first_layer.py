"""The first layer of a model: each way has the gradients of the dense one, and what differs is not timed."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import workbench as wb  # noqa: E402
from workbench import data  # noqa: E402
from workbench.advising.frameworks import model_answer, torch_layers  # noqa: E402
from workbench.advising.frameworks.first_layer import REST, rows_of_dataset, time_ways  # noqa: E402
from workbench.analysis.formatting import format_density  # noqa: E402
from workbench.measure.race import Policy  # noqa: E402
from workbench.sweeps.spec import SpecError  # noqa: E402

FEATURES = 50
QUICK = Policy(seconds_call=0.0, rounds=4, rounds_slow=4, rounds_least=4, seconds_most=0.0)


class Bags(torch.nn.Module):
    """A model that begins with an EmbeddingBag."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.EmbeddingBag(FEATURES, 6, mode="sum", include_last_offset=True)
        self.out = torch.nn.Linear(6, 3)

    def forward(self, ids, offsets, weights):
        return self.out(torch.relu(self.table(ids, offsets, per_sample_weights=weights)))


def deep():
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3)
    )


MODELS = {"deep": deep, "linear": lambda: torch.nn.Linear(FEATURES, 3), "bags": Bags}


def drawn(classes=3):
    return data.load("uniform", rows=96, features=FEATURES, density=0.2, classes=classes, seed=1, cache=False)


def ways(model, optimizer="adam", lazy=False, loss=None):
    """The ways to train a model on drawn rows, and the rows."""
    _, dtype, make = torch_layers.ways_of_module(model, FEATURES)
    rows = rows_of_dataset(drawn(), 32, dtype)
    return make(rows, optimizer, loss, lazy), rows


CASES = [("deep", "adam", False), ("deep", "adam", True), ("deep", "sgd", False), ("linear", "adagrad", False)]


@pytest.mark.parametrize(("name", "optimizer", "lazy"), [*CASES, ("bags", "adam", True), ("bags", "sgd", False)])
def test_every_way_has_the_losses_and_gradients_of_the_dense_layer(name, optimizer, lazy):
    found, rows = ways(MODELS[name](), optimizer, lazy)
    records = time_ways(found, rows, QUICK)
    assert {name: record["reason"] for name, record in records.items()} == dict.fromkeys(records, "")
    assert list(records) == [way.name for way in found]
    assert {len(record["samples"]) for record in records.values()} == {4}
    gradients = [records[way.name]["bytes_gradient"] for way in found if way.kind]
    assert gradients[0] == gradients[1]
    assert all(size > 0 for size in gradients)


def test_a_first_layer_that_computes_something_else_is_not_timed():
    found, rows = ways(deep())
    wrong, _ = ways(torch.nn.Sequential(torch.nn.Linear(FEATURES, 8), torch.nn.Linear(8, 3)))
    records = time_ways([found[0], wrong[4]], rows, QUICK)
    record = records[wrong[4].name]
    assert record["status"] == "wrong"
    assert "samples" not in record
    assert record["reason"].startswith("The loss of step 1 is")


def test_the_model_stays_as_it_is_and_the_answer_has_share_ratio_and_lines():
    torch.manual_seed(0)
    model = deep()
    model.eval()
    model[3].weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_state = torch.get_rng_state()
    answer = wb.advise(drawn(), model=model, batch_rows=32, optimizer="sgd", budget=5)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert isinstance(model[0], torch.nn.Linear)
    assert not any(part.training for part in model.modules())
    assert [parameter.requires_grad for parameter in model[3].parameters()] == [False, True]
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert 0 <= answer.share <= 1
    assert answer.ratio[1] <= answer.ratio[0] <= answer.ratio[2]
    assert set(answer.table["kind"]) == {"dense", "sparse"}
    text = str(answer)
    assert "of the dense step, so no first layer makes the step more than" in text
    assert REST not in text
    assert answer.code in text


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    ("name", "place"),
    [("deep", 0), *((name, place) for name in MODELS for place in (2, 3, 4) if (name, place) != ("bags", 4))],
)
def test_the_lines_that_change_run(name, place):
    model = MODELS[name]()
    way = ways(model)[0][place]
    x = drawn().x.astype(np.float32)
    scope = {"torch": torch, "model": model, "X": x, "rows": np.arange(8), "lr": 0.1}
    exec(compile(way.lines, way.name, "exec"), scope)
    assert scope["outputs"].shape[0] == 8


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (torch.nn.Sequential(torch.nn.LayerNorm(FEATURES), torch.nn.Linear(FEATURES, 3)), "No layer takes the rows"),
        (torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Linear(FEATURES, 3)), "No layer takes the rows"),
        (torch.nn.Linear(FEATURES, 3).half(), r"are torch\.float16; expected float32 or float64\.\nType model\.float"),
        (torch.nn.Linear(FEATURES, 3).bfloat16(), "are torch.bfloat16; expected float32"),
        (torch.nn.Linear(7, 3), "does not take rows of 50 columns"),
        (3.5, "model is a float; expected the name of a model, a torch.nn.Module or a keras.Model"),
    ],
)
def test_a_model_without_such_a_layer_is_refused(model, message):
    with pytest.raises(SpecError, match=message):
        model_answer.answer_for_model(model, drawn())


class Slow(torch.nn.Module):
    """A model whose step takes `seconds`; it remembers how many steps there were."""

    steps = 0

    def __init__(self, seconds, only_sparse=False):
        super().__init__()
        self.first, self.seconds, self.only_sparse = torch.nn.Linear(FEATURES, 3), seconds, only_sparse

    def forward(self, x):
        if not self.only_sparse or not isinstance(self.first, torch.nn.Linear):
            Slow.steps += 1
            time.sleep(self.seconds)
        return self.first(x)


@pytest.mark.parametrize(("only_sparse", "kind"), [(False, "dense"), (True, "sparse")])
def test_a_step_that_takes_too_long_for_the_budget_ends_the_call(only_sparse, kind):
    Slow.steps = 0
    message = rf"No {kind} way could be timed within the budget of 2 s\. .*\nType budget=\d+, or a smaller batch_rows"
    with pytest.raises(SpecError, match=message):
        model_answer.answer_for_model(Slow(0.6, only_sparse), drawn(), budget=2)
    assert Slow.steps <= 5


def test_ways_for_which_no_time_is_left_say_so():
    found, rows = ways(Slow(1.0, only_sparse=True))
    records = time_ways(found, rows, QUICK, seconds=3)
    assert {"samples" in records[way.name] for way in found if way.kind == "dense"} == {True}
    left_out = [record for record in records.values() if record["status"] == "time"]
    assert left_out
    assert all(record["reason"].startswith("Not timed: ") for record in left_out)


def test_a_model_that_also_uses_the_rows_elsewhere_stays_dense_without_a_traceback(capsys):
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(FEATURES, 3)

        def forward(self, x):
            return self.first(x) + x.sum(1, keepdim=True).log1p()

    answer = model_answer.answer_for_model(Twice(), drawn(), budget=5)
    assert answer.headline == "Keep the dense layer first: no sparse way ran."
    assert f"Your rows have a density of {format_density(answer.density, 2)}. Break-evens measured elsewhere" in str(
        answer
    )
    assert {one.library for one in answer.measured_elsewhere.operations} == {"PyTorch"}
    assert all("\n" not in way.reason for way in answer.ways)
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_optimizer_lists_the_known_ones_and_labels_are_needed():
    with pytest.raises(SpecError, match=r"Unknown optimizer 'adan'. Did you mean 'adam'"):
        ways(deep(), optimizer="adan")
    with pytest.raises(SpecError, match="need labels"):
        wb.advise(drawn().x, model=deep())


KERAS = (
    ("deep", "sgd", False),
    pytest.param("branched", "adam", False, marks=pytest.mark.exhaustive),
    ("branched", "adam", True),
    pytest.param("compiled", None, False, marks=pytest.mark.exhaustive),
)


def keras_model(name):
    import keras

    if name == "deep":
        layers = [
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
        ]
        return keras.Sequential([*layers, keras.layers.Dense(3, activation="softmax")])
    given = keras.Input((FEATURES,))
    first = keras.layers.Dense(8, name="first")(given)
    both = keras.layers.add([first, keras.layers.Dense(8, activation="relu")(first)])
    model = keras.Model(given, keras.layers.Dense(3)(both))
    if name == "compiled":
        model.compile("rmsprop", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.mark.parametrize(("name", "optimizer", "lazy"), KERAS)
def test_every_way_of_keras_has_the_losses_and_gradients_of_the_dense_layer(name, optimizer, lazy):
    pytest.importorskip("tensorflow")
    from workbench.advising.frameworks import keras_layers

    _, dtype, make = keras_layers.ways_of_model(keras_model(name), FEATURES)
    rows = rows_of_dataset(drawn(), 32, dtype)
    records = time_ways(make(rows, optimizer, None, lazy), rows, QUICK)
    assert {name: record["reason"] for name, record in records.items()} == dict.fromkeys(records, "")
    assert len(records) == 5
