"""Files that version 0.2.0 wrote are read: records, a run folder, a spec; the checkpoint of a module is refused."""

import shutil
from pathlib import Path

import pytest

from benchmarks import tables
from workbench import store
from workbench.analysis import configurations, pool
from workbench.formats import FormatError
from workbench.module import load_model
from workbench.sweeps import run_folder, spec

SAMPLES = Path(__file__).parent / "stored_0_2_0"
DENSITIES = [0.05, 0.3]


@pytest.mark.parametrize(("table", "file"), [(store.TRIALS, "trials.jsonl"), (tables.KERNELS, "bench.jsonl")])
def test_records_are_read_with_every_column(table, file):
    rows = table.read(SAMPLES / file)
    assert len(rows) == 2
    assert all(list(row) == list(table.columns) for row in rows)
    assert all(row["status"] == "ok" for row in rows)


def test_a_run_folder_is_read(tmp_path):
    folder = shutil.copytree(SAMPLES / "run", tmp_path / "run")
    assert run_folder.read_progress(folder).state == "finished"
    rows = run_folder.read_all_records(folder)
    assert len(rows) == 4
    assert {(row["format"], row["engine"], row["gradient"], row["update"]) for row in rows} == {
        ("csr", "ours", "fused", "lazy"),
        ("dense", "dense", "dense", "standard"),
    }
    pooled = pool.pool_rounds(store.TRIALS.frame(rows))
    group = configurations.groups(store.TRIALS.frame(rows))[0]
    assert len(group.rows) == len(pooled)
    assert sorted({row["density"] for row in group.rows}) == DENSITIES


def test_the_spec_of_a_run_is_read_as_the_typed_one(tmp_path):
    folder = shutil.copytree(SAMPLES / "run", tmp_path / "run")
    stored = run_folder.read_spec(folder)
    typed = spec.load_spec(SAMPLES / "spec.toml")
    assert stored.axes == typed.axes
    assert stored.candidates == typed.candidates
    assert stored.axes["density"] == tuple(DENSITIES)


def test_a_checkpoint_of_an_older_version_is_refused_by_name():
    with pytest.raises(FormatError, match=r"module\.npz .* it has version 1; this program reads version 2"):
        load_model(SAMPLES / "module.npz")
