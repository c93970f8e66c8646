"""svmlight text read whole: the rows of its blocks one after another, in memory that grows without copies."""

import subprocess
import sys

import numpy as np
import pytest

from tests.training.test_streaming import lines, write
from workbench.data.text import svmlight


@pytest.mark.parametrize("size", [3000, 5000, 1 << 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_file_is_the_same_in_blocks_of_any_size_also_where_later_rows_are_longer(tmp_path, seed, size):
    text = [*lines(seed, ("0", "1"), rows=300, columns=5), *lines(seed + 5, ("0", "1"), rows=300)]
    text[40] = "1 qid:7 2:1e-320 5:0.30000000000000000000001"  # numbers that Python parses
    path = write(tmp_path / "a.svm", text, "")
    expected = svmlight.read_rows(path.read_bytes() + b"\n")
    read = svmlight.read_file(path, size)
    for name, one, other in zip(svmlight.TextRows._fields, read, expected, strict=True):
        assert np.array_equal(one, other.astype(one.dtype)), name
    assert read.values.dtype == np.float32
    assert read.starts.dtype == np.int64


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_rows_has_none(tmp_path, text):
    (tmp_path / "a.svm").write_text(text)
    read = svmlight.read_file(tmp_path / "a.svm")
    assert len(read.labels) == len(read.columns) == 0
    assert read.starts.tolist() == [0]


@pytest.mark.parametrize("line", ["1 3:x", "1 3:1 2:1", "1 2:1e99"])
def test_invalid_lines_and_values_beyond_float32_are_refused(tmp_path, line):
    path = write(tmp_path / "a.svm", [*lines(2, ("0", "1")), line])
    with pytest.raises(svmlight.InvalidLineError):
        svmlight.read_file(path, 4000)


def test_reading_takes_little_more_memory_than_the_matrix(tmp_path):
    path = write(tmp_path / "a.svm", lines(3, ("0", "1"), columns=3000) * 4000)
    code = (
        "import sys\n"
        "from workbench.data.text import svmlight\n"
        "from workbench.measure import memory\n"
        "svmlight.read_rows(b'1 1:1\\n'), svmlight.read_file(sys.argv[2])\n"
        "before = memory.peak_bytes()\n"
        "rows = svmlight.read_file(sys.argv[1])\n"
        "print((memory.peak_bytes() - before) / sum(array.nbytes for array in rows))\n"
    )
    small = write(tmp_path / "b.svm", lines(3, ("0", "1")))
    ran = subprocess.run([sys.executable, "-c", code, path, small], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 1.3
