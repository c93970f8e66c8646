"""The files of a case: text of a given size, drawn from a seed, and a fifth as much that is held out."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.registry import unknown_name
from workbench.bench.shapes import BenchError

FORMATS = ("svmlight", "clicks")
MEGABYTES, LARGEST = (1, 10, 100), 1000
HELD_OUT = 0.2
FEATURES, ENTRIES = 20_000, 40
NUMBERS, VALUES = 13, tuple(int(4 * 1.6**place) for place in range(26))
"""Columns of numbers, and how many values each column of categories has."""
ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Case:
    """Text in a format, of so many megabytes to train on."""

    format: str
    megabytes: int

    @property
    def name(self) -> str:
        """Name in records and pages."""
        return f"{self.format}, {self.megabytes} MB"


def choose_cases(formats: tuple[str, ...] = (), megabytes: tuple[int, ...] = (), is_full: bool = False) -> list[Case]:
    """Return the cases of these formats and sizes; without any all, 1 GB only if it is full."""
    for name in formats:
        if name not in FORMATS:
            raise BenchError(unknown_name("format", name, FORMATS))
    sizes = megabytes or (*MEGABYTES, *((LARGEST,) if is_full else ()))
    return [Case(name, size) for size in sizes for name in formats or FORMATS]


def write_files(case: Case, folder: Path) -> tuple[Path, Path]:
    """Write the file to train on and the one held out, if they are not there; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "svm" if case.format == "svmlight" else "csv"
    paths = [folder / f"{case.format}-{case.megabytes}-{part}.{suffix}" for part in ("train", "held-out")]
    for seed, (path, share) in enumerate(zip(paths, (1.0, HELD_OUT), strict=True)):
        if not path.exists():
            _write(case, path, int(share * case.megabytes * 1e6), seed)
    return paths[0], paths[1]


def _write(case: Case, path: Path, size: int, seed: int) -> None:
    """Write lines of the case until the file has that many bytes; the file is there whole or not at all."""
    lines = svmlight_lines(seed) if case.format == "svmlight" else click_lines(seed)
    new, written = path.with_suffix(".new"), 0
    with new.open("w", encoding="utf-8") as file:
        while written < size:
            written += file.write(next(lines))
    new.rename(path)


def _labels(scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw labels 0 and 1 with the probabilities of these scores."""
    return (scores + random.logistic(size=len(scores)) > 0).astype(int)


def svmlight_lines(seed: int) -> Iterator[str]:
    """Yield rows of columns by a power law; weights are the same for every seed."""
    weights = np.random.default_rng(0).normal(scale=0.4, size=FEATURES)
    random = np.random.default_rng([1, seed])
    while True:
        columns = np.sort((FEATURES * random.random((ROWS_AT_ONCE, ENTRIES)) ** 6).astype(int), axis=1)
        labels = _labels(weights[columns].sum(axis=1), random)
        for label, row in zip(labels.tolist(), columns.tolist(), strict=True):
            yield f"{label} {' '.join(f'{column + 1}:1' for column in dict.fromkeys(row))}\n"


def click_lines(seed: int) -> Iterator[str]:
    """Yield a header, then rows of a label, counts and categories in hexadecimal, some of them missing."""
    fixed, random = np.random.default_rng(0), np.random.default_rng([2, seed])
    weights = [fixed.normal(scale=0.4, size=count) for count in VALUES]
    yield ",".join(
        ["label", *(f"I{place + 1}" for place in range(NUMBERS)), *(f"C{n + 1}" for n in range(len(VALUES)))]
    )
    yield "\n"
    while True:
        codes = [(count * random.random(ROWS_AT_ONCE) ** 3).astype(int) for count in VALUES]
        labels = _labels(sum(part[column] for part, column in zip(weights, codes, strict=True)), random)
        counts = np.exp(random.normal(2, 1.5, (NUMBERS, ROWS_AT_ONCE))).astype(int).tolist()
        texts = [[str(count) if count % 9 else "" for count in column] for column in counts]
        texts += [[f"v{code * 2654435761 % 2**32:08x}" for code in column.tolist()] for column in codes]
        for label, *row in zip(labels.tolist(), *texts, strict=True):
            yield f"{label},{','.join(row)}\n"


def labels_in(path: Path) -> np.ndarray:
    """Return the labels of a file that was written here, int64 [rows]."""
    separator, skipped = (",", 1) if path.suffix == ".csv" else (" ", 0)
    with path.open(encoding="utf-8") as file:
        return np.array([int(line.partition(separator)[0]) for line in list(file)[skipped:]])
