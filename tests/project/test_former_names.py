"""Names that users typed or stored before they were changed are still read."""

import ast
import importlib
import json
import tomllib
import warnings
from pathlib import Path

import pytest

from workbench import aliases
from workbench.sweeps import spec

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("former_names.toml").read_text(encoding="utf-8"))
RENAMED = TABLE["modules"]
NAMES = [(module, old, new) for module, names in aliases.NAMES.items() for old, new in names.items()]
TOML = """
name = "old"

[axes]
dataset = "uniform"

[[contenders]]
format = "csr"
"""


@pytest.mark.parametrize(("module", "old", "new"), NAMES)
def test_a_former_name_is_the_new_one_with_a_warning(module, old, new):
    package = importlib.import_module(module)
    place, _, new = (new if "." in new else f"{module}.{new}").rpartition(".")
    with pytest.warns(FutureWarning, match=f"{old} is called {place}.{new} now"):
        assert getattr(package, old) is getattr(importlib.import_module(place), new)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = package.no_such_name


def test_a_former_key_of_a_typed_spec_is_read_with_a_warning():
    with pytest.warns(FutureWarning, match="'contenders' is called 'candidates' now"):
        read = spec.parse_spec(TOML)
    assert read.candidates == ({"format": "csr"},)
    assert read == spec.parse_spec(TOML.replace("contenders", "candidates"))


def test_a_former_key_of_a_stored_spec_is_read_silently_and_written_anew():
    read = spec.parse_spec(TOML.replace("contenders", "candidates"))
    stored = json.loads(spec.dump_spec(read))
    stored["contenders"] = stored.pop("candidates")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = spec.parse_spec_json(json.dumps(stored))
    assert again == read
    assert "contenders" not in json.loads(spec.dump_spec(again))


def test_a_spec_with_both_names_is_refused():
    both = {"name": "x", "contenders": [], "candidates": []}
    with pytest.raises(spec.SpecError, match="Unknown key 'contenders'"):
        spec.validate_spec(both)


def definitions(path):
    """Names that a module defines at its top level, and attributes of its classes as `Class.name`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{child.name}" for child in node.body if isinstance(child, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def path_of(module):
    """The file of a module by its old dotted path, each part of it replaced as the table says."""
    old = module.split(".")
    parts = [RENAMED.get(".".join(old[: k + 1]), part).rsplit(".", 1)[-1] for k, part in enumerate(old)]
    package = ROOT.joinpath(*parts)
    return package / "__init__.py" if package.is_dir() else package.with_suffix(".py")


def test_former_modules_do_not_come_back():
    kept = [module for module in RENAMED if ROOT.joinpath(*module.split(".")).with_suffix(".py").exists()]
    assert not kept


@pytest.mark.parametrize("module", [module for module in TABLE if module != "modules"])
def test_former_names_do_not_come_back(module):
    path = path_of(module)
    if path.exists():  # a module may be merged into another one
        assert not set(TABLE[module]) & definitions(path)
