"""The project's source: every public name says what it is, and tests do not depend on the speed of the machine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
WAITS = ROOT / "tests" / "support" / "clocks.py"
"""Where tests wait for a condition: the one place that looks at a clock, with a limit for what hangs."""
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(tree: ast.AST) -> Iterator[DEFINED]:
    """All functions and classes, those inside others too."""
    return (node for node in ast.walk(tree) if isinstance(node, DEFINED))


def reachable(tree: ast.AST) -> Iterator[DEFINED]:
    """Functions and classes that a user can name: those of modules and classes, not those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, DEFINED):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from reachable(node)


def undocumented(source: str) -> list[str]:
    """The module, and each public function and class, where it has no docstring."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["the module"]
    public = (node for node in reachable(tree) if not node.name.startswith("_"))
    return found + [node.name for node in public if not ast.get_docstring(node)]


def undocumented_inside(source: str) -> list[str]:
    """Functions and classes inside functions, and methods of these classes, without a docstring."""
    outer = (node for node in definitions(ast.parse(source)) if not isinstance(node, ast.ClassDef))
    inside = {inner: inner.name for function in outer for inner in definitions(function) if inner is not function}
    return [name for inner, name in inside.items() if not ast.get_docstring(inner)]


def timed(source: str) -> list[int]:
    """Lines that compare what a clock says, or take a time from it: how they end depends on how fast the machine is."""
    if not any(clock in source for clock in CLOCKS):
        return []
    return [node.lineno for node in ast.walk(ast.parse(source)) if is_of_times(node) and reads_a_clock(node)]


def is_of_times(node: ast.AST) -> bool:
    """Whether it compares, or is a difference."""
    return isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub))


def reads_a_clock(node: ast.AST) -> bool:
    """Whether a clock is called anywhere in it."""
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(getattr(each, "attr", getattr(each, "id", "")).removesuffix("_ns") in CLOCKS for each in called)


@pytest.mark.parametrize("folder", ["kernels", "workbench"])
def test_every_public_name_has_a_docstring(folder):
    files = list((ROOT / folder).rglob("*.py"))
    assert not {str(file): bare for file in files if (bare := undocumented(file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("folder", ["kernels", "workbench"])
def test_functions_inside_functions_have_a_docstring(folder):
    """They are most of what is compiled, called back and registered: each says what it does, writes or returns."""
    files = list((ROOT / folder).rglob("*.py"))
    bare = {str(file): undocumented_inside(file.read_text(encoding="utf-8")) for file in files}
    assert not {file: names for file, names in bare.items() if names}


def test_no_test_depends_on_how_fast_the_machine_is():
    """Give the code a `clocks.Clock`, count its calls, or wait with `clocks.until` for what is to happen."""
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py") if file != WAITS}
    assert not {str(file): lines for file, source in sources.items() if (lines := timed(source))}


BARE_UNIT = re.compile(r"""\{(?!size // MIB)[^{}]*\} (?:classes|MiB)\b|/ 2\*\*20:""")
"""A count of classes, or of MiB, next to a fixed noun: 1 classes, 0 MiB."""
COUNTED_OFTEN = ("with {classes} classes",)
"""Where the count is 2 or more."""


def bare_units(source: str) -> list[str]:
    """Texts of a source whose noun or unit does not follow the count, in order."""
    lines = [line for line in source.splitlines() if not any(each in line for each in COUNTED_OFTEN)]
    return [match for line in lines for match in BARE_UNIT.findall(line)]


def test_a_count_has_its_noun_and_a_size_its_unit_from_one_place():
    """`kernels.registry.format_count` and `format_size`: never "1 classes" or "0 MiB"."""
    files = [file for package in ("kernels", "workbench") for file in (ROOT / package).rglob("*.py")]
    found = {str(file): bare_units(file.read_text(encoding="utf-8")) for file in files}
    assert not {file: texts for file, texts in found.items() if texts}


def test_these_tests_can_fail():
    assert bare_units('f"{len(names):,} classes"') == ["{len(names):,} classes"]
    assert bare_units('f"it takes {size / 2**20:,.0f} MiB."\nf"{size // MIB} MiB"') != []
    source = (
        "def _f():\n    def inner(): ...\n\nif True:\n    def g(): ...\n\nclass C:\n    def h(self):\n        'Told.'"
    )
    assert undocumented(source) == ["the module", "g", "C"]
    assert timed(WAITS.read_text(encoding="utf-8"))
    assert timed("begun = monotonic()\nassert work()\nassert time.monotonic() - begun < 1\nperf_counter()") == [3, 3]
    inner = "def f():\n    if True:\n        def g():\n            'Told.'\n    class H:\n        def h(self): ..."
    assert undocumented_inside(inner) == ["H", "h"]
