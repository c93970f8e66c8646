"""Data sets of scikit-learn by name: small ones that come with it, and larger ones that it downloads if it may.

Nothing is downloaded without download = true. What scikit-learn has downloaded before is used; it keeps that in a
folder of its own, as files of joblib that it wrote itself and reads itself.
"""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import unknown_name
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.reading import UNREADABLE, dataset_of
from workbench.data.labels import Wanted

NAME = "scikit_learn"
SUBSETS = ("all", "train", "test")


@dataclass(frozen=True)
class Entry:
    """A set: the function of `sklearn.datasets` that gives it, source, licence, and what is downloaded of it.

    `kind` is that of the labels where it is no guess. `is_named` tells that labels are numbers of `target_names`;
    `has_subsets`, that it has a train and a test part.
    """

    function: str
    origin: str
    licence: str
    download: str = ""
    kind: str | None = None
    is_named: bool = False
    has_subsets: bool = False


UCI = "UCI Machine Learning Repository, https://archive.ics.uci.edu"
CC_BY = "CC BY 4.0"
ENTRIES = {
    "iris": Entry("load_iris", UCI, CC_BY, is_named=True),
    "digits": Entry("load_digits", UCI, CC_BY),
    "breast_cancer": Entry("load_breast_cancer", UCI, CC_BY, is_named=True),
    "wine": Entry("load_wine", UCI, CC_BY, is_named=True),
    "diabetes": Entry("load_diabetes", "Efron et al., Least Angle Regression, 2004", "none stated", kind="numbers"),
    "20newsgroups_vectorized": Entry(
        "fetch_20newsgroups_vectorized", "http://qwone.com/~jason/20Newsgroups", "none stated",
        "14 MB from figshare.com, counted and weighted in about a minute", is_named=True, has_subsets=True,
    ),
    "rcv1": Entry(
        "fetch_rcv1", "Lewis et al., RCV1, 2004, of Reuters news", "for research, as Reuters allows",
        "656 MB from figshare.com", has_subsets=True,
    ),
    "covtype": Entry("fetch_covtype", UCI, CC_BY, "11 MB from figshare.com"),
    "kddcup99": Entry("fetch_kddcup99", UCI, CC_BY, "2 MB from figshare.com, a tenth of the whole"),
    "california_housing": Entry("fetch_california_housing", "StatLib, Pace and Barry 1997", "none stated",
                                "0.4 MB from figshare.com", "numbers"),
}  # fmt: skip


def make(
    which: str,
    subset: str | None = None,
    download: bool = False,
    folder: str | os.PathLike | None = None,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """Return the set of that name: iris, digits, breast_cancer, wine, diabetes; 20newsgroups_vectorized, rcv1, covtype,
    kddcup99 (a tenth), california_housing.

    The second five are downloaded if `download` says so and they are not there, into `folder`, by default
    scikit-learn's own. `subset` is all, train or test where the set has such parts. Values are as they come, columns of
    text one-hot. `kind`, `positive`, `classes` and `unseen` are those of the data set npz. Refused (`DataError`): other
    names; what is not there and may not be downloaded, with its size. rcv1 takes 1.5 GB of memory, the others less.
    """
    if which not in ENTRIES:
        raise DataError(unknown_name("data set which =", which, ENTRIES))
    entry = ENTRIES[which]
    if subset is not None and (not entry.has_subsets or subset not in SUBSETS):
        allowed = f"one of {', '.join(SUBSETS)}" if entry.has_subsets else "left out: the set has no parts"
        raise DataError(f"subset is {subset!r}; of {which} it is {allowed}.")
    bunch = _fetch(which, entry, subset or "all", download, folder)
    labels, names = _labels(bunch, entry)
    kind = kind or entry.kind or ("multilabel" if labels.ndim == 2 else None)
    wanted = Wanted(kind, positive, names if classes is None and kind != "numbers" else classes, unseen)
    place, x = (lambda row: f"{which}, row {row}"), _numbers(bunch.data)
    made = dataset_of(NAME, x, labels, wanted, which, place, licence=entry.licence)
    return dataclasses.replace(made, source=f"{which} of scikit-learn: {entry.origin}")


def _fetch(name: str, entry: Entry, subset: str, download: bool, folder: str | os.PathLike | None) -> Any:
    """Return the Bunch that scikit-learn's function gives for a data set, downloaded only if `download`.

    `folder` is scikit-learn's data folder, None for its own. Raises DataError if a download is needed and not allowed,
    or fails.
    """
    import sklearn.datasets  # a second to import, and only this needs it

    function = getattr(sklearn.datasets, entry.function)
    if not entry.download:
        return function()
    parts = {"subset": subset} if entry.has_subsets else {}
    home = None if folder is None else os.fspath(folder)
    try:
        return function(data_home=home, download_if_missing=bool(download), **parts)
    except UNREADABLE as error:
        if download:
            raise DataError(f"{name} could not be downloaded ({entry.download}): {error}") from error
        fetched = f"it would be downloaded, {entry.download} (source: {entry.origin}; licence: {entry.licence})"
        raise DataError(
            f"{name} is not among scikit-learn's data on this machine; {fetched}.\n"
            f"{reader_option_advice(download=True)}"
        ) from error


def _labels(bunch: Any, entry: Entry) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return (labels, class names in order or None) of a Bunch: [rows], or 0/1 [rows, classes] if sparse."""
    target = bunch.target
    if scipy.sparse.issparse(target):
        return target.toarray(), tuple(map(str, bunch.target_names))
    if target.dtype == object:
        return _texts(target), None
    if not entry.is_named:
        return target, None
    names = tuple(map(str, bunch.target_names))
    return np.array(names)[target], names


def _texts(column: np.ndarray) -> np.ndarray:
    """Return a column of bytes or objects as an array of str, bytes decoded as UTF-8."""
    return np.array([value.decode() if isinstance(value, bytes) else str(value) for value in column])


def _numbers(x: Any) -> scipy.sparse.csr_array:
    """Return a dense or sparse matrix as CSR.

    In object arrays, columns of text become one-hot, in alphabetical order.
    """
    if x.dtype != object:
        return scipy.sparse.csr_array(x)
    columns = []
    for column in x.T:
        if any(isinstance(value, bytes | str) for value in column):
            distinct, codes = np.unique(_texts(column), return_inverse=True)
            places = (np.arange(len(codes)), codes)
            columns.append(scipy.sparse.csr_array((np.ones(len(codes)), places), shape=(len(codes), len(distinct))))
        else:
            columns.append(scipy.sparse.csr_array(column.astype(np.float64)[:, None]))
    return scipy.sparse.hstack(columns, format="csr")


register(Source(NAME, make, "scikit-learn's data sets", "that of each set, in Dataset.licence"))
