"""README and documentation: commands and functions are known, numbers are those of results, examples are valid."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from benchmarks.suites import bench
from workbench.command import cli
from workbench.sweeps import grid, spec

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
GENERATED = {"command_line.md", "settings.md", "columns.md", "data_sets.md", "models.md", "operators.md", "api.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("*/*.md")) if page.name not in {*GENERATED, "gallery.md"}),
]


PROGRAMS = "(?:workbench|python -m benchmarks)"


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language in a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Return the commands of the workbench in a text: those on separate lines and those between backticks."""
    text = re.sub(r"\\+\n\s*", " ", text)
    lines = re.findall(rf"^(?: {{4}})?({PROGRAMS} [a-z].*)$", text, re.MULTILINE)
    return lines + [" ".join(inline.split()) for inline in re.findall(rf"`({PROGRAMS} [a-z][^`]*)`", text)]


COMMANDS = sorted({line for page in PAGES for line in commands(page.read_text(encoding="utf-8"))})
ROOTS = {"workbench": typer.main.get_command(cli.app), "python": typer.main.get_command(bench)}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_takes_its_options(line):
    program, *words = shlex.split(line.replace(" ... ", " "), comments=True)
    command, words = ROOTS[program], words[2 * (program == "python") :]
    while hasattr(command, "commands") and words:
        name = words.pop(0)
        command = command.commands[name]
    if words:  # else the command is named, not shown
        command.make_context(name, words)


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("README.md", 4),
        ("CONTRIBUTING.md", 3),
        ("docs/start/which_command.md", 8),
        ("docs/howto/several_machines.md", 8),
        ("docs/howto/train_on_several_machines.md", 6),
    ],
)
def test_commands_are_found_in_a_page(page, least):
    assert len(commands((ROOT / page).read_text(encoding="utf-8"))) >= least


SPECS = [(page, text) for page in PAGES for text in blocks(page, "toml") if "[axes]" in text]


@pytest.mark.parametrize(("page", "text"), SPECS, ids=[page.name for page, _ in SPECS])
def test_a_spec_has_configurations_and_none_that_mean_nothing(page, text):
    found = grid.expand_grid(spec.parse_spec(text))
    assert len(found.configurations) > 1
    assert not found.dropped


def test_a_spec_is_shown():
    assert SPECS


def test_files_that_are_named_are_there():
    named = re.findall(
        r"`((?:kernels|workbench|notebooks|examples|results|tests|docs)/[\w./-]*)`|\]\(([\w./-]+)\)", TEXT
    )
    assert len(named) > 7
    missing = [name for pair in named for name in pair if name and not (ROOT / name).exists()]
    assert not missing


def test_make_has_the_targets_that_are_named():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make (\w+)", TEXT, re.MULTILINE)
    assert {"demo", "test", "lab", "docs"} <= set(named) <= set(targets)


RESULTS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| \[[^\]]+\]\((results/[^)]+)\) \|$", TEXT, re.MULTILINE)


NUMBER = re.compile(r"\d[\d.]*\d|\d")


def forms(measured: str, digits: int) -> set[str]:
    """Return a number and its inverse ("8 times faster" of 0.126), rounded to some digits after the point."""
    value = float(measured) if measured.count(".") < 2 else 0.0
    return {f"{each:.{digits}f}" for each in ([value, 1 / value] if value else [])}


def unfounded(result: str, page: str) -> list[str]:
    """Return the numbers of a result that are neither in its page nor rounded or inverted from one there."""
    shown = set(NUMBER.findall(page))
    return [
        claim
        for claim in NUMBER.findall(result)
        if claim not in shown and not any(claim in forms(each, len(claim.partition(".")[2])) for each in shown)
    ]


@pytest.mark.parametrize(("question", "result", "page"), RESULTS, ids=[question for question, *_ in RESULTS])
def test_numbers_of_a_result_stand_in_its_page(question, result, page):
    assert NUMBER.search(result), question
    assert not unfounded(result, (ROOT / page).read_text(encoding="utf-8"))


def test_a_number_that_no_page_has_is_found():
    assert unfounded("8 times faster, 1.06 and 3 times", "0.126 of the time, 1.06") == ["3"]


def test_results_are_shown():
    assert len(RESULTS) >= 6


def claims(text: str) -> list[str]:
    """Return the numbers, or ranges of numbers, before "times", as written in captions and reports."""
    return re.findall(r"(\d[\d.]*(?: to \d[\d.]*)?) times", re.sub(r"\s+", " ", text))


def test_numbers_under_the_chart_are_those_of_the_report():
    [caption] = re.findall(r"^\*From .*?\*$", TEXT, re.DOTALL | re.MULTILINE)
    [page] = re.findall(r"\]\((results/[\w./-]+-report\.md)\)", caption)
    assert len(claims(caption)) >= 3
    assert set(claims(caption)) <= set(claims((ROOT / page).read_text(encoding="utf-8")))


def test_the_readme_is_short():
    assert len(TEXT.split()) <= 700


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
