"""Files are replaced whole or not at all."""

import errno
import os

import pytest

from workbench import atomic_files


def write_in_parts(path, *parts):
    """Write each part at the end of the file that is to replace `path`."""
    with atomic_files.replacing(path) as new:
        for part in parts:
            with new.open("a") as file:
                file.write(part)


def test_an_error_in_the_context_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_in_parts(path, "a half", None)
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["a.txt"])
    write_in_parts(path, "a half", " and another")
    assert (path.read_text(), os.listdir(tmp_path)) == ("a half and another", ["a.txt"])


def test_a_full_disk_leaves_the_old_file_and_the_error_names_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match="No space left") as raised:
        atomic_files.write(path, "new", durable=True)
    assert (raised.value.filename, path.read_text(), os.listdir(tmp_path)) == (str(path), "old", ["a.txt"])


def test_a_link_stays_a_link_to_the_file_that_is_replaced(tmp_path):
    (tmp_path / "linked.txt").write_text("old")
    (tmp_path / "a.txt").symlink_to("linked.txt")
    atomic_files.write(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "linked.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        atomic_files.write(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_missing_folder_is_named_with_the_path_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        atomic_files.write(tmp_path / "none" / "a.txt", b"new", durable=True)
    assert raised.value.filename == str(tmp_path / "none" / "a.txt")


def test_files_get_the_permissions_that_other_files_get(tmp_path):
    (tmp_path / "plain").touch()
    atomic_files.write(tmp_path / "a", "")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
