"""The version is stated once."""

import ast
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import workbench

ROOT = Path(__file__).parents[2]


def test_the_version_is_stated_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_installed_package_has_the_version_of_the_code():
    assert version("sparse-workbench") == workbench.__version__


def test_type_checkers_see_the_public_names():
    stub = ast.parse((ROOT / "workbench" / "__init__.pyi").read_text(encoding="utf-8"))
    origins = {
        alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert origins == workbench._PUBLIC


@pytest.mark.parametrize("package", ["kernels", "workbench"])
def test_windows_is_refused_with_what_to_do(package, monkeypatch):
    source = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    code = compile(source, package, "exec")
    monkeypatch.setattr("os.name", "nt")
    with pytest.raises(ImportError, match=r"need.* a POSIX system, Linux or macOS; this one is 'nt'.*WSL 2"):
        exec(code, {"__name__": package})
