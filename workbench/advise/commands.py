"""The command that trains a cell, as it is typed."""

import shlex
from typing import Any

from workbench.settings import SETTINGS, Setting
from workbench.sweep.spec import Cell


def train_command(cell: Cell) -> str:
    """`workbench train` with the settings of the cell, those that are its defaults left out.

    >>> train_command(Cell(dataset="uniform", batch_rows=64, serial=True, format="coo", shuffle=False))
    'workbench train --dataset uniform --batch-rows 64 --threads 1 --no-shuffle --format coo --engine ours \
--gradient row_sparse --update lazy'
    """
    words = ["workbench", "train"]
    if cell.serial:
        cell = cell.model_copy(update={"serial": False, "threads": 1})
    for setting in SETTINGS:
        words += _option(setting, getattr(cell, setting.name))
    return shlex.join(words)


SAID = ("engine", "gradient", "update")
"""Settings that a training without them would choose by itself."""


def _option(setting: Setting, value: Any) -> list[str]:
    is_usual = value is None or (value == setting.default and setting.name not in SAID)
    if is_usual or setting.name == "epochs":
        return []
    name = setting.name.replace("_", "-")
    if setting.type is bool:
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value)]
