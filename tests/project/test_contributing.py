"""What contributors read and what runs for them: named files are there, CI, citation and version agree."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import workbench
from workbench import data

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = (ROOT / "docs" / "develop" / "adding.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
THINGS = ("kernel", "competitor", "format", "operator", "optimizer", "data set", "model", "chart")


def test_files_that_are_named_are_there():
    named = re.findall(r"(?<![\w/.])(?:kernels|workbench|tests|\.ci|\.github)/[\w./-]*\w", GUIDE + RECIPES)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("thing", THINGS)
def test_every_kind_of_entry_has_a_recipe_with_a_file_to_copy_and_what_follows(thing):
    [recipe] = re.findall(rf"^## An? {thing}\n(.*?)^##", RECIPES, re.DOTALL | re.MULTILINE)
    assert re.search(r"[Cc]opy (an entry of )?`(kernels|workbench|benchmarks)/", recipe)
    assert "What follows:" in recipe.replace("\n", " ")


def test_make_has_the_targets_that_are_named():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for line in re.findall(r"make ([\w= .]+)", GUIDE) for name in line.split() if "=" not in name}
    assert {"lint", "test"} <= named & set(targets)


def test_ci_runs_what_ci_run_runs_on_the_pythons_that_are_promised():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert ".ci/run" in [step.get("run") for step in jobs["run"]["steps"]]
    lowest = PROJECT["requires-python"].removeprefix(">=")
    pythons = jobs["run"]["strategy"]["matrix"]["python"]
    assert pythons[0] == lowest
    assert [f"3.{minor}" for minor in range(int(lowest.split(".")[1]), 15)] == pythons
    assert lowest in [step.get("with", {}).get("python-version") for step in jobs["lowest"]["steps"]]


def test_the_citation_agrees_with_the_project_and_leaves_the_version_to_its_one_source():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert "version" not in citation
    assert citation["license"] == PROJECT["license"]
    assert PROJECT["authors"] == [{"name": author["name"]} for author in citation["authors"]]


def test_the_lowest_versions_are_those_of_the_project():
    script = [sys.executable, ROOT / ".ci" / "lowest"]
    constraints = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    direct = [
        *PROJECT["dependencies"],
        *(line for extra in ("lab", "dev") for line in PROJECT["optional-dependencies"][extra]),
    ]
    assert len(constraints) == len(direct)
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( ;.*)?", line) for line in constraints)


def test_a_requirement_without_a_lower_bound_is_refused():
    lowest = runpy.run_path(str(ROOT / ".ci" / "lowest"))["lowest"]
    assert list(lowest(["numba>=0.61,<0.69", "torch[cpu]>=2.7; python_version < '3.14'"])) == [
        "numba==0.61",
        "torch==2.7 ; python_version < '3.14'",
    ]
    with pytest.raises(SystemExit, match=r"'numpy<3' has no lower bound; write name>=version"):
        list(lowest(["numpy<3"]))


def test_the_version_is_stated_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_installed_package_has_the_version_of_the_code():
    assert version("sparse-workbench") == workbench.__version__


@pytest.mark.parametrize(
    ("package", "modules"),
    [
        ("workbench", workbench._PUBLIC),
        ("workbench.data", {name: f"workbench.data.{module}" for name, module in data._MODULE_OF.items()}),
    ],
)
def test_type_checkers_see_the_public_names(package, modules):
    stub = ast.parse((ROOT.joinpath(*package.split(".")) / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname: node.module for node in imports for alias in node.names} == modules


@pytest.mark.parametrize("package", ["kernels", "workbench"])
def test_windows_is_refused_with_what_to_do(package, monkeypatch):
    source = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    code = compile(source, package, "exec")
    monkeypatch.setattr("os.name", "nt")
    with pytest.raises(ImportError, match=r"need.* a POSIX system, Linux or macOS; this one is 'nt'.*WSL 2"):
        exec(code, {"__name__": package})
