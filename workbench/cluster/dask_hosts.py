"""The processes of a cluster that trains, and how they are reached: started here, or workers of a scheduler there is.

    local:2              two processes here
    ssh:node1,me@node2   a process a host, and slurm:4, four nodes of an allocation: started as agents of sweeps are
    tls://node1:8786     the workers of a Dask scheduler of yours; one on this machine may be tcp://127.0.0.1:8786

Processes that are started here are encrypted where they are not all on this machine (`certificates`), are killed when
they fall silent, and are started again. Of a scheduler of yours those that are lost are left out.
"""

import asyncio
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, final

import psutil

try:
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_ip
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error

from workbench.cluster import certificates, dask_transport
from workbench.cluster.dask_settings import PAGES, SECONDS_JOIN, security_of, settings
from workbench.cluster.dask_transport import Run
from workbench.cluster.security import check_encrypted
from workbench.kvstore import StoreError
from workbench.measure import blas
from workbench.sweep.places import AGENT, Place, places

SECONDS_SILENT = 30.0
"""A process that has not answered for so long is lost."""
SECONDS_BETWEEN = 1.0
SECONDS_REMOVE = 10.0
PROGRAM = (*AGENT[:-1], "workbench.cluster.worker")


class Lost(NamedTuple):
    """A process that is gone or silent: its address, and what is known of it."""

    address: str
    why: str


@final
class _Process:
    """One process that was started here; its log is a file."""

    def __init__(self, place: Place, log: Path) -> None:
        self.place, self.log, self.address = place, log, ""
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                list(place.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
                env=blas.own_environment(),
            )

    def join(self, seconds: float) -> None:
        """Wait until it has said its address."""
        assert self.process.stdout is not None
        line, end = b"", time.monotonic() + seconds
        with selectors.DefaultSelector() as waits:
            waits.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and (left := end - time.monotonic()) > 0 and waits.select(left):
                if not (read := os.read(self.process.stdout.fileno(), 2**12)):
                    break
                line += read
        try:
            self.address = json.loads(line)["address"]
        except (ValueError, LookupError, TypeError):
            self.kill()
            raise StoreError(f"{self.place.name} did not join the cluster. {self.tail()}") from None

    def tail(self) -> str:
        """The end of its log, for a message."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-12:]
        return f"Its log {self.log} ends with:\n" + "\n".join(lines) if lines else f"Its log {self.log} is empty."

    def why_ended(self) -> str:
        """How it ended, or that it was stopped; "" where it runs."""
        status = self.process.poll()
        if status is None:
            return f"{self.place.name} was stopped by a signal. {self.tail()}" if self._is_stopped() else ""
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{self.place.name} {how}. {self.tail()}"

    def _is_stopped(self) -> bool:
        try:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def kill(self) -> None:
        """See that it is gone, also when it is stopped."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@final
class Hosts:
    """The workers of a cluster: a context that ends what it started. `folder` is for logs and certificates."""

    def __init__(self, where: str, folder: Path, seconds_silent: float = SECONDS_SILENT) -> None:
        self.where, self.folder, self.seconds_silent = where, Path(folder), seconds_silent
        self.folder.mkdir(parents=True, exist_ok=True)
        self.own: list[_Process] = []
        self.cluster: LocalCluster | None = None
        self.heard: dict[str, float] = {}
        self.pings: dict[str, Future] = {}
        self.left_out: set[str] = set()
        self.topics: set[str] = set()
        is_address = "://" in where
        with dask.config.set(settings()):
            self.client = self._joined(where) if is_address else self._started(where)

    def __enter__(self) -> "Hosts":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.own:
            process.kill()
        self.client.close(timeout=SECONDS_REMOVE)
        if self.cluster is not None:
            self.cluster.close(timeout=SECONDS_REMOVE)

    def _joined(self, address: str) -> Client:
        check_encrypted([address])
        files = os.environ.get("WORKBENCH_CERTIFICATES", "")
        client = Client(address, security=security_of(files), timeout=SECONDS_JOIN, set_as_default=False)
        client.wait_for_workers(1, timeout=SECONDS_JOIN)
        return client

    def _started(self, where: str) -> Client:
        is_here = where.startswith("local:")
        places(where)  # what is wrong with it is told before anything is started
        self.certificates = "" if is_here else str(Path(certificates.made(self.folder / "tls").key).parent.resolve())
        how = {"protocol": "tcp", "host": "127.0.0.1"} if is_here else {"protocol": "tls", "host": get_ip()}
        security = security_of(self.certificates)
        self.cluster = LocalCluster(
            n_workers=0, processes=False, dashboard_address=PAGES, silence_logs=50, security=security, **how
        )
        program = (*PROGRAM, self.cluster.scheduler_address, *filter(None, [self.certificates]))
        self.places = places(where, program)
        self._start(self.places)
        return Client(self.cluster, set_as_default=False)

    def _start(self, wanted: Sequence[Place], instead: Sequence[_Process] = ()) -> None:
        """Start processes, in the places of others, and wait until they have joined; if one does not, all are ended."""
        begun = [_Process(place, self.folder / f"{place.name.replace(' ', '-')}.log") for place in wanted]
        for old, new in zip(instead, begun, strict=False):
            self.own[self.own.index(old)] = new
        self.own += begun[len(instead) :]
        try:
            for process in begun:
                process.join(SECONDS_JOIN)
        except StoreError:
            for process in self.own:
                process.kill()
            raise

    # Who is there

    def addresses(self) -> list[str]:
        """The workers that are there, in a fixed order."""
        own = [process.address for process in self.own]
        return own or [address for address in sorted(self.client.nthreads()) if address not in self.left_out]

    def name(self, address: str) -> str:
        """What a worker is called."""
        return next((one.place.name for one in self.own if one.address == address), address)

    def lost(self) -> list[Lost]:
        """Those of `addresses` that are gone, or have been silent for too long; asks them once a second."""
        found = [Lost(one.address, why) for one in self.own if (why := one.why_ended())]
        now = time.monotonic()
        for address in self.addresses():
            self._ask(address, now)
            if now - self.heard[address] > self.seconds_silent:
                told = f"{self.name(address)} has not answered for {self.seconds_silent:g} s."
                found.append(Lost(address, f"{told} {self.tail(address)}".strip()))
        return list({one.address: one for one in found}.values())

    def _ask(self, address: str, now: float) -> None:
        self.heard.setdefault(address, now)
        ping = self.pings.get(address)
        if ping is not None and ping.done():
            if ping.exception() is None:
                self.heard[address] = now
            del self.pings[address]
        if address not in self.pings and (ping is None or now - self.heard[address] >= SECONDS_BETWEEN):
            self.pings[address] = self._later(self.client.rpc(address).identity())

    def tail(self, address: str) -> str:
        """The end of the log of a process that was started here."""
        return next((one.tail() for one in self.own if one.address == address), "")

    def end(self, gone: Sequence[str]) -> None:
        """See that these are gone, also those that are stopped; workers of others are left out from now on."""
        self.left_out.update(gone)
        for process in self.own:
            if process.address in gone:
                process.kill()
        for address in gone:
            self.pings.pop(address, None)
            call = self.client.scheduler.unregister(address=address, stimulus_id="workbench-lost")
            self._wait(call, SECONDS_REMOVE)

    def renew(self) -> None:
        """Start processes in the places of those that have ended."""
        places = {process: process.place for process in self.own if process.why_ended()}
        self._start(list(places.values()), instead=list(places))

    # What they do

    def place(self, shards: int, trainers: int, staleness: int = 0) -> Run:
        """Make shards on the workers in turn."""
        return dask_transport.place(self.client, shards, trainers, staleness=staleness, workers=self.addresses())

    def start(self, run: Run, address: str, trainer: int, work: str, request: Mapping[str, Any]) -> Future:
        """Run a trainer on a worker; its answer as JSON, in the end. `OSError` in it where the worker is gone."""
        send = getattr(self.client.rpc(address), run.training)
        return self._later(send(trainer=trainer, work=work, request=json.dumps(request)))

    def listen(self, run: Run, hear: Callable[[dict[str, Any]], None]) -> None:
        """Call `hear`, on a thread of its own, with what the trainers of a run tell."""
        self.topics.add(run.training)
        self.client.subscribe_topic(run.training, lambda event: hear(event[1]))

    def remove(self, run: Run) -> None:
        """End the shards of a run; its trainers then end with an error."""
        if run.training in self.topics:
            self.topics.remove(run.training)
            self.client.unsubscribe_topic(run.training)
        call = self.client._unregister_worker_plugin(f"workbench-shards-{run.name}")
        self._wait(call, SECONDS_REMOVE)

    def _later(self, call: Any) -> Future:
        return asyncio.run_coroutine_threadsafe(_awaited(call), self.client.loop.asyncio_loop)

    def _wait(self, call: Any, seconds: float) -> None:
        """Wait for it; a cluster that has lost a worker may be late, and goes on without this."""
        waited = self._later(call)
        try:
            waited.result(seconds)
        except (OSError, TimeoutError, ValueError, RuntimeError):
            waited.cancel()


async def _awaited(call: Any) -> Any:
    return await call
