"""Training block by block: the same bits as the same steps on rows in memory; labels of any kind; interrupts."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import workbench as wb
from workbench import data, formats
from workbench.data import contract
from workbench.data.errors import DataError
from workbench.data.files.opened import LONGEST_LINE
from workbench.training import streaming
from workbench.training.learner import Learner
from workbench.training.setup import Setup, with_epoch_calls
from workbench.training.streaming import (
    FileTraining,
    Options,
    StreamTraining,
    are_held_out,
    do_steps,
    open_stream,
    with_features,
)
from workbench.training.trained import ModelFolderError

ROWS = 400


@pytest.fixture(autouse=True)
def few_rows_first(monkeypatch) -> None:
    """Choose learning rates by few rows, so that small files have several blocks."""
    monkeypatch.setattr(streaming, "CHOOSING_ROWS", 50)


def lines(seed: int, labels, rows: int = ROWS, columns: int = 300) -> list[str]:
    """Return lines of svmlight text whose label depends on their columns; some have no entries, some comments."""
    made = np.random.default_rng(seed)
    weights, text = made.normal(size=(columns + 1, len(labels))), []
    for row in range(rows):
        chosen = np.unique(made.integers(1, columns + 1, made.integers(0, 12)))
        values = made.choice(["1", "2", "0.25", "-3e-1", "1.5e0"], len(chosen))
        numbers = np.array([float(value) for value in values])
        scores = numbers @ weights[chosen] if len(chosen) else np.zeros(len(labels))
        label = labels[int(scores.argmax())] if len(labels) > 1 else f"{scores[0]:.6g}"
        comment = "  # a comment" if row % 7 == 0 else ""
        text.append(" ".join([label, *(f"{c}:{v}" for c, v in zip(chosen, values, strict=True))]) + comment)
    return text


def write(path: Path, text: list[str], end: str = "\n") -> Path:
    """Write lines, the last one with `end`, and return the path."""
    path.write_text("\n".join(text) + end)
    return path


def trained(path: Path, memory: int = 1 << 16, **options) -> StreamTraining:
    """Return a training on a file that has come to its end."""
    made = StreamTraining(open_stream("svmlight", {"path": path}, memory), Options(**options))
    for _ in made.events():
        pass
    return made


@pytest.mark.parametrize(
    ("model", "labels"), [("logistic", ("-1", "1")), ("softmax", ("3", "5", "7")), ("linear", ("",))]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_blocks_are_trained_as_the_rows_in_memory_bit_for_bit(tmp_path, model, labels, seed):
    path = write(tmp_path / "a.svm", lines(seed, labels))
    made = trained(path, 32 << 12, held_out=0.0, passes=2)  # blocks of 4 kB
    assert made.stream.end > 2 << 12
    learner, rate = made.learner, made.rate
    read = data.load("svmlight", path=path, zero_based=True, cache=False)
    if model == "linear":
        y = ((read.y - made.targets.shift) / made.targets.scale).astype(np.float32)[:, np.newaxis]
    else:
        y = data.targets(read, {"logistic": "binary", "softmax": "classes"}[model])
    whole = Learner(learner.setup, learner.features, learner.width)
    x = wb.Dataset("a", read.x, read.y, read.labels, "", "").x
    x.resize(x.shape[0], learner.features)
    for _ in range(2):
        do_steps(whole, x, y, np.arange(read.rows))
    for name in ("w", "b"):
        assert np.array_equal(whole.arrays[name], learner.arrays[name]), name
    assert learner.setup.model == model
    assert learner.setup.options["learning_rate"] == rate


@pytest.mark.parametrize("rows", [120, 399, 10_000])
def test_the_learning_rate_does_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(streaming, "CHOOSING_ROWS", rows)
    path = write(tmp_path / "a.svm", lines(4, ("0", "1")))
    small, large = trained(path, 32 << 12, held_out=0.1), trained(path, 1 << 24, held_out=0.1)
    stream = open_stream("svmlight", {"path": path}, 32 << 12)
    first = next(streaming._with_first_joined(stream.blocks(0)))
    assert len(first.labels) >= min(rows, ROWS)
    if rows >= ROWS:
        assert small.rate == large.rate
        assert np.array_equal(small.learner.arrays["w"], large.learner.arrays["w"])
    read = [(block.x.copy(), block.labels.copy()) for block in streaming._with_first_joined(stream.blocks(0))]
    whole = data.load("svmlight", path=path, zero_based=True, cache=False)
    assert np.array_equal(np.concatenate([x.indices for x, _ in read]), whole.x.indices)
    assert np.array_equal(np.concatenate([x.data for x, _ in read]), whole.x.data)
    assert sum(len(labels) for _, labels in read) == whole.rows


@pytest.mark.parametrize("end", ["\n", "", "\n\n \n"])
@pytest.mark.parametrize("size", [4096, 4097, 5000, 1 << 20])
def test_rows_do_not_depend_on_blocks_empty_lines_or_the_last_line_end(tmp_path, size, end):
    text = lines(3, ("0", "1"))
    text[5:5] = ["", "   ", "# a line without a row"]
    path = write(tmp_path / "a.svm", text, end)
    read = data.load("svmlight", path=path, zero_based=True, cache=False)
    stream = contract.get("svmlight").open_stream(size, {"path": path})
    rows = [(block.x.copy(), block.labels.copy()) for block in stream.blocks(0)]
    assert sum(x.shape[0] for x, _ in rows) == read.rows
    assert np.array_equal(np.concatenate([x.data for x, _ in rows]), read.x.data)
    assert np.array_equal(np.concatenate([x.indices for x, _ in rows]), read.x.indices)
    assert np.array_equal(np.concatenate([np.diff(x.indptr) for x, _ in rows]), np.diff(read.x.indptr))
    assert [str(int(label)) for _, labels in rows for label in labels] == [read.classes[one] for one in read.y]


def test_a_row_longer_than_a_block_is_read_whole(tmp_path):
    long = "1 " + " ".join(f"{column}:1" for column in range(1, 3000))
    path = write(tmp_path / "a.svm", ["0 1:1", long, "0 2:1"] * 3)
    stream = contract.get("svmlight").open_stream(100, {"path": path})
    assert [length for block in stream.blocks(0) for length in np.diff(block.x.indptr)] == [1, 2999, 1] * 3
    assert len(long) < LONGEST_LINE


def test_packed_text_and_text_with_a_mark_give_the_same_rows(tmp_path):
    text = ("\n".join(lines(4, ("0", "1"))) + "\n").encode()
    (tmp_path / "plain.svm").write_bytes(text)
    (tmp_path / "mark.svm").write_bytes(b"\xef\xbb\xbf" + text)
    (tmp_path / "packed.svm.gz").write_bytes(gzip.compress(text))
    models = [trained(tmp_path / name, 32 << 12).learner.arrays["w"] for name in os.listdir(tmp_path)]
    assert all(np.array_equal(models[0], other) for other in models[1:])


@pytest.mark.parametrize("start", [0, 3])
def test_blocks_go_on_behind_each_position(tmp_path, start):
    path = write(tmp_path / "a.svm", lines(5, ("0", "1")))
    for given in (path, _gzipped(path)):
        stream = contract.get("svmlight").open_stream(2000, {"path": given})
        every = [(block.labels.copy(), block.x.data.copy(), block.position) for block in stream.blocks(0)]
        position = every[start - 1][2] if start else 0
        rest = [(block.labels.copy(), block.x.data.copy(), block.position) for block in stream.blocks(position)]
        assert len(every) > 4
        for one, other in zip(every[start:], rest, strict=True):
            assert all(np.array_equal(*parts) for parts in zip(one, other, strict=True))


def _gzipped(path: Path) -> Path:
    """Return the path of a packed copy."""
    packed = path.with_suffix(".svm.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("1 3:x", "no finite number"),
        ("1 3:1 2:1", "column 2"),
        ("word 3:1", "the label 'word'"),
        ("1 3:1e99", "no finite number"),
        ("1,2 3:1", "several labels"),
    ],
)
def test_an_invalid_line_names_file_and_line_number(tmp_path, wrong, message):
    text = lines(6, ("0", "1"))
    text[300] = wrong
    path = write(tmp_path / "a.svm", text)
    with pytest.raises(DataError) as raised:
        trained(path, 32 << 12)
    assert f"{path}:301: " in str(raised.value) or message == "several labels", raised.value
    assert message in str(raised.value)


def test_nul_far_in_the_file_is_refused_with_the_line(tmp_path):
    path = write(tmp_path / "a.svm", [*lines(6, ("0", "1")) * 20, "1 1:1 \0"])
    with pytest.raises(DataError, match=f":{20 * ROWS + 1}: a NUL byte"):
        trained(path, 32 << 12)


def test_bytes_that_are_no_text_are_refused_with_the_line(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes("\n".join(lines(6, ("0", "1"))).encode() + b"\n1 1:1 # \xff\n")
    with pytest.raises(DataError, match=f":{ROWS + 1}: the byte 0xff"):
        trained(path, 32 << 12)


def test_classes_that_come_late_begin_the_training_anew(tmp_path):
    first, later = lines(7, ("a1", "b1")), lines(8, ("a1", "b1"))
    text = [line.replace("a1", "1").replace("b1", "2") for line in first]
    text += [line.replace("a1", "2").replace("b1", "9") for line in later]
    path = write(tmp_path / "a.svm", text)
    made = StreamTraining(open_stream("svmlight", {"path": path}, 32 << 12), Options())
    notes = [progress.note for progress in made.events() if progress.note]
    assert made.targets.labels.classes == ("1", "2", "9")
    assert any("all labels are read" in note for note in notes)
    assert made.rows_all == 2 * ROWS
    assert made.learner.arrays["w"].shape[1] == 3


@pytest.mark.parametrize(("count", "kind"), [(40, "classes"), (1001, "numbers")])
def test_many_labels_that_come_in_order_are_classes_up_to_a_thousand(tmp_path, count, kind):
    path = write(tmp_path / "a.svm", [f"{number} {number % 9 + 1}:1" for number in range(count) for _ in range(30)])
    made = trained(path, 32 << 12)
    assert made.targets.labels.kind == kind
    assert len(made.targets.labels.classes) == (count if kind == "classes" else 0)
    assert made.rows_all == 30 * count


def test_labels_that_are_all_the_same_are_refused(tmp_path):
    path = write(tmp_path / "a.svm", ["1 1:1", "1 2:1"] * 20)
    with pytest.raises(DataError, match="Every label is '1'"):
        trained(path)


def test_held_out_rows_are_never_trained_on(tmp_path):
    text = lines(9, ("0", "1"))
    path = write(tmp_path / "a.svm", text)
    held = are_held_out(0, ROWS, 0.2)
    others = [line if not away else f"{1 - int(line[0])} 299:1 300:2" for line, away in zip(text, held, strict=True)]
    other = write(tmp_path / "b.svm", others)
    options = {"held_out": 0.2, "options": {"learning_rate": 0.1, "epsilon": 1.0}}
    one, changed = trained(path, **options), trained(other, **options)
    assert np.array_equal(one.learner.arrays["w"], changed.learner.arrays["w"])
    assert one.sums.held_out_rows == held.sum()
    assert one.held_out_quality() != changed.held_out_quality()


def test_held_out_loss_is_better_than_that_of_the_shares(tmp_path):
    path = write(tmp_path / "a.svm", lines(10, ("0", "1"), rows=4000, columns=60))
    made = trained(path, passes=3)
    assert made.held_out_quality()["log loss"] < 0.4


@pytest.mark.parametrize("optimizer", ["adagrad", "ftrl", "sgd"])
def test_more_columns_go_on_with_the_same_weights_and_states(optimizer):
    setup = with_epoch_calls(Setup(model="logistic", update="lazy", batch_rows=1, optimizer=optimizer, shuffle=False))
    made = data.load("uniform", rows=60, features=40, density=0.2, classes=2, seed=0, cache=False)
    y = data.targets(made, "binary")
    small, wide = Learner(setup, 40, 1), Learner(setup, 100, 1)
    x = made.x
    do_steps(small, x, y, np.arange(60))
    grown = with_features(small, 100)
    for learner in (grown, small):
        do_steps(learner, x, y, np.arange(60))
    for _ in range(2):
        do_steps(wide, x, y, np.arange(60))
    assert np.array_equal(grown.arrays["w"][:40], small.arrays["w"])
    assert np.array_equal(grown.arrays["w"], wide.arrays["w"])
    assert not grown.arrays["w"][40:].any()


def test_hashed_columns_are_taken_modulo_and_read_alike(tmp_path):
    path = write(tmp_path / "a.svm", lines(11, ("0", "1")))
    made = wb.train(path, stream=True, bits=5)
    assert made.features == 32
    read = data.load("svmlight", path=path, bits=5, zero_based=True, cache=False)
    assert read.features == 32
    dense = data.load("svmlight", path=path, zero_based=True, cache=False).x.toarray()
    summed = np.zeros((ROWS, 32), np.float32)
    for column in range(dense.shape[1]):
        summed[:, column % 32] += dense[:, column]
    assert np.allclose(read.x.toarray(), summed, atol=1e-6)
    assert made.apply(path).quality["accuracy"] > 0.6


def test_a_model_is_saved_and_applied_as_any_other(tmp_path):
    path = write(tmp_path / "a.svm", lines(12, ("-1", "1")))
    made = wb.train(str(path), stream=True, passes=2)
    made.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    read = data.load("svmlight", path=path, zero_based=True, cache=False)
    predictions = again.apply(path)
    assert np.array_equal(again.predict(read.x), predictions.values)
    assert predictions.quality["accuracy"] > 0.8
    assert again.classes == ("-1", "1")


def test_numbers_are_predicted_in_their_own_unit(tmp_path):
    text = [f"{1000 + 50 * float(line.split()[0])} " + line.partition(" ")[2] for line in lines(13, ("",), columns=30)]
    path = write(tmp_path / "a.svm", text)
    made = wb.train(path, stream=True, passes=20)
    assert made.apply(path).quality["r2"] > 0.8


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path, stop):
    path = write(tmp_path / "a.svm", lines(14, ("0", "1")))
    options = Options(passes=2)

    def new() -> FileTraining:
        return FileTraining("svmlight", {"path": str(path)}, options, 32 << 12)

    whole = new()
    for _ in whole.training.events():
        pass
    begun = new()
    for count, _ in enumerate(begun.training.events(), 1):
        if count > stop:
            break
    begun.save(tmp_path / "model", False)
    assert wb.load_model(tmp_path / "model").features <= whole.training.features
    resumed = new()
    assert resumed.resume(tmp_path / "model")
    for _ in resumed.training.events():
        pass
    resumed.save(tmp_path / "model", True)
    for name, array in whole.training.learner.run.state_dict().items():
        assert np.array_equal(array, resumed.training.learner.run.state_dict()[name]), name
    assert whole.training.held_out_quality() == resumed.training.held_out_quality()
    assert whole.training.sums == resumed.training.sums
    assert not new().resume(tmp_path / "model")


def test_a_training_of_another_file_or_other_settings_is_not_resumed(tmp_path):
    path = write(tmp_path / "a.svm", lines(15, ("0", "1")))
    begun = FileTraining("svmlight", {"path": str(path)}, Options(), 32 << 12)
    for count, _ in enumerate(begun.training.events()):
        if count == 2:
            break
    begun.save(tmp_path / "model", False)
    other = FileTraining("svmlight", {"path": str(path)}, Options(passes=3), 32 << 12)
    with pytest.raises(ModelFolderError, match="settings differ"):
        other.resume(tmp_path / "model")
    write(path, lines(16, ("0", "1")))
    changed = FileTraining("svmlight", {"path": str(path)}, Options(), 32 << 12)
    with pytest.raises(ModelFolderError, match="the file has changed"):
        changed.resume(tmp_path / "model")
    (tmp_path / "model" / "training.npz").write_bytes(b"none")
    with pytest.raises(ModelFolderError, match="is damaged"):
        changed.resume(tmp_path / "model")


@pytest.mark.parametrize("edit", ["columns", "position", "width", "rows", "labels", "sums"])
def test_an_edited_state_is_refused_and_never_followed(tmp_path, edit):
    path = write(tmp_path / "a.svm", lines(15, ("0", "1")))

    def new() -> FileTraining:
        return FileTraining("svmlight", {"path": str(path)}, Options(passes=2), 32 << 12)

    begun = new()
    for count, _ in enumerate(begun.training.events()):
        if count == 3:
            break
    begun.save(tmp_path / "model", False)
    file = tmp_path / "model" / "training.npz"
    about, arrays = formats.load_about(file)
    values, x = about["training"], arrays["x"]
    assert new().resume(tmp_path / "model")
    if edit == "columns":
        about["columns"] = 10**12
    elif edit == "position":
        values["position"] = "far"
    elif edit == "width":
        arrays["x"] = scipy.sparse.csr_array((x.data, x.indices + 10**6, x.indptr), shape=(x.shape[0], 10**7))
    elif edit == "rows":
        arrays["y"] = arrays["y"][1:]
    elif edit == "labels":
        values["labels"] = {"kind": "none"}
    else:
        values["sums"] = {"rows": 1, "columns": 2}
    formats.save(file, arrays, about)
    with pytest.raises(ModelFolderError, match="is damaged"):
        new().resume(tmp_path / "model")


def test_ctrl_c_in_the_command_keeps_the_model_and_the_same_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.undo()  # the command chooses the learning rate by as many rows as usual
    text = lines(17, ("0", "1")) * 100
    path = write(tmp_path / "a.svm", text)
    command = [sys.executable, "-m", "workbench", "train", str(path), "--stream", "--passes", "20", "--memory", "2MB"]
    command += ["--save", str(tmp_path / "model"), "--optimizer", "adagrad"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said = next(line for line in process.stdout if "learning rate" in line)
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()
    assert process.returncode == 130, said
    assert "is kept" in said
    assert wb.load_model(tmp_path / "model").classes == ("0", "1")
    again = subprocess.run([*command, "--passes", "20"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "it goes on after" in again.stdout
    assert not (tmp_path / "model" / "training.npz").exists()
    whole = wb.train(path, stream=True, passes=20, memory=2_000_000)
    assert np.array_equal(wb.load_model(tmp_path / "model").arrays["w"], whole.arrays["w"])


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path / "a.svm", lines(18, ("0", "1"), columns=2000) * 800)
    assert path.stat().st_size > 1.6e7
    code = (
        "import sys, workbench as wb\n"
        "from workbench.measure import memory\n"
        "wb.train(sys.argv[1], stream=True, memory=1 << 20)\n"
        "before = memory.peak_bytes()\n"
        "wb.train(sys.argv[2], stream=True, memory=1 << 20)\n"
        "print(memory.peak_bytes() - before)\n"
    )
    small = write(tmp_path / "small.svm", lines(18, ("0", "1"), columns=2000))
    ran = subprocess.run([sys.executable, "-c", code, small, path], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 8e6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1]}, "labels are read from the file"),
        ({"batch": 3}, "parameter with stream=True"),
        ({"bits": 40}, "bits is 40"),
        ({"model": "softmax"}, "The model is softmax"),
        ({"kind": "multilabel"}, "multilabel"),
    ],
)
def test_what_does_not_go_with_a_stream_is_refused(tmp_path, given, message):
    path = write(tmp_path / "a.svm", lines(19, ("0", "1")))
    with pytest.raises(DataError, match=message):
        wb.train(path, stream=True, **given)


@pytest.mark.parametrize(
    ("line", "given", "message"),
    [
        ("1 2147483647:1", {}, "Type bits=22 to hash the columns"),
        ("1,0 3:1", {}, "Type stream=False to read it whole"),
        (
            "1 3:1",
            {"optimizer": "sgd", "learning_rate": 1e30, "kind": "numbers"},
            r"diverged.*\nType learning_rate=1e\+29",
        ),
        ("1 3:1", {"features": 4}, "with features=4 they are"),
    ],
)
def test_messages_end_with_what_to_type(tmp_path, line, given, message):
    path = write(tmp_path / "a.svm", [*lines(20, ("0", "1")), line, *lines(21, ("0", "1"))])
    with pytest.raises(ValueError, match=message):
        wb.train(path, stream=True, **given)


def test_a_model_that_is_worse_than_a_constant_says_so(tmp_path, capsys):
    path = write(tmp_path / "a.svm", lines(23, ("0", "1"), rows=3000))
    wb.train(path, stream=True, learning_rate=1e6)
    assert "Warning: always predicting the shares of the classes" in capsys.readouterr().err
    wb.train(path, stream=True)
    assert "Warning" not in capsys.readouterr().err


def test_a_large_file_is_streamed_without_being_asked_unless_an_option_needs_it_whole(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from workbench.command import streaming
    from workbench.command.cli import app

    path = write(tmp_path / "a.svm", lines(22, ("0", "1")))
    monkeypatch.setattr(streaming, "bytes_memory", lambda: 1000)
    said = CliRunner().invoke(app, ["train", str(path)]).output
    assert "it is read block by block. Or type --no-stream." in said
    assert "learning rate" in said
    for others in (["--no-stream"], ["--epochs", "2"]):
        assert (
            "block by block" not in CliRunner().invoke(app, ["train", str(path), "--execution", "step", *others]).output
        )
    refused = CliRunner().invoke(app, ["train", str(path), "--stream", "--epochs", "2"])
    assert refused.exit_code == 2
    assert "--epochs: it does not go with --stream. Type --passes." in " ".join(refused.output.split())
    refused = CliRunner().invoke(app, ["train", str(path), "--stream", "--execution", "step"])
    assert "--execution: it does not go with --stream. Leave one out." in " ".join(refused.output.split())
    refused = CliRunner().invoke(app, ["train", str(path), "--no-stream", "--passes", "2"])
    assert refused.exit_code == 2
    refused = CliRunner().invoke(app, ["train", "uniform", "--stream"])
    assert refused.exit_code == 2
    refused = CliRunner().invoke(app, ["train", str(path), "--stream", "--memory", "much"])
    assert "expected a size such as 64MB" in " ".join(refused.output.split())


def test_a_matrix_is_no_file():
    with pytest.raises(DataError, match="stream=True reads a file"):
        wb.train(np.eye(3), stream=True)
