"""Every door guesses reader and model of a file alike, says so, and takes what its message says to type."""

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from typer.testing import CliRunner

import workbench as wb
from workbench.advising import advising as advising_core
from workbench.api import sweeping as api_sweeping
from workbench.command import cli, sweeping, training

RNG = np.random.default_rng(26)
PAIRS = [(row % 41, row * 7 % 29) for row in range(400)]


def lines(make, count=300, head=""):
    return head + "".join(f"{make(row)}\n" for row in range(count))


def svmlight(row):
    return f"{1 + row % 17}:1 {20 + row % 13}:0.5"


FILES = {
    ("table", "logistic"): {
        "clicks.jsonl": lines(
            lambda row: json.dumps({"user_id": 10**9 + row % 60, "price": row % 7 / 2, "clicked": row % 3 == 0})
        ),
        "shops.json": json.dumps(
            [{"town": "abc"[row % 3], "price": row % 7 / 2, "bought": row % 2} for row in range(300)]
        ),
        "lines.json": lines(lambda row: json.dumps({"name": "abc"[row % 3], "price": row % 7 / 2, "bought": row % 2})),
        "caret.txt": lines(lambda row: f"{row % 50}^{'abc'[row % 3]}^{row % 2}", head="age^town^y\n"),
    },
    ("svmlight", "multilabel"): {
        "tags.txt": lines(lambda row: f"{row % 4},{4 + row % 3} {svmlight(row)}", head="300 50 7\n"),
        "several.txt": lines(lambda row: f"{row % 4},{4 + row % 3} {svmlight(row)}"),
    },
    ("svmlight", "logistic"): {"ffm.txt": lines(lambda row: f"{row % 2} 0:{row % 9}:1 1:{10 + row % 20}:1")},
    ("svmlight", "softmax"): {"words.txt": lines(lambda row: f"{('spam', 'ham', 'eggs')[row % 3]} {svmlight(row)}")},
    ("ratings", "matrix_factorization"): {
        "ratings.txt": lines(lambda row: f"{PAIRS[row][0]}|{PAIRS[row][1]}|{1 + row % 5}"),
        "plays.tsv": lines(
            lambda row: f"u{PAIRS[row][0]}\ta{PAIRS[row][1]}\t{1 + row * 37 % 300}", head="user\tartist\tplays\n"
        ),
    },
    ("table", "linear"): {
        "prices.csv": lines(lambda row: f"{row % 9},{row % 4},{row * 31 % 977 / 4}", head="rooms,floor,price\n")
    },
    ("table", "softmax"): {
        "kinds.arff": lines(
            lambda row: f"{row % 7},{'ab'[row % 2]},{'xyz'[row % 3]}",
            head="@relation r\n@attribute n numeric\n@attribute c {a,b}\n@attribute class {x,y,z}\n@data\n",
        )
    },
}
"""By the reader and the model that suit them: content by name."""
CONTENT = {name: content for files in FILES.values() for name, content in files.items()}


class Done(Exception):  # noqa: N818 (ends a door when what is tested has come)
    """What a door guessed."""


def ends_with(take):
    def end(*given, **named):
        raise Done(take(*given, **named))

    return end


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with all files, in which no door measures or trains."""
    monkeypatch.chdir(tmp_path)
    for name, content in CONTENT.items():
        (tmp_path / name).write_text(content)
    of_settings = ends_with(lambda settings, *_, **__: (settings["dataset"], settings["model"]))
    of_spec = ends_with(lambda spec, *_, **__: (spec.axes["dataset"][0], spec.axes["model"][0]))
    monkeypatch.setattr(advising_core, "_Advising", of_settings)
    monkeypatch.setattr(training, "train", of_settings)
    monkeypatch.setattr(sweeping, "start", of_spec)
    monkeypatch.setattr(api_sweeping, "measured", of_spec)
    return tmp_path


def typed(*words):
    """What a command guessed, and what it said."""
    came = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert isinstance(came.exception, Done), came.output
    return came.exception.args[0], came.stderr


def called(door, *given, capsys, **named):
    with pytest.raises(Done) as done:
        door(*given, **named)
    return done.value.args[0], capsys.readouterr().err


@pytest.mark.parametrize(
    ("reader", "model", "name"), [(*both, name) for both, files in FILES.items() for name in files]
)
def test_every_door_guesses_reader_and_model_alike_and_says_so(reader, model, name, folder, capsys):
    for words in (
        ("train", name),
        ("advise", name, "--budget", 8),
        ("sweep", name, "--yes"),
    ):
        guessed, said = typed(*words)
        assert guessed == (reader, model), words
        assert f"{name} is read by the data set {reader}: it looks like" in said, words
        assert f"The model is {model}: " in said, words
        assert "Another one: --model NAME" in said, words
    for door in (wb.advise, wb.sweep):
        guessed, said = called(door, name, capsys=capsys)
        assert guessed == (reader, model), door
        assert f'{name} is read by "{reader}": it looks like' in said, door
        assert f"The model is {model}: " in said, door
        assert 'Another one: model="NAME".' in said, door
    assert wb.load(name).rows == 300
    assert "rows" in str(wb.profile(name))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("clicks.jsonl", "logistic"),
        ("words.txt", "softmax"),
        ("prices.csv", "linear"),
        ("ratings.txt", "factorization_machine"),
    ],
)
@pytest.mark.filterwarnings("ignore:Training ended worse")  # the labels are drawn without a look at the rows
def test_train_in_python_guesses_so_too_where_an_estimator_has_the_model(name, model, folder, capsys):
    estimator = wb.train(name, random_state=0)
    said = capsys.readouterr().err
    assert f"The model is {model}: " in said
    assert f"Trained {model} on 300 rows" in said
    assert hasattr(estimator, "predict")


def test_train_in_python_says_the_command_for_a_model_that_no_estimator_has(folder):
    with pytest.raises(
        ValueError,
        match=r"multilabel has the target .*\nType workbench train --dataset svm\S* --path \S*several.txt",
    ):
        wb.train("several.txt")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Files that need one option more."""
    monkeypatch.chdir(tmp_path)
    x = scipy.sparse.random(60, 20, 0.2, random_state=0)
    scipy.sparse.save_npz("x.npz", x.tocsr())
    scipy.io.mmwrite("x.mtx", x)
    np.save("x.npy", x.toarray())
    np.save("y.npy", np.arange(60) % 2)
    (tmp_path / "took.tsv").write_text(lines(lambda row: f"{PAIRS[row][0]}\t{PAIRS[row][1]}\t1"))
    return tmp_path


@pytest.mark.parametrize("name", ["x.npz", "x.mtx", "x.npy"])
def test_labels_that_are_asked_for_are_given_at_each_door(name, bare, capsys):
    for door in (wb.load, wb.train):
        with pytest.raises(ValueError, match=r'\nType .*labels="FILE"') as said:
            door(name)
        assert ('kind="none"' in str(said.value)) is (door is wb.load)
        assert door(name, labels="y.npy") is not None
    assert wb.profile(name).table is not None
    assert wb.load(name, kind="none").facts["random_labels"]
    came = CliRunner().invoke(cli.app, ["train", name])
    assert "--labels FILE" in str(came.exception)
    assert CliRunner().invoke(cli.app, ["train", name, "--labels", "y.npy", "--epochs", "1"]).exit_code == 0
    with pytest.raises(ValueError, match=r"X came without labels.\nType wb.train"):
        wb.train(name, kind="none")


def test_ratings_that_are_all_one_say_what_to_type_at_each_door(bare, monkeypatch, capsys):
    for door in (wb.train, wb.advise):
        with pytest.raises(
            ValueError, match=r"Every label of .* is 1: there is nothing to learn(.|\n)*\nType implicit=True\.$"
        ):
            door("took.tsv")
    came = CliRunner().invoke(cli.app, ["train", "took.tsv"])
    assert "--reading implicit=true" in str(came.exception)
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.axes["model"][0]))
    assert called(wb.sweep, "took.tsv", implicit=True, capsys=capsys)[0] == "bpr"
    with pytest.raises(
        ValueError,
        match=r"bpr has the target .*\nType workbench train --dataset ratings --path \S*took.tsv --reading",
    ):
        wb.train("took.tsv", implicit=True)


def test_a_data_set_named_twice_and_a_data_set_for_a_reader(capsys):
    made = wb.load("uniform", dataset="uniform", rows=40, features=20, density=0.1)
    assert made.rows == 40
    with pytest.raises(ValueError, match="'uniform' is a data set by its name, and 'svmlight' reads files; keep one"):
        wb.load("uniform", dataset="svmlight")
    with pytest.raises(
        ValueError, match="'uniform' is a data set by its name, and 'low_rank' is another one; keep one"
    ):
        wb.load("uniform", dataset="low_rank")


def test_a_wrong_setting_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = np.eye(12)[np.arange(60) % 12], np.arange(60) % 2
    for door, given in (
        (wb.sweep, {"density": 2}), (wb.sweep, {"model": "logistc"}), (wb.sweep, {"budget": -1}),
        (wb.sweep, {"rounds": 99}), (wb.advise, {"model": "logistc"}), (wb.advise, {"budget": 1}),
        (wb.advise, {"optimizer": "adm"}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(given))):
            door(x, y, **given)
    assert not [*tmp_path.rglob("*.sparse")]


def test_guesses_of_width_and_model_are_taken_from_the_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        api_sweeping, "measured", ends_with(lambda spec, *_: (spec.axes["model"][0], spec.axes.get("width", (None,))))
    )
    x = scipy.sparse.random(90, 12, 0.3, random_state=0).tocsr()
    classes = np.arange(90) % 3
    assert called(wb.sweep, x, classes, capsys=capsys)[0] == ("softmax", (None,))
    assert called(wb.sweep, x, classes, width=[2, 3], capsys=capsys)[0] == ("softmax", (2, 3))
    assert called(wb.sweep, x, classes % 2, capsys=capsys)[0] == ("logistic", (None,))
    assert called(wb.sweep, x, np.linspace(0, 1, 90), capsys=capsys)[0] == ("linear", (None,))
    assert called(wb.sweep, "uniform", capsys=capsys)[0][0] == "softmax"  # as the panel's first study
    assert wb.train(x, classes, max_iter=1).predict_proba(x).shape == (90, 3)
    monkeypatch.setattr("workbench.api.advice.measure", measure_problem)
    assert called(wb.advise, x, classes, capsys=capsys)[0] == ("softmax", 3)
    assert called(wb.advise, x, classes % 2, capsys=capsys)[0] == ("logistic", 1)


def measure_problem(settings, seconds, **_):
    """End with the model and the width that advice guesses."""
    fixed, _, problem = advising_core._profile_settings(dict(settings))
    raise Done((fixed["model"], problem.width))
