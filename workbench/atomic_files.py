"""Files and folders that appear whole: written under another name and renamed, so that readers see the old or the new.

What a killed process left under another name is removed by the next one on this machine that writes the same.
"""

import contextlib
import ctypes
import errno
import functools
import glob
import itertools
import os
import platform
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BYTES_NAME = 100
"""Bytes of a name that a temporary one ends with: file systems allow 255 in all."""
AT_WORKING_FOLDER, NO_REPLACE, EXCHANGE = -100, 1, 2
"""Arguments of renameat2 on Linux."""
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)


@contextlib.contextmanager
def replacing(path: str | os.PathLike, durable: bool = False, force: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file, with the suffixes of `path`, that replaces `path` at the end of the context.

    After an error it is removed and `path` is as before; an OSError names `path`. What is no regular file, such as a
    pipe, is yielded itself. With `durable` the content is on the disk before the file is renamed, as after a power cut.
    Without `force`, FileExistsError is raised if `path` exists at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, replacing(f"{folder}/a.txt") as new:
    ...     (new.write_text("whole"), new.suffix, Path(f"{folder}/a.txt").exists())
    (5, '.txt', False)
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve() if path.is_symlink() else path
    new = _temporary(target)
    try:
        yield new
        if durable:
            with new.open("rb") as file:
                os.fsync(file.fileno())
        if force:
            new.replace(target)
        else:
            rename_new(new, target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # there may be none, nor its folder: the error is told
            new.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(new), new):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes the folder `path` at the end of the context, in one step.

    After an error it is removed and `path` is as before. FileExistsError is raised if `path` is there at the end and is
    not an empty folder; with `force` it is exchanged with the new folder, then deleted. Where the file system cannot
    exchange, the former folder is renamed for a moment; if it cannot be renamed back, the OSError says where it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing_folder(f"{folder}/a") as new:
    ...         _ = (new / "b.txt").write_text("whole")
    ...     os.listdir(f"{folder}/a")
    ['b.txt']
    """
    target = Path(path).resolve() if Path(path).is_symlink() else Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(target) as new:
        yield new
        _put(new, target, force)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside `path` for the context; it is deleted at the end."""
    new = _temporary(path)
    new.mkdir()
    try:
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write(path: str | os.PathLike, content: str | bytes, durable: bool = False) -> None:
    """Write bytes, or a text as UTF-8, to the file `path` by `replacing`; raises OSError with the name of `path`."""
    with replacing(path, durable) as new:
        new.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def rename_new(new: Path, target: Path) -> None:
    """Rename a file; FileExistsError if `target` exists."""
    if not _renameat2(new, target, NO_REPLACE):  # other systems: what another process makes just now is replaced
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        new.rename(target)


def _put(new: Path, target: Path, force: bool) -> None:
    """Rename the folder `new` to `target`; with `force` what is there becomes `new`. FileExistsError without."""
    while True:
        try:
            new.rename(target)  # replaces nothing or an empty folder, in one step
            return
        except OSError as error:
            if error.errno not in TAKEN:
                raise
        if not (force and target.is_dir()):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        with contextlib.suppress(FileNotFoundError):  # removed by another process meanwhile
            if not _renameat2(new, target, EXCHANGE):
                _exchange_in_steps(new, target)
            return


def _exchange_in_steps(new: Path, target: Path) -> None:
    """Exchange two folders by three renames; after an error `target` is renamed back. OSError says what happened."""
    former = target.with_name(f"{_end_of(target.name)}.former-{os.getpid()}")
    target.rename(former)
    try:
        new.rename(target)
    except OSError as error:
        try:
            former.rename(target)
        except OSError:
            raise OSError(error.errno, f"{error.strerror}; the former folder is now {former}", str(target)) from error
        raise
    former.rename(new)


@functools.cache
def _function_renameat2() -> Callable[..., int] | None:
    """Return renameat2 of the C library; None on systems without it."""
    function: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        name = ctypes.c_char_p
        function.argtypes = (ctypes.c_int, name, ctypes.c_int, name, ctypes.c_uint)
    return function


def _renameat2(path: Path, target: Path, flag: int) -> bool:
    """Rename with a flag; False if this system or file system cannot do so, OSError for other failures."""
    function = _function_renameat2()
    if function is None:
        return False
    names = os.fsencode(path), os.fsencode(target)
    if function(AT_WORKING_FOLDER, names[0], AT_WORKING_FOLDER, names[1], flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(target))


# Temporary names: a dot, this machine, process, a count, and the end of the name, with its suffixes.

_count = itertools.count()


@functools.cache
def _machine() -> str:
    """Return digits of the host's name and the name space of processes, in which process ids mean the same."""
    try:
        processes = os.fspath(Path("/proc/self/ns/pid").readlink())
    except OSError:
        processes = ""
    return f"{zlib.crc32(f'{platform.node()} {processes}'.encode()):08x}"


def _end_of(name: str) -> str:
    """Return the last characters of a file name, at most `BYTES_NAME` bytes."""
    return os.fsencode(name)[-BYTES_NAME:].decode("utf-8", "ignore")


def _temporary(target: Path) -> Path:
    """Return a path beside `target` for this process, after removing what killed processes left there for `target`."""
    end = _end_of(target.name)
    for left in target.parent.glob(f".{_machine()}-*-*-{glob.escape(end)}"):
        process = left.name.split("-")[1]
        if process.isdecimal() and not _is_running(int(process)):
            with contextlib.suppress(OSError):  # by another process meanwhile
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return target.with_name(f".{_machine()}-{os.getpid()}-{next(_count)}-{end}")


def _is_running(process: int) -> bool:
    """Return whether there is a process of this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
