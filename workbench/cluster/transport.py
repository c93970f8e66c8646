"""Transport of messages to shards: `Transport`, and `LocalTransport` to shards in this process."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import final

from workbench.cluster.messages import Message
from workbench.cluster.shard import Shard


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
