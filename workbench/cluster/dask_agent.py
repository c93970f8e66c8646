"""An agent on a machine of an existing Dask cluster: all that sweeps use of `distributed` is in this file.

    python -m workbench.cluster.dask_agent SCHEDULER            # says which machines there are, as a line of JSON
    python -m workbench.cluster.dask_agent SCHEDULER WORKER     # is an agent there: JSON in and out, as on any machine

A worker that was started with `--resources machine=1` stands for its machine. One long task holds it, and starts the
agent as a program of its own: trials are no tasks of Dask, whose workers stay idle meanwhile. Lines travel as text
through two queues of the scheduler, so that whoever reaches the scheduler needs to reach no worker. The task ends when
it is asked to, when its agent has ended, and when no message has come for the time after which an agent counts as lost.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import IO, Any, final

try:
    from distributed import Client, Queue, Worker, get_client, get_worker
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error

from workbench.cluster.coordinator import SECONDS_END, SECONDS_SILENT, end_process
from workbench.cluster.security import SECONDS_JOIN, OpenClusterError, check_certificates, check_encrypted, security_of
from workbench.measure import loads
from workbench.sweeps.agent_commands import AGENT

MACHINE = "machine"
"""The resource that a worker has that stands for its machine."""
SECONDS_PING = 1.0
"""How often the task is told that the sweep is still there; an agent says as often what it does."""
SECONDS_LOOK = 5.0
"""How long nothing must have come before it is looked whether worker and task are there."""
FIRST = {"begin": "agent"}
"""What the task takes before all else: where Dask runs it again after a loss, it finds something else, and ends."""
WAITING = "waiting for the machine: another sweep or task has its worker"
WATCHING = ("profile", "profile-cycle", "memory_monitor", "monitor")
"""What a worker does again and again to watch itself, the first every 10 ms."""


class NoMachinesError(ValueError):
    """A cluster has no worker that stands for a machine, or is not reached; the message says what to do."""


@contextlib.contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """Yield a client of the cluster at address `scheduler`, closed on exit.

    OpenClusterError if it is open to other machines without encryption, NoMachinesError if it cannot be reached.
    """
    check_encrypted([scheduler])
    folder = os.environ.get("WORKBENCH_CERTIFICATES", "")
    check_certificates(scheduler, folder)
    try:
        client = Client(scheduler, timeout=SECONDS_JOIN, security=security_of(folder), set_as_default=False)
    except OSError as error:
        raise NoMachinesError(f"The scheduler {scheduler} is not reached: {error}") from None
    with client:
        yield client


def machines(client: Client) -> list[str]:
    """Return the sorted addresses of the workers with the resource "machine", one for each machine.

    NoMachinesError if there is none, OpenClusterError if one is not encrypted.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    check_encrypted(list(workers))
    found = sorted(address for address, worker in workers.items() if worker["resources"].get(MACHINE, 0) >= 1)
    if not found:
        raise NoMachinesError(
            f"None of {len(workers)} workers of {client.scheduler.address} stands for a machine. Start one on each "
            f"machine: dask worker {client.scheduler.address} --nthreads 1 --memory-limit 0 --resources {MACHINE}=1"
        )
    return found


# Here: what the sweep started instead of an agent


@final
class Carrier:
    """Carries lines between this process and the agent of a worker."""

    def __init__(self, client: Client, worker: str) -> None:
        """Submit the agent's task to the worker, with two queues of a random name for its lines."""
        self.client, self.worker, name = client, worker, f"workbench-agent-{uuid.uuid4().hex}"
        self.given, self.said = Queue(f"{name}-given", client), Queue(f"{name}-said", client)
        self.end_by: float | None = None
        self.has_begun = False
        self.given.put(FIRST)
        placed = {"workers": [worker], "allow_other_workers": False, "resources": {MACHINE: 1}}
        self.task = client.submit(serve, name, key=name, pure=False, retries=0, **placed)

    def ping(self, ended: threading.Event) -> None:
        """Send an empty message every `SECONDS_PING` until `ended` is set or the scheduler is gone.

        Body of a thread.
        """
        with contextlib.suppress(OSError):
            while not ended.wait(SECONDS_PING):
                self.given.put({})

    def send(self, lines: IO[str]) -> None:
        """Send each line to the agent, then the message to end; stops silently if the scheduler is gone.

        Body of a thread: `lines` blocks until there is input.
        """
        with contextlib.suppress(OSError):  # the scheduler is gone, as whoever receives finds
            for line in lines:
                self.given.put({"line": line})
            self.end_by = time.monotonic() + SECONDS_END
            self.given.put({"end": True})

    def receive(self, out: IO[str], log: IO[str]) -> str:
        """Write the agent's output to `out` and its log to `log` until it has ended.

        Return why, "" if it reported that. While other work has the worker, lines {"beat": ...} are written, so that
        the agent does not count as lost.
        """
        while True:
            try:
                message = self.said.get(timeout=SECONDS_LOOK if self.has_begun else SECONDS_PING)
            except TimeoutError:
                if (why := self._why_ended()) is not None:
                    return why
                if not self.has_begun:
                    print(json.dumps({"beat": WAITING}), file=out, flush=True)
                continue
            self.has_begun = True
            if "ended" in message:
                return ""
            for file, text in ((out, message.get("line", "")), (log, message.get("log", ""))):
                file.write(text)
                file.flush()

    def _why_ended(self) -> str | None:
        """Return why the agent's task is over, "" if as it should be, None while it runs."""
        if self.task.done():
            return "" if self.task.status == "finished" else f"Its task ended: {self.task.exception(SECONDS_END)!r}"
        if self.worker not in self.client.nthreads():
            return f"The worker {self.worker} is gone."
        if self.end_by is not None and not self.has_begun:
            return ""
        return "It did not end in time." if self.end_by is not None and time.monotonic() > self.end_by else None


# On a worker: the task


def serve(name: str) -> None:
    """Start an agent on this worker and carry its lines through the queues NAME-given and NAME-said until it ends.

    The task of the worker. Returns at once if Dask runs it a second time.
    """
    client = get_client()
    given, said = Queue(f"{name}-given", client), Queue(f"{name}-said", client)
    if given.get(timeout=SECONDS_SILENT) != FIRST:
        return
    said.put({"begun": True})
    with disable_self_monitoring(get_worker()) as stopped:
        environment, pipe = loads.measuring_environment(stopped=stopped), subprocess.PIPE
        process = subprocess.Popen(AGENT, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True)
        pumps = [
            threading.Thread(target=pump, args=(file, said, kind), daemon=True)
            for file, kind in ((process.stdout, "line"), (process.stderr, "log"))
        ]
        for thread in pumps:
            thread.start()
        try:
            feed(process, given)
        finally:
            end_process(process)
            for thread in pumps:
                thread.join(SECONDS_END)
            said.put({"ended": True})
            given.close()
            said.close()


def feed(process: subprocess.Popen, given: Queue) -> None:
    """Write the lines of the queue `given` to the input of `process` until a message to end comes.

    Also returns if the process has ended or nothing comes for `SECONDS_SILENT`.
    """
    assert process.stdin is not None
    while process.poll() is None:
        try:
            message = given.get(timeout=SECONDS_SILENT)
        except TimeoutError:
            return
        if "end" in message:
            return
        with contextlib.suppress(BrokenPipeError):  # it has ended, as the next look finds
            process.stdin.write(message.get("line", "").encode())
            process.stdin.flush()


def pump(lines: IO[bytes], said: Queue, kind: str) -> None:
    """Put each line as {kind: text} into the queue until the file ends or the scheduler is gone; body of a thread."""
    with contextlib.suppress(OSError), lines:
        for line in lines:
            said.put({kind: line.decode(errors="replace")})


@contextlib.contextmanager
def disable_self_monitoring(worker: Worker) -> Iterator[dict[str, str]]:
    """Stop a worker's periodic self-monitoring in the context; yield {"dask NAME": "every 10 ms"} of those stopped."""
    found = {name: worker.periodic_callbacks[name] for name in WATCHING if name in worker.periodic_callbacks}
    running = {name: callback for name, callback in found.items() if callback.is_running()}
    for callback in running.values():
        worker.loop.add_callback(callback.stop)
    try:
        yield {f"dask {name}": f"every {callback.callback_time:g} ms" for name, callback in running.items()}
    finally:
        for callback in running.values():
            worker.loop.add_callback(callback.start)


def main(scheduler: str, worker: str = "") -> None:
    """Print the machines of the cluster as JSON, or with `worker` carry the lines of an agent there."""
    if worker:
        print(carry(scheduler, worker), end="", file=sys.stderr)
    else:
        print(json.dumps(find_machines(scheduler)))


def carry(scheduler: str, worker: str) -> str:
    """Carry standard input and output to and from an agent on the worker until it ends; return why, "" if it said so.

    Errors of the connection are returned as text, not raised.
    """
    try:
        with connect(scheduler) as client:
            carrier = Carrier(client, worker)
            ended = threading.Event()
            threading.Thread(target=carrier.send, args=(sys.stdin,), daemon=True).start()
            threading.Thread(target=carrier.ping, args=(ended,), daemon=True).start()
            try:
                return carrier.receive(sys.stdout, sys.stderr)
            finally:
                ended.set()
    except (NoMachinesError, OpenClusterError) as error:
        return str(error)
    except OSError as error:
        return f"The scheduler {scheduler} answers no more: {error}"


def find_machines(scheduler: str) -> dict[str, Any]:
    """Return {"machines": [worker addresses]}, or {"refused": why} if there are none or it cannot be reached."""
    try:
        with connect(scheduler) as client:
            return {"machines": machines(client)}
    except (NoMachinesError, OpenClusterError) as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    from workbench.cluster import dask_agent  # noqa: PLW0406 - or Dask would send its functions as code, not by their names

    dask_agent.main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread may still wait for the input, and would keep the process from its end
