"""The result file: what goes in comes out, and no kill, crowd or full disk loses more than the line being written."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.clocks import SECONDS
from workbench import store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trials.jsonl"


def some(key="a", **known):
    return store.new_row(**{"key": key, "status": "ok", "seconds_step": 0.25, "width": 16} | known)


def python(code, *arguments, **options):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)


def test_rows_come_back_as_they_were_written(tmp_path, path):
    rows = [some("a", samples=[0.1, 0.2], versions={"numpy": "2.4"}), some("b", status="failed", reason="Größe ≠ 3")]
    for row in rows:
        store.append(path, row)
    assert store.read(path) == rows
    assert store.read(tmp_path) == rows, "a folder is read by its trials.jsonl"
    assert path.read_bytes().isascii()


def test_a_row_has_every_column_and_no_other():
    assert list(store.new_row()) == list(store.COLUMNS)
    assert store.new_row()["schema"] == store.SCHEMA
    assert store.new_row()["reason"] == ""
    assert store.new_row()["width"] is None
    with pytest.raises(
        store.RowError,
        match=r"'widht' \(did you mean width\?\).\nRecords of another version have to be .* again; known: schema, key",
    ):
        store.new_row(widht=16)


def test_every_column_says_what_it_holds_and_times_and_sizes_name_their_unit():
    for column in store.COLUMNS.values():
        assert column.kind in store.KINDS
        assert len(column.meaning) > 10
        if column.name.startswith("seconds_"):
            assert "seconds" in column.meaning or "pass over" in column.meaning


@pytest.mark.parametrize(
    ("column", "value"),
    [("width", 16.5), ("width", True), ("seconds_step", "fast"), ("shuffle", 1), ("samples", 0.1), ("samples", ["x"]),
     ("curve", [[1, 2]]), ("densified", ["dot"]), ("versions", []), ("status", "done"), ("key", ""), ("schema", 99)],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused_and_not_written(path, column, value):
    with pytest.raises(store.RowError, match=column):
        store.append(path, some() | {column: value})
    assert not path.exists()


def test_a_row_that_lacks_a_column_is_refused(tmp_path):
    row = some()
    del row["width"]
    with pytest.raises(store.RowError, match=r"lacks width; make rows with store\.new_row"):
        store.append(tmp_path / "trials.jsonl", row)


def test_what_is_not_finite_becomes_null_and_is_named(path):
    store.append(path, some(loss_last=float("nan"), curve=[[0.1, float("inf"), 1]], error=np.float32("-inf")))

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    row = json.loads(path.read_text(), parse_constant=refuse)
    assert row["not_finite"] == ["curve", "error", "loss_last"]
    assert row["curve"] == [[0.1, None, 1]]
    assert store.read(path)[0]["loss_last"] is None


def test_numpy_values_become_plain_ones(path):
    store.append(path, some(width=np.int64(8), samples=np.array([0.5, 0.25]), shuffle=np.bool_(True), steps_timed=None))
    row = store.read(path)[0]
    assert (row["width"], row["samples"], row["shuffle"]) == (8, [0.5, 0.25], True)


def test_a_frame_has_the_columns_and_types_of_the_table_with_and_without_rows():
    empty, full = store.frame(), store.frame([some(), some("b", width=None)])
    assert list(empty.columns) == list(full.columns) == list(store.COLUMNS)
    assert (empty.dtypes == full.dtypes).all()
    assert full["width"].tolist() == [16, pd.NA]
    with pytest.raises(store.RowError, match="unknown column 'speed'"):
        store.frame([{"speed": 1}])


def test_a_torn_last_line_is_left_out_and_the_next_row_starts_on_its_own_line(path):
    store.append(path, some("a"))
    store.append(path, some("b"))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.warns(store.TornLineWarning, match=r"left out 1 line\(s\) torn by a killed writer; resume the run"):
        assert [row["key"] for row in store.read(path)] == ["a"]
    store.append(path, some("c"))
    with pytest.warns(store.TornLineWarning, match="1 line"):
        assert [row["key"] for row in store.read(path)] == ["a", "c"]


def test_every_length_of_a_torn_line_can_be_appended_to(path):
    store.append(path, some("a"))
    line = path.read_bytes()
    for length in range(1, len(line) - 1, 97):
        path.write_bytes(line + line[:length])
        store.append(path, some("b"))
        with pytest.warns(store.TornLineWarning):
            assert [row["key"] for row in store.read(path)] == ["a", "b"]


def test_a_whole_line_that_only_lacks_its_end_counts(path):
    store.append(path, some("a"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [row["key"] for row in store.read(path)] == ["a"]
    store.append(path, some("b"))
    assert [row["key"] for row in store.read(path)] == ["a", "b"]


def test_a_broken_line_in_the_middle_is_an_error_with_its_number(path):
    for key in "abc":
        store.append(path, some(key))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2])
    with pytest.raises(store.RowError, match=r"line 2 is not JSON .* fix or remove that line"):
        store.read(path)


def test_rows_of_a_newer_schema_or_with_unknown_columns_are_refused_with_their_line(path):
    path.write_text(json.dumps({"schema": store.SCHEMA + 1}) + "\n")
    with pytest.raises(store.RowError, match=r"line 1 has schema .* update the workbench"):
        store.read(path)
    path.write_text(json.dumps({"schema": store.SCHEMA, "speed": 1}) + "\n")
    with pytest.raises(store.RowError, match=r"line 1 has the unknown column 'speed'"):
        store.read(path)


def test_a_line_has_no_column_that_is_null(path):
    store.append(path, row := some(width=None, reason=""))
    line = json.loads(path.read_text())
    assert line == {name: value for name, value in row.items() if value is not None}
    assert store.read(path) == [row]


def test_an_older_row_gets_null_for_a_column_it_lacks(path):
    path.write_text(json.dumps({"schema": 1, "key": "a", "status": "ok"}) + "\n")
    assert store.read(path) == [dict.fromkeys(store.COLUMNS) | {"schema": 1, "key": "a", "status": "ok"}]


def test_a_path_without_results_says_what_to_give(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Give a \.jsonl file, or a run folder that holds trials\.jsonl"):
        store.read(tmp_path)


def test_done_keys_are_those_that_need_no_second_try(tmp_path, path):
    assert store.done_keys(path) == set()
    for key, status in [("a", "ok"), ("b", "failed"), ("c", "stopped"), ("d", "stopped"), ("d", "ok"), ("e", "memory")]:
        store.append(path, some(key, status=status))
    assert store.done_keys(path) == {"a", "b", "d", "e"}
    assert store.done_keys(tmp_path, again=("stopped", "failed")) == {"a", "d", "e"}
    with pytest.raises(ValueError, match=r"Unknown status 'broken'\. Expected one of: ok, skipped"):
        store.done_keys(path, again=("broken",))


APPEND_MANY = """
import sys
from workbench import store
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for i in range(count):
    store.append(path, store.new_row(key=f"{name}{i}", status="ok", samples=[0.5] * 2000))
"""


def test_many_processes_append_whole_lines(path):
    writers = [python(APPEND_MANY, path, name, 25) for name in "wxyz"]
    assert [writer.wait(SECONDS) for writer in writers] == [0, 0, 0, 0]
    assert sorted(row["key"] for row in store.read(path)) == sorted(f"{name}{i}" for name in "wxyz" for i in range(25))


@pytest.mark.filterwarnings("ignore::workbench.store.TornLineWarning")
def test_a_killed_writer_loses_no_row_that_append_returned_for(path):
    code = APPEND_MANY.replace("2000))", "2000)); print(i, flush=True)")
    writer = python(code, path, "k", 100_000, stdout=subprocess.PIPE, text=True)
    for _ in range(20):
        returned = int(writer.stdout.readline())
    time.sleep(0.02)
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate()[0].split()
    returned = int(rest[-1]) if rest else returned
    store.append(path, some("after"))
    keys = [row["key"] for row in store.read(path)]
    assert keys[: returned + 1] == [f"k{i}" for i in range(returned + 1)]
    assert keys[-1] == "after"


FULL_DISK = """
import resource, signal, sys
from workbench import store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
store.append(sys.argv[1], store.new_row(key="b", status="ok", samples=[0.5] * 2000))
"""


def test_a_full_disk_is_an_error_and_leaves_the_rows_before_it(path):
    store.append(path, some("a"))
    writer = python(FULL_DISK, path, stderr=subprocess.PIPE, text=True)
    text = writer.communicate(timeout=SECONDS)[1]
    assert writer.returncode != 0
    assert "File too large, the row is lost" in text
    assert [row["key"] for row in store.read(path)] == ["a"], "and no part of the other"


def test_another_file_that_is_compressed_is_not_read_in_its_place(tmp_path):
    """Only records, NAME.jsonl, may be packed beside their name: any other file is named as it is."""
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"1 2:3\n"))
    with pytest.raises(FileNotFoundError, match=r"no results at .*x\.txt\. If .*x\.txt\.gz is meant, type that"):
        store.TRIALS.read(tmp_path / "x.txt")
