"""Documents into columns of words, by scikit-learn: counted, with a vocabulary, or hashed to a fixed number."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """How words become columns.

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

    def columns(
        self, documents: Iterable[str], path: str | os.PathLike
    ) -> tuple[scipy.sparse.csr_array, dict[str, Any]]:
        """The matrix [documents, words], and the parameters that give another file the same columns (JSON values)."""
        alike = {name: getattr(self, name) for name in ("hashed", "weighting", "ngrams", "lower")}
        if self.hashed is None:
            x, vocabulary = self._counted(documents, path)
            alike["vocabulary"] = vocabulary
        else:
            x = self._vectorizer(
                "HashingVectorizer", n_features=self.hashed, norm=None, alternate_sign=False
            ).transform(documents)
        x = scipy.sparse.csr_array(x, dtype=np.float64)
        if self.weighting == "tfidf":
            x, alike["idf"] = self._weighted(x)
        return x, alike

    def _vectorizer(self, name: str, **parameters: Any) -> Any:
        from sklearn.feature_extraction import text  # a second to import, and only this reader needs it

        shared = {"lowercase": self.lower, "ngram_range": (1, self.ngrams), "binary": self.weighting == "binary"}
        return getattr(text, name)(**shared, **parameters)

    def _counted(self, documents: Iterable[str], path: str | os.PathLike) -> tuple[Any, list[str]]:
        given = None if self.vocabulary is None else list(self.vocabulary)
        counting = self._vectorizer("CountVectorizer", vocabulary=given, max_features=self.most_features)
        if given is None and self.least_documents > 1:
            counting.set_params(min_df=self.least_documents)
        try:
            x = counting.fit_transform(documents)
        except DataError:
            raise
        except ValueError as error:  # no words, or none that are left
            wanted = f"words of two letters or more that occur in {self.least_documents} documents or more"
            raise DataError(f"{path} holds no {wanted}: {error}.") from None
        return x, counting.get_feature_names_out().tolist()

    def _weighted(self, x: scipy.sparse.csr_array) -> tuple[scipy.sparse.csr_array, list[float]]:
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.preprocessing import normalize

        idf = TfidfTransformer().fit(x).idf_ if self.idf is None else np.array(self.idf, np.float64)
        if idf.shape != (x.shape[1],):
            raise DataError(f"idf has {idf.size} numbers for {x.shape[1]} columns; it has one for each.")
        x.data *= idf[x.indices]
        return normalize(x), idf.tolist()


def _check_whole(name: str, value: int | None, most: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
        raise DataError(f"{name} is {value!r}; it is a whole number from 1 to {most}.")
