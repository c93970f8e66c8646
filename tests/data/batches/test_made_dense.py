"""Batches made dense from rows that are held otherwise: the rows they should have, in memory that serves again."""

import numpy as np
import pytest
import scipy.sparse

from workbench import data, formats
from workbench.data.batches import feed
from workbench.data.batches.slicing import MOST

SHAPE = 90, 2048


def held(kind: str):
    generator = np.random.default_rng(3)
    x = (generator.integers(1, 100, SHAPE) * (generator.random(SHAPE) < 0.01)).astype(np.float32)
    return x, formats.to_format(x, "csr") if kind == "csr" else x.astype(kind)


every_kind = pytest.mark.parametrize("kind", ["csr", "uint8", "float16"])


@every_kind
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("last", ["keep", "pad"])
@pytest.mark.parametrize("rows", [1, 3, 32, 90])
def test_batches_are_the_rows_whatever_was_in_their_memory(kind, shuffle, last, rows):
    x, given = held(kind)
    batches = data.Batches(given, rows=rows, shuffle=shuffle, last=last, dense=np.float32)
    for epoch in range(3):
        for batch in batches.epoch(epoch):
            assert type(batch.x) is np.ndarray
            np.testing.assert_array_equal(batch.x, x[batch.rows_index])


@every_kind
@pytest.mark.parametrize("depth", [0, 1])
def test_memory_serves_again_once_nobody_holds_it(kind, depth):
    _, given = held(kind)
    batches, places = data.Batches(given, rows=30, shuffle=True, dense=np.float32), set()
    for epoch in range(5):
        for ready in feed.prefetch(batches.epoch(epoch), lambda batch: batch.x, depth):
            places.add(ready.value.ctypes.data)
            del ready
    assert len(places) <= 1 + depth
    assert batches.nbytes == formats.nbytes(given) + len(places) * 30 * SHAPE[1] * 4


@every_kind
def test_batches_that_are_held_share_no_memory(kind):
    x, given = held(kind)
    batches = data.Batches(given, rows=10, shuffle=True, dense=np.float32)
    kept = list(batches.epoch(0))
    parts = [batch.x[2:5] for batch in batches.epoch(1)]
    orders = [batch.rows_index for batch in batches.epoch(1)]
    for batch in kept:
        np.testing.assert_array_equal(batch.x, x[batch.rows_index])
    for part, rows in zip(parts, orders, strict=True):
        np.testing.assert_array_equal(part, x[rows[2:5]])
    assert len(batches.data[0][2].buffers.buffers) <= MOST


def test_data_that_was_written_to_between_epochs_comes_as_it_is():
    _, given = held("csr")
    batches = data.Batches(given, rows=30, shuffle=True, dense=np.float32)
    for _batch in batches.epoch(0):
        del _batch
    given.indices[:] = SHAPE[1] - 1 - given.indices  # unsorted, which is allowed here
    expected = given.toarray()
    for batch in batches.epoch(1):
        np.testing.assert_array_equal(batch.x, expected[batch.rows_index])
        del batch


@pytest.mark.parametrize("given", [np.zeros((4, 3), np.float32), scipy.sparse.csr_array(np.eye(4))])
def test_what_has_another_type_or_is_dense_already_is_cut_as_it_is(given):
    (batch,) = data.Batches(given, rows=4, dense=np.float32).epoch(0)
    assert formats.format_of(batch.x) == formats.format_of(given)
    assert batch.x.dtype == given.dtype


def test_a_column_that_is_not_there_is_refused_before_it_is_written_to():
    _, given = held("csr")
    batches = data.Batches(given, rows=30, shuffle=True, dense=np.float32)
    given.indices[5] = 10**6
    with pytest.raises(formats.FormatError, match="1000000"):
        next(iter(batches.epoch(0)))
