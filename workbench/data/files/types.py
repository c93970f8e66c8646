"""Kinds of files and folders, inferred from their first bytes, never from their names.

Compressed text is unpacked. A guess can be overridden by naming the data set.
"""

import codecs
import csv
import os
import re
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.data.errors import DataError
from workbench.data.files.nearest import nearest_file
from workbench.data.files.opened import read_head, refuse_endless
from workbench.formats.files import check_array
from workbench.option_text import typed

HEAD = 1 << 16
"""Bytes that are looked at."""
LINES = 20
"""Lines whose fields are counted."""
SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
"""Separators of columns, and what they are called."""
RARE_SIGNS = {"^": "caret", "~": "tilde", "\x01": "control-a", "\x1f": "control-underscore", ":": "colon", "!": "bang"}
"""Separators that are taken where nothing else separates, every row has as many, and columns hold numbers."""
MOST_RATING_COLUMNS = 5
"""Columns of a file of ratings, at most: a table of more columns has other features beside user and item."""
SAVE = "Save its matrix by scipy.sparse.save_npz"


LIBFFM = "libffm lines (field:column:value), as text"
BELOW_COUNTS = "svmlight rows below a line of counts (rows, columns, labels), as text"
WORDS_AS_LABELS = "svmlight rows whose labels are words, as text"
DOCWORD = "a bag of words as UCI has it (document word count below three sizes), as text"
OWN_PARQUET = "a Parquet file that was exported here"


class Kind(NamedTuple):
    """A kind of file in words, the name of the data set that reads it ("" for none), its options, and what to do."""

    what: str
    reader: str
    advice: str
    options: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def _read_by(what: str, reader: str, like: str = "", **options: Any) -> Kind:
    """Return the `Kind` "`what`" of a file that the data source `reader` reads, with the options it needs.

    `like` replaces `what` at the beginning of the advice.
    """
    subject = like or what[:1].upper() + what[1:]
    return Kind(what, reader, f"{subject} is read by the data set {reader}", options)


def _as_csv(reader: str, package: str = "") -> str:
    """Return the shell command that converts a file to CSV with the pandas function `reader`, as advice.

    `package` is installed first if given.
    """
    install = f"pip install {package} && " if package else ""
    line = f"import pandas; pandas.{reader}('FILE').to_csv('NEW.csv', index=False)"
    return f'Save it as CSV, as {install}python -c "{line}" does'


EMPTY, JSON_ARRAY = "an empty file", "a JSON array, as text"
FROM_HIVE = (
    'Join them, as python -c "import pyarrow.dataset as d, pyarrow.parquet as p; '
    "p.write_table(d.dataset('FOLDER', partitioning='hive').to_table(), 'NEW.parquet')\" does"
)
STATA = (b"<stata_dta>", *(bytes([version, order, 1]) for version in (113, 114, 115) for order in (1, 2)))
"""First bytes of files by Stata, of its newer versions and of those before."""
SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"MATLAB 5.0", _read_by("a MATLAB file", "matlab")),
    (b"MATLAB 7.3", _read_by("a MATLAB file", "matlab")),
    (b"PAR1", _read_by("a Parquet file", "table")),
    (b"ARROW1", _read_by("an Arrow file (Feather)", "table")),
    *((mark, Kind("a Stata file", "", _as_csv("read_stata"))) for mark in STATA),
    (b"ORC", Kind("an ORC file", "", _as_csv("read_orc"))),
    (b"\x80", Kind("a pickle", "", f"Pickles can run code and are not read. {SAVE}, or a frame by to_csv")),
    (b"%%MatrixMarket", _read_by("a Matrix Market file", "matrix_market")),
)
"""(first bytes, what starts with them)."""

SAID_SEPARATOR = re.compile(r'"?sep=(.)"?')
"""First line that spreadsheets write to say what separates columns."""
_SVMLIGHT = re.compile(rb"[+-]?[0-9.]([0-9.,eE]|(?<=[eE,])[+-])*(\s+qid:[0-9]+)?(\s+[0-9]+:[^\s:,]+)+\s*(#.*)?")
_ARFF = re.compile(rb"(?i)@(relation|attribute)\s")
_PIPES = re.compile(rb"[^|]*\|\S*\s")
_COUNTS = re.compile(rb"[0-9]+ [0-9]+ [0-9]+")
_WHOLE = re.compile(rb"[0-9]+([ \t]+[0-9]+)*")
_RATING = re.compile(rb"[0-9]+([ \t]+|::|\|)[0-9]+\1[0-9]+(\.[0-9]+)?(\1[0-9]+)?")
_RATING_AT = re.compile(rb"([A-Za-z_-]*[0-9]\w*)([,;|\t])([A-Za-z_-]*[0-9]\w*)\2[0-9]{1,3}(\.[0-9]{1,2})?\2[0-9]{9,13}")
"""User, item, a rating of few digits, and a time in seconds or milliseconds."""
_LISTS = re.compile(rb"\S+:([ \t]+[0-9]+)+")
RATING_HEADINGS = {
    "user": (*("user", "u", "reviewer", "customer", "reader", "viewer", "listener", "visitor", "member", "player"),),
    "item": (
        *("item", "i", "movie", "film", "product", "business", "isbn", "book", "artist", "song", "track", "game"),
        *("anime", "recipe", "asin", "venue", "poi", "title"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "overall", "rate", "bookrating", "playcount", "plays", "weight"),
}
"""What columns are called in a header, without signs and a last "id", "name" or "title"."""
_SEPARATORS = re.compile(r"::|[,;\t| ]")
_EDGES_HEAD = re.compile(
    rb"(?i)\W*(source|src|from|node_?1|from_?node(_?id)?)\W*[,;\t ]\W*"
    rb"(target|dst|to|node_?2|to_?node(_?id)?)\W*([,;\t ].*)?"
)
_WORDS_AS_LABELS = re.compile(rb"(?!(?i:[+-]?(?:nan|inf|infinity)\s))[^\s:|,]+(\s+[0-9]+:[^\s:]+)+\s*(#.*)?")
_COUNTED = re.compile(rb"[0-9]+(\s+[0-9]+:[0-9]+)+|0")
_UNLABELLED = re.compile(rb"([0-9]+:[^\s:]+\s*)+")
_FIELDS = re.compile(rb"\S+(\s+[0-9]+:[0-9]+:[^\s:]+)+")
_NUMBER = re.compile(rb"(?i)[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|na|\?")
_PAGE = re.compile(rb"(?i)<(!doctype|html|head|body|table|\?xml)")
_JSON = re.compile(rb"[\[{]\s*([\[{\"]|$)")
_LABELLED = re.compile(rb"[^\t]{1,60}\t[^\t]+ [^\t]+")


def looks_like(path: str | os.PathLike) -> str:
    """Return the kind of the file in words, from its first bytes; kinds of text end in "text".

    Raises OSError if it cannot be opened, DataError if it is a damaged archive.
    """
    return _kind_of(path).what


def other_file_error(path: str | os.PathLike, what: str, but: str = "it") -> DataError:
    """Return the error of a file that was read as `what` and is of another kind: what it looks like, what to do.

    `but` begins the sentence "it looks like ..." of its message.
    """
    kind = _kind_of(path)
    return DataError(f"{path} cannot be read as {what}: {but} looks like {kind.what}. {kind.advice}.")


def guess(path: str | os.PathLike) -> tuple[str, dict[str, Any], str]:
    """Return (data set that reads the file or folder, its options, the reason), from the first 64 KiB.

    Raises DataError, with what to do, if it is missing or no data set reads it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"1 3:0.5 7:2\\n") and file.flush()
    ...     guess(file.name)
    ('svmlight', {}, 'it looks like svmlight text')
    """
    refuse_endless(path)
    try:
        kind = _kind_of(path)
    except FileNotFoundError:
        if re.match(r"[A-Za-z][\w+]+:/", str(path)):
            raise DataError(
                f"{path} is an address, and data is read from files; download it, and give the file."
            ) from None
        advice = "give the path of a file or folder of data"
        advice = "standard input is not read; save it as a file, and give that" if str(path) == "-" else advice
        raise DataError(f"There is no file {path}; {advice}.{nearest_file(path)}") from None
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from None
    if not kind.reader:
        raise DataError(f"{path} looks like {kind.what}, which no data set reads. {kind.advice}.")
    return kind.reader, dict(kind.options), f"it looks like {kind.what}"


def rating_columns(names: Sequence[str], needs_rating: bool = True) -> tuple[str, ...] | None:
    """Return the meaning of rating columns by their names: "user", "item", "rating", "otherN" for the rest.

    Returns None if these are not all found, "rating" only if `needs_rating`, or there are more than
    `MOST_RATING_COLUMNS`.

    >>> rating_columns(["timestamp", "UserID", "Movie Id", "Rating"])
    ('other0', 'user', 'item', 'rating')
    """
    plain = [re.sub(r"[\W_]", "", name).casefold() for name in names]
    meant = {
        name: what
        for what, known in RATING_HEADINGS.items()
        for name in plain
        if re.sub("(?<=.)(id|name|title)$", "", name) in known
    }
    columns = tuple(meant.get(name, f"other{place}") for place, name in enumerate(plain))
    is_whole = {"user", "item", *(("rating",) if needs_rating else ())} <= set(columns) and len(set(columns)) == len(
        columns
    )
    return columns if is_whole and len(columns) <= MOST_RATING_COLUMNS else None


def _names(row: bytes) -> list[str]:
    """Return the words of a row split at separators (comma, semicolon, tab, pipe, blank, ::)."""
    return _SEPARATORS.split(row.decode("utf-8", "replace"))


def file_type_hint(path: str | os.PathLike, what: str) -> str:
    """Return " It looks like ...", with advice, to end a message; "" if it looks like `what` or plain text."""
    kind = _kind_of(path)
    return "" if kind.what in (what, "other text") else f" It looks like {kind.what}. {kind.advice}."


def refuse_binary(path: str | os.PathLike, what: str) -> None:
    """Raise DataError if the file is not text, stating what it looks like; `what` is the format it was read as."""
    if not looks_like(path).endswith("text") and not Path(path).is_dir():
        raise other_file_error(path, what)


def starts_with(path: str | os.PathLike, signature: bytes) -> bool:
    """Return whether the file begins with the bytes `signature`; OSError if it cannot be opened."""
    with open(path, "rb") as file:
        return file.read(len(signature)) == signature


def _kind_of(path: str | os.PathLike) -> Kind:
    """Return the kind of a file from its first 64 KiB, decompressed, or of a folder from its entries."""
    if Path(path).is_dir():
        return _kind_of_folder(Path(path))
    first = read_head(path, HEAD)
    is_cut = len(first) == HEAD
    if first.startswith(b"PK\x03\x04"):
        return _kind_of_archive(path)
    if first.startswith(b"\x89HDF"):
        return _kind_of_hdf5(first)
    if first.startswith(b"\x93NUMPY"):
        return _kind_of_array(path)
    first = first.removeprefix(codecs.BOM_UTF8)
    for signature, kind in SIGNATURES:
        if first.startswith(signature):
            if signature == b"PAR1":  # which has its metadata at the end
                with open(path, "rb") as file:
                    file.seek(-min(HEAD, os.fstat(file.fileno()).st_size), os.SEEK_END)
                    return _read_by(OWN_PARQUET, "parquet") if OWN_KEY in file.read() else kind
            return kind
    if is_matlab_4(first):
        return _read_by("a MATLAB file of version 4", "matlab")
    if not first:
        return Kind(EMPTY, "", "Give one that holds something")
    if first[257:262] == b"ustar":
        return Kind("a tar archive", "", "Unpack it, as tar -xf FILE does, and give a file of it")
    if b"\0" in first:
        return Kind("a binary file of another kind", "", SAVE)
    return _kind_of_text(first, is_cut)


OWN_KEY = b"sparse-workbench"
"""Key of the metadata of Parquet files that `data.export` writes."""


def is_matlab_4(first: bytes) -> bool:
    """Return whether the first bytes of a file are the header of a variable as MATLAB 4 writes it."""
    for order, machine in (("<", 0), (">", 1)):
        if len(first) < 21:
            return False
        kind, rows, columns, has_imaginary, length = struct.unpack(f"{order}5i", first[:20])
        name, digits = first[20 : 20 + length], (kind // 1000, kind // 100 % 10, kind // 10 % 10, kind % 10)
        is_header = digits[:2] == (machine, 0) and digits[2] < 6 and digits[3] < 3 and has_imaginary in (0, 1)
        if kind >= 0 and is_header and min(rows, columns) >= 0 and re.fullmatch(rb"[A-Za-z]\w{0,62}\0", name):
            return True
    return False


def _kind_of_hdf5(first: bytes) -> Kind:
    """Return the kind of an HDF5 file from its first bytes: anndata, binsparse, or another one, which is not read."""
    for mark in ("anndata", "binsparse"):
        if mark.encode() in first:
            return _read_by(f"an HDF5 file of {mark}", mark)
    return Kind("an HDF5 file", "", SAVE)


def _kind_of_array(path: str | os.PathLike) -> Kind:
    """Return the kind of a .npy file from its header: a matrix, or an array that can only be labels."""
    try:
        with open(path, "rb") as file:
            header = check_array(file)
    except (ValueError, EOFError) as error:
        if "Python objects" in str(error):
            return Kind(
                "an array of Python objects (.npy)", "", "Save it again as numbers: numpy.save(file, x.astype(float))"
            )
        return Kind("a damaged array (.npy)", "", "Save it again by numpy.save")
    if len(header.shape) == 2 and header.shape[1] > 1 and header.dtype.kind in "biuf":
        return _read_by("a matrix saved by numpy.save", "npz")
    advice = f"{SAVE.replace('its', 'a')}, and give this file as its labels: {typed(labels='FILE')}"
    return Kind("an array saved by numpy.save, no matrix", "", advice)


class Part(NamedTuple):
    """A file of a folder of part files, and its kind."""

    path: Path
    kind: Kind

    @property
    def what(self) -> str:
        """The kind in words."""
        return self.kind.what

    @property
    def is_text(self) -> bool:
        """Whether the file is text whose rows may stand in any file; an archive may hold an array of that name."""
        return self.what.endswith("text") or self.what.startswith("text,") or "-separated text" in self.what


ABOUT_DATA = re.compile(
    r"(?i)(read_?me|licen[cs]e|copying|notice|authors|changelog|success|(md5|sha1|sha256|sha512)sums?)"
    r"([._-].*)?|.*\.(md|crc|md5|sha1|sha256|sha512)"
)
"""Names of files in a folder of data that are about it."""


def part_paths(path: str | os.PathLike) -> list[Path]:
    """Return the files of a folder in the natural order of their names, without empty and hidden ones (. and _).

    Files about the data are left out. Returns [] if the folder holds another folder, or stored rows. Raises DataError
    for a link to no file.
    """
    entries = [entry for entry in Path(path).iterdir() if not entry.name.startswith((".", "_"))]
    entries = [entry for entry in entries if not ABOUT_DATA.fullmatch(entry.name)]
    if broken := next((entry for entry in entries if not entry.exists()), None):
        raise DataError(f"{broken} is a link to a file that does not exist; expected a file of data.\nDelete the link.")
    if any(entry.is_dir() for entry in entries) or _holds_stored_rows(Path(path)):
        return []
    return sorted((entry for entry in entries if entry.stat().st_size), key=_natural)


def _holds_stored_rows(path: Path) -> bool:
    """Return whether a folder was written by `data.convert`, by this version or the former one."""
    return any((path / name).is_file() for name in ("indptr.npy", "manifest.json"))


def _natural(path: Path) -> list[tuple[bool, int | str]]:
    """Return a file's name as a key that sorts numbers in it by their value."""
    texts = re.split("([0-9]+)", path.name)
    return [(text.isdigit(), int(text) if text.isdigit() else text) for text in texts if text]


def parts_of(path: str | os.PathLike) -> list[Part]:
    """Return the part files of a folder with their kinds, those left out that are empty when unpacked.

    Raises DataError if there are none, some are of other kinds than the first, or one is there packed and unpacked.
    """
    paths = part_paths(path)
    unpacked = {each.with_suffix(""): each for each in paths if each.suffix.casefold() in PACKED}
    if twice := next((each for each in paths if each in unpacked), None):
        raise DataError(
            f"{path} holds {twice.name} and {unpacked[twice].name}, the same rows twice; expected each part once.\n"
            "Delete one of them, or give one file."
        )
    parts = [Part(each, _kind_of(each)) for each in paths]
    parts = [part for part in parts if part.what != EMPTY]
    if not parts:
        raise DataError(f"{path} holds no data: its files are empty or hidden.")
    is_exact = any("JSON" in part.what or "ARFF" in part.what or not part.is_text for part in parts)  # not joined
    if other := next((part for part in parts if part.what != parts[0].what), None) if is_exact else None:
        raise DataError(f"{path} {_several(parts[0], other)}.\n{ONE_KIND}")
    return parts


def _several(one: Part, other: Part) -> str:
    """Return the words for two files of different kinds in a folder."""
    return f"holds files of several kinds: {one.path.name} is {one.what}, {other.path.name} is {other.what}"


FOLDERS_OF_OURS = (
    ("trials.jsonl", "a run folder, of records", "report FOLDER"),
    ("model.json", "a saved model", "apply FOLDER FILE"),
)
"""(file in it, what a folder is that the program writes, what to type for it)."""
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Endings of the names of packed files."""
ONE_KIND = "Give one file, or a folder of parts of one kind."
NOT_JOINED = ("an ARFF file, as text", BELOW_COUNTS, DOCWORD)
"""Kinds of text whose parts are not one text when they are joined."""


def _kind_of_folder(path: Path) -> Kind:
    """Return the kind of a folder: stored rows, documents by class, part files, or unreadable, with what to do."""
    if _holds_stored_rows(path):
        return _read_by("a folder of stored rows", "sparse")
    if any((path / name).is_file() for name in (".zgroup", "zarr.json")):
        return _read_by("a folder of zarr", "anndata")
    for name, what, command in FOLDERS_OF_OURS:
        if (path / name).is_file():
            return Kind(what, "", f"Type workbench {command}")
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith((".", "_")))
    if entries and all(entry.is_dir() for entry in entries):
        if all("=" in entry.name for entry in entries):
            return Kind("a folder of partitions, as Hive writes them", "", FROM_HIVE)
        return _read_by("a folder of text, a class each folder in it", "text")
    if not part_paths(path):
        what = "a folder" if any(map(os.path.getsize, entries)) else "an empty folder, or one of empty files"
        return Kind(what, "", "Give a file of it; of text, a folder with a folder for each class")
    parts = parts_of(path)
    kind, several = parts[0].kind, len(parts) > 1
    if other := next((part for part in parts if part.kind.reader != kind.reader), None):
        return Kind(f"a folder that {_several(parts[0], other)}", "", ONE_KIND.removesuffix("."))
    if kind.what in NOT_JOINED and several:
        return Kind(f"a folder of files, each {kind.what}", "", "Give one file, or save them as CSV")
    if kind.options.get("label") == "none":
        return Kind("a folder of text", "", "Give a file of it; of text, a folder with a folder for each class")
    return kind._replace(what=f"a folder of {len(parts)} part files, each {kind.what}" if several else kind.what)


def _kind_of_archive(path: str | os.PathLike) -> Kind:
    """Return the kind of a zip file from its member names: a spreadsheet, .npz archive, or one to unpack."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: -entry.file_size)
            members = [entry.filename for entry in entries]
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError):
        members = []
    if any(name.startswith("xl/") for name in members):
        return Kind("a spreadsheet (.xlsx)", "", _as_csv("read_excel", "openpyxl"))
    if members and not any(name.endswith(".npy") for name in members):
        advice = f"Unpack it, as unzip FILE does, and give a file of it, such as {members[0][:60]!r}"
        return Kind("a zip file", "", advice)
    names = {name.removesuffix(".npy") for name in members}
    if "adj_indptr" in names:
        return _read_by("a citation archive (.npz)", "graph")
    if "format" in names and "data" in names:
        return _read_by("a matrix saved by scipy.sparse.save_npz", "npz")
    if names:
        return _read_by(f"an .npz archive, which holds {', '.join(sorted(names)[:5])[:60]}", "npz")
    return Kind("an empty archive or another zip file", "", f"{SAVE} and its labels by numpy.save")


def _kind_of_text(first: bytes, is_cut: bool) -> Kind:
    """Return the kind of a text file from its first bytes without a byte order mark.

    Comments, blank lines and the last line of cut bytes are not used; of a first row that is cut, its whole fields are.
    """
    *whole, last = first.splitlines() or [first]
    lines = whole if is_cut else [*whole, last]
    lines = lines[1:] if lines and SAID_SEPARATOR.fullmatch(lines[0].decode("utf-8", "replace")) else lines
    lines = [line for line in lines if line.strip() and not line.startswith((b"#", b"%"))]
    if is_cut and not lines:  # the first row is longer than what is looked at: its whole fields
        lines = [line for line in last.rsplit(None, 1)[:1] if not line.startswith((b"#", b"%"))]
    if not lines:
        return Kind("other text", "", "It holds nothing but blanks and comments")
    rows = [line.strip() for line in lines]
    for recognise in (_kind_by_marks, _kind_of_rows, _kind_of_numbers):
        if kind := recognise(rows):
            return kind
    return _kind_by_separator(lines) or _read_by("other text", "text", "Text of one document a line", label="none")


def _kind_by_marks(rows: list[bytes]) -> Kind | None:
    """Return the kind of text by marks in its first rows (HTML, ARFF, JSON, libffm, svmlight), or None.

    `rows` are the stripped lines. Some of these kinds have no reader but advice.
    """
    if _PAGE.match(rows[0]):
        return Kind("a page of HTML or XML text", "", "Download the file itself, not the page about it")
    if _ARFF.match(rows[0]):
        return _read_by("an ARFF file, as text", "table")
    if _JSON.match(rows[0]):
        return _read_by(JSON_ARRAY if rows[0].startswith(b"[") else "JSON lines, as text", "table")
    if all(map(_FIELDS.fullmatch, rows[:20])):
        return _read_by(LIBFFM, "svmlight")
    are_entries = all(_SVMLIGHT.fullmatch(row) or _UNLABELLED.fullmatch(row) for row in rows[1:20])
    if _COUNTS.fullmatch(rows[0]) and len(rows) > 1 and are_entries:
        return _read_by(BELOW_COUNTS, "svmlight")
    are_counted = all(_COUNTED.fullmatch(row) and int(row.split()[0]) == row.count(b":") for row in rows[:20])
    if len(rows) > 4 and are_counted and len({row.count(b":") for row in rows[:20]}) > 1:
        advice = "Take the lengths out, as sed -E 's/^[0-9]+ //' FILE > NEW does, and read NEW without labels."
        advice += f"\nType {typed(dataset='svmlight', kind='none', zero_based=True)}"
        return Kind("rows of LDA-C (a length and column:count ...), as text", "", advice)
    if len(rows) > 3 and all(map(bytes.isdigit, rows[:3])) and all(map(_COUNTS.fullmatch, rows[3:])):
        return _read_by(DOCWORD, "matrix_market")
    if all(map(_UNLABELLED.fullmatch, rows[:20])):
        return _read_by("svmlight text without labels", "svmlight")
    if _have_words_as_labels(rows[:20]):
        return _read_by(WORDS_AS_LABELS, "svmlight")
    return None


def _have_words_as_labels(rows: list[bytes]) -> bool:
    """Return whether all rows are svmlight rows with a word as label; a row without entries has the label of others."""
    with_entries = [row for row in rows if _WORDS_AS_LABELS.fullmatch(row)]
    labels = {row.split(None, 1)[0] for row in with_entries}
    others = {row.split(b"#")[0].strip() for row in rows if not _WORDS_AS_LABELS.fullmatch(row)}
    return bool(with_entries) and others <= labels and not any(map(_SVMLIGHT.fullmatch, rows))


def _kind_of_rows(rows: list[bytes]) -> Kind | None:
    """Return the kind of text whose rows are svmlight, Vowpal Wabbit or fastText lines, or None."""
    if any(map(_SVMLIGHT.fullmatch, rows[:20])):
        return _read_by("svmlight text", "svmlight", "Text of lines such as '1 3:0.5 7:2'")
    if _PIPES.match(rows[0]):
        return _read_by("Vowpal Wabbit text", "vw", "Text of lines such as '1 | price:0.5 red'")
    if all(row.startswith(b"__label__") for row in rows):
        return _read_by("text, a label before each", "text", label="first", separator=" ")
    return None


def _kind_of_numbers(rows: list[bytes]) -> Kind | None:
    """Return the kind of text of whole numbers: edge list, lists or ratings, or None."""
    if all(map(_WHOLE.fullmatch, rows)):
        lengths = {len(row.split()) for row in rows}
        if lengths == {2}:
            return _read_by("an edge list, pairs of whole numbers as text", "graph")
        if len(lengths) > 1:
            return _read_by("lists of whole numbers as text", "ratings")
    if _EDGES_HEAD.fullmatch(rows[0]):
        return _read_by("an edge list with a header, as text", "graph")
    if all(map(_LISTS.fullmatch, rows)):
        return _read_by("lists of whole numbers, each behind its owner, as text", "ratings")
    if any(all(map(pattern.fullmatch, rows)) for pattern in (_RATING, _RATING_AT)) or rating_columns(_names(rows[0])):
        return _read_by("ratings as text", "ratings")
    return None


def _kind_by_separator(lines: list[bytes]) -> Kind | None:
    """Return the kind of text with a separator between columns, tried from common to rare, or None."""
    if all(_LABELLED.fullmatch(line.strip()) for line in lines):
        return _read_by("text, a label before each", "text", label="first")
    for sign, name in SIGNS.items():
        if _are_as_many(lines, sign):
            return _read_by(f"{name}-separated text", "table", f"A table of {name}-separated columns")
    for sign, name in SIGNS.items():
        counts = [line.count(sign.encode()) for line in lines[:LINES]]
        if counts[0] > 1 and 2 * counts.count(counts[0]) > len(counts):
            return _read_by(f"{name}-separated text, some rows of which are shorter or longer", "table")
    rows = [line.strip() for line in lines]
    if kind := _kind_by_blanks(rows) or _kind_by_rare_signs(lines) or _kind_behind_preamble(lines):
        return kind
    are_numbers = len(rows) > 2 and all(map(_NUMBER.fullmatch, rows[1:]))  # below a header
    return _read_by("one column of numbers, as text", "table") if are_numbers else None


def _kind_by_rare_signs(lines: list[bytes]) -> Kind | None:
    """Return the kind of a table whose columns are separated by one of `RARE_SIGNS`, or None.

    There must be at least three columns, as many in each row, and one with only numbers below the first row.
    """
    rows = [line.strip(b"\r\n") for line in lines[:LINES]]
    for sign, name in RARE_SIGNS.items():
        counts = {row.count(sign.encode()) for row in rows}
        if len(rows) < 2 or len(counts) > 1 or min(counts) < 2:
            continue
        columns = zip(*(row.split(sign.encode()) for row in rows[1:]), strict=True)
        if any(all(_NUMBER.fullmatch(value.strip()) for value in column) for column in columns):
            return _read_by(f"{name}-separated text", "table", separator=name)
    return None


def _are_as_many(lines: list[bytes], sign: str) -> bool:
    """Return whether the first rows have equally many fields, at least two, or one more than the first row (header).

    Fields in double quotes may contain the separator `sign` and line ends.
    """
    counts = [line.count(sign.encode()) for line in lines[:LINES]]
    if min(counts) and (len(set(counts)) == 1 or b'"' in b"".join(lines[:LINES])):
        return True
    texts = (line.decode("utf-8", "replace") + "\n" for line in lines[:LINES])
    try:
        fields = [len(row) for row in csv.reader(texts, delimiter=sign)]
    except csv.Error:
        return False
    fields = fields[:-1] or fields  # the last row may have been cut
    return fields[0] > 1 and (len(set(fields)) == 1 or set(fields[1:]) == {fields[0] + 1})


def _kind_by_blanks(rows: list[bytes]) -> Kind | None:
    """Return the kind of a table whose columns are separated by blanks, or None.

    Rows must have equally many fields, at least half of them numbers, apart from a header, which may have one less.
    """
    fields = [row.split() for row in rows]
    below = fields[1:] or fields
    if len(fields[0]) < 2 or len(set(map(len, below))) > 1 or len(below[0]) - len(fields[0]) not in (0, 1):
        return None
    if any(2 * sum(bool(_NUMBER.fullmatch(value.strip(b'"'))) for value in row) < len(row) for row in below):
        return None
    if any(b"  " in row or b"\t" in row for row in rows):
        return _read_by("columns that blanks align, as text", "table", separator="blanks")
    return _read_by("columns with a blank between them, as text", "table", separator="space")


def _kind_behind_preamble(lines: list[bytes]) -> Kind | None:
    """Return the kind of a separated table that begins below some lines of other text, or None."""
    for start in range(1, min(LINES, len(lines) // 2)):
        below = lines[start : start + LINES]
        for sign, name in SIGNS.items():
            if len({line.count(sign.encode()) for line in below}) > 1 or sign.encode() not in below[0]:
                continue
            what = f"{name}-separated text below {start} {'line' if start == 1 else 'lines'} of other text"
            return _read_by(what, "table")
    return None
