"""Break-evens of other libraries: from which density on dense is faster in an operation, as measured elsewhere.

The file `breakevens.toml` is written by `python -m benchmarks breakevens results/MACHINE` from the records of
`benchmarks libraries`; a test compares it with them.

>>> one = measurement().of("PyTorch").operations[-1]
>>> one.operation, one.text
('EmbeddingBag of width 64', 'dense from 26 to 42 % on')
"""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from workbench.analysis.breakeven import locate_crossing
from workbench.analysis.compare import Contest
from workbench.analysis.formatting import format_breakeven, format_density

FILE = Path(__file__).with_suffix(".toml")
DIGITS = 4
"""Significant digits of the densities in the file."""


@dataclass(frozen=True)
class LibraryBreakEven:
    """From which density on dense was faster than sparse in one operation of a library.

    X is [rows, features]. `status`, `density`, `low` and `high` are those of `workbench.analysis.breakeven`: "crossing"
    with the break-even and the bounds of its interval, "sparse" with the last density that sparse won as `low`, "dense"
    with the first that dense won as `high`, "level", "several", "inconclusive", or "single" if one density was measured
    alone. Densities are fractions, None if not defined; `lowest` and `highest` are those measured. `note` says what
    else differs between the sides.
    """

    library: str
    version: str
    operation: str
    rows: int
    features: int
    note: str
    status: str
    lowest: float
    highest: float
    density: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """From which density on dense is faster, such as "dense from 19 to 32 % on", or why that is not known."""
        if self.status == "crossing":
            place = format_breakeven(self.density, self.low or 0.0, self.high or 1.0)
            return f"dense from {place.removeprefix('at ').removesuffix(' density')} on"
        low, high, lowest, highest = (
            format_density(value or 0.0, 2) for value in (self.low, self.high, self.lowest, self.highest)
        )
        texts = {
            "sparse": f"sparse up to {low}" + ("" if low == highest else f"; no winner up to {highest}"),
            "dense": f"dense from {high} on" + ("" if high == lowest else f"; no winner from {lowest} on"),
            "level": "within 10 % of each other at all densities measured",
            "several": f"changes more than once from {low} to {high}",
            "inconclusive": "no winner at any density measured",
            "single": "measured at one density only",
        }
        return texts[self.status]

    @property
    def shape(self) -> str:
        """Shape of X, such as "4,096 x 512"."""
        return f"{self.rows:,} x {self.features:,}"

    @property
    def line(self) -> str:
        """The operation with release, shape and break-even, in one line."""
        return f"{self.operation} ({self.version}, {self.shape}): {self.text}"


def locate(contests: Sequence[Contest], about: Mapping[str, Any]) -> LibraryBreakEven:
    """Return the break-even of an operation from one or more contests with a ratio, ascending in density.

    `about` has the fields library, version, operation, rows, features and note.
    """
    status, bounds = locate_crossing(list(contests), "seconds") if len(contests) > 1 else ("single", (None,) * 3)
    lowest, highest = (_rounded(contests[at].density or 0.0) for at in (0, -1))
    density, low, high = (None if value is None else _rounded(value) for value in bounds)
    return LibraryBreakEven(**about, status=status, lowest=lowest, highest=highest, density=density, low=low, high=high)


def _rounded(density: float) -> float:
    """Return a density with the digits that are kept."""
    return float(f"{density:.{DIGITS}g}")


@dataclass(frozen=True)
class Measurement:
    """Break-evens of operations, with the processor, its cores, the threads used, the folder of results and the day."""

    cpu: str
    cores: int
    threads: int
    machine: str
    recorded: str
    operations: Sequence[LibraryBreakEven]

    @property
    def where(self) -> str:
        """Machine and day, such as "2 threads of Intel(R) Xeon(R) Processor, 2026-11-29"."""
        return f"{self.threads} threads of {self.cpu}, {self.recorded}"

    def of(self, library: str) -> "Measurement":
        """Return the same with the operations of one library alone, by its title, such as "PyTorch"."""
        return replace(self, operations=tuple(one for one in self.operations if one.library == library))

    def lines(self, density: float = math.nan) -> list[str]:
        """Return a heading that says what was measured, then a line an operation; [] without operations.

        `density` is that of the user's rows, NaN if unknown.
        """
        own = "" if math.isnan(density) else f"Your rows have a density of {format_density(density, 2)}. "
        head = (
            f"{own}Break-evens measured elsewhere, not on your rows: random places, float32, {self.where}; "
            f"release and shape in brackets."
        )
        return [head, *(f"  {one.line}" for one in self.operations)] if self.operations else []

    def as_toml(self) -> str:
        """Return the content of the file: strings and numbers are written alike in JSON and in TOML."""
        known = asdict(self)
        operations = known.pop("operations")
        parts = ["# Written by python -m benchmarks breakevens results/MACHINE", *_lines(known)]
        for operation in operations:
            parts += ["", "[[operations]]", *_lines(operation)]
        return "\n".join(parts) + "\n"


def _lines(values: Mapping[str, Any]) -> list[str]:
    """Return a line of TOML for each value that is not None."""
    return [f"{name} = {json.dumps(value)}" for name, value in values.items() if value is not None]


@cache
def measurement() -> Measurement:
    """Return what the file holds; read once."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    operations = tuple(LibraryBreakEven(**one) for one in table.pop("operations"))
    return Measurement(**table, operations=operations)
