"""The first layer of a model: each way has the gradients of the dense one, and what differs is not timed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import workbench as wb  # noqa: E402
from workbench import data  # noqa: E402
from workbench.advising.frameworks import model_answer, torch_layers  # noqa: E402
from workbench.advising.frameworks.first_layer import REST, rows_of_dataset, time_ways  # noqa: E402
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
    before = {name: value.clone() for name, value in model.state_dict().items()}
    answer = wb.advise(drawn(), model=model, batch_rows=32, optimizer="sgd", budget=5)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert isinstance(model[0], torch.nn.Linear)
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
        (torch.nn.Linear(7, 3), "does not take rows of 50 columns"),
        (3.5, "model is a float; expected the name of a model, a torch.nn.Module or a keras.Model"),
    ],
)
def test_a_model_without_such_a_layer_is_refused(model, message):
    with pytest.raises(SpecError, match=message):
        model_answer.answer_for_model(model, drawn())


def test_an_unknown_optimizer_lists_the_known_ones_and_labels_are_needed():
    with pytest.raises(SpecError, match=r"Unknown optimizer 'adan'. Did you mean 'adam'"):
        ways(deep(), optimizer="adan")
    with pytest.raises(SpecError, match="need labels"):
        wb.advise(drawn().x, model=deep())


KERAS = (("deep", "sgd", False), ("branched", "adam", False), ("branched", "adam", True), ("compiled", None, False))


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
