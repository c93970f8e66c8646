"""No invalid array ends a process or is computed with in silence, whatever public call it comes in by.

The cases are in `tests/support/input_validation`: every operator, kernel and class that takes arrays, with arrays
wrong in some hundred ways. They are tried in a child process, which is started again after the case that it died of.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
ADVICE = re.compile(r"llowed|Build|Call |Round |takes |(it|they) (is|are) |weights have ")
"""What a text has that says what is allowed, or what to do."""

SECONDS_ALL = 900
"""Longer than all cases take on a slow machine at work on other things, some half a minute on one that is neither."""


class Tried(NamedTuple):
    """A case: its name, whether it is to be refused, and what came of it."""

    name: str
    is_refused: bool
    outcome: str

    @property
    def fault(self) -> str:
        """What is wrong with the outcome; nothing where it is right."""
        if not self.is_refused:
            return "" if self.outcome == "passed" else f"refused though sound: {self.outcome}"
        if self.outcome == "passed":
            return "silence"
        if not self.outcome.startswith(("workbench.", "kernels.")):
            return self.outcome
        return "" if ADVICE.search(self.outcome.partition(" ")[2]) else f"says too little: {self.outcome}"


def attempt(path: Path, *words: str) -> list[Tried]:
    """All cases, from as many child processes as it takes."""
    first, died = 0, {}
    while True:
        command = [sys.executable, "-m", "tests.support.input_validation", str(path), str(first), *words]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True, timeout=SECONDS_ALL)
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        if ended.returncode == 0:
            return [Tried(name, refused == "1", died.get(number, came)) for number, refused, name, came in lines]
        assert ended.returncode < 0, ended.stderr
        assert len(died) < 100
        died[lines[-1][0]] = f"signal {-ended.returncode}"
        first = int(lines[-1][0]) + 1
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


@pytest.fixture(scope="module")
def tried(tmp_path_factory) -> list[Tried]:
    return attempt(tmp_path_factory.mktemp("doors") / "cases")


@pytest.mark.parametrize("group", ["formats", "ops", "executor", "module", "training", "optimizers", "kernels"])
def test_invalid_arrays_are_refused_at_every_door_and_sound_ones_are_not(tried, group):
    here = [case for case in tried if case.name.startswith(f"{group}: ")]
    assert {case.is_refused for case in here} == {True, False}
    assert not {case.name: case.fault for case in here if case.fault}


def test_every_way_to_be_wrong_is_tried(tried):
    assert sum(case.is_refused for case in tried) > 5000


def test_a_door_that_does_not_refuse_is_found(tmp_path):
    faults = {case.name.removeprefix("proof: "): case.fault for case in attempt(tmp_path / "cases", "proof")}
    assert faults["silence"] == "silence"
    assert faults["signal"] == "signal 11"
    assert faults["another's error"].startswith("builtins.IndexError")
    assert faults["no advice"].startswith("says too little")
    assert faults["sound but refused"].startswith("refused though sound")
    assert faults["refused"] == faults["sound"] == ""
