"""Elements of MATLAB files that SciPy would follow out of its arrays are refused before it sees them."""

import io
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from workbench import data
from workbench.data.files.matlab import FIRST, check_elements

NAMES = ("X", "y")


def saved(**variables) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, variables)
    return stream.getvalue()


SPARSE = saved(X=scipy.sparse.csc_array(np.eye(20, 9)), y=np.arange(20) % 2)
"""Places in it: 136 the flags, 152 the sides, 168 the name, 176 the row indices."""


def changed(raw: bytes, changes: dict[int, int]) -> bytes:
    """The file with other bytes at those places."""
    found = bytearray(raw)
    for place, value in changes.items():
        found[place] = value
    return bytes(found)


def packed(raw: bytes) -> bytes:
    """The same file with every variable compressed; lengths are those of `SPARSE`, whatever the file says."""
    parts, place = [raw[:FIRST]], FIRST
    while place < len(raw):
        end = place + 8 + struct.unpack("<I", SPARSE[place + 4 : place + 8])[0]
        content = zlib.compress(raw[place:end])
        parts.append(struct.pack("<II", 15, len(content)) + content)
        place = end
    return b"".join(parts)


@pytest.mark.parametrize("pack", [bytes, packed])
def test_sound_files_pass_and_are_read_as_before(tmp_path, pack):
    check_elements(io.BytesIO(pack(SPARSE)), NAMES)
    (tmp_path / "x.mat").write_bytes(pack(SPARSE))
    assert data.load("matlab", path=str(tmp_path / "x.mat"), cache=False).x.toarray().tolist() == np.eye(20, 9).tolist()
    check_elements(io.BytesIO(saved(X=np.ones((3, 2)) * 1j, y=np.array(["ab", "c"]), other={"a": [1, "b"]})), NAMES)


@pytest.mark.parametrize("pack", [bytes, packed])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({176: 21}, "element 3 of a variable has the type 21"),
        ({176: 154}, "element 3 of a variable has the type 154"),
        ({176: 0}, "element 3 of a variable has the type 0"),
        ({140: 16}, "not 8"),  # bytes of the flags, which SciPy takes for 8
        ({152: 9}, "element 1 of a variable has the type 9"),
        ({183: 200}, "claims"),  # bytes of the indices
        ({132: 8, 133: 0}, "its variable has 0 left"),  # bytes of the variable
        ({170: 9}, "in a tag that has 4"),
    ],
)
def test_elements_that_would_end_the_process_are_refused(tmp_path, pack, changes, message):
    raw = pack(changed(SPARSE, changes))
    with pytest.raises(ValueError, match=message):
        check_elements(io.BytesIO(raw), NAMES)
    (tmp_path / "x.mat").write_bytes(raw)
    with pytest.raises(data.DataError, match=r"x.mat"):
        data.load("matlab", path=str(tmp_path / "x.mat"), cache=False)


def test_a_variable_that_is_not_read_is_not_looked_at():
    check_elements(io.BytesIO(changed(SPARSE, {176: 21})), ("y",))


def test_a_packed_variable_that_ends_too_soon_is_refused():
    raw = packed(SPARSE)
    content = zlib.compress(SPARSE[FIRST : FIRST + 100])
    short = raw[:FIRST] + struct.pack("<II", 15, len(content)) + content
    with pytest.raises(ValueError, match="a packed variable ends before its elements"):
        check_elements(io.BytesIO(short), NAMES)
    with pytest.raises(ValueError, match="the file ends 10 bytes before"):
        check_elements(io.BytesIO(short[:-10]), NAMES)


@pytest.mark.parametrize("left", [FIRST + 4, FIRST + 60])
def test_a_file_that_is_cut_after_its_size_was_read_is_refused(left):
    class Cut(io.BytesIO):
        def tell(self):
            return len(SPARSE)

    with pytest.raises(ValueError, match=r"the file ends \d+ bytes before its elements"):
        check_elements(Cut(SPARSE[:left]), NAMES)
