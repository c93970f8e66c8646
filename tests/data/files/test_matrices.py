"""Matrix Market files and matrices with labels of their own: what is in them, or an error with file and line."""

import bz2
import codecs
import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tests.support.mutations import damaged_bytes, draws, tried
from workbench import data, formats
from workbench.data import DataError
from workbench.data.files import matrix_market
from workbench.data.files.labels import read_label_file
from workbench.data.files.matrix_market import read_market
from workbench.data.files.reading import read_matrix

COORDINATE = "%%MatrixMarket matrix coordinate real general\n"


def written(folder, text, labels="a\nb\na\n", name="x.mtx"):
    (folder / name).write_text(text)
    (folder / "y.txt").write_text(labels)
    return {"path": folder / name, "labels": folder / "y.txt"}


def load(folder, text, labels="a\nb\na\n", **parameters):
    return data.load("matrix_market", cache=False, **written(folder, text, labels), **parameters)


def by_hand(text):
    """The form as its page has it, in plain Python."""
    lines = [line.split() for line in text.splitlines() if line.strip() and (line[0] != "%" or line[1] == "%")]
    banner, sizes, *entries = lines
    form, field, symmetry = map(str.casefold, banner[2:])
    rows, columns = int(sizes[0]), int(sizes[1])
    places = [(int(entry[0]) - 1, int(entry[1]) - 1) for entry in entries] if form == "coordinate" else None
    if places is None:
        first = {"general": 0, "symmetric": 0, "skew-symmetric": 1}[symmetry]
        triangle = symmetry != "general"
        places = [(i, j) for j in range(columns) for i in range(j + first if triangle else 0, rows)]
    made = np.zeros((rows, columns))
    for (row, column), entry in zip(places, entries, strict=True):
        value = 1.0 if field == "pattern" else float(entry[-1])
        made[row, column] += value
        if symmetry != "general" and row != column:
            made[column, row] += value if symmetry == "symmetric" else -value
    return made


FILES = {
    "real": COORDINATE + "% said\n\n3 4 5\n1 1 0.5\n3 4 -2e-3\n\n2 2 7.\n3 1 +1\n1 3 .25\n".replace("+", ""),
    "duplicates and zeros": COORDINATE + "3 2 4\n1 1 1\n1 1 2\n2 2 0\n3 2 1\n",
    "integer": "%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 3 -4\n3 1 123456\n",
    "unsigned": "%%MatrixMarket matrix coordinate unsigned-integer general\n3 3 2\n1 3 4\n3 1 9\n",
    "pattern": "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 3\n3 1\n",
    "symmetric pattern": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n3 1\n3 2\n",
    "symmetric": "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 5\n3 1 2\n3 2 1.5\n",
    "skew": "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 1 2\n",
    "upper case": "%%MatrixMarket MATRIX Coordinate REAL General\n3 2 1\n2 2 7\n",
    "array": "%%MatrixMarket matrix array real general\n3 2\n1\n0\n3\n4\n5.5\n6\n",
    "symmetric array": "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
    "skew array": "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n",
}


@pytest.mark.parametrize("name", FILES)
def test_matrices_are_those_of_plain_python(tmp_path, name):
    made = load(tmp_path, FILES[name])
    np.testing.assert_array_equal(made.x.toarray(), by_hand(FILES[name]).astype(np.float32))
    assert (made.x.dtype, made.x.indices.dtype) == (np.float32, np.int32)
    assert made.x.has_canonical_format
    assert (made.classes, made.y.tolist()) == (("a", "b"), [0, 1, 0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("symmetry", "field"), [("general", "real"), ("symmetric", "integer"), ("general", "pattern")])
def test_what_scipy_writes_is_read(tmp_path, seed, symmetry, field):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-5, 6, (30, 30)) * (rng.random((30, 30)) < 0.2)
    dense = dense + dense.T if symmetry == "symmetric" else dense * rng.random()
    dense = (dense != 0).astype(float) if field == "pattern" else dense
    scipy.io.mmwrite(tmp_path / "x.mtx", sp.coo_array(dense), field=field, symmetry=symmetry, precision=17)
    np.testing.assert_array_equal(read_market(tmp_path / "x.mtx").toarray(), dense)


def test_values_have_the_bits_of_scipys_reader(tmp_path):
    rng = np.random.default_rng(4)
    values = rng.standard_normal(500) * 10.0 ** rng.integers(-320, 300, 500)
    scipy.io.mmwrite(tmp_path / "x.mtx", sp.coo_array((values, (np.arange(500), np.arange(500)[::-1]))), precision=17)
    made, expected = read_market(tmp_path / "x.mtx"), scipy.io.mmread(tmp_path / "x.mtx", spmatrix=False)
    np.testing.assert_array_equal(made.data.view(np.int64), expected.data.view(np.int64))
    assert made.data.tolist() == values.tolist()
    for own, other in zip(made.coords, expected.coords, strict=True):
        np.testing.assert_array_equal(own, other)


def test_duplicates_are_summed_and_zeros_stay_stored(tmp_path):
    made = load(tmp_path, FILES["duplicates and zeros"])
    assert (made.x.data.tolist(), made.facts["duplicate_entries"]) == ([3, 0, 1], 1)


def test_rows_past_32_bits_are_read_exactly(tmp_path):
    path = written(tmp_path, COORDINATE + "3000000000 2 2\n2999999999 1 4\n1 2 1\n")["path"]
    made = read_matrix(path)
    assert made.shape == (3_000_000_000, 2)
    assert [part.tolist() for part in made.coords] == [[2_999_999_998, 0], [0, 1]]


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_packed_and_marked_files_are_read(tmp_path, suffix, pack, mark):
    path = tmp_path / f"x.mtx{suffix}"
    path.write_bytes(pack(mark + FILES["real"].replace("\n", "\r\n").encode()))
    np.testing.assert_array_equal(read_market(path).toarray(), by_hand(FILES["real"]))


WRONG = {
    "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n": "x.mtx:1: the matrix is complex; a data set",
    "%%MatrixMarket matrix coordinate real hermitian\n1 1 1\n1 1 1\n": "x.mtx:1: the matrix is complex",
    "%%MatrixMarket vector coordinate real general\n1 1\n1 1\n": "x.mtx:1: the file does not begin as",
    "%%MatrixMarket matrix list real general\n1 1\n1 1\n": "x.mtx:1: the banner says list real general; allowed is c",
    "%%MatrixMarket matrix array pattern general\n1 1\n": "x.mtx:1: a pattern has no values",
    "%%MatrixMarket matrix array real symmetric\n2 1\n": "x.mtx:2: 2 x 1 is said to be symmetric; such a matrix is sq",
    COORDINATE: "x.mtx ends before the sizes of the matrix",
    COORDINATE + "3 3\n": "x.mtx:2: the line of sizes holds rows, columns and entries, whole numbers; b'3 3",
    COORDINATE + "3 3 -1\n": "x.mtx:2: the line of sizes",
    COORDINATE + "3 3 2\n1 1 1\n": "x.mtx is cut off or its header is wrong: its header claims 2 entries, and it has 1",
    COORDINATE + "3 3 50000000\n1 1 1\n": "claims 50,000,000 entries, and it has 1",
    COORDINATE + "3 3 1\n1 1 1\n\n2 2 2\n": "x.mtx:5: the header claims 1 entries, and this is one more",
    COORDINATE + "3 3 2\n1 1 1\n4 1 1\n": "x.mtx:4: the row '4' is none of 1 to 3",
    COORDINATE + "3 3 2\n1 1 1\n0 1 1\n": "x.mtx:4: the row '0' is none of 1 to 3",
    COORDINATE + "3 3 1\n1 -1 1\n": "x.mtx:3: the column '-1' is none of 1 to 3",
    COORDINATE + "3 3 1\n1 99999999999999999999 1\n": "x.mtx:3: the column '99999999999999999999' is none",
    COORDINATE + "3 3 1\n1 1.5 1\n": "x.mtx:3: the column '1.5' is none",
    COORDINATE + "3 3 1\n1 1 1 7\n": "x.mtx:3: the line holds 4 words; an entry is: row column value",
    COORDINATE + "3 3 2\n1 1 1 7\n2 2\n": "x.mtx:3: the line holds 4 words",
    COORDINATE + "3 3 1\n1 1 1\0\n": "x.mtx.*(NUL|no text)",
    COORDINATE + "3 3 1\n1 1 1e999\n": "x.mtx:3: the value '1e999' is beyond the range of float64",
    COORDINATE + "3 3 1\n1 1 1e99\n": r"x.mtx cannot be read as a Matrix Market matrix: data\[0\] is inf",
    "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 1.5\n": "x.mtx:3: the value '1.5' is no whole number",
    "%%MatrixMarket matrix array real general\n2 2\n1 2\n3 4\n": "x.mtx:3: the line holds 2 words; an entry is: a",
    "%%MatrixMarket matrix coordinate real general\n3 3 999999999999\n": "x.mtx:2: the matrix would take 2",
}


@pytest.mark.parametrize("text", WRONG)
def test_invalid_files_are_refused_with_the_line(tmp_path, text):
    with pytest.raises(DataError, match=WRONG[text]):
        load(tmp_path, text)


@pytest.mark.parametrize(
    "word", ["1_0", "0x10", "1D2", "nan", "inf", "1-2", "1.2.3", "1e5e5", "1e", "1e+", "1e5.5", "--1"]
)
def test_a_value_that_is_a_number_only_at_its_beginning_is_refused(tmp_path, word):
    with pytest.raises(DataError, match=r"x.mtx:4: the value"):
        load(tmp_path, f"{COORDINATE}3 3 2\n1 1 1\n2 2 {word}\n")


def test_entries_that_cross_blocks_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_market, "AT_ONCE", 3)
    np.testing.assert_array_equal(load(tmp_path, FILES["real"]).x.toarray(), by_hand(FILES["real"]).astype(np.float32))


@pytest.mark.parametrize("ends", ["", "\n", "\n\n \n"])
def test_blocks_with_and_without_empty_lines_give_the_same_entries(tmp_path, monkeypatch, ends):
    lines = [f"{row} {3 * row % 40 + 1} {row / 8}" for row in range(1, 41)]
    text = "\n".join(lines) + ends
    for gap, at_once in ((7, 20), (39, 1000), (40, 50)):
        monkeypatch.setattr(matrix_market, "AT_ONCE", at_once)
        with_gap = "\n".join([*lines[:gap], "", *lines[gap:]]) + ends
        for entries in (text, with_gap):
            made = read_market(written(tmp_path, COORDINATE + f"40 40 40\n{entries}")["path"])
            assert made.data.tolist() == [row / 8 for row in range(1, 41)]
            assert [part.tolist() for part in made.coords] == [list(range(40)), [3 * row % 40 for row in range(1, 41)]]


def test_damaged_files_are_refused_or_read(tmp_path):
    taken = 0
    for _, source in draws(200):
        damaged = damaged_bytes(source, FILES[source.choice(sorted(FILES))].encode())
        (tmp_path / "x.mtx").write_bytes(damaged)
        try:
            made = read_matrix(tmp_path / "x.mtx")
        except DataError:
            continue
        formats.check(made)
        taken += 1
    assert taken < tried(200)


# labels


@pytest.mark.parametrize("column", [0, "2", 3, -1])
def test_a_column_can_be_the_labels(tmp_path, column):
    dense = by_hand(FILES["real"])
    made = data.load("matrix_market", cache=False, path=written(tmp_path, FILES["real"])["path"], label_column=column)
    np.testing.assert_array_equal(made.x.toarray(), np.delete(dense, int(column), axis=1).astype(np.float32))
    values = np.array([made.labels.values[k] for k in made.y]) if made.classes else made.y
    np.testing.assert_array_equal(values, dense[:, int(column)])
    again = data.load("matrix_market", cache=False, like=made, path=tmp_path / "x.mtx")
    np.testing.assert_array_equal(again.y, made.y)


def test_labels_must_come_from_somewhere_and_from_one_place(tmp_path):
    files = written(tmp_path, FILES["real"])
    with pytest.raises(
        DataError, match=r"x.mtx is given no labels; labels are a file .*; label_column is .*\nType label=.0."
    ):
        data.load("matrix_market", path=files["path"], cache=False)
    with pytest.raises(DataError, match=r"x.mtx is given both labels and label_column"):
        data.load("matrix_market", **files, label_column=0, cache=False)
    with pytest.raises(DataError, match=r"x.mtx has 4 columns and no 4; they are 0 to 3, or -1 to -4 from the end"):
        data.load("matrix_market", path=files["path"], label_column=4, cache=False)
    with pytest.raises(DataError, match=r"label_column is 'last'; expected the index of a column"):
        data.load("matrix_market", path=files["path"], label_column="last", cache=False)
    with pytest.raises(DataError, match=r"x.mtx has 3 rows and 2 labels"):
        load(tmp_path, FILES["real"], "1\n2\n")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3\n-1\n+2\n", [3, -1, 2]),
        ("0.5\n1e3\n2\n", [0.5, 1000, 2]),
        ("a b\n c \nc\n", ["a b", "c", "c"]),
        ("1\nTrue\n0\n", ["1", "True", "0"]),
        ("4294967297\n4294967298\n1\n", [4294967297, 4294967298, 1]),
        ("99999999999999999999\n1\n1_0\n", ["99999999999999999999", "1", "1_0"]),
        ("%%MatrixMarket matrix array integer general\n3 1\n4\n5\n6\n", [4, 5, 6]),
        ("%%MatrixMarket matrix array integer general\n1 3\n4\n5\n6\n", [4, 5, 6]),
        ("%%MatrixMarket matrix coordinate integer general\n3 1 1\n2 1 7\n", [0, 7, 0]),
    ],
)
def test_labels_in_text_are_numbers_where_all_are(tmp_path, text, values):
    (tmp_path / "y.txt").write_text(text)
    labels, place = read_label_file(tmp_path / "y.txt")
    assert (labels[:, 0] if labels.ndim == 2 else labels).tolist() == values
    assert place(1).endswith(("y.txt:2", "y.txt, row 1"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n\n2\n", "y.txt:2: there is no label; each row needs one"),
        (b"1\n\xff\n", "y.txt:2: the byte 0xff is not utf-8"),
        (b"%%MatrixMarket matrix coordinate real general\n9999999 9999 0\n", "y.txt is 9999999 x 9999; labels are"),
    ],
)
def test_unusable_labels_are_refused_with_the_line(tmp_path, content, message):
    (tmp_path / "y.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_label_file(tmp_path / "y.txt")


def test_a_mere_matrix_is_read_of_both_kinds(tmp_path):
    dense = by_hand(FILES["real"])
    written(tmp_path, FILES["real"])
    sp.save_npz(tmp_path / "x.npz", sp.csc_array(dense))
    for name in ("x.mtx", "x.npz"):
        np.testing.assert_array_equal(read_matrix(tmp_path / name).toarray(), dense)
    with pytest.raises(DataError, match=r"y.txt cannot be read as a matrix .*: it looks like other text"):
        read_matrix(tmp_path / "y.txt")


def _archive(folder, **changes):
    members = {"format": np.array("csr"), "shape": np.array([4, 5]), "data": np.ones(4, np.float32)}
    members |= {"indices": np.arange(4, dtype=np.int32), "indptr": np.arange(5, dtype=np.int32)}
    np.savez(folder / "x.npz", **{**members, **changes})
    np.save(folder / "y.npy", np.arange(4) % 2)
    return {"path": folder / "x.npz", "labels": folder / "y.npy"}


def test_the_archive_of_these_tests_is_sound(tmp_path):
    assert data.load("npz", cache=False, **_archive(tmp_path)).rows == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": np.array(3)}, r"its format is int64 \[\], and is the name of one"),
        ({"format": np.array(["csr", "csr"])}, r"its format is <U3 \[2\], and is the name of one"),
        ({"indices": np.array([0, 1, 2, 3.5])}, r"'indices.npy' holds float64; indices are whole numbers"),
        ({"indptr": np.arange(5.0)}, r"'indptr.npy' holds float64; indices are whole numbers"),
    ],
)
def test_members_that_scipy_would_cut_or_stumble_over_are_refused(tmp_path, changes, message):
    with pytest.raises(data.DataError, match=message):
        data.load("npz", cache=False, **_archive(tmp_path, **changes))
