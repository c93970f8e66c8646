"""Children that measure: each way one can end has its status and reason, in time, and leaves no process behind."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import forkserver

import psutil
import pytest

from tests.support import children
from tests.support.clocks import SECONDS, until
from tests.support.processes import deaf_starter, is_gone
from workbench.measure import child, memory
from workbench.measure.child import Child, Ended


def started(work: str, log=None, **request) -> Child:
    return Child(*child.start(child.fork_server(), f"tests.support.children:{work}", request, log))


def answers_of(work: str, log=None, **request) -> list[dict]:
    begun = time.monotonic()
    with started(work, log, **request) as process:
        return list(process.answers(lambda: child.why_too_long(begun, SECONDS)))


def ended(answers: Iterator[dict]) -> dict:
    """The row that the answers end with."""
    with pytest.raises(Ended) as end:
        list(answers)
    assert str(end.value) == end.value.row["reason"]
    return end.value.row


def end_of(work: str, **request) -> dict:
    begun = time.monotonic()
    with started(work, **request) as process:
        return ended(process.answers(lambda: child.why_too_long(begun, SECONDS)))


def test_a_child_answers_its_request_without_what_holds_blas_back(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    (answer,) = answers_of("echo", size=3)
    assert (answer["came"], answer["held"]) == ({"size": 3}, None)
    assert answer["pid"] != os.getpid()


SERVER = """
import os, psutil, time
from multiprocessing import forkserver
from workbench.measure import child
before = dict(os.environ)
child.fork_server()
server = psutil.Process(forkserver._forkserver._forkserver_pid)
while server.cmdline() in ([], psutil.Process().cmdline()):
    time.sleep(0.01)  # it is a copy of this process until it has loaded its own program
held = {name: server.environ().get(name) for name in ("OPENBLAS_CORETYPE", "OPENBLAS_THREAD_TIMEOUT")}
print(held == {"OPENBLAS_CORETYPE": None, "OPENBLAS_THREAD_TIMEOUT": "12"}, dict(os.environ) == before)
"""


def test_the_server_that_loads_blas_for_its_children_starts_without_what_holds_blas_back():
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}
    done = subprocess.run([sys.executable, "-c", SERVER], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["True", "True"]


def test_the_server_hears_of_the_ends_of_its_children_where_whoever_starts_it_blocks_that():
    forkserver._forkserver._stop()
    try:
        with deaf_starter():
            child.fork_server()
        assert "ended with status 1" in end_of("fails")["reason"]
    finally:
        forkserver._forkserver._stop()  # or children of other tests would ignore what asks them to end


def test_answers_come_one_by_one_and_prints_go_to_the_log(tmp_path):
    log = tmp_path / "log.txt"
    assert [answer["number"] for answer in answers_of("two", log=log)] == [1, 2]
    assert log.read_text() == "printed by the child\n"


def test_a_row_larger_than_any_pipe_comes_whole():
    (answer,) = answers_of("large", bytes=3_000_000)
    assert len(answer["text"]) == 3_000_000


def is_stopped(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    return False


@pytest.mark.parametrize(("signal_sent", "status"), [(signal.SIGSTOP, "timeout"), (signal.SIGKILL, "failed")])
def test_a_child_stopped_or_killed_in_the_middle_of_a_large_row_ends_by_a_limit_or_its_signal(signal_sent, status):
    context = child.fork_server()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=children.send_half, args=(theirs, signal_sent))
    process.start()
    theirs.close()
    with Child(process, ours) as stuck:
        end = ended(stuck.answers(lambda: {"status": "timeout", "reason": "."} if is_stopped(process.pid) else {}))
    assert end["status"] == status
    assert not process.is_alive()


def test_a_child_killed_from_outside_has_failed_and_is_not_out_of_memory():
    end = end_of("killed", signal=signal.SIGKILL)
    assert end == {"status": "failed", "reason": "The process was killed from outside by SIGKILL."}


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGSEGV, "ended by SIGSEGV"), (40, "ended by signal 40")])
def test_other_signals_are_named(number, reason):
    assert reason in end_of("killed", signal=number)["reason"]


def test_a_kill_that_the_kernel_counts_as_one_for_memory_is_out_of_memory(monkeypatch, tmp_path):
    counts = iter([7, 8])
    monkeypatch.setattr(child, "memory_kills", lambda: next(counts))
    end = end_of("killed", signal=signal.SIGKILL)
    assert end["status"] == "memory"
    assert "The system killed a process because memory ran out" in end["reason"]


def test_a_kill_when_hardly_any_memory_was_left_is_out_of_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    end = end_of("killed", signal=signal.SIGKILL)
    assert (end["status"], "1000 bytes of memory left" in end["reason"]) == ("memory", True)


GROUPS = {
    "version 2": ("0::/user/own\n", "user/own/memory.events", "low 0\noom 1\noom_kill 3\noom_group_kill 0\n"),
    "version 2 in a container": ("0::/../..\n", "memory.events", "oom_kill 3\n"),
    "version 1": ("4:cpu,memory:/own\n0::/\n", "memory/own/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n"),
    "none": ("", "vmstat", "nr_free_pages 1\noom_kill 3\nother 4\n"),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_kills_for_memory_are_read_where_the_system_counts_them(kind, tmp_path, monkeypatch):
    own, file, text = GROUPS[kind]
    (tmp_path / "own_groups").write_text(own)
    counter = tmp_path / "groups" / file
    counter.parent.mkdir(parents=True)
    counter.write_text(text)
    monkeypatch.setattr(child, "OWN_GROUPS", tmp_path / "own_groups")
    monkeypatch.setattr(child, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(child, "VMSTAT", tmp_path / "groups" / "vmstat")
    assert child.memory_kills() == 3
    counter.unlink()
    assert child.memory_kills() == 0


def test_a_child_that_is_killed_before_it_was_told_what_to_do_has_failed(monkeypatch):
    """It was gone when its request was written, which ended the supervisor."""
    forked = forkserver._forkserver.connect_to_new_process

    def killed(handles):
        status, request = forked(handles)
        pid = forkserver.read_signed(status)
        os.kill(pid, signal.SIGKILL)
        pipe = select.poll()  # which has an error once no process reads from it: not the child, and not the server
        pipe.register(request, 0)
        until(lambda: pipe.poll(0))
        return status, request

    monkeypatch.setattr(forkserver, "connect_to_new_process", killed)
    with pytest.raises(Ended, match=r"The process was killed from outside before it began\.") as end:
        started("echo")
    assert end.value.row["status"] == "failed"
    monkeypatch.undo()
    assert answers_of("echo")


def test_a_child_that_takes_too_long_is_ended():
    begun = time.monotonic()
    with started("two", seconds=60) as slow:
        end = ended(slow.answers(lambda: child.why_too_long(begun, 0.5, "seconds_cell")))
    assert end == {"status": "timeout", "reason": "It took longer than seconds_cell = 0.5 s."}
    assert not slow.process.is_alive()


def test_a_child_that_holds_too_much_is_ended_with_the_bytes():
    with started("takes_memory", bytes=200 * 2**20) as process:
        row = ended(process.answers(lambda: process.why_too_large(10**6, 100 * 2**20)))
    assert (row["status"], row["bytes_limit"]) == ("memory", 10**6)
    assert row["bytes_peak"] > 100 * 2**20
    assert "the limit is 1000000" in row["reason"]


def test_a_child_that_fails_or_says_nothing_has_its_exit_status_told():
    assert end_of("nothing")["reason"] == "The process ended with status 0 before it had answered."
    assert "ended with status 1" in end_of("fails")["reason"]


def test_a_pipe_that_a_grandchild_holds_open_keeps_nobody_waiting(tmp_path):
    """The grandchild lives on until it is let go, which is after the child's end was told."""
    let_go = tmp_path / "go"
    try:
        assert "SIGTERM" in end_of("lets_a_grandchild_hold_the_pipe", until=str(let_go))["reason"]
    finally:
        let_go.touch()


def test_a_fork_server_that_was_killed_is_a_failed_child_and_leaves_none():
    with started("two", seconds=60) as process:
        answers = process.answers(dict)
        next(answers)  # it has begun, so it has asked to end with the server; before, it would go on for its 60 s
        server = psutil.Process(process.process.pid).parent()
        assert "forkserver" in " ".join(server.cmdline())
        server.kill()
        until(lambda: is_gone(process.process.pid))  # before anyone reads its answers: it ends without its supervisor
        end = ended(answers)
    reason = "The fork server, which starts the processes, was killed from outside."
    assert end == {"status": "failed", "reason": reason}
    assert answers_of("echo"), "the next child has a fork server again"


def test_leaving_early_ends_the_child():
    def interrupted(process: Child) -> None:
        with process:
            for _ in process.answers(dict):
                raise KeyboardInterrupt

    process = started("two", seconds=60)
    with pytest.raises(KeyboardInterrupt):
        interrupted(process)
    assert not process.process.is_alive()
