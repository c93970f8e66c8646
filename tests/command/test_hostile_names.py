"""Names from files of others neither control the terminal nor run in a spreadsheet, and shared files hold no paths."""

import json
import re
from pathlib import Path

import pytest
import rich.console

from tests.support.commands import run
from workbench.command import cli, console, output

NAME = "x\x1b]0;title\x07\x1b[31m\x9b32m\u202e[bold]:smile:\x7f"
"""Sets the title of the terminal and its colours, turns the direction of writing, and is markup of rich."""
ESCAPED = r"x\x1b]0;title\x07\x1b[31m\x9b32m\u202e[bold]:smile:\x7f"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def write_csv(folder):
    lines = (f"{row % 7},{row % 3},{'yes' if row % 2 else NAME}\n" for row in range(60))
    (folder / "a.csv").write_text(f"a{NAME},b,label\n" + "".join(lines))
    return folder / "a.csv"


def write_svmlight(folder):
    (folder / "b.svm").write_text("".join(f"{NAME}{row % 2} 1:{row} 2:1\n" for row in range(1, 60)))
    return folder / "b.svm"


def write_text(folder):
    (folder / "c.txt").write_text("".join(f"{NAME}{row % 2}\tword{row % 9} others here\n" for row in range(60)))
    return folder / "c.txt"


def write_json(folder):
    rows = ({f"a{NAME}": row % 5, "label": f"x{NAME}\n" if row % 2 else "y"} for row in range(60))
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "d.jsonl"


def write_named(folder):
    path = folder / f"e{NAME}.svm"
    path.write_text("1 1:2\n0 2:1\n" * 20)
    return path


def write_bytes(folder):
    """A name that is no UTF-8."""
    path = folder / "f\udcff.svm"
    path.write_text("1 1:2\n0 2:1\n" * 20)
    return path


def write_wrong(folder):
    (folder / f"g{NAME}.svm").write_text(f"1 1:{NAME}\n")
    return folder / f"g{NAME}.svm"


FILES = (write_csv, write_svmlight, write_text, write_json, write_named, write_bytes, write_wrong)
COMMANDS = {
    "profile": ["profile"],
    "train": ["train", "FILE", "--epochs", "1", "--decay", "0"],
    "check": ["check", "--for", "sklearn"],
    "columns": ["data", "columns"],
    "sweep": ["sweep", "FILE", "--dry-run"],
    "report": ["report"],
    "compare": ["compare", "FILE"],
    "convert": ["data", "convert", "FILE", "shards"],
    "apply": ["apply", "no_model"],
    "status": ["status"],
    "stop": ["stop"],
    "no option": ["profile", f"--{NAME}"],
    "no command": [f"no{NAME}"],
    "two files": ["profile", f"none{NAME}"],
    "label": ["profile", "FILE", "--label", NAME],
}


@pytest.mark.parametrize("write", FILES)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_control_characters_of_a_file(tmp_path, monkeypatch, capsys, write, words):
    monkeypatch.chdir(tmp_path)
    at = words.index("FILE") if "FILE" in words else len(words)
    monkeypatch.setattr("sys.argv", ["workbench", *words[:at], write(tmp_path).name, *words[at + 1 :]])
    with pytest.raises(SystemExit):
        cli.main()
    printed = "".join(capsys.readouterr())
    assert printed
    assert not FORBIDDEN.search(printed), printed


def test_a_trained_model_prints_classes_escaped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path)
    assert run("train", "a.csv", "--epochs", "1", "--save", "m").exit_code == 0
    printed = run("apply", "m", "a.csv").output
    assert ESCAPED in printed
    assert not FORBIDDEN.search(printed)


def test_the_console_shows_text_as_it_is(capsys):
    shown = console.PlainConsole(width=200)
    shown.print(f"{NAME} [red]text[/red]")
    shown.print(console.make_table([NAME], [[f"[bold]{NAME}"]], title=NAME))
    printed = capsys.readouterr().out
    without_bell = ESCAPED.replace(r"\x07", "")  # which rich leaves out
    assert f"{without_bell} [red]text[/red]" in printed
    assert f"[bold]{ESCAPED}" in printed, "the column is as wide as its text"
    assert not FORBIDDEN.search(printed)
    rich.console.Console(width=200).print(NAME)
    assert FORBIDDEN.search(capsys.readouterr().out), "the console of rich prints them"


def test_escapes_keep_letters_of_all_languages_and_lines():
    text = "é ü 中文 עברית emoji 👩‍💻 nb\u00a0space\n\ttab"
    assert output.escape_controls(text) == text
    assert output.escape_line("a\nb\r") == r"a\nb\r"


def test_commands_print_by_the_console_or_by_echo():
    """What writes otherwise, such as print, would not escape; requests to a child process go to its pipe."""
    folder = Path(output.__file__).parent
    other = re.compile(r"(?<![.\w])print\(|typer\.s?echo\(|(?<!Plain)\bConsole\(\)|std(out|err)\.write")
    found = [
        f"{path.name}: {line.strip()}"
        for path in folder.glob("*.py")
        for line in path.read_text().splitlines()
        if other.search(line) and ">>>" not in line and "process.stdin" not in line
    ]
    assert found == ["output.py: typer.secho(escape_controls(str(text)), err=err, fg=fg)"]
