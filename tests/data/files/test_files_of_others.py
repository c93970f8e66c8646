"""Files as other people write them: packed by zip, in UTF-16 or Latin-1, aligned by blanks, with a decimal comma, ARFF,
Feather, dense arrays; each is read with what is guessed, or with the option that its message spells out."""

import bz2
import re
import subprocess
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from workbench import data, option_text
from workbench.data import DataError
from workbench.data.errors import MissingLabelsError

ROWS = [
    (age, colour, 1 + number % 2) for number, (age, colour) in enumerate(zip("5374261859", "rgbrgbrgbr", strict=True))
]
CSV = "age,colour,y\n" + "".join(f"{age}.5,{colour},{y}\n" for age, colour, y in ROWS)


pytestmark = pytest.mark.usefixtures("own_cache")


def loaded(path, **given):
    """The data set in a file, whose reader is guessed."""
    name, options, _ = data.guess(path)
    return data.load(name, path=path, **{**options, **given})


def same(made, other):
    """Whether two data sets have the same matrix, labels and classes."""
    return (made.x != other.x).nnz == 0 and made.y.tolist() == other.y.tolist() and made.classes == other.classes


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain.csv").write_text(CSV)
    return loaded(tmp_path / "plain.csv")


def zipped(text, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/train.csv", text)
        archive.writestr("__MACOSX/train.csv", "?")


WRITTEN = {
    "one file in a zip": zipped,
    "UTF-16, as Excel saves Unicode text": lambda text, path: path.write_bytes(text.encode("utf-16")),
    "UTF-16 packed": lambda text, path: path.write_bytes(bz2.compress(text.encode("utf-16"))),
    "aligned by blanks": lambda text, path: path.write_text(
        "\n".join("  ".join(f"{field:>7}" for field in line.split(",")) for line in text.splitlines())
        .replace(" r ", " 1 ").replace(" g ", " 2 ").replace(" b ", " 3 ")
    ),
    "a decimal comma": lambda text, path: path.write_text(text.replace(",", ";").replace(".", ",")),
}  # fmt: skip


@pytest.mark.parametrize("way", WRITTEN)
def test_a_table_is_the_same_however_it_is_written(way, tmp_path, plain):
    path = tmp_path / "train.csv"
    WRITTEN[way](CSV, path)
    made = loaded(path, columns={"columns": {"colour": {"kind": "category"}}})
    assert made.rows == plain.rows
    assert made.features == plain.features
    assert made.y.tolist() == plain.y.tolist()
    assert np.diff(made.x.indptr).tolist() == np.diff(plain.x.indptr).tolist()
    again = data.load("table", path=path, like=made)
    assert same(made, again)


def test_a_decimal_comma_is_said_with_what_to_type_for_text(tmp_path):
    (tmp_path / "train.csv").write_text("price;y\n3,5;1\n2,25;0\n4,5;0\n")
    made = loaded(tmp_path / "train.csv")
    assert made.facts["guesses"][0].endswith(f"As text: {option_text.typed(decimal='point')}.")
    kept = loaded(tmp_path / "train.csv", decimal=".")
    assert "decimal" not in kept.facts["guesses"][0]
    (tmp_path / "thousands.csv").write_text("price;y\n3,500;1\n2,250;0\n4,500;0\n")
    assert not any("decimal" in guess for guess in loaded(tmp_path / "thousands.csv").facts["guesses"])
    with pytest.raises(DataError, match="decimal is ';'; it is the sign before a fraction, one of: "):
        loaded(tmp_path / "train.csv", decimal=";")


def test_columns_that_were_kept_without_a_decimal_sign_are_read_with_points(tmp_path):
    (tmp_path / "train.csv").write_text("price;y\n3,5;1\n2,25;0\n4,5;0\n")
    stored = loaded(tmp_path / "train.csv", decimal=".").facts["reread"]["columns"]
    assert "decimal" not in stored
    made = data.load("table", path=tmp_path / "train.csv", columns=stored)
    assert stored["columns"]["price"]["values"] == ["2,25", "3,5", "4,5"]
    assert made.facts["reread"]["columns"]["columns"]["price"]["values"] == ["2,25", "3,5", "4,5"]


def option_of(message):
    """The settings of a reader that a message says to type."""
    return eval(f"dict({re.search('Type ([^ ]+?)[. ]', message)[1]})", {})


def test_another_encoding_is_asked_for_with_the_option_that_reads_it(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes("größe,y\n3.5,ja\n2.5,nein\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"train.csv:1: the byte 0xf6 is not utf-8; say which encoding it is") as said:
        loaded(path)
    made = loaded(path, **option_of(str(said.value)))
    assert [*made.facts["reread"]["columns"]["columns"]] == ["größe", "y"]
    assert same(made, data.load("table", path=path, like=made))
    with pytest.raises(DataError, match="unknown encoding"):
        loaded(path, encoding="latin-99")


def test_rows_without_a_label_are_refused_with_the_option_that_leaves_them_out(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("age,y\n5,1\n6,\n7,0\n8,1\n,0\n")
    with pytest.raises(DataError, match=r"train.csv:3: column 'y' has no label here") as said:
        loaded(path)
    made = loaded(path, **option_of(str(said.value)))
    assert made.y.tolist() == [1, 0, 1, 0]
    blocks = data.get("table").blocks(path=path, unlabelled="skip")
    assert sum(block.x.shape[0] for block in blocks.blocks) == 4
    path.write_text("age,y\n5,1\n6,NaN\n7,0\n8,1\n9,0\n")
    with pytest.raises(
        DataError, match=r"train.csv:3: the label .* is 'NaN'.*\nType unlabelled=.skip. to leave such rows out"
    ):
        loaded(path)
    assert loaded(path, unlabelled="skip").y.tolist() == [1, 0, 1, 0]
    path.write_text("age,y\n5,1\n6,NaN\n7,0\nold,1\n" + "8,1\n9,0\n" * 9)
    with pytest.raises(DataError, match=r"train.csv:5: .*'old'"):  # a line of the file, not of the rows that are kept
        loaded(path, unlabelled="skip", columns={"columns": {"age": {"kind": "number"}}})
    with pytest.raises(DataError, match="unlabelled is 'drop'; expected one of: refuse, skip"):
        loaded(path, unlabelled="drop")


ARFF = """% a comment
@RELATION shop

@attribute age numeric
@ATTRIBUTE 'the colour' {red, 'dark green', blue}
@attribute y {no,yes}
@DATA
"""


def test_arff_is_read_dense_and_sparse(tmp_path):
    dense, sparse = tmp_path / "dense.arff", tmp_path / "sparse.arff"
    dense.write_text(ARFF + "5,red,no\n% between\n0,'dark green',yes\n?,blue,no\n0,red,yes\n")
    sparse.write_text(ARFF + "{0 5}\n{1 'dark green', 2 yes}\n{0 ?, 1 blue}\n{2 yes}\n")
    made = loaded(dense)
    assert made.classes == ("no", "yes")
    assert made.y.tolist() == [0, 1, 0, 1]
    assert same(made, loaded(sparse))
    assert same(made, data.load("table", path=dense, like=made))
    sparse.write_text(ARFF + "{0 5}\n{7 1}\n")
    with pytest.raises(DataError, match=r"sparse.arff:9: '7 1' is no place from 0 to 2 with its value"):
        loaded(sparse)
    dense.write_text(ARFF + "5,red\n")
    with pytest.raises(DataError, match=r"dense.arff:8: this row has 2 values and the file 3 attributes"):
        loaded(dense)
    dense.write_text("@relation x\n@attribute a numeric\n@attribute A numeric\n")
    with pytest.raises(DataError, match="has no @data"):
        loaded(dense)


def test_feather_is_read_as_parquet_is(tmp_path, plain):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    age, colour, y = zip(*ROWS, strict=True)
    columns = {"age": [float(f"{one}.5") for one in age], "colour": colour, "y": y}
    pyarrow.feather.write_feather(pa.table(columns), str(tmp_path / "t.feather"))
    pyarrow.parquet.write_table(pa.table(columns), str(tmp_path / "t.parquet"))
    assert same(loaded(tmp_path / "t.feather"), loaded(tmp_path / "t.parquet"))
    assert same(loaded(tmp_path / "t.feather"), plain)
    content = (tmp_path / "t.feather").read_bytes()
    for cut in range(8, len(content), 97):
        (tmp_path / "cut.feather").write_bytes(content[:cut])
        with pytest.raises(DataError, match=r"cut.feather"):
            loaded(tmp_path / "cut.feather")


@pytest.mark.parametrize(
    ("arrays", "given"),
    [
        ({"X": True, "y": True}, {}),
        ({"data": True, "target": True, "names": False}, {}),
        ({"x_train": True, "y_train": True, "x_test": True, "y_test": True}, {}),
        ({"a": True, "b": True}, {"variable": "a", "labels_variable": "b"}),
        ({"a": True, "b": True}, {"label": "b"}),
    ],
)
def test_dense_arrays_in_one_archive_are_matrix_and_labels(arrays, given, tmp_path):
    x, y = np.eye(6, 4) * 1.5, np.arange(6) % 2
    x[4, 0] = x[5, 1] = 2.0
    values = {True: (x, y), False: (np.array(["p", "q"]),) * 2}
    kept = {name: values[is_one][number % 2] for number, (name, is_one) in enumerate(arrays.items())}
    np.savez(tmp_path / "both.npz", **kept)
    made = loaded(tmp_path / "both.npz", **given)
    assert made.x.toarray().tolist() == x.tolist()
    assert made.y.tolist() == y.tolist()


def test_what_is_not_clear_of_dense_arrays_is_asked_for(tmp_path):
    x = np.eye(6, 4)
    np.savez(tmp_path / "two.npz", a=x, b=x, c=np.arange(6))
    with pytest.raises(DataError, match=r"it is not clear which array is meant by variable.\nType variable="):
        loaded(tmp_path / "two.npz")
    assert loaded(tmp_path / "two.npz", variable="b", kind="numbers").rows == 6
    np.savez(tmp_path / "bad.npz", X=np.array([[1.0, np.nan], [1.0, 2.0]]), y=[0, 1])
    with pytest.raises(DataError, match="X has a value that is missing or infinite in row 0"):
        loaded(tmp_path / "bad.npz")
    np.savez(tmp_path / "objects.npz", X=np.array([[1, None]], object), y=[0])
    with pytest.raises(DataError):
        loaded(tmp_path / "objects.npz")


def test_a_matrix_by_numpy_save_takes_labels_in_a_file(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4, 3) + 1)
    np.save(tmp_path / "y.npy", [0, 1, 0, 1])
    with pytest.raises(MissingLabelsError, match=r"Type labels=.FILE"):
        loaded(tmp_path / "x.npy")
    made = loaded(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(np.eye(4, 3) + 1))
    assert same(made, loaded(tmp_path / "x.npz", labels=tmp_path / "y.npy"))
    with pytest.raises(DataError, match=r"give this file as its labels: labels=.FILE"):
        data.guess(tmp_path / "y.npy")


def docword(x):
    """A bag of words as UCI has it: documents, words, entries; then a line for each entry, counted from 1."""
    entries = [f"{row + 1} {column + 1} {int(value)}\n" for row, column, value in zip(*sp.find(x), strict=True)]
    return f"{x.shape[0]}\n{x.shape[1]}\n{len(entries)}\n{''.join(entries)}"


COUNTS = sp.csr_array(np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0], [1, 1, 1, 0], [0, 0, 5, 0], [0, 0, 0, 0]]))


@pytest.mark.parametrize("pack", [bytes, bz2.compress])
def test_a_bag_of_words_of_uci_has_a_row_a_document_and_no_header_among_them(tmp_path, pack):
    path = tmp_path / "docword.txt"
    path.write_bytes(pack(docword(COUNTS).encode()))
    assert data.guess(path)[0] == "matrix_market"
    with pytest.raises(MissingLabelsError, match="labels"):
        loaded(path)
    assert (loaded(path, kind="none").x != COUNTS).nnz == 0
    (tmp_path / "y.txt").write_text("a\nb\na\nb\na\nb\n")
    made = loaded(path, labels=tmp_path / "y.txt")
    assert made.x.shape == COUNTS.shape
    assert made.y.tolist() == [0, 1] * 3
    path.write_text(docword(COUNTS).replace("6\n4\n", "6\n3\n", 1))
    with pytest.raises(DataError, match=r"docword.txt:5: .*4"):
        loaded(path, kind="none")


def test_rows_of_lda_are_no_svmlight_and_the_command_that_is_told_makes_rows_of_them(tmp_path):
    rows = [sorted(zip(row.indices, row.data, strict=True)) for row in (COUNTS[[number]] for number in range(6))]
    path = tmp_path / "x.ldac"
    path.write_text("".join(f"{len(row)}{''.join(f' {column}:{value}' for column, value in row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"rows of LDA-C .* no data set reads") as said:
        loaded(path)
    command = re.search("as (sed .*) does", str(said.value))[1].replace("FILE", "x.ldac").replace("NEW", "new.txt")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    words = re.search(r"\nType (dataset=.*)\.", str(said.value))
    assert words[1] == 'dataset="svmlight", kind="none", zero_based=True'
    call = f"data.load({words[1].replace('dataset=', 'name=')}, path=new)"
    made = eval(call, {"data": data, "new": tmp_path / "new.txt"})
    assert (made.x != COUNTS).nnz == 0


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("multilabel", [True, False])
def test_a_comment_of_scikit_learn_says_from_where_columns_count(tmp_path, zero_based, multilabel):
    x = sp.csr_array(COUNTS.toarray()[:, [1, 0, 2, 3]] * [0, 1, 1, 1])  # its first column has no entry
    y = np.eye(2, dtype=int)[[0, 1, 0, 1, 0, 1]] if multilabel else np.array([0, 1, 0, 1, 0, 1])
    path = str(tmp_path / "x.svm")
    dump_svmlight_file(x, y, path, zero_based=zero_based, comment="mine", multilabel=multilabel)
    made = loaded(path)
    assert (made.x != x).nnz == 0
    assert made.facts["reread"] == {"zero_based": zero_based}
    blocks = data.get("svmlight").blocks(path=path)
    assert sum(block.x[:, [0]].nnz for block in blocks.blocks if block.x.shape[1]) == 0
    assert loaded(path, zero_based=False).features == (3 if zero_based else 4)
