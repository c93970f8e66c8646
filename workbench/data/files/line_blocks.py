"""Text in blocks of whole lines, which several threads parse at once."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

import numpy as np

from kernels.threads import available_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

BYTES = 1 << 22
"""Bytes of a block: long enough for the calls of Python around it to cost nothing, short enough to stay in a cache."""
AHEAD = 2
"""Blocks a thread that are read before their results are asked for."""


def line_blocks(file: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Cut a file into blocks of about `size` bytes that end with a line end; the last line gets one if it has none."""
    while block := file.read(BYTES if size is None else size):
        if not block.endswith(b"\n"):
            block += file.readline()
        yield block if block.endswith(b"\n") else block + b"\n"


def codes_of(text: bytes) -> np.ndarray:
    """Give the bytes of a text as uint8 [bytes], without a copy."""
    return np.frombuffer(text, np.uint8)


def map_blocks(parse: Callable[[Item], Result], blocks: Iterable[Item]) -> Iterator[Result]:
    """Give `parse(block)` for each block, in order, computed on all threads of this process some blocks ahead.

    `parse` is to release the interpreter's lock where it works. An error comes in the place of the block's result. The
    blocks themselves are made by the calling thread; a single one is parsed by it, too.
    """
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    threads = available_threads()
    if threads == 1 or len(first) < 2:
        yield from map(parse, chain(first, blocks))
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
    """Give the blocks; what goes wrong in making one becomes the result that follows those of the blocks before."""
    try:
        yield from blocks
    except Exception as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        waiting.append(failed)
