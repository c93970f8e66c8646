"""Parameters of a reader as the setting `reading` gives them."""

import pytest

from workbench import data
from workbench.data import contract
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zero", "reading is 'zero'; it is name=value"),
        ("zero=true", r"no parameter 'zero'; its parameters are .*zero_based"),
    ],
)
def test_invalid_and_unknown_options_are_refused(text, message):
    with pytest.raises(data.DataError, match=message):
        contract.options_of_source(data.get("svmlight"), text)


def test_a_configuration_reads_its_file_with_the_options(tmp_path):
    from workbench.sweeps.problem import parameters_of_file

    path = tmp_path / "x.txt"
    path.write_text("1 0:1\n0 1:1\n")
    configuration = Configuration(dataset="svmlight", path=str(path), reading="zero_based=true, features=7")
    assert data.load("svmlight", cache=False, **parameters_of_file(configuration.model_dump())).features == 7
    assert "no parameter" in grid.why_dropped(configuration.model_copy(update={"reading": "colour=1"}))
    assert grid.list_unread_settings(Configuration(dataset="uniform", reading="zero_based=true")) == ["reading"]
    twice = configuration.model_copy(update={"kind": "classes", "reading": "kind=numbers"})
    assert "named in reading too" in grid.why_dropped(twice)


def test_what_is_said_of_a_reader_counts_before_what_is_guessed_of_the_file(tmp_path):
    (tmp_path / "some.txt").write_text("only words and more of them\nother words stand here\n")
    dataset, options, why = contract.guess_reader_options(tmp_path / "some.txt", "lower=false")
    assert (dataset, options, why) == ("text", "label='none', lower=false", "it looks like other text")
    assert contract.guess_reader_options(tmp_path / "some.txt", "label=first")[1] == "label=first"
