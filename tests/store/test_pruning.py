"""Pruning keeps the newest records of each configuration, and loses nothing that an answer rests on."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from workbench import store
from workbench.command import cli
from workbench.store.pruning import prune, table_of


def record(key: str, run: str, width: int = 2, status: str = "ok", round: int = 0, **columns) -> dict:
    return store.new_row(key=key, run=run, width=width, status=status, round=round, format="csr", **columns)


def written(tmp_path: Path, *records) -> Path:
    path = tmp_path / "trials.jsonl"
    for each in records:
        store.append(path, each)
    return path


def kept(path: Path) -> list[tuple]:
    return [(each["key"], each["run"], each["width"], each["round"]) for each in store.read(path)]


def test_records_of_older_code_are_removed(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"), record("new", "b", round=1))
    assert prune(path)[:2] == (3, 2)
    assert kept(path) == [("new", "b", 2, 0), ("new", "b", 2, 1)]


def test_another_configuration_keeps_its_older_records(tmp_path):
    path = written(tmp_path, record("old", "a", width=3), record("new", "b"))
    assert prune(path)[:2] == (2, 2)


def test_a_failure_does_not_supersede_a_success(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b", status="failed", reason="no memory"))
    prune(path)
    assert kept(path) == [("old", "a", 2, 0)]


def test_failures_keep_the_newest(tmp_path):
    path = written(tmp_path, *(record(key, key, status="failed", reason="no memory") for key in "ab"))
    prune(path)
    assert kept(path) == [("b", "b", 2, 0)]


@pytest.mark.parametrize(("runs", "left"), [(1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"])])
def test_as_many_runs_are_kept_as_asked_for(tmp_path, runs, left):
    path = written(tmp_path, *(record("same", run) for run in "abc"))
    prune(path, runs)
    assert [each["run"] for each in store.read(path)] == left


def test_the_last_curve_is_kept(tmp_path):
    curve = [[0.1, 2.0, 1], [0.2, 1.0, 2]]
    path = written(tmp_path, *(record("same", "a", round=round, curve=curve) for round in range(3)))
    prune(path)
    assert [each["curve"] for each in store.read(path)] == [None, None, curve]


def test_pruning_twice_changes_nothing_more(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    prune(path)
    text = path.read_bytes()
    assert prune(path).bytes == len(text)
    assert path.read_bytes() == text


def test_a_damaged_file_is_left_as_it_is(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    path.write_bytes(path.read_bytes() + b"{broken\n")
    text = path.read_bytes()
    with pytest.raises(store.RowError, match="line 3"):
        prune(path)
    assert path.read_bytes() == text


def test_no_run_and_no_table_are_refused(tmp_path):
    with pytest.raises(ValueError, match="expected 1 or more"):
        prune(written(tmp_path, record("a", "a")), 0)
    with pytest.raises(ValueError, match="no records of a known table"):
        prune(tmp_path / "cuda-registers.jsonl")


@pytest.mark.parametrize(
    ("file", "name"),
    [("bench-fit.jsonl", "fit"), ("bench-kernels.jsonl", "bench"), ("self.jsonl", "self"), ("demo.jsonl", "trials")],
)
def test_each_suite_has_its_table(file, name):
    table = table_of(Path(file))
    assert table is not None
    assert table.name == name


def test_a_dry_run_changes_nothing(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    text = path.read_bytes()
    assert prune(path, dry_run=True).records == 1
    assert path.read_bytes() == text


def test_the_command_prunes_all_files_of_a_folder(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    (tmp_path / "cuda-registers.jsonl").write_text("{}\n")
    printed = CliRunner().invoke(cli.app, ["bench", "prune", str(tmp_path)]).output
    assert f"{path}: 1 of 2 records" in printed.replace("\n", "")
    assert kept(path) == [("new", "b", 2, 0)]


def test_the_command_refuses_what_is_no_folder(tmp_path):
    result = CliRunner().invoke(cli.app, ["bench", "prune", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "is not a folder" in " ".join(result.output.replace("│", "").split())
