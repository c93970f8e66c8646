"""Documents: a text file with one a line, or a folder with a folder of files for each class; words become columns."""

import collections
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import ADVICE_LABELS_FILE, DataError, MissingLabelsError
from workbench.data.files.labels import label_of, of_text, read_label_file
from workbench.data.files.opened import BLOCK, LONGEST_LINE, open_text, place_in
from workbench.data.files.reading import blocks_of_file, dataset_of, reading
from workbench.data.labels import GUESSED, NONE, Wanted
from workbench.data.stored.converting import blocks_of

# Documents into columns of words, by scikit-learn: counted, with a vocabulary, or hashed to a fixed number.

WEIGHTINGS = ("count", "binary", "tfidf")
MOST_WORDS_TOGETHER = 3
MOST_COLUMNS = 2**31 - 1


@final
@dataclass(frozen=True)
class Words:
    """Rules by which words become columns.

    Words are two letters, digits or underscores or more, in lower case if `lower`; runs of up to `ngrams` of them count
    too. `hashed` is the number of columns they are hashed to (MurmurHash3, equal hashes are summed), None for a
    column a word, in the order of the alphabet: of those in `least_documents` at least, the `most_features` that occur
    most. `weighting` is `count`, `binary` (1 where it occurs), or `tfidf`: count * idf, rows scaled to 2-norm 1, with
    idf = log((1 + documents) / (1 + documents with the word)) + 1. `vocabulary` and `idf` are those of a first file.
    """

    hashed: int | None = None
    weighting: str = "count"
    ngrams: int = 1
    least_documents: int = 1
    most_features: int | None = None
    lower: bool = True
    vocabulary: Sequence[str] | None = None
    idf: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Raise DataError for a setting out of range, or settings that exclude each other."""
        _check_whole("hashed", self.hashed, MOST_COLUMNS)
        _check_whole("ngrams", self.ngrams, MOST_WORDS_TOGETHER)
        _check_whole("least_documents", self.least_documents, MOST_COLUMNS)
        _check_whole("most_features", self.most_features, MOST_COLUMNS)
        if self.weighting not in WEIGHTINGS:
            raise DataError(f"weighting is {self.weighting!r}; it is one of {', '.join(WEIGHTINGS)}.")
        if not isinstance(self.lower, bool):
            raise DataError(f"lower is {self.lower!r}; it is True or False.")
        if isinstance(self.vocabulary, str):
            raise DataError("vocabulary is a text; it is a list of words, one for each column.")
        chosen = self.least_documents > 1 or self.most_features is not None or self.vocabulary is not None
        if self.hashed is not None and chosen:
            raise DataError(
                "hashed is given; least_documents, most_features and vocabulary choose words that are counted."
            )

    @property
    def is_learned(self) -> bool:
        """Whether each document can be encoded on its own: vocabulary and idf are given or not needed."""
        has_words = self.hashed is not None or self.vocabulary is not None
        return has_words and (self.weighting != "tfidf" or self.idf is not None)

    def columns(self, documents: Iterable[str], path: str | os.PathLike) -> tuple[Any, "Words"]:
        """Return (matrix [documents, words], self completed by the words and idf found) of all documents.

        The matrix is CSR, float64. Raises DataError, naming `path`, if no word is frequent enough.
        """
        counter = self.vectorizer()
        try:
            x = scipy.sparse.csr_array(counter.fit_transform(documents), dtype=np.float64)
        except DataError:
            raise
        except ValueError as error:
            if self.vocabulary is not None:
                raise DataError(f"vocabulary cannot be used: {error}.") from None
            least = f"occur in {self.least_documents} documents or more"
            raise DataError(f"{path} holds no words of two letters or more that {least}: {error}.") from None
        words = self
        if self.hashed is None:
            names = counter.get_feature_names_out().tolist()
            if self.most_features is not None:  # not by scikit-learn, whose choice among equals is that of the machine
                kept = np.sort(np.argsort(-x.sum(axis=0), kind="stable")[: self.most_features])
                names, x = [names[column] for column in kept], x[:, kept]
            words = replace(words, vocabulary=names, least_documents=1, most_features=None)
        if self.weighting == "tfidf" and self.idf is None:
            having = np.bincount(x.indices, minlength=x.shape[1])
            words = replace(words, idf=(np.log((1 + x.shape[0]) / (1 + having)) + 1).tolist())
        return words._weight(x), words

    def rows(self, documents: list[str]) -> Any:
        """Return the CSR float64 array [documents, words] of some documents; `is_learned` must be true."""
        try:
            x = self.vectorizer().transform(documents)
        except ValueError as error:
            raise DataError(f"vocabulary cannot be used: {error}.") from None
        return self._weight(scipy.sparse.csr_array(x, dtype=np.float64))

    def alike(self) -> dict[str, Any]:
        """Return the parameters, as JSON values by name, with which another file gets the same columns."""
        names = ("hashed", "weighting", "ngrams", "lower", "vocabulary", "idf")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None or name == "hashed"}

    def vectorizer(self) -> Any:
        """Return a new scikit-learn vectorizer for words: CountVectorizer, or HashingVectorizer if hashed."""
        from sklearn.feature_extraction import text  # a second to import, and only this reader needs it

        shared = {"lowercase": self.lower, "ngram_range": (1, self.ngrams), "binary": self.weighting == "binary"}
        if self.hashed is not None:
            return text.HashingVectorizer(n_features=self.hashed, norm=None, alternate_sign=False, **shared)
        if self.vocabulary is not None:
            return text.CountVectorizer(vocabulary=list(self.vocabulary), **shared)
        return text.CountVectorizer(min_df=self.least_documents, **shared)

    def _weight(self, x: Any) -> Any:
        """Return `x` weighted: unchanged, or with "tfidf" scaled by idf in place and normalised to unit rows.

        Raises DataError if idf has another length than `x` has columns.
        """
        if self.weighting != "tfidf":
            return x
        from sklearn.preprocessing import normalize

        idf = np.array(self.idf, np.float64)
        if idf.shape != (x.shape[1],):
            raise DataError(f"idf has {idf.size} numbers for {x.shape[1]} columns; it has one for each.")
        x.data *= idf[x.indices]
        return normalize(x)


def _check_whole(name: str, value: int | None, most: int) -> None:
    """Raise DataError, calling it `name`, unless `value` is None or an int from 1 to `most`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
        raise DataError(f"{name} is {value!r}; it is a whole number from 1 to {most}.")


# Documents one by one, with their labels: lines of a text file, or files of a folder with a folder for each class.

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

    def alike(self) -> dict[str, str]:
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


LICENCE = "that of the files"


def make(
    path: str | os.PathLike,
    label: str = "none",
    separator: str = "\t",
    labels: str | os.PathLike | None = None,
    encoding: str = "utf-8",
    hashed: int | None = None,
    weighting: str = "count",
    ngrams: int = 1,
    least_documents: int = 1,
    most_features: int | None = None,
    lower: bool = True,
    vocabulary: Sequence[str] | None = None,
    idf: Sequence[float] | None = None,
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the data set of documents: a row for each, a column for each word, or `hashed` columns for all words.

    In a file each line is a document; with `label="first"` it begins with its label and the `separator`, else `labels`
    is a file of them (.npy, or text with one a line). In a folder each subfolder is a class and each file in it a
    document, as `sklearn.datasets.load_files` has it. Files may be compressed; `encoding` is theirs. `hashed` to `idf`
    are those of `Words`; a file read `like` another one has its words. `kind`, `positive`, `classes` and `unseen` are
    as those of `svmlight`. Raises DataError, with the line, for files that are not text, and if there are no words.
    """
    words = Words(hashed, weighting, ngrams, least_documents, most_features, lower, vocabulary, idf)
    came: list[str] = []
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, wanted.kind != NONE)
        x, words = words.columns(_pass_labels(documents, came), path)
        y, reread = documents.labels(came), words.alike() | documents.alike()
        return dataset_of("text", x, y, wanted, path, documents.place, licence=LICENCE, reread=reread)


def blocks(
    path: str | os.PathLike,
    label: str = "none",
    separator: str = "\t",
    labels: str | os.PathLike | None = None,
    encoding: str = "utf-8",
    wanted: Wanted = GUESSED,
    **of_words: Any,
) -> RowBlocks:
    """Return the documents in blocks of some thousand rows if words are hashed or given, else in one block.

    Parameters are those of `make`. Memory holds the labels and a block; words that are to be found are counted in
    memory. Raises DataError if numbers of labels and documents differ. `positive`, `classes` and `unseen` are unused.
    """
    words = Words(**of_words)
    if not words.is_learned:
        return blocks_of(make(path, label, separator, labels, encoding, wanted=wanted, **of_words))
    came: list[str] = []
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, wanted.kind != NONE)
        collections.deque(_pass_labels(documents, came), maxlen=0)
        dtype = documents.labels(came).dtype
        if documents.given is not None and len(documents.given) != documents.count:
            counts = f"{documents.count} rows and {len(documents.given)} labels"
            raise DataError(f"{path} has {counts}; there must be one for each row.")
    facts = {"duplicate_entries": 0, "reread": words.alike() | documents.alike()}
    return blocks_of_file("text", _blocks(documents, words, dtype), path, None, facts, LICENCE)


def _pass_labels(documents: Documents, came: list[str]) -> Iterator[str]:
    """Yield the documents one by one, and append their labels to `came`."""
    for some, labels in documents.parts():
        came += labels
        yield from some


def _blocks(documents: Documents, words: Words, dtype: np.dtype) -> Iterator[RowBlock]:
    """Yield the documents as CSR blocks with their labels, converted to `dtype` or taken from the file of labels."""
    row = 0
    with reading(documents.path, "text"):
        for some, labels in documents.parts():
            given, row = slice(row, row + len(some)), row + len(some)
            y = (
                np.array(labels, np.str_ if dtype.kind == "U" else dtype)
                if documents.given is None
                else documents.given[given]
            )
            yield RowBlock(canonical(words.rows(some)), y)


register(Source("text", make, "files of yours", LICENCE, files_read, takes_folder=True, blocks=blocks))
