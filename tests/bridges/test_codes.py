"""Codes of categories that mean other values from block to block or from file to file are told."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from typer.testing import CliRunner  # noqa: E402

from workbench import data  # noqa: E402
from workbench.bridges import check_codes  # noqa: E402
from workbench.command.cli import app  # noqa: E402


def table(*blocks) -> pa.Table:
    """A column of codes, each block with the dictionary of its own values, and a column of numbers."""
    sites = pa.chunked_array([pa.array(block).dictionary_encode() for block in blocks])
    return pa.table({"site": sites, "clicked": [row % 2 for row in range(len(sites))]})


TRAIN, TEST = table(["a", "b", "a", "c"]), table(["b", "a"])


def told(found) -> list[tuple[str, str]]:
    return [(breach.severity, breach.came) for breach in found]


def test_codes_of_another_file_are_other_values_and_are_told():
    trained, later = (part.column("site").combine_chunks() for part in (TRAIN, TEST))
    codes = dict(zip(trained.to_pylist(), trained.indices.to_pylist(), strict=True))
    assert [codes[value] for value in later.to_pylist()] != later.indices.to_pylist(), "pyarrow says nothing"
    came = "Code 0 of column site means 'b', and 'a' in the data it is like"
    assert told(check_codes(TEST, like=TRAIN)) == [("error", came)]
    assert not check_codes(TRAIN, like=TRAIN)
    assert not check_codes(table(["a"]), like=TRAIN)


def test_codes_of_blocks_with_a_dictionary_each_are_told_until_they_are_unified():
    blocks = table(["a", "b"], ["b", "c"])
    assert told(check_codes(blocks)) == [
        ("error", "Code 0 of column site means 'b' in a later block, and 'a' in the first")
    ]
    assert not check_codes(blocks.unify_dictionaries())
    assert not check_codes(table(["a", "b"], ["a"]))


def test_values_that_were_not_trained_on_are_a_warning():
    assert told(check_codes(table(["a", "b", "c", "d", "e"]), like=TRAIN)) == [
        ("warning", "Column site has 2 values that the data it is like does not have")
    ]


def test_a_column_without_codes_where_there_were_some_is_told():
    plain = pa.table({"site": ["a", "b"]})
    assert told(check_codes(plain, like=TRAIN)) == [
        ("error", "Column site has codes in the data it is like, and none here")
    ]
    assert not check_codes(TRAIN, like=plain)
    assert not check_codes(table([]), like=TRAIN)


def test_categories_of_pandas_are_codes_too():
    frames = [part.to_pandas() for part in (TRAIN, TEST)]
    assert frames[0]["site"].cat.codes[0] == frames[1]["site"].cat.codes[0], "a and b"
    assert len(check_codes(frames[1], like=frames[0])) == 1
    assert not check_codes(frames[0], like=frames[0])


def test_what_is_no_table_is_refused():
    with pytest.raises(data.DataError, match="pyarrow Table"):
        check_codes(np.ones(3))


def test_the_command_tells_codes_of_files_and_takes_the_columns_of_the_first(tmp_path):
    for name, part in (("train", TRAIN), ("test", TEST)):
        pa.parquet.write_table(part, tmp_path / f"{name}.parquet")
    line = ["check", str(tmp_path / "test.parquet"), "--for", "pytorch", "--like", str(tmp_path / "train.parquet")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert "warning, table -> codes, codes: Code 0 of column site means 'b', and 'a'" in result.stdout
    assert "width" not in result.stdout, "values are read, so columns are those of the first file"
    assert "table -> codes" not in CliRunner().invoke(app, [*line[:-1], line[1]]).stdout


def test_the_command_takes_the_width_of_the_file_that_a_model_was_trained_on(tmp_path):
    for name, columns in (("train", 4), ("test", 3)):
        whole = {"data": np.float32([1]), "indices": np.int32([0]), "indptr": np.int32([0, 1])}
        np.savez(tmp_path / f"{name}.npz", format=np.array(b"csr"), shape=np.array([1, columns]), **whole)
    line = ["check", str(tmp_path / "test.npz"), "--for", "keras", "--like", str(tmp_path / "train.npz")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 1
    assert "It has 3 columns. Expected: 4" in result.stdout
