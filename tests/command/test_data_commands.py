"""`workbench data`: a path or a name comes in, a table, JSON or pictures come out, and mistakes are told."""

import errno
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse
import typer
from typer.testing import CliRunner

from workbench import data, option_text
from workbench.analysis import profiles
from workbench.command import cli, exit_codes, training
from workbench.panels import state

DRAWN = "rows=60, features=40, density=0.1, seed=1"


@pytest.fixture
def news(tmp_path):
    path = tmp_path / "news.txt"
    path.write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))
    return path


@pytest.fixture
def matrix(tmp_path):
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.eye_array(6, 9, format="csr"))
    np.save(tmp_path / "y.npy", np.array([0.5, 1, 2, 3, 4, 7]))
    return tmp_path / "x.npz"


def run(*arguments):
    return CliRunner().invoke(cli.app, ["data", *map(str, arguments)])


def known(*arguments):
    came = run("profile", *arguments, "--json")
    assert came.exit_code == 0, came.output
    return json.loads(came.stdout)


def test_the_list_has_every_data_set_with_its_parameters_and_licence():
    table, listed = run("list").output, json.loads(run("list", "--json").output)
    assert [one["name"] for one in listed] == data.names()
    assert all(one["licence"] and one["origin"] for one in listed)
    npz = next(one for one in listed if one["name"] == "npz")
    assert npz["needs"] == ["path"]
    of_labels = {"labels": None, "kind": None, "positive": None, "classes": None, "unseen": None}
    assert npz["parameters"] == of_labels | {"variable": None, "labels_variable": None, "label": None}
    assert all(f"{name}\n" in table for name in data.names())


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_list_breaks_no_word(columns):
    came = CliRunner().invoke(cli.app, ["data", "list"], env={"COLUMNS": str(columns)}).output
    words = {word.strip(",;") for word in came.split()}
    for one in json.loads(run("list", "--json").output):
        assert set(one["origin"].replace(",", "").split()) <= words
        assert {name for name, value in one["parameters"].items() if value is None} <= words
        assert {f"{name}={value}" for name, value in one["parameters"].items() if isinstance(value, int | float)} <= {
            word.replace("true", "True").replace("false", "False") for word in words
        }


def test_a_path_is_read_by_the_reader_that_it_looks_like(news):
    found = known(news)
    assert (found["name"], found["rows"], found["features"], found["entries"]) == ("svmlight", 30, 40, 60)
    assert found["labels"]["shown"] == [["0", 15], ["1", 15]]


def test_a_guess_is_told_beside_the_result_and_its_options_give_way(tmp_path):
    (tmp_path / "mails.txt").write_text(
        "".join(f"{'spam' if row % 3 else 'ham'}\tword{row} and more\n" for row in range(9))
    )
    came = run("profile", tmp_path / "mails.txt", "--json")
    assert "mails.txt is read by the data set text: it looks like text, a label before each." in came.stderr
    assert json.loads(came.stdout)["labels"]["shown"] == [["spam", 6], ["ham", 3]]
    assert known(tmp_path / "mails.txt", "--reading", "label=first, hashed=5")["features"] == 5


def test_a_folder_of_text_is_read(tmp_path):
    for name in ("ham", "spam"):
        (tmp_path / "mails" / name).mkdir(parents=True)
        (tmp_path / "mails" / name / "1.txt").write_text(f"{name} and eggs")
    found = known(tmp_path / "mails")
    assert (found["name"], found["rows"], found["entries"]) == ("text", 2, 6)


def test_labels_kind_and_reading_are_obeyed(news, matrix):
    assert known(matrix, "--labels", "y.npy")["labels"]["quartiles"] == [0.5, 1.25, 2.5, 3.75, 7]
    assert known(news, "--kind", "numbers")["labels"]["kind"] == "numbers"
    assert known(news, "--dataset", "svmlight", "--reading", "features=50")["features"] == 50


def test_a_name_is_a_data_set_with_the_parameters_of_reading():
    found = known("power_law", "--reading", DRAWN)
    assert (found["name"], found["rows"], found["features"]) == ("power_law", 60, 40)


def test_the_table_and_the_sentence_say_the_numbers(news):
    shown = run("profile", news).output
    for text in ("30 rows x 40 columns", "60 entries, density 5 %", "median 2", "9 never used", "an entry", "tf-idf"):
        assert text in shown, text
    assert "dense takes 4.8 kB" in shown
    assert "worth measuring" in shown


def test_charts_are_written_as_svg_and_png(news, tmp_path):
    came = run("profile", news, "--json", "--charts", "pictures")
    assert json.loads(came.stdout)["rows"] == 30
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert names == {"profile.svg", "profile.png"}
    assert ET.parse(tmp_path / "pictures" / "profile.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "pictures" / "profile.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["News.TXT"], "There is no file and no data set 'News.TXT'. Did you mean 'news.txt'?"),
        (["unifrom"], "There is no file and no data set 'unifrom'. Did you mean 'uniform'?"),
        (["nowhere.txt"], f"There is no file and no data set 'nowhere.txt'. Data sets: {', '.join(data.names())}"),
        (
            ["news.txt", "--dataset", "svmlite"],
            f"Unknown data set 'svmlite'. Did you mean 'svmlight'? Expected one of: {', '.join(data.names())}",
        ),
        (["news.txt", "--reading", "widht=3"], "svmlight has no parameter 'widht'; its parameters are path"),
        (["news.txt", "--labels", "y.npy"], "y.npy has 6 labels for 30 rows; there must be one for each row"),
        (["news.txt", "--kind", "words"], "kind is 'words'; it is one of classes, numbers, multilabel"),
        (["news.txt", "--dataset", "uniform"], "uniform has no parameter 'path'"),
        (["svmlight"], "svmlight needs path, your file or folder"),
        (["data.pickle"], "looks like a pickle"),
    ],
)
def test_mistakes_are_told_with_what_is_known_and_end_with_the_status_of_wrong_input(
    arguments, text, news, matrix, tmp_path
):
    (tmp_path / "data.pickle").write_bytes(b"\x80\x04")
    came = run("profile", *arguments)
    assert text in str(came.exception)
    assert exit_codes.status_of(came.exception) == exit_codes.WRONG_INPUT


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (option_text.in_python, 'Type label="first", whole=True.'),
        (option_text.on_command_line, "Type --label first --reading whole=true."),
        (state.in_panel, "Type first in the field *Label*, whole=true in the field *Read with*."),
    ],
)
def test_a_message_names_options_in_the_words_of_each_door(words, result):
    with option_text.at_door(words):
        assert str(data.DataError(f"Type {option_text.typed(label='first', whole=True)}.")) == result


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "no" / "x.html").write_text("")
    assert exit_codes.text_of(raised.value).endswith(
        f"There is no folder {tmp_path / 'no'}; make it first, or name another"
    )


def test_a_full_disk_is_told_with_what_to_do_though_no_file_is_named():
    """Writing fails with a number alone; /dev/full always does so."""
    with pytest.raises(OSError, match="No space left") as raised, open("/dev/full", "wb", buffering=0) as file:
        file.write(b"1")
    assert exit_codes.text_of(raised.value) == (
        "No space left on device. Free some of the disk, or name a folder on another one."
    )


def test_a_folder_that_cannot_be_written_to_is_told_with_what_to_do():
    error = OSError(errno.EROFS, "Read-only file system", "runs/y")
    assert exit_codes.text_of(error) == "Read-only file system: runs/y. Name a folder that can be written to."


def test_train_guesses_the_reader_of_a_file_as_the_other_commands_do(news, monkeypatch):
    trained = []
    monkeypatch.setattr(training, "train", lambda settings, *_: trained.append(settings))
    came = CliRunner().invoke(cli.app, ["train", "--path", str(news), "--reading", "features=50"])
    assert "is read by the data set svmlight" in came.stderr
    assert {name: trained[0][name] for name in ("dataset", "reading")} == {
        "dataset": "svmlight",
        "reading": {"features": 50},
    }


def test_a_wrong_command_of_a_group_lists_the_known_ones():
    known = typer.main.get_command(cli.app).commands["data"].commands
    came = CliRunner().invoke(cli.app, ["data", "profil"])
    assert came.exit_code == exit_codes.WRONG_INPUT
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", came.output).split())
    assert f"Unknown command 'profil'. Did you mean 'profile'? Expected one of: {', '.join(known)}." in said


@pytest.mark.parametrize(
    ("density", "text"),
    [(0.9, "little to measure"), (0.4, "little memory to save"), (0.01, "sparse enough to be worth measuring")],
)
def test_the_sentence_follows_what_dense_costs_against_csr(density, text):
    found = known("uniform", "--reading", f"rows=200, features=100, density={density}")
    said = profiles.profile_sentence(found)
    assert text in said
    assert "faster" in said or "worth measuring" in said or "no memory" in said


def test_dense_that_does_not_fit_is_told():
    found = known("uniform", "--reading", "rows=200, features=100, density=0.1")
    assert profiles.profile_sentence(found, 80_000) == profiles.profile_sentence(found)
    assert profiles.profile_sentence(found, 79_999).endswith("Dense does not fit here: 80 kB are free.")


def test_a_file_without_labels_is_profiled_and_says_so(matrix):
    came = run("profile", matrix, "--json")
    assert came.exit_code == 0, came.output
    assert json.loads(came.stdout)["rows"] == 6
    assert "It is read without labels." in came.stderr
