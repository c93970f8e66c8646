"""Parameters of a reader as the setting `reading` gives them."""

import pytest

from workbench import data
from workbench.data import contract
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration, SpecError, dump_spec, parse_spec, parse_spec_json


def test_invalid_and_unknown_options_are_refused(tmp_path):
    with pytest.raises(data.DataError, match="reading is 'zero'; it is name=value"):
        contract.reader_options("zero")
    (tmp_path / "x.txt").write_text("1 1:1\n0 2:1\n")
    with pytest.raises(data.DataError, match=r"no parameter 'zero'; its parameters are .*zero_based"):
        contract.guess_reader_options(tmp_path / "x.txt", {"zero": True})


def test_a_spec_and_a_configuration_take_reader_options_as_a_mapping_or_as_text():
    typed, mapped = (Configuration(dataset="table", reading=given) for given in ("b=2, a=x", {"a": "x", "b": 2}))
    assert typed == mapped
    assert len({typed, mapped}) == 1
    assert typed.model_dump()["reading"] == "a=x, b=2"
    spec = parse_spec('name = "a"\n[axes]\nreading = [{hashed = 8}, "hashed=9"]')
    assert spec.axes["reading"] == ({"hashed": 8}, {"hashed": 9})
    assert parse_spec_json(dump_spec(spec)) == spec
    with pytest.raises(SpecError, match="reading = 3: 3 is a whole number; expected options"):
        parse_spec('name = "a"\n[axes]\nreading = 3')


def test_a_configuration_reads_its_file_with_the_options(tmp_path):
    from workbench.sweeps.problem import parameters_of_file

    path = tmp_path / "x.txt"
    path.write_text("1 0:1\n0 1:1\n")
    configuration = Configuration(dataset="svmlight", path=str(path), reading="zero_based=true, features=7")
    assert data.load("svmlight", cache=False, **parameters_of_file(vars(configuration))).features == 7
    assert "no parameter" in grid.why_dropped(configuration.model_copy(update={"reading": {"colour": 1}}))
    assert grid.list_unread_settings(Configuration(dataset="uniform", reading="zero_based=true")) == ["reading"]
    twice = configuration.model_copy(update={"kind": "classes", "reading": {"kind": "numbers"}})
    assert "named in reading too" in grid.why_dropped(twice)


def test_what_is_said_of_a_reader_counts_before_what_is_guessed_of_the_file(tmp_path):
    (tmp_path / "some.txt").write_text("only words and more of them\nother words stand here\n")
    dataset, options, why = contract.guess_reader_options(tmp_path / "some.txt", {"lower": False})
    assert (dataset, options, why) == ("text", {"label": "none", "lower": False}, "it looks like other text")
    assert contract.guess_reader_options(tmp_path / "some.txt", {"label": "first"})[1] == {"label": "first"}
