"""svmlight text in a random order: every row once an epoch, the same again for the same seed, from any batch on."""

import collections
import gzip

import numpy as np
import pytest

from tests.data.text import test_svmlight_batches as plain
from tests.data.text.test_svmlight_batches import LABELS, stream
from workbench.data import DataError
from workbench.data.batches.feed import BLOCKS, BlockOrder

path = plain.path


def shuffled(path, **options):
    return stream(path, shuffle=True, **options)


@pytest.mark.parametrize("parts", [2, 3, 40])
def test_parts_are_shuffled_each_for_itself(path, parts):
    seen = []
    for part in range(parts):
        made = [shuffled(path, rows=3, part=part, parts=parts, buffer_rows=4), stream(path, part=part, parts=parts)]
        labels = [[label for batch in one.epoch(1) for label in batch.y] for one in made]
        assert sorted(labels[0]) == sorted(labels[1])
        seen += labels[0]
    assert sorted(seen) == sorted(LABELS)


def test_within_a_buffer_every_order_is_as_likely():
    blocks = BlockOrder(3, buffer_rows=3)
    orders = collections.Counter()
    for epoch in range(6000):
        ((held, within),) = blocks.buffers(0, epoch, 0)
        assert held.tolist() == [0, 1, 2]
        orders[tuple(within.tolist())] += 1
    assert len(orders) == 6
    assert max(abs(count - 1000) for count in orders.values()) < 150  # five deviations


def test_a_file_larger_than_the_buffer_is_mixed_all_over():
    total, buffer_rows = 40_000, 4 * BLOCKS
    blocks = BlockOrder(total, buffer_rows)
    assert blocks.length == 4
    rows = np.concatenate([blocks.rows_of(held)[within] for held, within in blocks.buffers(3, 0, 0)])
    assert np.array_equal(np.sort(rows), np.arange(total))
    for batch in rows[: 20 * 256].reshape(20, 256):
        assert abs(batch.mean() - total / 2) < 5 * total / np.sqrt(12 * 256 / 4)  # of blocks of four, at worst
        assert batch.std() > total / 5
    neighbours = np.abs(np.diff(rows)) < 4
    assert neighbours.mean() < 0.02


def test_what_cannot_be_shuffled_is_refused(path):
    packed = path.with_name("data.svm.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match="is compressed and has one order; unpack it, or use shuffle=False"):
        shuffled(packed)
    for options, message in (
        ({"buffer_rows": 0}, "buffer_rows is 0; it is how many rows are shuffled at once"),
        ({"seed": -1}, "seed is -1; it is a whole number from 0 on"),
        ({"seed": 1.5}, "seed is 1.5"),
    ):
        with pytest.raises(DataError, match=message):
            shuffled(path, **options)


def test_a_file_that_is_cut_short_is_refused_and_not_waited_for(path):
    batches = shuffled(path, rows=2, buffer_rows=2)
    epoch = batches.epoch()
    next(epoch)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"data.svm has changed while it was read"):
        list(epoch)


def test_memory_is_that_of_the_buffer(tmp_path):
    once, often = plain.peaks(tmp_path / "x.svm", shuffle=True, buffer_rows=400)
    assert often < 2.5 * once  # the permutation of 20 times the blocks, a few bytes each, is in it
