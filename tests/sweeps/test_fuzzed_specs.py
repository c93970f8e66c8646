"""Damaged specs: a spec, or a `SpecError`; nothing else."""

import json

import pytest

from tests.support.mutations import damaged_bytes, damaged_json, draws
from workbench.sweeps import spec
from workbench.sweeps.spec import SpecError

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
