"""README: commands are known, numbers are those of the rows, the spec has cells, Python runs, named files are there."""

import re
import shlex
from datetime import datetime
from pathlib import Path

import pytest
import typer

from workbench import data, store
from workbench.command import cli
from workbench.sweeps import grid, spec

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "amd-epyc-2-cores-0c50"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Commands of the workbench in a text: lines of their own, indented or not, and those between backticks."""
    text = re.sub(r"\\+\n\s*", " ", text)
    lines = re.findall(r"^(?: {4})?(workbench [a-z].*)$", text, re.MULTILINE)
    return lines + [" ".join(one.split()) for one in re.findall(r"`(workbench [a-z][^`]*)`", text)]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "howto").glob("*_machines.md"))]
COMMANDS = sorted({line for page in PAGES for line in commands(page.read_text(encoding="utf-8"))})
ROOT_COMMAND = typer.main.get_command(cli.app)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_takes_its_options(line):
    _, *words = shlex.split(line.replace(" ... ", " "), comments=True)
    command = ROOT_COMMAND
    while hasattr(command, "commands"):
        name = words.pop(0)
        command = command.commands[name]
    if words:  # else the command is named, not shown
        command.make_context(name, words)


def test_commands_are_found_in_every_page():
    found = [commands(page.read_text(encoding="utf-8")) for page in PAGES]
    assert [len(lines) > least for lines, least in zip(found, (25, 3, 8, 8), strict=True)] == [True] * 4


def test_the_spec_has_cells_and_none_that_mean_nothing():
    [text] = blocks("toml")
    found = grid.expand(spec.parse(text))
    assert len(found.cells) == 12 + 6 * (grid.threads_of(found.cells[0]) > 1)
    assert not found.dropped


def test_the_python_runs(monkeypatch, capsys):
    small = data.load("uniform", rows=1000, features=60, density=0.1, classes=3, cache=False)
    monkeypatch.setattr(data, "load", lambda name: small)
    names = {}
    for text in blocks("python"):
        exec(compile(text, "README.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) > 10
    assert names["event"].loss > 0


def test_files_that_are_named_are_there():
    named = re.findall(r"`((?:kernels|workbench|notebooks|results|tests)/[\w./-]*)`|\]\(([\w./-]+)\)", TEXT)
    assert len(named) > 10
    missing = [name for pair in named for name in pair if name and not (ROOT / name).exists()]
    assert not missing


def test_make_has_the_targets_that_are_named():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make (\w+)", TEXT, re.MULTILINE)
    assert {"demo", "test", "lab"} <= set(named) <= set(targets)


def claims(text: str) -> list[str]:
    """Numbers and spans before "times", those of the caption of the chart and of the report alike."""
    return re.findall(r"(\d[\d.]*(?: to \d[\d.]*)?) times", re.sub(r"\s+", " ", text))


def test_numbers_under_the_chart_are_those_of_the_report():
    [caption] = re.findall(r"^\*From .*?\*$", TEXT, re.DOTALL | re.MULTILINE)
    report = (RESULTS / "full-density-report.md").read_text(encoding="utf-8")
    own = "\n".join(line for line in report.splitlines() if line.startswith("- Width 16:"))
    assert len(claims(caption)) == 6
    assert set(claims(caption)) <= set(claims(own))
    [minutes] = re.findall(r"(\d+) minutes", caption)
    times = [datetime.fromisoformat(row["time"]) for row in store.read(RESULTS / "full-density.jsonl")]
    assert abs((max(times) - min(times)).total_seconds() / 60 - int(minutes)) < 1
