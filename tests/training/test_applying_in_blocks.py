"""Predictions of svmlight text block by block: the same bits as of the whole file, for labels of any kind."""

import csv

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

import workbench as wb
from tests.training.test_streaming import ROWS, lines, write
from workbench.data.errors import DataError
from workbench.training import trained
from workbench.training.trained import TrainedModel, write_predictions


def applied(model: TrainedModel, path, out, monkeypatch, is_whole: bool):
    """Return (bytes of the file of predictions, quality, note), read block by block or whole."""
    monkeypatch.setattr(trained, "STREAMED_BYTES", 5000)
    with monkeypatch.context() as patched:
        if is_whole:
            patched.setattr(TrainedModel, "_stream", lambda *given: None)
        parts = model.apply_in_blocks(path)
        count = write_predictions(out, parts)
    return out.read_bytes(), count, parts.quality, parts.note


@pytest.mark.parametrize("labels", [("-1", "1"), ("3", "5", "7"), ("",)])
@pytest.mark.parametrize("given", [{"stream": True}, {"search": 0}])
def test_blocks_are_predicted_as_the_whole_file_bit_for_bit(tmp_path, monkeypatch, labels, given):
    path = write(tmp_path / "a.svm", lines(0, labels))
    later = write(tmp_path / "b.svm", ["", *lines(1, labels, columns=250), "# nothing"])
    wb.train(path, **given).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    assert len(list(model.apply_in_blocks(later))) == 1
    blocks = applied(model, later, tmp_path / "blocks.csv", monkeypatch, is_whole=False)
    whole = applied(model, later, tmp_path / "whole.csv", monkeypatch, is_whole=True)
    assert blocks == whole
    assert blocks[1] == ROWS
    assert blocks[2]
    assert len(list(model.apply_in_blocks(later))) > 3


def test_labels_that_are_none_of_the_classes_leave_the_predictions(tmp_path, monkeypatch):
    text = lines(2, ("-1", "1"))
    wb.train(write(tmp_path / "a.svm", text), stream=True).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    later = write(tmp_path / "b.svm", [*text[:-3], f"8 {text[-1].partition(' ')[2]}"])
    blocks = applied(model, later, tmp_path / "blocks.csv", monkeypatch, is_whole=False)
    whole = applied(model, later, tmp_path / "whole.csv", monkeypatch, is_whole=True)
    assert blocks == whole
    assert "the label '8' is none of the classes" in blocks[3]
    assert not blocks[2]


def test_rows_without_labels_and_packed_ones_are_predicted_too(tmp_path, monkeypatch):
    text = lines(3, ("-1", "1"))
    wb.train(write(tmp_path / "a.svm", text), stream=True).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    bare = write(tmp_path / "bare.svm", [line.partition(" ")[2] for line in text if ":" in line])
    found = model.apply(bare)
    assert found.note == "it has no labels"
    assert len(found.values) == sum(":" in line for line in text)


@pytest.mark.parametrize(
    ("line", "message"),
    [("1 9999:x", "no finite number"), ("1 3:x", "no finite number"), ("1 4:1 3:1", "column 3")],
)
def test_invalid_rows_far_in_the_file_are_refused_with_the_line(tmp_path, monkeypatch, line, message):
    text = lines(4, ("-1", "1"))
    wb.train(write(tmp_path / "a.svm", text), stream=True).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    monkeypatch.setattr(trained, "STREAMED_BYTES", 5000)
    later = write(tmp_path / "b.svm", [*text, line])
    with pytest.raises(DataError, match=f"b.svm:{ROWS + 1}: .*{message}"):
        model.apply(later)
    with pytest.raises(DataError, match="holds no rows"):
        model.apply(write(tmp_path / "none.svm", ["# nothing"]))


@pytest.mark.parametrize("zero_based", [True, False])
def test_columns_of_text_are_counted_as_all_rows_tell_for_a_model_of_a_matrix(tmp_path, zero_based):
    made = np.random.default_rng(7)
    x = scipy.sparse.random_array((200, 30), density=0.2, rng=made, format="csr", dtype=np.float32)
    y = np.asarray(x.sum(axis=1) > x.sum(axis=1).mean(), int)
    model = wb.train(x, y, search=0, random_state=0)
    model.save(tmp_path / "model")
    later = x.toarray()
    later[:, -1] = 0  # so that no column is out of range when counted from the other end
    dump_svmlight_file(later, y, str(tmp_path / "later.svm"), zero_based=zero_based)
    found = wb.load_model(tmp_path / "model").apply(tmp_path / "later.svm")
    assert np.array_equal(found.values.astype(int), model.predict(later))


@pytest.mark.parametrize("labels", ["1 ", ""])
def test_columns_that_the_model_does_not_know_are_left_out_with_a_warning(tmp_path, monkeypatch, labels):
    text = lines(6, ("-1", "1"))
    wb.train(write(tmp_path / "a.svm", text), stream=True).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    bare = [labels + line.partition("#")[0].partition(" ")[2] for line in text if ":" in line.partition("#")[0]]
    known = model.apply(write(tmp_path / "known.svm", bare))
    later = write(tmp_path / "later.svm", [bare[0], *(f"{line} 9999:2" for line in bare[1:])])
    for size in (trained.STREAMED_BYTES, 5000):
        monkeypatch.setattr(trained, "STREAMED_BYTES", size)
        with pytest.warns(UserWarning, match=f"^later.svm has {len(bare) - 1} entries in columns that are"):
            found = model.apply(later)
        assert np.array_equal(found.values, known.values)
        assert found.quality == known.quality
    with pytest.raises(DataError, match="column 9999 is out of range"):
        wb.load(later, dataset="svmlight", features=model.features, kind="classes" if labels else "none")


def test_the_command_shows_the_first_rows_of_all_blocks(tmp_path, monkeypatch, capsys):
    from typer.testing import CliRunner

    from workbench.command.cli import app

    path = write(tmp_path / "a.svm", lines(5, ("-1", "1")))
    wb.train(path, stream=True).save(tmp_path / "model")
    whole = CliRunner().invoke(app, ["apply", str(tmp_path / "model"), str(path)])
    monkeypatch.setattr(trained, "STREAMED_BYTES", 200)
    blocks = CliRunner().invoke(app, ["apply", str(tmp_path / "model"), str(path)])
    assert blocks.stdout == whole.stdout
    assert blocks.stdout.count("\n") == 13
    assert f"... {ROWS} rows in all" in blocks.stdout
    assert np.array([line.split(",")[0] for line in blocks.stdout.splitlines()[1:11]]).tolist() == list("0123456789")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["text", "numbers", "columns", "whole"])
def test_the_file_of_predictions_is_what_the_csv_module_writes(tmp_path, seed, kind):
    made = np.random.default_rng(seed)
    names = np.array(["a", "b,c", 'say "x"', "line\nend", "-3", "é", ""])
    chances = made.random((60, len(names))).astype(np.float32) ** 9
    values = {
        "text": names[made.integers(0, len(names), 60)],
        "numbers": (made.normal(size=60) * 10.0 ** made.integers(-12, 12, 60)).astype(np.float32),
        "columns": made.normal(size=(60, 3)),
        "whole": made.integers(-5, 5, 60),
    }[kind]
    classes = tuple(names) if kind == "text" else ()
    parts = [
        trained.Predictions(values[rows], chances[rows] if classes else None, classes, {})
        for rows in (slice(0, 7), slice(7, 30), slice(30, 60))
    ]
    assert write_predictions(tmp_path / "a.csv", parts) == 60
    whole = trained.Predictions(values, chances if classes else None, classes, {})
    with (tmp_path / "b.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(trained.lines_of_predictions(whole))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
