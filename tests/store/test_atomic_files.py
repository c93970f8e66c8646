"""Files are replaced whole or not at all."""

import contextlib
import errno
import os
import pathlib
import subprocess
import sys
import threading

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


# Folders


def put(path, text, force=False):
    with atomic_files.replacing_folder(path, force) as new:
        (new / "a.txt").write_text(text)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["exchange", "renames"])
def put_by(request, monkeypatch):
    """`put` where the file system can exchange two folders, and where it cannot."""
    if request.param == "renames":
        monkeypatch.setattr(atomic_files, "_renameat2", lambda *_: False)
    return put


def test_a_folder_is_replaced_with_force_only_and_nothing_else_is_left(tmp_path, put_by):
    put_by(tmp_path / "m", "one")
    with pytest.raises(FileExistsError):
        put_by(tmp_path / "m", "two")
    assert contents(tmp_path) == {"m/a.txt": "one"}
    put_by(tmp_path / "m", "three", force=True)
    assert contents(tmp_path) == {"m/a.txt": "three"}
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_made_by_another_process_meanwhile_is_kept(tmp_path, put_by):
    with contextlib.ExitStack() as stack:
        new = stack.enter_context(atomic_files.replacing_folder(tmp_path / "m"))
        (new / "a.txt").write_text("mine")
        put_by(tmp_path / "m", "theirs")
        with pytest.raises(FileExistsError):
            stack.close()
    assert contents(tmp_path) == {"m/a.txt": "theirs"}


@pytest.mark.parametrize("failing", [{2}, {3}, {3, 4}, {4}])
def test_a_rename_that_fails_never_loses_the_former_folder(tmp_path, monkeypatch, failing):
    """Renames: 1 tries an empty place, 2 moves the former away, 3 moves the new one in, 4 is back or to delete."""
    put(tmp_path / "m", "former")
    monkeypatch.setattr(atomic_files, "_renameat2", lambda *_: False)
    real, count = pathlib.Path.rename, iter(range(1, 9))

    def rename(path, target):
        if next(count) in failing:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, target)

    monkeypatch.setattr(pathlib.Path, "rename", rename)
    with pytest.raises(OSError, match="Input/output error") as raised:
        put(tmp_path / "m", "new", force=True)
    kept = contents(tmp_path)
    if failing == {3, 4}:
        former = tmp_path / f"m.former-{os.getpid()}"
        assert kept == {f"{former.name}/a.txt": "former"}
        assert f"the former folder is now {former}" in str(raised.value)
    elif failing == {4}:
        assert kept["m/a.txt"] == "new"
    else:
        assert kept == {"m/a.txt": "former"}


def test_readers_see_one_of_two_folders_at_every_moment(tmp_path):
    put(tmp_path / "m", "0")
    stop, missed = threading.Event(), []

    def look():
        while not stop.is_set():
            if not (tmp_path / "m").is_dir():
                missed.append(1)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(200):
        put(tmp_path / "m", str(number), force=True)
    stop.set()
    reader.join()
    assert missed == []


def test_a_file_is_not_replaced_without_force(tmp_path):
    path = tmp_path / "a.txt"
    with contextlib.ExitStack() as stack:
        stack.enter_context(atomic_files.replacing(path, force=False)).write_text("mine")
        path.write_text("theirs")
        with pytest.raises(FileExistsError):
            stack.close()
    assert (path.read_text(), os.listdir(tmp_path)) == ("theirs", ["a.txt"])


@pytest.mark.parametrize("name", ["\u4e2d" * 80, "a" * 250, "\u4e2d" * 80 + ".npz", "[a]*?.txt"])
def test_names_of_any_length_are_written(tmp_path, name):
    atomic_files.write(tmp_path / name, "text")
    put(tmp_path / "folder" / name, "text")
    assert os.listdir(tmp_path / "folder") == [name]
    assert (tmp_path / name).read_text() == "text"


KILLED = """
import os, sys
from workbench import atomic_files
with atomic_files.replacing(sys.argv[1] + "/a.txt") as new, atomic_files.replacing_folder(sys.argv[1] + "/m") as folder:
    new.write_text("half")
    (folder / "half").write_text("half")
    os._exit(9)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(os.listdir(tmp_path)) == 2
    with atomic_files.replacing(tmp_path / "a.txt") as alive:
        alive.write_text("whole")
        put(tmp_path / "m", "whole")
        atomic_files.write(tmp_path / "a.txt", "other")
        assert alive.exists(), "its process is running"
    assert contents(tmp_path) == {"a.txt": "whole", "m/a.txt": "whole"}
