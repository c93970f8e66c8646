"""Text in blocks of whole lines, in memory that is used again: for rows that are needed once, one block after another.

New memory for each block costs more time than its numbers take to parse: the system clears every page of it.
"""

import codecs
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, final

from kernels.threads import available_threads
from workbench.data.content import WatchedFile
from workbench.data.errors import DataError
from workbench.data.files.opened import LONGEST_LINE, codes_of, compression_of, encoding_of, open_text

Result = TypeVar("Result")

BEHIND = 2
"""Blocks besides those that are parsed: one whose rows are read, and one that waits for it."""


@final
class LentText:
    """Memory of a block: the first `size` bytes of `text` are whole lines; `others` is what the parser keeps with it.

    `position` is where the block ends in the file, `lines` how many lines come before it, if the parser counts them.
    """

    def __init__(self, size: int) -> None:
        """Ask for memory of `size` bytes of text and a line end."""
        self.text, self.size, self.position = bytearray(size + 1), 0, 0
        self.others: Any = None

    def codes(self) -> Any:
        """Return the bytes of the lines as uint8 [size], a view."""
        return codes_of(self.text)[: self.size]


class LentResult(NamedTuple):
    """What a parser makes of a block, valid until the next one is asked for, and where the block ends in the file."""

    result: Any
    position: int


@final
class _Lines:
    """The lines of a file from byte `start` on, as blocks; files that are packed or in UTF-16 are decoded first."""

    def __init__(self, path: str | os.PathLike, start: int) -> None:
        """Open the file and go to `start`, which counts bytes of its text."""
        self.path, self.position, self.rest = path, start, b""
        self.is_plain = _is_plain(path)
        self.file: Any = WatchedFile(path) if self.is_plain else open_text(path)
        self.state = self._state_now()
        if self.is_plain:
            self.file.seek(start)
        while not self.is_plain and start:
            start -= len(self.file.read(min(start, 1 << 20))) or start

    def _state_now(self) -> tuple[int, int]:
        """Return (bytes, modification time in ns) of the open file."""
        state = os.fstat(self.file.fileno())
        return state.st_size, state.st_mtime_ns

    def fill(self, block: LentText) -> bool:
        """Read the next lines into a block; return whether there are any. DataError if the file has changed."""
        count = len(self.rest)
        if count >= len(block.text) - 1:  # of a block that was made longer for a long line
            block.text = bytearray(2 * count + 1)
        block.text[:count] = self.rest
        while True:
            with memoryview(block.text) as whole, whole[count:-1] as part:
                came = self.file.readinto(part)
            count += came
            if not came:
                if self._state_now() != self.state:
                    raise DataError(f"{self.path} has changed while it was read; read it again when it is complete.")
                self.rest = b""
                block.text[count] = 10
                block.size = count + (count > 0 and block.text[count - 1] != 10)
                break
            if count < len(block.text) - 1:
                continue
            block.size = block.text.rfind(b"\n", 0, count) + 1
            if block.size:
                self.rest = bytes(memoryview(block.text)[block.size : count])
                break
            if count > LONGEST_LINE:
                refuse_unclean(self.path)
            block.text = block.text + bytes(len(block.text))  # a new one: the old one may have views
        self.position += block.size
        block.position = self.position
        return block.size > 0


def _is_plain(path: str | os.PathLike) -> bool:
    """Return whether a file is neither packed nor begins with a mark of its encoding."""
    if compression_of(path):
        return False
    with open(path, "rb") as file:
        first = file.read(4)
    return not (first.startswith(codecs.BOM_UTF8) or encoding_of(first))


def is_clean(block: LentText) -> bool:
    """Return whether the lines of a block are UTF-8 without NUL."""
    codes = block.codes()
    if not codes.min(initial=1):
        return False
    if codes.max(initial=0) < 128:
        return True
    try:
        codes.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def refuse_unclean(path: str | os.PathLike) -> None:
    """Raise DataError for the first bytes of a file that `open_text` refuses, with the line."""
    with open_text(path) as file:
        while file.read(1 << 20):
            pass


def parse_lent(
    path: str | os.PathLike, parse: Callable[[LentText], Any], size: int, start: int = 0
) -> Iterator[LentResult]:
    """Yield what `parse` makes of each block of about `size` bytes of whole lines from byte `start` on, in order.

    Blocks are parsed on a pool of threads while the caller works; `parse` should release the GIL. A result, and the
    memory of its block, are valid until the next one is asked for. Memory holds `BEHIND` blocks and one a thread.
    """
    threads = available_threads()
    lines, free, waiting = _Lines(path, start), list[LentText](), deque[tuple[LentText, Future[Any]]]()
    with lines.file, ThreadPoolExecutor(threads, "workbench-parsing") as pool:
        is_more = True
        try:
            while is_more or waiting:
                while is_more and len(waiting) < threads + BEHIND - 1:
                    block = free.pop() if free else LentText(size)
                    if is_more := lines.fill(block):
                        waiting.append((block, pool.submit(parse, block)))
                if waiting:
                    block, future = waiting.popleft()
                    yield LentResult(future.result(), block.position)
                    free.append(block)
        finally:
            for _, future in waiting:
                future.cancel()


def one_ahead(items: Iterator[Result]) -> Iterator[Result]:
    """Yield the items of an iterator, which runs on another thread and is one item ahead."""
    with ThreadPoolExecutor(1, "workbench-reading") as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
