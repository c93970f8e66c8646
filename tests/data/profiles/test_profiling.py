"""The process that counts a profile: its answer, its errors in words, and that it ends when it is told to."""

from dataclasses import asdict
from pathlib import Path

import psutil

from tests.support.clocks import until
from workbench import data
from workbench.data.profiles import worker
from workbench.data.profiles.worker import Counting


def ended(counting):
    """What it answers in the end; its files are gone then."""
    answer = until(counting.poll)
    counting.stop()
    assert not Path(counting._folder.name).exists()
    return answer


def test_the_answer_is_the_profile(tmp_path):
    parameters = {"rows": 50, "features": 30, "density": 0.1}
    found = ended(Counting("power_law", parameters))
    own = data.profile(data.load("power_law", **parameters))
    assert (found["entries"], found["duplicate_rows"]) == (own.entries, own.duplicate_rows)
    assert found["columns"]["ranks"] == [list(point) for point in own.columns.ranks]
    assert found.keys() == asdict(own).keys() | {"task", "guesses"}
    assert (found["task"], found["guesses"]) == ("binary", [])


def test_what_cannot_be_read_is_an_answer_in_words():
    assert "has no parameter 'no such'" in ended(Counting("svmlight", {"no such": 1}))["error"]


def test_a_process_that_dies_is_told_with_its_status(monkeypatch):
    monkeypatch.setattr(worker.sys, "executable", "/bin/false")
    assert ended(Counting("uniform", {})) == {"error": "Counting ended with status 1: "}


def test_it_ends_when_it_is_told_to():
    counting = Counting("stdlib", {})
    process = psutil.Process(counting._process.pid)
    counting.stop()
    assert not process.is_running()
