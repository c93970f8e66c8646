"""Names from files of others neither control the terminal nor run in a spreadsheet, and shared files hold no paths."""

import csv
import json
import re
from pathlib import Path

import pytest
import rich.console

from tests.support import rows
from tests.support.commands import run
from workbench.command import cli, console, output
from workbench.settings import train_command
from workbench.sweeps import spec

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


FORMULA = '=HYPERLINK("http://example.invalid","x")'


def main(monkeypatch, *words):
    """Run the command line as a process does, and return its exit status."""
    monkeypatch.setattr("sys.argv", ["workbench", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.mark.filterwarnings("default:.*as formulas")
def test_predictions_that_a_spreadsheet_would_run_are_told_and_quoted_on_request(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a", "label"], *([row % 7, "-0.5" if row % 2 else FORMULA] for row in range(60))])
    main(monkeypatch, "train", "a.csv", "--label", "label", "--epochs", "1", "--save", "m")
    capsys.readouterr()
    assert main(monkeypatch, "apply", "m", "a.csv", "--out", "p.csv") in (0, None)
    told = capsys.readouterr().err
    assert f"Note: p.csv has cells that a spreadsheet runs as formulas, such as {FORMULA!r}" in told
    assert "Type --quote-formulas to write them with an apostrophe before." in told
    main(monkeypatch, "apply", "m", "a.csv", "--out", "q.csv", "--quote-formulas")
    assert "formulas" not in capsys.readouterr().err
    plain, quoted = (
        [row[1] for row in csv.reader((tmp_path / name).read_text().splitlines())] for name in ("p.csv", "q.csv")
    )
    assert set(plain) <= {"prediction", FORMULA, "-0.5"}
    assert quoted == [f"'{cell}" if cell == FORMULA else cell for cell in plain]


@pytest.mark.filterwarnings("default:.*as formulas")
def test_shared_files_name_no_folder_and_tables_quote_on_request(tmp_path, monkeypatch, capsys):
    """What is made of a run whose data is in a folder of the user, in each form; the run keeps the whole path."""
    home = tmp_path / "unique-name-of-a-user"
    home.mkdir()
    data = home / "d.svm"
    data.write_text("1 1:2\n0 2:1\n")
    monkeypatch.chdir(home)
    records = [
        row | {"dataset": "svmlight", "path": str(data), "source": "@SUM(A1)"}
        for row in rows.sweep(densities=(0.01, 0.2), rounds=2)
    ]
    records.append(rows.failed(records[0], "failed", f"{data} cannot be read; see {home}/log.txt"))
    axes = {"dataset": "svmlight", "path": str(data), "model": "logistic", "threads": 1}
    (home / "run").mkdir()
    (home / "out").mkdir()
    (home / "run" / "spec.json").write_text(spec.dump_spec(spec.validate_spec({"name": "own", "axes": axes})))
    (home / "run" / "machine.json").write_text(json.dumps({"id": records[0]["machine"]}))
    (home / "run" / "trials.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in ("a.html", "a.md", "a.csv"):
        assert main(monkeypatch, "report", home / "run", "--out", home / "out" / name) in (0, None)
    main(monkeypatch, "report", home / "run", "--out", home / "out" / "q.csv", "--quote-formulas")
    main(monkeypatch, "report", home / "run", home / "run", "--out", home / "out" / "two.md")
    main(monkeypatch, "report", home / "run", "--results", home / "out")
    main(monkeypatch, "compare", home / "run", home / "run", "--out", home / "out" / "compared.md")
    assert "d.svm" in (home / "out" / "a.html").read_text()
    capsys.readouterr()
    main(monkeypatch, "report", home / "run", "--json")
    (home / "out" / "answers.json").write_text(capsys.readouterr().out)
    shared = [path for path in (home / "out").iterdir() if path.is_file()]
    assert {path.suffix for path in shared} == {".html", ".md", ".csv", ".jsonl", ".json", ".svg"}
    assert [path.name for path in shared if home.name in path.read_text()] == []
    assert str(data) in (home / "run" / "trials.jsonl").read_text()
    assert ",@SUM(A1)," in (home / "out" / "a.csv").read_text()
    assert ",'@SUM(A1)," in (home / "out" / "q.csv").read_text()


def test_a_command_names_a_file_as_it_can_be_typed_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"dataset": "svmlight", "path": str(tmp_path / "d.svm"), "model": "logistic"}
    assert "--path d.svm " in train_command(settings)
    monkeypatch.chdir("/")
    assert f"--path {tmp_path.relative_to('/')}/d.svm " in train_command(settings)


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
