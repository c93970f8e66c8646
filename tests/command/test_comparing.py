"""The command compare: exit status fit for CI, rows as git has them at a commit, Markdown."""

import subprocess

import pytest
from typer.testing import CliRunner

from tests.support import rows as maker
from workbench import store
from workbench.command import cli, exit_codes, terminal


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(terminal.console, "width", 300)


def run(*arguments):
    done = CliRunner().invoke(cli.app, ["compare", *map(str, arguments)])
    if done.exception and not isinstance(done.exception, SystemExit):
        status = exit_codes.status_of(done.exception)
        return status, exit_codes.text_of(done.exception)
    return done.exit_code, done.output


def stored(path, run, seed, slow=1.0):
    for row in maker.sweep(densities=(0.01, 0.03, 0.1), seed=seed, run=run, noise=0.02, samples=5):
        if slow != 1.0 and row["format"] == "csr":  # other code, so another key
            row |= {"key": f"{row['key']}/slow", "seconds_step": slow * row["seconds_step"]}
        store.append(path, row)
    return path


def test_the_exit_status_tells_whether_something_is_worse(tmp_path):
    first, same = stored(tmp_path / "a.jsonl", "r1", 1), stored(tmp_path / "b.jsonl", "r2", 2)
    status, text = run(first, same)
    assert (status, "Nothing is slower" in text) == (0, True)
    status, text = run(first, stored(tmp_path / "c.jsonl", "r3", 3, slow=2.0), "--out", "changes.md")
    assert status == exit_codes.FAILURE
    assert "Slower: 3 of 6 configurations" in text
    page = (tmp_path / "changes.md").read_text()
    assert page.startswith("# ")
    assert "| sparse" in page
    assert run(first, "nowhere")[0] == run(first)[0] == exit_codes.WRONG_INPUT


def test_rows_are_read_as_git_has_them_at_a_commit(tmp_path):
    git = lambda *arguments: subprocess.run(  # noqa: E731
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True, cwd=tmp_path, capture_output=True
    )
    git("init", "-q")
    stored(tmp_path / "rows.jsonl", "r1", 1)
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "rows.jsonl").unlink()
    stored(tmp_path / "rows.jsonl", "r2", 2, slow=3.0)
    status, text = run("HEAD:rows.jsonl", "rows.jsonl")
    assert (status, "Slower: 3 of 6 configurations" in text) == (1, True)
    status, text = run("HEAD~9:rows.jsonl", "rows.jsonl")
    assert status == exit_codes.WRONG_INPUT
    assert text.startswith("git has no rows.jsonl at HEAD~9")
