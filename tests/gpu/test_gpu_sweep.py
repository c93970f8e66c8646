"""The axis `device` of a sweep: a machine without a GPU gives rows that say so, and the sweep goes on."""

import pytest

from kernels import devices
from tests.support.sweeps import swept
from tests.support.tiny_sweeps import spec_of, trial_row
from workbench.sweeps import run_folder


def with_gpu(monkeypatch: pytest.MonkeyPatch, gpu: devices.Gpu) -> None:
    monkeypatch.setattr(devices, "probe", lambda: gpu)


def test_a_machine_without_a_gpu_gives_an_unsupported_row(monkeypatch):
    with_gpu(monkeypatch, devices.Gpu(reason="no CUDA device: cudaErrorNoDevice"))
    row = trial_row(device="cuda", density=0.1)
    assert (row["status"], row["device"]) == ("unsupported", "cuda")
    assert row["reason"] == "No CUDA device: cudaErrorNoDevice."


def test_a_sweep_over_devices_measures_the_cpu_all_the_same(tmp_path):
    folder = tmp_path / "run"
    spec = spec_of(candidates=({},), density=0.1, device=["cuda", "cpu"])
    assert swept(spec, folder).counts == {"ok": 1, "unsupported": 1}
    assert {row["device"]: row["status"] for row in run_folder.read_current_records(folder)} == {
        "cpu": "ok",
        "cuda": "unsupported",
    }
