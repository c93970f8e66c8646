"""Processes of a training that are threads of this one: killed, halted and cut off at messages, as a seed says."""

import json
import random
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.clocks import SECONDS
from tests.support.shards import Faulty
from workbench.cluster import LocalTransport, Message, Shard, Transport
from workbench.cluster.dask_hosts import Lost
from workbench.cluster.trainer import run_request
from workbench.cluster.transport import GoneError

SECONDS_TURN = 0.002
"""A shard that waits is asked again so soon; nothing that is asserted depends on it."""


PLACING = -1
"""Stands for a trainer where shards are placed, the first time or a later one."""


class Strike(NamedTuple):
    """At which message of which trainer, counted over the whole training, what happens to which process."""

    trainer: int
    at: int
    when: str
    victim: int
    how: str


WHEN = ("before it is sent", "after the first shard had it", "after all answers")
HOW = ("killed", "halted")


def wait_for_a_turn(condition: Callable[[], bool]) -> None:
    """Wait until it holds, for a moment: where all is well it never does."""
    for _ in range(100):
        if condition():
            return
        threading.Event().wait(SECONDS_TURN)


def drawn(seed: int, trainers: int, processes: int, messages: int) -> list[Strike]:
    """One to three strikes at messages, and sometimes one while shards are placed."""
    made = random.Random(seed)
    places = [
        (made.randrange(trainers), made.randint(1, messages), made.choice(WHEN)) for _ in range(made.randint(1, 3))
    ]
    places += [(PLACING, made.randint(1, 2), WHEN[0])] * (made.random() < 0.3)
    return [Strike(*place, made.randrange(processes), made.choice(HOW)) for place in places]


class Ended(BaseException):
    """The process of this thread is gone: nothing that it does is seen any more."""


@dataclass(eq=False)
class _Process:
    number: int
    address: str = field(default_factory=lambda: f"process {uuid.uuid4().hex}")
    state: str = "runs"
    gone: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Stay here while it is halted, which nobody ends but by killing it."""
        if self.state == "halted":
            self.gone.wait(SECONDS)
        if self.state != "runs":
            raise Ended


class _Run:
    def __init__(self, shards: Sequence[Shard], owners: Sequence[_Process]) -> None:
        self.shards, self.owners, self.lock = LocalTransport(shards), owners, threading.Lock()
        self.is_over, self.hear = False, lambda said: None


class ThreadHosts:
    """What `Team` asks of its processes; `strikes` happen once each, messages have the fates of a seed.

    Those that are not `own` are as workers of others, which nobody here can end.
    """

    seconds_silent = SECONDS

    def __init__(
        self,
        processes: int,
        strikes: Sequence[Strike],
        seed: int,
        fates: Sequence[str] = Faulty.FATES,
        are_own: bool = False,
    ):
        self.are_own = are_own
        self.strikes, self.seed, self.fates = list(strikes), seed, fates
        self.lock, self.struck, self.seen = threading.Lock(), list[Strike](), list[str]()
        self.counts: dict[int, int] = {}
        self.processes = [_Process(number) for number in range(processes)]

    def addresses(self) -> list[str]:
        return [process.address for process in self.processes]

    def name(self, address: str) -> str:
        return address

    def tail(self, address: str) -> str:
        return ""

    def lost(self) -> list[Lost]:
        return [
            Lost(process.address, f"It was {process.state}.") for process in self.processes if process.state != "runs"
        ]

    def end(self, gone: Sequence[str]) -> None:
        for process in self.processes:
            if process.address in gone:
                process.state = "killed"
                process.gone.set()

    def kill(self, late: Sequence[str]) -> None:
        if self.are_own:
            self.end(late)

    def renew(self) -> str:
        self.processes = [
            process if process.state == "runs" else _Process(process.number) for process in self.processes
        ]
        return ""

    def begin(self, workers: Sequence[str], shards: int, trainers: int) -> tuple[_Run, Future]:
        owners = [self.processes[number % len(self.processes)] for number in range(shards)]
        placed: Future = Future()
        self.strike(PLACING, self.count(PLACING), WHEN[0])
        if all(process.state == "runs" for process in self.processes):  # else it is never answered
            placed.set_result(None)
        return _Run([Shard(number, shards, trainers) for number in range(shards)], owners), placed

    def listen(self, run: _Run, hear: Callable[[dict], None]) -> None:
        run.hear = hear

    def start(self, run: _Run, address: str, trainer: int, work: str, request: Mapping) -> Future:
        (process,) = [process for process in self.processes if process.address == address]
        future: Future = Future()

        def act() -> None:
            try:
                line = _Line(self, run, process, trainer)
                future.set_result(run_request(work, line, trainer, json.dumps(request), run.hear))
            except Ended:
                future.set_exception(OSError("the process is gone"))

        threading.Thread(target=act, daemon=True).start()
        return future

    def remove(self, run: _Run) -> None:
        run.is_over = True

    def count(self, trainer: int) -> int:
        """The number of the message that the trainer sends now, or of the time that shards are placed."""
        with self.lock:
            self.counts[trainer] = self.counts.get(trainer, 0) + 1
            return self.counts[trainer]

    def strike(self, trainer: int, at: int, when: str) -> None:
        """Do what is due at this boundary."""
        with self.lock:
            for one in [strike for strike in self.strikes if strike[:3] == (trainer, at, when)]:
                self.strikes.remove(one)
                self.struck.append(one)
                victim = self.processes[one.victim]
                victim.state = one.how if victim.state == "runs" else victim.state


class _Line(Transport):
    """Carries the messages of one trainer."""

    def __init__(self, hosts: ThreadHosts, run: _Run, process: _Process, trainer: int) -> None:
        self.hosts, self.run, self.process, self.trainer = hosts, run, process, trainer
        self.random = random.Random(f"{hosts.seed} {trainer}")
        self.late: list[tuple[int, Message]] = []

    @property
    def shards(self) -> int:
        return self.run.shards.shards

    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        at, replies = self.hosts.count(self.trainer), {}
        self._pass(at, WHEN[0])
        order = list(messages.items())
        self.random.shuffle(order)
        for place, (shard, message) in enumerate(order):
            replies |= self._sent(shard, message)
            if not place:
                self._pass(at, WHEN[1])
        self._pass(at, WHEN[2])
        if len(replies) < len(messages) or any(reply.kind == "wait" for reply in replies.values()):
            self.process.gone.wait(SECONDS_TURN)
        return replies

    def _pass(self, at: int, when: str) -> None:
        self.hosts.strike(self.trainer, at, when)
        self.process.check()

    def _sent(self, shard: int, message: Message) -> dict[int, Message]:
        fate = self.random.choice(self.hosts.fates)
        self.hosts.seen.append(fate)
        if fate == "late":
            self.late.append((shard, message))
        if fate == "lost" or fate == "late":
            return {}
        for old in self.late[: self.random.randint(0, len(self.late))]:
            self.late.remove(old)
            self._delivered(*old)
        if fate == "twice":
            self._delivered(shard, message)
        reply = self._delivered(shard, message)
        return {} if fate == "unanswered" else reply

    def _delivered(self, shard: int, message: Message) -> dict[int, Message]:
        """The answer of a shard whose process runs; what a process that is gone has is never seen again."""
        if self.run.is_over:
            raise GoneError("The shards of this run were removed.")
        with self.run.lock:
            return self.run.shards.call({shard: message}, 0) if self.run.owners[shard].state == "runs" else {}
