"""Rows of another tool, or of another person: one JSON object a line, with few columns, read to be compared with ours.

A line has `who` and `seconds`; what else it states of the settings says which of our configurations it is compared
with.

>>> from pathlib import Path; import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "theirs.jsonl"
...     _ = path.write_text('{"who": "their loop", "seconds": [0.011, 0.012], "density": 0.01}')
...     read(path)[0]["seconds"]
[0.011, 0.012]
"""

from pathlib import Path
from typing import Any

from workbench import settings
from workbench.store.table import Column, RowError, object_of, refuse_unknown

SETTINGS = (*settings.columns("group"), *settings.columns("axis"))
"""Settings of ours that a row may state; of one it does not state it may be any."""
_OWN = """
    who text the tool, or the person: what the comparison calls it; needed
    seconds numbers seconds a training step, a number a run of its own; needed, four or more decide
    bytes_peak integer most memory at once, bytes
    machine text id of the machine, as machine.json has it; empty: another machine than ours
    version text version of the tool
    note text anything else
"""
_TRIALS = {setting.column or setting.name: setting for setting in settings.SETTINGS}
COLUMNS = {
    name: Column(name, kind, "own", meaning)
    for name, kind, meaning in (line.split(maxsplit=2) for line in _OWN.strip().splitlines())
} | {name: Column(name, _TRIALS[name].kind, "setting", _TRIALS[name].meaning) for name in SETTINGS}


def read(path: str | Path) -> list[dict[str, Any]]:
    """Return the records of an external JSON-lines file, oldest first; columns that a line lacks are None. O(bytes).

    Raises RowError, naming file and line, for an invalid record.
    """
    lines = Path(path).read_bytes().split(b"\n")
    return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _row(line: bytes, where: str) -> dict[str, Any]:
    """Return the external record in a JSON line, with all columns; RowError, naming `where`, if it is invalid."""
    row = object_of(line, where)
    refuse_unknown(row, COLUMNS, where)
    for name, value in row.items():
        COLUMNS[name].check(value, f"{where}: ")
    if not row.get("who"):
        raise RowError(f"{where} has no who; name the tool or the person.")
    seconds = row.get("seconds") or []
    if not seconds or not all(value is not None and value > 0 for value in seconds):
        raise RowError(f"{where}: seconds is {row.get('seconds')!r}; give one number above 0 for each run, as a list.")
    return dict.fromkeys(COLUMNS) | row
