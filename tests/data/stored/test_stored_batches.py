"""Batches of stored rows: those of the same rows in memory, from any batch on, in an order of seed and epoch alone."""

import tracemalloc

import numpy as np
import pytest

from tests.support.stored_sets import drawn, stored
from workbench import data
from workbench.data import DataError, StoredBatches

ROWS = 23


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("stored") / "X.sparse", drawn(ROWS, 90))


def test_parts_of_the_rows_count_from_their_own_first(kept):
    part, held = data.rows_between(kept, 5, 17), data.load("sparse", path=kept.x.place, whole=True)
    assert part.x.nnz == held.x[5:17].nnz
    assert np.array_equal(data.row_lengths(part.x), np.diff(held.x.indptr)[5:17])
    for shuffle in (False, True):
        batches = StoredBatches(part.x, part.y, rows=5, shuffle=shuffle, buffer_rows=4)
        made = list(batches.epoch())
        assert len(made) == len(batches) == 3
        assert sorted(row for batch in made for row in batch.rows_index) == list(range(12))
        for batch in made:
            np.testing.assert_array_equal(batch.x.toarray(), held.x.toarray()[5 + batch.rows_index])
            np.testing.assert_array_equal(batch.y, held.y[5 + batch.rows_index])


def test_values_are_read_in_the_type_that_is_asked_for(kept):
    (batch,) = StoredBatches(kept.x.astype(np.float64), None, ROWS).epoch()
    assert batch.x.dtype == np.float64
    assert batch.labels == {}


def test_wrong_arguments_are_refused(kept):
    for options, message in (
        ({"rows": 0}, "rows is 0"),
        ({"last": "drop"}, "last is 'drop'"),
        ({"buffer_rows": 0}, "buffer_rows is 0; it is how many rows are shuffled at once"),
        ({"y": np.zeros(3)}, "y has 3 entries for 23 rows of x"),
    ):
        with pytest.raises(DataError, match=message):
            StoredBatches(kept.x, **options)
    with pytest.raises(DataError, match="rows=50 with last='discard' leaves no batch of 23 rows"):
        StoredBatches(kept.x, rows=50, last="discard")
    with pytest.raises(DataError, match="has no rows here"):
        StoredBatches(kept.x.between(3, 3))
    with pytest.raises(DataError, match="Epoch 0, batch -1 was asked for"):
        next(StoredBatches(kept.x).epoch(0, -1))


def test_a_file_that_was_cut_short_is_refused_before_it_is_read(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn())
    batches = StoredBatches(kept.x, kept.y)
    path = tmp_path / "X.sparse" / "indices.npy"
    held = path.read_bytes()
    path.unlink()
    path.write_bytes(held[:-1])
    with pytest.raises(DataError, match=r"indices.npy has .* bytes; meta.json says"):
        next(batches.epoch())


def test_memory_is_that_of_the_buffer(tmp_path):
    peaks = []
    for rows in (1500, 12_000):
        kept = stored(tmp_path / str(rows), drawn(rows, 400))
        batches = StoredBatches(kept.x, None, 200, shuffle=True, buffer_rows=1000)
        next(batches.epoch())
        tracemalloc.start()
        assert sum(len(batch.rows_index) for batch in batches.epoch()) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]  # maps and the permutation of the blocks are in it
