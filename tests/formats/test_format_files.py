"""Arrays of every format in one file: what was saved is loaded, what is not ours refused, half a file never seen."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import coo, csc, csr
from workbench import formats
from workbench.formats import FormatError, RowSparse, files

NAMES = ["", "x", "a/b", "../up", "contents", "0.data", "ü ☂", "new\nline", "nul\0", "'\"\\", "\ud800", "x" * 300, " "]


def identical(a, b):
    """Format, type, shape and every array the same, NaN and the sign of zero too."""
    (one, a), (other, b) = formats.coerce(a), formats.coerce(b)
    pairs = zip(one.parts(a).values(), other.parts(b).values(), strict=True)
    same = all(p.dtype == q.dtype and p.shape == q.shape and p.tobytes() == q.tobytes() for p, q in pairs)
    return one is other and a.shape == b.shape and same


def arrays(dtype):
    values = np.array([1, 0, 2], dtype)
    names = [name for name in formats.names() if dtype in formats.get(name).dtypes]
    return {
        "dense": np.arange(6).astype(dtype).reshape(2, 3),
        "no dimension": np.array(3, dtype),
        "five": np.zeros((2, 0, 1, 3, 2), dtype),
        "rank 1": RowSparse(values, [0, 2, 5], (6,)),
        "rank 3": RowSparse(np.arange(12).astype(dtype).reshape(2, 2, 3), [1, 4], (6, 2, 3)),
        **{f"no {name}": formats.zeros((0, 4), name, dtype) for name in names},
        **{f"empty {name}": formats.zeros((3, 4), name, dtype) for name in names},
        **(matrices(dtype) if "csr" in names else {}),
    }


def matrices(dtype):
    return {
        "unsorted csr": csr(columns=(3, 1, 0), dtype=dtype),
        "duplicates": csr(columns=(1, 1, 0), data=(1, 0, 2), dtype=dtype, index=np.int64),
        "csc": csc(dtype=dtype),
        "coo": coo(row=(2, 0, 2), col=(0, 1, 0), dtype=dtype, index=np.int64),
    }


@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_everything_comes_back_as_it_was(tmp_path, dtype):
    saved = arrays(dtype)
    formats.save(tmp_path / "x.npz", saved)
    loaded = formats.load(tmp_path / "x.npz")
    assert list(loaded) == list(saved)
    for name, x in saved.items():
        assert identical(loaded[name], x), name


def test_names_may_have_any_characters(tmp_path):
    saved = {name: np.full(2, number, np.int64) for number, name in enumerate(NAMES)}
    formats.save(tmp_path / "x", saved)
    loaded = formats.load(tmp_path / "x")
    assert list(loaded) == NAMES
    assert [x[0] for x in loaded.values()] == list(range(len(NAMES)))
    assert os.listdir(tmp_path) == ["x"]  # no ending is added, and no name leads out of the file


def test_values_of_all_kinds_and_layouts(tmp_path):
    odd = np.array([[np.nan, -0.0], [np.inf, -np.inf]])
    read_only = np.asfortranarray(odd)
    read_only.flags.writeable = False
    saved = {"odd": odd, "fortran": read_only, "matrix": sp.csc_matrix(odd)}
    saved["sliced"] = RowSparse(np.arange(12.0).reshape(3, 4)[:, ::2], [0, 1, 3], (4, 2))
    formats.save(tmp_path / "x.npz", saved)
    loaded = formats.load(tmp_path / "x.npz")
    for name, x in saved.items():
        assert identical(loaded[name], formats.copy(x)), name


def test_a_file_of_no_arrays(tmp_path):
    formats.save(tmp_path / "x.npz", {})
    assert formats.load(tmp_path / "x.npz") == {}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({1: np.zeros(2)}, "An array was named 1. Allowed: text"),
        ({"good": np.zeros(2), "x": [1.0]}, "A list is none of the formats here"),
        ({"good": np.zeros(2), "x": np.array([{}])}, "The dense array has dtype object"),
        ({"good": np.zeros(2), "x": csr(indptr=(0, 3, 2, 3))}, "indptr falls from 3 to 2"),
        ([np.eye(2)], r"A list came\. Allowed: arrays by name\. Call save\(path, {'x': x}\)\."),
    ],
)
def test_what_is_no_named_array_is_not_written(tmp_path, arrays, message):
    with pytest.raises(FormatError, match=message):
        formats.save(tmp_path / "x.npz", arrays)
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    formats.save(path, {"x": np.ones(2)})
    monkeypatch.setattr(files.np, "savez", lambda file, **rest: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        formats.save(path, {"x": np.zeros(2)})
    assert os.listdir(tmp_path) == ["x.npz"]
    assert formats.load(path)["x"].tolist() == [1, 1]


def test_the_file_has_the_rights_that_other_new_files_have(tmp_path):
    formats.save(tmp_path / "x.npz", {})
    (tmp_path / "other").write_text("")
    assert (tmp_path / "x.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_the_file_is_plain_numpy(tmp_path):
    formats.save(tmp_path / "x.npz", {"w": csr()})
    with np.load(tmp_path / "x.npz", allow_pickle=False) as members:
        assert members["0.data"].tolist() == [1, 2, 3]
        assert json.loads(str(members["contents"]))["arrays"][0]["name"] == "w"


def npz(**members):
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def table(**changes):
    entry = {"name": "x", "format": "csr", "shape": [3, 4], "parts": {p: p for p in ("data", "indices", "indptr")}}
    wrapped = {"kind": files.KIND, "version": 2, "about": None, "arrays": [{**entry, **changes}]}
    parts = {"data": np.ones(3), "indices": np.int32([1, 3, 0]), "indptr": np.int32([0, 2, 2, 3])}
    return {**parts, "contents": np.array(json.dumps(wrapped))}


def other_table(**changes):
    return {
        "contents": np.array(json.dumps({"kind": files.KIND, "version": 2, "about": None, "arrays": [], **changes}))
    }


FOREIGN = {
    "empty": b"",
    "text": b"hello",
    "a zip": None,
    "one array": (lambda b: (np.save(b, np.ones(2)), b.getvalue())[1])(io.BytesIO()),
    "a pickle": b"\x80\x04K\x01.",
    "other arrays": npz(x=np.ones(2)),
    "pickled contents": npz(contents=np.array([{}], object)),
    "no JSON": npz(contents=np.array("{")),
    "a JSON list": npz(contents=np.array("[]")),
    "another's": npz(**other_table(kind="theirs")),
    "no version": npz(contents=np.array(json.dumps({"kind": files.KIND}))),
    "a missing part": npz(**{**table(), **table(parts={"data": "data", "indices": "indices"})}),
    "a missing member": npz(**table(parts={"data": "gone", "indices": "indices", "indptr": "indptr"})),
    "wrong shape of dense": npz(**table(format="dense", parts={"values": "data"})),
    "about is no object": npz(**other_table(about=[])),
    "no name": npz(contents=np.array(json.dumps({"kind": files.KIND, "version": 2, "about": None, "arrays": [{}]}))),
}
INVALID = {
    "out of range": (npz(**{**table(), "indices": np.int32([1, 9, 0])}), r"indices\[1\] is 9, out of range"),
    "pointers": (npz(**{**table(), "indptr": np.int32([0, 2, 1, 3])}), "indptr falls"),
    "two dimensions": (npz(**table(shape=[12])), "two dimensions"),
    "fractions": (npz(**table(shape=[3, 4.5])), "a tuple of whole numbers"),
    "negative": (npz(**table(shape=[3, -4])), "none is negative"),
    "unknown format": (npz(**table(format="csx")), "Unknown format 'csx'"),
    "objects": (npz(**{**table(), "data": np.ones(3, complex)}), "data has dtype complex128"),
    "earlier version": (npz(**other_table(version=1)), "it has version 1; this program reads version 2"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_not_ours_is_refused(tmp_path, kind):
    path = tmp_path / "x.npz"
    if FOREIGN[kind] is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme", "hello")
    else:
        path.write_bytes(FOREIGN[kind])
    with pytest.raises(FormatError, match=r"x.npz is no file of arrays, or is damaged .*Allowed: files written by"):
        formats.load(path)


@pytest.mark.parametrize("fault", INVALID)
def test_an_invalid_array_is_refused(tmp_path, fault):
    written, message = INVALID[fault]
    (tmp_path / "x.npz").write_bytes(written)
    with pytest.raises(FormatError, match=rf"x.npz cannot be read: .*{message}"):
        formats.load(tmp_path / "x.npz")


def test_the_tables_made_here_are_right_but_for_their_fault(tmp_path):
    (tmp_path / "x.npz").write_bytes(npz(**table()))
    assert identical(formats.load(tmp_path / "x.npz")["x"], csr(data=(1, 1, 1), dtype=np.float64))


def test_damage_anywhere_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "x.npz"
    saved = {"w": csr(), "r": RowSparse([[1, 2]], [3], (5, 2))}
    formats.save(path, saved)
    whole = path.read_bytes()
    for size in range(0, len(whole), 29):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError):
            formats.load(path)
    for at in range(0, len(whole), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        try:
            loaded = formats.load(path)
        except FormatError:
            continue
        assert all(identical(loaded[name], x) for name, x in saved.items())


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        formats.load(tmp_path / "x.npz")
