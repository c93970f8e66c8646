"""The groups of `workbench --help`, and the examples in the help of each command, which parse as typed."""

import shlex

import pytest
import typer.main
from typer.testing import CliRunner

from workbench.command import cli, options

ROOT = typer.main.get_command(cli.app)


def commands(group, before=""):
    """Names of all commands that are shown, with the names of their groups before them."""
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from commands(command, f"{before}{name} ")
        elif not command.hidden:
            yield before + name


def test_each_command_has_a_heading_and_examples():
    assert set(commands(ROOT)) == set(options.EXAMPLES)
    listed = {name for names in options.PANELS.values() for name in names}
    assert listed == {name.split()[0] for name in options.EXAMPLES}


def test_help_lists_the_commands_by_heading():
    text = CliRunner().invoke(cli.app, ["--help"]).output
    places = [text.index(heading) for heading in options.PANELS]
    assert places == sorted(places)
    assert "Commands" not in text.split("Options", 1)[1].replace("COMMAND", "")


def test_help_of_a_command_shows_its_examples():
    text = CliRunner().invoke(cli.app, ["data", "convert", "--help"], env={"COLUMNS": "120"}).output
    assert "Examples:" in text
    for example in options.EXAMPLES["data convert"]:
        assert example in text


@pytest.mark.parametrize("example", [line for lines in options.EXAMPLES.values() for line in lines])
def test_an_example_parses(example):
    program, *words = shlex.split(example)
    assert program == "workbench"
    command, context = ROOT, None
    while getattr(command, "commands", None):
        context = command.make_context(words[0], [], parent=context, resilient_parsing=True)
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words, parent=context)
