"""Rows of another tool: a small schema whose errors list what there is, and what they are held against."""

import json

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import changes


def written(path, *rows):
    file = path / "theirs.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


def ours():
    return store.frame(maker.sweep(densities=(0.01, 0.1), noise=0.02))


def test_a_tool_is_held_against_the_fastest_sparse_and_the_fastest_dense(tmp_path):
    theirs = {"who": "their loop", "seconds": [4e-3, 4.1e-3, 3.9e-3, 4e-3], "density": 0.01, "machine": "bench-1"}
    held = changes.compare_external(ours(), store.external.read(written(tmp_path, theirs)))
    assert [(one.against, one.change.verdict) for one in held] == [
        ("sparse at 1 % density", "slower"),
        ("dense at 1 % density", "faster"),
    ]
    assert held[0].change.ratio.low < 4e-3 / 1.1e-3 < held[0].change.ratio.high
    assert len(changes.external_notes(held)) == 1


def test_a_tool_of_another_machine_is_told(tmp_path):
    theirs = {"who": "they", "seconds": [4e-3] * 4, "density": 0.1}
    held = changes.compare_external(ours(), store.external.read(written(tmp_path, theirs)))
    assert "another machine" in changes.external_notes(held)[-1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"who": "x", "seconds": [1], "densty": 1}, r"unknown column 'densty' \(did you mean density\?\); known: who"),
        ({"who": "x", "seconds": [1.0], "format": "csr"}, "unknown column 'format'"),
        ({"seconds": [1.0]}, "line 1 has no who"),
        ({"who": "x"}, "give one number above 0 for each run"),
        ({"who": "x", "seconds": [1.0, 0]}, "give one number above 0 for each run"),
        ({"who": "x", "seconds": 1.0}, "seconds is of kind numbers"),
        ([1], "a record is an object"),
    ],
    ids=["misspelt", "not a setting", "nobody", "no seconds", "zero", "a number", "a list"],
)
def test_a_line_that_is_not_of_the_schema_is_refused(tmp_path, row, message):
    with pytest.raises(store.RowError, match=message):
        store.external.read(written(tmp_path, row))


def test_what_no_cell_agrees_with_is_refused_with_what_there_is(tmp_path):
    theirs = store.external.read(written(tmp_path, {"who": "they", "seconds": [1.0], "density": 0.5}))
    with pytest.raises(ValueError, match=r"No configuration .* \(density 0.5\). The run has: density 0.01, 0.1"):
        changes.compare_external(ours(), theirs)
    with pytest.raises(ValueError, match="state density as well"):
        changes.compare_external(ours(), store.external.read(written(tmp_path, {"who": "they", "seconds": [1.0]})))
