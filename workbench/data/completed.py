"""Batches that are completed when they are drawn, such as by items that a user has not."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from workbench.data.feed import Batch, Feed


@final
@dataclass(frozen=True, eq=False)
class Completed(Feed):
    """The batches of `feed`, each with its one array X replaced by `complete(x, generator)`.

    The generator follows from `seed`, the epoch and the number of the batch alone, so that batches come again.

    >>> from workbench.data import Batches
    >>> noisy = Completed(Batches(np.zeros((4, 1), np.float32), rows=2), lambda x, generator: x + generator.integers(9))
    >>> [batch.x.tolist() for batch in noisy.epoch(0)] == [batch.x.tolist() for batch in noisy.epoch(0)]
    True
    """

    feed: Feed
    complete: Callable[[Any, np.random.Generator], Any]
    seed: int = 0

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """The batches of that epoch from `first` on, completed."""
        for place, batch in enumerate(self.feed.epoch(number, first), first):
            (name,) = batch.data
            completed = self.complete(batch.x, np.random.default_rng((self.seed, number, place)))
            yield dataclasses.replace(batch, data={name: completed})

    def count(self, number: int = 0) -> int:
        """Batches of that epoch."""
        return self.feed.count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Those of the feed, and the seed of what completes."""
        return {**self.feed.settings(), "seed_completed": self.seed}
