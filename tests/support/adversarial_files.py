"""Files as no honest program leaves them: for each data set that reads a file an example, and damages for all of them.

How to add a data set: write a function that puts a small example into a folder and gives the parameters that read it,
`path` among them, under `@example("its name")`. All files of the folder are damaged, each in its turn.
"""

import bz2
import codecs
import gzip
import lzma
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from tests.support.small_sets import labelled
from workbench import data

EXAMPLES: dict[str, Callable[[Path], dict[str, Any]]] = {}
"""Writers of an example by the name of the data set: of a folder, the parameters that read what they put there."""


def example(name: str) -> Callable[[Callable[[Path], dict[str, Any]]], Callable[[Path], dict[str, Any]]]:
    """Enter the function as the writer of that data set's example."""

    def enter(write: Callable[[Path], dict[str, Any]]) -> Callable[[Path], dict[str, Any]]:
        assert name not in EXAMPLES, f"{name} has an example already"
        EXAMPLES[name] = write
        return write

    return enter


@example("svmlight")
def _svmlight(folder: Path) -> dict[str, Any]:
    lines = ("1 qid:1 1:0.5 4:2 # one", "-1 qid:1 2:1.25", "", "1 qid:2 1:3 2:1e-3 7:-4", "-1 qid:2", "1 qid:5 3:1")
    return {"path": _text(folder / "rows.svm", *lines)}


@example("vw")
def _vw(folder: Path) -> dict[str, Any]:
    lines = ("1 |a red:0.5 blue |b:2 x:3", "-1 1.0 'one|a green", "", "1 | 7:1e-3", "-1 |a red |a red:-4")
    return {"path": _text(folder / "rows.vw", *lines)}


@example("text")
def _documents(folder: Path) -> dict[str, Any]:
    lines = ("1\tthe first of 12 words", "0\tanother 3 or 40", "", "1\tthe first again", "0\tanother one")
    return {"path": _text(folder / "documents.txt", *lines), "label": "first"}


@example("npz")
def _npz(folder: Path) -> dict[str, Any]:
    sp.save_npz(folder / "matrix.npz", sp.csr_array(np.eye(6, 4) * 1.5), compressed=False)
    np.save(folder / "labels.npy", np.arange(6) % 2)
    return {"path": folder / "matrix.npz", "labels": folder / "labels.npy"}


@example("table")
def _table(folder: Path) -> dict[str, Any]:
    lines = ("size,colour,remark,y", '1.5,red,"so, so",0', "2.5,blue,so,1", "-1e3,red,?,1", ",red,so,0", "2,NA,so,1")
    kinds = ("size", "number", "colour", "category", "remark", "text", "y", "label")
    said = [f"[columns.{name}]\nkind = '{kind}'" for name, kind in zip(kinds[::2], kinds[1::2], strict=True)]
    columns = _text(folder / "columns.toml", *said)
    return {"path": _text(folder / "rows.csv", *lines), "columns": columns}


@example("matrix_market")
def _matrix_market(folder: Path) -> dict[str, Any]:
    rows = (
        "%%MatrixMarket matrix coordinate real general",
        "% six",
        "6 4 7",
        "1 1 1.5",
        "2 2 -2e-3",
        "3 3 1",
        "4 4 .5",
    )
    path = _text(folder / "matrix.mtx", *rows, "5 1 7", "6 2 1e2", "6 4 -1")
    return {"path": path, "labels": _text(folder / "labels.txt", "2", "7", "2", "7", "7", "2")}


@example("matlab")
def _matlab(folder: Path) -> dict[str, Any]:
    variables = {"fea": sp.csc_array(np.eye(6, 4) * 1.5), "gnd": np.arange(6.0)[:, None] % 2, "note": "six"}
    scipy.io.savemat(folder / "variables.mat", variables)
    return {"path": folder / "variables.mat"}


@example("ratings")
def _ratings(folder: Path) -> dict[str, Any]:
    rows = ("user\titem\trating\ttime", "7\t12\t3.5\t881250949", "7\t13\t1\t881250950", "196\t12\t5\t881250951")
    return {"path": _text(folder / "ratings.tsv", *rows, "22\t377\t1\t878887116")}


@example("graph")
def _graph(folder: Path) -> dict[str, Any]:
    path = _text(folder / "edges.txt", "# u v weight", "0 1 1", "1 2 0.5", "4 0 2 # back", "", "5 5 1")
    labels = _text(folder / "labels.txt", "a", "b", "a", "b", "b", "a")
    features = folder / "features.npz"
    sp.save_npz(features, sp.csr_array(np.eye(6, 4)), compressed=False)
    return {"path": path, "labels": labels, "node_features": features}


def _text(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@example("sparse")
def _stored(folder: Path) -> dict[str, Any]:
    data.convert(labelled(), folder / "X.sparse")
    return {"path": folder / "X.sparse", "whole": True, "verify": True}


NOT_HELD_TO_IT = frozenset({"anndata", "binsparse", "parquet"})
"""Readers by libraries that are slow or not always there: they have fewer damages, in `test_damaged_hdf5.py` and
`tests/data/exports/test_round_trips.py`."""

_NUMBER = re.compile(rb"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WRONG_NUMBERS = (
    *(b"abc", b"nan", b"NaN", b"inf", b"-Inf", b"1e400", b"-1e400", b"1e39", b"-1", b"-0", b"0", b"", b"1_0", b"0x10"),
    *(b"9" * 20, b"2147483648", b"4294967296", b"9223372036854775808", b"9" * 5000, b"1,5", b"1;5", b"1\t5", b"1:5"),
    *("٣".encode(), b"\xff", b"\0", b'"', b"'", b"#", b"%", b"|", b"{", b"null", b"true", b"=1+1", b"\x1b[2J"),
)
"""What may stand where a number should."""
PLACES = 4
"""Numbers of a file that are written over, each in its turn: the first, the last, and some between."""


def numbers_replaced(content: bytes, by: bytes) -> Iterator[bytes]:
    """The content with one of its numbers written over."""
    found = list(_NUMBER.finditer(content))
    for place in sorted({round(at) for at in np.linspace(0, len(found) - 1, PLACES)} if found else ()):
        yield content[: found[place].start()] + by + content[found[place].end() :]


SHAPES: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "empty": lambda content: iter((b"",)),
    "one line": lambda content: iter((content.split(b"\n", 1)[0] + b"\n",)),
    "blank lines": lambda content: iter((b"\n\n\n", b"   \n\t\n", b"\r\n", b"\n\n" + content + b"\n\n")),
    "no last line end": lambda content: iter((content.rstrip(b"\n"), content.rstrip(b"\n") + b" \t")),
    "other line ends": lambda content: iter(content.replace(b"\n", end) for end in (b"\r\n", b"\r", b"\x0b", b"\x85")),
    "a mark before": lambda content: iter(mark + content for mark in (codecs.BOM_UTF8, codecs.BOM_UTF8 * 2)),
    "UTF-16": lambda content: iter(content.decode("latin-1").encode(name) for name in ("utf-16", "utf-16-be")),
    "latin-1": lambda content: iter((content + "né 1\n".encode("latin-1"), "é".encode("latin-1") + content)),
    "NUL bytes": lambda content: iter(
        (b"\0" + content, content + b"\0", content + b"\0" * 9000, _within(content, b"\0"))
    ),
    "cut": lambda content: (content[:length] for length in np.linspace(1, len(content) - 1, 12).astype(int)),
    "twice": lambda content: iter((content + content, content * 40)),
    "lines turned": lambda content: iter((b"\n".join(reversed(content.split(b"\n"))),)),
    "other kinds": lambda content: iter(OTHER_KINDS),
    "packed": lambda content: iter(pack(content) for pack in PACKERS),
    "packed and cut": lambda content: (
        packed[:length] for pack in PACKERS for packed in (pack(content),) for length in (4, len(packed) // 2, -1)
    ),
    "packed and damaged": lambda content: (_within(pack(content), b"\xa5\x5a\xa5") for pack in PACKERS),
    "packed and more": lambda content: (pack(content) + more for pack in PACKERS for more in (b"more", pack(content))),
    "packed twice": lambda content: iter((gzip.compress(gzip.compress(content)),)),
    "packed nothing": lambda content: iter(pack(b"") for pack in PACKERS),
}
"""Contents that come of a file's content, by what was done."""
PACKERS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)
OTHER_KINDS = (
    *(b"\x80\x04\x95\x00\x00", b"\x89HDF\r\n\x1a\n" + b"\0" * 99, b"PAR1" + b"\0" * 99, b"PK\x03\x04" + b"\0" * 99),
    *(b"MATLAB 5.0 MAT-file" + b" " * 109, b"%%MatrixMarket matrix coordinate real general\n", b"\x93NUMPY\x01\x00"),
    *(b"{}", b"[]", b"null", b"[" * 9000, b"a,b\n1,2\n", b"<html>", b"1\n", b"0 0\n", b"\n|a b\n", b"\xff" * 99),
    b"\x28\xb5\x2f\xfd" + b"\0" * 20,
)
BOMB_BYTES = 2**28
"""Bytes that a bomb unpacks to."""


def bombs(content: bytes) -> Iterator[bytes]:
    """A few hundred kilobytes of gzip that hold BOMB_BYTES: zeros, blanks, rows of the file, its rows as one."""
    for unit in (b"\0", b"\n", b" ", content, content.replace(b"\n", b" ")):
        yield _bomb(unit)


@cache
def _bomb(unit: bytes) -> bytes:
    repeated = unit * (-(-(2**22) // len(unit)))
    return gzip.compress(repeated, 9) * (BOMB_BYTES // len(repeated))  # an archive may have several members


def _circle(path: Path) -> None:
    path.symlink_to(path)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


IN_PLACE_OF_A_FILE: tuple[Callable[[Path], None], ...] = (lambda path: None, Path.mkdir, _circle, _pipe, _endless)
"""What there may be where a file was, nothing first; each puts it there."""


def _within(content: bytes, by: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + by + content[middle + len(by) :]
