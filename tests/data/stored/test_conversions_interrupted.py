"""Conversions that end before they should, or meet another one: nothing half-written is ever taken for a data set."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_sets import same
from tests.support.stored_sets import drawn, left_over, stored, whole
from workbench import data
from workbench.data import DataError

ROOT = Path(__file__).parents[3]


def test_a_folder_that_is_there_is_never_written_to(tmp_path):
    stored(tmp_path / "X.sparse", drawn())
    with pytest.raises(DataError, match=r"There is already .*X.sparse; remove it, or choose another name"):
        data.convert(drawn(), tmp_path / "X.sparse")
    assert whole(tmp_path / "X.sparse").rows == 300


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    made = drawn(3000)  # before: code that is compiled for it is kept in files, too
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(DataError, match=r"X.sparse cannot be written: .*File too large.*\. Choose another folder"):
            data.convert(made, tmp_path / "X.sparse")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert left_over(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written: .*File exists: .*file'"):
        data.convert(drawn(), tmp_path / "file" / "X.sparse")


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n0 2:1\n" * 50)

    def change(progress):
        if progress.stage == "writing":
            path.write_text("1 1:1\n")

    with pytest.raises(DataError, match=r"rows.svm has changed while it was read"):
        data.convert("svmlight", tmp_path / "X.sparse", path=path, progress=change)
    assert left_over(tmp_path) == []


def test_a_conversion_that_is_killed_leaves_no_folder_and_the_next_one_removes_what_it_wrote(tmp_path):
    code = (
        "import numpy as np\n"
        "from tests.support.stored_sets import block, blocks\n"
        "from workbench import data\n"
        "def endless():\n"
        "    while True:\n"
        "        yield block(1000)\n"
        "        print('block', flush=True)\n"
        f"data.convert(blocks(endless()), {str(tmp_path / 'X.sparse')!r}, shuffle=None)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"block\n"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    (partial,) = left_over(tmp_path)
    with pytest.raises(DataError, match="There is no file"):
        data.load("sparse", path=tmp_path / "X.sparse")
    with pytest.raises(DataError, match=r"has no meta.json: .* its conversion did not end"):
        data.load("sparse", path=tmp_path / partial)
    made = drawn()
    stored(tmp_path / "X.sparse", made)
    assert same(whole(tmp_path / "X.sparse"), made)
    assert left_over(tmp_path) == ["X.sparse"]
