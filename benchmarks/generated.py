"""Files of generated rows of any size: texts as svmlight and click logs as CSV, the same bytes for the same seed.

Words and values follow Zipf's law, whose ranks drift: what is frequent in the first rows is rare in the last ones, and
new words keep coming. Labels are drawn from a logistic model on the words or values; about half of the texts and one in
twenty of the clicks are positive. A block of rows depends on the seed and its number alone, so that a longer file
begins with the rows of a shorter one of the same seed.

A file of svmlight text is made larger by drawing its rows with replacement, as a bootstrap does. Columns that few rows
have are new ones in each copy of it, as new words keep coming in longer texts.
"""

import collections
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kernels.code_cache import njit
from kernels.registry import format_count, format_size
from workbench import atomic_files

FEATURES = 500_000
"""Columns of the texts."""
MEAN_LENGTH, SPREAD_LENGTH, MOST_LENGTH = 150.0, 0.8, 1500
"""Mean number of words drawn for a text before repeated ones are joined, the deviation of its logarithm, and most."""
SLOPE = 1.1
"""Slope of Zipf's law."""
DRIFT_ROWS = 1 << 20
"""Rows in which the ranks of the words move by `DRIFT_SHARE` of all."""
DRIFT_SHARE = 0.02
ROWS_OF_TEXTS, ROWS_OF_CLICKS = 1 << 13, 1 << 16
"""Rows of a block."""

CATEGORIES = {
    "site": 5_000,
    "app": 800,
    "ad": 100_000,
    "advertiser": 3_000,
    "user": 2_000_000,
    "device": 2_000,
    "os": 6,
}
"""Values of each category of the click logs."""
POSITIVE_SCORE = -3.4
"""What the score of a click begins with: about one in twenty is positive."""

RARE_SHARE = 1e-3
"""Share of the rows that have a rare column, at most; one row at least."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMG])B?", re.IGNORECASE)


def bytes_of(text: str) -> int:
    """Return the bytes that a size such as "100MB" or "1 GB" means; ValueError for other text.

    >>> bytes_of("100MB"), bytes_of("1.5 GB")
    (100000000, 1500000000)
    """
    if not (found := _SIZE.fullmatch(text.strip())):
        raise ValueError(f"The size is {text!r}; expected one such as 100MB or 1GB.")
    return int(float(found[1]) * 1000 ** "kmg".index(found[2].lower()) * 1000)


def zipf(uniform: np.ndarray, count: int, slope: float = SLOPE) -> np.ndarray:
    """Return ranks from 0 to count - 1, int64, whose frequency falls with the power `slope`, of uniform numbers.

    By the inverse of the integral of the law, which is continuous.
    """
    power = 1 - slope
    ranks = ((count**power - 1) * uniform + 1) ** (1 / power) - 1
    return np.minimum(ranks.astype(np.int64), count - 1)


def drifted(ranks: np.ndarray, row: np.ndarray, count: int) -> np.ndarray:
    """Return values 0 to count - 1 for ranks in these rows: the same rank is another value some rows later.

    Neighbours in rank are far from each other, and each value has one rank at a time.
    """
    moved = (row * (DRIFT_SHARE * count / DRIFT_ROWS)).astype(np.int64)
    step = int(count * 0.618) | 1
    while np.gcd(step, count) > 1:
        step += 2
    return (ranks + moved) * step % count


def weights_of(values: np.ndarray, seed: int) -> np.ndarray:
    """Return a normal random number for each value, float64, that depends on the value and the seed alone."""
    z = (values.astype(np.uint64) + np.uint64(seed * 1_000_003 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    halves = z >> np.uint64(32), z & np.uint64(0xFFFFFFFF)
    first, second = ((half.astype(np.float64) + 0.5) / 2**32 for half in halves)
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


@njit(nogil=True)
def _write_lines(labels, starts, columns, counts, out):
    """Write svmlight lines to `out`, uint8, and return their bytes.

    `labels` int64 [rows] are 0 or 1, written as -1 and 1; `starts` int64 [rows + 1] are where the rows begin in
    `columns` int64, numbered from 0, and `counts` int64, from 1 to 99.
    """
    at = 0
    for row in range(labels.size):
        if not labels[row]:
            out[at] = 45
            at += 1
        out[at] = 49
        at += 1
        for entry in range(starts[row], starts[row + 1]):
            out[at] = 32
            at += 1
            for number, sign in ((columns[entry] + 1, 58), (counts[entry], 0)):
                power = 1
                while power * 10 <= number:
                    power *= 10
                while power:
                    out[at] = 48 + number // power % 10
                    at += 1
                    power //= 10
                if sign:
                    out[at] = sign
                    at += 1
        out[at] = 10
        at += 1
    return at


def texts(seed: int) -> Iterator[bytes]:
    """Yield blocks of svmlight lines without end: counts of words in texts, about 120 different ones a text."""
    number, rows = 0, ROWS_OF_TEXTS
    while True:
        made = np.random.default_rng((seed, number))
        lengths = made.lognormal(np.log(MEAN_LENGTH) - SPREAD_LENGTH**2 / 2, SPREAD_LENGTH, rows)
        of_row = np.repeat(np.arange(rows), np.clip(lengths, 3, MOST_LENGTH).astype(np.int64))
        words = drifted(zipf(made.random(of_row.size), FEATURES), of_row + number * rows, FEATURES)
        keys, counts = np.unique(of_row * FEATURES + words, return_counts=True)
        columns, counts = keys % FEATURES, np.minimum(counts, 99)
        starts = np.searchsorted(keys, np.arange(rows + 1) * FEATURES)
        scores = np.add.reduceat(weights_of(columns, seed) * np.sqrt(counts), starts[:-1]) * (3 / np.sqrt(MEAN_LENGTH))
        labels = (made.random(rows) < 1 / (1 + np.exp(-scores))).astype(np.int64)
        out = np.empty(keys.size * 10 + rows * 4, np.uint8)
        yield out[: _write_lines(labels, starts, columns, counts, out)].tobytes()
        number += 1


def clicks(seed: int) -> Iterator[bytes]:
    """Yield blocks of CSV rows without end, the first with a header: clicked, an hour, a price, and categories."""
    import pyarrow as pa
    from pyarrow import csv

    number, rows = 0, ROWS_OF_CLICKS
    while True:
        made, row = np.random.default_rng((seed, number, 1)), np.arange(rows) + number * rows
        scores, columns = np.full(rows, POSITIVE_SCORE), {}
        for place, (name, count) in enumerate(CATEGORIES.items()):
            values = drifted(zipf(made.random(rows), count), row, count)
            scores += 0.5 * weights_of(values, seed + place)
            distinct, codes = np.unique(values, return_inverse=True)
            words = pa.array([f"{name[:2]}{value:x}" for value in distinct.tolist()])
            columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), words).cast(pa.string())
        hour, price = made.integers(0, 24, rows), made.lognormal(0, 1, rows).round(2)
        scores += 0.4 * np.sin(hour * (np.pi / 12)) - 0.3 * np.log(price + 0.1)
        clicked = (made.random(rows) < 1 / (1 + np.exp(-scores))).astype(np.int64)
        table = pa.table({"clicked": clicked, "hour": hour, "price": price, **columns})
        out = pa.BufferOutputStream()
        csv.write_csv(table, out, csv.WriteOptions(include_header=not number, quoting_style="none"))
        yield out.getvalue().to_pybytes()
        number += 1


def replicated(source: Path, seed: int) -> Iterator[bytes]:
    """Yield svmlight lines without end, drawn from those of a file: a block has as many as the file, a copy of it.

    Entries of rare columns have the number of another column in each copy; those of all others stay. ValueError for a
    file that is not svmlight text.
    """
    rows = list[tuple[bytes, list[tuple[int, bytes]]]]()
    for number, line in enumerate(source.read_bytes().splitlines(), 1):
        if not (tokens := line.partition(b"#")[0].split()):
            continue
        try:
            entries = [(int(column), value) for column, _, value in (token.partition(b":") for token in tokens[1:])]
            [float(value) for _, value in entries], float(tokens[0])
        except ValueError:
            raise ValueError(f"{source}, line {number}: {line[:60]!r}; expected label column:value ...") from None
        rows.append((tokens[0], entries))
    if not rows:
        raise ValueError(f"{source} has no rows; expected lines such as 1 3:0.5 17:1.")
    counts = collections.Counter(column for _, entries in rows for column, _ in entries)
    most = max(int(RARE_SHARE * len(rows)), 1)
    rare = {column: place for place, column in enumerate(sorted(name for name in counts if counts[name] <= most))}
    first = max(counts, default=0) + 1
    parts = [
        (
            b" ".join([label, *(b"%d:%b" % entry for entry in entries if entry[0] not in rare)]),
            [(first + rare[column], value) for column, value in entries if column in rare],
        )
        for label, entries in rows
    ]
    for copy in itertools.count():
        shift, drawn = copy * len(rare), np.random.default_rng((seed, copy, 2)).integers(0, len(rows), len(rows))
        lines = [
            b" ".join([parts[row][0], *(b"%d:%b" % (column + shift, value) for column, value in parts[row][1])])
            for row in drawn.tolist()
        ]
        yield b"\n".join([*lines, b""])


KINDS: dict[str, tuple[str, Callable[[int], Iterator[bytes]]]] = {
    "texts": ("texts.svm", texts),
    "clicks": ("clicks.csv", clicks),
}
"""Name of the file, and blocks of its rows, by kind."""


def write(kind: str, size: int, folder: Path, seed: int = 0, source: Path | None = None) -> Path:
    """Write whole rows of about `size` bytes to a new file of the kind in a folder; return its path.

    With `source` they are drawn from that file, and `kind` does not matter. Raises FileExistsError if there is one.
    """
    name, made = KINDS[kind] if source is None else (f"{source.stem}.svm", functools.partial(replicated, source))
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_files.replacing(path, force=False) as new, new.open("wb") as file:
        for block in made(seed):
            rest = size - file.tell()
            if len(block) < rest:
                file.write(block)
                continue
            file.write(block[: block.rfind(b"\n", 0, max(rest, 1)) + 1] or block[: block.find(b"\n") + 1])
            break
    return path


def describe(path: Path) -> str:
    """Return a line on a file: its size, and its rows, which are counted."""
    with path.open("rb") as file:
        rows = sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
    rows -= path.suffix == ".csv"
    return f"{path}: {format_size(path.stat().st_size)}, {format_count(rows, 'row')}"


def run(sizes: list[str], folder: Path, kinds: list[str], seed: int, source: Path | None = None) -> Iterator[str]:
    """Write a file of each kind, or of the rows of `source`, and size; yield a line on each.

    ValueError for an unknown kind or size.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"Unknown kind {unknown[0]!r}; expected one of: {', '.join(KINDS)}.")
    made: list[tuple[str, Any]] = [(size, bytes_of(size)) for size in sizes]
    for size, count in made:
        for kind in kinds if source is None else kinds[:1]:
            yield describe(write(kind, count, folder / size.replace(" ", ""), seed, source))
