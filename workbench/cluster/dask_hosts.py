"""The processes of a cluster training: started here, or workers of an existing Dask scheduler.

    local:2              two processes here
    ssh:node1,me@node2   a process a host, and slurm:4, four nodes of an allocation: started as agents of sweeps are
    tls://node1:8786     the workers of a Dask scheduler of yours; one on this machine may be tcp://127.0.0.1:8786

Processes that are started here are encrypted where they are not all on this machine (`certificates`), are killed when
they fall silent, and are started again. Lost workers of an existing scheduler are left out.
"""

import asyncio
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import psutil

try:
    import dask
    from distributed import Client, LocalCluster
    from distributed.client import ClosedClientError
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error

from workbench.cluster import dask_transport
from workbench.cluster import security as cluster_security
from workbench.cluster.dask_transport import Run
from workbench.cluster.security import PAGES, SECONDS_JOIN, check_certificates, check_encrypted, security_of, settings
from workbench.kvstore import StoreError
from workbench.measure import loads
from workbench.sweeps import agent_commands
from workbench.sweeps.agent_commands import AGENT, AgentCommand, parse_agents, require_allocation

# A process of a cluster that trains, started here or through ssh or srun; it says where it is reached, then serves.

LINES_SHOWN = 12
"""Lines from the end of a log that a message has."""


class Lost(NamedTuple):
    """A process that is gone or silent: its address, and what is known of it."""

    address: str
    why: str


def start_process(command: Sequence[str], log: Path) -> tuple[subprocess.Popen, int]:
    """Start a command in a new session, with pipes to and from it and its standard error appended to the file `log`.

    Returns it with the size that the log had. Raises OSError if it cannot be started.
    """
    pipe, environment = subprocess.PIPE, loads.measuring_environment()
    with open(log, "ab") as file:
        start = file.tell()
        process = subprocess.Popen(
            list(command), bufsize=0, stdin=pipe, stdout=pipe, stderr=file, start_new_session=True, env=environment
        )
    return process, start


@final
class Process:
    """One process that was started here; its log is a file."""

    def __init__(self, place: AgentCommand, log: Path) -> None:
        """Start the command of `place` with its standard error appended to the file `log`; StoreError if that fails."""
        self.place, self.log, self.address = place, log, ""
        try:
            self.process, self.log_start = start_process(place.command, log)
        except OSError as error:
            raise StoreError(f"{place.name} cannot be started: {error}.") from None

    def join(self, seconds: float) -> None:
        """Wait up to `seconds` until it prints its address as JSON, and set `address`; other lines are skipped.

        Raises StoreError, and kills it, if it does not reach the scheduler, prints nothing in time, or ends.
        """
        assert self.process.stdout is not None
        said, end = b"", time.monotonic() + seconds
        with selectors.DefaultSelector() as waits:
            waits.register(self.process.stdout, selectors.EVENT_READ)
            while not self.address and (left := end - time.monotonic()) > 0 and waits.select(left):
                if not (read := os.read(self.process.stdout.fileno(), 2**12)):
                    break
                said += read
                lines = said.split(b"\n")[:-1]
                self.address = next(filter(None, (_json_text(line, "address") for line in lines)), "")
                if why := next(filter(None, (_json_text(line, "unreached") for line in lines)), ""):
                    self.kill()
                    raise StoreError(f"{self.place.name} does not reach {why} {agent_commands.ADVICE}")
        if not self.address:
            self.kill()
            text = f" It said {said[-80:]!r}." if said else ""
            raise StoreError(f"{self.place.name} did not join the cluster.{text} {self.tail()}")

    def tail(self) -> str:
        """Return a sentence with the last `LINES_SHOWN` lines of its log since the start, or that the log is empty."""
        printed = self.log.read_bytes()[self.log_start :].decode(errors="replace")
        lines = printed.strip().splitlines()[-LINES_SHOWN:]
        return f"Its log {self.log} ends with:\n" + "\n".join(lines) if lines else f"Its log {self.log} is empty."

    def why_ended(self) -> str:
        """Return a sentence on how the process ended or that it is stopped by a signal; "" while it runs."""
        status = self.process.poll()
        if status is None:
            return f"{self.place.name} was stopped by a signal. {self.tail()}" if self._is_stopped() else ""
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{self.place.name} {how}. {self.tail()}"

    def _is_stopped(self) -> bool:
        """Return whether the process is stopped by a signal."""
        try:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def kill(self) -> None:
        """Kill the process group with SIGKILL, also if it is stopped, wait for it and close its pipes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _json_text(line: bytes, what: str) -> str:
    """Return the text under the key `what` in a line of JSON; "" if it is no JSON or lacks the key."""
    try:
        return str(json.loads(line)[what])
    except (ValueError, LookupError, TypeError):
        return ""


SECONDS_SILENT = 30.0
"""A process that has not answered for so long is lost."""
SECONDS_BETWEEN = 1.0
SECONDS_REMOVE = 10.0
SECONDS_ANSWER = 30.0
"""How long a scheduler may take to answer; it may be stopped, or gone."""
SECONDS_REACH = 20.0
"""How long a process that has joined may take to answer the first time."""
FAILURES = (OSError, TimeoutError, ValueError, RuntimeError, AttributeError, CancelledError, ClosedClientError)
"""What comes of asking somebody who is gone, some of it of a client that has closed itself then."""
PROGRAM = (*AGENT[:-1], "workbench.cluster.worker")


@final
class Hosts:
    """The workers of a cluster: a context that ends what it started. `folder` is for logs and certificates.

    Processes on other machines come to this one at `address` (`workbench.sweeps.agent_commands`), "" for one on the
    way.
    """

    def __init__(self, where: str, folder: Path, seconds_silent: float = SECONDS_SILENT, *, address: str = "") -> None:
        """Connect to the scheduler `where`, or start one here with workers at `where`, and wait until all have joined.

        `folder` is created for logs and certificates; `address` is that of this machine for the others. A worker that
        does not answer for `seconds_silent` is lost. Raises StoreError or SpecError if that fails; processes are killed
        then.
        """
        self.where, self.folder, self.seconds_silent = where, Path(folder), seconds_silent
        self.folder.mkdir(parents=True, exist_ok=True)
        self.own, self.places = list[Process](), list[AgentCommand]()
        self.cluster: LocalCluster | None = None
        self.heard: dict[str, float] = {}
        """When each last answered; of those that are not asked yet, when they were first looked after."""
        self.pings: dict[str, Future] = {}
        self.looked = time.monotonic()
        self.at_work: list[str] = []
        self.members: set[str] | None = None
        """Workers that a scheduler of yours has, as far as it was asked since the last shards were placed."""
        self.left_out: set[str] = set()
        self.topics: set[str] = set()
        self.is_own, reached = "://" not in where, agent_commands.local_address(where, address)
        with dask.config.set(settings()):
            self.client = self._start_scheduler(where, reached) if self.is_own else self._join_scheduler(where)
            self._begin()

    def __enter__(self) -> "Hosts":
        """Return the object itself, which has connected already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the processes that were started, and close the client and a cluster of its own."""
        for process in self.own:
            process.kill()
        self.client.close(timeout=SECONDS_REMOVE)
        if self.cluster is not None:
            self.cluster.close(timeout=SECONDS_REMOVE)

    def _join_scheduler(self, address: str) -> Client:
        """Return a client of the existing scheduler at `address`, once it has a worker.

        StoreError if it cannot be reached, OpenClusterError if it is open to others or certificates are missing.
        """
        check_encrypted([address])
        files = os.environ.get("WORKBENCH_CERTIFICATES", "")
        check_certificates(address, files)
        try:
            client = Client(address, security=security_of(files), timeout=SECONDS_JOIN, set_as_default=False)
        except OSError as error:
            raise StoreError(f"The scheduler {address} is not reached: {error}") from None
        client.wait_for_workers(1, timeout=SECONDS_JOIN)
        return client

    def _start_scheduler(self, where: str, reached: str) -> Client:
        """Start an encrypted scheduler here, at the address `reached`, and set `places` to the workers of WHERE.

        Returns its client; the workers are not started yet. SpecError or OpenClusterError if that fails.
        """
        require_allocation(where)
        # on loopback too: any user of this machine reaches the port, and a scheduler runs what its clients send
        self.certificates = str(Path(cluster_security.make_certificates(self.folder / "tls").key).parent.resolve())
        how = {"protocol": "tls", "host": f"[{reached}]" if ":" in reached else reached}
        security = security_of(self.certificates)
        self.cluster = LocalCluster(
            n_workers=0, processes=False, dashboard_address=PAGES, silence_logs=50, security=security, **how
        )
        program = (*PROGRAM, self.cluster.scheduler_address, *filter(None, [self.certificates]))
        self.places = parse_agents(where, program)
        return Client(self.cluster, set_as_default=False)

    def _begin(self) -> None:
        """Start all processes of `places`; if one fails, end everything and raise its StoreError."""
        if failures := self._start(self.places):
            self.__exit__()
            raise failures[0]

    def _start(self, wanted: Sequence[AgentCommand]) -> list[StoreError]:
        """Start processes and wait until each has joined or failed; add the former to `own`, return the errors."""
        begun, failures = list[Process](), list[StoreError]()
        for place in wanted:
            try:
                begun.append(Process(place, self.folder / f"{place.name.replace(' ', '-')}.log"))
            except StoreError as error:
                failures.append(error)
        for process in begun:
            try:
                process.join(SECONDS_JOIN)
                self._check_reached(process)
                self.own.append(process)
            except StoreError as error:
                failures.append(error)
        self.own.sort(key=lambda process: self.places.index(process.place))
        return failures

    def _check_reached(self, process: Process) -> None:
        """Raise StoreError, and kill the process, if this machine cannot connect to the address it gave."""
        asked = self._later(partial(self._identity, process.address))
        try:
            asked.result(SECONDS_REACH)
        except FAILURES as error:
            asked.cancel()
            process.kill()
            raise StoreError(
                f"{process.place.name} has joined, but this machine does not reach it at {process.address}: "
                f"{str(error) or type(error).__name__}. All machines of a training reach each other, at any port: a "
                f"firewall has to let them. {agent_commands.ADVICE}"
            ) from None

    # Who is there

    def addresses(self) -> list[str]:
        """Return the worker addresses in a fixed order, without those left out; StoreError if no answer comes."""
        if self.is_own:
            return [process.address for process in self.own]
        try:
            known = self._later(self._members).result(SECONDS_ANSWER)
        except FAILURES as error:
            raise StoreError(f"{self._unanswered_message(SECONDS_ANSWER)} {error}".strip()) from None
        return [address for address in sorted(known) if address not in self.left_out]

    def name(self, address: str) -> str:
        """Return the name of the worker at an address; the address itself if it was not started here."""
        return next((one.place.name for one in self.own if one.address == address), address)

    def lost(self) -> list[Lost]:
        """Return the workers in use that have ended or not answered for too long; each is asked once a second.

        Does not block. Raises StoreError if an existing scheduler is silent.
        """
        now = time.monotonic()
        unseen = now - self.looked if now - self.looked > SECONDS_BETWEEN else 0.0
        self.heard = {who: when + unseen for who, when in self.heard.items()}  # this process was stopped, or busy
        self.looked = now
        gone = {one.address: why for one in self.own if (why := one.why_ended())}
        for address in self.addresses() if self.is_own else self.at_work:
            if not self._answers(address, partial(self._identity, address), now):
                gone.setdefault(address, f"{self.name(address)} has not answered for {self.seconds_silent:g} s.")
        if not self.is_own:
            gone |= self._gone_from_scheduler(now)
        return [Lost(address, f"{why} {self.tail(address)}".strip()) for address, why in gone.items()]

    async def _identity(self, address: str) -> Any:
        """Return the dict with which the scheduler or worker at `address` identifies itself; OSError if unreachable."""
        return await self.client.rpc(address).identity()

    def _gone_from_scheduler(self, now: float) -> dict[str, str]:
        """Return {address: reason} of workers in use that the scheduler no longer has; `now` is monotonic time.

        Raises StoreError if the scheduler is silent.
        """
        if not self._answers(self.where, self._ask_members, now):
            raise StoreError(self._unanswered_message(self.seconds_silent))
        gone = [] if self.members is None else [address for address in self.at_work if address not in self.members]
        return {address: f"The worker {address} has left the cluster." for address in gone}

    async def _members(self) -> Mapping[str, int]:
        """Return {worker address: cores} from the scheduler."""
        return await self.client.scheduler.ncores()

    async def _ask_members(self) -> None:
        """Set `members` to the workers that the scheduler has, unless other shards were placed meanwhile."""
        at_work = self.at_work
        members = set(await self._members())
        if at_work is self.at_work:  # else of a time before the workers that are at work now
            self.members = members

    def _unanswered_message(self, seconds: float) -> str:
        """Return the message that the scheduler has not answered for `seconds`, and how to go on."""
        text = "the same training then goes on from its newest checkpoint"
        return f"The scheduler {self.where} has not answered for {seconds:g} s. Start it and its workers again; {text}."

    def _answers(self, who: str, call: Callable[[], Any], now: float) -> bool:
        """Return whether the last answer of `who` is recent; start `call`, unless one is pending or just answered.

        Does not wait for the answer; `now` is monotonic time.
        """
        self.heard.setdefault(who, now)
        ping = self.pings.get(who)
        if ping is not None and ping.done():
            if not ping.cancelled() and ping.exception() is None:
                self.heard[who] = now
            del self.pings[who]
        if who not in self.pings and (ping is None or now - self.heard[who] >= SECONDS_BETWEEN):
            self.pings[who] = self._later(call)
        return now - self.heard[who] <= self.seconds_silent

    def tail(self, address: str) -> str:
        """Return the end of the log of the process at an address; "" if it was not started here."""
        return next((one.tail() for one in self.own if one.address == address), "")

    def end(self, gone: Sequence[str]) -> None:
        """Kill the processes at these addresses and unregister them.

        Workers of others are only left out from now on.
        """
        self.left_out.update(gone)
        self.kill(gone)
        for address in gone:
            self.pings.pop(address, None)
            self._wait(partial(self._unregister, address))

    def kill(self, late: Sequence[str]) -> None:
        """Kill those of the addresses `late` that were started here; others are left alone."""
        for process in self.own:
            if process.address in late:
                process.kill()

    async def _unregister(self, address: str) -> None:
        """Remove the worker at an address from the scheduler."""
        await self.client.scheduler.unregister(address=address, stimulus_id="workbench-lost")

    def renew(self) -> str:
        """Restart processes that have ended; return why some could not be, as sentences, "" if all run.

        Those are tried again after the next loss. StoreError if no process is left. Does nothing for an existing
        scheduler.
        """
        if not self.is_own:
            return ""
        self.own = [process for process in self.own if not process.why_ended()]
        there = [process.place for process in self.own]
        failures = self._start([place for place in self.places if place not in there])
        if not self.own:
            raise failures[0]
        return " ".join(map(str, failures))

    # What they do

    def place(self, shards: int, trainers: int, staleness: int = 0) -> Run:
        """Make `shards` shards on the workers in turn, wait until they answer, and return the run.

        `trainers` and `staleness` are those of `Shard`.
        """
        run, placed = self.begin(self.addresses(), shards, trainers, staleness)
        placed.result(SECONDS_ANSWER)
        return run

    def begin(self, workers: Sequence[str], shards: int, trainers: int, staleness: int = 0) -> tuple[Run, Future]:
        """Start to make shards on these workers in turn; return the run and a future, done when all answer.

        `trainers` and `staleness` are those of `Shard`. From now on `lost` watches these workers instead of former
        ones.
        """
        self.at_work, self.members = list(workers), None
        self.heard = dict.fromkeys(self.heard.keys() & {*workers, self.where}, time.monotonic())
        run = dask_transport.run_on(self.at_work, shards)
        return run, self._later(lambda: dask_transport.make_shards(self.client, run, trainers, staleness))

    def start(self, run: Run, address: str, trainer: int, work: str, request: Mapping[str, Any]) -> Future:
        """Run a trainer on a worker; return a future of its answer, a JSON text, or OSError if the worker is gone.

        `work` is "module:function", `request` the fields of its job.
        """
        asked = {"trainer": trainer, "work": work, "request": json.dumps(request)}
        return self._later(lambda: getattr(self.client.rpc(address), run.training)(**asked))

    def listen(self, run: Run, hear: Callable[[dict[str, Any]], None]) -> None:
        """Call `hear(message)` on a separate thread for every message that the trainers of a run send.

        Subscribes the client to the run's topic and returns at once; `remove` ends it.
        """
        self.topics.add(run.training)
        self.client.subscribe_topic(run.training, lambda event: hear(event[1]))

    def remove(self, run: Run) -> None:
        """Remove the shards and subscriptions of a run; trainers still at work end with an error."""
        self._wait(partial(self._remove, run))

    async def _remove(self, run: Run) -> None:
        """Remove a run's plugin from the workers and its subscription from the client."""
        if run.training in self.topics:
            self.topics.remove(run.training)
            self.client.unsubscribe_topic(run.training)
        await self.client._unregister_worker_plugin(f"workbench-shards-{run.name}")

    def _later(self, call: Callable[[], Any]) -> Future:
        """Start `call()`, which returns an awaitable, on the client's event loop; return a future of its result."""
        loop: Any = self.client.loop  # Tornado's, whose attributes its stubs do not name
        return asyncio.run_coroutine_threadsafe(_awaited(call), loop.asyncio_loop)

    def _wait(self, call: Callable[[], Any]) -> None:
        """Run `call()` on the client's loop and wait up to `SECONDS_REMOVE`; failures and delays are ignored.

        A cluster that has lost a worker may be late, and goes on without.
        """
        waited = self._later(call)
        try:
            waited.result(SECONDS_REMOVE)
        except FAILURES:
            waited.cancel()


async def _awaited(call: Callable[[], Any]) -> Any:
    """Return await call(), so that exceptions of the call itself reach the future as well."""
    return await call()
