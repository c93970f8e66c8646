"""Work of processes is named as "module:function" in text: each such name stands for a function that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORK = re.compile(r"((?:kernels|workbench|benchmarks)(?:\.\w+)+):(\w+)")


def names_in(source: str) -> set[tuple[str, str]]:
    """Pairs (module, function) of all strings of a source that name work."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {found.groups() for text in strings if isinstance(text, str) and (found := WORK.fullmatch(text))}


def is_defined(module: str, function: str) -> bool:
    """Whether the file of a module, or of a package itself, defines a function of that name."""
    package = ROOT.joinpath(*module.split("."))
    path = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    if not path.exists():
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in body)


FILES = [file for package in ("kernels", "workbench", "benchmarks", "tests") for file in (ROOT / package).rglob("*.py")]
SOURCES = [file.read_text(encoding="utf-8") for file in FILES if file != Path(__file__)]
NAMES = sorted(set().union(*(names_in(source) for source in SOURCES if WORK.search(source))))
"""All names of work; every worker of the tests collects them, so only sources that look like having one are parsed."""


@pytest.mark.parametrize(("module", "function"), NAMES)
def test_named_work_exists(module, function):
    assert is_defined(module, function)


def test_every_name_is_found_without_parsing_every_source():
    assert set(NAMES) == set().union(*(names_in(source) for source in SOURCES))


def test_work_that_is_missing_is_found():
    assert names_in('WORK = "workbench.sweeps.trial:no_such_work"') == {("workbench.sweeps.trial", "no_such_work")}
    assert not is_defined("workbench.sweeps.trial", "no_such_work")
    assert not is_defined("workbench.no_such_module", "answers")
    assert len(NAMES) > 5
