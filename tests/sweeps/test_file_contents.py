"""Records belong to the content of a data file: a changed one is measured anew, and ends the sweep that runs."""

import os

import pytest

from tests.support.sweeps import swept
from tests.support.tiny_sweeps import QUICK
from workbench import data, store
from workbench.data import content
from workbench.panels.state import plan
from workbench.sweeps import grid, run_folder
from workbench.sweeps.problem import Contents, DataChangedError
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.spec import Configuration, Spec, validate_spec


def write(path, entries: int = 2) -> str:
    lines = (
        " ".join([str(row % 2), *(f"{1 + row % 5 + 3 * entry}:1" for entry in range(entries))]) for row in range(40)
    )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def spec_of(path: str, **axes) -> Spec:
    axes = {"dataset": "svmlight", "path": path, "model": "logistic", "batch_rows": 20, "threads": 1, **axes}
    return validate_spec({"name": "own", "axes": axes, "measure": QUICK})


def configuration_of(path: str) -> Configuration:
    return Configuration(dataset="svmlight", path=path, model="logistic")


def test_a_key_is_of_the_content_of_the_file(tmp_path):
    path = write(tmp_path / "d.txt")
    before = grid.configuration_key(configuration_of(path))
    os.utime(path, (1, 1))
    assert grid.configuration_key(configuration_of(path)) == before
    write(tmp_path / "d.txt", 5)
    assert grid.configuration_key(configuration_of(path)) != before
    assert grid.configuration_key(Configuration()) == grid.configuration_key(Configuration(), Contents())


def test_a_key_is_of_the_content_of_a_file_of_labels(tmp_path):
    matrix, labels = tmp_path / "x.mtx", tmp_path / "y.txt"
    matrix.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n")
    labels.write_text("0\n1\n")
    configuration = Configuration(dataset="matrix_market", path=str(matrix), labels=str(labels), model="logistic")
    before = grid.configuration_key(configuration)
    labels.write_text("1\n0\n")
    assert grid.configuration_key(configuration) != before


def test_a_changed_file_is_measured_anew_and_the_rows_of_before_stay(tmp_path):
    path, folder = write(tmp_path / "d.txt"), tmp_path / "run"
    assert swept(spec_of(path), folder).reused == 0
    os.utime(path, (1, 1))
    assert swept(spec_of(path), folder).reused == 1, "the content is the same"
    write(tmp_path / "d.txt", 6)
    state = swept(spec_of(path), folder)
    assert (state.state, state.reused, state.counts) == ("finished", 0, {"ok": 1})
    old, new = store.read(folder)
    assert old["density_measured"] < new["density_measured"]
    assert old["content"] != new["content"] == content.hash_of([path])
    assert run_folder.read_current_records(folder) == [new]


@pytest.fixture
def changing(monkeypatch):
    """Calls a function after the first record of a sweep is stored."""

    def call(change):
        real = Supervisor.keep

        def keep(supervisor, trials, row):
            real(supervisor, trials, row)
            if supervisor.state.done == 1:
                change()

        monkeypatch.setattr(Supervisor, "keep", keep)

    return call


def test_a_file_that_changes_ends_the_sweep_with_what_to_type_and_its_rows_stay(tmp_path, changing):
    path, folder = write(tmp_path / "d.txt"), tmp_path / "run"
    changing(lambda: write(tmp_path / "d.txt", 6))
    state = swept(spec_of(path, batch_rows=[10, 20]), folder)
    assert state.state == "failed"
    assert state.message == (
        f"{path} changed while the sweep ran. The records of its content before stay; that of the trial at work is "
        f"left out. To measure the new content, type: workbench sweep {folder}/spec.json --run {folder}"
    )
    assert [row["status"] for row in run_folder.read_current_records(folder)] == ["ok"]
    again = swept(spec_of(path, batch_rows=[10, 20]), folder)
    assert (again.state, again.reused, again.counts) == ("finished", 0, {"ok": 2})


def test_a_file_that_is_written_again_with_the_same_content_goes_on(tmp_path, changing):
    path, folder = write(tmp_path / "d.txt"), tmp_path / "run"

    def replaced():
        write(tmp_path / "other.txt")
        os.replace(tmp_path / "other.txt", path)

    changing(replaced)
    state = swept(spec_of(path, batch_rows=[10, 20]), folder)
    assert (state.state, state.counts) == ("finished", {"ok": 2})


def test_a_record_measured_while_its_file_changed_is_left_out(tmp_path, monkeypatch):
    path = write(tmp_path / "d.txt")
    supervisor = Supervisor(spec_of(path), tmp_path)
    monkeypatch.setattr(supervisor, "try_once", lambda task: {"status": "failed", "file": write(tmp_path / "d.txt", 6)})
    supervisor.contents.of(configuration_of(path))
    task = type("Task", (), {"configuration": configuration_of(path)})
    with pytest.raises(DataChangedError, match=r"d.txt changed while the sweep ran"):
        supervisor.do(task)


def test_a_file_that_disappears_has_changed(tmp_path):
    path, seen = write(tmp_path / "d.txt"), Contents()
    seen.require_unchanged(configuration_of(path))
    os.unlink(path)
    with pytest.raises(DataChangedError):
        seen.require_unchanged(configuration_of(path))
    assert Contents().of(configuration_of(path)) == ""


def test_files_are_looked_at_once_for_all_configurations(tmp_path, monkeypatch):
    path, looks, real = write(tmp_path / "d.txt"), [], content._hash
    monkeypatch.setattr(content, "_hash", lambda name: looks.append(name) or real(name))
    seen, configuration = Contents(), configuration_of(path)
    assert len({seen.of(configuration.model_copy(update={"seed": seed})) for seed in range(50)}) == 1
    assert looks == [path]


def test_a_plan_does_not_read_a_large_file_that_was_never_hashed(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "SECONDS_SETTLED", -1e9)
    path, folder = write(tmp_path / "d.txt"), tmp_path / "run"
    swept(spec_of(path), folder)
    monkeypatch.setattr(content, "BYTES_QUICK", 10)
    assert plan(spec_of(path), store.read(folder)).reused == 1, "its hash is stored"
    write(tmp_path / "d.txt", 6)
    monkeypatch.setattr(content, "_hash", lambda name: pytest.fail(f"{name} was read"))
    assert plan(spec_of(path), store.read(folder)).reused == 0


def test_data_that_is_drawn_has_no_content():
    assert Contents().of(Configuration()) == ""
    Contents().require_unchanged(Configuration())
    assert isinstance(data.get("uniform").files(), tuple)
