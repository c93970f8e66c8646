"""The groups of `workbench --help`, and the examples in the help of each command, which parse as typed."""

import inspect
import re
import shlex

import pytest
import typer.main
from typer.testing import CliRunner

from workbench.command import cli, data_commands, exit_codes, options

ROOT = typer.main.get_command(cli.app)


def commands(group, before=""):
    """Names and examples of all commands that are shown, with the names of their groups before them."""
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from commands(command, f"{before}{name} ")
        elif not command.hidden:
            yield before + name, (command.epilog or "").split("\n\n")[1:]


EXAMPLES = dict(commands(ROOT))


def test_each_command_has_a_heading_and_examples():
    assert [name for name, examples in EXAMPLES.items() if not examples] == []
    listed = {name for names in options.PANELS.values() for name in names}
    assert listed == {name.split()[0] for name in EXAMPLES}


def test_an_example_is_of_its_command():
    assert [one for name, examples in EXAMPLES.items() for one in examples if f" {name}" not in one] == []


def test_each_argument_and_option_says_what_it_is():
    def parameters(group):
        for command in group.commands.values():
            yield from parameters(command) if getattr(command, "commands", None) else command.params

    assert [one.name for one in parameters(ROOT) if not one.hidden and not one.help] == []


@pytest.mark.parametrize("module", [cli, data_commands])
def test_each_text_of_an_option_is_of_one_that_there_is(module):
    found = 0
    for name, command in vars(module).items():
        text = (inspect.getdoc(command) or "").partition("Parameters\n")[2].partition("Examples\n")[0]
        if inspect.isfunction(command) and command.__module__ == module.__name__ and text:
            documented = re.findall(r"^(\w+)$", text, re.MULTILINE)
            assert set(documented) <= set(inspect.signature(command).parameters), name
            found += len(documented)
    assert found


def test_help_lists_the_commands_by_heading():
    text = CliRunner().invoke(cli.app, ["--help"]).output
    places = [text.index(heading) for heading in options.PANELS]
    assert places == sorted(places)
    assert "Commands" not in text.split("Options", 1)[1].replace("COMMAND", "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_of_a_command_shows_its_examples(name):
    came = CliRunner().invoke(cli.app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert came.exit_code == 0
    assert "Usage" in came.output
    shown = " ".join(came.output.partition("Example")[2].split())
    assert all(" ".join(example.split()) in shown for example in EXAMPLES[name])


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_parses(example):
    program, *words = shlex.split(example)
    assert program == "workbench"
    command, context = ROOT, None
    while getattr(command, "commands", None):
        context = command.make_context(words[0], [], parent=context, resilient_parsing=True)
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words, parent=context)


def message_of(*typed):
    came = CliRunner().invoke(cli.app, [*typed])
    assert came.exit_code == exit_codes.WRONG_INPUT
    return " ".join(re.sub("[│╭╮╰╯─]", " ", came.output).split())


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        (("train", "x.txt", "--lr", "0.1"), "--learning-rate"),
        (("train", "x.txt", "--weight-decay", "0.1"), "--decay"),
        (("train", "x.txt", "--n-epochs=3"), "--epochs"),
        (("train", "x.txt", "--batch-size", "3"), "--batch-rows"),
        (("train", "x.txt", "--learning-rat", "3"), "--learning-rate"),
        (("--versoin",), "--version"),
        (("data", "profile", "--zzz"), None),
    ],
)
def test_a_mistyped_option_names_the_one_that_is_meant_and_no_other(typed, near):
    said = message_of(*typed)
    assert "No such option: " in said
    assert re.findall("--[a-z-]+", said.partition("No such option: ")[2])[1:] == ([near] if near else [])


@pytest.mark.parametrize(
    "typed", ["advise", "compare", "report", "data convert", "data convert a.txt", "apply", "profile", "check"]
)
def test_a_missing_argument_is_said_with_an_example(typed):
    name = typed.removesuffix(" a.txt")
    assert message_of(*typed.split()).endswith(f"Type, for example: {EXAMPLES[name][0]}")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("rows.txt", "Type workbench advise rows.txt."),
        ("my rows.csv", "Type workbench advise 'my rows.csv'."),
        ("own.toml", "Type workbench sweep own.toml."),
        ("runs/one", "Type workbench report runs/one."),
        ("version", "Type workbench --version."),
        ("fit", "Type workbench train FILE."),
        ("trian", "Did you mean 'train'?"),
    ],
)
def test_a_word_that_is_no_command_says_what_to_type(name, advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/one").mkdir(parents=True)
    for file in ("rows.txt", "my rows.csv", "own.toml", "runs/one/trials.jsonl"):
        (tmp_path / file).touch()
    assert advice in message_of(name)


def test_what_other_programs_call_a_command_is_none_here_and_what_to_type_is():
    known = typer.main.get_command(cli.app).commands
    assert not set(exit_codes.USUAL_COMMANDS) & set(known)
    for typed in exit_codes.USUAL_COMMANDS.values():
        words = typed.split()
        assert words[0] in ("--version", "--help") or words[0] in known
        if words[0] == "data":
            assert words[1] in known[words[0]].commands
