"""What the machine does beside a trial: counters, null where there are none; and rates of what a core does."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kernels
from kernels import Sizes
from workbench.measure import bandwidth
from workbench.measure.bandwidth import Bandwidth, Limits
from workbench.measure.machine import Meters


def machine(folder, microjoules=5_000_000, throttled=3, kilohertz=2_000_000):
    """Files of a system with one package and two cores."""
    for place, value in {
        "powercap/intel-rapl:0/energy_uj": microjoules,
        "powercap/intel-rapl:0:0/energy_uj": 1,
        "cores/cpu0/thermal_throttle/core_throttle_count": throttled,
        "cores/cpu0/cpufreq/scaling_cur_freq": kilohertz,
        "cores/cpu1/cpufreq/scaling_cur_freq": 3 * kilohertz,
    }.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    return {"powercap": folder / "powercap", "cores": folder / "cores"}


def test_energy_throttling_and_frequency_are_what_the_system_counts_meanwhile(tmp_path):
    meters = Meters(**machine(tmp_path))
    machine(tmp_path, microjoules=9_000_000, throttled=5)
    found = meters.columns(steps=8)
    assert (found["joules_step"], found["meter"]) == (0.5, "RAPL, the processor packages")
    assert (found["throttled"], found["hertz"]) == (2, 4e9)
    assert found["bytes_swapped"] >= 0


def test_what_the_system_counts_in_a_pause_is_left_out(tmp_path):
    meters = Meters(**machine(tmp_path))
    machine(tmp_path, microjoules=6_000_000, throttled=4)
    meters.pause()
    machine(tmp_path, microjoules=50_000_000, throttled=40)
    meters.resume()
    machine(tmp_path, microjoules=52_000_000, throttled=42)
    found = meters.columns(steps=3)
    assert (found["joules_step"], found["throttled"]) == (1.0, 3)


def test_a_counter_that_began_anew_and_a_machine_without_one_have_no_number(tmp_path):
    meters = Meters(**machine(tmp_path))
    machine(tmp_path, microjoules=1)
    assert meters.columns(8)["joules_step"] is None
    bare = Meters(powercap=tmp_path / "none", cores=tmp_path / "none").columns(8)
    assert {name: bare[name] for name in ("joules_step", "meter", "throttled", "hertz")} == {
        "joules_step": None,
        "meter": "no meter",
        "throttled": None,
        "hertz": None,
    }


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "not loaded"])
def test_the_device_is_asked_only_where_its_library_is_loaded(monkeypatch, loaded):
    millijoules = iter((1000, 3000))
    library = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlDeviceGetHandleByIndex=lambda place: place,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(millijoules),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library if loaded else None)
    found = Meters("cuda").columns(4)
    assert (found["joules_step"], found["meter"]) == ((0.5, "NVML, the device") if loaded else (None, "no meter"))


SIZES = Sizes(R=100, z=1000, D=400, N=17, U=300)


def test_every_kind_has_a_rate():
    found = dict(bandwidth.rates(seconds=1e-4))
    assert set(found) == {bandwidth.CALL, *bandwidth.LOOPS}
    assert min(found.values()) > 0


def test_loops_do_what_their_names_say():
    random = np.random.default_rng(1)
    places, x, y = random.integers(0, 8, 8, np.int32), -random.random(8, np.float32), np.zeros(8, np.float32)
    for kind, expected in (("exp", np.exp(x)), ("log", np.log1p(-x)), ("pass", x / 2), ("row", x * x[places])):
        bandwidth.LOOPS[kind](places, np.arange(9, dtype=np.int32), x, y)
        np.testing.assert_allclose(y, expected, rtol=1e-6)
    bandwidth.LOOPS["entry"](places, np.arange(9, dtype=np.int32), x, y)
    assert y[0] == pytest.approx(x @ x[places], rel=1e-5)
    counts = np.zeros(9, np.int32)
    bandwidth.LOOPS["place"](places, counts, x, np.zeros(bandwidth.NUMBERS, np.float32))
    np.testing.assert_array_equal(counts[:8], np.bincount(places, minlength=8))
    sums = np.array([1, 0, 1, 1], np.int32)
    bandwidth.LOOPS["scan"](places, sums, x, y)
    assert sums.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("name", [name for name in kernels.names() if "." not in name])
def test_a_kernel_names_kinds_that_are_measured(name):
    work = dict(kernels.get(name).cost(SIZES).work)
    assert set(work) <= set(bandwidth.LOOPS)
    assert all(count > 0 for count in work.values())


def test_losses_gradients_and_conversions_count_more_than_bytes():
    for name in ("softmax", "logistic", "squared", "csr_t_dense", "adam_fused", "coo_to_csr", "csr_to_csc"):
        assert kernels.get(name).cost(SIZES).work
    assert dict(kernels.get("csr_t_dense").cost(SIZES).work) == {"entry": 2000, "row": 600}  # two lines a row of 17


def test_the_bound_is_what_takes_longest():
    stream = Bandwidth("read", 1000, 0, 2, 1e9)
    cores = [Bandwidth("exp", 4096, 0, 2, 4e6), Bandwidth("call", 4096, 0, 2, 4e6), Bandwidth("exp", 4096, 0, 1, 4e9)]
    row = {"bytes_compulsory": 1e6, "bytes_gather": 0, "bytes_table": 0, "bytes_row": 4}
    for measured, work, expected in (
        ([stream], {"exp": 4000}, (1e-3, "stream")),
        ([stream, *cores], {"exp": 1000}, (1e-3, "stream")),
        ([stream, *cores], {"exp": 4000}, (2.001e-3, "instructions")),
    ):
        seconds, by = Limits(measured, threads=2).bound(work=work, **row)
        assert (pytest.approx(seconds), by) == expected
