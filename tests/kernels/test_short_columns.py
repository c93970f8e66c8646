"""Sums of short columns: the values and bits of the definition, wherever streams end and whatever the threads."""

import numpy as np
import pytest

import kernels
from kernels import short_columns, threads
from kernels.vector.tiles import head_of


def batch(lengths: list[int], rows: int = 50) -> tuple:
    """Operands of csr_t_dense with columns of these lengths."""
    rng = np.random.default_rng(0)
    segments = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    z = int(segments[-1])
    values, g = rng.standard_normal(z, np.float32), rng.standard_normal((rows, 1), np.float32)
    return segments, rng.integers(0, rows, z, np.int32), values, g, np.full((len(lengths), 1), 7.0, np.float32)


LENGTHS = {
    "one column": [9000],
    "fewer columns than streams": [1, 5000, 3],
    "a column that all other streams wait for": [2] * 300 + [4000] + [3] * 700,
    "columns of one entry": [1] * 5000,
    "columns of a text": [1 + 13 * k % 17 for k in range(900)],
}


@pytest.mark.parametrize("name", LENGTHS)
def test_streams_sum_every_column_in_the_order_of_its_entries(name):
    segments, rows, values, g, out = batch(LENGTHS[name])
    g[7], values[5], values[-1] = np.nan, np.inf, -0.0
    terms = values.astype(np.float64) * g[rows, 0]
    with np.errstate(invalid="ignore"):
        wanted = np.add.reduceat(terms, segments[:-1])[:, None]
    short_columns.add(segments, rows, values, g, out)
    np.testing.assert_allclose(out, wanted, rtol=2e-4, atol=1e-3)
    serial = np.full_like(out, 7.0)
    with threads.serial():
        short_columns.add(segments, rows, values, g, serial)
    with threads.parallel():
        short_columns.add(segments, rows, values, g, out)
    assert serial.tobytes() == out.tobytes()
    short_columns.add(segments, rows, None, g, out)
    short_columns.add(segments, rows, np.ones_like(values), g, serial)
    np.testing.assert_array_equal(out, serial)


def test_only_short_columns_of_which_no_length_is_usual_go_in_streams():
    def suits(lengths, width=1):
        segments = batch(lengths)[0]
        return short_columns.suits(segments, int(segments[-1]), width, head_of(int(segments[-1]), len(lengths), 4))

    text = LENGTHS["columns of a text"]
    assert suits(text)
    assert not suits(text, width=2)
    assert not suits([1] * 100), "few entries"
    assert not suits([80] * 100), "long columns"
    assert not suits([1] * 1000 + [4000]), "most lengths are one"


def test_the_kernels_take_streams_where_they_suit(monkeypatch):
    calls, add = [], short_columns.add
    monkeypatch.setattr(short_columns, "add", lambda *args: calls.append(args) or add(*args))
    segments, rows, values, g, out = batch(LENGTHS["columns of a text"])
    kernels.get("csr_t_dense").cpu(segments, rows, values, g, out)
    summed = out.copy()
    kernels.get("csr_t_dense_ones").cpu(segments, rows, g, out)
    assert len(calls) == 2
    wanted = np.add.reduceat(values.astype(np.float64) * g[rows, 0], segments[:-1])[:, None]
    np.testing.assert_allclose(summed, wanted, rtol=2e-4, atol=1e-4)
