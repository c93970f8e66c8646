"""Text files, packed or not, as a stream of checked bytes: UTF-8, no NUL, lines and ratios of packing within bounds.

The compression of a file is inferred from its first bytes, never from its name. What is wrong is a `DataError` with
file and line. Memory holds a block of the file and the line that is read, whatever the file claims to be.

`line_blocks` cuts such text into blocks of whole lines, which several threads parse at once.
"""

import bz2
import codecs
import contextlib
import gzip
import io
import itertools
import lzma
import os
import stat
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar, final

import numpy as np

from kernels.threads import available_threads
from workbench.data.content import WatchedFile
from workbench.data.errors import DataError

BLOCK = 1 << 16
"""Bytes that are read and checked at once."""
LONGEST_LINE = 1 << 26
"""Bytes of a line, at most."""
MOST_RATIO = 200
"""Bytes that come of one packed byte, at most, once `FREE_BYTES` came; text of data is seldom packed to a thirtieth."""
FREE_BYTES = 1 << 22

_DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Marks that begin a text in UTF-16, as Excel saves it, or UTF-32; those of four bytes first."""
BYTES_OF_ENCODING = 256
"""First bytes that tell the encoding of a text."""

Unpacker = Callable[[BinaryIO], Any]


@final
class NotTextError(DataError):
    """Bytes that are no text in the encoding that was asked for: the file may be of another kind."""


def _zstd(source: BinaryIO) -> Any:
    """Return a stream that decompresses zstd by pyarrow."""
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(source, mode="r"), "zstd")


def _zip(source: BinaryIO) -> Any:
    """Return a stream of the first file in a zip archive, decompressed; folders and macOS metadata are skipped."""
    archive = zipfile.ZipFile(source)
    return archive.open(_members(archive)[0])


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the entries of a zip archive that are files, without macOS metadata."""
    return [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]


def _is_packed_file(source: BinaryIO) -> bool:
    """Return whether `source` is a zip archive of exactly one unencrypted file, not .npy, in a supported compression.

    The stream is set back to its start.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = _members(archive)
    except (zipfile.BadZipFile, *_DAMAGED):
        return False
    finally:
        source.seek(0)
    if len(members) != 1 or members[0].flag_bits & 1 or members[0].filename.endswith(".npy"):
        return False
    return members[0].compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


PACKINGS: tuple[tuple[bytes, str, Unpacker], ...] = (
    (b"\x1f\x8b\x08", "gzip", lambda source: gzip.GzipFile(fileobj=source, mode="rb")),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\0", "xz", lzma.LZMAFile),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    (b"PK\x03\x04", "zip", _zip),
)
"""(first bytes, name, what unpacks a file) of each way of packing that is seen through."""
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
"""What follows the fourth byte of bzip2: the first block, or the end of one that holds nothing."""


def refuse_endless(path: str | os.PathLike) -> None:
    """Raise DataError if `path` is a pipe or device.

    Return silently if it is missing, since opening it reports that.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # told by what opens it
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(f"{path} is a pipe or a device, no file; save what comes from it as a file.")


def compression_of(path: str | os.PathLike) -> str:
    """Return the compression of a file by its first bytes: "gzip", "bzip2", "xz", "zstd", "zip", or "" for none.

    Raises OSError if it cannot be opened.
    """
    with open(path, "rb") as file:
        return _detect_compression(file)[0]


def open_text(
    path: str | os.PathLike,
    encoding: str = "utf-8",
    advice: str = "save it as UTF-8, as iconv -f LATIN1 -t UTF-8 FILE > NEW does",
) -> io.BufferedReader:
    """Open a text file as a checked stream of UTF-8 bytes, decompressed, without byte order mark.

    `encoding` is that of the file; UTF-16 and UTF-32 are
    recognised by the first bytes. `advice` ends the error message for bytes of another encoding.

    Reading raises `DataError` with file and line: at bytes of another encoding and at NUL (`NotTextError`); at a line
    above `LONGEST_LINE`; at an archive that is cut short, damaged, or unpacks to more than `MOST_RATIO` times its size;
    and at the end of a file that changed since it was opened. O(bytes read).
    """
    return io.BufferedReader(CheckedText(path, encoding, advice), BLOCK)


def place_in(
    path: str | os.PathLike, holds_row: Callable[[bytes], Any] = bytes.strip, encoding: str = "utf-8"
) -> Callable[[int], str]:
    """Return a function from a row index to "path:line" in a text file of one row a line, for error messages.

    `holds_row(line)` is truthy for lines that contain a row; by default all that are not blank. Each call of the
    function reads the file from its start and raises DataError if it has fewer rows by now.
    """

    def place(row: int) -> str:
        """Return "path:line" of a row, counted from 0. Raises DataError if the file has fewer rows."""
        with open_text(path, encoding) as file:
            lines = (number for number, text in enumerate(file, 1) if holds_row(text))
            return place_at(path, lines, row)

    return place


def place_at(path: str | os.PathLike, lines: Iterator[int], row: int) -> str:
    """Return "path:line" of a row, counted from 0; `lines` yields the line number on which each row begins.

    Raises DataError if there are fewer rows: the row existed when the file was read, so the file has changed.
    """
    if (line := next(itertools.islice(lines, row, None), None)) is None:
        raise DataError(f"{path} has changed while it was read; read it again when it is complete.")
    return f"{path}:{line}"


def encoding_of(first: bytes) -> str:
    r"""Return the encoding that the byte order mark of a text names: UTF-16 or UTF-32, "" without such a mark.

    >>> encoding_of("1,2\n".encode("utf-16")), encoding_of(b"1,2\n")
    ('utf-16', '')
    """
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), "")


def read_head(path: str | os.PathLike, count: int = 4096) -> bytes:
    """Return up to `count` first bytes of the file, decompressed; UTF-16 and UTF-32 are converted to UTF-8.

    Nothing else is checked. Raises DataError for a damaged archive, OSError if the file cannot be opened.
    """
    with open(path, "rb") as source:
        name, unpack = _detect_compression(source)
        try:
            with unpack(source) as stream:
                first = stream.read(count)
                encoding = encoding_of(first)
                return codecs.getincrementaldecoder(encoding)("replace").decode(first).encode() if encoding else first
        except DataError:
            raise
        except _DAMAGED as error:
            if not name:
                raise
            raise _damaged_error(path, 1, name, error) from error


def _detect_compression(source: BinaryIO) -> tuple[str, Unpacker]:
    """Return (compression name, decompressing function) of a stream by its first bytes; ("", identity) if none.

    `source` is set back to its start.
    """
    first = source.read(16)
    source.seek(0)
    found: tuple[str, Unpacker] = ("", lambda source: source)
    for signature, name, unpack in PACKINGS:
        if not first.startswith(signature) or (name == "bzip2" and first[4:10] not in _BZIP2_BLOCKS):
            continue
        if name != "zip" or _is_packed_file(source):
            found = name, unpack
            break
    return found


def _damaged_error(path: str | os.PathLike, line: int, name: str, error: Exception) -> DataError:
    """Return the DataError for a compressed file that ends early or is damaged; the caller raises it.

    `name` is the compression, `line` the last line that could be read, `error` what the decompressor raised.
    """
    return DataError(f"{path}:{line}: the {name} file is truncated or corrupt: {error}. Download it again.")


@final
class CheckedText(io.RawIOBase):
    """The stream behind `open_text`, which says what it refuses."""

    def __init__(self, path: str | os.PathLike, encoding: str, advice: str) -> None:
        """Open the file, detect compression and encoding from its first bytes, and skip a byte order mark.

        Size and modification time are kept, to detect a change at the end. Raises DataError for damaged archives,
        OSError if the file cannot be opened.
        """
        super().__init__()
        self._files = contextlib.ExitStack()  # first, for `close` is called whatever fails
        self.path, self._advice = path, advice
        self._is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._encoding, self._decoder = encoding, codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._checked = self._line_bytes = 0
        self._lines: int | None = 0
        with contextlib.ExitStack() as files:
            self._source = files.enter_context(io.BufferedReader(WatchedFile(path)))
            self._packing, unpack = _detect_compression(self._source)
            self._state = self._state_now()
            self._stream = files.enter_context(unpack(self._source))
            self._first = self._read_unpacked(BYTES_OF_ENCODING)
            self._files = files.pop_all()
        if self._is_utf8 and self._first.startswith(codecs.BOM_UTF8):
            self._checked = len(codecs.BOM_UTF8)
            self._first = self._first.removeprefix(codecs.BOM_UTF8)
        elif self._is_utf8 and (found := encoding_of(self._first)):
            self._is_utf8, self._encoding = False, found
            self._decoder = codecs.getincrementaldecoder(found)()
        if (
            not self._packing and self._is_utf8
        ):  # an error counts in the file: counting here costs more than all other checks
            self._lines = None

    @property
    def name(self) -> str:
        """Path of the file as str or bytes."""
        return os.fspath(self.path)

    def readable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the open file."""
        return self._source.fileno()

    def close(self) -> None:
        """Close the stream and the underlying files; later calls do nothing."""
        if not self.closed:
            self._files.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next checked bytes and return their number, 0 at the end of the file.

        Raises DataError as `open_text` describes.
        """
        if not self._ready:
            self._ready = self._next(min(len(buffer), PIECE))
        count = min(len(self._ready), len(buffer))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self, size: int) -> bytes:
        """Read, decode and check about `size` more bytes and return them as UTF-8; b"" only at the end of the file.

        Raises DataError for invalid text, and at the end if the file has changed since it was opened.
        """
        while True:
            raw = self._first or self._read_unpacked(size)
            self._first = b""
            text = self._decode(raw)
            self._check(text)
            self._checked += len(raw)
            if text:
                return text
            if not raw:
                if self._state_now() != self._state:
                    raise DataError(f"{self.path} has changed while it was read; read it again when it is complete.")
                return b""

    def _read_unpacked(self, size: int) -> bytes:
        """Read up to `size` decompressed bytes; raise DataError for damaged files and extreme compression ratios."""
        try:
            raw = self._stream.read(size)
        except _DAMAGED as error:
            if not self._packing:
                raise
            raise _damaged_error(self.path, self._line(), self._packing, error) from error
        total, packed = self._checked + len(raw), self._source.tell()
        if self._packing and total > max(FREE_BYTES, MOST_RATIO * packed):
            ratio = f"{total:,} bytes came of the first {packed:,} packed by {self._packing}"
            advice = f"more than {MOST_RATIO} times as many are not taken: unpack the file first if it is meant so"
            raise DataError(f"{self.path}:{self._line()}: {ratio}; {advice}.")
        return raw

    def _decode(self, raw: bytes) -> bytes:
        """Return `raw` in UTF-8, without the bytes of an incomplete last character, which the decoder keeps.

        UTF-8 input is checked and returned as it is. Empty `raw` means the end of the file. Raises NotTextError with
        the line at bytes that are invalid in the encoding.
        """
        held = self._decoder.getstate()[0]
        if self._is_utf8 and not held and raw.isascii():
            return raw
        try:
            text = self._decoder.decode(raw, not raw)
        except UnicodeDecodeError as error:
            wrong = f"the byte {error.object[error.start]:#04x} is not {self._encoding}"
            line = self._line(error.object[: error.start])
            raise NotTextError(f"{self.path}:{line}: {wrong}; {self._advice}.") from None
        return raw if self._is_utf8 else text.encode()

    def _check(self, text: bytes) -> None:
        """Raise for NUL bytes (NotTextError) and lines above `LONGEST_LINE` (DataError).

        Update the line count. `text` is the next piece of the file in UTF-8.
        """
        if b"\0" in text:
            line = self._line(text[: text.index(b"\0")])
            raise NotTextError(f"{self.path}:{line}: a NUL byte, which no text holds; the file is damaged or binary.")
        last = text.rfind(b"\n")
        self._line_bytes = self._line_bytes + len(text) if last < 0 else len(text) - last - 1
        if self._line_bytes > LONGEST_LINE:
            size = f"a line of more than {LONGEST_LINE:,} bytes"
            raise DataError(f"{self.path}:{self._line(text)}: {size}; is this a file of rows with line ends?")
        if self._lines is not None:
            self._lines += text.count(b"\n")

    def _line(self, text: bytes = b"") -> int:
        """Return the line number, from 1, at the end of `text`, which follows the bytes that were checked so far.

        For files in UTF-8 that are not compressed the lines before are counted by reading the file again.
        """
        if self._lines is not None:
            return self._lines + text.count(b"\n") + 1
        with open(self.path, "rb") as file:
            before = sum(block.count(b"\n") for block in _blocks(file, self._checked))
        return before + text.count(b"\n") + 1

    def _state_now(self) -> tuple[int, int]:
        """Return (size in bytes, modification time in ns) of the open file."""
        state = os.fstat(self._source.fileno())
        return state.st_size, state.st_mtime_ns


def _blocks(file: BinaryIO, stop: int) -> Iterator[bytes]:
    """Yield the next `stop` bytes of a file, or all if it is shorter, in blocks of at most `BLOCK` bytes."""
    while stop > 0 and (block := file.read(min(stop, BLOCK))):
        yield block
        stop -= len(block)


Item = TypeVar("Item")
Result = TypeVar("Result")

PIECE = 1 << 18
"""Bytes that are read and checked at once: their memory is used again, and they are in the cache when they are copied.
"""
BYTES = 1 << 22
"""Bytes of a block: long enough for the calls of Python around it to cost nothing, short enough to stay in a cache."""
AHEAD = 2
"""Blocks a thread that are read before their results are asked for."""


def line_blocks(file: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Yield the rest of a file in blocks of about `size` bytes (4 MiB if None) that end with a line end.

    A line is never cut. A line end is added to the last line if it has none.
    """
    while block := file.read(BYTES if size is None else size):
        if not block.endswith(b"\n"):
            block += file.readline()
        yield block if block.endswith(b"\n") else block + b"\n"


def codes_of(text: bytes | bytearray) -> np.ndarray:
    """Return the bytes of a text as a uint8 array [bytes] that shares their memory, read-only of `bytes`."""
    return np.frombuffer(text, np.uint8)


def map_blocks(parse: Callable[[Item], Result], blocks: Iterable[Item]) -> Iterator[Result]:
    """Yield `parse(block)` for each block, in order, computed on a pool of threads up to two blocks per thread ahead.

    `parse` should release the GIL. An error of `parse`, or of the iterator `blocks`, is raised in place of the result
    of that block. `blocks` is advanced by the calling thread; with one thread or one block everything runs there.
    """
    blocks = iter(blocks)
    first = deque(islice(blocks, 2))
    threads = available_threads()
    if threads == 1 or len(first) < 2:
        while first:
            yield parse(first.popleft())  # and no longer held
        yield from map(parse, blocks)
        return
    with ThreadPoolExecutor(threads, "workbench-parsing") as pool, contextlib.ExitStack() as unfinished:
        waiting: deque[Future[Any]] = deque()
        unfinished.callback(lambda: [future.cancel() for future in waiting])
        for block in _until_error(chain(first, blocks), waiting):
            waiting.append(pool.submit(parse, block))
            if len(waiting) > AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _until_error(blocks: Iterator[Item], waiting: deque[Future[Any]]) -> Iterator[Item]:
    """Yield `blocks`; if the iterator raises, append a failed future to `waiting` and stop.

    The error is then raised in order, after the results of the blocks before.
    """
    try:
        yield from blocks
    except Exception as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        waiting.append(failed)
