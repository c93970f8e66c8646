"""Fixtures that several files of tests share; what they need is imported when they are asked for."""

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to be in: runs go to `runs` in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened():
    """Makes panels, and closes them."""
    from workbench.panels.panel import Panel

    panels = []

    def make(study, **options) -> Panel:
        panels.append(Panel(study, **options))
        return panels[-1]

    yield make
    for panel in panels:
        panel.close()


def pytest_addoption(parser):
    parser.addoption("--golden", metavar="DIR", help="folder of recorded cases to run instead of tests/golden")
