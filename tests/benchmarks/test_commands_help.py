"""`python -m benchmarks`: each command has examples that parse, and says what each option is."""

import re
import shlex

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.competitor_commands import bench

COMMANDS = typer.main.get_command(bench).commands
EXAMPLES = [example for one in COMMANDS.values() for example in (one.epilog or "").split("\n\n")[1:]]


def test_each_command_has_examples_of_itself_and_says_what_each_option_is():
    assert len(EXAMPLES) > len(COMMANDS)
    for name, command in COMMANDS.items():
        assert f"python -m benchmarks {name}" in (command.epilog or ""), name
        assert [one.name for one in command.params if not one.help] == [], name


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_parses(example):
    words = shlex.split(example)
    assert words[:3] == ["python", "-m", "benchmarks"]
    COMMANDS[words[3]].make_context(words[3], words[4:])


@pytest.mark.parametrize(
    ("typed", "said"), [("kernel", "Expected one of: kernels"), ("kernels --quik", "No such option: --quik")]
)
def test_a_mistyped_word_is_refused_with_the_known_ones(typed, said):
    came = CliRunner().invoke(bench, shlex.split(typed))
    assert came.exit_code == 2
    assert said in " ".join(re.sub("[│╭╮╰╯─]", " ", came.output).split())
