"""Messages to shards: `Transport`, `LocalTransport` to shards in this process, and the `Channel` of a trainer."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from kernels.registry import unknown_name
from workbench import formats
from workbench.cluster import checkpoints, partition
from workbench.cluster.messages import Message, pack_values, unpack_values
from workbench.formats import RowSparse
from workbench.json_text import is_whole
from workbench.kvstore import Key, LocalStore, StoreError
from workbench.optimizers import Updater

# One shard: a `LocalStore` that owns some rows of every key, and what it does with each message.
#
# The state of a step. Every trainer t pushes once a step; the push (generation, step, t) is held until all trainers
# have pushed, then the parts of each key are summed in the order of the trainers and the optimizer does one step. A
# push that came before changes nothing. A pull of a trainer that has pushed s times is answered when s - staleness
# steps are done; when that trainer has pushed more since, the pull is of the past and is refused, so that a message
# that was delayed on its way changes nothing. Where the norm of all gradients is clipped, trainers ask each shard for
# the squares of its part, and bring the sums along with their next message.
#
# A shard waits for nothing by itself: what cannot be answered yet is answered `wait`, with what it waits for.


DONE = Message("done")


class _Wait(Exception):  # noqa: N818 - it is no error
    """The message can be answered later."""


class _Stale(Exception):  # noqa: N818 - it is no error
    """The message is of a step or a generation that is over."""


@final
class Shard:
    """Shard `number` of `shards`, for so many trainers, who may be up to `staleness` steps ahead of each other."""

    def __init__(self, number: int, shards: int, trainers: int = 1, staleness: int = 0) -> None:
        """Make shard `number` (from 0) of `shards` without values, in generation 0 at step 0.

        A step waits for `trainers` trainers, who may be `staleness` steps ahead of it.
        """
        self.number, self.shards, self.trainers, self.staleness = number, shards, trainers, staleness
        self.generation = 0
        self._begin(LocalStore())

    def __repr__(self) -> str:
        """Return number, generation and step as text."""
        return f"<Shard {self.number} of {self.shards}: generation {self.generation}, step {self.step}>"

    def _begin(self, store: LocalStore) -> None:
        """Reset the shard to step 0 with the values of `store`, without pushes or failures."""
        self.store, self.step, self.failure = store, 0, ""
        self.drawn: dict[Key, partition.Source] = {}
        self.pushes: dict[int, dict[int, dict[Key, Any]]] = {}
        """What was pushed, by step and trainer."""
        self.pushed = [0] * self.trainers
        """The last step that each trainer pushed."""
        self.sums: dict[int, dict[Key, Any]] = {}
        self.squares: dict[int, dict[str, float]] = {}
        """Of this shard's part of the gradients, by step."""
        self.totals: dict[int, dict[str, float]] = {}
        """Of the whole gradients, by step."""
        self.answered: list[tuple[int, Message]] = [(0, DONE)] * self.trainers
        """The number of the last message of each trainer that is done once, and its answer."""

    def handle(self, message: Message) -> Message:
        """Return the reply to a message, of kind done, wait, stale or error; never raises for invalid messages.

        What is refused has changed nothing. A reply other than done has the reason in `about["text"]`.
        """
        try:
            return self._answer(message)
        except _Wait as reason:
            return Message("wait", {"text": str(reason)})
        except _Stale as reason:
            return Message("stale", {"text": str(reason), "generation": self.generation})
        except (LookupError, TypeError) as error:
            return Message("error", {"text": f"The message {message.kind!r:.40} is malformed: {error!r}."})
        except (ValueError, OSError) as error:
            return Message("error", {"text": str(error)})

    def _answer(self, message: Message) -> Message:
        """Handle a message and return the reply "done"; raises _Wait if it comes early, _Stale if late.

        Other exceptions (StoreError, ValueError, LookupError, ...) mean an invalid message or a failed shard.
        """
        about, arrays = message.about, message.arrays
        if message.kind == "hello":
            facts = ("number", "shards", "trainers", "staleness", "generation", "step")
            return Message("done", {name: getattr(self, name) for name in facts})
        _whole(about, "trainer", 0, self.trainers - 1)
        self._check_generation(_whole(about, "generation"), message.kind)
        if message.kind == "load":
            return self._load(about, arrays)
        if self.failure:
            raise StoreError(self.failure)
        once = {"init": self._init, "optimizer": self._optimizer, "catch_up": self._catch_up, "save": self._save}
        if message.kind in once:
            return self._once(once[message.kind], about, arrays)
        others = {"push": self._push, "squares": self._squares, "pull": self._pull, "state": self._state}
        if message.kind not in others:
            raise StoreError(unknown_name("message", message.kind, ["hello", "load", *once, *others]))
        return others[message.kind](about, arrays)

    def _check_generation(self, generation: int, kind: str) -> None:
        """Raise _Stale for a message of an old generation, _Wait for one of a later one unless its kind is "load"."""
        if generation < self.generation:
            raise _Stale(f"generation {generation} is over; this is generation {self.generation}")
        if generation > self.generation and kind != "load":
            raise _Wait(f"generation {generation} has not begun here")

    def _once(self, act: Callable, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Execute `act(about, arrays)` once per message number of a trainer; repeat the same reply later.

        Its errors become a reply of kind error.
        """
        trainer, number = about["trainer"], _whole(about, "number")
        last, answer = self.answered[trainer]
        if number > last:
            try:
                act(about, arrays)
                answer = DONE
            except (ValueError, OSError) as error:
                answer = Message("error", {"text": str(error)})
            self.answered[trainer] = number, answer
        return answer

    # What is done once

    def _init(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
        """Set the first values of a message's keys from `arrays`, and register values generated when first used."""
        for key, value in _values(about, arrays).items():
            self.store.init(key, value)
        if "drawn" in about:
            self.drawn |= partition.sources(about["drawn"], about["spread"], self.number, self.shards)
            for key, _ in about["drawn"]:
                if key in self.drawn:
                    self.store.init(key, self.drawn[key].nothing)

    def _draw(self, rows: Mapping[Key, np.ndarray | None]) -> None:
        """Generate the given rows (local indices, None for all) of lazily generated values that are still missing."""
        for key in rows.keys() & self.drawn.keys():
            self.drawn[key].draw(self.store.values[key], rows[key])

    def _optimizer(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
        """Set a new optimizer from the message's `settings`; changes the store. `arrays` is unused."""
        self.store.set_optimizer(Updater.from_settings(about["settings"]))

    def _catch_up(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
        """Apply deferred updates to the message's rows (local indices; None for all), after all pushes so far.

        Raises _Wait until these steps are done.
        """
        self._reach(about, lag=0)
        self.store.catch_up(self._rows(about, arrays))

    def _save(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
        """Write this shard's state to its file at `about["path"]`, after all pushes so far; OSError if that fails.

        `arrays` is unused.
        """
        self._reach(about, lag=0)
        formats.save(checkpoints.file_of(about["path"], self.number), self.store.state_dict())

    def _load(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Replace all state by that of the message, or of the checkpoint in `about["saved"]`; begins its generation.

        A generation that has begun already is left as it is. Returns the reply "done".
        """
        if about["generation"] > self.generation:
            store = LocalStore()
            if about["settings"] is not None:
                store.set_optimizer(Updater.from_settings(about["settings"]))
            saved = about.get("saved")
            state = _values(about, arrays) if saved is None else checkpoints.state_of(saved, self.number, self.shards)
            store.load_state_dict(state)
            self._begin(store)
            if saved is not None:
                drawn = checkpoints.read(saved["folder"]).drawn
                self.drawn = partition.sources(drawn, saved["spread"], self.number, self.shards)
            self.generation = about["generation"]
        return DONE

    # Steps

    def _push(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Keep a trainer's gradients of a step; the update runs once all trainers have pushed that step.

        A repeated push changes nothing. Raises _Wait if the trainer is more than `staleness` steps ahead, ValueError if
        shapes do not fit.
        """
        trainer, step = about["trainer"], _whole(about, "step", 1)
        self._take_total(about)
        if step <= self.pushed[trainer]:
            return DONE
        if step > self.step + 1 + self.staleness:
            raise _Wait(self._missing(step - 1 - self.staleness))
        names = [key for key, _ in about["names"]]
        self._need(names)
        values = _values(about, arrays, {key: self.store.values[key].shape for key in names})
        self.store.summed(values)  # to refuse what does not fit before it is held
        self.pushes.setdefault(step, {})[trainer] = values
        self.pushed[trainer] = step
        self._advance()
        return DONE

    def _is_complete(self, step: int) -> bool:
        """Return whether all trainers have pushed the step."""
        return len(self.pushes.get(step, ())) == self.trainers

    def _sums(self, step: int) -> dict[Key, Any]:
        """Return {key: gradient} of a complete step, summed in the order of the trainers; cached until it is done."""
        if step not in self.sums:
            parts: dict[Key, list[Any]] = {}
            for trainer in sorted(self.pushes[step]):
                for key, value in self.pushes[step][trainer].items():
                    parts.setdefault(key, []).append(value)
            self.sums[step] = self.store.summed(parts)
        return self.sums[step]

    def _advance(self) -> None:
        """Do the update of every step that is complete, in order.

        An update that fails sets `failure`, which every later message gets, and raises StoreError.
        """
        while self._is_complete(step := self.step + 1) and not (self._clips and step not in self.totals):
            try:
                sums = self._sums(step)
                self._draw({key: one.indices if isinstance(one, RowSparse) else None for key, one in sums.items()})
                self.store.take(sums, self.totals.pop(step, None))
            except ValueError as error:
                self.failure = f"Shard {self.number} cannot do step {step}: {error}"
                raise StoreError(self.failure) from None
            self.step = step
            del self.pushes[step], self.sums[step]
            self.squares.pop(step - self.staleness - 2, None)

    @property
    def _clips(self) -> bool:
        """Whether the optimizer clips the norm of all gradients together."""
        return self.store.updater is not None and self.store.updater.clip_global_norm is not None

    def _squares(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Reply with {parameter: sum of squares} of this shard's part of a step's summed gradients.

        Raises _Wait until all trainers have pushed it; cached for repeated messages. `arrays` is unused.
        """
        step = _whole(about, "step", 1)
        if step not in self.squares:
            if not self._is_complete(step):
                raise _Wait(self._missing(step))
            self.squares[step] = self.store.squares(self._sums(step))
        return Message("done", {"squares": self.squares[step]})

    def _take_total(self, about: Mapping[str, Any]) -> None:
        """Keep the message's sums of squares of the next step's whole gradients, if it has them, and do the step."""
        if (total := about.get("total")) is not None and total["step"] == self.step + 1:
            self.totals[total["step"]] = total["squares"]
            self._advance()

    # What is read

    def _pull(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Reply with the requested rows of each key, after the trainer's steps up to the allowed staleness.

        Raises _Wait before that. Missing rows are generated; with `current` deferred updates are applied first.
        """
        self._reach(about, lag=self.staleness)
        rows = self._rows(about, arrays)
        self._draw(rows)
        if about["current"]:
            self.store.catch_up(rows)
        names: list[list] = []
        values: list[np.ndarray] = []
        for key, wanted in rows.items():
            if wanted is None:
                name, parts = pack_values({key: self.store.values[key]})
                names, values = names + name, values + parts
            else:
                names.append([key, "rows"])
                values.append(self.store.row_sparse_pull(key, wanted).values)
        return Message("done", {"names": names, "step": self.step}, values)

    def _state(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> Message:
        """Reply with this shard's whole state (`LocalStore.state_dict`) after all pushes so far; _Wait before that.

        `arrays` is unused.
        """
        self._reach(about, lag=0)
        self._draw(dict.fromkeys(self.drawn))
        state = self.store.state_dict()
        names, values = pack_values(state)
        return Message("done", {"names": names, "shapes": [list(array.shape) for array in state.values()]}, values)

    def _reach(self, about: Mapping[str, Any], lag: int) -> None:
        """Raise _Wait until all but `lag` of the trainer's pushed steps are done, _Stale for a message of the past."""
        trainer, step = about["trainer"], _whole(about, "step")
        self._take_total(about)
        if self.pushed[trainer] > step:
            raise _Stale(f"trainer {trainer} asked at step {step} and has pushed step {self.pushed[trainer]} since")
        if self.step < step - lag:
            raise _Wait(self._missing(step - lag))

    def _rows(self, about: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> dict[Key, np.ndarray | None]:
        """Return {key: local row indices int64, or None for all} that the message asks for.

        Without names, all keys with None. Raises _Wait if a key has no value yet.
        """
        if about["names"] is None:
            return dict.fromkeys(self.store.values)
        self._need([key for key, _ in about["names"]])
        rows: dict[Key, np.ndarray | None] = {key: None for key, kind in about["names"] if kind != "rows"}
        listed = [key for key, kind in about["names"] if kind == "rows"]
        rows |= {key: array.astype(np.int64) for key, array in zip(listed, arrays, strict=True)}
        return {key: rows[key] for key, _ in about["names"]}

    def _need(self, keys: Sequence[Key]) -> None:
        """Raise _Wait, naming the key, if one of `keys` has no value yet."""
        if missing := [key for key in keys if key not in self.store.values]:
            raise _Wait(f"key {missing[0]!r} has no value yet, which trainer 0 gives it")

    def _missing(self, step: int) -> str:
        """Return a phrase on which step is waited for and whose push is missing, "step 3 waits for the push of ..."."""
        late = [str(trainer) for trainer, pushed in enumerate(self.pushed) if pushed < step]
        whom = f"the push of trainer {', '.join(late)}" if late else "the norm of all gradients"
        return f"step {step} waits for {whom}"


def _whole(about: Mapping[str, Any], name: str, least: int = 0, most: int = 2**53) -> int:
    """Return the int `about[name]`; StoreError unless it is a whole number from `least` to `most`."""
    value = about.get(name)
    if not isinstance(value, int) or not is_whole(value, least, most):
        raise StoreError(f"A message says that {name} is {value!r:.40}; it is a whole number from {least} to {most}.")
    return value


def _values(
    about: Mapping[str, Any], arrays: Sequence[np.ndarray], shapes: Mapping[Key, tuple[int, ...]] | None = None
) -> dict[Any, Any]:
    """Return {key: array or RowSparse} of a message; `shapes` by key, by default those in `about["shapes"]`."""
    if shapes is None:
        shapes = {key: tuple(shape) for (key, _), shape in zip(about["names"], about["shapes"], strict=True)}
    return unpack_values(about["names"], arrays, shapes)


class Transport(ABC):
    """Carries messages to shards, numbered from 0, and their answers back. Any message or answer may be lost."""

    @property
    @abstractmethod
    def shards(self) -> int:
        """Number of shards that messages can be sent to."""

    @abstractmethod
    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Send to each shard its message, to all at once; return the replies that came within `seconds`, by shard.

        A reply "wait" is returned only if it still stands after `seconds`. A shard from which no reply came is missing
        in the result, or has a "wait" that says why: whether it had the message is unknown then, and sending it again
        does no harm.
        """


@final
class LocalTransport(Transport):
    """Transport to shards in this process, whose threads may share it; messages become bytes, as on a network."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        """Carry messages to these shards, whose indices are their positions."""
        self.held = list(shards)
        self.changed = threading.Condition()

    @property
    def shards(self) -> int:
        """Number of shards in this process."""
        return len(self.held)

    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        """Deliver the messages in this thread and return all replies.

        Replies "wait" are retried until `seconds` are over.
        """
        end = time.monotonic() + seconds
        sent = {shard: message.frames() for shard, message in messages.items()}
        with self.changed:
            replies = {shard: self._handle_bytes(shard, frames) for shard, frames in sent.items()}
            self.changed.notify_all()
            while (waiting := [s for s, reply in replies.items() if reply.kind == "wait"]) and time.monotonic() < end:
                self.changed.wait(max(0.0, end - time.monotonic()))
                replies |= {shard: self._handle_bytes(shard, sent[shard]) for shard in waiting}
        return replies

    def _handle_bytes(self, shard: int, frames: list[bytes]) -> Message:
        """Return the reply of a shard to the bytes of a message; the reply, too, is converted to bytes and back."""
        return Message.from_frames(self.held[shard].handle(Message.from_frames(frames)).frames())


# A trainer's side of the protocol: a message to every shard, sent again until each has answered or time is up.


class TimedOutError(StoreError):
    """A shard gave no answer in time; the message says which, to what, and what it waits for."""


class RolledBackError(StoreError):
    """The shards went on with another generation, from a state that was loaded: begin from there, or end."""


class GoneError(StoreError):
    """The process of a shard was started anew, or the shards of the run were removed."""


class Content(NamedTuple):
    """Content of the message to one shard in addition to what all of them say."""

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
        """Send a message to every shard until each has replied "done"; return the replies by shard.

        `contents` are the parts for the shards in order, `about` is for all. Replies "wait" are retried up to
        `self.seconds`, then TimedOutError; RolledBackError if the shards are in another generation, StoreError for
        other refusals.
        """
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
        """Send the messages to their shards and return the replies that come within `seconds`; counts the traffic."""
        self.traffic.messages += len(messages)
        self.traffic.bytes_sent += sum(message.nbytes for message in messages.values())
        replies = self.transport.call(messages, seconds)
        self.traffic.bytes_received += sum(reply.nbytes for reply in replies.values())
        return replies

    def _check(self, shard: int, kind: str, reply: Message) -> None:
        """Raise unless the reply of a shard is "done": RolledBackError for another generation, else StoreError."""
        text = reply.about.get("text")
        if reply.kind == "stale" and reply.about["generation"] != self.generation:
            raise RolledBackError(f"Shard {shard} refused {kind}: {text}. Load the state that it began with.")
        if reply.kind == "stale":
            raise StoreError(f"Shard {shard} refused {kind}: {text}. Two processes may be the same trainer.")
        if reply.kind != "done":
            raise StoreError(f"{text}")

    def _too_late(self, kind: str, left: Mapping[int, Message], waits: Mapping[int, str]) -> TimedOutError:
        """Return (not raise) the error that the shards in `left` did not answer, with what each waits for."""
        said = "; ".join(f"shard {shard}: {waits.get(shard, 'no answer came')}" for shard in left)
        return TimedOutError(f"{kind} of trainer {self.trainer} was not answered within {self.seconds:g} s. {said}.")
