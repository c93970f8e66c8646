"""Documents one by one, with their labels: lines of a text file, or files of a folder with a folder for each class."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError
from workbench.data.files.labels import label_of, of_text, read_label_file
from workbench.data.files.opened import BLOCK, LONGEST_LINE, open_text, place_in
from workbench.data.files.reading import reading

LABELS = ("none", "first")
DOCUMENTS_AT_ONCE, CHARACTERS_AT_ONCE = 1 << 13, 1 << 23
"""Documents that are held at once, and characters of them, at most one document more."""
SAVE = "save it as UTF-8, or give its encoding, such as encoding='latin-1'"


@final
class Documents:
    """The documents at `path` with their labels; memory holds some of them, and those of a file of labels.

    `label` says for a file whether each line begins with one, with a `separator` behind it: "first" or "none". A file
    without has them in the file `labels`. Of a folder each sub-folder is a class.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        label: str,
        separator: str,
        labels: str | os.PathLike | None,
        encoding: str,
        is_labelled: bool = True,
    ) -> None:
        """Validate the settings, and read the file of labels if one is given; documents are read by `parts`.

        `is_labelled` False reads without labels. Raises DataError for invalid settings, MissingLabelsError if there are
        no labels.
        """
        self.is_labelled = is_labelled
        self.path, self.label, self.separator, self.encoding = Path(path), label, separator, encoding
        self.is_folder = self.path.is_dir()
        self._check(labels)
        self._given = None if labels is None else read_label_file(labels)
        self.count = 0
        self._files: list[Path] = []

    def _check(self, labels: str | os.PathLike | None) -> None:
        """Raise DataError if label, separator or encoding is invalid, or labels are stated twice.

        Raises MissingLabelsError for a file that is read with labels and has none.
        """
        if self.label not in LABELS:
            raise DataError(f"label is {self.label!r}; it is one of {', '.join(LABELS)}.")
        if not (isinstance(self.separator, str) and self.separator):
            raise DataError(
                f"separator is {self.separator!r}; it is text between a label and its document, such as a tab."
            )
        try:
            "a".encode(self.encoding)
        except (LookupError, ValueError, TypeError):
            raise DataError(f"encoding is {self.encoding!r}; it is one that Python knows, such as utf-8.") from None
        several = [name for name, given in (("label='first'", self.label == "first"), ("labels", labels)) if given]
        if self.is_folder and several and self.is_labelled:
            raise DataError(f"{self.path} is a folder, of which each sub-folder is a class; leave {several[0]} out.")
        if len(several) > 1:
            raise DataError("label='first' and labels are given; the labels stand in one of the two places.")
        if self.is_labelled and not self.is_folder and not several and self.path.exists():
            ways = "label='first' where each line is a label, a tab (or separator=) and the text, or labels= a file"
            raise MissingLabelsError(
                f"{self.path} is read without labels, which training needs: give {ways} of them, one a line.\n"
                f"{ADVICE_LABELS_FILE}"
            )

    def parts(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield (documents, their labels as text) in blocks; the label list is empty if there is a file of labels.

        Restarts `count` and the list of files. Raises DataError for invalid text or lines without a label.
        """
        self._files.clear()
        self.count = 0
        both = self._read_folder() if self.is_folder else self._read_lines()
        while some := list(_limit_characters(both, DOCUMENTS_AT_ONCE, CHARACTERS_AT_ONCE)):
            self.count += len(some)
            yield [document for document, _ in some], [] if self._given else [label for _, label in some]

    @property
    def given(self) -> np.ndarray | None:
        """Labels [documents] from the separate file of labels; None if there is none."""
        return None if self._given is None else self._given[0]

    def labels(self, came: list[str]) -> np.ndarray:
        """Return the labels of all documents [rows]: from the file of labels, zeros if read without, else `came`.

        `came` are the labels that `parts` yielded; labels of lines become numbers if all are numeric.
        """
        if self.given is not None:
            return self.given
        if not self.is_labelled:
            return np.zeros(self.count)
        return np.array(came, np.str_) if self.is_folder else of_text(came)

    def place(self, row: int) -> str:
        """Return where the label of document `row` stands: "path:line", or the path of its file.

        Call after reading all.
        """
        if self._given is not None:
            return self._given[1](row)
        return str(self._files[row]) if self.is_folder else place_in(self.path, encoding=self.encoding)(row)

    def reading_options(self) -> dict[str, str]:
        """Return the parameters by which another file is split into documents in the same way."""
        return {"label": self.label, "separator": self.separator, "encoding": self.encoding}

    def _read_lines(self) -> Iterator[tuple[str, str]]:
        """Yield (document, label) of each line of the file; label "" without labels.

        Blank lines are skipped with labels. Raises DataError for a line without the separator.
        """
        separator = self.separator.encode()
        with open_text(self.path, self.encoding, advice=SAVE) as file:
            for line, text in enumerate(file, 1):
                if self.label == "none":
                    yield text.decode(), ""
                elif text.strip():
                    label, found, document = text.partition(separator)
                    if not found:
                        advice = "label='first' wants 'label, separator, text' on each line; separator= says another"
                        raise DataError(f"{self.path}:{line}: there is no {self.separator!r} behind a label; {advice}.")
                    yield document.decode(), label_of(label, self.path, line)

    def _read_folder(self) -> Iterator[tuple[str, str]]:
        """Yield (document, label) of each file in a subfolder, whose name is the label.

        The paths are kept for messages. Raises DataError for a file of more than `LONGEST_LINE` bytes, or a file that
        is not text.
        """
        for file in files_of(self.path):
            content = bytearray()
            with reading(file, "a text file"), open_text(file, self.encoding, advice=SAVE) as stream:
                while block := stream.read(BLOCK):
                    content += block
                    if len(content) > LONGEST_LINE:
                        raise DataError(f"{file} has more than {LONGEST_LINE:,} bytes; a document has fewer: part it.")
            self._files.append(file)
            yield content.decode(), file.parent.name


def _limit_characters(both: Iterator[tuple[str, str]], most: int, characters: int) -> Iterator[tuple[str, str]]:
    """Yield the next (document, label) pairs: at most `most`, and none once `characters` have been reached."""
    for document, label in itertools.islice(both, most):
        yield document, label
        characters -= len(document)
        if characters <= 0:
            return


def files_of(folder: Path) -> list[Path]:
    """Return the files in the direct subfolders of `folder`, sorted, without hidden ones.

    Raises DataError if there is none, or a subfolder contains a folder.
    """
    entries = [
        entry
        for entry in sorted(folder.glob("*/*"))
        if not any(part.startswith(".") for part in entry.relative_to(folder).parts)
    ]
    if inner := next((entry for entry in entries if entry.is_dir()), None):
        raise DataError(
            f"{inner} is a folder in the folder of a class; give the folder whose sub-folders are the classes."
        )
    if not entries:
        advice = "put the documents of each class into a folder of its name, or give a file of a document a line"
        raise DataError(f"{folder} holds no folder with files; {advice}.")
    return entries


def files_read(path: str | os.PathLike, labels: str | os.PathLike | None = None, **rest: Any) -> list[Any]:
    """Return the paths that the source reads: file or folder, file of labels (or None), a folder's entries."""
    return [path, labels, *(sorted(Path(path).glob("*/*")) if Path(path).is_dir() else ())]
