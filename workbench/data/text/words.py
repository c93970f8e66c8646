"""Documents into columns of words, by scikit-learn: counted, with a vocabulary, or hashed to a fixed number."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError

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

    def reading_options(self) -> dict[str, Any]:
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
