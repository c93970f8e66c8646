"""Memory, statistics and the machine record."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from kernels import threads
from tests.support.clocks import Clock, until
from tests.support.sweeps import row_of_trial
from workbench import data, training
from workbench.measure import clock, environment, machine, memory
from workbench.sweeps import trial


def test_median_interval_covers_the_true_median_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        _, low, high = clock.median_interval(rng.exponential(size=15))
        covered += low <= np.log(2) <= high
    assert covered / 400 >= 0.94


def test_peak_follows_an_allocation_that_is_gone():
    memory.reset_peak()
    before = memory.peak_bytes()
    block = np.ones(40 * 2**20, np.uint8)
    del block
    assert memory.peak_bytes() - before > 30 * 2**20


def test_available_memory_is_positive_and_below_all():
    assert 0 < memory.available_bytes() < 2**50


@pytest.mark.parametrize(("limit", "available", "total"), [(9 * 2**20, 6 * 2**20, 9 * 2**20), ("max", None, None)])
def test_files_that_a_control_group_has_read_leave_its_memory_available(tmp_path, monkeypatch, limit, available, total):
    """They fill up any limit in time; a process was then taken for one that had no memory left."""
    machine_has = SimpleNamespace(available=2**40, total=2**41)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine_has)
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    assert (memory.available_bytes(), memory.total_bytes()) == (2**40, 2**41), "there is none"
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text(f"{9 * 2**20}\n")
    (tmp_path / "memory.stat").write_text(f"anon {2**20}\nfile 1\nactive_file {2**21}\ninactive_file {2**22}\n")
    assert (memory.available_bytes(), memory.total_bytes()) == (available or 2**40, total or 2**41)


@pytest.mark.parametrize("format", ["dense", "csr", "coo", "csc"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_predicted_bytes_agree_with_the_bytes_held(format, shuffle):
    made = data.load("uniform", rows=600, features=500, density=0.02, classes=4, seed=0, cache=False)
    gradient, update = ("dense", "standard") if format == "dense" else ("row_sparse", "lazy")
    engine = "dense" if format == "dense" else "ours"
    setup = training.Setup(
        format=format, engine=engine, gradient=gradient, update=update, shuffle=shuffle, batch_rows=60, optimizer="sgd"
    )
    run = training.Run(setup, made.x.toarray() if format == "dense" else made.x, made.y, 4)
    list(run.events(1))
    parts = memory.predicted_training_bytes(
        format=format, rows=600, features=500, nnz=made.x.nnz, batch_rows=60, states=0,
        tables=[memory.Table(500, 4, True, gradient)], update=update, dtype="float32", active=352, shuffle=shuffle,
    )  # fmt: skip
    predicted = sum(parts.values())
    passing = parts["batch"] * shuffle + (parts["gradient"] if gradient == "row_sparse" else 0)
    assert predicted - passing == pytest.approx(run.bytes_held, rel=0.1)


def test_what_a_first_step_leaves_in_memory_is_not_the_trainings(monkeypatch):
    left, real = [], trial.check_step

    def check_step(run, *noted):
        if not left:  # as code does that is compiled for the first step
            left.append(np.ones(8 * 2**20))
        return real(run, *noted)

    monkeypatch.setattr(trial, "check_step", check_step)
    configuration = {"dataset": "uniform", "rows": 60, "features": 30, "batch_rows": 20}
    row = row_of_trial({"cell": configuration, "measure": {"trial_seconds": 0.0}, "bytes_limit": 2**34})
    assert (row["status"], left[0].nbytes) == ("ok", 2**26)
    assert row["bytes_peak"] < 2**25


def test_the_machine_record_is_complete_and_its_id_is_a_folder_name():
    record = machine.describe_machine()
    assert record["cores"] >= 1
    assert record["versions"]["numpy"] == np.__version__
    assert record["numba_threading_layer"] in record["numba_threading_layers"]
    assert record["id"] == machine.machine_id()
    assert record["id"].replace("-", "").isalnum()


def test_variables_that_hold_blas_back_are_named_and_kept_from_a_sweep():
    pins = {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
    assert environment.distorting_variables(pins | {"HOME": "/h"}) == pins
    own = environment.measuring_environment(pins | {"HOME": "/h"}, stopped={"profile": "every 10 ms"})
    assert own.items() >= ({"HOME": "/h"} | environment.OWN).items()
    assert not own.keys() & pins.keys()
    assert environment.removed_variables(own) == pins | {"profile": "every 10 ms"}
    assert environment.measuring_environment(own) == own, "the next process learns it, too"
    assert environment.measuring_environment({"HOME": "/h"}) == {"HOME": "/h"} | environment.OWN


def test_what_our_kernels_set_for_themselves_holds_nothing_back():
    ours = {"GOMP_SPINCOUNT": threads.SPIN_COUNT}
    assert environment.distorting_variables(ours) == {}
    assert environment.measuring_environment(ours) == ours | environment.OWN
    assert environment.distorting_variables({"GOMP_SPINCOUNT": "300000"}) == {"GOMP_SPINCOUNT": "300000"}


@pytest.mark.parametrize(("busy", "own", "share"), [(3.0, 1.0, 0.5), (1.0, 1.0, 0.0), (0.9, 1.0, 0.0), (9.0, 1.0, 1.0)])
def test_other_programs_have_what_the_cores_did_and_this_one_did_not(busy, own, share, monkeypatch):
    times = SimpleNamespace(user=50.0, nice=3.0, system=7.0, steal=1.0)
    process, wall = Clock(), Clock()
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda: times)
    monkeypatch.setattr(machine, "time", SimpleNamespace(process_time=process, perf_counter=wall))
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    watch = machine.OtherPrograms()
    times.user, times.nice, times.system, times.steal = (
        before + busy / 4 for before in (times.user, times.nice, times.system, times.steal)
    )
    process.now, wall.now = own, 2.0
    assert watch.share() == pytest.approx(share)


def test_what_other_programs_do_in_a_pause_is_left_out(monkeypatch):
    times, process, wall = SimpleNamespace(user=50.0), Clock(), Clock()
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda: times)
    monkeypatch.setattr(machine, "time", SimpleNamespace(process_time=process, perf_counter=wall))
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    watch = machine.OtherPrograms()

    def passed(seconds, busy, own):
        times.user, process.now, wall.now = times.user + busy, process.now + own, wall.now + seconds

    for _ in range(2):
        passed(1.0, busy=1.5, own=1.0)
        watch.pause()
        passed(10.0, busy=20.0, own=0.5)
        watch.resume()
    assert watch.share() == pytest.approx(0.25)


def test_the_share_of_other_programs_is_one_of_all_cores_on_any_system():
    assert 0 <= machine.OtherPrograms().share() <= 1


def test_a_state_of_one_number_a_row_is_predicted_as_such():
    shared = {
        "format": "csr",
        "rows": 600,
        "features": 500,
        "nnz": 6000,
        "tables": [memory.Table(500, 4, True, "fused")],
        "batch_rows": 60,
        "active": 350,
        "states": 1,
        "update": "lazy",
        "dtype": "float32",
        "shuffle": True,
    }
    assert memory.predicted_training_bytes(**shared)["states"] == 500 * 4 * 4
    assert memory.predicted_training_bytes(**shared, states_by_row=True)["states"] == 500 * 4


@pytest.mark.skipif(
    memory.counted_memory_kind() != "anonymous", reason="the system does not tell what is a process's own"
)
@pytest.mark.skipif(not memory.asked_bytes(), reason="the system does not tell what was asked for")
def test_more_memory_than_allowed_is_refused_before_it_is_touched_and_the_limit_ends():
    with memory.limit_memory(memory.asked_bytes() + 2**26):
        np.ones(2**22, np.uint8)
        with pytest.raises(MemoryError):  # more than any memory that is given back meanwhile makes room for
            np.empty(2**30, np.uint8)
    with memory.limit_memory(None):
        np.empty(2**30, np.uint8)
    with pytest.raises(MemoryError, match="before it began; the limit is 1000"), memory.limit_memory(1000):
        pass


def test_pages_of_a_mapped_file_are_resident_and_not_owned(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        for _ in range(40):
            file.write(b"x" * 2**20)
    memory.reset_peak()
    owned, resident = memory.owned_bytes(), memory.resident_bytes()
    mapped = np.memmap(tmp_path / "large", np.uint8, mode="r")
    assert mapped[::512].sum() == ord("x") * mapped[::512].size
    assert memory.resident_bytes() - resident > 30 * 2**20
    assert memory.peak_bytes() - resident > 30 * 2**20
    assert memory.owned_bytes() - owned < 8 * 2**20
    assert memory.peak_owned_bytes() - owned < 8 * 2**20
    block = np.ones(40 * 2**20, np.uint8)
    assert memory.owned_bytes() - owned > 30 * 2**20
    del block
    assert memory.peak_owned_bytes() - owned > 30 * 2**20


def test_where_the_system_does_not_tell_all_that_is_resident_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    assert memory.counted_memory_kind() == "resident"
    assert memory.owned_bytes() == pytest.approx(memory.resident_bytes(), rel=0.05)
    assert memory.peak_owned_bytes() >= memory.owned_bytes()


def test_the_memory_of_another_process_is_its_own_too():
    process = subprocess.Popen([sys.executable, "-c", "x = bytearray(b'x') * 2**26; input()"], stdin=subprocess.PIPE)
    try:
        until(lambda: memory.owned_bytes(process.pid) >= 2**26)
        assert 2**26 <= memory.owned_bytes(process.pid) < 2**27
    finally:
        process.communicate(b"\n")
