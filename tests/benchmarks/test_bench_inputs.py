"""What the benchmark measures with: shapes of batches, what a call asks of the memory, what the memory gives."""

import dataclasses

import numpy as np
import pytest

import kernels
from benchmarks.candidates import cold_share, traffic_of
from benchmarks.shapes import Shape, draw_batch
from workbench.measure.bandwidth import Bandwidth, Limits, last_cache_bytes
from workbench.measure.bandwidth import measure as measure_bandwidth


def test_shapes_obey_their_laws():
    batch = draw_batch(Shape("law", 500, 5000, 20, slope=1.0, values="ones"), seed=3)
    assert np.diff(batch.indptr).mean() == 20
    assert batch.data.tolist() == [1.0] * len(batch.indices)
    for first, last in zip(batch.indptr[:-1], batch.indptr[1:], strict=True):
        assert (np.diff(batch.indices[first:last]) > 0).all(), "columns of a row are sorted and distinct"
    counts = np.sort(np.bincount(batch.indices, minlength=5000))[::-1]
    assert counts[:50].sum() > 0.2 * counts.sum()
    np.testing.assert_array_equal(batch.indices, draw_batch(Shape("law", 500, 5000, 20, slope=1.0), seed=3).indices)


def test_narrow_rows_move_lines_and_only_frequent_rows_stay_in_the_cache():
    sizes = kernels.Sizes(R=100, z=1000, D=10_000, N=1, U=200)
    lazy = kernels.get("sgd_lazy")
    batch = draw_batch(Shape("law", 100, 10_000, 10, slope=1.0))
    assert traffic_of(lazy, sizes, batch).bytes_lines == 2 * 200 * (64 - 4), "read and written"
    wide = dataclasses.replace(sizes, N=16)
    assert traffic_of(lazy, wide, batch).bytes_lines == 0
    assert traffic_of(kernels.get("csr_t_dense"), sizes, batch).bytes_table == 100 * 4
    cache = last_cache_bytes()
    assert cold_share(np.array([1, 2, 5, 2]), 2 * cache) == pytest.approx(3 / 10), "the two most frequent rows fit"
    assert cold_share(np.array([1, 2, 5, 2]), cache) == 0.0


def test_bandwidth_is_measured_at_every_size_and_limits_lie_between():
    sizes = {"stream_sizes": (2**16, 2**18), "table_sizes": (2**16, 2**18), "row_sizes": (4, 64, 256)}
    found = list(measure_bandwidth((1,), **sizes, seconds=1e-4))
    assert {(rate.level, rate.bytes_table) for rate in found if rate.level in ("read", "copy", "triad")} == {
        (level, size) for level in ("read", "copy", "triad") for size in (2**16, 2**18)
    }
    assert len([rate for rate in found if rate.level == "gather"]) == 6
    assert all(rate.bytes_per_second > 0 for rate in found)
    limits = Limits([Bandwidth("read", 100, 0, 1, 1.0), Bandwidth("read", 10_000, 0, 1, 100.0)], 1)
    assert limits.stream(1000) == pytest.approx(10.0)
    assert limits.stream(1) == pytest.approx(1.0)
    assert limits.stream(1e9) == pytest.approx(100.0)
