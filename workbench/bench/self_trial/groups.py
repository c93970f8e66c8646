"""Groups of cells that the self-trial measures, alike but for the contender, and how its rows name their contenders.

A row's `key` is the key of its cell, then a blank and the name under which the cell took part: "there", "first", ...
"""

from collections.abc import Mapping
from typing import Any

from workbench import settings
from workbench.sweep import grid
from workbench.sweep.spec import Cell

CONTENDERS: dict[str, dict[str, str]] = {
    "csr": {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"},
    "vendor": {"format": "csr", "engine": "vendor", "gradient": "dense", "update": "standard"},
    "dense": {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
}
"""Settings of a line, by the name of the contender."""
DATA = {"dataset": "uniform", "rows": 2048, "features": 2048, "width": 16, "optimizer": "adagrad"}
BATCH_ROWS = (64, 512)
DENSITIES = (0.003, 0.03, 0.1)


def cell_of(contender: str, batch_rows: int, density: float, **more: Any) -> Cell:
    """The cell of a contender at this point, other settings as given."""
    return Cell(**DATA | CONTENDERS[contender] | {"batch_rows": batch_rows, "density": density} | more)


def groups() -> list[dict[str, Cell]]:
    """All groups: cells by contender."""
    return [
        {name: cell_of(name, batch_rows, density) for name in CONTENDERS}
        for batch_rows in BATCH_ROWS
        for density in DENSITIES
    ]


def key_of(cell: Cell, name: str) -> str:
    """The key of a row of a cell that takes part under a name."""
    return f"{grid.key(cell)} {name}"


def split_key(key: str) -> tuple[str, str]:
    """The cell's key and the name of what `key_of` gave.

    >>> split_key("1f00 second")
    ('1f00', 'second')
    """
    start, _, name = key.partition(" ")
    return start, name


def contender_of(row: Mapping[str, Any]) -> str:
    """The name of the contender whose settings a row has; "other" where it is none of them."""
    for name, line in CONTENDERS.items():
        if all(row[setting] == value for setting, value in line.items()):
            return name
    return "other"


def group_of(row: Mapping[str, Any]) -> tuple:
    """Settings that the rows of one group agree in, and no others."""
    return tuple(row[column] for column in (*settings.columns("group"), *settings.columns("axis"), "machine"))
