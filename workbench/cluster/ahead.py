"""The rows of the next batch, on their way while this one computes: asked for and sent by calls that do not block.

The numbers of the rows travel during forward and backward pass. Then each rank knows which of its rows the next batch
of every rank reads, and sends those that this batch has not read, which its update leaves as they are, while gradients
are pushed and applied; the others follow after the update. So every row is sent once and is never stale, and bits are
those without looking ahead. Which rows come first is said by a bit a row. No row is sent before the update if an update
changes rows without a gradient (lazy "off" or "exact"), and none of a key that was pushed as a dense array.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from workbench.kvstore import Key

if TYPE_CHECKING:
    from workbench.cluster.store import MpiStore


class Asked(NamedTuple):
    """Rows of a key that are asked for: by this rank of each rank, and by each rank of this one."""

    order: np.ndarray | None
    """Positions of the asked rows in the order sent, None if they are sent as they are."""
    counts: list[int]
    wanted: np.ndarray
    """Local indices of the rows that ranks want of this one, in the order of the ranks."""
    received: list[int]


class Early(NamedTuple):
    """Rows of a key that are sent before the update: which of those wanted of this rank, and what comes to it."""

    is_early: np.ndarray
    bits: Callable[[], np.ndarray]
    values: Callable[[], np.ndarray]
    counts: list[int]
    """Rows that come early from each rank."""


@final
class Ahead:
    """Rows of the next batch, by key; `advance` is called twice while this batch computes."""

    def __init__(self, store: "MpiStore", rows: Mapping[Key, np.ndarray]) -> None:
        """Tell each rank how many of its rows the next batch reads. Collective, with the same keys on all ranks."""
        self.store, self.rows, self.asked, self.early = store, rows, dict[Key, Asked](), dict[Key, Early]()
        self.orders = {key: store._order(key, numbers, "next") for key, numbers in rows.items()}
        counts = np.array([order[1] for order in self.orders.values()], np.int64).reshape(len(rows), store.trainers)
        self.counts = store.exchange.begin_counts(f"ask_ahead of {list(rows)}", counts)
        self.numbers: list[tuple[Callable[[], np.ndarray], list[int]]] = []
        self.stages = [self._send_numbers, self._send_values]

    def advance(self) -> None:
        """Do what can be done now: send the numbers, then rows that the update will not change."""
        if self.stages:
            self.stages.pop(0)()

    def _send_numbers(self) -> None:
        """Send each rank the numbers of its rows."""
        for (key, (_, own, local)), received in zip(self.orders.items(), self.counts().tolist(), strict=True):
            came = self.store.exchange.begin_rows(f"{key} wanted next", local, own, received)
            self.numbers.append((came, received))

    def _send_values(self) -> None:
        """Send the rows that this batch has not read, and a bit for each row that says whether it is one of them."""
        store = self.store
        for (key, (order, own, _)), (came, received) in zip(self.orders.items(), self.numbers, strict=True):
            self.asked[key] = Asked(order, own, came(), received)
        for key, asked in self.asked.items():
            if not store.keeps_rows(key):
                continue
            is_early = ~np.isin(asked.wanted, store.last_wanted[key])
            parts = np.split(is_early, np.cumsum(asked.received)[:-1])
            bits = np.concatenate([np.packbits(part) for part in parts])
            sent, lengths = (
                [int(part.sum()) for part in parts],
                [[-(-n // 8) for n in c] for c in (asked.received, asked.counts)],
            )
            came = store.exchange.begin_rows(f"{key} bits", bits, *lengths)
            counts = store.exchange.counts(f"early rows of {key}", np.array([sent]))[0].tolist()
            values = store.take(key, asked.wanted[is_early], "early")
            self.early[key] = Early(
                is_early, came, store.exchange.begin_rows(f"{key} early", values, sent, counts), counts
            )

    def finish(self) -> None:
        """Do what is left, so that all that was asked for is known."""
        while self.stages:
            self.advance()

    def answer(self, key: Key) -> np.ndarray:
        """Send each rank the rows that it lacks; return all that this one asked for, in the order of their numbers.

        The result is a buffer of the exchange.
        """
        store, asked, early = self.store, self.asked[key], self.early[key]
        bits, lengths = early.bits(), np.cumsum([0, *(-(-count // 8) for count in asked.counts)]).tolist()
        parts = [
            np.unpackbits(bits[first:last], count=count)
            for (first, last), count in zip(itertools.pairwise(lengths), asked.counts, strict=True)
        ]
        is_early = np.concatenate(parts).view(bool)
        late = np.subtract(asked.counts, early.counts).tolist()
        sent = [int((~part).sum()) for part in np.split(early.is_early, np.cumsum(asked.received)[:-1])]
        rest = store.exchange.rows(f"{key} late", store.take(key, asked.wanted[~early.is_early], "sent"), sent, late)
        values = store.exchange.buffer(f"{key} ordered", (is_early.size, *rest.shape[1:]), rest.dtype)
        places = np.arange(is_early.size) if asked.order is None else asked.order
        values[places[is_early]] = early.values()
        values[places[~is_early]] = rest
        return values

    def drop(self) -> None:
        """Wait for what is on its way, and forget it."""
        self.finish()
        for early in self.early.values():
            early.bits()
            early.values()
