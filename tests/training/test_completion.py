"""Engine, gradient and update that are not given: what suits is taken, and told where it is not the usual."""

import itertools

import pytest

from workbench import formats, settings
from workbench.ops.products import ENGINES
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration, validate_spec
from workbench.training import setup
from workbench.training.setup import complete_settings


@pytest.mark.parametrize("fastest", [False, True])
@pytest.mark.parametrize("format", formats.names())
def test_every_format_alone_is_a_configuration(format, fastest):
    completed, _ = complete_settings({"format": format}, fastest)
    assert grid.why_dropped(Configuration(**completed)) == ""


def test_the_usual_is_taken_where_it_means_something_and_not_told():
    assert complete_settings({}) == ({"engine": "ours", "gradient": "row_sparse", "update": "lazy"}, ())
    assert complete_settings({"format": "csr", "update": "standard"})[0]["gradient"] == "row_sparse"
    assert complete_settings({"format": "csr"}, fastest=True)[0]["gradient"] == "fused"


def test_what_is_completed_is_told():
    completed, notes = complete_settings({"format": "dense"})
    assert completed == {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
    assert notes == ("format = dense: engine dense, gradient dense, update standard completed",)
    assert complete_settings({"format": "dense", "gradient": "row_sparse"})[0]["engine"] == "dense", (
        "which the refusal is about"
    )
    assert complete_settings({"execution": "cuda_graph", "device": "cuda"})[0]["gradient"] == "fused"
    assert complete_settings({"format": "csr", "engine": "vendor"})[0]["gradient"] == "dense"


def test_what_is_given_is_never_changed_and_what_can_be_completed_is():
    """Over all of what may be given: a completion means something wherever any does."""
    known = [ENGINES, *(settings.BY_NAME[name].allowed for name in ("gradient", "update"))]
    for format, *values in itertools.product(formats.names(), *((None, *each) for each in known)):
        named = zip(setup.COMPLETED, values, strict=True)
        given = {"format": format} | {name: value for name, value in named if value is not None}
        completed, _ = complete_settings(given)
        assert given.items() <= completed.items()
        open_choices = [[value] if value else each for value, each in zip(values, known, strict=True)]
        any_suits = any(
            not grid.why_dropped(Configuration(format=format, **dict(zip(setup.COMPLETED, chosen, strict=True))))
            for chosen in itertools.product(*open_choices)
        )
        assert any_suits == (
            set(setup.COMPLETED) <= set(completed) and not grid.why_dropped(Configuration(**completed))
        )


def test_a_sweep_of_formats_alone_has_a_configuration_of_each_and_says_what_was_completed():
    configurations = grid.expand_grid(
        validate_spec({"name": "x", "axes": {"format": list(formats.names()), "density": [0.1, 0.2], "threads": 1}})
    )
    assert not configurations.dropped
    assert {configuration.format for configuration in configurations.configurations} == set(formats.names())
    assert len(configurations.configurations) == 2 * len(formats.names())
    assert "format = row_sparse: engine ours, gradient dense, update standard completed" in configurations.notes
    assert not any("csr" in note for note in configurations.notes)
