"""Removal of superseded records from result files that are kept for long, and compression of the rest."""

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import tables
from workbench import atomic_files
from workbench.store.table import TRIALS, Table, is_stored, object_of, packed_path, unpack

_BY_FILE = {table.file: table for table in tables.ALL} | {"self-demo.jsonl": tables.SELF}
_DIGITS = 7
"""Significant digits kept of measured numbers: a clock has fewer."""
_MEASURED = ("number", "numbers", "curve", "records")
"""Kinds of columns whose floats are measured, if the column is no setting."""
_BYTES_PLAIN = 200_000
"""Size from which `pack` compresses a file: smaller ones stay text."""
_REPEATED = ("round", "tried")
"""Settings in which repetitions of the same configuration differ."""
_RUNS_OF_SELF_TRIAL = 8
"""Runs kept of files `self-*.jsonl`: what they show is how much runs differ."""


class Pruned(NamedTuple):
    """Number of records and of bytes that a result file had before, and has after pruning."""

    records_before: int
    records: int
    bytes_before: int
    bytes: int


def table_of(path: Path) -> Table | None:
    """Return the table of a result file's records, by the file's name; None for a file that is not one of ours.

    >>> table_of(Path("results/bench-fit.jsonl")).name, table_of(Path("cuda-registers.jsonl"))
    ('fit', None)
    """
    return _BY_FILE.get(path.name, None if path.name == "cuda-registers.jsonl" else TRIALS)


def prune(path: str | os.PathLike, runs: int = 1, dry_run: bool = False, pack: bool = False) -> Pruned:
    """Rewrite a result file so that it has only the newest records of each configuration.

    Records of one configuration agree in all setting columns but the round, and in the machine. Of these only records
    with the key of the newest successful one, or of its code and run, are kept; without a successful record those of
    the newest one. Of trials only the last record of a configuration keeps its curve of losses, which charts draw.
    Measured numbers keep 7 significant digits, and nulls are left out. The file is replaced at once, so a kill leaves
    the old file or the new one. Older records that are compressed next to the file are read with it, and everything is
    written to the compressed file. O(bytes).

    Parameters
    ----------
    path : path
        A JSON Lines file of records, named as it is uncompressed.
    runs : int, default 1
        Number of runs whose records are kept for each configuration, the newest first; at least 8 of files
        `self-*.jsonl`. Records without a run column count as one run.
    dry_run : bool, default False
        Only count, and leave the file as it is.
    pack : bool, default False
        Compress the file to `FILE.gz` if it has 200 kB or more. Everything that reads results reads it as before.

    Returns
    -------
    Pruned
        Number of records and bytes before and after.

    Raises
    ------
    RowError
        If a line is not a record of the file's table; the file is then left as it is.
    ValueError
        If `runs` is below 1, or the file belongs to no table.
    """
    path = Path(path)
    if runs < 1:
        raise ValueError(f"runs = {runs}; expected 1 or more.")
    if (table := table_of(path)) is None:
        raise ValueError(f"{path} holds no records of a known table; it cannot be pruned.")
    older = packed_path(path)
    if not is_stored(path):
        raise FileNotFoundError(f"There are no results at {path}.")
    text = b"".join([unpack(older) if older.exists() else b"", path.read_bytes() if path.exists() else b""])
    bytes_before = sum(file.stat().st_size for file in (path, older) if file.exists())
    records = [
        object_of(line, f"{path}, line {number}")
        for number, line in enumerate((line for line in text.split(b"\n") if line.strip()), 1)
    ]
    groups = _newest(records, table.settings, max(runs, _RUNS_OF_SELF_TRIAL if path.name.startswith("self-") else 1))
    for group in groups if table is TRIALS else ():
        for index in group[:-1]:
            records[index].pop("curve", None)
    kept = sorted(index for group in groups for index in group)
    after = b"".join(_line(table, records[index]) for index in kept)
    is_packed = older.exists() or (pack and len(after) >= _BYTES_PLAIN)
    content = gzip.compress(after, mtime=0) if is_packed else after
    if not dry_run and (after != text or is_packed != older.exists() or (is_packed and path.exists())):
        atomic_files.write(older if is_packed else path, content)
        if is_packed:
            path.unlink(missing_ok=True)
    return Pruned(len(records), len(kept), bytes_before, len(content))


def _line(table: Table, record: Mapping[str, Any]) -> bytes:
    """Return a record as a line of ASCII JSON without nulls, measured numbers rounded to 7 significant digits."""
    kinds = {column.name: column.kind for column in table.columns.values() if column.part != "setting"}
    short = {
        name: _round_floats(value) if kinds.get(name) in _MEASURED else value
        for name, value in record.items()
        if value is not None
    }
    return json.dumps(short, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _round_floats(value: Any) -> Any:
    """Return a JSON value with each float in it, at any depth, rounded to 7 significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [_round_floats(item) for item in value]
    return {name: _round_floats(item) for name, item in value.items()} if isinstance(value, dict) else value


def _newest(records: Sequence[Mapping[str, Any]], settings: Sequence[str], runs: int) -> list[list[int]]:
    """Return for each configuration the ascending indices of the records to keep, of at most `runs` runs.

    `records` are in the order written, `settings` the names of the setting columns.
    """
    names = [name for name in (*settings, "experiment", "machine") if name not in _REPEATED]
    members: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        role = str(record.get("key")).partition(" ")[2]  # in the self-trial one configuration has several roles
        members.setdefault(repr([role, *(record.get(name) for name in names)]), []).append(index)
    kept = []
    for indices in members.values():
        successful = [index for index in indices if records[index].get("status") == "ok"]
        newest = records[(successful or indices)[-1]]
        same = [index for index in indices if _is_of_same_code(records[index], newest)]
        newest_runs = list(dict.fromkeys(records[index].get("run") for index in reversed(same)))[:runs]
        kept.append([index for index in same if records[index].get("run") in newest_runs])
    return kept


def _is_of_same_code(record: Mapping[str, Any], newest: Mapping[str, Any]) -> bool:
    """Return whether a record has the key of the newest one of its configuration, or its code (`source`) and run.

    Keys of trainings to a held-out quality contain the round: the rounds of one run have the code in common.
    """
    if record.get("key") == newest.get("key"):
        return True
    code = newest.get("source")
    return bool(code) and (record.get("source"), record.get("run")) == (code, newest.get("run"))
