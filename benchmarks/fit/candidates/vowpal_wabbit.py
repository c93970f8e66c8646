"""Vowpal Wabbit, row by row, by its own parser: its adaptive, normalised and invariant rule, and FTRL-proximal.

Before the clock starts the rows are written as its text, which it parses once into its own cache file. A training reads
that file, in each pass, by its own thread; it stands in memory, as rows as CSR do for all others, who pay for no
reading from a disk either. No line of Python runs per row. A training cannot be looked at on its way: each point is a
fit anew of so many eighths of a pass, whole passes from the second on. A column number is the place of its weight, so
that no two columns share one.
"""

import functools
import itertools
import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fit.candidates import Candidate, Rows, Scorer, Value, grid, one_number, register

INSTALL = "pip install 'sparse-workbench[rivals]'"
RULES = {"adaptive": "--learning_rate {rate}", "ftrl": "--ftrl --ftrl_alpha {rate}"}
"""Options by the name of the rule; the first is its default."""
CONSTANT = 11650396
"""The place of its constant feature, before the bits of the table are taken."""


def bits_of(rows: Rows) -> int:
    """Return the bits of the weight table: every column and the constant feature have a separate slot."""
    return max(int(rows.x.shape[1] - 1).bit_length(), 1) + 1


def options(rows: Rows) -> str:
    """Return the command-line options that all calls on these rows share: loss, table bits, intercept."""
    loss = "squared" if rows.model == "linear" else "logistic"
    return f"--quiet --loss_function {loss} -b {bits_of(rows)}{'' if rows.has_intercept else ' --noconstant'}"


def lines(rows: Rows) -> Iterator[str]:
    """Yield the rows in Vowpal Wabbit's text, labels -1 and 1 or numbers, such as "1.0 | 3:1 17:0.5" and a newline."""
    y = rows.y.reshape(-1).astype(np.float64)
    labels = (y if rows.model == "linear" else 2 * y - 1).tolist()
    columns, values = rows.x.indices.tolist(), rows.x.data.tolist()
    for label, (first, last) in zip(labels, itertools.pairwise(rows.x.indptr.tolist()), strict=True):
        entries = zip(columns[first:last], values[first:last], strict=True)
        yield f"{label!r} | {' '.join(f'{column}:{value:.9g}' for column, value in entries)}\n"


class FileInMemory:
    """A file that has a path but no place on a disk, so that nothing of it is left however the process ends."""

    def __init__(self, content: bytes) -> None:
        """Write `content` to an anonymous file in memory, which is closed when this object is garbage collected."""
        self.handle = os.memfd_create("rows.cache")
        with open(self.handle, "wb", closefd=False) as file:
            file.write(content)
        self.path = f"/proc/self/fd/{self.handle}"
        weakref.finalize(self, os.close, self.handle)  # which also runs before the interpreter ends


@functools.lru_cache(maxsize=2)
def cache_of(rows: Rows) -> FileInMemory:
    """Return the cache file of the rows, parsed once by Vowpal Wabbit; the last two are cached. O(entries)."""
    import vowpalwabbit

    with tempfile.TemporaryDirectory(prefix="vowpal-wabbit-") as folder:
        text, cache = Path(folder) / "rows.txt", Path(folder) / "rows.cache"
        with text.open("w", encoding="ascii") as file:
            file.writelines(lines(rows))
        vowpalwabbit.Workspace(f"{options(rows)} -d {text} --cache_file {cache} -k").finish()
        return FileInMemory(cache.read_bytes())


def length(rows: Rows, eighths: int) -> str:
    """Return the options for a training of `eighths` points of a pass: a part of the first, then whole passes."""
    if eighths < rows.points:
        return f"--passes 1 --examples {eighths * rows.rows_point}"
    return f"--passes {-(-eighths // rows.points)}"


def refit(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
    """Train anew from the cache file for `iterations` points of a pass; return (scorer, False: never done).

    `value` has `rule` (a key of RULES) and `rate`.
    """
    import vowpalwabbit

    rule = RULES[value["rule"]].format(rate=value["rate"])
    cache = f"-d /dev/null --cache_file {cache_of(rows).path}"
    vw = vowpalwabbit.Workspace(f"{options(rows)} {rule} {cache} {length(rows, iterations)} --holdout_off")
    return functools.partial(scores, rows, vw), False


def scores(rows: Rows, vw: Any, x: Any) -> np.ndarray:
    """Return the scores of X csr, [R]; for regression clipped to the range of the training targets.

    `vw` is the trained workspace, whose weights are read one by one.
    """
    weights = np.array([vw.get_weight(place, 0) for place in range(x.shape[1])])
    found = x @ weights
    if rows.has_intercept:
        found = found + vw.get_weight(CONSTANT & ((1 << bits_of(rows)) - 1), 0)
    return np.clip(found, rows.y.min(), rows.y.max()) if rows.model == "linear" else found


SETTINGS = grid(rule=tuple(RULES), rate=(0.05, 0.15, 0.5, 1.5, 5.0))
register(
    Candidate(
        "Vowpal Wabbit",
        "competitor",
        ("linear", "logistic"),
        lambda model: SETTINGS,
        refit=refit,
        needs="vowpalwabbit",
        install=INSTALL,
        why_not=one_number,
        prepare=cache_of,
    )
)
