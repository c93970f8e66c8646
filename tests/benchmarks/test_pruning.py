"""Pruning keeps the newest records of each configuration, and loses nothing that an answer rests on."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import pruning
from benchmarks.pruning import prune, table_of
from benchmarks.suites import bench as app
from workbench import store


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


def test_rounds_of_a_run_whose_keys_differ_are_all_kept(tmp_path):
    rounds = [record(key, "b", round=number, source="new") for number, key in enumerate(("x", "y", "z"))]
    path = written(tmp_path, record("w", "a", source="old"), record("v", "b", source="old"), *rounds)
    assert prune(path)[:2] == (5, 3)
    assert [each["key"] for each in store.read(path)] == ["x", "y", "z"]


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
    [
        ("bench-fit.jsonl", "fit"),
        ("bench-end.jsonl", "end"),
        ("bench-epochs.jsonl", "epochs"),
        ("bench-waits.jsonl", "waits"),
        ("bench-kernels.jsonl", "bench"),
        ("self.jsonl", "self"),
        ("demo.jsonl", "trials"),
    ],
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


def test_the_command_packs(tmp_path, packs_all):
    path = written(tmp_path, record("a", "a"))
    assert CliRunner().invoke(app, ["prune", str(tmp_path), "--pack"]).exit_code == 0
    assert CliRunner().invoke(app, ["prune", str(tmp_path)]).exit_code == 0
    assert not path.exists()
    assert kept(path) == [("a", "a", 2, 0)]


def test_the_command_prunes_all_files_of_a_folder(tmp_path):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    (tmp_path / "cuda-registers.jsonl").write_text("{}\n")
    printed = CliRunner().invoke(app, ["prune", str(tmp_path)]).output
    assert f"{path}: 1 of 2 records" in printed.replace("\n", "")
    assert kept(path) == [("new", "b", 2, 0)]


def test_measured_numbers_are_shortened_and_settings_are_not(tmp_path):
    path = written(tmp_path, record("a", "a", seconds_step=0.123456789123, density=0.123456789123, samples=[1 / 3]))
    prune(path)
    [each] = store.read(path)
    assert (each["seconds_step"], each["density"], each["samples"]) == (0.1234568, 0.123456789123, [0.3333333])
    assert "null" not in path.read_text()


@pytest.fixture
def packs_all(monkeypatch):
    monkeypatch.setattr(pruning, "_BYTES_PLAIN", 0)


def test_a_packed_file_is_read_as_before(tmp_path, packs_all):
    path = written(tmp_path, record("old", "a"), record("new", "b"))
    prune(path, pack=True)
    assert [each.name for each in tmp_path.iterdir()] == ["trials.jsonl.gz"]
    assert store.is_stored(path)
    assert kept(path) == kept(store.packed_path(path)) == kept(tmp_path) == [("new", "b", 2, 0)]
    assert store.done_keys(path) == {"new"}


def test_records_appended_after_packing_are_read_after_the_older_ones_and_packed_with_them(tmp_path, packs_all):
    path = written(tmp_path, record("a", "a", width=3))
    prune(path, pack=True)
    written(tmp_path, record("b", "b"))
    assert kept(path) == [("a", "a", 3, 0), ("b", "b", 2, 0)]
    assert prune(path)[:2] == (2, 2)
    assert not path.exists()
    assert kept(path) == [("a", "a", 3, 0), ("b", "b", 2, 0)]


def test_packing_twice_changes_nothing_more(tmp_path, packs_all):
    path = written(tmp_path, record("a", "a"))
    prune(path, pack=True)
    packed = store.packed_path(path).read_bytes()
    prune(path, pack=True)
    assert store.packed_path(path).read_bytes() == packed


def test_a_small_file_stays_text(tmp_path):
    path = written(tmp_path, record("a", "a"))
    prune(path, pack=True)
    assert path.exists()


def test_a_damaged_packed_file_is_refused(tmp_path):
    path = tmp_path / "trials.jsonl"
    store.packed_path(path).write_bytes(gzip.compress(json.dumps({}).encode())[:-9])
    with pytest.raises(store.RowError, match="is not a whole gzip file"):
        store.read(path)


def test_a_packed_file_is_opened_by_its_plain_name(tmp_path, packs_all):
    import workbench as wb

    path = written(tmp_path, record("a", "a"))
    prune(path, pack=True)
    assert len(wb.open(path).frame) == len(wb.open(store.packed_path(path)).frame)


def test_the_command_refuses_what_is_no_folder(tmp_path):
    result = CliRunner().invoke(app, ["prune", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "is not a folder" in " ".join(result.output.replace("│", "").split())
