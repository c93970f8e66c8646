"""Removal of superseded records from result files that are kept for long."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.store.table import Table, object_of
from workbench.store.tables import ADVICE, BENCH, CLUSTER, FAIR, FIT, SELF, TRIALS

_BY_FILE = {table.file: table for table in (ADVICE, CLUSTER, FAIR, FIT, SELF)} | {"self-demo.jsonl": SELF}
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
    """Return the table whose columns the records of a result file have, or None if the file is not one of ours.

    >>> table_of(Path("results/bench-fit.jsonl")).name, table_of(Path("cuda-registers.jsonl"))
    ('fit', None)
    """
    if path.name in _BY_FILE:
        return _BY_FILE[path.name]
    if path.name.startswith("bench"):
        return BENCH
    return None if path.name == "cuda-registers.jsonl" else TRIALS


def prune(path: str | os.PathLike, runs: int = 1, dry_run: bool = False) -> Pruned:
    """Rewrite a result file so that it has only the newest records of each configuration.

    Records of one configuration agree in all setting columns but the round, and in the machine. Of these only records
    with the key of the newest successful one, of the same code and data, are kept; without a successful record the
    newest one. Of trials only the last record of a configuration keeps its curve of losses, which charts draw.
    The file is replaced at once, so a kill leaves the old file or the new one. O(bytes).

    Parameters
    ----------
    path : path
        A JSON Lines file of records.
    runs : int, default 1
        Number of runs whose records are kept for each configuration, the newest first; at least 8 of files
        `self-*.jsonl`. Records without a run column count as one run.
    dry_run : bool, default False
        Only count, and leave the file as it is.

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
    text = path.read_bytes()
    lines = [line for line in text.split(b"\n") if line.strip()]
    records = [object_of(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    groups = _newest(records, table.settings, max(runs, _RUNS_OF_SELF_TRIAL if path.name.startswith("self-") else 1))
    for group in groups if table is TRIALS else ():
        for index in group[:-1]:
            if records[index].pop("curve", None) is not None:
                lines[index] = json.dumps(records[index], allow_nan=False, separators=(",", ":")).encode("ascii")
    kept = sorted(index for group in groups for index in group)
    after = b"".join(lines[index] + b"\n" for index in kept)
    if after != text and not dry_run:
        temporary = path.with_name(f".{path.name}.pruned")
        temporary.write_bytes(after)
        os.replace(temporary, path)
    return Pruned(len(lines), len(kept), len(text), len(after))


def _newest(records: Sequence[Mapping[str, Any]], settings: Sequence[str], runs: int) -> list[list[int]]:
    """Return for each configuration the ascending indices of the records to keep.

    `records` are in the order in which they were written.
    """
    names = [name for name in (*settings, "experiment", "machine") if name not in _REPEATED]
    members: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        role = str(record.get("key")).partition(" ")[2]  # in the self-trial one configuration has several roles
        members.setdefault(repr([role, *(record.get(name) for name in names)]), []).append(index)
    kept = []
    for indices in members.values():
        successful = [index for index in indices if records[index].get("status") == "ok"]
        key = records[(successful or indices)[-1]].get("key")
        same = [index for index in indices if records[index].get("key") == key]
        newest = list(dict.fromkeys(records[index].get("run") for index in reversed(same)))[:runs]
        kept.append([index for index in same if records[index].get("run") in newest])
    return kept
