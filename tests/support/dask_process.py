"""Processes of a Dask cluster, as a user of it starts them: each says its address in a line, and is killed in the end.

python dask_process.py scheduler
python dask_process.py worker SCHEDULER
python dask_process.py machine SCHEDULER NAME FAULT TRIAL    # measures nothing, and at one trial does what FAULT says
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOSTS = {"b": "127.0.0.2", "c": "127.0.0.3"}
"""Addresses of machines, for one worker of a host stands for its machine."""


async def main(kind: str, scheduler: str = "", name: str = "", fault: str = "none", at: str = "-1") -> None:
    import dask
    from distributed import Scheduler, Worker

    options = {"host": HOSTS.get(name, "127.0.0.1"), "dashboard_address": "127.0.0.1:0"}
    dask.config.set({"distributed.scheduler.worker-ttl": "10s", "distributed.scheduler.worker-saturation": 1.0})
    if kind == "scheduler":
        served = Scheduler(port=0, **options)
    else:
        if name:
            measure_nothing(name, fault, int(at))
        resources = {"machine": 1} if kind == "machine" else {}
        served = Worker(scheduler, nthreads=1, memory_limit=0, resources=resources, **options)
    async with served:
        print(served.address, flush=True)
        await served.finished()


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


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of such a process, and itself."""
    command = [sys.executable, "-m", "tests.support.dask_process", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
