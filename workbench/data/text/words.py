"""Documents into columns of words, by scikit-learn: counted, with a vocabulary, or hashed to a fixed number."""

import collections
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import scipy.sparse

from workbench.data.dataset.selection import with_entries
from workbench.data.errors import DataError
from workbench.data.shards.shuffling import stack_csr

WEIGHTINGS = ("count", "binary", "tfidf")
MOST_WORDS_TOGETHER = 3
MOST_COLUMNS = 2**31 - 1


@final
@dataclass(frozen=True)
class Words:
    """Rules by which words become columns.

    Words are two letters, digits or underscores or more, in lower case if `lower`; runs of up to `ngrams` of them count
    too. `hashed` is the number of columns they are hashed to (MurmurHash3, those that meet are summed), None for a
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
        """Whether a document's row depends on no other one: the words, and their idf, are given or not needed."""
        has_words = self.hashed is not None or self.vocabulary is not None
        return has_words and (self.weighting != "tfidf" or self.idf is not None)

    def columns(self, parts: Iterable[list[str]], path: str | os.PathLike) -> tuple[Any, "Words"]:
        """Return the matrix [documents, words] of documents that come in parts, and `self` with the words and idf
        found."""
        if self.is_learned:
            return stack_csr([_no_rows(), *map(self.rows, parts)]), self
        counting = _Counting(self)
        x = stack_csr([_no_rows(), *map(counting.add, parts)])
        words = counting.learned(path)
        if counting.are_met:
            x = counting.chosen_of(x)
        return words._weighted(x), words

    def learn(self, parts: Iterable[list[str]], path: str | os.PathLike) -> "Words":
        """Return the same with the words and idf of all documents, which go past.

        Held are words, and two numbers for each.
        """
        if self.is_learned:
            collections.deque(parts, maxlen=0)
            return self
        counting = _Counting(self)
        for part in parts:
            counting.add(part)
        return counting.learned(path)

    def rows(self, documents: list[str]) -> Any:
        """Return the csr array [documents, words] of some documents, where all `is_learned`."""
        return self._weighted(_counted(self, documents))

    def alike(self) -> dict[str, Any]:
        """Return the parameters that give another file the same columns (JSON values)."""
        names = ("hashed", "weighting", "ngrams", "lower", "vocabulary", "idf")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None or name == "hashed"}

    def vectorizer(self) -> Any:
        """Vectorizer of scikit-learn that counts words, by their numbers or by hashes."""
        from sklearn.feature_extraction import text  # a second to import, and only this reader needs it

        shared = {"lowercase": self.lower, "ngram_range": (1, self.ngrams), "binary": self.weighting == "binary"}
        if self.hashed is not None:
            return text.HashingVectorizer(n_features=self.hashed, norm=None, alternate_sign=False, **shared)
        return text.CountVectorizer(vocabulary=None if self.vocabulary is None else list(self.vocabulary), **shared)

    def _weighted(self, x: Any) -> Any:
        """Return x, scaled in place by idf and to unit rows with tf-idf weighting; DataError if idf has another
        length.
        """
        if self.weighting != "tfidf":
            return x
        from sklearn.preprocessing import normalize

        idf = np.array(self.idf, np.float64)
        if idf.shape != (x.shape[1],):
            raise DataError(f"idf has {idf.size} numbers for {x.shape[1]} columns; it has one for each.")
        x.data *= idf[x.indices]
        return normalize(x)


@final
class _Counting:
    """Words of documents that come in parts: how many documents have each, and how often it occurs in all."""

    def __init__(self, words: Words) -> None:
        self.words, self.documents = words, 0
        self.are_met = words.hashed is None and words.vocabulary is None
        self.number_of: dict[str, int] = {}
        self._having = self._times = self.chosen = np.zeros(0, np.int64)

    def add(self, documents: list[str]) -> Any:
        """Take in some documents; gives their csr array, columns in the order in which words were met, unsorted."""
        self.documents += len(documents)
        x = self._met(documents) if self.are_met else _counted(self.words, documents)
        more = np.zeros(x.shape[1] - len(self._having), np.int64)
        self._having = np.append(self._having, more) + np.bincount(x.indices, minlength=x.shape[1])
        times = np.bincount(x.indices, x.data, minlength=x.shape[1]).astype(np.int64)
        self._times = np.append(self._times, more) + times
        return x

    def _met(self, documents: list[str]) -> Any:
        """Return the word counts of documents, CSR; new words are numbered and kept."""
        counter = self.words.vectorizer()
        try:
            x = counter.fit_transform(documents)
        except ValueError:  # no words
            return scipy.sparse.csr_array((len(documents), len(self.number_of)))
        numbers = [self.number_of.setdefault(word, len(self.number_of)) for word in counter.get_feature_names_out()]
        columns = np.array(numbers)[x.indices]
        return scipy.sparse.csr_array(
            (x.data.astype(np.float64), columns, x.indptr), (len(documents), len(self.number_of))
        )

    def learned(self, path: str | os.PathLike) -> Words:
        """Return the words that are chosen, and their idf where that is wanted and not given."""
        words, having = self.words, self._having
        if self.are_met:
            self._choose(path)
            names, having = list(self.number_of), having[self.chosen]
            vocabulary = [names[number] for number in self.chosen]
            words = replace(words, vocabulary=vocabulary, least_documents=1, most_features=None)
        if words.weighting == "tfidf" and words.idf is None:
            words = replace(words, idf=(np.log((1 + self.documents) / (1 + having)) + 1).tolist())
        return words

    def _choose(self, path: str | os.PathLike) -> None:
        """Choose words by frequency, ties in alphabetical order."""
        names, least, most = list(self.number_of), self.words.least_documents, self.words.most_features
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        order = order[self._having[order] >= least]
        if not len(order):
            raise DataError(f"{path} holds no words of two letters or more that occur in {least} documents or more.")
        if most is not None and most < len(order):
            order = order[np.sort(np.argsort(-self._times[order], kind="stable")[:most])]
        self.chosen = order

    def chosen_of(self, x: Any) -> Any:
        """Return the columns of the chosen words, in alphabetical order, of a matrix that `add` gave."""
        place = np.full(x.shape[1], -1, np.int64)
        place[self.chosen] = np.arange(len(self.chosen))
        columns = place[x.indices]
        x = with_entries(x, columns >= 0, columns, (x.shape[0], len(self.chosen)))
        x.sort_indices()
        return x


def _no_rows() -> Any:
    """Return a CSR array of no rows and no columns."""
    return scipy.sparse.csr_array((0, 0))


def _counted(words: Words, documents: list[str]) -> Any:
    """Return the counts of words that are given or hashed, csr float64 [documents, words]."""
    try:
        x = words.vectorizer().transform(documents)
    except ValueError as error:  # a vocabulary that is none
        raise DataError(f"vocabulary cannot be used: {error}.") from None
    return scipy.sparse.csr_array(x, dtype=np.float64)


def _check_whole(name: str, value: int | None, most: int) -> None:
    """Raise DataError unless `value` is None or a whole number from 1 to `most`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
        raise DataError(f"{name} is {value!r}; it is a whole number from 1 to {most}.")
