"""Text files in the svmlight (LIBSVM) form: a line a row, `label index:value index:value ...`, packed or not."""

import dataclasses
import itertools
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from kernels.registry import format_count
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, Stream, StreamedBlock, canonical
from workbench.data.errors import AS_WHOLE, DataError
from workbench.data.files.labels import lacks_svmlight_label, read_unlabelled, require_labels, rewrite_lines
from workbench.data.files.lent_lines import LentText, is_clean, parse_lent
from workbench.data.files.opened import compression_of, line_blocks, map_blocks, open_text, place_in, refuse_endless
from workbench.data.files.reading import blocks_of_file, check_features, dataset_of, reading
from workbench.data.files.types import BELOW_COUNTS, LIBFFM, WORDS_AS_LABELS, file_type_hint, looks_like, refuse_binary
from workbench.data.labels import AS_NUMBERS, GUESSED, NONE, Wanted, number_named, read_labels
from workbench.data.text import svmlight
from workbench.formats.compressed import assemble

WITHOUT_FIELDS = (
    "Fields of libffm text are left out: the features are its columns, which a model that is not field-aware takes."
)

VARIANTS = (LIBFFM, WORDS_AS_LABELS, BELOW_COUNTS)


def variant_of(path: str | os.PathLike) -> str:
    """Return which of `VARIANTS` the text looks like; "" if none, or it cannot be read."""
    try:
        refuse_endless(path)
        what = looks_like(path)
    except (OSError, ValueError):
        return ""
    return what if what in VARIANTS else ""


def _without_fields(line: bytes) -> bytes:
    """Return a libffm line "label field:column:value ..." as svmlight, values of one column summed.

    A line of another form is returned unchanged, for the reader to refuse.
    """
    label, *tokens = line.split()
    values: dict[int, float] = {}
    try:
        for token in tokens:
            _, column, value = token.split(b":")
            values[int(column)] = values.get(int(column), 0.0) + float(value)
    except ValueError:
        return line
    return (
        b" ".join([label, *(b"%d:%s" % (column, repr(values[column]).encode()) for column in sorted(values))]) + b"\n"
    )


TEXT = "svmlight text (each line: label column:value ...)"


def make(
    path: str | os.PathLike,
    features: int | None = None,
    zero_based: bool | str = "auto",
    bits: int | None = None,
    unknown: str = "refuse",
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the rows of the file, columns as numbered in it.

    `features` is the number of columns, None the highest index there is: give it when a test file must fit a training
    file. Columns beyond it are refused, or with unknown = "empty" left out, which a warning says. `bits` takes column
    numbers modulo 2**bits; entries that meet in a column are summed.
    `zero_based` says whether columns count from 0; `auto` takes what a comment above the rows says, as
    scikit-learn writes it, else they do when a 0 occurs. `kind` of labels
    is `classes`, `numbers` or `multilabel` (labels with commas between them); None guesses: up to 1,000 different whole
    numbers are classes. `positive` names the class that means yes. `classes` are all there may be, in order; a label
    that is none of them counts to the class `unseen`, or is refused. Rows with the same query (`qid:number` after the
    label) are one of the set's `groups`. Labels may be words. A first line of the
    counts of rows, columns and labels gives `features`. The fields of libffm text (`label field:index:value`) are
    left out, which `facts["guesses"]` says. Refused (`DataError`): a missing or invalid file; columns unsorted, twice
    in a row or beyond `features`, queries of some rows only, with the line; rows that all lack features.
    """
    _check(features, zero_based, bits, unknown)
    zero_based = _base(path) if zero_based == "auto" else zero_based
    if variant := variant_of(path):
        if bits is not None:
            raise DataError(f"bits is {bits}, and {path} looks like {variant}; leave bits out.")
        return _read_variant(path, variant, features, zero_based, unknown, wanted)
    if wanted.kind == NONE:
        with reading(path, TEXT):
            return read_unlabelled(
                path, lacks_svmlight_label, lambda copy: make(copy, features, zero_based, bits, unknown)
            )
    from_zero, most = bool(zero_based), _most(features, bits, unknown)
    with reading(path, TEXT):
        require_labels(path, lacks_svmlight_label)
        try:
            rows, has_several = _read(path, wanted)
            if zero_based == "auto":
                from_zero = not len(rows.columns) or int(rows.columns.min()) == 0
            x, groups = svmlight.csr_of(rows, most, from_zero, is_own=True), _groups(rows.queries, path)
            if bits is not None:
                x = _hashed(x, bits)
            elif unknown == "empty" and features is not None:
                x, left_out = _within(x, features)
                _warn_of_left_out(path, left_out)
            labels = _tuples(rows) if has_several else rows.labels
            del rows
            place, reread = place_in(path, svmlight.holds_row), _reread(from_zero, bits)
            return dataset_of("svmlight", x, labels, wanted, path, place, groups, reread=reread)
        except svmlight.InvalidLineError:
            is_multilabel = wanted.kind == "multilabel" or (not wanted.kind and svmlight.has_several_labels(path))
            _refuse_first_error(path, most, from_zero, is_multilabel)
            raise


def _read_variant(
    path: str | os.PathLike, variant: str, features: int | None, zero_based: bool | str, unknown: str, wanted: Wanted
) -> Dataset:
    """Return the data set of text that is svmlight but for its `variant`, read from a copy with the same line numbers.

    Parameters as for `make`.
    """
    words, counted = list[str](), list[int]()

    def rewrite(line: bytes) -> bytes:
        """Return a line as svmlight text; keep its label if it is a word, and the columns that a line of counts has."""
        if variant == BELOW_COUNTS:
            counts = [] if counted else line.split()
            if len(counts) != 3 or not all(map(bytes.isdigit, counts)):
                return line
            counted.append(int(counts[1]))
            return b"\n"
        if not line.strip() or line[:1] == b"#":
            return line
        if variant == LIBFFM:
            return _without_fields(line)
        word, _, rest = line.strip().partition(b" ")
        before, sign, _ = word.partition(b"#")
        if sign and number_named(before.decode()) is not None:  # a comment; a word such as c# has the sign in it
            word, rest = before, b""
        words.append(word.decode())
        return b"0 " + rest + b"\n"

    has_words = variant == WORDS_AS_LABELS and wanted.kind != NONE
    with reading(path, TEXT), rewrite_lines(path, rewrite) as copy:
        width = counted[0] if counted and features is None else features
        made = make(copy, width, zero_based, None, unknown, AS_NUMBERS if has_words else wanted)
        if variant == LIBFFM:
            made = dataclasses.replace(made, facts={**made.facts, "guesses": (WITHOUT_FIELDS,)})
        if not has_words:
            return made
        labels, y = read_labels(np.array(words), wanted, place_in(path, svmlight.holds_row))
        return dataclasses.replace(made, labels=labels, y=y)


def blocks(
    path: str | os.PathLike,
    features: int | None = None,
    zero_based: bool | str = "auto",
    bits: int | None = None,
    unknown: str = "refuse",
    wanted: Wanted = GUESSED,
) -> RowBlocks:
    """Return the rows of the file in blocks of some thousand lines, parameters as for `make`.

    With `zero_based` "auto" the file is read once before, for a column 0. Rows with several labels (`multilabel`),
    none, or words as labels, and libffm text are read whole, and all with `bits` or where columns are left out. Raises
    DataError with the line.
    """
    _check(features, zero_based, bits, unknown)
    zero_based = _base(path) if zero_based == "auto" else zero_based
    if wanted.kind in ("multilabel", NONE) or variant_of(path) or bits is not None or unknown == "empty":
        from workbench.data.stored.converting import blocks_of

        return blocks_of(make(path, features, zero_based, bits, unknown, wanted))
    with reading(path, TEXT):
        require_labels(path, lacks_svmlight_label)
    from_zero = bool(zero_based)
    if zero_based == "auto":  # a column 0 occurs, or no column at all
        least = (int(block.x.indices.min()) for block in _blocks(path, None, zero_based=True) if block.x.nnz)
        first = next(least, 0)
        from_zero = first == 0 or any(column == 0 for column in least)
    facts = {"reread": _reread(from_zero, None)}
    return blocks_of_file("svmlight", _blocks(path, features, from_zero), path, features, facts)


def _blocks(path: str | os.PathLike, features: int | None, zero_based: bool) -> Iterator[RowBlock]:
    """Yield the rows of a svmlight file in blocks with their labels and queries, parsed on several threads.

    Raises DataError, with the line, for invalid text.
    """

    def read(text: bytes) -> tuple[scipy.sparse.csr_array, svmlight.TextRows]:
        """Return the lines of a block as (CSR array, parsed rows); InvalidLineError if one is invalid."""
        rows = svmlight.read_rows(text)
        return svmlight.csr_of(rows, features, zero_based), rows

    seen = None  # whether the rows before have queries
    with reading(path, TEXT), open_text(path) as file:
        try:
            for x, rows in map_blocks(read, line_blocks(file)):
                groups = _groups(rows.queries, path)
                if seen not in (None, groups is not None):
                    svmlight.refuse_missing_query(path)
                if len(rows.labels):
                    seen = groups is not None
                    yield RowBlock(x, rows.labels, groups)
        except svmlight.InvalidLineError as error:
            if svmlight.has_several_labels(path):
                raise DataError(f"{path} has rows with several labels; say kind = 'multilabel'.") from None
            raise DataError(
                svmlight.first_error(path, features, zero_based) or f"{path} cannot be read: {error}."
            ) from None


def stream(
    path: str | os.PathLike,
    size: int,
    features: int | None = None,
    zero_based: bool | str = "auto",
    bits: int | None = None,
    unknown: str = "refuse",
) -> Stream:
    """Return the rows of the file for one pass, `size` bytes at once; parameters as for `make`.

    With `zero_based` "auto" columns are as numbered in the text, unless a comment above the rows says that they count
    from 1: whether there is a 0 is known only at the end. Rows with several labels, and the variants of the form, are
    refused.
    """
    _check(features, zero_based, bits, unknown)
    base = _base(path) if zero_based == "auto" else zero_based
    from_zero = bool(base)  # also for "auto"
    with reading(path, TEXT):
        require_labels(path, lacks_svmlight_label)
        if variant := variant_of(path):
            raise DataError(f"{path} looks like {variant}, which is not read block by block.\n{AS_WHOLE}")
        end = os.stat(path).st_size if not compression_of(path) else None
    place, facts = place_in(path, svmlight.holds_row), {"reread": _reread(from_zero, bits)}
    return Stream(lambda start: _streamed(path, size, start, features, from_zero, bits, unknown), end, facts, place)


def _streamed(
    path: str | os.PathLike,
    size: int,
    start: int,
    features: int | None,
    zero_based: bool,
    bits: int | None,
    unknown: str,
) -> Iterator[StreamedBlock]:
    """Yield the rows from byte `start` of the text on; DataError, with the line, for invalid text."""
    most = _most(features, bits, unknown)

    def parse(block: LentText) -> tuple[scipy.sparse.csr_array, np.ndarray] | Exception:
        """Return (CSR array over lent memory, labels) of the lines, or why they are invalid."""
        block.others = block.others or svmlight.LentRows()
        try:
            if not is_clean(block):
                return svmlight.InvalidLineError("it is not UTF-8")
            rows = svmlight.read_lent(block.text, block.size, block.others)
            x = svmlight.csr_of(rows, most, zero_based, is_own=True)
            return x if bits is None else canonical(_hashed(x, bits)), rows.labels
        except svmlight.InvalidLineError as error:
            return error

    with reading(path, TEXT):
        before, width, left_out = start, 0, 0
        for made, position in parse_lent(path, parse, size, start):
            if isinstance(made, Exception):
                _refuse_lines(path, before, position, most, zero_based, made)
            x, labels = made
            if unknown == "empty" and features is not None and bits is None:
                x, count = _within(x, features)
                left_out += count
            before, width = position, max(width, x.shape[1])
            yield StreamedBlock(assemble("csr", x.indptr, x.indices, x.data, (x.shape[0], width)), labels, position)
        _warn_of_left_out(path, left_out)


def _refuse_lines(
    path: str | os.PathLike, start: int, stop: int, features: int | None, zero_based: bool, error: Exception
) -> NoReturn:
    """Raise DataError for the first error in bytes `start` to `stop` of the text of a file, with the line."""
    with open_text(path) as file:
        before, at = 0, 0
        while at < start:
            part = file.read(min(start - at, 1 << 20))
            before, at = before + part.count(b"\n"), at + len(part)
        lines = file.read(stop - start).splitlines()
    if any(b"," in svmlight.content(line).split(None, 1)[0] for line in lines if svmlight.holds_row(line)):
        raise DataError(f"{path} has rows with several labels, which are not read block by block.\n{AS_WHOLE}")
    problem = svmlight.error_of_lines(path, enumerate(lines, before + 1), features, zero_based)
    raise DataError(problem or f"{path} cannot be read: {error}.")


_COMMENT_OF_BASE = re.compile(rb"(?i)#\s*column indices are (zero|one)-based")


def _base(path: str | os.PathLike) -> bool | str:
    """Return whether columns count from 0 as the comments above the rows say it; "auto" if they do not."""
    with reading(path, TEXT), open_text(path) as file:
        comments = itertools.takewhile(lambda line: line[:1] == b"#" or not line.strip(), file)
        found = next(filter(None, map(_COMMENT_OF_BASE.match, comments)), None)
        return "auto" if found is None else found[1].lower() == b"zero"


def _most(features: int | None, bits: int | None, unknown: str) -> int | None:
    """Return how many columns a line may name; None for any number: of those to be hashed, or left out afterwards."""
    return None if bits is not None or unknown == "empty" else features


def _within(x: scipy.sparse.csr_array, features: int) -> tuple[scipy.sparse.csr_array, int]:
    """Return the rows with `features` columns, and how many entries of further columns are left out."""
    if x.shape[1] <= features:
        return assemble("csr", x.indptr, x.indices, x.data, (x.shape[0], features)), 0
    known = x[:, :features]
    return known, x.nnz - known.nnz


def _warn_of_left_out(path: str | os.PathLike, count: int) -> None:
    """Warn of entries that are left out, unless there are none; the path may be that of a copy, with the same name."""
    if count:
        entries = format_count(count, "entry")
        text = f"{os.path.basename(path)} has {entries} in columns that are not known; they are left out."
        warnings.warn(text, stacklevel=2)


def _hashed(x: scipy.sparse.csr_array, bits: int) -> scipy.sparse.csr_array:
    """Return the rows with columns modulo 2**bits, neither sorted nor summed."""
    return assemble("csr", x.indptr, x.indices & (2**bits - 1), x.data, (x.shape[0], 2**bits))


def _reread(zero_based: bool, bits: int | None) -> dict[str, Any]:
    """Return the parameters by which later files are read into the same columns."""
    return {"zero_based": zero_based} | ({} if bits is None else {"bits": bits})


MOST_BITS = 30


UNKNOWN = ("refuse", "empty")


def _check(features: int | None, zero_based: bool | str, bits: int | None, unknown: str = "refuse") -> None:
    """Raise DataError for invalid values.

    `features` is None or a count of columns, `zero_based` True, False or "auto", `bits` None or 1 to `MOST_BITS`,
    `unknown` one of `UNKNOWN`.
    """
    check_features(features)
    if unknown not in UNKNOWN:
        raise DataError(f"unknown is {unknown!r}; it is one of {', '.join(UNKNOWN)}.")
    if bits is not None and (type(bits) is not int or not 1 <= bits <= MOST_BITS):
        raise DataError(f"bits is {bits!r}; columns are taken modulo 2**bits, of 1 to {MOST_BITS} bits.")
    if bits is not None and features not in (None, 2**bits):
        raise DataError(f"features is {features}, and bits={bits} gives {2**bits} columns; leave one of them out.")
    if zero_based not in (True, False, "auto"):
        raise DataError(f"zero_based is {zero_based!r}; it is True, False or 'auto'.")


def _read(path: str | os.PathLike, wanted: Wanted) -> tuple[svmlight.TextRows, bool]:
    """Return (all rows of the file, values float32, whether rows have several labels).

    That is tried if `wanted.kind` is None and some label has a comma. Raises InvalidLineError for invalid text.
    """
    if wanted.kind == "multilabel":
        return _read_file(path, several=True), True
    try:
        return _read_file(path, several=False), False
    except svmlight.InvalidLineError:
        if wanted.kind is None and svmlight.has_several_labels(path):
            return _read_file(path, several=True), True
        raise


def _read_file(path: str | os.PathLike, several: bool) -> svmlight.TextRows:
    """Return all rows of a svmlight file, values as float32, parsed on several threads.

    With `several` a row may have several labels. Raises InvalidLineError for invalid text or values beyond float32.
    """

    if not several:
        return svmlight.read_file(path)

    def read(text: bytes) -> svmlight.TextRows:
        """Return the parsed rows of a block, values as float32."""
        rows = svmlight.read_rows(text, several)
        return rows._replace(values=svmlight.narrowed(rows.values, np.float32))

    with open_text(path) as file:
        return svmlight.joined(map_blocks(read, line_blocks(file)))


def _tuples(rows: svmlight.TextRows) -> list[tuple[float, ...]]:
    """Return the sorted labels of each row as a tuple."""
    ends = np.cumsum(rows.label_counts).tolist()
    labels, starts = rows.labels.tolist(), [0, *ends]
    return [tuple(sorted(labels[start:end])) for start, end in zip(starts, ends, strict=False)]


def _groups(queries: np.ndarray, path: str | os.PathLike) -> np.ndarray | None:
    """Return the query ids of the rows, int64; None if no row has one; DataError with the line if only some have."""
    has_query = queries != svmlight.NO_QUERY
    if not has_query.any():
        return None
    if not has_query.all():
        svmlight.refuse_missing_query(path)
    return queries


def _refuse_first_error(path: str | os.PathLike, features: int | None, zero_based: bool, several: bool) -> None:
    """Raise DataError for the first invalid line, with what the file looks like if it is of another kind.

    Returns if no line is invalid.
    """
    refuse_binary(path, "svmlight text")
    if problem := svmlight.first_error(path, features, zero_based, several):
        raise DataError(f"{problem}{file_type_hint(path, 'svmlight text')}")


register(Source("svmlight", make, blocks=blocks, stream=stream))
