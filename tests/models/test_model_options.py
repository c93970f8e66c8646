"""Options of a model: checked where they come in, part of the configuration, and of what a sweep leaves out."""

import numpy as np
import pytest

from workbench import models, training
from workbench.metrics import r2
from workbench.models import Given, Model, ModelError, Option, Parameter, glorot, he
from workbench.models.nodes import of_model
from workbench.sweeps import grid, problem
from workbench.sweeps.spec import Configuration

TABLE = {
    "hidden": Option(64, "units", least=1, most=4096),
    "rate": Option(0.5, "share left out", least=0),
    "kind": Option("relu", "what bends", allowed=("relu", "tanh")),
}


def toy(**changed) -> Model:
    return Model("toy", loss="squared", target="numbers", quality_name="r2", quality=r2, predicts="", **changed)


def test_defaults_hold_where_nothing_is_given():
    assert of_model("toy", TABLE, None) == {"hidden": 64, "rate": 0.5, "kind": "relu"}
    assert of_model("toy", TABLE, "kind=tanh, rate=1") == {"hidden": 64, "rate": 1, "kind": "tanh"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width=3", "The toy model has no option 'width'; its options are hidden, rate, kind."),
        ("hidden=0", "The option hidden of toy is 0; it is a whole number from 1 to 4096."),
        ("hidden=5000", "The option hidden of toy is 5000; it is a whole number from 1 to 4096."),
        ("hidden=2.5", "The option hidden of toy is 2.5; it is a whole number from 1 to 4096."),
        ("hidden=true", "The option hidden of toy is True; it is a whole number from 1 to 4096."),
        ("rate=much", "The option rate of toy is 'much'; it is a number from 0."),
        ("rate=nan", "The option rate of toy is nan; it is a number from 0."),
        ("kind=cubic", "The option kind of toy is 'cubic'; it is one of relu, tanh."),
        ("hidden", "model_options is 'hidden'; it is name=value, with commas between several: hidden=64."),
    ],
)
def test_what_does_not_fit_is_refused_in_words(text, message):
    with pytest.raises(ModelError) as raised:
        of_model("toy", TABLE, text)
    assert str(raised.value) == message


def test_shapes_may_depend_on_options_and_on_facts_of_the_data():
    model = toy(
        options=TABLE,
        needs=("fields",),
        parameters=lambda given: (Parameter("w", (given.facts["fields"][0], given.options["hidden"])),),
    )
    given = model.given(30, 1, "hidden=8", {"fields": [20, 10], "graph": None})
    assert [one.shape for one in model.trained(given, intercept=True)] == [(20, 8), (1,)]
    assert given.facts == {"fields": [20, 10]}


def test_data_that_lacks_what_a_model_needs_is_refused():
    with pytest.raises(ModelError, match="The toy model needs data with a graph of its rows; this data has none"):
        toy(needs=("graph",)).given(30, 1, None, {"graph": None})
    assert problem.missing_facts_reason(toy(), "stdlib") == ""
    result = "The toy model needs data with a graph of its rows; uniform has none. There is: "
    assert problem.missing_facts_reason(toy(needs=("graph",)), "uniform").startswith(result)


def test_unknown_options_make_no_configuration_and_those_of_other_models_are_left_out():
    setup = training.Setup(model="softmax", model_options="hidden=3")
    assert training.impossible_reason(setup) == "The softmax model has no option 'hidden'; it has none."
    configuration = Configuration(model="softmax", model_options="hidden=3")
    assert grid.list_unread_settings(configuration) == ["model_options"]
    assert grid.drop_unread_settings(configuration) == Configuration(model="softmax")


def test_options_are_part_of_the_key_of_a_row():
    assert grid.configuration_key(Configuration(model_options="hidden=3")) != grid.configuration_key(Configuration())


def test_starting_values_have_the_deviation_that_is_named():
    assert glorot(30, 20) == pytest.approx(0.2)
    assert he(50) == pytest.approx(0.2)
    model = models.get("factorization_machine")
    factors = model.parameters(Given(4000, 5))[1]
    run = training.Run(training.Setup(model=model.name), np.ones((3, 4000), np.float32)[:, :], np.ones((3, 1)), 5)
    assert run.start_of(factors).std() == pytest.approx(0.01, rel=0.05)
