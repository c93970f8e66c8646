"""Messages to shards: `Transport`, `LocalTransport` to shards in this process, and the `Channel` of a trainer."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from workbench.cluster.messages import Message
from workbench.cluster.shard import Shard
from workbench.kvstore import StoreError


class Transport(ABC):
    """Carries messages to shards, numbered from 0, and their answers back. Any message or answer may be lost."""

    @property
    @abstractmethod
    def shards(self) -> int:
        """Number of shards."""

    @abstractmethod
    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Send to each shard its message, to all at once; the answers that came, by shard.

        An answer `wait` is given back when it still stands after `seconds`. A shard from which no answer came is not
        in the result, or is there with a `wait` that says why: whether it had the message is not known then, and
        sending it again does no harm.
        """


@final
class LocalTransport(Transport):
    """Transport to shards in this process, whose threads may share it; messages become bytes, as on a network."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.held = list(shards)
        self.changed = threading.Condition()

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.held)

    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Deliver messages one after the other, blocking ones last; nothing is lost."""
        end = time.monotonic() + seconds
        sent = {shard: message.frames() for shard, message in messages.items()}
        with self.changed:
            replies = {shard: self._handled(shard, frames) for shard, frames in sent.items()}
            self.changed.notify_all()
            while (waiting := [s for s, reply in replies.items() if reply.kind == "wait"]) and time.monotonic() < end:
                self.changed.wait(max(0.0, end - time.monotonic()))
                replies |= {shard: self._handled(shard, sent[shard]) for shard in waiting}
        return replies

    def _handled(self, shard: int, frames: list[bytes]) -> Message:
        """Let a shard in this process handle a message, through its bytes, and return the reply."""
        return Message.from_frames(self.held[shard].handle(Message.from_frames(frames)).frames())


# A trainer's side of the protocol: a message to every shard, sent again until each has answered or time is up.


class TimedOutError(StoreError):
    """A shard gave no answer in time; the message says which, to what, and what it waits for."""


class RolledBackError(StoreError):
    """The shards went on with another generation, from a state that was loaded: begin from there, or end."""


class GoneError(StoreError):
    """The process of a shard was started anew, or the shards of the run were removed."""


class Content(NamedTuple):
    """Content of the message to one shard beside what all of them say."""

    about: dict[str, Any]
    arrays: list[np.ndarray]


@dataclass
class Traffic:
    """Counts of messages sent, resent and received, and their bytes."""

    messages: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


@final
@dataclass
class Channel:
    """Messages of one trainer to all shards; an answer is waited for up to `seconds`."""

    transport: Transport
    trainer: int
    seconds: float
    generation: int = 0
    traffic: Traffic = field(default_factory=Traffic)

    def ask(self, kind: str, contents: Sequence[Content] | None = None, **about: Any) -> dict[int, Message]:
        """Return the answers `done`, by shard; anything else is a `StoreError`."""
        shared = {"generation": self.generation, "trainer": self.trainer, **about}
        contents = contents or [Content({}, [])] * self.transport.shards
        left = {shard: Message(kind, shared | own.about, own.arrays) for shard, own in enumerate(contents)}
        end, waits, replies = time.monotonic() + self.seconds, {}, {}
        while left and (seconds := end - time.monotonic()) > 0:
            came = self._sent(left, seconds)
            for shard, reply in came.items():
                if reply.kind == "wait":
                    waits[shard] = reply.about["text"]
                    continue
                self._check(shard, kind, reply)
                replies[shard] = reply
                del left[shard]
        if left:
            raise self._too_late(kind, left, waits)
        return dict(sorted(replies.items()))

    def _sent(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Send a message to each shard, count the traffic, and return the replies; waits up to `seconds`."""
        self.traffic.messages += len(messages)
        self.traffic.bytes_sent += sum(message.nbytes for message in messages.values())
        replies = self.transport.call(messages, seconds)
        self.traffic.bytes_received += sum(reply.nbytes for reply in replies.values())
        return replies

    def _check(self, shard: int, kind: str, reply: Message) -> None:
        """Raise RolledBackError or StoreError unless a shard's reply is "done"."""
        text = reply.about.get("text")
        if reply.kind == "stale" and reply.about["generation"] != self.generation:
            raise RolledBackError(f"Shard {shard} refused {kind}: {text}. Load the state that it began with.")
        if reply.kind == "stale":
            raise StoreError(f"Shard {shard} refused {kind}: {text}. Two processes may be the same trainer.")
        if reply.kind != "done":
            raise StoreError(f"{text}")

    def _too_late(self, kind: str, left: Mapping[int, Message], waits: Mapping[int, str]) -> TimedOutError:
        """Return the error for shards that did not answer in time."""
        said = "; ".join(f"shard {shard}: {waits.get(shard, 'no answer came')}" for shard in left)
        return TimedOutError(f"{kind} of trainer {self.trainer} was not answered within {self.seconds:g} s. {said}.")
