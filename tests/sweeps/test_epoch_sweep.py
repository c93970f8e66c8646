"""The axis `execution` with epochs in one call: trials that say where time goes; invalid configurations are dropped."""

from tests.support.tiny_sweeps import DENSE, spec_of, trial_row
from workbench import store
from workbench.analysis import formatting
from workbench.sweeps import grid, spec
from workbench.sweeps.spec import Configuration


def test_a_trial_of_epochs_in_one_call_fills_its_row():
    came = trial_row(execution="epoch", epochs=2, density=0.1, rows=100)
    assert came.pop("seconds_measured") > 0
    row = store.new_row(**came, key="k")
    assert (row["status"], row["reason"], row["execution"]) == ("ok", "", "epoch")
    assert row["seconds_batches"] > 0
    assert row["seconds_forward"] == row["seconds_plan"] == row["seconds_update"] == 0
    assert 0 < row["error"] < row["error_allowed"]
    assert row["steps_timed"] % row["steps_epoch"] == 0
    assert [step for _, _, step in row["curve"]] == list(range(1, 2 * row["steps_epoch"] + 1))
    assert row["loss_last"] < row["loss_first"]


def test_configurations_that_go_into_no_call_are_dropped_with_the_reason():
    ways = ({}, DENSE, {"update": "standard"}, {"gradient": "fused"})
    found = grid.expand_grid(spec_of(candidates=ways, execution=["step", "epoch"], device=["cpu", "cuda"]))
    in_calls = [configuration for configuration in found.configurations if configuration.execution == "epoch"]
    assert [(configuration.format, configuration.update, configuration.device) for configuration in in_calls] == [
        ("csr", "lazy", "cpu"),
        ("dense", "standard", "cpu"),
        ("csr", "standard", "cpu"),
    ]
    assert not any("gradient fused" in reason for reason in found.dropped)  # measured as a row_sparse one, once


def test_the_code_of_epochs_is_part_of_the_key_and_lines_have_a_name():
    here, there = Configuration(), Configuration(execution="epoch")
    assert grid.configuration_key(here) != grid.configuration_key(there)
    names = {"/".join(file.parts[-3:]) for file in spec.files_of(there)}
    assert {"kernels/epochs/loops.py", "kernels/losses/softmax.py"} <= names
    row = {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "execution": "epoch"}
    assert formatting.name_configuration(row) == "sparse, lazy, whole epochs"
