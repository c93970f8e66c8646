"""Tables in JSON: an object a line, or one array of objects. Each holds the values of a row by the names of columns.
One object alone holds columns, if its fields are arrays of one length, or objects whose names are the row numbers, as
pandas writes them by default; or rows, in a field `data` beside `columns`, as pandas splits them, or in the only field
that is an array of objects, or by their numbers.

Values become the texts that they are written as; a field that an object lacks, or that is null, is missing. Values of
an object within a row are columns as `user.age`. An array of texts, whole numbers or truth is several values of a row;
columns of other arrays are left out.
"""

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from workbench.data.errors import DataError
from workbench.data.files.opened import open_text, place_in, read_head
from workbench.data.files.reading import reading
from workbench.data.tables.sparse_fields import SparseTable, is_sparse
from workbench.data.tables.texts import BETWEEN, LISTS, NESTED, Texts, arrow, texts_of

HEAD = 1 << 12
ROWS_AT_ONCE = 1 << 15
WHAT = "JSON (an object a line, or an array of objects)"
OBJECTS = "Type jq -c 'if type == \"array\" then .[] else . end | objects' FILE > NEW, and give NEW."
ONE_A_LINE = "Type jq -c . FILE > NEW, or jq -c '.[]' FILE > NEW for an array in it, and give NEW."


def starts_as_json(path: str | os.PathLike) -> bool:
    """Return whether the file begins as a JSON object ({" or {}) or an array of objects ([{), blanks skipped."""
    first = read_head(path, HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    return first[:1] in (b"{", b"[") and (first[1:].lstrip()[:1] in ((b'"', b"}") if first[:1] == b"{" else (b"{",)))


@final
class JsonTable:
    """A file of JSON objects, in UTF-8, packed or not; `names` are those of the fields of all rows, as they come."""

    def __init__(self, path: str | os.PathLike, optional: Sequence[str] = ()) -> None:
        """Read the file once for its column names, in order of first appearance, and the kinds of columns with arrays.

        Names in `optional` that do not occur come last.
        Raises DataError with the line for invalid JSON, or if there are no fields.
        """
        self.path = path
        self._is_array = read_head(path, HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
        self._has_columns = False
        names: dict[str, None] = {}
        kinds: dict[str, str] = {}
        self._count = self._fields = 0
        for row in self.rows():
            names.update(dict.fromkeys(row))
            self._count, self._fields = self._count + 1, self._fields + len(row)
            for name, value in row.items():
                if isinstance(value, list) and kinds.get(name) != NESTED:
                    kinds[name] = LISTS if all(isinstance(part, str | int | None) for part in value) else NESTED
        self.names = tuple(names | dict.fromkeys(optional))
        self.kinds: Mapping[str, str] = kinds
        if not names:
            raise DataError(f"{path} holds no fields; a table has a column of values at least.")

    def by_fields(self) -> "SparseTable | None":
        """Return the table in memory by its fields if its rows have few of the names each, else None. Reads it again.

        Raises DataError with the line for invalid JSON.
        """
        if not is_sparse(self._count, len(self.names), self._fields):
            return None
        with reading(self.path, WHAT):
            return SparseTable.of_rows(self, self._count, _text)

    def blocks(self, names: Sequence[str]) -> Iterator[dict[str, Texts]]:
        """Yield the rows in blocks, in file order: {name: Texts} of the columns `names`; missing and null are missing.

        Reads the file again. Raises DataError with the line for invalid JSON.
        """
        pa = arrow()
        with reading(self.path, WHAT):
            every = self.rows()
            while names and (rows := list(itertools.islice(every, ROWS_AT_ONCE))):
                yield {name: texts_of(pa.array([_text(row.get(name)) for row in rows], pa.string())) for name in names}

    def place(self, row: int) -> str:
        """Return "path:line" of a row (index from 0); "path, row N" if the file is one array or object."""
        return f"{self.path}, row {row}" if self._is_array or self._has_columns else place_in(self.path)(row)

    def layout(self) -> dict[str, Any]:
        """Return an empty dict: JSON has no layout parameters."""
        return {}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a flat dict; objects within it become keys such as "user.age".

        Raises DataError with the line. Sets `_has_columns` if the file turns out to be one object that holds all rows.
        """
        found = self._rows_of_array() if self._is_array else self._rows_of_lines()
        first = list(itertools.islice(found, 2))
        if len(first) == 1 and isinstance(first[0][1], dict) and not self._is_array:
            first = list(self._rows_of_object(*first[0]))
        for place, row in itertools.chain(first, found):
            if not isinstance(row, dict):
                raise DataError(f'{place}: this is no object, such as {{"age": 31, "y": 1}}.\n{OBJECTS}')
            yield dict(_flat(row)) if any(isinstance(value, dict) for value in row.values()) else row

    def _rows_of_object(self, place: str, whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield (place, row dict) for each row of a file that is one object; (place, object) alone if it is one row.

        The rows are found in pandas' split or indexed form, in the only field that is an array of objects, or in arrays
        of one length as columns. Sets `_has_columns` then. Raises DataError if several fields hold rows.
        """
        lists = {name: value for name, value in whole.items() if isinstance(value, list)}
        of_rows = [name for name, rows in lists.items() if rows and all(isinstance(row, dict) for row in rows)]
        if len(of_rows) > 1:
            several = ", ".join(map(repr, of_rows))
            advice = f"Type jq -c '.[{json.dumps(of_rows[0])}][]' FILE > NEW, and give NEW."
            raise DataError(f"{place}: there are rows in several fields, {several}.\n{advice}")
        rows: Iterable[dict[str, Any]] | None = None
        if _is_split(whole):
            lists = whole = _transpose_split(place, whole)
        else:
            rows = _rows_by_index(whole)
            rows = lists[of_rows[0]] if rows is None and of_rows else rows
        if rows is None:
            if not lists or len(lists) < len(whole) or len({*map(len, lists.values())}) > 1:
                yield place, whole
                return
            rows = (dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True))
        self._has_columns = True
        yield from ((f"{self.path}, row {number}", row) for number, row in enumerate(rows))

    def _rows_of_array(self) -> Iterator[tuple[str, Any]]:
        """Yield (place, entry) of the JSON array that the file is; all of it is in memory.

        Raises DataError if invalid.
        """
        with open_text(self.path) as file:
            try:
                rows = json.loads(file.read())
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.path} cannot be read as {WHAT}: {error}.") from None
        yield from ((f"{self.path}, row {number}", row) for number, row in enumerate(rows))

    def _rows_of_lines(self) -> Iterator[tuple[str, Any]]:
        """Yield (place, JSON value) of each line that is not blank, or of a file that is one object on many lines.

        Raises DataError with the line for a line that is not JSON.
        """
        is_first = True
        with open_text(self.path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield f"{self.path}:{number}", json.loads(line)
                except (ValueError, RecursionError) as error:
                    if is_first and (whole := self._whole()) is not None:
                        yield str(self.path), whole
                        return
                    raise DataError(f"{self.path}:{number}: no JSON in one line: {error}.\n{ONE_A_LINE}") from None
                is_first = False

    def _whole(self) -> dict[str, Any] | None:
        """Return the file parsed as one JSON object, all of it in memory; None if it is not one."""
        with open_text(self.path) as file:
            try:
                whole = json.loads(file.read())
            except (ValueError, RecursionError):
                return None
        return whole if isinstance(whole, dict) else None


def _is_split(whole: dict[str, Any]) -> bool:
    """Return whether an object is a table in pandas' split form: names in "columns", rows as arrays in "data"."""
    names, rows = whole.get("columns"), whole.get("data")
    return isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows)


def _rows_by_index(whole: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object of objects of one set of names, whose other names are whole numbers, else None.

    pandas writes the index of a frame so, within each column or, with `orient="index"`, around each row.
    """
    names = [tuple(entry) if isinstance(entry, dict) else () for entry in whole.values()]
    if not names or not names[0] or any(each != names[0] for each in names):
        return None
    if any(isinstance(value, dict) for entry in whole.values() for value in entry.values()):
        return None
    if all(map(str.isdecimal, whole)):
        return list(whole.values())
    if all(map(str.isdecimal, names[0])):
        return [{column: values[index] for column, values in whole.items()} for index in names[0]]
    return None


def _transpose_split(place: str, whole: dict[str, Any]) -> dict[str, list]:
    """Return {column name: list of values} of a table in pandas' split form.

    Raises DataError, beginning with `place`, for a row of another length than the names.
    """
    names, rows = [str(name) for name in whole["columns"]], whole["data"]
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(f"{place}, row {number}: {len(row)} values for {len(names)} columns.")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _flat(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of an object, nested objects flattened: {"user": {"age": 3}} gives ("user.age", 3).

    `before` is put in front of each name.
    """
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _text(value: Any) -> str | None:
    """Return a JSON value as text, whole floats without a point, arrays with `BETWEEN` in between; None for null.

    >>> _text(True), _text(2.0), _text(7), _text("a"), _text(None), _text(["a", None, 3])
    ('true', '2', '7', 'a', None, 'a|3')
    """
    if isinstance(value, list):
        return BETWEEN.join(filter(None, map(_text, value)))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value)) if abs(value) < 2**53 else repr(value)
    return value if value is None or isinstance(value, str) else str(value)
