"""Trainings on rows that are read from disk as they come: the same numbers as from memory, in a share of the memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.stored_sets import drawn, stored
from tests.support.sweeps import row_of_trial
from workbench import data, training
from workbench.sweeps import problem
from workbench.sweeps.spec import Configuration
from workbench.training.device import arrays_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("stored") / "X.sparse", drawn(500), shuffle=0)


def losses(x, y, epochs=2, **settings):
    run = training.make_run(training.Setup(model="softmax", batch_rows=64, **settings), x, y, 3)
    return run, [event.loss for event in run.events(epochs)]


@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_training_in_stored_order_is_that_of_the_same_rows_in_memory(kept, format):
    engine, gradient, update = ("dense", "dense", "standard") if format == "dense" else ("ours", "row_sparse", "lazy")
    settings = {"shuffle": False, "format": format, "engine": engine, "gradient": gradient, "update": update}
    run, came = losses(kept.x, kept.y, **settings)
    held = kept.x.read(0, kept.rows)
    other, expected = losses(held.toarray() if format == "dense" else held, kept.y, **settings)
    assert came == expected
    np.testing.assert_array_equal(run.weights, other.weights)
    assert run.quality(kept.x, kept.y) == other.quality(held, kept.y)


@pytest.mark.parametrize("ahead", [False, True])
def test_batches_of_stored_rows_are_never_kept(kept, ahead):
    run, came = losses(kept.x, kept.y, shuffle=False, ahead=ahead)
    assert run.kept == {}
    assert len(came) == 16
    held, _ = losses(kept.x.read(0, kept.rows), kept.y, shuffle=False, ahead=ahead)
    assert len(held.kept) == 8
    assert arrays_of(held.kept[0].x)[0].size == 65


def test_epochs_in_one_call_are_refused_for_rows_that_stay_on_disk(kept):
    with pytest.raises(data.DataError, match="epochs in one call read rows in memory: execution step, or load it"):
        losses(kept.x, kept.y, execution="epoch")


def test_shuffled_training_learns_as_it_does_from_memory(kept):
    held = kept.x.read(0, kept.rows)
    (_, stored_losses), (_, held_losses) = (losses(x, kept.y, epochs=6, shuffle=True) for x in (kept.x, held))
    assert stored_losses[-1] < 0.8 * stored_losses[0]
    assert np.mean(stored_losses[-8:]) == pytest.approx(np.mean(held_losses[-8:]), rel=0.1)


def configuration(kept, **settings):
    return Configuration(**{"dataset": "sparse", "path": kept.x.place, "batch_rows": 64, "epochs": 1, **settings})


def row_of(one):
    return row_of_trial({"cell": one.model_dump(), "measure": {"trial_seconds": 0.0}, "bytes_limit": 2**34})


def test_the_last_rows_are_held_out_and_nothing_is_read_before_it_is_trained_on(kept):
    made = problem.make_problem(configuration(kept))
    assert isinstance(made.x, data.StoredRows)
    assert (made.x.shape, made.x_held_out.shape, made.rows_total) == ((400, 40), (100, 40), 500)
    assert np.array_equal(np.concatenate([made.y, made.y_held_out]), kept.y)
    fewer = problem.make_problem(configuration(kept, rows=100, dtype="float64"))
    assert (fewer.x.shape, fewer.x.dtype) == ((80, 40), np.float64)


@pytest.mark.parametrize("settings", [{}, {"reading": "whole=true"}, {"shuffle": False}])
def test_a_trial_trains_on_a_folder_of_stored_rows(kept, settings):
    row = row_of(configuration(kept, **settings))
    assert (row["status"], row["reason"]) == ("ok", "")
    assert (row["rows_trained"], row["rows_total"], row["features"]) == (400, 500, 40)
    assert row["density_measured"] == pytest.approx(kept.density, rel=0.1)
    assert row["quality"] > 0.3
    assert row["error"] <= row["error_allowed"]
    assert row["row_length_cv"] > 0.1
    assert row["memory_counted"] in ("anonymous", "resident")


def test_what_needs_the_rows_in_memory_is_refused_with_what_to_do(kept):
    for settings in ({"density": 0.01}, {"features": 10}):
        row = row_of(configuration(kept, **settings))
        assert row["status"] == "unsupported"
        assert "reading: whole=true" in row["reason"]
        assert row_of(configuration(kept, reading="whole=true", **settings))["status"] == "ok"


def test_dense_batches_are_made_of_stored_rows_and_told(kept):
    row = row_of(configuration(kept, format="dense", engine="dense", gradient="dense", update="standard"))
    assert row["status"] == "ok"
    assert row["densified"][0]["op"] == "batch from csr"


def test_predicted_bytes_of_stored_rows_are_those_of_the_buffer(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn(40_000, 400), shuffle=0)
    rows = [row_of(configuration(kept, reading=reading, epochs=0)) for reading in (None, "whole=true")]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert rows[0]["bytes_predicted"] < 0.6 * rows[1]["bytes_predicted"]
    assert rows[0]["bytes_held"] < 0.6 * rows[1]["bytes_held"]
    assert rows[0]["bytes_predicted"] == pytest.approx(rows[0]["bytes_held"], rel=0.3)


LARGER = """
import json, resource, sys
import numpy as np
from tests.support.small_sets import csr
from tests.support.stored_sets import blocks
from workbench import data, training
from workbench.measure import memory

path, rows, each, limit = sys.argv[1], *map(int, sys.argv[2:])

def some(seed):
    random = np.random.default_rng(seed)
    for _ in range(rows // 2000):
        columns = random.integers(0, 1000, (2000, each)) + 1000 * np.arange(each)
        labels = (columns[:, 0] < 500).astype(float)
        x = csr(np.arange(0, 2000 * each + 1, each), columns.ravel(), random.random(2000 * each), (2000, 1000 * each))
        yield x, labels

data.convert(blocks(some(0)), path, shuffle=0)
kept = data.load("sparse", path=path)
y = data.targets(kept, "binary")
setup = training.Setup(model="logistic", batch_rows=500)
warm = training.make_run(setup, data.rows_between(kept, 0, 5000).x, y[:5000], 1)
list(warm.events(1))
del warm
memory.reset_peak()
owned, resident = memory.owned_bytes(), memory.resident_bytes()
size = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmData"))) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (size + limit, resource.RLIM_INFINITY))
run, peak = training.make_run(setup, kept.x, y, 1), 0
for event in run.events(2):
    if event.step % 10 == 0:
        peak = max(peak, memory.owned_bytes() - owned)
result = {"sampled": peak, "peak": memory.peak_owned_bytes() - owned, "resident": memory.peak_bytes() - resident}
try:
    data.load("sparse", path=path, whole=True)
    result["whole"] = "fits"
except (data.DataError, MemoryError) as error:
    result["whole"] = type(error).__name__
print(json.dumps(result | {"loss": event.loss, "steps": event.step}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit and the count of memory are Linux's")
def test_a_set_four_times_the_memory_allowed_is_trained_on(tmp_path):
    rows, each, limit = 148_000, 100, 28 * 2**20
    command = [sys.executable, "-c", LARGER, str(tmp_path / "X.sparse"), *map(str, (rows, each, limit))]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    result = json.loads(ended.stdout)
    size = sum(file.stat().st_size for file in (tmp_path / "X.sparse").rglob("*.npy"))
    assert size > 4 * limit
    assert result["whole"].endswith("MemoryError"), "the limit is none"
    assert result["steps"] == 592
    assert result["loss"] < 0.3
    assert 0 < result["sampled"] <= result["peak"] + 2**20
    assert result["peak"] < limit
    assert result["resident"] < limit, "files are read, so that no pages of theirs are the process's"
