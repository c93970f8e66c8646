"""How data is held while it trains: the same training as dense whatever `storage` says, and errors that say why not."""

import numpy as np
import pytest
import scipy.sparse

from tests.support.stored_sets import drawn, stored
from tests.support.tiny_sweeps import DENSE, trial_row
from workbench import data, formats, training

WAYS = ["csr", "uint8", "float16"]


def counts(rows=70, features=33, density=0.3, dtype=np.float32) -> scipy.sparse.csr_array:
    """A matrix of small whole numbers, which every type has exactly."""
    generator = np.random.default_rng(1)
    dense = generator.integers(1, 200, (rows, features)) * (generator.random((rows, features)) < density)
    return formats.to_format(dense.astype(dtype), "csr")


def trained(x, storage="same", epochs=3, **settings):
    setup = training.Setup(model="softmax", batch_rows=16, storage=storage, **DENSE, **settings)
    run = training.make_run(setup, x, np.arange(x.shape[0]) % 3, 3)
    return run, [event.loss for event in run.events(epochs)]


@pytest.mark.parametrize("storage", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ways", [{}, {"ahead": True}, {"shuffle": False}, {"last": "pad"}], ids=str)
def test_training_has_the_bits_of_dense_data(storage, dtype, ways):
    x = counts(dtype=dtype)
    run, losses = trained(x, storage, dtype=dtype, **ways)
    dense, expected = trained(x.toarray(), dtype=dtype, **ways)
    assert losses == expected
    np.testing.assert_array_equal(run.weights, dense.weights)
    np.testing.assert_array_equal(run.predict(x.toarray()), dense.predict(x.toarray()))
    np.testing.assert_allclose(run.predict(x), dense.predict(x.toarray()), rtol=1e-4, atol=1e-5)  # sums of other order
    assert run.kept == {}


@pytest.mark.parametrize("storage", WAYS)
def test_what_is_held_is_smaller_than_dense(storage):
    x = counts(rows=400, features=50, density=0.1)
    held = trained(x, storage)[0].batches.x
    assert formats.nbytes(held) == {"csr": formats.nbytes(x), "uint8": 20_000, "float16": 40_000}[storage]


@pytest.mark.parametrize("storage", WAYS)
@pytest.mark.parametrize("ahead", [False, True])
def test_beside_what_is_held_there_is_a_batch_or_two(storage, ahead):
    x = counts(rows=64, features=4096, density=0.01)
    run, _ = trained(x, storage, ahead=ahead)
    batch = 16 * 4096 * 4
    beside = run.batches.nbytes - formats.nbytes(run.batches.x)
    assert beside == batch or (ahead and beside == 2 * batch)


@pytest.mark.parametrize("ways", [{}, {"ahead": True}, {"shuffle": False}], ids=str)
def test_rows_that_are_given_as_csr_train_dense_with_the_same_bits(ways):
    x = counts()
    run, losses = trained(x, **ways)
    assert losses == trained(x.toarray(), **ways)[1]
    assert [fact["op"] for fact in run.densified()] == ["batch from csr"]
    kept = [batch.x for batch in run.kept.values()]
    assert len({array.ctypes.data for array in kept}) == len(kept) == (0 if run.setup.shuffle else 5)


@pytest.mark.parametrize("storage", WAYS)
def test_dense_data_is_taken_too(storage):
    x = counts()
    assert trained(x.toarray(), storage)[1] == trained(x, storage)[1]


def test_other_rows_are_held_the_same_way():
    x = counts()
    run, _ = trained(x, "uint8")
    run.take(x[:20], np.zeros(20, np.int64))
    assert run.batches.x.dtype == np.uint8


@pytest.mark.parametrize(
    ("storage", "value", "message"),
    [
        ("uint8", 0.5, "The value 0.5 at row 3, column 5 is not exact in uint8"),
        ("uint8", 256.0, "The value 256 at row 3, column 5 is not exact in uint8"),
        ("uint8", -1.0, "The value -1 at row 3, column 5 is not exact in uint8"),
        ("float16", 2049.0, "The value 2049 at row 3, column 5 is not exact in float16"),
        ("float16", 70000.0, "The value 70000 at row 3, column 5 is not exact in float16"),
        ("float16", 0.1, "The value 0.100000001 at row 3, column 5 is not exact in float16"),
    ],
)
def test_a_value_that_is_not_exact_is_named(storage, value, message):
    x = counts().toarray()
    x[3, 5] = value
    with pytest.raises(formats.FormatError, match=message):
        trained(x, storage)
    with pytest.raises(formats.FormatError, match="storage = csr or storage = same"):
        trained(formats.to_format(x, "csr"), storage)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"storage": "csr"}, "format csr is held as it is: take storage same, or format dense"),
        ({"storage": "bits", **DENSE}, "Unknown storage 'bits'. Expected one of: same, csr, uint8, float16"),
        ({"storage": "csr", **DENSE, "device": "cuda"}, "Data is held as csr on cpu alone; on cuda take storage same"),
        ({"storage": "csr", **DENSE, "model": "graph_convolution"}, "graph_convolution model completes its batches"),
    ],
)
def test_what_cannot_be_held_so_is_refused_in_words(settings, expected):
    assert expected in training.impossible_reason(training.Setup(**settings))


def test_stored_rows_come_as_csr_and_in_no_smaller_type(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn(100), shuffle=0)
    setup = training.Setup(model="softmax", batch_rows=16, shuffle=False, **DENSE)
    _, losses = trained(kept.x, "csr", shuffle=False)
    assert losses == [event.loss for event in training.make_run(setup, kept.x, np.arange(100) % 3, 3).events(3)]
    with pytest.raises(data.DataError, match="storage uint8 needs it in memory: take storage same"):
        trained(kept.x, "uint8")


@pytest.mark.parametrize("ways", [{}, {"ahead": True}, {"shuffle": False}], ids=str)
def test_a_trial_of_data_held_as_csr_has_a_row(ways):
    row = trial_row(storage="csr", density=0.1, epochs=1, **DENSE, **ways)
    assert (row["status"], row["reason"], row["storage"]) == ("ok", "", "csr")
    assert [fact["op"] for fact in row["densified"]] == ["batch from csr"]


def test_a_trial_of_values_that_are_not_exact_is_unsupported():
    row = trial_row(storage="float16", density=0.1, **DENSE)
    assert row["status"] == "unsupported"
    assert "is not exact in float16" in row["reason"]
