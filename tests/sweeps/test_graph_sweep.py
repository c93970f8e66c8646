"""The axis `execution` of a sweep: trials whose step is one graph, rows that say why there is none, charts, words."""

import json
import threading

import pytest

from tests.support import rows as made
from tests.support.figures import drawn, said
from tests.support.sweeps import swept
from tests.support.tiny_sweeps import DENSE, FUSED, spec_of, trial_row
from tests.sweeps.test_device_sweep import gpu  # noqa: F401 - the fixture is used by being named
from workbench import plots, store
from workbench.analysis import breakeven, configurations, formatting
from workbench.analysis.compare import trained_worse
from workbench.command import training
from workbench.sweeps import grid, run_folder, spec, trial
from workbench.sweeps.spec import Configuration

GRAPH = {**FUSED, "execution": "cuda_graph"}


@pytest.mark.parametrize("format", ["csr", "dense"])
@pytest.mark.parametrize("setting", [{}, {"shuffle": False}, {"ahead": True, "optimizer": "adagrad"}], ids=str)
def test_a_trial_in_one_graph_fills_its_row(gpu, setting, format):  # noqa: F811
    way = {"csr": FUSED, "dense": DENSE}[format] | {"execution": "cuda_graph"}
    came = trial_row(device="cuda", epochs=1, density=0.1, **way, **setting)
    assert came.pop("seconds_measured") > 0
    row = store.new_row(**came, key="k")
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["execution"] == "cuda_graph"
    assert row["seconds_graph"] > 0
    assert row["seconds_forward"] == row["seconds_loss"] == row["seconds_update"] == 0
    assert row["seconds_transfer"] > 0
    assert 0 < row["error"] < row["error_allowed"]
    assert row["bytes_device_held"] >= 2 * row["features"] * row["width"] * 4
    assert row["bytes_device_peak"] > 0


def test_batches_of_timed_steps_are_no_longer_prepared_when_the_epochs_are_trained(gpu, monkeypatch):  # noqa: F811
    train, loaders = trial._Trial.train, []

    def watched(self, *given):
        loaders.append([thread.name for thread in threading.enumerate() if thread.name == "loader"])
        train(self, *given)

    monkeypatch.setattr(trial._Trial, "train", watched)
    assert trial_row(device="cuda", epochs=1, density=0.1, ahead=True, **GRAPH)["status"] == "ok"
    assert loaders == [[]]


def test_kernel_by_kernel_no_phase_is_a_graph():
    row = trial_row(density=0.1)
    assert (row["execution"], row["seconds_graph"]) == ("step", 0.0)


def test_a_graph_on_the_cpu_is_a_row_that_says_why_and_the_sweep_goes_on(tmp_path):
    both = spec_of(candidates=(FUSED,), density=0.1, execution=["cuda_graph", "step"])
    folder = tmp_path / "run"
    assert swept(both, folder).counts == {"ok": 1, "unsupported": 1}
    rows = {row["execution"]: row for row in run_folder.read_current_records(folder)}
    assert rows["step"]["status"] == "ok"
    assert rows["cuda_graph"]["status"] == "unsupported"
    assert rows["cuda_graph"]["reason"] == "A step in one graph runs on a CUDA device; on cpu execution is step."


def test_what_is_no_graph_anywhere_is_dropped_with_the_reason():
    candidates = FUSED, DENSE, {**FUSED, "format": "coo"}
    found = grid.expand_grid(spec_of(candidates=candidates, execution=["step", "cuda_graph"], device=["cpu", "cuda"]))
    assert len(found.configurations) == 4 + 4 + 2
    assert {
        configuration.format for configuration in found.configurations if configuration.execution == "cuda_graph"
    } == {
        "csr",
        "dense",
    }
    assert found.dropped == {"A step in one graph has format csr or dense; with format coo execution is step.": 2}


def test_the_axis_is_validated_and_is_part_of_key_and_name():
    with pytest.raises(
        spec.SpecError, match=r"execution = 'magic': Unknown value 'magic'. Expected one of: step, cuda_graph"
    ):
        spec_of(execution="magic")
    here, there = Configuration(device="cuda", **FUSED), Configuration(device="cuda", **GRAPH)
    assert grid.configuration_key(here) != grid.configuration_key(there)
    assert any(file.match("kernels/gpu/slots.py") for file in spec.files_of(there))
    assert grid.setup_of(there).execution == "cuda_graph"
    assert grid.describe_configuration(there) == f"{grid.describe_configuration(here)} execution=cuda_graph"


def test_the_command_line_refuses_a_graph_on_the_cpu():
    with pytest.raises(spec.SpecError, match="A step in one graph runs on a CUDA device"):
        training.configuration_of({"execution": "cuda_graph"})
    assert training.configuration_of({"execution": "cuda_graph", "device": "cuda"}).gradient == "fused"


def with_graphs() -> list[dict]:
    """Rows of a sweep on a device: dense, kernel by kernel, and the same in one graph, a little faster."""
    law = made.Law(gradient="fused", update="lazy")
    shared = {"device": "cuda", "gpu": "NVIDIA H200"}
    graph = made.sweep(
        laws=(made.Law(gradient="fused", update="lazy", fixed=5e-5),), seed=1, **shared, execution="cuda_graph"
    )
    phases = {f"seconds_{name}": 0.0 for name in ("forward", "loss", "gradient", "update")}
    graph = [row | phases | {"seconds_graph": 0.8 * row["seconds_step"]} for row in graph]
    return [*made.sweep(laws=(made.DENSE, law), **shared), *graph]


def test_words_and_lines_tell_a_graph_from_kernels():
    row = with_graphs()[-1]
    assert formatting.name_configuration(row) == "sparse on cuda, lazy, fused gradient, CUDA graph"
    assert formatting.name_configuration(row | {"execution": None}) == formatting.name_configuration(
        row | {"execution": "step"}
    )


def test_both_launches_are_lines_of_one_group_with_break_evens_of_their_own():
    frame = store.frame(with_graphs())
    (group,) = configurations.groups(frame)
    assert len(configurations.sparse_lines(group.rows)) == 2
    evens = breakeven(frame)
    assert [even.line["execution"] for even in evens] == ["step", "cuda_graph"]
    assert len({formatting.name_configuration(even.settings) for even in evens}) == 2
    assert (evens[1].low, evens[1].high) != (evens[0].low, evens[0].high)


def test_a_lazy_graph_is_compared_with_the_standard_update_of_the_same_kernels():
    shared = {"densities": (0.1,), "device": "cuda", "rounds": 1}
    standard = made.sweep(laws=(made.DENSE, made.Law(gradient="fused")), **shared)
    worse = made.sweep(laws=(made.Law(gradient="fused", update="lazy", quality=0.5),), **shared, execution="cuda_graph")
    ((lazy, fair),) = trained_worse([*standard, *worse])
    assert (lazy["execution"], fair["format"], fair["update"]) == ("cuda_graph", "csr", "standard")


@pytest.mark.parametrize("name", ["time_density", "phases", "memory_density", "learning"])
def test_charts_name_the_graph(name):
    figure, _ = drawn(name, with_graphs(), **({"candidates": "named"} if "density" in name else {}))
    assert "graph" in said(figure)
    if name == "phases":
        assert "graph" in plots.table(name, store.frame(with_graphs())).columns


def test_rows_of_older_files_without_the_columns_are_of_kernels(tmp_path):
    file = tmp_path / "trials.jsonl"
    with file.open("w") as out:
        for row in made.sweep():
            old = {name: value for name, value in row.items() if name not in ("execution", "seconds_graph")}
            out.write(json.dumps(old) + "\n")
    rows = store.read(file)
    assert {row["execution"] for row in rows} == {None}
    frame = store.frame(rows)
    assert {row["execution"] for group in configurations.groups(frame) for row in group.rows} == {"step"}
    (one,), (other,) = breakeven(frame), breakeven(store.frame(made.sweep()))
    assert one.density == other.density
