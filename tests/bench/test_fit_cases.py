"""Cases of `bench fit` from data of the user's: the file that is read, and the rows that are held out."""

import pytest

from workbench.bench.fit import cases
from workbench.bench.shapes import BenchError
from workbench.command import bench as command


def test_a_file_is_a_case_and_another_file_is_held_out(tmp_path):
    lines = [f"{number % 2} {1 + number % 2}:1 {3 + number % 5}:1\n" for number in range(40)]
    for name in ("train", "later"):
        (tmp_path / name).write_text("".join(lines[: 40 if name == "train" else 10]))
    case = command.fit_case_of(str(tmp_path / "train"), str(tmp_path / "later"), {}, model="logistic")
    found = cases.judge_of(case, 1)
    assert (found.rows.x.shape[0], found.x.shape, found.y.shape) == (40, (10, found.rows.x.shape[1]), (10, 1))
    share = cases.judge_of(command.fit_case_of(str(tmp_path / "train"), "0.25", {}, model="logistic"), 1)
    assert (share.rows.x.shape[0], share.x.shape[0]) == (30, 10)


def test_what_is_guessed_of_a_file_may_be_said_too(tmp_path, capsys):
    file = tmp_path / "letters"
    file.write_text("spam\tbuy this now\nham\tsee you soon\n" * 9)
    case = command.fit_case_of(str(file), "0.2", {"reading": "label=first, hashed=64"}, model="logistic")
    assert case.settings["reading"] == "hashed=64, label=first"
    assert "is read by the data set text" in capsys.readouterr().err


def test_held_out_rows_may_be_below_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "later").touch()
    case = cases.case_of({"dataset": "svmlight", "path": "train", "model": "logistic"}, "~/later")
    assert case.held_out == str(tmp_path / "later")


@pytest.mark.parametrize("held_out", ["1.5", "no-file"])
def test_held_out_that_is_neither_share_nor_file_is_refused(held_out):
    with pytest.raises(BenchError, match="share"):
        cases.case_of({"dataset": "stdlib", "model": "logistic"}, held_out)
