"""Processes of a Dask cluster, as a user of it starts them: each says its address in a line, and is killed in the end.

`python dask_process.py` imports Dask and the workbench once, and forks such a process for each line of arguments:

scheduler
worker SCHEDULER
machine SCHEDULER NAME FAULT TRIAL    # measures nothing, and at one trial does what FAULT says
"""

import asyncio
import atexit
import contextlib
import functools
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.clocks import SECONDS

ROOT = Path(__file__).parents[2]
HOSTS = {"b": "127.0.0.2", "c": "127.0.0.3"}
"""Addresses of machines, for one worker of a host stands for its machine."""


async def main(kind: str, scheduler: str = "", name: str = "", fault: str = "none", at: str = "-1") -> None:
    import dask
    from distributed import Scheduler, Worker

    options = {"host": HOSTS.get(name, "127.0.0.1"), "dashboard_address": "127.0.0.1:0"}
    dask.config.set({"distributed.scheduler.worker-ttl": "10s", "distributed.scheduler.worker-saturation": 1.0})
    dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"})
    if kind == "scheduler":
        served = Scheduler(port=0, **options)
    else:
        if name:
            measure_nothing(name, fault, int(at))
        resources = {"machine": 1} if kind == "machine" else {}
        served = Worker(scheduler, nthreads=1, memory_limit=0, resources=resources, **options)
    async with served:
        say("listens", served.address)
        await served.finished()


def say(what: str, more: object) -> None:
    """Write a line about this process at once, which no other process's splits."""
    os.write(1, f"{os.getpid()}\t{what}\t{more}\n".encode())


def serve() -> None:
    """Fork a process for each line of arguments, and say how those ended that have."""
    import distributed  # noqa: F401 - for the forked ones

    import workbench.cluster.machine_tasks
    import workbench.sweeps.runner  # noqa: F401

    def tell_ends(*_: object) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                os.write(1, f"{ended[0]}\tended\t{os.waitstatus_to_exitcode(ended[1])}\n".encode())

    signal.signal(signal.SIGCHLD, tell_ends)
    gc.freeze()
    for line in sys.stdin:
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            say("started", "")
            try:
                asyncio.run(main(*line.rstrip("\n").split("\t")))
            finally:
                os._exit(1)


def measure_nothing(name: str, fault: str, at: int) -> None:
    """Let this process be the machine NAME, whose trials have made-up times."""
    from workbench.measure import machine
    from workbench.sweeps.runner import Supervisor

    machine.machine_id = lambda: name
    machine.describe_machine = lambda: {"id": name}
    measured = []

    def do(supervisor: Supervisor, task) -> dict:
        measured.append(task)
        if len(measured) - 1 == at:
            fail(fault, supervisor)
        configuration = task.configuration
        known = {"key": task.key, "round": task.round, "run": supervisor.run_name, "machine": name}
        known |= {"density": configuration.density, "batch_rows": configuration.batch_rows}
        status = "disturbed" if fault == "is disturbed" else "ok"
        return {**known, "status": status, "seconds_step": 3.0 if configuration.format == "dense" else 1.0}

    Supervisor.do = do


def fail(fault: str, supervisor) -> None:
    """Do what FAULT says: "dies", "is halted", "raises", "waits:FILE", or a signal for the process of a number."""
    if fault == "dies":
        os._exit(9)
    if fault == "is halted":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "raises":
        raise OSError("no space left")
    if fault.startswith("waits"):  # a file says that it does
        if path := fault.partition(":")[2]:
            Path(path).touch()
        while not supervisor.stopping:
            time.sleep(0.02)
        os._exit(7)
    if fault.startswith("SIG"):
        number, _, process = fault.partition(":")
        os.kill(int(process), getattr(signal, number))


class Server:
    """The process that forks the others, and what it and they have said: the answers to each, by word."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        command = [sys.executable, "-m", "tests.support.dask_process"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        self.said: defaultdict[tuple[int, str], queue.Queue[str]] = defaultdict(queue.Queue)
        self.new: queue.Queue[int] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            number, what, more = line.rstrip("\n").split("\t")
            if what == "started":
                self.new.put(int(number))
            self.said[int(number), what].put(more)

    def end(self) -> None:
        """End it."""
        self.process.stdin.close()
        self.process.wait()

    def start(self, arguments: tuple[str, ...]) -> "Forked":
        """Have a process forked with these arguments."""
        print(*arguments, sep="\t", file=self.process.stdin, flush=True)
        return Forked(self, self.new.get(timeout=SECONDS))


class Forked:
    """One of its processes."""

    def __init__(self, server: Server, pid: int) -> None:
        self.server, self.pid = server, pid

    def address(self) -> str:
        """Return where it listens, once it does."""
        return self.server.said[self.pid, "listens"].get(timeout=SECONDS)

    def wait(self, timeout: float = SECONDS) -> int:
        """Return its status as `subprocess` has it, once it has ended."""
        status = self.server.said[self.pid, "ended"].get(timeout=timeout)
        self.server.said[self.pid, "ended"].put(status)  # for whoever asks again
        return int(status)

    def kill(self) -> None:
        """End it, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@functools.cache
def server() -> Server:
    """The one of this process, which ends when its input does."""
    made = Server()
    atexit.register(made.end)
    return made


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[str, Forked]]:
    """The address of such a process, and itself."""
    process = server().start(arguments)
    try:
        yield process.address(), process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    serve()
