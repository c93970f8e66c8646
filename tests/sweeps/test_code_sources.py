"""A record answers a configuration while the code that computed it is the same: no file less, and no unused one."""

import pytest

from tests.support.edits import Copy
from workbench.measure import machine
from workbench.sweeps import grid, spec
from workbench.sweeps.spec import Configuration

CELLS = {
    "csr ours fused lazy": Configuration(gradient="fused", update="lazy", optimizer="sgd"),
    "vendor": Configuration(engine="vendor", gradient="dense", update="standard"),
    "dense": Configuration(format="dense", engine="dense", gradient="dense", update="standard"),
    "svmlight": Configuration(dataset="svmlight", path="rows.svm", model="logistic"),
    "factorization machine": Configuration(model="factorization_machine", dataset="uniform"),
    "cuda": Configuration(device="cuda", gradient="fused", update="lazy", intercept=False),
}


def hashes(code):
    return {name: spec.source_hash(configuration, code) for name, configuration in CELLS.items()}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"), hashes)


@pytest.fixture(scope="module")
def used(copy):
    return {name: set(spec.files_of(configuration, copy.code)) for name, configuration in CELLS.items()}


def test_each_file_that_computes_a_configuration_is_in_its_hash(copy, used):
    for file in sorted(set().union(*used.values())):
        assert copy.changed(file) == {name for name, files in used.items() if file in files}, file


def test_no_other_file_is(copy, used):
    for name, files in used.items():
        others = copy.files() - files
        assert len(others) > 100
        assert name not in copy.changed(*others)


def names(files, copy):
    return {file.relative_to(copy.folder).as_posix() for file in files}


def test_the_files_of_configurations_on_the_cpu_are_those_that_compute_them(copy, used):
    for name, files in used.items():
        assert names(files, copy) >= {
            *(f"kernels/vector/{file}.py" for file in ("lanes", "gather", "tiles", "operands")),
            *("kernels/plan.py", "kernels/threads.py", "workbench/data/batches/feed.py"),
            *(
                "workbench/data/batches/in_memory.py",
                "workbench/data/dataset/selection.py",
                "workbench/training/run.py",
            ),
            *("workbench/sweeps/trial.py", "workbench/sweeps/problem.py", "workbench/measure/clock.py"),
        }, name


def test_what_cannot_change_a_number_is_in_no_hash(copy, used):
    rooms = ("plots", "reports", "panels", "command", "analysis", "store", "module", "bench")
    for name, files in used.items():
        assert not [
            file for file in names(files, copy) if file.startswith(tuple(f"workbench/{room}" for room in rooms))
        ]
        assert "workbench/sweeps/runner.py" not in names(files, copy), name


def of(folder, files, copy):
    """Names of the files of a folder, but for its `__init__`."""
    found = {name for name in names(files, copy) if name.startswith(f"{folder}/")}
    return {name.removeprefix(f"{folder}/").removesuffix(".py") for name in found} - {"__init__"}


def test_entries_of_registries_are_those_that_the_configuration_names(copy, used):
    fused = used["csr ours fused lazy"]
    assert of("kernels/losses", fused, copy) == {"softmax"}
    shared = {"two_fields", "nodes", "patterns", "scaling"}  # which are no models
    assert of("workbench/models", fused, copy) == {"softmax", *shared}
    assert {"sgd"} == of("kernels/updates", fused, copy) - {"closed_form", "closed_form_pair", "square_norm"}
    assert "adam" not in of("workbench/optimizers", fused, copy)
    assert "stdlib" in of("workbench/data/sources", fused, copy)
    assert not of("workbench/data/sources", fused, copy) & {"svmlight", "npz", "uniform", "power_law"}
    assert "scipy_sparse" not in of("kernels/vendor", fused, copy)
    assert "scipy_sparse" in of("kernels/vendor", used["vendor"], copy)
    assert "blas" in of("kernels/vendor", used["dense"], copy)
    assert "svmlight" in of("workbench/data/sources", used["svmlight"], copy)
    assert of("kernels/losses", used["svmlight"], copy) == {"logistic"}
    assert of("workbench/models", used["factorization machine"], copy) - shared == {"factorization_machine"}
    assert "synthetic" in of("workbench/data", used["factorization machine"], copy)


def test_what_is_compiled_for_a_device_is_in_the_hash_of_its_configurations_alone(copy, used):
    on_cuda = names(used["cuda"], copy)
    assert {
        *("kernels/products/csr_dense.cu", "kernels/gpu/device.cuh", "kernels/gpu/update.cu", "kernels/gpu/slots.py"),
        *("kernels/losses/softmax.cu", "workbench/training/device.py"),
    } <= on_cuda
    for name in set(CELLS) - {"cuda"}:
        assert not [file for file in names(used[name], copy) if file.endswith((".cu", ".cuh"))]
        assert "workbench/training/device.py" not in names(used[name], copy)


def test_the_search_can_fail(copy):
    """The twin: a hand-kept list without a file does not follow it."""
    lanes = copy.folder / "kernels/vector/lanes.py"
    assert copy.changed(lanes) == set(CELLS)
    listed = {"workbench.sweeps.trial", "kernels.products.csr_dense"}
    fewer = copy.code.digest(listed, apart={"kernels.vector.lanes"})
    assert lanes not in copy.code.files(listed, apart={"kernels.vector.lanes"})
    assert fewer != copy.code.digest(listed)


def test_a_key_is_of_what_the_code_runs_on(monkeypatch):
    before = grid.configuration_key(Configuration())
    assert grid.configuration_key(Configuration()) == before
    monkeypatch.setattr(machine, "describe_stack", lambda: {"numpy": "0"})
    assert grid.configuration_key(Configuration()) != before


def test_a_thousand_keys_read_each_file_once(monkeypatch):
    grid.configuration_key(Configuration())
    reads = []
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda file: reads.append(file) or b"")
    assert len({grid.configuration_key(Configuration(seed=seed)) for seed in range(1000)}) == 1000
    assert not reads
