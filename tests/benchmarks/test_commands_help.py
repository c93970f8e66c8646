"""`python -m benchmarks`: each command has examples that parse, and says what each option is."""

import re
import shlex
import sys

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import kernel_suites
from benchmarks.suites import bench
from kernels import devices
from workbench.command import exit_codes

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


@pytest.mark.parametrize(
    ("typed", "status", "said"),
    [
        ("kernels --threads 9999", 2, "python -m benchmarks: threads is 9999; this process can use 1 to"),
        ("kernels --quick --device cuda", 2, "cudaErrorNoDevice. Take --device cpu."),
        ("step --quick --device cuda", 2, "cudaErrorNoDevice. Take --device cpu."),
    ],
)
def test_an_error_that_a_user_can_fix_is_one_message(typed, status, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(devices, "probe", lambda: devices.Gpu(reason="no CUDA device: cudaErrorNoDevice"))
    monkeypatch.setattr(sys, "argv", ["benchmarks", *shlex.split(typed)])
    with pytest.raises(SystemExit) as ended:
        exit_codes.run(bench, "python -m benchmarks")
    assert ended.value.code == status
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*/*.jsonl"))


def test_an_interrupt_ends_with_130_and_the_command_to_go_on(monkeypatch, tmp_path, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kernel_suites, "configurations_of", interrupt)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "kernels", "--only", "plan"])
    with pytest.raises(SystemExit) as ended:
        exit_codes.run(bench, "python -m benchmarks")
    assert ended.value.code == exit_codes.INTERRUPTED
    assert "Go on with: python -m benchmarks kernels --only plan" in capsys.readouterr().err
