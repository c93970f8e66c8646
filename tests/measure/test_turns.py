"""Processes that take turns: stopped while they wait, at work in their turn, and gone with whoever started them."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.support.clocks import SECONDS, until
from tests.support.processes import is_gone
from workbench.measure import child
from workbench.measure.child import Ended, Living

pytestmark = pytest.mark.skipif(not child.can_alternate(), reason="This system cannot end a stopped process.")


def living(work: str = "takes_turns", why_end=dict) -> Living:
    """A process that has come to its first wait."""
    started = child.Child(*child.start(child.fork_server(), f"tests.support.children:{work}", {}))
    process = Living(started, why_end)
    while "waits" not in process.next():
        pass
    return process


@pytest.fixture
def pair():
    both = [living(), living()]
    yield both
    for process in both:
        process.child.end()


def is_stopped(process: Living) -> bool:
    return psutil.Process(process.child.process.pid).status() == psutil.STATUS_STOPPED


def test_a_process_is_stopped_but_for_its_turn_and_remembers_the_ones_before(pair):
    for process in pair:
        until(lambda process=process: is_stopped(process))
    assert [pair[0].do({"number": number})["total"] for number in (1, 2, 3)] == [1, 3, 6]
    assert pair[1].do({"number": 5})["total"] == 5
    for process in pair:
        until(lambda process=process: is_stopped(process))


def test_a_process_that_ends_in_its_turn_gives_its_last_answer_first():
    process = living("takes_its_last_turn")
    assert process.do({}) == {"total": 7}
    with pytest.raises(Ended, match="ended with status 0"):
        process.next()
    process.child.end()


def test_a_process_that_is_killed_while_it_is_stopped_has_failed(pair):
    pair[0].child.process.kill()
    until(lambda: is_gone(pair[0].child.process.pid))
    with pytest.raises(Ended, match="killed from outside by SIGKILL"):
        pair[0].do({"number": 1})
    assert pair[1].do({"number": 1})["total"] == 1


def test_a_process_is_ended_in_its_turn_for_a_reason_and_out_of_it_when_it_is_not_needed():
    ends = [{}]
    process = living(why_end=lambda: ends[-1])
    ends.append({"status": "stopped", "reason": "No more."})
    with pytest.raises(Ended, match="No more"):
        process.do({"number": 1})
    other = living()
    other.child.end()
    for each in (process, other):
        until(lambda each=each: is_gone(each.child.process.pid))


STARTER = """
import sys, time
from tests.measure.test_turns import living
if __name__ == "__main__":
    pair = [living(), living()]
    print(*(process.do({"number": 1})["pid"] for process in pair), flush=True)
    time.sleep(float(sys.argv[1]))
"""


def test_stopped_processes_are_gone_when_whoever_started_them_is_killed(tmp_path):
    script = tmp_path / "starter.py"
    script.write_text(STARTER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    command = [sys.executable, str(script), str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as starter:
        stopped = [int(pid) for pid in starter.stdout.readline().split()]
        below = [process.pid for process in psutil.Process(starter.pid).children(recursive=True)]
        assert set(stopped) < set(below), "and the fork server"
        for pid in stopped:
            until(lambda pid=pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        os.kill(starter.pid, signal.SIGKILL)
    for pid in below:
        until(lambda pid=pid: is_gone(pid))


def test_all_take_turns_until_none_needs_more():
    needed, took = {"a": 1, "b": 3}, []

    def turn(name: str) -> bool:
        took.append(name)
        return took.count(name) >= needed[name]

    child.alternate_turns("ab", turn)
    assert took == ["a", "b", "b", "a", "a", "b"]
