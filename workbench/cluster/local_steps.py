"""Local steps: every rank trains a copy of the weights on its own rows, and the copies are made one every k batches.

Between two synchronisations a rank takes k batches in one compiled call, by gradients of its part of each batch divided
by the number of ranks. At a synchronisation the changes of all ranks are added, in the order of the ranks, to what they
had in common: copies have the same bits again, which do not depend on timing. If k batches have few entries for the
number of columns, each rank sends all others the changes of the rows in which its batches have entries; else whole
tables are sent, each rank adds up its part of the rows, and sends it to all. Weights are not those of steps that every
rank waits for: a rank takes up to k batches without the changes of the others. So the loss of such a training is shown
beside its time; with k = 1 a training sends rows at every step instead (`workbench.cluster.store`), with the bits of
one process.

Changes can be added for rules whose states are sums: `sgd`, and `adagrad`. There the sums of squares get the squares of
all ranks, and a rank's change of a weight counts times the root of its own sum over that of all: about what it had
been if the rank had known them. Every rank holds all weights and states, and a second copy of them.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np

from kernels import changes
from workbench import data
from workbench.cluster.exchange import Exchange
from workbench.cluster.partition import Partition
from workbench.training.run import Run
from workbench.training.setup import Setup, impossible_reason

ADDED = ("sgd", "adagrad")
"""Optimizers whose weights and states are sums of changes."""
SPARSE = 4
"""Whole tables are sent if the batches between two synchronisations have a quarter as many entries as columns."""


def local_setup(setup: Setup, rank: int, ranks: int) -> Setup:
    """Return the setup of the training of rank `rank` of `ranks`: its part of each batch, in compiled calls."""
    options = {**setup.options, "rescale": setup.options.get("rescale", 1.0) / ranks}
    sizes = {"batch_rows": setup.batch_rows // ranks, "seed": setup.seed + rank, "trainers": 1}
    return setup.changed(execution="epoch", options=options, **sizes)


def why_not_local(setup: Setup, ranks: int) -> str:
    """Return why ranks cannot train copies of the weights, as a sentence; "" if they can."""
    if setup.optimizer not in ADDED or setup.options.get("decay"):
        return (
            f"Changes of weights and states of several ranks add up for {' and '.join(ADDED)} without decay; this is "
            f"{setup.optimizer}, decay {setup.options.get('decay') or 0:g}. Leave --sync-every out."
        )
    reason = impossible_reason(local_setup(setup, 0, max(ranks, 1)))
    return f"{reason} Leave --sync-every out." if reason else ""


@final
class Copy:
    """The training of one rank, `run`, and what its weights and states were at the last synchronisation."""

    def __init__(self, exchange: Exchange, run: Run, every: int) -> None:
        """Keep the run, whose weights all ranks have the same, to synchronise after each `every` batches."""
        assert run.calls is not None
        self.exchange, self.run, self.calls, self.every = exchange, run, run.calls, every
        x = run.batches.x
        entries = max(exchange.gather(x.nnz / x.shape[0])) * run.setup.batch_rows * every
        self.is_whole = entries * SPARSE > run.features
        self.bases: dict[str, list[np.ndarray]] = {}
        """A copy of the array and states of each parameter; of one rank alone none is needed."""
        self.marks = np.zeros(run.features, np.uint8)
        self.keep()

    def windows(self, epoch: int, first: int = 0) -> Iterator[np.ndarray]:
        """Train epoch `epoch` from batch `first` on and synchronise after each `every` batches.

        Yields the mean losses of the own rows of these batches, float64 [batches], after the synchronisation.
        """
        for losses, active in self._trained(epoch, first):
            for name, tables in self._tables().items() if self.exchange.ranks > 1 else ():
                bases = self.bases[name]
                bases += [np.zeros_like(table) for table in tables[len(bases) :]]  # states come with the first step
                if self.is_whole:
                    self._add_whole(name, tables, bases)
                else:
                    self._add_changes(name, tables, bases, active if name == "w" else np.arange(len(tables[0])))
            yield losses

    def _trained(self, epoch: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (losses, sorted active columns) of each `every` batches, after training on them.

        Rows in memory are one compiled call, stored rows one for each batch.
        """
        batches, height, every = self.run.batches, self.run.setup.batch_rows, self.every
        if isinstance(batches, data.Batches):
            order, held = batches.order(epoch), {name: array for name, _, array in batches.labels}
            for start in range(first * height, order.size, every * height):
                rows = order[start : start + every * height]
                losses = self.calls.call(batches.x, held["label"], held.get("weight"), rows, height)
                yield losses, self._active(batches.x, rows)
            return
        means, active = list[float](), list[np.ndarray]()
        for batch in batches.epoch(epoch, first):
            ready = self.run.prepare(batch)
            rows = np.arange(ready.x.shape[0])
            means += self.calls.call(ready.x, ready.y, ready.weights, rows, rows.size).tolist()
            active.append(self._active(ready.x, rows))
            if len(means) == every:
                yield np.array(means), np.unique(np.concatenate(active))
                means, active = [], []
        if means:
            yield np.array(means), np.unique(np.concatenate(active))

    def _active(self, x: Any, rows: np.ndarray) -> np.ndarray:
        """Return the sorted columns in which `rows` of X have entries, int64; none if they are not sent."""
        if self.exchange.ranks == 1 or self.is_whole:
            return rows[:0]
        return changes.marked(x.indptr, x.indices, rows, self.marks)

    def _tables(self) -> dict[str, list[np.ndarray]]:
        """Return {parameter: [array, *states]} as tables [rows, N], not copied; w first."""
        states: Mapping[str, Any] = self.run.updater.states  # dense, as the weights
        return {
            name: [table.reshape(table.shape[0], -1) for table in (array, *states.get(name, []))]
            for name, array in self.run.arrays.items()
        }

    def keep(self) -> None:
        """Copy weights and states, which all ranks have the same now."""
        if self.exchange.ranks > 1:
            self.bases = {name: [table.copy() for table in tables] for name, tables in self._tables().items()}

    def _add_changes(self, name: str, tables: list, bases: list, rows: np.ndarray) -> None:
        """Add the changes of all ranks to `bases`, in the order of the ranks, and copy the sums to `tables`, in place.

        `rows` are those of the parameter that this rank may have changed.
        """
        ranks, exchange = self.exchange.ranks, self.exchange
        starts = np.cumsum([0, *(table.shape[1] for table in tables)]).tolist()
        own = exchange.buffer(f"changes of {name}", (rows.size, starts[-1]), tables[0].dtype)
        for table, base, first in zip(tables, bases, starts, strict=False):
            changes.subtract(table, base, rows, own, first)
        counts = exchange.counts(f"rows of {name}", np.full((1, ranks), rows.size))[0].tolist()
        of_all = exchange.all_rows(f"rows of {name}", rows, counts)
        changed = exchange.all_rows(f"changes of all of {name}", own, counts)
        ends = np.cumsum([0, *counts]).tolist()
        parts = [slice(*each) for each in itertools.pairwise(ends)]
        before = bases[-1][of_all]
        for part in parts:
            changes.add(bases[-1], of_all[part], changed[part], starts[-2])
        for part in parts if len(bases) > 1 else ():
            changes.add_scaled(bases[0], of_all[part], changed[part], before[part], bases[1])
        for table, base in zip(tables, bases, strict=True):
            changes.copy(base, of_all, table)

    def _add_whole(self, name: str, tables: list, bases: list) -> None:
        """Do the same with all rows: each rank adds up its part of them and sends the sums to all."""
        exchange, parts = self.exchange, Partition(len(tables[0]), self.exchange.ranks)
        counts, own = [parts.count(rank) for rank in range(parts.shards)], parts.count(exchange.rank)
        first = int(parts.borders[exchange.rank])
        copies = [
            exchange.rows(f"copies {place} of {name}", table, counts, [own] * parts.shards).reshape(
                parts.shards, own, -1
            )
            for place, table in enumerate(tables)
        ]
        sums = [exchange.buffer(f"sums {place} of {name}", of.shape[1:], of.dtype) for place, of in enumerate(copies)]
        old = [base[first : first + own] for base in bases]
        changes.add_copies(old[-1], copies[-1], sums[-1])
        if len(tables) > 1:
            changes.add_scaled_copies(old[0], copies[0], copies[1], sums[1], sums[0])
        for table, base, summed in zip(tables, bases, sums, strict=True):
            exchange.all_rows(name, summed, counts, base)
            table[...] = base
