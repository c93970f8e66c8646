"""The page on the architecture names functions by file: each of them exists there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "develop" / "architecture.md"
NAMED = re.compile(r"`((?:kernels|workbench)/[\w/]+\.py)` `([\w.]+)`")
"""A path and, after it, a function, class or method of that file."""


def defined(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Yield the names of functions and classes, those of methods with the class and a period before."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name
            yield from defined(node, f"{prefix}{node.name}.")


def missing(text: str) -> list[tuple[str, str]]:
    """Return the pairs (path, name) in a text that name nothing that exists."""
    return [pair for pair in NAMED.findall(text) if not is_defined(*pair)]


def is_defined(path: str, name: str) -> bool:
    """Return whether the file exists and defines the name."""
    file = ROOT / path
    return file.exists() and name in defined(ast.parse(file.read_text(encoding="utf-8")))


def test_named_functions_exist():
    text = PAGE.read_text(encoding="utf-8")
    assert len(NAMED.findall(text)) > 20
    assert not missing(text)


def test_a_missing_function_is_found():
    pairs = [("workbench/sweeps/runner.py", "Supervisor.no_such"), ("workbench/no_such.py", "run")]
    assert missing(" ".join(f"`{path}` `{name}`" for path, name in pairs)) == pairs
