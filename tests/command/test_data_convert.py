"""The command that converts data into a folder, and training on what it made."""

import pytest
from typer.testing import CliRunner

from workbench import data
from workbench.command.cli import app


def called(*words):
    result = CliRunner().invoke(app, list(map(str, words)))
    return result.exit_code, f"{result.output}{result.exception or ''}"


@pytest.fixture
def rows(tmp_path):
    text = "".join(f"{row % 2} {row % 2 + 1}:1 {row % 7 + 3}:0.5\n" for row in range(200))
    (tmp_path / "rows.svm").write_text(text)
    return tmp_path / "rows.svm"


def test_a_file_is_converted_and_trained_on(rows, tmp_path):
    code, said = called("data", "convert", rows, tmp_path / "X.sparse", "--seed", 3)
    assert code == 0, said
    assert "200 rows x 9 features, 400 entries, labels: 2 classes" in said
    assert ", shuffled with seed 3" in said
    assert data.load("sparse", path=tmp_path / "X.sparse", verify=True).rows == 200
    code, said = called("train", "--dataset", "sparse", "--path", tmp_path / "X.sparse", "--batch-rows", 20)
    assert code == 0, said
    assert "held-out accuracy 1.0000" in said


def test_rows_may_keep_their_order_and_a_reader_its_parameters(rows, tmp_path):
    words = (rows, tmp_path / "X.sparse", "--no-shuffle", "--kind", "numbers", "--reading", "features=12")
    code, said = called("data", "convert", *words)
    assert code == 0, said
    assert ", in the order they came" in said
    kept = data.load("sparse", path=tmp_path / "X.sparse")
    assert (kept.features, kept.kind, kept.y[:4].tolist()) == (12, "numbers", [0, 1, 0, 1])


def test_a_folder_that_is_there_is_refused(rows, tmp_path):
    (tmp_path / "X.sparse").mkdir()
    code, said = called("data", "convert", rows, tmp_path / "X.sparse")
    assert code
    assert "There is already" in said


def test_a_folder_of_stored_rows_is_known_for_one(rows, tmp_path):
    called("data", "convert", rows, tmp_path / "X.sparse")
    code, said = called("data", "convert", tmp_path / "X.sparse", tmp_path / "Y.sparse", "--no-shuffle")
    assert code == 0, said
    again, first = (data.load("sparse", path=tmp_path / name) for name in ("Y.sparse", "X.sparse"))
    assert again.y.tolist() == first.y.tolist()
    code, said = called("data", "profile", tmp_path / "X.sparse")
    assert code
    assert "whole=true" in said


def test_a_table_is_converted_by_a_file_of_column_kinds(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "1,2,0\n3,4,1\n" * 20)
    (tmp_path / "kinds.toml").write_text(
        "[columns.a]\nkind = 'ignored'\n[columns.b]\nkind = 'number'\nencoding = 'keep'\n"
    )
    words = (tmp_path / "rows.csv", tmp_path / "X.sparse", "--columns", tmp_path / "kinds.toml")
    code, said = called("data", "convert", *words)
    assert code == 0, said
    assert "40 rows x 2 features" in said
