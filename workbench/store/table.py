"""A table: which columns a line of a result file has, and how lines are written, read and made a frame.

A file survives a kill at any moment: a row is written whole by one system call, and a line that was torn all the same
is closed with a mark by the next append, which tells it from a line damaged later.

Older records of a file may be in a compressed file next to it, whose name ends in `.gz`: it is read before the file
itself. Records are appended to the plain file only; `python -m benchmarks prune --pack` compresses what is there.
"""

import difflib
import fcntl
import functools
import gzip
import json
import math
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kernels.registry import unknown_name
from workbench import settings
from workbench.json_text import parsed

if TYPE_CHECKING:
    import pandas as pd

SCALARS = frozenset({str, int, bool, type(None), float})
"""Types of scalars that JSON knows, of floats the finite ones."""
UNCHANGED = SCALARS - {float}
"""Those of which every value is written as it is."""

# The kinds of columns: what a value must be, and the type of the column in a frame.
#
# Rows may come from anyone's file, so a kind also says how large a number may be that a frame has room for.


LARGEST = 2**63 - 1
"""The largest integer of a frame."""
LONGEST = 2**1023
"""Whole numbers up to here have a float."""


def _is_integer(value: Any) -> bool:
    """Return whether a value is an int (no bool) of magnitude below 2**63."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_number(value: Any) -> bool:
    """Return whether a value is a float, or an int (no bool) that a float can hold."""
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LONGEST
    )


def _is_text(value: Any) -> bool:
    """Return whether a value is a str."""
    return isinstance(value, str)


def _is_list_of(check: Callable[[Any], bool], *types: type) -> Callable[[Any], bool]:
    """Return a predicate: whether a value is a list whose elements all pass `check`, as every value of `types` does."""
    sure = frozenset(types)
    return lambda value: isinstance(value, list) and (sure.issuperset(map(type, value)) or all(map(check, value)))


def _is_number_or_null(value: Any) -> bool:
    """Return whether a value is None, a float or an int that a float can hold."""
    return value is None or _is_number(value)


def _is_point(value: Any) -> bool:
    """Return whether a value is a list of exactly three numbers or Nones."""
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number_or_null, value))


def _is_curve(value: Any) -> bool:
    """Return whether a value is a list of points, as `_is_point` says; checks all numbers at once if it can."""
    if not isinstance(value, list):
        return False
    if {list}.issuperset(map(type, value)) and {3}.issuperset(map(len, value)):
        numbers = list(chain.from_iterable(value))
        if {float, int}.issuperset(map(type, numbers)) and max(map(abs, numbers), default=0) <= LONGEST:
            return True
    return all(map(_is_point, value))


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "object"),
    "integer": (_is_integer, "Int64"),
    "number": (_is_number, "float64"),
    "flag": (lambda value: isinstance(value, bool), "boolean"),
    "numbers": (_is_list_of(_is_number_or_null, float, type(None)), "object"),
    "names": (_is_list_of(_is_text, str), "object"),
    "curve": (_is_curve, "object"),
    "records": (_is_list_of(lambda value: isinstance(value, dict), dict), "object"),
    "mapping": (lambda value: isinstance(value, dict), "object"),
}
"""Kind -> (whether a value is of it, dtype in the frame)."""
SURE = {"text": str, "number": float, "flag": bool, "mapping": dict}
"""Kind -> a type all of whose values are of it."""


STATUSES = ("ok", "skipped", "unsupported", "failed", "timeout", "memory", "wrong", "stopped", "disturbed")
_TORN = b"<torn>"  # a whole row ends in "}", so no whole row can end like this


class RowError(ValueError):
    """A row, or a line of a result file, does not have the columns of its table."""


class TornLineWarning(UserWarning):
    """A writer was killed in the middle of a line; that line is left out."""


class Column(NamedTuple):
    """Description of one key of a row. `kind` is a key of KINDS; any value may be null, which means unknown."""

    name: str
    kind: str
    part: str
    meaning: str

    def check(self, value: Any, where: str = "") -> None:
        """Raise RowError unless `value` is None or of the column's kind; `where` is the prefix of the message.

        O(elements of the value).
        """
        if value is not None and not KINDS[self.kind][0](value):
            came = f"{type(value).__name__} {value!r:.80}"
            raise RowError(f"{where}The column {self.name} is of kind {self.kind} ({self.meaning}); {came} came.")


def refuse_unknown(row: Iterable[str], columns: Mapping[str, Column], what: str) -> None:
    """Raise RowError, with the nearest name, for a name in `row` that is not a column; `what` begins the message."""
    for name in row:
        if name not in columns:
            near = "".join(f" (did you mean {match}?)" for match in difflib.get_close_matches(str(name), columns, n=1))
            again = "Records of another version have to be measured again"
            raise RowError(f"{what} has the unknown column {name!r}{near}.\n{again}; known: {', '.join(columns)}.")


COLUMNS = Path(__file__).with_name("columns")
"""Folder of the files of columns of this package."""


@dataclass(frozen=True)
class Table:
    """The columns of one kind of result, by name and in order; the functions write and read files of such rows.

    Every table has the columns schema, key, status, reason and not_finite.
    """

    name: str
    file: str
    """Name of its JSON-lines file."""
    schema: int
    """Its version."""
    more_settings: Mapping[str, str] = field(default_factory=dict)
    """Columns of the part "setting" that stand before those of the file of columns: "kind: meaning" by name."""
    folder: Path = COLUMNS
    """Folder of the file of columns, `NAME.toml`."""
    base: str = ""
    """Name of another file of columns there, whose columns come first in each part."""

    @functools.cached_property
    def columns(self) -> dict[str, Column]:
        """Columns by name, in order; read from the file of columns when first used."""
        import tomllib  # with the files of columns it would be half of the time to import this package

        parts: dict[str, dict[str, str]] = {}
        for file in filter(None, (self.base, self.name)):
            text = self.folder.joinpath(f"{file}.toml").read_text(encoding="utf-8")
            for part, descriptions in tomllib.loads(text).items():
                parts.setdefault(part, {}).update(descriptions)
        parts["setting"] = {**self.more_settings, **parts["setting"]}
        return {
            name: Column(name, kind, part, meaning)
            for part, descriptions in parts.items()
            for name, description in descriptions.items()
            for kind, _, meaning in [description.partition(": ")]
        }

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the columns of the part "setting", which say what was to be measured."""
        return tuple(column.name for column in self.columns.values() if column.part == "setting")

    def new_row(self, **known: Any) -> dict[str, Any]:
        """Return a record with every column: those given, None for the rest; RowError for an unknown column.

        `schema`, `reason` ("") and `not_finite` ([]) have defaults; nothing is written.

        >>> from workbench import store
        >>> store.new_row(key="a1", status="ok", width=16)["width"]
        16
        """
        refuse_unknown(known, self.columns, "the row")
        return dict.fromkeys(self.columns) | {"schema": self.schema, "reason": "", "not_finite": []} | known

    def append(self, path: str | os.PathLike, row: Mapping[str, Any]) -> None:
        """Append one record to the JSON-lines file `path`, created if absent; it is on disk when this returns.

        NumPy values become Python ones, NaN and infinities null, their columns being listed in `not_finite`; null
        columns are left out of the line. The file is locked meanwhile, so processes may append concurrently. Raises
        RowError for an invalid record, OSError if the disk is full.
        """
        line = self._encode(row)
        existed = Path(path).exists()
        with open(path, "ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _write_whole(file.fileno(), _closing(file.fileno()) + line, path)
        if not existed:
            folder = os.open(Path(path).parent, os.O_RDONLY)
            os.fsync(folder)  # or a power cut could lose the new file's name
            os.close(folder)

    def read(self, path: str | os.PathLike) -> list[dict[str, Any]]:
        """Return all records of a file, or of the table's own file in a run folder, oldest first.

        Lines torn by a killed writer are left out with a TornLineWarning. A line that is broken otherwise, has unknown
        columns, a newer schema or values of another kind raises RowError with its number. Columns that the line lacks
        are None. FileNotFoundError if there is no file, plain or compressed.
        """
        path = self._file(path)
        if not is_stored(path):
            advice = f"Give a .jsonl file, or a run folder that holds {self.file}."
            if (other := path.with_name(f"{path.name}.gz")).is_file():
                advice = f"If {other} is meant, type that name."
            raise FileNotFoundError(f"There are no results at {path}. {advice}")
        older = packed_path(path)
        rows = self._rows(older, unpack(older).split(b"\n")) if older.exists() else []
        if path.exists() and path != older:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)  # a row being written now is not torn
                rows += self._rows(path, file.read().split(b"\n"))
        return rows

    def _rows(self, path: Path, lines: list[bytes]) -> list[dict[str, Any]]:
        """Return the records in the lines of a file; warn with TornLineWarning of lines torn by a killed writer.

        The last line may be marked as torn in place.
        """
        if lines[-1] and not _is_whole(lines[-1]):
            lines[-1] += _TORN
        if torn := sum(line.endswith(_TORN) for line in lines):
            message = f"{path}: left out {torn} line(s) torn by a killed writer; resume the run to measure them again"
            warnings.warn(message, TornLineWarning, stacklevel=3)
        numbered = ((number, line) for number, line in enumerate(lines, 1) if line and not line.endswith(_TORN))
        return [self._decode(line, f"{path}, line {number}") for number, line in numbered]

    def frame(self, rows: Iterable[Mapping[str, Any]] = ()) -> "pd.DataFrame":
        """Return records as a DataFrame with exactly the columns of the table, in that order, also without records.

        Integers are Int64, flags boolean, numbers float64 (null is NaN), the rest objects. RowError for unknown
        columns.
        """
        import pandas as pd  # half a second to import, and only frames need it

        for row in (rows := list(rows)):
            refuse_unknown(row, self.columns, "A row")
        values = {name: [row.get(name) for row in rows] for name in self.columns}
        values = {name: one if _is_plain(one) else [_plain(value, []) for value in one] for name, one in values.items()}
        kinds = {name: KINDS[column.kind][1] for name, column in self.columns.items()}
        return pd.DataFrame({name: pd.Series(values[name], dtype=kinds[name]) for name in self.columns})

    def done_keys(self, path: str | os.PathLike, again: Iterable[str] = ("stopped",)) -> set[str]:
        """Return the keys that need no new measurement: those of a record whose status is not in `again`.

        The empty set without a file. ValueError for an unknown status.
        """
        if unknown := (again := set(again)) - set(STATUSES):
            raise ValueError(unknown_name("status", min(unknown), STATUSES))
        rows = self.read(path) if is_stored(self._file(path)) else []
        return {row["key"] for row in rows if row["status"] not in again}

    def _file(self, path: str | os.PathLike) -> Path:
        """Return the table's file in `path` if that is a folder, else `path` itself."""
        return Path(path) / self.file if Path(path).is_dir() else Path(path)

    def _encode(self, row: Mapping[str, Any]) -> bytes:
        """Return the record as one line of ASCII JSON with newline; non-finite numbers become null.

        Raises RowError for missing, unknown or invalid columns or another schema.
        """
        refuse_unknown(row, self.columns, "The row")
        if missing := [name for name in self.columns if name not in row and name != "not_finite"]:
            maker = "store.new_row" if self.name == "trials" else f"store.{self.name.upper()}.new_row"
            raise RowError(f"The row lacks {', '.join(missing)}; make rows with {maker}.")
        lost: dict[str, list] = {name: [] for name in self.columns}
        plain = {
            name: value if type(value := row.get(name)) in UNCHANGED else _plain(value, lost[name])
            for name in self.columns
        }
        plain["not_finite"] = sorted({*(plain["not_finite"] or []), *(name for name in self.columns if lost[name])})
        self._check_kinds(plain)
        if plain["schema"] != self.schema:
            raise RowError(f"The row has schema {plain['schema']!r}; schema {self.schema} is needed.")
        known = {name: value for name, value in plain.items() if value is not None}  # the rest is null when it is read
        return json.dumps(known, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"

    def _check_kinds(self, row: Mapping[str, Any], where: str = "") -> None:
        """Raise RowError for a value of the wrong kind, an unknown status or an empty key.

        `where` is the prefix of the message.
        """
        columns = self.columns
        for name, value in row.items():
            kind = columns[name].kind
            if not (
                value is None
                or type(value) is SURE.get(kind)
                or (kind == "integer" and type(value) is int and abs(value) <= LARGEST)
            ):
                columns[name].check(value, where)
        if row.get("status") not in STATUSES:
            raise RowError(f"{where}status is {row.get('status')!r}; allowed: {', '.join(STATUSES)}.")
        if not row.get("key"):
            raise RowError(f"{where}key is {row.get('key')!r}; a key is needed.")

    def _decode(self, line: bytes, where: str) -> dict[str, Any]:
        """Return the record of a JSON line with all columns, None for absent ones.

        Raises RowError for unknown or invalid columns or a newer schema; `where` is the prefix of the message.
        """
        row = object_of(line, where)
        schema = row.get("schema")
        if isinstance(schema, int) and schema > self.schema:
            known = f"this version reads up to {self.schema}; update the workbench"
            raise RowError(f"{where} has schema {row['schema']}, {known}.")
        refuse_unknown(row, self.columns, where)
        self._check_kinds(row, f"{where}: ")
        return dict.fromkeys(self.columns) | row


def packed_path(path: str | os.PathLike) -> Path:
    """Return the compressed file next to a result file, NAME.jsonl, that may hold its older records.

    >>> packed_path("results/self-same.jsonl").name, packed_path("results/self-same.jsonl.gz").name
    ('self-same.jsonl.gz', 'self-same.jsonl.gz')
    """
    path = Path(path)
    return path if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")


def is_stored(path: str | os.PathLike) -> bool:
    """Return whether a result file exists, plain or, of a name that ends in `.jsonl`, compressed (`.gz`) next to it."""
    return Path(path).exists() or (Path(path).suffix == ".jsonl" and packed_path(path).exists())


def unpack(path: Path) -> bytes:
    """Return the decompressed content of a gzip file; RowError if it is damaged. O(bytes)."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise RowError(f"{path} is not a whole gzip file ({error}); restore or remove it.") from None


def object_of(line: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in a line of a file; RowError for anything else. O(bytes).

    `where` is the prefix of the message.
    """
    try:
        row = parsed(line)
    except ValueError as error:
        raise RowError(
            f"{where} is not JSON ({error}). Give a .jsonl file or a run folder; in one, fix or remove that line."
        ) from None
    if not isinstance(row, dict):
        raise RowError(f"{where} is a {type(row).__name__}; a record is an object. Fix or remove that line.")
    return row


def _is_plain(values: Sequence[Any]) -> bool:
    """Return whether all values are str, int, bool, None or finite floats, so that `_plain` would change none."""
    if not SCALARS.issuperset(map(type, values)):
        return False
    if {float}.issuperset(map(type, values)):
        return all(map(math.isfinite, values))
    return all(map(math.isfinite, [value for value in values if value.__class__ is float]))


def _plain(value: Any, lost: list) -> Any:
    """Return a value converted to JSON types at any depth: NumPy to Python, tuples to lists, pandas.NA to None.

    Non-finite floats become None and are appended to `lost`.
    """
    numpy: Any = sys.modules.get(
        "numpy"
    )  # no value is NumPy's if nobody has imported it: reading a run's state is quick
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if _is_plain(value):
            return list(value)  # samples and points: without a call for each number
        if {list}.issuperset(map(type, value)) and _is_plain(list(chain.from_iterable(value))):
            return list(map(list, value))  # a curve
        return [_plain(item, lost) for item in value]
    if isinstance(value, dict):
        return {str(key): item if type(item) in UNCHANGED else _plain(item, lost) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(value)
        return None
    return None if type(value).__name__ == "NAType" else value  # pandas.NA, without importing pandas


def _write_whole(handle: int, line: bytes, path: str | os.PathLike) -> None:
    """Append `line` to the open file `handle` and sync it to disk; `path` is for the message.

    On an OSError the file is truncated to its former size and the error raised again.
    """
    size = os.fstat(handle).st_size
    try:
        written = os.write(handle, line)
        while written < len(line):  # the disk is nearly full; the next call says so
            written += os.write(handle, line[written:])
        os.fsync(handle)
    except OSError as error:
        os.ftruncate(handle, size)
        raise OSError(error.errno, f"{error.strerror}, the row is lost", str(path)) from None


def _closing(handle: int) -> bytes:
    """Return the bytes to write before a new line: b"", or the end of a line that a killed writer left open.

    An incomplete last line is ended with the mark `<torn>`, a complete one with a newline.
    """
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return b""
    return b"\n" if _is_whole(os.pread(handle, size, 0).rpartition(b"\n")[2]) else _TORN + b"\n"


def _is_whole(line: bytes) -> bool:
    """Return whether a line is a complete JSON object."""
    try:
        return isinstance(parsed(line), dict)
    except ValueError:
        return False


# The tables of results; the columns of each are described in a file of the folder `columns`.

TRIALS = Table(
    "trials",
    "trials.jsonl",
    3,
    {setting.column or setting.name: f"{setting.kind}: {setting.meaning}" for setting in settings.SETTINGS},
)
