"""Loads: they work while their context lasts, and never longer than whoever started them."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from benchmarks import loads
from tests.support.clocks import until
from tests.support.processes import is_gone

PARENT = """
import time
from benchmarks import loads
with loads.run_load("busy core") as pid:
    print(pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", loads.LOADS)
def test_a_load_is_at_work_in_its_context_and_gone_after_it(name):
    with loads.run_load(name) as pid:
        load = psutil.Process(pid)
        assert load.ppid() == os.getpid()
        assert name in load.cmdline()
    assert not psutil.pid_exists(pid)


def test_busy_cores_have_a_process_each(monkeypatch):
    monkeypatch.setitem(loads.PROCESSES, "busy cores", 3)
    before = set(psutil.Process().children())
    with loads.run_load("busy cores"):
        own = set(psutil.Process().children()) - before
        assert len(own) == 3
    assert not any(process.is_running() for process in own)


def test_a_load_ends_where_its_context_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), loads.run_load("busy core") as pid:
        raise ZeroDivisionError
    assert not psutil.pid_exists(pid)


def test_a_load_ends_with_a_parent_that_was_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.send_signal(signal.SIGKILL)
    until(lambda: is_gone(pid))


def test_quiet_is_no_load():
    before = {child.pid for child in psutil.Process().children()}
    with loads.run_load(loads.QUIET) as pid:
        assert pid == 0
        assert {child.pid for child in psutil.Process().children()} == before


def test_an_unknown_load_lists_the_known():
    with pytest.raises(
        loads.LoadError,
        match=r"Unknown load 'noise'.*Expected one of: quiet, busy core, busy cores, bursts, drift, memory traffic",
    ):
        loads.run_load("noise").__enter__()


def test_a_load_that_does_not_start_says_so(monkeypatch):
    monkeypatch.setattr(loads.sys, "executable", "/bin/false")
    with pytest.raises(loads.LoadError, match=r"'bursts' ended with status 1 before it was at work"):
        loads.run_load("bursts").__enter__()
