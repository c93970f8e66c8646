"""Folders of part files, as Spark, Hive and loops write them: read as one file of all parts.

Parts are of one kind and come in the natural order of their names, part-2 before part-10. Names that begin with a dot
or an underscore (`_SUCCESS`) and empty files are passed over; files about the data (README, LICENSE, checksums) too,
with a note. Text is joined, and a header that each part has is kept
once; columns of Parquet and Feather files are joined by their names; matrices are stacked with their labels.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import format_count
from workbench.data.dataset.record import Dataset, RowBlocks
from workbench.data.dataset.targets import labels_as_named
from workbench.data.errors import DataError, MissingLabelsError, reader_option_advice
from workbench.data.files.labels import read_label_file
from workbench.data.files.opened import open_text
from workbench.data.files.reading import reading
from workbench.data.files.types import ABOUT_DATA, JSON_ARRAY, ONE_KIND, OWN_PARQUET, Part, part_paths, parts_of
from workbench.data.labels import NONE, Wanted, format_names, read_labels

PAIRS = ("ratings", "graph")
"""Data sets of pairs, whose text may begin with a line of names."""
COMMENTS = (b"#", b"%")
Head = Callable[..., tuple[int, bool]] | None
"""Tells how many lines of a table, read with options, are above its rows, and whether the last of them is a header."""
OF_COLUMNS = ("a Parquet file", OWN_PARQUET, "an Arrow file (Feather)")
WHAT = "a folder of part files"
_LETTER = re.compile(rb"[A-Za-z]")


def is_folder_of_parts(path: Any) -> bool:
    """Return whether a path is a folder of files, without folders in it but hidden ones."""
    return isinstance(path, str | os.PathLike) and Path(path).is_dir() and bool(part_paths(path))


def read_parts(
    make: Callable[..., Any], name: str, head: Head, path: str | os.PathLike, given: Mapping[str, Any]
) -> Any:
    """Return the data set of all parts in a folder that `make` reads, with `given` its other parameters.

    `name` and `head` are those of its source. Raises DataError for parts of several kinds, and as `make` does.
    """
    with reading(path, WHAT):
        parts = parts_of(path)
        if not _is_joined(parts):
            made, copy = _stack(make, path, parts, dict(given)), Path(path)
        else:
            with _joined(path, parts, name, head, given) as (copy, options):
                made = make(copy, **options)
        notes = [*_passed_over(path), *(note.replace(str(copy), str(path)) for note in made.facts.get("guesses", ()))]
        facts = {**made.facts, **({"guesses": notes} if notes else {})}
        return dataclasses.replace(made, source=_source_of(path, parts), facts=facts)


def read_parts_in_blocks(
    blocks: Callable[..., RowBlocks], name: str, head: Head, path: str | os.PathLike, given: Mapping[str, Any]
) -> RowBlocks | None:
    """Return the rows of all parts in a folder in blocks; the joined text is on disk until the last one is read.

    None for matrices, which `read_parts` stacks. Raises DataError as `read_parts` does.
    """
    parts = parts_of(path)
    if not _is_joined(parts):
        return None
    files = contextlib.ExitStack()
    with contextlib.ExitStack() as opened:
        copy, options = opened.enter_context(_joined(path, parts, name, head, given))
        made = blocks(copy, **options)
        files = opened.pop_all()

    def closing() -> Iterator[Any]:
        """Yield the blocks, and remove the joined text behind the last one."""
        with files:
            yield from made.blocks

    return dataclasses.replace(made, blocks=closing(), source=_source_of(path, parts))


def files_of_parts(path: str | os.PathLike) -> list[str | os.PathLike]:
    """Return the folder and its parts in order: the files whose content decides what is read."""
    return [path, *part_paths(path)]


def _passed_over(path: str | os.PathLike) -> list[str]:
    """Return the note that names the files about the data in a folder, which are not read; [] if there are none."""
    names = sorted(
        entry.name for entry in Path(path).iterdir() if ABOUT_DATA.fullmatch(entry.name) and entry.name[0] not in "._"
    )
    return [f"Not read, as about the data: {format_names(names)}."] if names else []


def _source_of(path: str | os.PathLike, parts: Sequence[Part]) -> str:
    """Return the words for where the data comes from."""
    return f"the folder {Path(path).name}, {format_count(len(parts), 'file')}"


def _is_joined(parts: Sequence[Part]) -> bool:
    """Return whether parts are joined to one file, text or columns; others are matrices, each read for itself."""
    return parts[0].is_text or parts[0].what in OF_COLUMNS


@contextlib.contextmanager
def as_one_file(
    path: Path, name: str, head: Head, given: Mapping[str, Any]
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield (file, parameters) for the data set `name` in a `with` block: of a folder of part files a joined copy."""
    if not is_folder_of_parts(path) or not _is_joined(parts := parts_of(path)):
        yield path, given
        return
    with _joined(path, parts, name, head, given) as joined:
        yield joined


@contextlib.contextmanager
def _joined(
    path: str | os.PathLike, parts: Sequence[Part], name: str, head: Head, given: Mapping[str, Any]
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (file of all parts, the parameters with which it is read) in a `with` block, and remove the file.

    The only part is not copied. A DataError of the block names part and line in place of the copy.
    """
    options = dict(given)
    if len(parts) == 1:
        yield parts[0].path, options
        return
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        copy, encoding = Path(folder) / Path(path).name, options.get("encoding") or "utf-8"
        skipped = [0] * len(parts)
        if parts[0].what in OF_COLUMNS:
            _join_columns(parts, copy)
        else:
            if head is not None and "JSON" not in parts[0].what:
                skipped = _heads_of_table(
                    parts, encoding, functools.partial(head, options=options), options.get("header")
                )
            elif name in PAIRS:
                skipped = _heads_of_pairs(parts, encoding)
            _join_text(parts, copy, encoding, skipped)
            options |= {"encoding": "utf-8"} if "encoding" in options else {}
        try:
            yield copy, options
        except DataError as error:
            place = functools.partial(_place, parts, encoding, skipped)
            text = re.sub(rf"{re.escape(str(copy))}:(\d+)", lambda found: place(int(found[1])), str(error))
            raise type(error)(text.replace(str(copy), str(path))) from None


def _join_text(parts: Sequence[Part], copy: Path, encoding: str, skipped: Sequence[int]) -> None:
    """Write the lines of all parts, without the first `skipped`, to `copy` as UTF-8; arrays of JSON become lines."""
    with copy.open("w+b") as out:
        for part, count in zip(parts, skipped, strict=True):
            with open_text(part.path, encoding) as file:
                if part.what == JSON_ARRAY:
                    out.writelines(json.dumps(each).encode() + b"\n" for each in json.loads(file.read()))
                    continue
                for _ in range(count):
                    file.readline()
                shutil.copyfileobj(file, out, 1 << 20)
            if out.tell():
                out.seek(-1, os.SEEK_END)
                out.write(b"" if out.read(1) == b"\n" else b"\n")


def _place(parts: Sequence[Part], encoding: str, skipped: Sequence[int], line: int) -> str:
    """Return "part:line" for a line of the joined text, by counting the lines of the parts."""
    for part, count in zip(parts, skipped, strict=True):
        line += count
        with open_text(part.path, encoding) as file:
            lines = sum(1 for _ in file)
        if line <= lines:
            break
        line -= lines
    return f"{part.path}:{line}"


def _heads_of_pairs(parts: Sequence[Part], encoding: str) -> list[int]:
    """Return how many lines of each part of ratings or edges are left out: 0 of the first.

    These are comments, and a first line with letters that is that of the first part: a header, or a pair that comes
    again and says nothing new.
    """
    skipped: list[int] = []
    first = b""
    for part in parts:
        with open_text(part.path, encoding) as file:
            above = 0
            for line in file:
                if line.strip() and not line.startswith(COMMENTS):
                    break
                above += 1
        first = line.strip() if not skipped else first
        is_again = bool(skipped) and line.strip() == first and _LETTER.search(first) is not None
        skipped.append(above + is_again if skipped else 0)
    return skipped


def _heads_of_table(
    parts: Sequence[Part], encoding: str, head: Callable[[Path], tuple[int, bool]], said: bool | None
) -> list[int]:
    """Return how many lines of each part of a table are left out: 0 of the first, of others those above their rows.

    `said` is whether there is a header, None for a guess. Raises DataError for parts with different headers, and if all
    begin with the same line, of which it is not clear what it is.
    """
    count, has_header = head(parts[0].path)
    above, skipped = _first_lines(parts[0], encoding, count), [0]
    for part in parts[1:]:
        if above and _first_lines(part, encoding, count) == above:
            skipped.append(count)
            continue
        own_count, has_own = head(part.path) if has_header else (0, False)
        own = _first_lines(part, encoding, own_count)
        if has_own and own[-1] != above[-1]:
            raise DataError(
                f"{part.path} has the header {_shown(own[-1])}, and {parts[0].path} {_shown(above[-1])}; expected the "
                f"same in each part.\n{ONE_KIND}"
            )
        skipped.append(own_count)
    rows = {tuple(_first_lines(part, encoding, count + 1)[count:]) for part, count in zip(parts, skipped, strict=True)}
    if not has_header and said is None and len(rows) == 1 and _LETTER.search(b"".join(*rows)):
        raise DataError(
            f"Each part of {parts[0].path.parent} begins with {_shown(b''.join(*rows))}, a header or a row.\n"
            f"{reader_option_advice(header=True)} Or false."
        )
    return skipped


def _first_lines(part: Part, encoding: str, count: int) -> list[bytes]:
    """Return the first `count` lines of a part, stripped."""
    with open_text(part.path, encoding) as file:
        return [line.strip() for line in itertools.islice(file, count)]


def _shown(line: bytes) -> str:
    """Return the beginning of a line as quoted text."""
    return repr(line.decode("utf-8", "replace")[:80])


def _join_columns(parts: Sequence[Part], copy: Path) -> None:
    """Write the columns of Parquet or Feather files to `copy` as Parquet, batch by batch.

    Raises DataError if the parts have other columns, or types that no type includes.
    """
    import pyarrow as pa
    import pyarrow.dataset as of_arrow
    from pyarrow import parquet

    kind = "feather" if parts[0].what == OF_COLUMNS[-1] else "parquet"
    schemas = [of_arrow.dataset(part.path, format=kind).schema for part in parts]
    for part, schema in zip(parts, schemas, strict=True):
        if set(schema.names) != set(schemas[0].names):
            odd = sorted(set(schema.names) ^ set(schemas[0].names))
            raise DataError(
                f"{part.path} has other columns than {parts[0].path}: {', '.join(odd)[:200]}; expected the same."
            )
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        with parquet.ParquetWriter(copy, schema) as writer:
            for batch in of_arrow.dataset([str(part.path) for part in parts], schema=schema, format=kind).to_batches():
                writer.write_batch(batch)
    except pa.ArrowException as error:
        raise DataError(f"The columns of {parts[0].path.parent} differ between its parts: {error}") from None


def _stack(
    make: Callable[..., Dataset], path: str | os.PathLike, parts: Sequence[Part], given: dict[str, Any]
) -> Dataset:
    """Return the matrices that `make` reads from the parts, stacked, with their labels or those in the file `labels`.

    Raises DataError if their widths or the forms of their labels differ.
    """
    labels, kind = given.pop("labels", None), given.pop("kind", None)
    wanted = Wanted(kind, *(given.pop(name, None) for name in ("positive", "classes", "unseen")))
    made = [_read_part(make, path, part, given | {"kind": NONE if labels is not None else kind}) for part in parts]
    for part, each in zip(parts, made, strict=True):
        if each.features != made[0].features:
            raise DataError(
                f"{part.path} has {each.features} columns and {parts[0].path} {made[0].features}; expected the same."
            )
    if made[0].graph is not None:
        raise DataError(f"{path} is a folder, and the edges of a graph are one matrix; give its file.")
    rows = np.cumsum([0, *(each.rows for each in made)])
    if labels is not None:
        y, place = read_label_file(labels)
    else:
        stored = [labels_as_named(each) for each in made]
        if len({each.shape[1:] for each in stored}) > 1:
            raise DataError(f"Parts of {path} have labels of different shapes; expected the same in each.")
        y, place = np.concatenate(stored), functools.partial(_row_of, parts, rows)
    if len(y) != rows[-1]:
        raise DataError(
            f"{labels} has {format_count(len(y), 'label')} for {format_count(int(rows[-1]), 'row')} of {path}; "
            "there must be one for each row."
        )
    meaning, y = read_labels(y, wanted, place)
    facts = {**made[0].facts, "duplicate_entries": sum(each.facts.get("duplicate_entries", 0) for each in made)}
    x = scipy.sparse.vstack([each.x for each in made], format="csr")
    groups = [each.groups for each in made if each.groups is not None]
    grouped = np.concatenate(groups) if len(groups) == len(made) else None
    return Dataset(made[0].name, x, y, meaning, _source_of(path, parts), made[0].licence, grouped, facts)


def _read_part(make: Callable[..., Dataset], path: str | os.PathLike, part: Part, given: dict[str, Any]) -> Dataset:
    """Return the data set of a part; MissingLabelsError names the folder, as labels are given for all of it."""
    try:
        return make(part.path, **given)
    except MissingLabelsError as error:
        raise MissingLabelsError(str(error).replace(str(part.path), str(path))) from None


def _row_of(parts: Sequence[Part], rows: np.ndarray, row: int) -> str:
    """Return part and row of a row of all parts; `rows` has the rows before each part."""
    number = int(np.searchsorted(rows, row, "right")) - 1
    return f"{parts[number].path}, row {row - int(rows[number])}"
