"""Batches of stored rows: those of the same rows in memory, in an order of seed and
epoch alone, from any batch on."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.small_sets import possible_batches
from tests.support.stored_sets import drawn, stored
from workbench import data, formats
from workbench.data.batches.feed import LAST

ROWS = 23
BUFFERS = (1, 2, 5, 23, 1000)


class Stored(NamedTuple):
    """Rows in files: `feed(rows=..., **options)` makes batches of them, `x` (dense) and `y` are the same in memory."""

    feed: Callable[..., Any]
    x: np.ndarray
    y: np.ndarray

    def order(self, batches, number=0, first=0):
        """The numbers of the rows of an epoch, after a look at what the batches hold."""
        made = list(batches.epoch(number, first))
        for batch in made:
            formats.check(batch.x, full=True)
            np.testing.assert_array_equal(batch.x.toarray(), self.x[batch.rows_index])
            np.testing.assert_array_equal(batch.y, self.y[batch.rows_index])
        return np.concatenate([batch.rows_index for batch in made]).tolist() if made else []


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("feeds")
    made = stored(folder / "X.sparse", drawn(ROWS, 90))
    whole = data.load("sparse", path=made.x.place, whole=True)
    return Stored(
        lambda rows=256, **options: data.batches_of(made.x, made.y, rows, **options), whole.x.toarray(), whole.y
    )


@pytest.mark.parametrize(("last", "rows"), possible_batches(LAST, [1, 4, 23, 50], ROWS))
@pytest.mark.parametrize("number", [0, 1, 5])
def test_batches_in_stored_order_are_those_of_the_same_rows_in_memory(kept, last, rows, number):
    read = kept.feed(rows, last=last)
    held = data.Batches(formats.to_format(kept.x, "csr"), kept.y, rows, last=last)
    assert (read.count(number), read.total) == (held.count(number), ROWS)
    for first in (0, 2):
        for batch, expected in zip(read.epoch(number, first), held.epoch(number, first), strict=True):
            formats.check(batch.x, full=True)
            assert (batch.x.dtype, batch.x.indices.dtype, batch.y.dtype) == (np.float32, np.int32, kept.y.dtype)
            assert batch.pad == expected.pad
            np.testing.assert_array_equal(batch.rows_index, expected.rows_index)
            np.testing.assert_array_equal(batch.x.toarray(), expected.x.toarray())
            np.testing.assert_array_equal(batch.y, expected.y)


@pytest.mark.parametrize("buffer_rows", BUFFERS)
@pytest.mark.parametrize("rows", [1, 4, 23, 50])
def test_every_epoch_has_every_row_once_in_an_order_of_its_own(kept, rows, buffer_rows):
    def batches(seed=0):
        return kept.feed(rows, shuffle=True, seed=seed, buffer_rows=buffer_rows)

    orders = [kept.order(batches(), number) for number in range(3)]
    assert all(sorted(order) == list(range(ROWS)) for order in orders)
    assert all(one != other for one, other in itertools.combinations([*orders, list(range(ROWS))], 2))
    assert orders == [kept.order(batches(), number) for number in range(3)]
    assert orders[0] != kept.order(batches(seed=1))


@pytest.mark.parametrize(("last", "rows"), possible_batches(LAST, [4, 23, 50], ROWS))
@pytest.mark.parametrize("buffer_rows", [1, 5, 1000])
def test_the_end_of_an_epoch_is_as_in_stored_order(kept, last, rows, buffer_rows):
    options = {"shuffle": True, "buffer_rows": buffer_rows}
    batches, plain = kept.feed(rows, last=last, **options), kept.feed(rows, last=last)
    whole = [kept.order(kept.feed(**options), number) for number in range(6)]
    for number in range(5):
        made, expected = list(batches.epoch(number)), list(plain.epoch(number))
        assert [(len(batch.y), batch.pad) for batch in made] == [(len(batch.y), batch.pad) for batch in expected]
        came = kept.order(batches, number)
        repeated = whole[number] * (1 + rows // ROWS)
        assert came == whole[number][: len(came)] + repeated[: max(len(came) - ROWS, 0)]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_epoch_goes_on_from_any_batch(kept, last, shuffle, number):
    batches = kept.feed(rows=4, last=last, shuffle=shuffle, buffer_rows=3)
    whole = list(batches.epoch(number))
    for first in range(len(whole) + 2):
        rest = list(batches.epoch(number, first))
        assert [b.rows_index.tolist() for b in rest] == [b.rows_index.tolist() for b in whole[first:]]
        assert kept.order(batches, number, first) == [row for b in whole[first:] for row in b.rows_index]


def test_settings_tell_shuffled_batches_from_others(kept):
    changes = ({}, {"shuffle": True}, {"shuffle": True, "seed": 1}, {"shuffle": True, "buffer_rows": 5})
    made = [kept.feed(**options).settings() for options in changes]
    assert all(one != other for one, other in itertools.combinations(made, 2))
    assert kept.feed(seed=1).settings() == made[0]
