"""A bar with MB/s while a large file is read in a terminal, and nothing otherwise."""

import io

import pytest
from rich.console import Console

from workbench import data
from workbench.command import data_source
from workbench.data import content


def written(tmp_path, rows):
    file = tmp_path / "rows.svm"
    file.write_text("1 1:1 2:0.5\n0 2:1\n" * rows, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("is_terminal", "least", "is_shown"), [(True, 100, True), (True, 1 << 20, False), (False, 100, False)]
)
def test_a_large_file_has_a_bar_in_a_terminal(is_terminal, least, is_shown, tmp_path, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(data_source, "console", Console(file=screen, force_terminal=is_terminal, width=120))
    monkeypatch.setattr(data_source, "BYTES_SHOWN", least)
    file = written(tmp_path, 1000)
    with data_source.show_reading():
        read = data.load("svmlight", path=file, cache=False)
    assert read.rows == 2000
    assert ("reading rows.svm" in screen.getvalue()) == is_shown
    assert content._watch is None


def test_the_bytes_of_a_file_are_told_as_they_are_read(tmp_path):
    seen, file = [], written(tmp_path, 50)
    with content.watching(lambda name, done, size: seen.append((name, done, size))):
        data.load("svmlight", path=file, cache=False)
    assert {name for name, _, _ in seen} == {str(file.resolve())}
    assert max(done for _, done, _ in seen) == seen[0][2] == file.stat().st_size
