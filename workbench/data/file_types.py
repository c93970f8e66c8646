"""What a file that a reader cannot use looks like, told from its first bytes, and what to do with it."""

import os
import re

SIGNATURES = (
    (
        b"PK\x03\x04",
        "an .npz archive or another zip file",
        "A matrix saved by scipy.sparse.save_npz is read by the data set npz",
    ),
    (b"\x93NUMPY", "an array saved by numpy.save", "It holds labels; save a matrix by scipy.sparse.save_npz"),
    (b"\x1f\x8b", "a file packed by gzip", "Text is read packed when its name ends in .gz; unpack others"),
    (b"BZh", "a file packed by bzip2", "Text is read packed when its name ends in .bz2; unpack others"),
    (b"\x89HDF", "an HDF5 file", "Save its matrix by scipy.sparse.save_npz"),
    (b"PAR1", "a Parquet file", "Save its matrix by scipy.sparse.save_npz"),
    (b"\x80", "a pickle", "Pickles can run code and are not read; save the matrix by scipy.sparse.save_npz"),
    (b"%%MatrixMarket", "a Matrix Market file", "Save scipy.io.mmread(...) by scipy.sparse.save_npz"),
    (b"\xff\xfe", "UTF-16", "Save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "Save it as UTF-8"),
)
"""(first bytes, what starts with them, advice)."""

_SVMLIGHT = re.compile(rb"(\xef\xbb\xbf)?[+-]?[0-9][^\s:|]*(\s+qid:[0-9]+)?(\s+[0-9]+:\S+)+\s*(#.*)?")
_PIPES = re.compile(rb"[^|]*\|\S*\s")


def looks_like(path: str | os.PathLike) -> tuple[str, str]:
    """What the file looks like, in words, and what to do with such a one; the words of text end in `text`."""
    with open(path, "rb") as file:
        head = file.read(4096)
    for signature, what, advice in SIGNATURES:
        if head.startswith(signature):
            return what, advice
    if not head:
        return "an empty file", "Give one that holds something"
    if b"\0" in head:
        return "a binary file of another kind", "Save its matrix by scipy.sparse.save_npz"
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if _SVMLIGHT.fullmatch(line):
        return "svmlight text", "Text of lines such as '1 3:0.5 7:2' is read by the data set svmlight"
    if _PIPES.match(line):
        return "Vowpal Wabbit text", "Write it as svmlight text, lines such as '1 3:0.5 7:2'"
    for sign, name in ((b",", "comma"), (b";", "semicolon"), (b"\t", "tab")):
        if line.count(sign) >= 1:
            advice = "Turn the columns into a matrix, and save it by scipy.sparse.save_npz, labels by numpy.save"
            return f"{name}-separated text", advice
    return "other text", "Save the matrix by scipy.sparse.save_npz, labels by numpy.save"


def starts_with(path: str | os.PathLike, signature: bytes) -> bool:
    """Whether these are the first bytes of the file."""
    with open(path, "rb") as file:
        return file.read(len(signature)) == signature
