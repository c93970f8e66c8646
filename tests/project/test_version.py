"""The version is stated once."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import workbench

ROOT = Path(__file__).parents[2]


def test_the_version_is_stated_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_installed_package_has_the_version_of_the_code():
    assert version("sparse-workbench") == workbench.__version__
