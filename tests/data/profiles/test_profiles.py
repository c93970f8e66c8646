"""The profile of a data set against what loops over small, adversarial sets count; and its process."""

import itertools
import json
import math
from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

from tests.support.small_sets import csr, labelled, targets
from workbench import data, formats
from workbench.data import profiles


def dataset(x, y=None):
    y = np.zeros(x.shape[0], np.int64) if y is None else y
    return data.Dataset("small", x, y, data.Labels("classes", ("a", "b")), "here", "none")


def drawn(rows, columns, density, seed=0):
    random = np.random.default_rng(seed)
    return np.where(random.random((rows, columns)) < density, random.integers(1, 4, (rows, columns)), 0)


def of_dense(dense, index=np.int32):
    x = formats.to_format(np.asarray(dense, np.float32), "csr")
    return csr(x.indptr, x.indices, x.data, x.shape, index=index)


ADVERSARIAL = {
    "plain": of_dense(drawn(7, 9, 0.4)),
    "empty rows": of_dense([[0, 0, 0], [1, 0, 2], [0, 0, 0], [0, 0, 3]]),
    "duplicate rows": of_dense([[1, 2, 0], [0, 1, 2], [1, 2, 0], [1, 2, 0], [2, 1, 0], [0, 0, 0], [0, 0, 0]]),
    "explicit zeros": csr((0, 2, 3, 5), (0, 2, 1, 0, 1), (0, 5, 0, 0, -0.0), (3, 3)),
    "one row": of_dense(drawn(1, 9, 0.5)),
    "one column": of_dense([[1], [0], [2], [1]]),
    "one element": of_dense([[-2]]),
    "int64": of_dense(drawn(5, 6, 0.5, seed=1), np.int64),
    "float64": csr((0, 1, 2), (0, 0), (1 + 1e-12, 1), (2, 1), np.float64),
    "no entries": csr((0, 0, 0), (), (), (2, 3)),
    "no rows": csr((0,), (), (), (0, 3)),
    "no columns": csr((0, 0, 0), (), (), (2, 0)),
    "full": of_dense(np.ones((6, 4))),
    "wide": csr((0, 2, 3), (5, 2**33, 5), (1, 1, 2), (2, 2**34), index=np.int64),
}


def stored(x):
    """The columns and values of each row."""
    ends = list(itertools.pairwise(x.indptr.tolist()))
    return [list(zip(x.indices[a:b].tolist(), x.data[a:b].tolist(), strict=True)) for a, b in ends]


def percentile(numbers, share):
    """Linear between the two neighbours in order."""
    numbers = sorted(numbers)
    place = share * (len(numbers) - 1)
    low, high = numbers[math.floor(place)], numbers[math.ceil(place)]
    return low + (place - math.floor(place)) * (high - low)


class Case(NamedTuple):
    """A set, its profile, and the columns and values of each of its rows."""

    made: data.Dataset
    found: data.Profile
    rows: list[list[tuple[int, float]]]


@pytest.fixture(params=ADVERSARIAL)
def case(request, monkeypatch):
    """An adversarial set, counted in parts of three entries."""
    monkeypatch.setattr(profiles, "PART", 3)
    monkeypatch.setattr(profiles, "BATCHES", (1, 2, 4, 100))
    made = dataset(ADVERSARIAL[request.param])
    return Case(made, data.profile(made), stored(made.x))


def test_sizes_and_row_lengths(case):
    lengths = list(map(len, case.rows))
    assert (case.found.rows, case.found.features, case.found.entries) == (*case.made.x.shape, sum(lengths))
    assert case.found.lengths.empty == lengths.count(0)
    assert case.found.lengths.most == max(lengths, default=0)
    if case.rows:
        mean = sum(lengths) / len(case.rows)
        spread = math.sqrt(sum((length - mean) ** 2 for length in lengths) / len(case.rows))
        ours = (case.found.lengths.mean, case.found.lengths.median, case.found.lengths.p99, case.found.lengths.cv)
        theirs = (mean, percentile(lengths, 0.5), percentile(lengths, 0.99), spread / mean if mean else 0)
        assert ours == pytest.approx(theirs)
    counted = Counter(length for length in lengths if length)
    for low, high, count in case.found.lengths.bins:
        assert count == sum(counted.pop(length, 0) for length in range(low, high + 1)) > 0
    assert not counted


def test_few_lengths_have_a_bin_each_and_many_share_bins_that_double_in_three():
    few, many = profiles.row_lengths(np.array([10, 14, 14, 0])), profiles.row_lengths(np.arange(1000))
    assert few.bins == ((10, 10, 1), (14, 14, 2))
    assert many.bins[:7] == ((1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 5, 1), (6, 7, 2), (8, 9, 2))
    assert sum(count for *_, count in many.bins) == 999


def test_columns_are_counted_by_the_rows_that_store_them(case):
    counts = sorted(Counter(column for row in case.rows for column, _ in row).values(), reverse=True)
    assert (case.found.columns.used, case.found.columns.unused) == (len(counts), case.made.features - len(counts))
    assert case.found.columns.ranks == tuple(enumerate(counts, 1))
    if counts:
        top = counts[: max(1, len(counts) // 100)]
        assert case.found.columns.top == max(1, len(counts) // 100)
        assert case.found.columns.top_share == pytest.approx(sum(top) / sum(counts))
        assert case.found.columns.most_rows == pytest.approx(counts[0] / len(case.rows))
    assert (case.found.columns.zipf is None) == (len(counts) < 2)


def test_columns_that_are_never_used_change_no_skew():
    x = of_dense(np.triu(np.ones((250, 250))))
    wide = csr(x.indptr, x.indices, x.data, (250, 10_000))
    narrow, found = data.profile(dataset(x)).columns, data.profile(dataset(wide)).columns
    assert narrow.top == 2
    assert narrow.top_share == pytest.approx((250 + 249) / (250 * 251 / 2))
    assert (found.top, found.top_share, found.zipf) == (narrow.top, narrow.top_share, narrow.zipf)
    assert (narrow.unused, found.unused) == (0, 9750)


def test_touched_columns_are_the_mean_over_every_batch_there_is(case):
    assert [batch.batch_rows for batch in case.found.touched] == sorted(
        {min(size, len(case.rows)) for size in (1, 2, 4, 100)} - {0}
    )
    for batch in case.found.touched:
        batches = list(itertools.combinations(case.rows, batch.batch_rows))
        touched = [len({column for row in chosen for column, _ in row}) for chosen in batches]
        entries = [sum(map(len, chosen)) for chosen in batches]
        ours = (batch.columns, batch.entries)
        assert ours == pytest.approx((sum(touched) / len(batches), sum(entries) / len(batches)))


def test_values_and_duplicate_rows(case):
    values = [value for row in case.rows for _, value in row]
    if values:
        assert case.found.values == profiles.Values(min(values), max(values), values.count(0))
    else:
        assert case.found.values is None
    contents = [frozenset((column, value) for column, value in row if value) for row in case.rows]
    contents = [content for content in contents if content]
    assert case.found.duplicate_rows == len(contents) - len(set(contents))


def test_bytes_are_those_of_the_arrays(case):
    if case.made.features < 2**31:
        held = {name: formats.nbytes(formats.to_format(case.made.x, name)) for name in formats.names()}
        if case.made.x.indices.dtype == case.found.index_dtype:
            assert case.found.bytes_format == held
    assert {preparation.bytes_ for preparation in case.found.preparations if preparation.is_dense} == {
        case.found.bytes_format["dense"]
    }
    assert {preparation.bytes_ for preparation in case.found.preparations if not preparation.is_dense} == {
        case.found.bytes_format["csr"]
    }
    assert case.found.index_dtype == ("int64" if case.made.features >= 2**31 else "int32")


def test_it_is_json_and_the_same_again(case):
    assert json.loads(json.dumps(asdict(case.found), allow_nan=False))["entries"] == case.made.x.nnz
    assert data.profile(case.made) == case.found


def test_the_same_columns_are_counted_by_sorting_as_by_counters(monkeypatch):
    x = dataset(of_dense(drawn(50, 40, 0.2))).x
    by_counters = profiles.column_counts(x)
    monkeypatch.setattr(profiles, "WIDE", 0)
    assert np.array_equal(profiles.column_counts(x), by_counters)


@pytest.mark.parametrize("rows", [5000, 10**8])
@pytest.mark.parametrize("batch", [1, 64, 4096])
def test_touched_columns_of_large_sets_are_exact(rows, batch):
    counts = np.array([1, 2, 63, 1000, 4900])
    missed = [Fraction(math.comb(rows - int(count), batch), math.comb(rows, batch)) for count in counts]
    exact = float(sum(1 - chance for chance in missed))
    assert profiles.expected_active_columns(counts, rows, batch) == pytest.approx(exact, rel=1e-7)


def test_batches_that_are_drawn_touch_as_many_columns():
    made = data.load("power_law", rows=2000, features=3000, density=0.01, cache=False)
    batch = data.profile(made).touched[1]
    random = np.random.default_rng(0)
    drawn = [np.unique(made.x[random.permutation(made.rows)[: batch.batch_rows]].indices).size for _ in range(40)]
    assert batch.batch_rows == 256
    assert batch.columns == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / math.sqrt(len(drawn)))


def test_the_line_of_zipf_finds_the_slope_that_counts_follow():
    counts = np.round(1e9 * np.arange(1, 5001) ** -0.8).astype(np.int64)
    line = profiles.zipf_line(counts)
    assert (line.slope, line.scale) == (pytest.approx(0.8, abs=1e-3), pytest.approx(1e9, rel=1e-2))
    assert (line.first, line.last) == (10, 1250)
    assert profiles.zipf_line(np.full(100, 7)).slope == pytest.approx(0)
    assert profiles.zipf_line(np.array([8, 4])).slope == pytest.approx(1)


def test_level_heads_and_rare_columns_do_not_bend_the_line_of_zipf():
    ranks = np.arange(1, 100_001)
    counts = np.maximum(np.round(1e4 * np.maximum(ranks, 10) ** -0.8), 1).astype(np.int64)
    assert profiles.zipf_line(counts).slope == pytest.approx(0.8, abs=0.02)


def test_rows_that_share_columns_or_values_alone_are_no_duplicates():
    close = of_dense([[1, 2, 0], [2, 1, 0], [0, 1, 2], [1, 2, 3], [3, 0, 0], [-1, -2, 0], [1, 0, 2]])
    assert data.profile(dataset(close)).duplicate_rows == 0
    many = dataset(of_dense(np.arange(4000).reshape(1000, 4)))
    assert np.unique(profiles.row_hashes(many.x)).size == 1000


def test_duplicate_entries_are_those_that_were_summed_in_reading(tmp_path):
    x = scipy.sparse.coo_array((np.ones(4), ([0, 0, 1, 0], [1, 1, 0, 1])), (2, 3))
    scipy.sparse.save_npz(tmp_path / "x.npz", x)
    np.save(tmp_path / "y.npy", np.arange(2))
    made = data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "y.npy", cache=False)
    assert (data.profile(made).duplicate_entries, made.x.nnz) == (2, 2)
    (tmp_path / "x.svm").write_text("1 1:1 3:2\n0 2:1\n")
    assert data.profile(data.load("svmlight", path=tmp_path / "x.svm", cache=False)).duplicate_entries == 0
    assert data.profile(labelled()).duplicate_entries is None


def test_shares_of_classes_and_the_rest_of_many():
    y = [0] * 5 + [1] * 7 + list(range(2, 14))
    balance = data.profile(labelled(y, features=30)).labels
    assert (balance.kind, balance.classes, balance.shown[:2]) == ("classes", 14, (("b", 7), ("a", 5)))
    assert (len(balance.shown), balance.others, balance.rows_others) == (10, 4, 4)


def test_numbers_have_quartiles_and_several_classes_a_row_their_count():
    assert data.profile(targets([5, 1, 2, 3, 4, 9])).labels.quartiles == (1, 2.25, 3.5, 4.75, 9)
    y = np.array([[1, 1], [0, 1], [0, 0]], np.uint8)
    made = data.Dataset("m", of_dense(np.eye(3)), y, data.Labels("multilabel", ("a", "b")), "", "")
    balance = data.profile(made).labels
    assert (balance.labels_a_row, balance.shown) == (1, (("b", 2), ("a", 1)))


def test_groups_have_a_number_and_a_largest():
    assert data.profile(labelled(groups=np.array([5, 5, 9, 9, 9, 1]))).groups == (3, 3)
    assert data.profile(labelled()).groups is None
