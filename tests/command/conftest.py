"""Commands leave their files in an empty folder, and the terminal is 200 characters wide."""

import pytest

from workbench.command import terminal


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal.console, "width", 200)
