"""Small matrices and data sets that several tests are made of."""

import dataclasses
import itertools
import string

import numpy as np
import scipy.sparse as sp

from workbench import data, formats
from workbench.formats.compressed import assemble


def csr(indptr=(0, 2, 2, 3), columns=(1, 3, 0), data=(1, 2, 3), shape=(3, 4), dtype=np.float32, index=np.int32):
    return assemble("csr", np.array(indptr, index), np.array(columns, index), np.array(data, dtype), shape)


def csc(indptr=(0, 2, 2, 3), columns=(1, 3, 0), data=(1, 2, 3), shape=(4, 3), dtype=np.float32, index=np.int32):
    return assemble("csc", np.array(indptr, index), np.array(columns, index), np.array(data, dtype), shape)


def coo(row=(0, 2, 0), col=(1, 0, 3), data=(1, 3, 2), shape=(3, 4), dtype=np.float32, index=np.int32):
    x = sp.coo_array(shape, dtype=dtype)
    x.coords, x.data = (np.array(row, index), np.array(col, index)), np.array(data, dtype)
    return x


def labelled(y=(0, 0, 0, 1, 1, 2), features=8, per_row=2, groups=None):
    """A small set: row i has `per_row` entries from column i on."""
    y = np.array(y)
    dense = np.zeros((len(y), features), np.float32)
    for step in range(per_row):
        dense[np.arange(len(y)), (np.arange(len(y)) + step) % features] = 1 + step
    x = formats.to_format(dense, "csr")
    classes = tuple(string.ascii_lowercase[: y.max() + 1])
    return data.Dataset("small", x, y.astype(np.int64), data.Labels("classes", classes), "here", "none", groups)


def targets(y):
    return dataclasses.replace(labelled(), y=np.array(y, np.float32), labels=data.Labels("numbers"))


def possible_batches(last, rows, total):
    """Return the pairs of `last` and `rows` that leave a batch of `total` rows; tests of refusals have the others."""
    return [pair for pair in itertools.product(last, rows) if pair[0] != "discard" or pair[1] <= total]


def same(a, b):
    parts = [(a.x.indptr, b.x.indptr), (a.x.indices, b.x.indices), (a.x.data, b.x.data), (a.y, b.y)]
    equal = all(np.array_equal(left, right) for left, right in parts)
    return equal and a.labels == b.labels and a.x.shape == b.x.shape


def svmlight(folder, text, **parameters):
    (folder / "data.svm").write_text(text)
    return data.load("svmlight", path=folder / "data.svm", **parameters)
