"""Processes of a Dask cluster, as a user of it starts them: each says its address in a line, and is killed in the end.

python dask_process.py scheduler
python dask_process.py machine SCHEDULER FILE      # its agents are what the shell finds in FILE then
python dask_process.py worker SCHEDULER
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def main(kind: str, scheduler: str = "", file: str = "") -> None:
    from distributed import Scheduler, Worker

    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    if kind == "scheduler":
        served = Scheduler(port=0, **options)
    else:
        from workbench.cluster import dask_agent

        dask_agent.AGENT = ("sh", file)
        resources = {dask_agent.MACHINE: 1} if kind == "machine" else {}
        served = Worker(scheduler, nthreads=1, memory_limit=0, resources=resources, **options)
    async with served:
        print(served.address, flush=True)
        await served.finished()


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
