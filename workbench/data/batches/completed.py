"""Batches that are completed when they are drawn, such as by items that a user has not, or by the rows around."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from workbench.data.batches.feed import Batch, Feed


@final
@dataclass(frozen=True, eq=False)
class Completed(Feed):
    """The batches of `feed`, each as `complete(batch, generator)` gives it, which keeps its rows and labels.

    The generator follows from `seed`, the epoch and the number of the batch alone, so that batches come again.

    >>> from workbench.data import Batches
    >>> def noisy_batch(batch, generator):
    ...     return batch.with_x(batch.x + generator.integers(9))
    >>> noisy = Completed(Batches(np.zeros((4, 1), np.float32), rows=2), noisy_batch)
    >>> [batch.x.tolist() for batch in noisy.epoch(0)] == [batch.x.tolist() for batch in noisy.epoch(0)]
    True
    """

    feed: Feed
    complete: Callable[[Batch, np.random.Generator], Batch]
    seed: int = 0

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """The batches of that epoch from `first` on, completed."""
        for place, batch in enumerate(self.feed.epoch(number, first), first):
            yield self.complete(batch, np.random.default_rng((self.seed, number, place)))

    def count(self, number: int = 0) -> int:
        """Batches of that epoch."""
        return self.feed.count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Settings of the feed, and the seed of the generator that completes batches."""
        return {**self.feed.settings(), "seed_completed": self.seed}
