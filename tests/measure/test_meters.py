"""What the machine does beside a trial: counters of the system's files, and null where there are none."""

import sys
from types import SimpleNamespace

import pytest

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
