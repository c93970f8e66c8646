"""Specs, also damaged ones, and grids: what is refused and how, candidates, keys."""

import json

import pytest

from tests.support.mutations import damaged_bytes, damaged_json, draws
from workbench.sweeps import grid, spec
from workbench.sweeps.spec import (
    Configuration,
    SpecError,
    dump_spec,
    load_spec,
    parse_spec,
    parse_spec_json,
    validate_spec,
)

MINIMAL = {"name": "x", "axes": {"format": ["csr"]}}


def error_of(**changes) -> str:
    with pytest.raises(SpecError) as error:
        validate_spec({**MINIMAL, **changes})
    return str(error.value)


def test_unknown_keys_list_the_known_and_the_nearest():
    assert "Unknown key 'axis'. Did you mean 'axes'? Expected one of: name, description, axes" in error_of(axis={})
    assert "Unknown setting 'densty'. Did you mean 'density'? Expected one of: dataset, path" in error_of(
        axes={"densty": 1}
    )
    assert "Unknown key 'round'. Did you mean 'rounds'?" in error_of(measure={"round": 2})
    assert "Unknown setting 'gradent'. Did you mean 'gradient'" in error_of(candidates=[{"gradent": "dense"}])


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({"format": "cssr"}, "Unknown value 'cssr'. Did you mean 'csr'? Expected one of: dense, csr"),
        ({"density": [0.1, 1.5]}, "density = 1.5: Input should be less than or equal to 1"),
        ({"width": 0}, "width = 0"),
        ({"engine": "theirs"}, "engine = 'theirs'"),
        ({"density": []}, "density has no values"),
        ({"density": [0.1, 0.1]}, "density names a value twice"),
        ({"dataset": "stdlb"}, "Did you mean 'stdlib'?"),
    ],
)
def test_values_are_checked_axis_by_axis(axes, text):
    said = error_of(axes=axes)
    assert text in said
    assert said.startswith(next(iter(axes)))


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        *((axis, 10**22, "less than or equal to 9223372036854775807") for axis in ("batch_rows", "rows", "features")),
        *((axis, 2**63, "less than or equal to 9223372036854775807") for axis in ("threads", "seed", "epochs")),
        ("rows", True, "True is true or false; expected a whole number"),
        ("batch_rows", 64.0, "64.0 is a number; expected a whole number"),
        ("batch_rows", "64", "'64' is text; expected a whole number"),
        ("density", True, "True is true or false; expected a number"),
        ("learning_rate", float("inf"), "inf is not finite; expected a finite number"),
        ("shuffle", 1, "1 is a whole number; expected true or false"),
    ],
)
def test_values_of_another_type_or_beyond_64_bits_are_refused(axis, value, text):
    assert text in error_of(axes={axis: [value]})


@pytest.mark.parametrize("measure", [{"rounds": True}, {"rounds": "4"}, {"roofs": 1}, {"samples_most": 2**63}])
def test_settings_of_measuring_are_taken_as_they_are_typed(measure):
    assert error_of(measure=measure).startswith(f"{next(iter(measure))} = ")


def test_an_axis_that_is_also_a_candidates_setting_is_refused():
    assert "['format'] is an axis and a setting of a candidate" in error_of(candidates=[{"format": "csr"}])


def test_names_that_are_no_folder_names_are_refused():
    assert (
        error_of(name="../x") == "name: '../x' cannot name a run folder; take letters, digits, dots, hyphens and "
        "underscores, a letter or digit first"
    )


def test_text_that_is_not_toml_is_refused():
    with pytest.raises(SpecError, match="This is not TOML"):
        parse_spec("name = ")


def test_a_file_names_itself_in_errors_and_its_data_paths_are_beside_it(tmp_path):
    file = tmp_path / "s.toml"
    with pytest.raises(SpecError, match=r"There is no spec .*s\.toml; give the path"):
        load_spec(file)
    file.write_text('name = "s"\n[axes]\ndataset = "svmlight"\npath = "d.txt"\n', encoding="utf-8")
    assert load_spec(file).axes["path"] == (str(tmp_path / "d.txt"),)
    file.write_text('name = "s"\n[[candidates]]\npath = "x.npz"\nlabels = "y.npy"\nformat = "csr"', encoding="utf-8")
    beside = {"path": str(tmp_path / "x.npz"), "labels": str(tmp_path / "y.npy"), "format": "csr"}
    assert load_spec(file).candidates == (beside,)


def test_a_dumped_spec_is_read_back_the_same():
    spec = parse_spec('name = "a"\n[axes]\ndensity = ["natural", 0.1]\n[[candidates]]\nformat = "csr"\n')
    assert spec.axes["density"] == (None, 0.1)
    assert parse_spec_json(dump_spec(spec)) == spec


def test_the_spec_that_a_run_keeps_is_a_file_to_sweep_from(tmp_path):
    made, kept = tmp_path / "s.toml", tmp_path / "runs" / "spec.json"
    made.write_text('name = "s"\n[axes]\ndataset = "svmlight"\npath = "d.txt"\n', encoding="utf-8")
    kept.parent.mkdir()
    kept.write_text(dump_spec(load_spec(made)), encoding="utf-8")
    assert load_spec(kept) == load_spec(made)
    for text, words in (("{", r"spec\.json: This is not JSON"), ('{"name": "s", "axis": 1}', "axis")):
        kept.write_text(text, encoding="utf-8")
        with pytest.raises(SpecError, match=words):
            load_spec(kept)


def test_impossible_combinations_are_dropped_with_their_reasons():
    axes = {
        "format": ["csr", "dense"],
        "engine": ["ours", "dense"],
        "gradient": ["row_sparse", "dense"],
        "update": ["lazy", "standard"],
    }
    made = grid.expand_grid(validate_spec({"name": "x", "axes": axes}))
    kept = {
        (configuration.format, configuration.engine, configuration.gradient, configuration.update)
        for configuration in made.configurations
    }
    assert kept == {
        ("csr", "ours", "row_sparse", "lazy"),
        ("csr", "ours", "row_sparse", "standard"),
        ("csr", "ours", "dense", "standard"),
        ("dense", "dense", "dense", "standard"),
    }
    assert sum(made.dropped.values()) == 16 - 4
    assert any("a dense gradient names none" in reason for reason in made.dropped)


def test_candidates_are_run_at_every_combination_of_the_axes():
    candidates = [{"format": "csr"}, {"format": "coo", "optimizer": "adam"}]
    made = grid.expand_grid(validate_spec({"name": "x", "axes": {"density": [0.1, 0.2]}, "candidates": candidates}))
    assert [(c.density, c.format, c.optimizer) for c in made.configurations] == [
        (0.1, "csr", "adagrad"), (0.1, "coo", "adam"), (0.2, "csr", "adagrad"), (0.2, "coo", "adam"),
    ]  # fmt: skip


def test_a_key_follows_every_setting():
    configuration = Configuration()
    keys = {
        grid.configuration_key(configuration),
        grid.configuration_key(Configuration(seed=1)),
        grid.configuration_key(Configuration(format="coo")),
        grid.configuration_key(Configuration(width=3)),
    }
    assert len(keys) == 4
    assert grid.configuration_key(Configuration()) == grid.configuration_key(configuration)


MUTATIONS = 150
TOML = b"""name = "small"
[axes]
format = ["dense", "csr"]
density = [0.01, 0.1]
width = 4
"""


def read(call, *given) -> bool:
    try:
        call(*given)
    except SpecError:
        return False
    return True


def test_damaged_toml(tmp_path):
    for _, source in draws(MUTATIONS):
        (tmp_path / "x.toml").write_bytes(damaged_bytes(source, TOML))
        read(spec.load_spec, tmp_path / "x.toml")


def test_damaged_json(tmp_path):
    document = json.loads(spec.dump_spec(spec.parse_spec(TOML.decode())))
    for _, source in draws(MUTATIONS):
        read(spec.parse_spec_json, json.dumps(damaged_json(source, document)))


@pytest.mark.parametrize("text", ["[" * 10**5, "[]", "3", "null", "1" * 5000, '{"axes": 3}'])
def test_json_that_is_no_spec_is_refused(text):
    assert not read(spec.parse_spec_json, text)


@pytest.mark.parametrize("text", ["a=" + "[" * 5000, "a=" + "1" * 5000, "axes=3", "a=[[1]]"])
def test_toml_that_is_no_spec_is_refused(text):
    assert not read(spec.parse_spec, text)


def test_what_is_whole_is_read_so_that_the_tests_above_can_fail():
    assert read(spec.parse_spec, TOML.decode())


def test_a_path_with_a_nul_character_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text('name = "a"\n[axes]\ndataset = "svmlight"\npath = "a\\u0000b"\n')
    with pytest.raises(spec.SpecError, match=r"s.toml: path='a\\x00b' has a NUL character"):
        spec.load_spec(tmp_path / "s.toml")
