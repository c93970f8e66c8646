"""Batches of stored rows: those of the same rows in memory, from any batch on, in an order of seed and epoch alone."""

import itertools
import tracemalloc

import numpy as np
import pytest

from tests.support.stored_sets import drawn, stored
from workbench import data, formats
from workbench.data import DataError, StoredBatches
from workbench.data.batches.feed import LAST

ROWS = 23
BUFFERS = (1, 2, 5, 23, 1000)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("stored") / "X.sparse", drawn(ROWS, 90), shard_bytes=1024)


@pytest.fixture(scope="module")
def held(kept):
    return data.load("sparse", path=kept.x.place, whole=True)


def order(batches, held, number=0, first=0):
    """The numbers of the rows of an epoch, after a look at what the batches hold."""
    made = list(batches.epoch(number, first))
    for batch in made:
        formats.check(batch.x, full=True)
        np.testing.assert_array_equal(batch.x.toarray(), held.x.toarray()[batch.rows_index])
        np.testing.assert_array_equal(batch.y, held.y[batch.rows_index])
    return np.concatenate([batch.rows_index for batch in made]).tolist() if made else []


def test_the_set_of_these_tests_has_several_shards(kept):
    assert len(kept.x.shards.manifest.shards) > 2


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("rows", [1, 4, 23, 50])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_batches_in_stored_order_are_those_of_the_same_rows_in_memory(kept, held, last, rows, number):
    if last == "discard" and rows == 50:
        with pytest.raises(DataError, match="rows=50 with last='discard' leaves no batch of 23 rows"):
            StoredBatches(kept.x, kept.y, rows, last=last)
        return
    read, expected = (data.batches_of(one.x, one.y, rows, last=last) for one in (kept, held))
    assert (read.count(number), len(read), read.total) == (expected.count(number), len(expected), ROWS)
    for first in (0, 2):
        for batch, other in zip(read.epoch(number, first), expected.epoch(number, first), strict=True):
            formats.check(batch.x, full=True)
            assert (batch.x.dtype, batch.x.indices.dtype) == (np.float32, np.int32)
            assert (batch.pad, batch.rolled) == (other.pad, other.rolled)
            np.testing.assert_array_equal(batch.rows_index, other.rows_index)
            np.testing.assert_array_equal(batch.x.toarray(), other.x.toarray())
            np.testing.assert_array_equal(batch.y, other.y)


@pytest.mark.parametrize("buffer_rows", BUFFERS)
@pytest.mark.parametrize("rows", [1, 4, 23, 50])
def test_every_epoch_has_every_row_once_in_an_order_of_its_own(kept, held, rows, buffer_rows):
    def batches(seed=0):
        return StoredBatches(kept.x, kept.y, rows, shuffle=True, seed=seed, buffer_rows=buffer_rows)

    orders = [order(batches(), held, number) for number in range(3)]
    assert all(sorted(order) == list(range(ROWS)) for order in orders)
    assert all(one != other for one, other in itertools.combinations([*orders, list(range(ROWS))], 2))
    assert orders == [order(batches(), held, number) for number in range(3)]
    assert orders[0] != order(batches(seed=1), held)


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("rows", [4, 23, 50])
@pytest.mark.parametrize("buffer_rows", [1, 5, 1000])
def test_the_end_of_an_epoch_is_as_in_stored_order(kept, held, last, rows, buffer_rows):
    if last == "discard" and rows == 50:
        return
    options = {"shuffle": True, "buffer_rows": buffer_rows}
    batches, plain = StoredBatches(kept.x, kept.y, rows, last=last, **options), StoredBatches(kept.x, kept.y, rows)
    plain = StoredBatches(kept.x, kept.y, rows, last=last)
    whole = [order(StoredBatches(kept.x, kept.y, **options), held, number) for number in range(6)]
    endless = list(itertools.chain.from_iterable(whole))
    for number in range(5):
        made, expected = list(batches.epoch(number)), list(plain.epoch(number))
        assert [(len(batch.y), batch.pad, batch.rolled) for batch in made] == [
            (len(batch.y), batch.pad, batch.rolled) for batch in expected
        ]
        came = order(batches, held, number)
        if last == "roll_over":
            begin = number * ROWS // rows * rows
            assert came == endless[begin : begin + len(came)]
        else:
            repeated = whole[number] * (1 + rows // ROWS)
            assert came == whole[number][: len(came)] + repeated[: max(len(came) - ROWS, 0)]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_epoch_goes_on_from_any_batch(kept, held, last, shuffle, number):
    batches = StoredBatches(kept.x, kept.y, rows=4, last=last, shuffle=shuffle, buffer_rows=3)
    whole = list(batches.epoch(number))
    for first in range(len(whole) + 2):
        rest = list(batches.epoch(number, first))
        assert [b.rows_index.tolist() for b in rest] == [b.rows_index.tolist() for b in whole[first:]]
        assert order(batches, held, number, first) == [row for b in whole[first:] for row in b.rows_index]


def test_parts_of_the_rows_count_from_their_own_first(kept, held):
    part = data.rows_between(kept, 5, 17)
    assert part.x.nnz == held.x[5:17].nnz
    assert np.array_equal(data.row_lengths(part.x), np.diff(held.x.indptr)[5:17])
    for shuffle in (False, True):
        batches = StoredBatches(part.x, part.y, rows=5, shuffle=shuffle, buffer_rows=4)
        assert sorted(order(batches, data.rows_between(held, 5, 17))) == list(range(12))


def test_values_are_read_in_the_type_that_is_asked_for(kept):
    (batch,) = StoredBatches(kept.x.astype(np.float64), None, ROWS).epoch()
    assert batch.x.dtype == np.float64
    assert batch.labels == {}


def test_settings_tell_shuffled_batches_from_others(kept):
    def result(**options):
        return StoredBatches(kept.x, kept.y, **options).settings()

    made = [result(), result(shuffle=True), result(shuffle=True, seed=1), result(shuffle=True, buffer_rows=5)]
    assert all(one != other for one, other in itertools.combinations(made, 2))
    assert result(seed=1) == made[0]


def test_wrong_arguments_are_refused(kept):
    for options, message in (
        ({"rows": 0}, "rows is 0"),
        ({"last": "drop"}, "last is 'drop'"),
        ({"buffer_rows": 0}, "buffer_rows is 0; it is how many rows are shuffled at once"),
        ({"y": np.zeros(3)}, "y has 3 entries for 23 rows of x"),
    ):
        with pytest.raises(DataError, match=message):
            StoredBatches(kept.x, **options)
    with pytest.raises(DataError, match="has no rows here"):
        StoredBatches(kept.x.between(3, 3))
    with pytest.raises(DataError, match="Epoch 0, batch -1 was asked for"):
        next(StoredBatches(kept.x).epoch(0, -1))


def test_a_file_that_was_cut_short_is_refused_before_it_is_read(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn())
    batches = StoredBatches(kept.x, kept.y)
    path = tmp_path / "X.sparse" / "00000" / "indices.npy"
    held = path.read_bytes()
    path.unlink()
    path.write_bytes(held[:-1])
    with pytest.raises(DataError, match=r"indices.npy has .* bytes; the manifest says"):
        next(batches.epoch())


def test_memory_is_that_of_the_buffer(tmp_path):
    peaks = []
    for rows in (1500, 12_000):
        kept = stored(tmp_path / str(rows), drawn(rows, 400), shard_bytes=2**16)
        batches = StoredBatches(kept.x, None, 200, shuffle=True, buffer_rows=1000)
        next(batches.epoch())
        tracemalloc.start()
        assert sum(len(batch.rows_index) for batch in batches.epoch()) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]  # maps and the permutation of the blocks are in it
