"""Data without labels, with labels in another file, and with a label that is named: every reader takes all three."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from workbench import data
from workbench.data.errors import MissingLabelsError

ROWS = 40
GENERATOR = np.random.default_rng(0)
X = scipy.sparse.random_array((ROWS, 8), density=0.5, format="csr", rng=GENERATOR)
Y = GENERATOR.integers(0, 2, ROWS)


def entries(row: int, first: int = 1) -> str:
    part = slice(X.indptr[row], X.indptr[row + 1])
    return " ".join(f"{c + first}:{v:.3f}" for c, v in zip(X.indices[part], X.data[part], strict=True))


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "y.txt").write_text("\n".join(map(str, Y)) + "\n")
    scipy.sparse.save_npz(tmp_path / "x.npz", X)
    scipy.io.savemat(tmp_path / "x.mat", {"A": X.tocsc()})
    scipy.io.savemat(tmp_path / "turned.mat", {"A": X.T.tocsc()})
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    (tmp_path / "x.svm").write_text("".join(f"{entries(row)}\n" for row in range(ROWS)))
    (tmp_path / "x.vw").write_text("".join(f"| {entries(row)}\n" for row in range(ROWS)))
    (tmp_path / "x.txt").write_text("".join(f"some words of a document {row % 7} of them\n" for row in range(ROWS)))
    return tmp_path


NAMES = ("x.npz", "x.mat", "x.mtx", "x.svm", "x.vw", "x.txt")


def load(path, **parameters):
    name, options, _ = data.guess(path)
    return data.load(name, path=path, cache=False, **{**options, **parameters})


@pytest.mark.parametrize("name", NAMES)
def test_missing_labels_are_told_with_what_to_type(folder, name):
    with pytest.raises(MissingLabelsError, match=r"\nType .*labels=.FILE. .*kind=.none. to go on without"):
        load(folder / name)


@pytest.mark.parametrize("labels", ["y.npy", "y.txt"])
@pytest.mark.parametrize("name", [*NAMES, "turned.mat"])
def test_labels_of_another_file_are_those_of_the_rows(folder, name, labels):
    made = load(folder / name, labels=folder / labels)
    assert made.y.tolist() == Y.tolist()
    assert made.classes == ("0", "1")


@pytest.mark.parametrize("name", NAMES)
def test_data_is_read_and_described_without_labels(folder, name):
    made = load(folder / name, kind="none")
    assert (made.rows, str(made.labels)) == (ROWS, "none")
    assert data.profile(made).rows == ROWS
    with pytest.raises(MissingLabelsError, match="was read without labels, which training needs"):
        data.targets(made, "binary")


def test_labels_of_another_length_are_refused(folder):
    np.save(folder / "short.npy", Y[:-1])
    for name in ("x.svm", "x.vw", "x.npz"):
        with pytest.raises(data.DataError, match=f"{ROWS - 1} labels"):
            load(folder / name, labels=folder / "short.npy")


def test_a_variable_of_labels_is_named_by_label(folder):
    scipy.io.savemat(folder / "both.mat", {"A": X.tocsc(), "first": Y, "second": 1 - Y})
    assert load(folder / "both.mat", label="second").y.tolist() == (1 - Y).tolist()


@pytest.mark.parametrize(
    ("header", "name", "why"), [("a,Clicked,b", "Clicked", "its name"), ("a,b,c", "b", "the only column of two values")]
)
def test_the_label_of_a_table_is_guessed_and_told(tmp_path, header, name, why):
    rows = "".join(f"{row},{row % 2},{row % 5}\n" for row in range(30))
    (tmp_path / "t.csv").write_text(f"{header}\n{rows}")
    made = load(tmp_path / "t.csv")
    assert made.facts["guesses"][0].startswith(f"The label is the column {name!r} ({why}). Another one: ")
    assert made.y.tolist() == [row % 2 for row in range(30)]


def test_without_a_name_or_two_values_the_last_column_is_the_label(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{row % 4},{row % 3},{row % 5}\n" for row in range(60)))
    assert load(tmp_path / "t.csv").facts["guesses"][0].startswith("The label is the column 'c' (the last column).")


@pytest.mark.parametrize(
    "form", ["2026-{:02d}-03", "2026/{:02d}/3 10:00", "03.{:02d}.2026", "2026-{:02d}-03T10:00:00Z"]
)
def test_a_last_column_of_dates_is_no_label(tmp_path, form):
    lines = "".join(f"{row % 4},{row % 3},{form.format(1 + row % 12)}\n" for row in range(300))
    (tmp_path / "t.csv").write_text(f"a,b,seen\n{lines}")
    assert data.guess_columns(tmp_path / "t.csv").label is None


@pytest.mark.parametrize(("length", "kind"), [(16, "ignored"), (10, "category")])
def test_times_of_many_values_are_left_out_and_days_are_categories(tmp_path, length, kind):
    times = [*np.datetime64("2026-03-01T00:00") + np.arange(1500) * 5 // 6 * np.timedelta64(1, "m")]
    times.append(times[-1] + np.timedelta64(9, "D"))
    lines = "".join(f"{str(time)[:length]},{row % 7}.5,{row % 2}\n" for row, time in enumerate(times))
    (tmp_path / "t.csv").write_text(f"seen,size,y\n{lines}")
    made = load(tmp_path / "t.csv")
    assert made.facts["reread"]["columns"]["columns"]["seen"]["kind"] == kind
    assert any("dates and times, most of them" in one for one in made.facts["guesses"]) == (kind == "ignored")


def test_a_column_of_several_values_is_not_said_to_be_rare_values(tmp_path):
    lines = "".join(f"{row % 7}|{row % 11}|{row % 13}|{row % 17},{row % 2}\n" for row in range(1200))
    (tmp_path / "t.csv").write_text(f"tags,y\n{lines}")
    guesses = load(tmp_path / "t.csv").facts["guesses"]
    assert any("holds several values a row" in one for one in guesses)
    assert not any("most are seen once" in one for one in guesses)


@pytest.mark.parametrize("name", ["user", "movieId", "item_id", "zip"])
def test_whole_numbers_named_like_ids_are_categories(tmp_path, name):
    rows = "".join(f"{100 + 7 * (row % 50)},{row / 7:.3f},{row % 2}\n" for row in range(200))
    (tmp_path / "t.csv").write_text(f"{name},size,label\n{rows}")
    columns = {column.name: column.kind for column in data.guess_columns(tmp_path / "t.csv")}
    assert columns == {name: "category", "size": "number", "label": "label"}
    assert f"The column {name} is a category" in load(tmp_path / "t.csv").facts["guesses"][1]


def test_whole_numbers_of_many_values_that_recur_are_categories_and_others_numbers(tmp_path):
    rows = "".join(f"{9 * (row % 1200)},{20 + row % 60},{row % 2}\n" for row in range(2600))
    (tmp_path / "t.csv").write_text(f"place,age,label\n{rows}")
    columns = {column.name: column.kind for column in data.guess_columns(tmp_path / "t.csv")}
    assert columns == {"place": "category", "age": "number", "label": "label"}


@pytest.mark.parametrize("sign", [",", "|", ";", "\t", "::"])
def test_ratings_are_known_by_their_header_in_any_order_and_case(tmp_path, sign):
    lines = [["Timestamp", "UserID", "Movie_Id", "RATING"], *([1000 + k, k % 5, k, 1 + k % 4] for k in range(20))]
    (tmp_path / "r").write_text("".join(sign.join(map(str, line)) + "\n" for line in lines))
    made = load(tmp_path / "r")
    assert (made.name, made.facts["users"], made.facts["items"]) == ("ratings", 5, 20)
    assert made.y.tolist() == [1.0 + k % 4 for k in range(20)]
