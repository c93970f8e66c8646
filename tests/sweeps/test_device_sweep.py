"""Trials of device cuda, whole, on the host emulator; their rows; what a machine or device lacks; charts and words."""

import json
from dataclasses import replace

import pytest

from kernels import devices
from kernels.registry import format_size
from tests.support import rows as made
from tests.support.figures import drawn, said
from tests.support.sweeps import row_of_trial, swept
from tests.support.tiny_sweeps import DENSE, FUSED, OUTSIDE, spec_of, trial_row
from workbench import store
from workbench.analysis import answer_text, configurations, formatting
from workbench.sweeps import grid, run_folder, spec
from workbench.sweeps.spec import Configuration
from workbench.training import device as on_device

H200 = devices.Gpu(
    "NVIDIA H200", 141 * 10**9, bytes_cache=60 * 10**6, capability="sm_90", driver=12080, runtime=12090, cupy="14.2.0"
)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    """A machine with a GPU, as far as the sweep can tell; it runs on the emulator."""
    from tests.support.emulated_session import EmulatedSession
    from tests.support.emulator.device import emulator

    monkeypatch.setattr(devices, "probe", lambda: H200)
    monkeypatch.setattr(on_device, "CudaSession", lambda: EmulatedSession(emulator))


@pytest.mark.parametrize("setting", [FUSED, DENSE, {"format": "coo", "shuffle": False}], ids=str)
def test_a_trial_on_a_device_fills_its_row(gpu, setting):
    came = trial_row(device="cuda", epochs=1, density=0.1, optimizer="adagrad", **setting)
    assert came.pop("seconds_measured") > 0
    row = store.new_row(**came, key="k")
    assert (row["status"], row["reason"]) == ("ok", "")
    unknown = {name for name, value in row.items() if value is None}
    not_given = {"path", "labels", "columns", "kind", "positive", "reading", "model_options"}
    of_the_machine = {
        "joules_step",
        "throttled",
        "hertz",
        "environment_removed",
    }  # which not every machine has, or needs
    assert unknown - of_the_machine == OUTSIDE | not_given | {
        "hashed",
        "index_dtype",
        "bytes_needed",
        "seconds_predicted",
    }
    assert (row["gpu"], row["bytes_device_limit"]) == ("NVIDIA H200", 141 * 10**9)
    assert row["versions"]["CUDA driver"] == "12.8"
    assert row["versions"]["cupy"] == "14.2.0"
    assert row["bytes_device_held"] >= 2 * row["features"] * row["width"] * 4
    assert row["bytes_device_predicted"] >= row["bytes_device_held"] / 4
    assert 0 < row["error"] < row["error_allowed"]
    assert row["seconds_transfer"] > 0 or not row["shuffle"]


def test_what_the_device_cannot_hold_is_a_row_with_the_bytes(gpu, monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: devices.Gpu("small", 1000))
    row = trial_row(device="cuda", density=0.1, **DENSE)
    assert row["status"] == "memory"
    assert row["bytes_needed"] > 1000
    assert f"Needs {format_size(row['bytes_needed'])} of device memory" in row["reason"]
    assert "the limit is 1 kB" in row["reason"]
    assert row["bytes_limit"] == 1000


def test_an_allocation_that_fails_on_the_device_is_a_row_with_the_bytes(gpu, monkeypatch):
    def full(self):
        raise MemoryError("Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,024 bytes).")

    monkeypatch.setattr(on_device.DeviceRun, "reset", full)
    row = trial_row(device="cuda", density=0.1)
    assert (row["status"], row["bytes_needed"], row["bytes_limit"]) == ("memory", 2**33, 141 * 10**9)
    assert row["reason"].startswith("Out of device memory: Out of memory allocating 8,589,934,592 bytes")
    assert devices.bytes_asked(MemoryError()) is None


def test_a_machine_without_a_gpu_tells_why_in_each_row_and_loads_no_cupy(monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: devices.Gpu(reason="no CUDA device: cudaErrorNoDevice"))
    row = trial_row(device="cuda", density=0.1)
    assert (row["status"], row["reason"]) == ("unsupported", "No CUDA device: cudaErrorNoDevice.")
    assert store.new_row(**row, key="k")["gpu"] is None


def test_the_axis_is_validated_and_defaults_to_cpu():
    assert Configuration().device == "cpu"
    both = spec_of(candidates=({},), device=["cpu", "cuda"], density=0.1)
    assert [configuration.device for configuration in grid.expand_grid(both).configurations] == ["cpu", "cuda"]
    with pytest.raises(spec.SpecError, match=r"device = 'gpu': Unknown value 'gpu'.*Expected one of: cpu, cuda"):
        spec_of(device="gpu")


def test_a_key_is_of_its_device_and_of_the_sources_that_run_there():
    here, there = Configuration(), Configuration(device="cuda")
    assert grid.configuration_key(here) != grid.configuration_key(there)
    on_cuda = set(spec.files_of(there)) - set(spec.files_of(here))
    assert any(file.match("workbench/training/device.py") for file in on_cuda)
    assert grid.setup_of(there).device == "cuda"
    assert grid.describe_configuration(there) == f"{grid.describe_configuration(here)} device=cuda"


def test_what_does_not_train_on_cuda_is_dropped_with_the_reason_and_stays_on_cpu():
    found = grid.expand_grid(spec_of(candidates=({"format": "csc"},), device=["cpu", "cuda"], density=0.1))
    assert [configuration.device for configuration in found.configurations] == ["cpu"]
    assert next(iter(found.dropped)).startswith("On cuda no csc trains by engine ours")


def on_both() -> list[dict]:
    return [*made.sweep(), *made.sweep(device="cuda", gpu="NVIDIA H200", seed=1)]


def test_words_tell_devices_apart():
    row = made.sweep()[1]
    there = {**row, "device": "cuda"}
    assert formatting.name_configuration(there).startswith("sparse on cuda")
    assert formatting.name_configuration(row) == formatting.name_configuration({**row, "device": None})
    assert formatting.name_configuration({"format": "dense", "device": "cuda"}) == "dense on cuda"


def test_a_group_never_mixes_devices_and_names_them():
    groups = configurations.groups(store.frame(on_both()))
    assert sorted(group.label for group in groups) == ["on cpu", "on cuda"]
    for group in groups:
        assert {row["device"] for row in group.rows} == {group.settings["device"]}
    assert "on cuda" in str(answer_text(store.frame(on_both())))


def test_the_verdict_and_what_moves_it_name_a_device_once():
    quick = made.sweep((made.DENSE, replace(made.SPARSE, slope=0.05)), device="cuda")
    quick += made.sweep((replace(made.SPARSE, format="coo"),), device="cuda")  # so that this group is the largest
    text = answer_text(store.frame([*made.sweep(), *quick]))
    assert any("2 groups of settings. The answer holds for this one: on cuda." in one for one in text.caveats)


def test_memory_on_a_device_is_that_of_the_device():
    def on_the_device(row: dict) -> dict:
        """Dense takes ten times there of what it takes in the process, sparse a tenth."""
        times = 10 if row["format"] == "dense" else 0.1
        sizes = {f"bytes_device_{name}": int(times * row[f"bytes_{name}"]) for name in ("predicted", "held", "peak")}
        return {**row, **sizes}

    rows = [on_the_device(row) for row in made.sweep(device="cuda")]
    once = [row for row in rows if row["round"] == 0]
    pooled = configurations.pool_rounds(store.frame(once))
    assert pooled["bytes_peak"].tolist() == [row["bytes_device_peak"] for row in once]
    assert pooled["bytes_predicted"].tolist() == [row["bytes_device_predicted"] for row in once]
    on_cpu = store.frame(made.sweep(rounds=1))
    assert configurations.pool_rounds(on_cpu)["bytes_peak"].equals(on_cpu["bytes_peak"])
    text = answer_text(store.frame(rows)).memory
    assert text.startswith("Peak memory on the device: ")
    assert " 999 MB dense" in text or " 1 GB dense" in text


def a_tenth(row: dict) -> dict:
    """The same configuration on a device, ten times as fast."""
    times = {name: row[name] / 10 for name in ("seconds_step", "seconds_step_low", "seconds_step_high")}
    return {**row, **times, "device": "cuda", "samples": [sample / 10 for sample in row["samples"]]}


@pytest.mark.parametrize("name", ["time_density", "phases", "memory_density", "learning"])
def test_charts_of_a_device_say_so(name):
    figure, _ = drawn(name, on_both(), group="on cuda")
    assert "on cuda" in said(figure)


def test_rows_of_older_files_without_the_column_are_of_the_cpu(tmp_path):
    file = tmp_path / "trials.jsonl"
    for row in made.sweep():
        old = {name: value for name, value in row.items()
               if name not in ("device", "gpu") and not name.startswith("bytes_device_")}  # fmt: skip
        with file.open("a") as out:
            out.write(json.dumps(old) + "\n")
    frame = store.frame(store.read(file))
    assert frame["device"].isna().all()
    assert [group.settings["device"] for group in configurations.groups(frame)] == ["cpu"]
    mixed = store.frame([*store.read(file), *made.sweep(device="cuda")])
    assert sorted(group.label for group in configurations.groups(mixed)) == ["on cpu", "on cuda"]


def test_a_trial_takes_what_the_supervisor_found_and_looks_no_more(monkeypatch):
    def probe() -> devices.Gpu:
        raise AssertionError("it was told")

    monkeypatch.setattr(devices, "probe", probe)
    result = {"gpu": vars(devices.Gpu(reason="no CUDA device: none"))}
    configuration = {"dataset": "uniform", "rows": 60, "features": 30, "density": 0.1, "device": "cuda"}
    row = row_of_trial({"cell": configuration, "measure": {}, "bytes_limit": 2**30, **result})
    assert (row["status"], row["reason"]) == ("unsupported", "No CUDA device: none.")


def test_a_sweep_over_devices_measures_the_cpu_all_the_same(tmp_path):
    folder = tmp_path / "run"
    spec = spec_of(candidates=({},), density=0.1, device=["cuda", "cpu"])
    assert swept(spec, folder).counts == {"ok": 1, "unsupported": 1}
    assert {row["device"]: row["status"] for row in run_folder.read_current_records(folder)} == {
        "cpu": "ok",
        "cuda": "unsupported",
    }
