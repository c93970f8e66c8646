"""Vowpal Wabbit's text: hashed as that program does, numbered where names are numbers, and refused with the line."""

import numba
import numpy as np
import pytest

import workbench as wb
from workbench import data
from workbench.data import DataError
from workbench.data.text import vowpal_wabbit

HASHES = {
    (b"", 0): 0,
    (b"", 1): 0x514E28B7,
    (b"", 0xFFFFFFFF): 0x81F16F39,
    (b"\xff\xff\xff\xff", 0): 0x76293B50,
    (b"!Ce\x87", 0): 0xF55B516B,
    (b"!Ce", 0): 0x7E4A8634,
    (b"aaaa", 0x9747B28C): 0x5A97808A,
    (b"Hello, world!", 0x9747B28C): 0x24884CBA,
    (b"The quick brown fox jumps over the lazy dog", 0x9747B28C): 0x2FA826CD,
}
"""Published values of MurmurHash3_x86_32."""


@numba.njit
def compiled_hash(text, stop, seed):
    return vowpal_wabbit._hash_of(text, 0, stop, seed)[0]


def hash_of(name: bytes, seed: int = 0) -> int:
    return int(compiled_hash(np.frombuffer(name + b"\n", np.uint8), len(name), np.uint32(seed)))


def write(folder, text):
    (folder / "rows.vw").write_text(text)
    return folder / "rows.vw"


def vw(folder, text, **parameters):
    return data.load("vw", path=write(folder, text), cache=False, **parameters)


@pytest.mark.parametrize(("name", "seed"), HASHES)
def test_names_have_the_published_hashes(name, seed):
    if name:
        assert hash_of(name, seed) == HASHES[name, seed]


def test_numbers_are_added_to_the_hash_of_their_namespace():
    assert hash_of(b"12", 5) == 17
    assert hash_of(b"12", 2**32 - 2) == 10
    assert hash_of(b"9" * 30) == int("9" * 30) % 2**32
    assert 0 <= hash_of(b"9" * 5000) < 2**32


def test_columns_are_the_hashes_of_names_in_their_namespaces(tmp_path):
    made = vw(tmp_path, "1 |a red:0.5 blue |b:2 red:3 7\n-1 | red\n", bits=20)
    a, b = hash_of(b"a"), hash_of(b"b")
    expected = np.zeros((2, 2**20), np.float32)
    for row, name, seed, value in (
        *((0, b"red", a, 0.5), (0, b"blue", a, 1), (0, b"red", b, 6), (0, b"7", b, 2)),
        (1, b"red", 0, 1),
    ):
        expected[row, hash_of(name, seed) % 2**20] += value
    np.testing.assert_array_equal(made.x.toarray(), expected)
    assert (made.classes, made.y.tolist()) == (("-1", "1"), [1, 0])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "1 |a:2 red:0.5 blue |b x:3 7 |c:0.5 q\tr:2",
            {90259: 1, 93923: 2, 100583: 1, 143313: 3, 144850: 0.5, 163338: 1},
        ),
        ("-1 1.0 'tag|a b:1e-3 12 |a b", {92606: 1, 144016: 1.001}),
        ("1 | x y:2 7:3 é", {7: 3, 67463: 1, 102934: 2, 170779: 1}),
    ],
)
def test_a_row_has_the_features_that_vowpal_wabbit_9_11_gives_it(tmp_path, line, expected):
    row = vw(tmp_path, f"{line}\n", columns="hashed").x
    assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == pytest.approx(expected)


def test_names_that_are_whole_numbers_are_columns_as_numbered(tmp_path):
    made = vw(tmp_path, "1 |f 0:0.5 7\r\n\n2 1 'tag|f 3:2 3:1\n3 |f\n3 |f 1")
    np.testing.assert_array_equal(
        made.x.toarray()[:, [0, 1, 3, 7]], [[0.5, 0, 0, 1], [0, 0, 3, 0], [0] * 4, [0, 1, 0, 0]]
    )
    assert made.x.shape == (4, 8)
    assert made.classes == ("1", "2", "3")


@pytest.mark.parametrize("other", ["1 |g 3", "1 |f x", "1 |f 2147483648"])
def test_numbers_are_hashed_where_other_names_occur(tmp_path, monkeypatch, other):
    monkeypatch.setattr(vowpal_wabbit, "AT_ONCE", 1)  # what was read before is hashed after all
    made = vw(tmp_path, f"1 |f 5:2\n{other}\n", bits=10)
    assert made.features == 1024
    assert made.x.indices[0] == (hash_of(b"f") + 5) % 1024
    assert vw(tmp_path, "1 |f 5:2\n", columns="hashed", bits=10).x.indices[0] == made.x.indices[0]
    with pytest.raises(DataError, match=r"rows.vw has names other than whole numbers .* hash them"):
        vw(tmp_path, f"1 |f 5:2\n{other}\n", columns="numbered")


def test_blocks_do_not_show(tmp_path, monkeypatch):
    text = "".join(f"{row % 3} |a x{row % 7}:0.{row} |b y{row % 5} z\n" for row in range(50))
    whole = vw(tmp_path, text)
    monkeypatch.setattr(vowpal_wabbit, "AT_ONCE", 100)
    parted = vw(tmp_path, text)
    np.testing.assert_array_equal(whole.x.indices, parted.x.indices)
    np.testing.assert_array_equal(whole.x.data, parted.x.data)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("|a x", "the row has no label, which training needs"),
        ("1|a x", "the row has no label, '1' is a tag; a label has a blank between it and the bar"),
        ("'tag |a x", 'the row has no label, "\'tag" is a tag'),
        ("1 x:2", r"there is no '\|' before the features"),
        ("one |a x", "the label 'one' is no finite number"),
        ("nan |a x", "the label 'nan' is no finite number"),
        ("1_0 |a x", "the label '1_0' is no finite number"),
        ("1:0.5 2:1 |a x", "'1:0.5 2:1' is more than a label.*costs are not read"),
        ("1 2 3 4 |a x", "'1 2 3 4' is more than a label"),
        ("1 2 |a x", "the row has the importance '2', and rows count equally here.\nType importance=.ignored."),
        ("1 1 0.5 |a x", "the row has the importance '1 0.5'"),
        ("1 |a x:red", "the value in 'x:red' is no finite number"),
        ("1 |a x:", "the value in 'x:' is no finite number"),
        ("1 |a x:1_0", "the value in 'x:1_0' is no finite number"),
        ("1 |a x:nan", "the value in 'x:nan' is no finite number"),
        ("1 |a x:1e39", "the value in 'x:1e39' is no finite number that float32 holds"),
        ("1 |a:1e30 x:1e30", "the value in 'x:1e30' is no finite number that float32 holds"),
        ("1 |a :3", "':3' has no name; a feature is name or name:value"),
        ("1 |a:x y", "the weight 'x' of the namespace 'a' is no finite number"),
    ],
)
def test_a_fault_is_told_with_file_and_line(tmp_path, line, message):
    with pytest.raises(DataError, match=rf"rows.vw:3: {message}"):
        vw(tmp_path, f"1 |a x:1\n\n{line}\n-1 |a y\n")


HARD = (
    "2.22507385850720113605740979670913197593481954635164564e-308",
    "8.10109172351e-10000",
    "5e-324",
    "100000000000000000000000000000000000000.49999999999999999999999999999999999e-38",
    "9007199254740993.00000000000000000000000000000000000000001",
)
"""Numbers that compiled code cannot round, and one beyond a halfway point."""


@pytest.mark.parametrize("number", HARD)
def test_numbers_have_the_bits_that_python_gives_them(tmp_path, number):
    text = f"{number} 1 | {number} x:{number} y:0.1\n-{number} | z:-{number}\n2 |n:{number} w:3\n"
    (part,) = vowpal_wabbit.read(write(tmp_path, text), True, False)
    value = float(number)
    np.testing.assert_array_equal(part.labels, [value, -value, 2])
    np.testing.assert_array_equal(part.values, [1, value, 0.1, -value, 3 * value])
    assert np.signbit(part.labels).tolist() == [False, True, False]
    assert part.columns[0] == hash_of(number.encode())


def test_an_importance_that_is_hard_to_read_is_compared_as_python_reads_it(tmp_path):
    usual = f"0.{'9' * 40}"  # rounds to 1
    assert float(usual) == 1
    (part,) = vowpal_wabbit.read(write(tmp_path, f"5e-324 {usual} 5e-9999 |a x\n" * 3), True, True)
    assert part.labels.tolist() == [5e-324] * 3
    assert vw(tmp_path, f"5e-324 {usual} |a x\n" * 3 + "1 |a y\n").rows == 4
    with pytest.raises(DataError, match=r"rows.vw:2: the row has the importance '5e-324'"):
        vw(tmp_path, "1 |a x:5e-324\n1 5e-324 |a x\n")
    with pytest.raises(DataError, match=r"rows.vw:2: the value in 'x:1e999' is no finite number"):
        vw(tmp_path, "1 |a x:5e-324\n1 |a x:1e999 y:5e-324\n")


def test_importance_can_be_ignored(tmp_path):
    assert vw(tmp_path, "1 2 |a x\n-1 0.5 0.1 'tag|a y\n", importance="ignored").rows == 2
    assert vw(tmp_path, "1 1 0 |a x\n-1 1.0 |a y\n").rows == 2


def test_a_test_file_has_the_same_columns(tmp_path):
    train = vw(tmp_path, "1 |f 3:1\n-1 |f 9:1\n")
    (tmp_path / "test.vw").write_text("-1 |f 3:1\n")
    assert data.load("vw", path=tmp_path / "test.vw", like=train, cache=False).x.shape == (1, 10)
    (tmp_path / "test.vw").write_text("-1 |f 3:1\n1 |f 10:2\n")
    with pytest.raises(DataError, match=r"test.vw:2: column 10 is out of range; with features=10 they are 0 to 9"):
        data.load("vw", path=tmp_path / "test.vw", like=train, cache=False)
    hashed = vw(tmp_path, "1 |f red\n-1 |f blue\n", bits=9)
    (tmp_path / "test.vw").write_text("-1 |f 3:1\n")
    assert data.load("vw", path=tmp_path / "test.vw", like=hashed, cache=False).x.shape == (1, 512)
    (tmp_path / "test.vw").write_text("1 |f green\n")
    with pytest.raises(DataError, match=r"test.vw has names other than whole numbers"):
        data.load("vw", path=tmp_path / "test.vw", like=train, cache=False)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"features": "many"}, "features is 'many'; it is the number of columns, a whole number from 1 on"),
        ({"bits": 0}, "bits is 0; names are hashed to"),
        ({"bits": 31}, "bits is 31"),
        ({"bits": 2.5}, "bits is 2.5"),
        ({"columns": "named"}, "columns is 'named'; it is one of auto, numbered, hashed"),
        (
            {"features": 100, "columns": "hashed"},
            r"features is 100 and names are hashed to 2\*\*18 columns; leave it out",
        ),
        ({"importance": "kept"}, "importance is 'kept'; it is one of refused, ignored"),
    ],
)
def test_wrong_parameters_are_refused(tmp_path, parameters, message):
    with pytest.raises(DataError, match=message):
        vw(tmp_path, "1 |f 1\n", **parameters)


def test_a_file_of_another_kind_is_told(tmp_path):
    (tmp_path / "rows.vw").write_bytes(b"\x80\x04\x95\x00")
    with pytest.raises(DataError, match=r"rows.vw cannot be read as Vowpal Wabbit text.*looks like a pickle"):
        data.load("vw", path=tmp_path / "rows.vw", cache=False)
    with pytest.raises(DataError, match=r"rows.vw:1: there is no '\|' before the features; .* svmlight"):
        vw(tmp_path, "1 1:2\n")


@pytest.mark.parametrize("call", ["load", "profile", "reading"])
def test_the_word_columns_is_no_path(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.vw").write_text("1 |f 3 7:2\n-1 |f 5\n" * 4)
    (tmp_path / "hashed").write_text("a file of this name")
    given = {"reading": "columns=hashed, bits=6"} if call == "reading" else {"columns": "hashed", "bits": 6}
    assert wb.load("a.vw", **given).features == 64
    assert wb.load("a.vw", columns="numbered").features == 8
    assert wb.profile("a.vw", **given) is not None
    with pytest.raises(DataError, match="columns is 'hashed', and 'numbered' in reading; keep one of them"):
        wb.load("a.vw", columns="hashed", reading="columns=numbered")
