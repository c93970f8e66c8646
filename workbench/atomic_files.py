"""Files that appear whole: written under another name and renamed, so that readers see the old file or the new one."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike, durable: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file, with the suffixes of `path`, that replaces `path` at the end of the context.

    After an error it is removed and `path` is as before; an OSError names `path`. What is no regular file, such as a
    pipe, is yielded itself. With `durable` the content is on the disk before the file is renamed, as after a power cut.

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
    new = target.with_name(f".{os.getpid()}-{threading.get_ident()}-{target.name[-80:]}")
    try:
        yield new
        if durable:
            with new.open("rb") as file:
                os.fsync(file.fileno())
        new.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # there may be none, nor its folder: the error is told
            new.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(new), new):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write(path: str | os.PathLike, content: str | bytes, durable: bool = False) -> None:
    """Write bytes, or a text as UTF-8, to the file `path` by `replacing`; raises OSError with the name of `path`."""
    with replacing(path, durable) as new:
        new.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
