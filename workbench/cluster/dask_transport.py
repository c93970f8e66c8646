"""Shards on the workers of a Dask cluster: all that training asks of `distributed` is in this file.

Messages go from worker to worker by handlers, as those of Dask's own shuffle do, and not by tasks or actors: a call is
then one message each way, and a worker answers many at once. They are bytes, so that nothing of ours is pickled.

    run = place(client, shards=4, trainers=2)       # once
    store = ShardedStore(DaskTransport(run), 0)     # in each trainer: a task of the cluster, or a process with a client

A worker that is lost takes its shards along: messages to them time out, and training begins again from a checkpoint.
Trainers are started by a handler, too: a task would be started anew elsewhere when its worker is lost, on its own.
"""

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

try:
    from distributed import Client, Worker, WorkerPlugin, get_client, get_worker
    from distributed.utils import sync
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error

from kernels import threads
from workbench.cluster.messages import Message
from workbench.cluster.security import check_encrypted
from workbench.cluster.trainer import run_request
from workbench.cluster.transport import GoneError, Shard, Transport
from workbench.kvstore import StoreError


def _compute_alone() -> None:
    """Make the kernels serial on the calling thread; initializer of the executor `COMPUTING`."""
    threads.this_thread.is_serial = True


COMPUTING = ThreadPoolExecutor(1, "workbench-shards", _compute_alone)
"""Runs the shards of this process, one message after the other, in parallel with the loop that carries messages, on one
thread: the cores are a trainer's, and not every threading layer has two callers at once."""

SECONDS_GRACE = 2.0
"""How much longer than a shard waits for others its answer may take on its way."""

SECONDS_PAUSE = 0.05
"""Before a message is sent again whose worker could not be reached."""


@final
@dataclass(frozen=True)
class Run:
    """Shards that belong together: `addresses` of the worker of each, in their order. JSON can hold it."""

    name: str
    addresses: Sequence[str]

    @property
    def operation(self) -> str:
        """Name of the workers' handler for messages to shards of this run."""
        return f"workbench_shard_{self.name}"

    @property
    def training(self) -> str:
        """Name of the workers' handler that runs a trainer, and of the topic of its messages."""
        return f"workbench_trainer_{self.name}"


def place(
    client: Client, shards: int, trainers: int, *, staleness: int = 0, workers: Sequence[str] | None = None
) -> Run:
    """Make shards on workers in turn, by default on all of the cluster, and wait until they answer.

    `trainers` and `staleness` are those of `Shard`; `remove` ends the run. Raises StoreError for unknown workers or
    none, OpenClusterError if the cluster is open to others.
    """
    known = sorted(client.nthreads())
    chosen = known if workers is None else list(workers)
    if unknown := sorted(set(chosen) - set(known)):
        raise StoreError(f"There are no workers {', '.join(unknown)}; there is: {', '.join(known) or 'none yet'}.")
    if not chosen:
        raise StoreError("The cluster has no worker yet; call client.wait_for_workers(1, timeout=60) first.")
    run = run_on(chosen, shards)
    client.sync(make_shards, client, run, trainers, staleness)
    return run


def run_on(workers: Sequence[str], shards: int) -> Run:
    """Return a new run with a random name whose `shards` shards are assigned to these workers in turn."""
    return Run(uuid.uuid4().hex, [workers[number % len(workers)] for number in range(shards)])


async def make_shards(client: Client, run: Run, trainers: int, staleness: int) -> None:
    """Register the plugin that makes the run's shards on the workers; awaited on the client's loop.

    `trainers` and `staleness` are those of `Shard`. Raises OpenClusterError if an address is not encrypted. Lasts while
    a worker does not answer.
    """
    check_encrypted([client.scheduler.address, *run.addresses])
    plugin = ShardPlugin(run, trainers, staleness)
    await client._register_worker_plugin(plugin, plugin.name, False)


def remove(client: Client, run: Run) -> None:
    """Remove the shards of a run from the workers and free their memory; calls to them then raise GoneError."""
    client.unregister_worker_plugin(f"workbench-shards-{run.name}")


class ShardPlugin(WorkerPlugin):
    """Makes a worker answer the messages to those shards of a run that are placed on it."""

    def __init__(self, run: Run, trainers: int, staleness: int) -> None:
        """Keep the settings; Dask pickles the plugin to each worker and calls `setup` there."""
        self.run, self.trainers, self.staleness = run, trainers, staleness
        self.name = f"workbench-shards-{run.name}"
        self.served: dict[int, Served] = {}

    def setup(self, worker: Worker) -> None:
        """Make this worker's shards and register the handlers of shards and trainers; Dask calls it on each worker."""
        own = [number for number, address in enumerate(self.run.addresses) if address == worker.address]
        count = len(self.run.addresses)
        self.served = {number: Served(Shard(number, count, self.trainers, self.staleness)) for number in own}
        worker.handlers[self.run.operation] = self.receive
        worker.handlers[self.run.training] = self.train
        self.worker = worker

    def teardown(self, worker: Worker) -> None:
        """Remove the worker's handlers and this run's shards; callers that wait for a reply get None at once."""
        worker.handlers.pop(self.run.operation, None)
        worker.handlers.pop(self.run.training, None)
        for served in self.served.values():
            served.end()
        self.served = {}

    async def train(self, trainer: int, work: str, request: str) -> str:
        """Run a trainer on a new thread until its end; return its answer or error as JSON (`run_request`)."""
        transport = DaskTransport(self.run, self.worker)
        loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def tell(said: Mapping[str, Any]) -> None:
            """Publish a message under the training's topic on the scheduler."""
            self.worker.log_event(self.run.training, dict(said))

        def give(answer: str) -> None:
            """Set the result of the future unless it is done; called on the event loop."""
            if not future.done():
                future.set_result(answer)

        def act() -> None:
            """Run the request on this thread and pass its JSON answer to the event loop; body of a thread."""
            answer = run_request(work, transport, trainer, request, tell)
            with contextlib.suppress(RuntimeError):  # the worker has ended
                loop.call_soon_threadsafe(give, answer)

        threading.Thread(target=act, name=f"trainer {trainer}", daemon=True).start()
        return await future

    async def receive(self, shard: int, frames: list[bytes], seconds: float) -> list[bytes] | None:
        """Return the frames of the shard's reply to one message, within `seconds`; None if the shard is not here."""
        served = self.served.get(shard)
        return None if served is None else await served.answer(frames, seconds)


@final
class Served:
    """A shard with what wakes the messages that wait for it."""

    def __init__(self, shard: Shard) -> None:
        """Serve the shard; `changed` is the event that is set after each of its changes."""
        self.shard, self.changed, self.is_over = shard, asyncio.Event(), False

    def end(self) -> None:
        """End the service: requests that wait return None."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        """Wake all coroutines that wait for a change, and replace the event by a new one."""
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    async def answer(self, frames: list[bytes], seconds: float) -> list[bytes] | None:
        """Return the frames of the shard's reply; None if the service has ended.

        A reply "wait" is retried after every change until `seconds` are over. The shard runs on the thread of
        `COMPUTING`.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        message = Message.from_frames(frames)
        while not self.is_over:
            changed = self.changed
            reply = await loop.run_in_executor(COMPUTING, self.shard.handle, message)
            if reply.kind != "wait":
                self._wake()
            if reply.kind != "wait" or (left := end - loop.time()) <= 0:
                return reply.frames()
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                end = loop.time()  # the last time it is asked
        return None


@final
class DaskTransport(Transport):
    """Transport to the shards of a run, from a task of the cluster or from a process that has a client of it."""

    def __init__(self, run: Run, client: Client | Worker | None = None) -> None:
        """Use `client`, or the worker or client of the present context; ValueError if there is none."""
        self.run = run
        try:
            here: Any = client or get_worker()
        except ValueError:  # this is no task
            here = get_client()
        self.rpc, self.loop = here.rpc, here.loop
        self.served = here.handlers if isinstance(here, Worker) else None

    @property
    def shards(self) -> int:
        """Number of shards of the run."""
        return len(self.run.addresses)

    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Send to all shards at once and return the replies; blocks up to `seconds` and a little more.

        A worker that cannot be reached gives a "wait" with the reason; GoneError if the run's shards were removed.
        """
        if self.served is not None and self.run.operation not in self.served:  # else one that is gone is asked in vain
            raise GoneError("The shards of this run were removed.")
        return sync(self.loop, self._call, messages, seconds)

    async def _call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Send the messages to all shards at once and return all replies by shard."""
        sent = [self._sent(shard, message.frames(), seconds) for shard, message in messages.items()]
        return dict(zip(messages, await asyncio.gather(*sent), strict=True))

    async def _sent(self, shard: int, frames: list[bytes], seconds: float) -> Message:
        """Send frames to one shard and return its reply; a "wait" if the worker is unreachable or silent.

        GoneError if the worker has no such shard.
        """
        address = self.run.addresses[shard]
        send = getattr(self.rpc(address), self.run.operation)
        try:
            reply = await asyncio.wait_for(send(shard=shard, frames=frames, seconds=seconds), seconds + SECONDS_GRACE)
        except (OSError, TimeoutError) as error:  # the worker is gone, or silent: sent again while there is time
            await asyncio.sleep(min(SECONDS_PAUSE, seconds))
            why = str(error) or "it is silent"
            return Message("wait", {"text": f"the worker {address} does not answer where this trainer is: {why}"})
        if reply is None:
            raise GoneError(f"The worker {address} has no shard {shard} of this run: it was started anew, or removed.")
        return Message.from_frames(reply)
