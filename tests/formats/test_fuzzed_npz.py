"""Damaged files of arrays: `formats.load` gives arrays that hold, or a `FormatError`; nothing else, and soon."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.mutations import damaged_bytes, damaged_json, draws, tried
from workbench import formats
from workbench.formats import FormatError, RowSparse, files

MUTATIONS = 250


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    dense = np.random.default_rng(0).standard_normal((5, 4)) * (np.arange(20).reshape(5, 4) % 3 == 0)
    arrays = {name: formats.to_format(dense, name) for name in ("dense", "csr", "csc", "coo", "row_sparse")}
    path = tmp_path_factory.mktemp("npz") / "arrays.npz"
    formats.save(path, arrays | {"cube": RowSparse(np.ones((2, 3, 2)), [0, 4], (5, 3, 2)), "number": np.array(3.0)})
    return path


def loaded(path):
    """What is loaded can be used: every array has a dense form."""
    try:
        arrays = formats.load(path)
    except FormatError:
        return False
    for name, array in arrays.items():
        assert isinstance(name, str)
        formats.check(array)
        if formats.format_of(array) in ("csr", "csc", "coo", "row_sparse") and np.prod(array.shape) < 1e6:
            array.toarray()
    return True


def members_of(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, members: dict[str, bytes], kind=zipfile.ZIP_STORED) -> None:
    """The members as an honest archive, with sums that are right: what is wrong is within."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy(array, header=None) -> bytes:
    held = io.BytesIO()
    if header is None:
        np.lib.format.write_array(held, array, allow_pickle=True)
        return held.getvalue()
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + array.tobytes()


def test_damaged_bytes(saved, tmp_path):
    data, taken = saved.read_bytes(), 0
    for _, source in draws(MUTATIONS):
        (tmp_path / "x.npz").write_bytes(damaged_bytes(source, data))
        taken += loaded(tmp_path / "x.npz")
    assert taken < tried(MUTATIONS)


def test_damaged_members_in_an_archive_that_is_whole(saved, tmp_path):
    members = members_of(saved)
    for _, source in draws(MUTATIONS):
        name = source.choice(sorted(members))
        rewritten(tmp_path / "x.npz", members | {name: damaged_bytes(source, members[name])})
        loaded(tmp_path / "x.npz")


def test_damaged_tables_of_contents(saved, tmp_path):
    members = members_of(saved)
    table = json.loads(str(np.lib.format.read_array(io.BytesIO(members["contents.npy"]))))
    for _, source in draws(MUTATIONS):
        try:
            text = np.array(json.dumps(damaged_json(source, table)))
        except UnicodeEncodeError:
            continue
        rewritten(tmp_path / "x.npz", members | {"contents.npy": npy(text)})
        loaded(tmp_path / "x.npz")


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
CLAIMS = {
    "more than there is": npy(np.ones(3), HUGE % (2**40)),
    "more than 64 bits count": npy(np.ones(3), HUGE % (2**70)),
    "less than nothing": npy(np.ones(3), HUGE % -3),
    "nothing of very much": npy(np.ones(0), "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2**62), }"),
    "deep": npy(np.ones(3), "(" * 90),
    "no type": npy(np.ones(3), "{'descr': 'boo', 'fortran_order': False, 'shape': (3,), }"),
    "text for a shape": npy(np.ones(3), "{'descr': '<f8', 'fortran_order': False, 'shape': '3', }"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_headers_that_claim_what_is_not_there(claim, saved, tmp_path):
    rewritten(tmp_path / "x.npz", members_of(saved) | {"0.values.npy": CLAIMS[claim], "0.data.npy": CLAIMS[claim]})
    with pytest.raises(FormatError, match="no file of arrays, or is damaged"):
        formats.load(tmp_path / "x.npz")


class Trap:
    """Runs where it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_python_objects_are_refused_without_being_executed(saved, tmp_path):
    trap = npy(np.array([Trap()], dtype=object))
    for name in members_of(saved):
        rewritten(tmp_path / "x.npz", members_of(saved) | {name: trap})
        with pytest.raises(FormatError, match="Python objects, which are not loaded"):
            formats.load(tmp_path / "x.npz")


def test_a_bomb_takes_no_memory(saved, tmp_path):
    """A gigabyte of zeros packs into a megabyte: a claim beyond this machine's memory is refused unread."""
    path = tmp_path / "x.npz"
    rewritten(path, members_of(saved) | {"bomb.npy": npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"bomb.npy"))
    data[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)  # the size that the directory claims
    path.write_bytes(data)
    with path.open("rb") as file, pytest.raises(ValueError, match=r"'bomb.npy' claims 4294967294 bytes and has \d+"):
        files.check_members(file)
    with pytest.raises(FormatError, match=r"is compressed; expected as it was saved"):
        formats.load(path)


def test_a_member_that_comes_twice_or_is_used_twice_is_refused(saved, tmp_path):
    members = members_of(saved)
    rewritten(tmp_path / "x.npz", members)
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("contents.npy", members["contents.npy"])
    with pytest.raises(FormatError, match=r"has the member 'contents.npy' twice"):
        formats.load(tmp_path / "x.npz")
    table = json.loads(str(np.lib.format.read_array(io.BytesIO(members["contents.npy"]))))
    table["arrays"][1]["parts"] = table["arrays"][0]["parts"]
    rewritten(tmp_path / "x.npz", members | {"contents.npy": npy(np.array(json.dumps(table)))})
    with pytest.raises(FormatError, match="a member in two places"):
        formats.load(tmp_path / "x.npz")


def test_what_is_whole_is_loaded_so_that_the_tests_above_can_fail(saved, tmp_path):
    rewritten(tmp_path / "x.npz", members_of(saved))
    assert loaded(tmp_path / "x.npz")
    assert sp.issparse(formats.load(tmp_path / "x.npz")["csr"])
    assert files.VERSION == 2
