"""Cells that a sweep adds by itself: at densities around each break-even, until it is known as well as asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from workbench import store
from workbench.analysis.refining import openings
from workbench.sweep.spec import Cell

MOST_ADDED = 12
"""Times that densities are added at most; each halves a gap, so a factor of ten comes below 1 % in nine."""


def added(cells: Mapping[str, Cell], rows: Iterable[Mapping[str, Any]], until: float) -> list[Cell]:
    """Cells that would narrow the break-evens which the rows of these cells, by key, leave wider than asked."""
    frame = store.frame(row for row in rows if row["key"] in cells)
    asked = [(cells[key], opening.density) for opening in openings(frame, until) for key in opening.keys]
    known = set(cells.values())
    wanted = [cell.model_copy(update={"density": density}) for cell, density in asked]
    return [cell for cell in dict.fromkeys(wanted) if cell not in known]
