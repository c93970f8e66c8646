"""Documents one by one, with their labels: lines of a text file, or files of a folder with a folder for each class."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import final

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
        self.is_labelled = is_labelled
        self.path, self.label, self.separator, self.encoding = Path(path), label, separator, encoding
        self.is_folder = self.path.is_dir()
        self._check(labels)
        self._given = None if labels is None else read_label_file(labels)
        self.count = 0
        self._files: list[Path] = []

    def _check(self, labels: str | os.PathLike | None) -> None:
        """Raise DataError if label, separator or encoding is invalid."""
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
        """Yield the documents, some at a time, and a label of each as it stands; none of what has a file of labels."""
        self._files.clear()
        self.count = 0
        both = self._of_folder() if self.is_folder else self._of_lines()
        while some := list(_within(both, DOCUMENTS_AT_ONCE, CHARACTERS_AT_ONCE)):
            self.count += len(some)
            yield [document for document, _ in some], [] if self._given else [label for _, label in some]

    @property
    def given(self) -> np.ndarray | None:
        """Labels [documents] of a file of their own."""
        return None if self._given is None else self._given[0]

    def labels(self, came: list[str]) -> np.ndarray:
        """Return labels as they stand that `parts` gave, as numbers where all are, or those of the file of labels."""
        if self.given is not None:
            return self.given
        if not self.is_labelled:
            return np.zeros(self.count)
        return np.array(came, np.str_) if self.is_folder else of_text(came)

    def place(self, row: int) -> str:
        """Place of the label of a document, once all documents were read."""
        if self._given is not None:
            return self._given[1](row)
        return str(self._files[row]) if self.is_folder else place_in(self.path, encoding=self.encoding)(row)

    def alike(self) -> dict[str, str]:
        """Return the parameters by which another file is parted into documents as this one is."""
        return {"label": self.label, "separator": self.separator, "encoding": self.encoding}

    def _of_lines(self) -> Iterator[tuple[str, str]]:
        """Yield (document, label) of each line of the file."""
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

    def _of_folder(self) -> Iterator[tuple[str, str]]:
        """Yield (document, label) of each file, the label being its folder; DataError if one is too long."""
        for file in files_of(self.path):
            content = bytearray()
            with reading(file, "a text file"), open_text(file, self.encoding, advice=SAVE) as stream:
                while block := stream.read(BLOCK):
                    content += block
                    if len(content) > LONGEST_LINE:
                        raise DataError(f"{file} has more than {LONGEST_LINE:,} bytes; a document has fewer: part it.")
            self._files.append(file)
            yield content.decode(), file.parent.name


def _within(both: Iterator[tuple[str, str]], most: int, characters: int) -> Iterator[tuple[str, str]]:
    """Yield the next ones, until there are `most` of them or so many `characters`."""
    for document, label in itertools.islice(both, most):
        yield document, label
        characters -= len(document)
        if characters <= 0:
            return


def files_of(folder: Path) -> list[Path]:
    """Return the files in the sub-folders, sorted, without hidden ones.

    `DataError` for none, and for folders among them.
    """
    entries = [entry for entry in sorted(folder.glob("*/*")) if not _is_hidden(entry, folder)]
    if inner := next((entry for entry in entries if entry.is_dir()), None):
        raise DataError(
            f"{inner} is a folder in the folder of a class; give the folder whose sub-folders are the classes."
        )
    if not entries:
        advice = "put the documents of each class into a folder of its name, or give a file of a document a line"
        raise DataError(f"{folder} holds no folder with files; {advice}.")
    return entries


def files_read(path: str | os.PathLike, labels: str | os.PathLike | None = None) -> list[str | os.PathLike | None]:
    """List the file or the folder with the files below it, and the file of labels."""
    return [path, labels, *(sorted(Path(path).glob("*/*")) if Path(path).is_dir() else ())]


def _is_hidden(entry: Path, folder: Path) -> bool:
    """Return whether a path below `folder` has a part that begins with a dot."""
    return any(part.startswith(".") for part in entry.relative_to(folder).parts)
