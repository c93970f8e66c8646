"""Results on disk: one line of JSON a trial, only ever appended; COLUMNS says what a line holds.

A file survives a kill at any moment: a row is written whole by one system call, and a line that was torn all the same
is closed with a mark by the next append, which tells it from a line damaged later.
"""

import difflib
import fcntl
import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

SCHEMA = 1
FILE = "trials.jsonl"
STATUSES = ("ok", "skipped", "unsupported", "failed", "timeout", "memory", "wrong", "stopped")
_TORN = b"<torn>"  # a whole row ends in "}", so no whole row can end like this


class RowError(ValueError):
    """A row, or a line of a result file, does not have the columns of COLUMNS."""


class TornLineWarning(UserWarning):
    """A writer was killed in the middle of a line; that line is left out of what was read."""


class Column(NamedTuple):
    """What one key of a row holds. `kind` is a key of KINDS; any value may be null, which means unknown."""

    name: str
    kind: str
    part: str
    meaning: str


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of(check: Any) -> Any:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


# kind -> (what a value must be, dtype in the frame)
KINDS = {
    "text": (lambda v: isinstance(v, str), "object"),
    "integer": (lambda v: isinstance(v, int) and not isinstance(v, bool), "Int64"),
    "number": (_is_number, "float64"),
    "flag": (lambda v: isinstance(v, bool), "boolean"),
    "numbers": (_is_list_of(lambda v: v is None or _is_number(v)), "object"),
    "names": (_is_list_of(lambda v: isinstance(v, str)), "object"),
    "curve": (_is_list_of(lambda v: isinstance(v, list) and len(v) == 3), "object"),
    "records": (_is_list_of(lambda v: isinstance(v, dict)), "object"),
    "mapping": (lambda v: isinstance(v, dict), "object"),
}

_TABLE = {
    "identity": """
        schema integer number of this table of columns
        key text hash of the cell's settings and of the code they use; resuming skips a key that is done
        run text id of the run that wrote the row
        experiment text name of the experiment
        time text when the trial ended, ISO 8601
        status text ok, skipped, unsupported, failed, timeout, memory, wrong or stopped
        reason text why the status is not ok; empty when it is
    """,
    "setting": """
        dataset text name of the data set
        rows_total integer rows of the data set
        features integer D, columns of the data set
        density number density asked for, nnz / size; null means as the data set has it
        width integer N, columns of the weights
        batch_rows integer R, rows a batch
        model text linear, logistic or softmax
        optimizer text sgd, adagrad or adam
        format text what a batch is held in: dense, csr, csc, coo or row_sparse
        gradient text what the gradient of the weights is held in: dense or row_sparse
        update text standard (all rows of the weights) or lazy (the touched rows only)
        engine text whose kernels: ours, vendor, or dense (the BLAS baseline)
        dtype text type of the values
        index_dtype text type of the indices
        threads integer threads allowed to the trial
        shuffle flag whether rows are drawn in a new order each epoch
        epochs integer epochs trained from new weights; 0 times steps alone
        learning_rate number step length of the optimizer
        seed integer seed of data, order and starting weights
        device text where the step runs
        round integer how often this cell was measured before in this run
    """,
    "measured": """
        rows_trained integer rows that were trained on: less those held out, or joined to reach a density
        density_measured number nnz / size of the data used
        nnz_batch number z, mean stored entries of a batch
        touched number U, mean columns with an entry in a batch
        row_length_cv number standard deviation / mean of the entries a row
        busy_others number share of all cores, 0 to 1, that other programs took while it was measured
        steps_timed integer steps inside the timed samples
        steps_epoch integer steps an epoch
        samples numbers seconds a step, one number a sample
        seconds_step number median of samples, seconds
        seconds_step_low number lower end of the 95 % rank interval of that median, seconds
        seconds_step_high number upper end of the 95 % rank interval of that median, seconds
        seconds_epoch number one pass over the data, seconds
        seconds_prepare number slice, convert and plan of a batch when it is made, mean seconds
        seconds_compile number compiling the kernels, seconds, not in any other time
        seconds_first_step number first step after compiling, caches cold, seconds
        seconds_slice number cutting the batch out of the data, mean seconds a step
        seconds_convert number converting the batch to its format, mean seconds a step
        seconds_plan number index work of the batch, mean seconds a step
        seconds_transfer number copies between devices, mean seconds a step
        seconds_forward number scores, mean seconds a step
        seconds_loss number loss and its gradient, mean seconds a step
        seconds_gradient number gradient of the weights, mean seconds a step
        seconds_update number optimizer, mean seconds a step
        bytes_predicted integer bytes by the formulas of the formats
        bytes_held integer bytes of the arrays held
        bytes_peak integer peak of the trial's process above its start, bytes
        bytes_needed integer bytes it would have needed; null unless it did not fit
        bytes_limit integer bytes allowed to the trial
        curve curve training so far as [seconds, loss, step]
        loss_first number loss of the first step
        loss_last number loss at the end of the curve
        quality number quality on held-out rows, named by quality_name
        quality_name text accuracy or r2
        error number largest relative error of the timed call against the float64 reference
        error_allowed number error above which a trial is wrong
        densified records operations that made a dense array of a sparse one, as {op, shape, bytes}
        machine text id of the machine
        versions mapping version of each library used
        blas text BLAS used by the dense side
        source text hash of the code used
        seconds_overhead number the trial's own start, data and checks, seconds
        not_finite names columns where a NaN or infinity was replaced by null when the row was stored
    """,
}

COLUMNS: dict[str, Column] = {
    name: Column(name, kind, part, meaning)
    for part, table in _TABLE.items()
    for name, kind, meaning in (line.split(maxsplit=2) for line in table.strip().splitlines())
}
SETTINGS = tuple(column.name for column in COLUMNS.values() if column.part == "setting")


def new_row(**known: Any) -> dict[str, Any]:
    """A row with every column: those given, null for the rest. RowError names an unknown column, its neighbour and all.

    >>> new_row(key="a1", status="ok", width=16)["width"]
    16
    """
    _refuse_unknown(known, "the row")
    return dict.fromkeys(COLUMNS) | {"schema": SCHEMA, "reason": "", "not_finite": []} | known


def append(path: str | os.PathLike, row: Mapping[str, Any]) -> None:
    """Add one row to the file, made when absent; returns when the row is on the disk.

    NumPy values become plain ones, NaN and infinities null; the columns of those are named in the row's `not_finite`.
    Any number of processes may append. RowError where the row is not as in COLUMNS, OSError where the disk is full.
    """
    line = _encode(row)
    existed = Path(path).exists()
    with open(path, "ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        line = _closing(file.fileno()) + line
        written = file.write(line)  # unbuffered: one system call
        if written != len(line):
            raise OSError(f"{path}: only {written} of {len(line)} bytes written; is the disk full? The row is lost")
        os.fsync(file)
    if not existed:
        folder = os.open(Path(path).parent, os.O_RDONLY)
        os.fsync(folder)  # or a power cut could lose the new file's name
        os.close(folder)


def read(path: str | os.PathLike) -> list[dict[str, Any]]:
    """All rows of a file, or of the `trials.jsonl` in a run folder, oldest first.

    Lines torn by a killed writer are left out with a TornLineWarning. A line that is broken otherwise, has unknown
    columns or a newer schema raises RowError with its number. Columns that the line lacks are null.
    """
    path = _file(path)
    if not path.exists():
        raise FileNotFoundError(f"no results at {path}: give a .jsonl file, or a run folder that holds {FILE}")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # a row being written now is not torn
        lines = file.read().split(b"\n")
    if lines[-1] and not _is_whole(lines[-1]):
        lines[-1] += _TORN
    if torn := sum(line.endswith(_TORN) for line in lines):
        message = f"{path}: left out {torn} line(s) torn by a killed writer; resume the run to measure them again"
        warnings.warn(message, TornLineWarning, stacklevel=2)
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line and not line.endswith(_TORN))
    return [_decode(line, f"{path}, line {number}") for number, line in numbered]


def frame(rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Rows as a DataFrame with exactly the columns of COLUMNS, in that order, also when there are no rows.

    Integers are Int64, flags boolean, numbers float64 (null is NaN), the rest objects. RowError on unknown columns.
    """
    for row in (rows := list(rows)):
        _refuse_unknown(row, "a row")
    values = {name: [_plain(row.get(name), []) for row in rows] for name in COLUMNS}
    return pd.DataFrame({name: pd.Series(values[name], dtype=KINDS[COLUMNS[name].kind][1]) for name in COLUMNS})


def done_keys(path: str | os.PathLike, again: Iterable[str] = ("stopped",)) -> set[str]:
    """Keys that need not be measured again: those with a row whose status is not in `again`.

    A file that is not there yet has none. Give `again=("stopped", "failed", "timeout")` to retry failures.
    """
    if unknown := (again := set(again)) - set(STATUSES):
        raise ValueError(f"unknown status {', '.join(sorted(unknown))}; known: {', '.join(STATUSES)}")
    rows = read(path) if _file(path).exists() else []
    return {row["key"] for row in rows if row["status"] not in again}


def _file(path: str | os.PathLike) -> Path:
    return Path(path) / FILE if Path(path).is_dir() else Path(path)


def _refuse_unknown(row: Mapping[str, Any], what: str) -> None:
    for name in row:
        if name not in COLUMNS:
            near = "".join(f" (did you mean {n}?)" for n in difflib.get_close_matches(str(name), COLUMNS, n=1))
            raise RowError(f"{what} has unknown column {name!r}{near}; known: {', '.join(COLUMNS)}")


def _encode(row: Mapping[str, Any]) -> bytes:
    """One line of ASCII JSON; refuses what COLUMNS does not allow."""
    _refuse_unknown(row, "the row")
    if missing := [name for name in COLUMNS if name not in row and name != "not_finite"]:
        raise RowError(f"the row lacks {', '.join(missing)}; make rows with store.new_row")
    lost: dict[str, list] = {name: [] for name in COLUMNS}
    plain = {name: _plain(row.get(name), lost[name]) for name in COLUMNS}
    plain["not_finite"] = sorted({*(plain["not_finite"] or []), *(name for name in COLUMNS if lost[name])})
    _check_kinds(plain)
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _check_kinds(row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        kind = COLUMNS[name].kind
        if value is not None and not KINDS[kind][0](value):
            raise RowError(f"column {name} ({kind}: {COLUMNS[name].meaning}) got {type(value).__name__} {value!r:.80}")
    if row["status"] not in STATUSES:
        raise RowError(f"status is {row['status']!r}; allowed: {', '.join(STATUSES)}")
    if not row["key"] or row["schema"] != SCHEMA:
        raise RowError(f"key is {row['key']!r} and schema {row['schema']!r}; a key and schema {SCHEMA} are needed")


def _plain(value: Any, lost: list) -> Any:
    """The value as what JSON knows; what is not finite becomes null and is added to `lost`."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item, lost) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, lost) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(value)
        return None
    return None if value is pd.NA else value


def _closing(handle: int) -> bytes:
    """What must be written before a new line: nothing, or the end of a line that a killed writer left open."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return b""
    return b"\n" if _is_whole(os.pread(handle, size, 0).rpartition(b"\n")[2]) else _TORN + b"\n"


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _decode(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise RowError(f"{where} is not JSON ({error}); mend or remove that line") from None
    if not isinstance(row, dict):
        raise RowError(f"{where} is a {type(row).__name__}, a row is an object")
    if (row.get("schema") or SCHEMA) > SCHEMA:
        raise RowError(f"{where} has schema {row['schema']}, this version reads up to {SCHEMA}; update the workbench")
    _refuse_unknown(row, where)
    return dict.fromkeys(COLUMNS) | row
